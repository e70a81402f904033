// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * growth_test.c - the marks, and requests for growth: a storm is one request, and none is swallowed.
 *
 * Who serves them is in tests/bpf/growth.c.
 */
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include "harness.h"
#include "../../src/core/growth.h"

#define THREADS 4
#define TURNS	(1000u / ARN_TEST_SCALE)

static struct arn_root root; /* only its marks are looked at */

static int reset(void **state)
{
	memset(&root, 0, sizeof(root));
	root.npages = 10000;
	return 0;
}

/* Without a mark nobody asks; with one, who finds less than that. */
static void below_the_mark(void **state)
{
	assert_false(arn_below_low(&root));
	root.low_pages = 1024;
	assert_true(arn_below_low(&root));
	root.pages_free = 1023;
	assert_true(arn_below_low(&root));
	root.pages_free = 1024;
	assert_false(arn_below_low(&root));
}

/* Growth goes a chunk above the mark at least, but not above the high one, and not beyond the arena. */
static void the_goal(void **state)
{
	root.low_pages = 1024;
	assert_int_equal(arn_growth_goal(&root), 1024 + 256 + ARN_CHUNK_PAGES);
	root.high_pages = 1024 + 2 * ARN_CHUNK_PAGES;
	assert_int_equal(arn_growth_goal(&root), 1024 + 256 + ARN_CHUNK_PAGES);
	root.low_pages = 4096;
	root.high_pages = 4096 + 2 * ARN_CHUNK_PAGES;
	assert_int_equal(arn_growth_goal(&root), root.high_pages);
	root.high_pages = 0;
	root.npages = 4200;
	assert_int_equal(arn_growth_goal(&root), 4200);
}

/* Asked once until somebody heard it, or until it is out of date. */
static void one_request_at_a_time(void **state)
{
	__u64 now = 1000;

	assert_true(arn_ask_first(&root, now));
	assert_false(arn_ask_first(&root, now));
	assert_false(arn_ask_first(&root, now + ARN_ASK_AGAIN_NS - 1));
	assert_true(arn_ask_first(&root, now + ARN_ASK_AGAIN_NS));
	assert_false(arn_ask_first(&root, now + ARN_ASK_AGAIN_NS));
	arn_ask_heard(&root);
	assert_true(arn_ask_first(&root, now));
}

/* Another CPU's clock may be behind. */
static void a_clock_that_is_behind(void **state)
{
	assert_true(arn_ask_first(&root, 1000));
	assert_false(arn_ask_first(&root, 999));
}

/* What the kernel refused it is not asked for all the time. */
static void after_a_failure(void **state)
{
	__u64 now = 1000;

	arn_ask_later(&root, now);
	assert_false(arn_ask_first(&root, now));
	assert_false(arn_ask_first(&root, now + ARN_ASK_RETRY_NS));
	assert_true(arn_ask_first(&root, now + ARN_ASK_RETRY_NS + ARN_ASK_AGAIN_NS));
}

/* ---- Threads ---- */

static sem_t wake;
static __u32 requests;
static pthread_barrier_t gate;
static bool done;

static void *ask(void *now)
{
	__u32 i;

	for (i = 0; i < 1000; i++) {
		pthread_barrier_wait(&gate);
		if (arn_ask_first(&root, (__u64)(i + 1) * ARN_ASK_AGAIN_NS))
			__atomic_fetch_add(&requests, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void a_storm_is_one_request(void **state)
{
	pthread_t thread[THREADS];
	int i;

	requests = 0;
	assert_int_equal(pthread_barrier_init(&gate, NULL, THREADS), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask, NULL), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	pthread_barrier_destroy(&gate);
	assert_int_equal(requests, 1000);
}

/* Takes the page that there is, and asks as an allocation does.  Its clock stands still: no request is out of date. */
static void *take(void *unused)
{
	__u64 have;
	__u32 i;

	for (i = 0; i < TURNS; i++) {
		/* Pages are there, or a request is on its way: a swallowed one would leave us here. */
		do
			have = arn_load_relaxed(&root.pages_free);
		while (have ? arn_cas64_full(&root.pages_free, have, have - 1) != have : !sched_yield());
		if (arn_below_low(&root) && arn_ask_first(&root, 1))
			insist(!sem_post(&wake));
	}
	return NULL;
}

static void *serve(void *unused)
{
	for (;;) {
		while (sem_wait(&wake))
			;
		if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
			return NULL;
		arn_ask_heard(&root);
		while (arn_load_relaxed(&root.pages_free) < root.low_pages)
			arn_add64_full(&root.pages_free, 1);
		sched_yield(); /* the others take it after the last look */
	}
}

static void no_request_is_swallowed(void **state)
{
	pthread_t thread[THREADS], server;
	struct timespec limit;
	int i;

	root.low_pages = 1;
	root.pages_free = 1;
	assert_int_equal(sem_init(&wake, 0, 0), 0);
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 120;
	assert_int_equal(pthread_create(&server, NULL, serve, NULL), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, take, NULL), 0);
	for (i = 0; i < THREADS; i++)
		insist(!pthread_timedjoin_np(thread[i], NULL, &limit));
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	sem_post(&wake);
	pthread_join(server, NULL);
	sem_destroy(&wake);
}

#define T(f) cmocka_unit_test_setup(f, reset)
unit_main(T(below_the_mark), T(the_goal), T(one_request_at_a_time), T(a_clock_that_is_behind), T(after_a_failure),
	  T(a_storm_is_one_request), T(no_request_is_swallowed))
