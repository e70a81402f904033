// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * parallel.c - two CPUs at once on one heap: no object handed out twice, none lost, contents left
 * alone; in each test for most of a second, by threads pinned to their CPUs.
 *
 * Races that this machine's timing does not meet are not shown.  Interrupts are in interrupt.c, tasks
 * that preempt each other in preempt.c.
 */
#include "crowd.h"

#define MS_A_TEST 700
#define LEAST	  10000 /* objects made; and by each worker, made or freed */

static int setup(void **state)
{
	return crowd_setup(0);
}

static int setup_checked(void **state)
{
	return crowd_setup(ARN_CHECKED);
}

/* Runs two workers at once.  On return the boxes are empty and everything adds up. */
static void both(struct bpf_program *prog, enum churn_sizes sizes, __u32 role0, __u32 role1, __u32 rounds, bool nulls)
{
	struct worker w[2] = {};
	__u64 lock = rig_fail(t, ARN_FAIL_LOCK);
	__u32 i;

	for (i = 0; i < 2; i++) {
		w[i].prog = prog;
		w[i].cpu = (int)i % rig_cpus();
		w[i].arg = (struct churn){ .seed = 12345 + i * 77,
					   .rounds = rounds,
					   .sizes = sizes,
					   .role = i ? role1 : role0,
					   .boxes = sizes == CHURN_WHOLE ? 128 : CHURN_BOXES };
		w[i].least = LEAST / rig_scale();
	}
	crowd_run(w, 2, MS_A_TEST);
	crowd_sound(w, 2);
	assert_true(w[0].arg.made + w[1].arg.made >= LEAST / rig_scale());
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
	failed = cmocka_run_group_tests(tests, setup, crowd_teardown);
	failed += cmocka_run_group_tests(checked, setup_checked, crowd_teardown);
	return failed != 0;
}
