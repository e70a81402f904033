// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * fork_test.c - a forked child: every call on the parent's handle says EOWNERDEAD and touches nothing.
 *
 * Shows it for native heaps; that a child can open a pinned one anew is for the BPF tests.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include "unit.h"

static struct arn_heap *h;
static void *object;
static struct arn_ring_handle *spsc, *mpsc;

/* Runs fn in a child; it must come to its end. */
static void in_child(void (*fn)(void))
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		alarm(60);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int count(const struct arn_object *o, void *arg)
{
	return 0;
}

static void every_call(void)
{
	struct arn_stats s;
	void *p[2] = { object, object };

#define dead_ptr(call)                                                                                                 \
	do {                                                                                                           \
		errno = 0;                                                                                             \
		insist((call) == NULL);                                                                                \
		insist(errno == EOWNERDEAD);                                                                           \
	} while (0)
#define dead_int(call)                                                                                                 \
	do {                                                                                                           \
		errno = 0;                                                                                             \
		insist((call) == -EOWNERDEAD);                                                                         \
	} while (0)
	dead_ptr(arn_malloc(h, 64));
	dead_ptr(arn_malloc(h, 100000));
	dead_ptr(arn_malloc(h, ~0ULL));
	dead_ptr(arn_calloc(h, 3, 64));
	dead_ptr(arn_calloc(h, ~0ULL, 64));
	dead_ptr(arn_aligned_alloc(h, 64, 64));
	dead_ptr(arn_aligned_alloc(h, 1 << 20, 64));
	dead_ptr(arn_realloc(h, NULL, 64));
	dead_ptr(arn_realloc(h, object, 64));
	dead_ptr(arn_globals(h));
	dead_int(arn_free(h, object));
	dead_int(arn_free_bulk(h, p, 2));
	dead_int(arn_reserve(h, 1 << 20));
	dead_int(arn_trim(h));
	dead_int(arn_check(h));
	dead_int(arn_get_stats(h, &s, sizeof(s)));
	dead_int(arn_pin(h, "/sys/fs/bpf/arn_test_never"));
	dead_int(arn_attach(h, NULL));
	dead_int(arn_live(h, count, NULL));
	dead_int(arn_set_tag(h, 1));
	dead_ptr(arn_ring_create_spsc(h, 8));
	dead_ptr(arn_ring_create_mpsc(h, 8));
	dead_ptr(arn_ring_open(h, arn_ring_address(spsc)));
	dead_int(arn_ring_enqueue_spsc(spsc, object));
	dead_int(arn_ring_enqueue_mpsc(mpsc, object));
	dead_ptr(arn_ring_dequeue_spsc(spsc));
	dead_ptr(arn_ring_dequeue_mpsc(mpsc));
	dead_int(arn_ring_enqueue_bulk_spsc(spsc, p, 1, 2));
	dead_int(arn_ring_enqueue_bulk_mpsc(mpsc, p, 1, 2));
	dead_int(arn_ring_dequeue_bulk_spsc(spsc, p, 1, 2));
	dead_int(arn_ring_dequeue_bulk_mpsc(mpsc, p, 1, 2));
	dead_int(arn_ring_count(spsc));
	dead_int(arn_ring_skip(mpsc));
	dead_int(arn_ring_destroy(spsc));
	dead_ptr(arn_percpu_alloc(h, 64));
	dead_int(arn_percpu_free(h, object));
	dead_int(arn_percpu_free_bulk(h, p, 2));
	dead_int(arn_percpu_prepare(h, 64, 1));
	insist(arn_percpu_alloc_bulk(h, 64, 2, p) == 0 && errno == EOWNERDEAD);
	insist(arn_percpu_cpus(h) == 0 && arn_percpu_sum(h, object) == 0);
	errno = 0;
	insist(arn_malloc_bulk(h, 64, 2, p) == 0 && errno == EOWNERDEAD);
	errno = 0;
	insist(arn_usable_size(h, object) == 0 && errno == EOWNERDEAD);
	insist(strstr(arn_last_error(), "fork"));
	arn_close(h);
}

/* Every call says EOWNERDEAD, also for a thread that has a cache; the parent notices nothing. */
static void every_call_is_refused_in_a_child(void **state)
{
	__u64 fails;

	h = heap_new(64 * MIB);
	object = arn_malloc(h, 64);
	paint(object, 64, 1);
	spsc = arn_ring_create_spsc(h, 8);
	mpsc = arn_ring_create_mpsc(h, 8);
	fails = failures(h);
	in_child(every_call);
	assert_true(painted(object, 64, 64, 1));
	assert_int_equal(live(h), 3);
	assert_int_equal(arn_ring_destroy(spsc), 0);
	assert_int_equal(arn_ring_destroy(mpsc), 0);
	assert_int_equal(failures(h), fails);
	assert_int_equal(arn_free(h, object), 0);
	assert_int_equal(arn_free(h, arn_malloc(h, 64)), 0);
	heap_end(h);
}

static void a_heap_of_its_own(void)
{
	struct arn_heap *mine;
	struct arn_options o = { .sz = sizeof(o), .bytes = 32 * MIB, .flags = ARN_NATIVE };
	void *p;

	mine = arn_create(&o);
	insist(mine);
	p = arn_malloc(mine, 64);
	insist(p);
	insist(arn_free(mine, p) == 0);
	insist(arn_check(mine) == 0);
	errno = 0;
	insist(!arn_malloc(h, 64) && errno == EOWNERDEAD);
	arn_close(mine);
}

/* A child makes a heap of its own, perhaps at the same address; the old handle stays dead. */
static void a_child_makes_its_own(void **state)
{
	h = heap_new(64 * MIB);
	object = arn_malloc(h, 64);
	in_child(a_heap_of_its_own);
	assert_int_equal(live(h), 1);
	heap_end(h);
}

static void grandchild(void)
{
	errno = 0;
	insist(!arn_malloc(h, 64) && errno == EOWNERDEAD);
	in_child(a_heap_of_its_own);
}

/* A grandchild is no better off. */
static void a_grandchild(void **state)
{
	h = heap_new(64 * MIB);
	arn_free(h, arn_malloc(h, 64));
	in_child(grandchild);
	heap_end(h);
}

static __u32 stop;

static void *churn(void *arg)
{
	struct arn_heap *mine;
	void *p;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		p = arn_malloc(h, 64);
		insist(p);
		insist(arn_free(h, p) == 0);
		mine = heap_new(24 * MIB); /* takes the lock that fork must not leave held */
		arn_close(mine);
	}
	return NULL;
}

/* Forks while other threads make heaps: the child's library is not stuck on a lock of theirs. */
static void fork_beside_busy_threads(void **state)
{
	pthread_t th[2];
	int i;

	h = heap_new(64 * MIB);
	stop = 0;
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&th[i], NULL, churn, NULL), 0);
	for (i = 0; i < 40 / ARN_TEST_SCALE + 5; i++)
		in_child(a_heap_of_its_own);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		pthread_join(th[i], NULL);
	assert_int_equal(live(h), 0);
	heap_end(h);
}

unit_main(t(every_call_is_refused_in_a_child), t(a_child_makes_its_own), t(a_grandchild), t(fork_beside_busy_threads))
