// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * parallel.c - two CPUs at once on one heap: no object handed out twice, none lost, contents left
 * alone; in each test for most of a second, by threads pinned to their CPUs.
 *
 * Races that this machine's timing does not meet are not shown; preempted tasks neither (the kernel
 * here runs with preempt=none).  Interrupts are in interrupt.c.
 */
#include <pthread.h>
#include <time.h>
#include "rig.h"
#include "ops.skel.h"
#include "churn.h"
#include "churn.skel.h"

#define MS_A_TEST 700

struct worker {
	struct bpf_program *prog;
	struct churn arg;
	int cpu;
	pthread_t thread;
	__u64 deadline;
	int err;
};

static struct rig *t;
static struct churn_bpf *churn;

static __u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * 1000 + (__u64)ts.tv_nsec / 1000000;
}

static int setup_flags(__u32 flags)
{
	t = rig_new_flags(CHURN_ARENA, RIG_ALL, flags);
	churn = churn_bpf__open();
	assert_non_null(churn);
	bpf_program__set_autoload(churn->progs.churn_tick, false);
	assert_int_equal(rig_load(t->heap, churn->skeleton), 0);
	return 0;
}

static int setup(void **state)
{
	return setup_flags(0);
}

static int setup_checked(void **state)
{
	return setup_flags(ARN_CHECKED);
}

static int teardown(void **state)
{
	churn_bpf__destroy(churn);
	rig_end(t);
	return 0;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &w->arg, .ctx_size_in = sizeof(w->arg));

	rig_pin_cpu(w->cpu);
	do
		w->err = bpf_prog_test_run_opts(bpf_program__fd(w->prog), &opts);
	while (!w->err && now_ms() < w->deadline);
	return NULL;
}

static void nothing_wrong(void)
{
	struct churn_wrong *w = &churn->bss->wrong;

	if (w->twice)
		fail_msg("%llu objects handed out while somebody held them", w->twice);
	if (w->lost_mark)
		fail_msg("%llu objects freed that nobody held", w->lost_mark);
	if (w->torn)
		fail_msg("%llu objects overwritten", w->torn);
	if (w->refused)
		fail_msg("%llu frees refused", w->refused);
	if (w->bulk_short)
		fail_msg("%llu bulk frees freed too few", w->bulk_short);
}

/* Runs two workers at once.  On return the boxes are empty and everything adds up. */
static void both(struct bpf_program *prog, enum churn_sizes sizes, __u32 role0, __u32 role1, __u32 rounds, bool nulls)
{
	struct worker w[2] = {};
	__u64 boxed = 0, lock = rig_fail(t, ARN_FAIL_LOCK);
	__u32 i, k;

	for (i = 0; i < 2; i++) {
		w[i].prog = prog;
		w[i].cpu = (int)i % rig_cpus();
		w[i].deadline = now_ms() + MS_A_TEST;
		w[i].arg = (struct churn){ .seed = 12345 + i * 77,
					   .rounds = rounds,
					   .sizes = sizes,
					   .role = i ? role1 : role0,
					   .boxes = sizes == CHURN_WHOLE ? 128 : CHURN_BOXES };
		if (prog == churn->progs.churn_bulk)
			w[i].arg.vec = (__u64)bpf_malloc(t, 2 * CHURN_BULK * 8);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	for (i = 0; i < 2; i++)
		pthread_join(w[i].thread, NULL);
	for (i = 0; i < 2; i++) {
		assert_int_equal(w[i].err, 0);
		if (w[i].arg.vec)
			assert_int_equal(bpf_free(t, (void *)w[i].arg.vec), 0);
	}
	nothing_wrong();
	rig_sound(t->heap);

	for (k = 0; k < CHURN_BOXES; k++)
		boxed += churn->bss->box[k] != 0;
	assert_int_equal(rig_live(t->heap), boxed);
	assert_int_equal(w[0].arg.made + w[1].arg.made, w[0].arg.freed + w[1].arg.freed + boxed);
	for (k = 0; k < CHURN_BOXES; k++) {
		__u64 p = churn->bss->box[k];

		churn->bss->bits[(__u32)p >> 10] &= ~(p ? 1ULL << (p >> 4 & 63) : 0);
		churn->bss->box[k] = 0;
		assert_int_equal(bpf_free(t, (void *)p), 0);
	}
	for (k = 0; k < CHURN_WORDS; k++)
		assert_int_equal(churn->bss->bits[k], 0);
	assert_int_equal(rig_live(t->heap), 0);
	rig_sound(t->heap);

	assert_true(w[0].arg.made + w[1].arg.made > 10000);
	/* A NULL while there is memory: only when the lock's holder lost its CPU for a millisecond. */
	if (!nulls && w[0].arg.nulls + w[1].arg.nulls && rig_fail(t, ARN_FAIL_LOCK) == lock)
		fail_msg("%llu allocations refused with memory left", w[0].arg.nulls + w[1].arg.nulls);
}

#define BOTH (CHURN_ALLOC | CHURN_FREE)

static void one_class(void **state)
{
	both(churn->progs.churn_run, CHURN_ONE, BOTH, BOTH, 20000, false);
}

static void small_sizes(void **state)
{
	both(churn->progs.churn_run, CHURN_SMALL, BOTH, BOTH, 20000, false);
}

static void mixed_sizes(void **state)
{
	both(churn->progs.churn_run, CHURN_MIXED, BOTH, BOTH, 5000, false);
}

static void more_than_there_is(void **state)
{
	both(churn->progs.churn_run, CHURN_HUGE, BOTH, BOTH, 500, true);
}

static void made_here_freed_there(void **state)
{
	both(churn->progs.churn_run, CHURN_ONE, CHURN_ALLOC, CHURN_FREE, 20000, false);
}

/* Magazines of one object: every call goes to the depot. */
static void through_the_depot(void **state)
{
	both(churn->progs.churn_run, CHURN_WHOLE, BOTH, BOTH, 20000, false);
}

static void through_the_depot_one_way(void **state)
{
	both(churn->progs.churn_run, CHURN_WHOLE, CHURN_ALLOC, CHURN_FREE, 20000, false);
}

static void in_bulk(void **state)
{
	both(churn->progs.churn_bulk, CHURN_SMALL, BOTH, BOTH, 300, false);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_class),
		cmocka_unit_test(small_sizes),
		cmocka_unit_test(mixed_sizes),
		cmocka_unit_test(more_than_there_is),
		cmocka_unit_test(made_here_freed_there),
		cmocka_unit_test(through_the_depot),
		cmocka_unit_test(through_the_depot_one_way),
		cmocka_unit_test(in_bulk),
	}, checked[] = {
		cmocka_unit_test(small_sizes),
		cmocka_unit_test(mixed_sizes),
	};
	int failed;

	rig_start();
	if (rig_cpus() < 2) {
		puts("parallel: needs two CPUs");
		return 77;
	}
	failed = cmocka_run_group_tests(tests, setup, teardown);
	failed += cmocka_run_group_tests(checked, setup_checked, teardown);
	return failed != 0;
}
