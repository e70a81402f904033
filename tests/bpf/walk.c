// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * walk.c - arn_check_live on a heap at rest, in use, and damaged in either state.
 *
 * Shows that a heap in use is not called damaged and that damage which lasts is found in spite of the use;
 * which damage, is for tests/unit/check_test.c.
 */
#include <pthread.h>
#include "rig.h"
#include "ops.skel.h"
#include "churn.h"
#include "churn.skel.h"

static struct rig *t;
static struct churn_bpf *churn;
static volatile bool stop;

static int setup(void **state)
{
	t = rig_new(CHURN_ARENA, 16 * MiB);
	churn = churn_bpf__open();
	assert_non_null(churn);
	bpf_program__set_autoload(churn->progs.churn_tick, false);
	assert_int_equal(rig_load(t->heap, churn->skeleton), 0);
	return 0;
}

static int teardown(void **state)
{
	churn_bpf__destroy(churn);
	rig_end(t);
	return 0;
}

static void *producer(void *arg)
{
	struct churn a = { .seed = 99,
			   .rounds = 20000,
			   .sizes = CHURN_SMALL,
			   .role = CHURN_ALLOC | CHURN_FREE,
			   .boxes = CHURN_BOXES };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &a, .ctx_size_in = sizeof(a));

	rig_pin_cpu((int)(long)arg);
	while (!stop && !bpf_prog_test_run_opts(bpf_program__fd(churn->progs.churn_run), &opts))
		;
	return NULL;
}

static void *user(void *arg)
{
	char *p[200];
	int i;

	while (!stop) {
		for (i = 0; i < 200; i++)
			p[i] = arn_malloc(t->heap, 16 + (size_t)i * 7);
		for (i = 0; i < 200; i++)
			arn_free(t->heap, p[i]);
	}
	return NULL;
}

static pthread_t th[3];

static void begin_use(void)
{
	long i;

	stop = false;
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&th[i], NULL, producer, (void *)(i % rig_cpus())), 0);
	assert_int_equal(pthread_create(&th[2], NULL, user, NULL), 0);
	usleep(50000);
}

static void end_use(void)
{
	int i;

	stop = true;
	for (i = 0; i < 3; i++)
		pthread_join(th[i], NULL);
}

static void a_heap_at_rest_is_walked_exactly(void **state)
{
	__u64 was = t->root->pages_free;

	assert_ok(arn_check_live(t->heap));
	t->root->pages_free++;
	assert_int_equal(arn_check_live(t->heap), -EUCLEAN);
	assert_non_null(strstr(arn_last_error(), "pages_free"));
	t->root->pages_free = was;
	assert_ok(arn_check_live(t->heap));
}

static void a_heap_in_use_is_not_called_damaged(void **state)
{
	int err;

	begin_use();
	err = arn_check_live(t->heap);
	end_use();
	if (err && err != -EAGAIN)
		fail_msg("%d: %s", err, arn_last_error());
	if (err)
		assert_non_null(strstr(arn_last_error(), "in use"));
	assert_ok(arn_check_live(t->heap));
}

static void damage_shows_in_spite_of_the_use(void **state)
{
	int err;

	begin_use();
	t->root->cls[30].nobj ^= 1;
	err = arn_check_live(t->heap);
	t->root->cls[30].nobj ^= 1;
	end_use();
	assert_int_equal(err, -EUCLEAN);
	assert_non_null(strstr(arn_last_error(), "class table"));
}

/* A thread that stopped in the middle of a call: not damage, but no exact walk either. */
static void who_stands_still_at_work_is_no_damage(void **state)
{
	struct arn_slot *s = (struct arn_slot *)(t->base + ARN_SLOTS_OFF) + t->root->ncpus;

	assert_int_equal(arn_free(t->heap, arn_malloc(t->heap, 64)), 0);
	s->cache[3].busy = 1;
	assert_int_equal(arn_check_live(t->heap), -EAGAIN);
	assert_int_equal(arn_check(t->heap), -EUCLEAN);
	assert_non_null(strstr(arn_last_error(), "busy"));
	s->cache[3].busy = 0;
	assert_ok(arn_check_live(t->heap));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(a_heap_at_rest_is_walked_exactly),
		T(a_heap_in_use_is_not_called_damaged),
		T(damage_shows_in_spite_of_the_use),
		T(who_stands_still_at_work_is_no_damage),
	};

	rig_start();
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
