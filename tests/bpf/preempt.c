// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * preempt.c - several allocating programs a CPU, on every CPU, on one heap: tasks that take the CPU from each
 * other in the middle of malloc and free.  No object is handed out twice, none is lost.
 *
 * On each CPU three ordinary threads take turns, and one of real-time priority wakes thousands of times a
 * second, takes the CPU from whichever runs, and allocates and frees a few objects itself.  Runs for
 * $TEST_SECONDS a test (1).  Where the kernel does not preempt its own code ("none" or "voluntary"), this only
 * shows threads that alternate between their runs.
 *
 * Built with TEST_NO_GUARD it is the test of this test: the claim of a cache is compiled out of the BPF
 * object, and the test passes if that is noticed.
 */
#include "crowd.h"

#define PER_CPU	   4
#define MAX_CPUS   16
#define WAKES_US   300
#define FEW_ROUNDS 4

/* What the kernel says about it: "none voluntary (full)"; it may say so in debugfs. */
static char mode[128] = "unknown";

/* Does it take the CPU from a task in the kernel? */
static bool preempting(void)
{
	return strstr(mode, "(full)") || strstr(mode, "(lazy)");
}

static void ask_mode(void)
{
	FILE *f = fopen("/sys/kernel/debug/sched/preempt", "r");

	if (f && fgets(mode, sizeof(mode), f))
		mode[strcspn(mode, "\n")] = 0;
	if (f)
		fclose(f);
}

/* All of them at once for some seconds: how many, and how often one was preempted. */
static int crowd(struct worker *w, enum churn_sizes sizes, int secs, __u64 *preempted)
{
	int cpus = rig_cpus() < MAX_CPUS ? rig_cpus() : MAX_CPUS, n = 0, cpu, i;

	for (cpu = 0; cpu < cpus; cpu++)
		for (i = 0; i < PER_CPU; i++, n++) {
			w[n].prog = churn->progs.churn_run;
			w[n].cpu = cpu;
			w[n].wakes_us = i ? 0 : WAKES_US;
			w[n].arg = (struct churn){ .seed = 4711 + (__u64)n * 77,
						   .rounds = i ? 20000 : FEW_ROUNDS,
						   .sizes = sizes,
						   .role = CHURN_ALLOC | CHURN_FREE,
						   .boxes = sizes == CHURN_WHOLE ? 128 : CHURN_BOXES };
		}
	crowd_run(w, n, secs * 1000);
	for (i = 0; i < n; i++)
		*preempted += w[i].preempted;
	return n;
}

static int setup(void **state)
{
	return crowd_setup(0);
}

#ifdef TEST_NO_GUARD

#define TRIES 60 /* of a second */

static void without_the_guard_it_is_noticed(void **state)
{
	static struct worker w[PER_CPU * MAX_CPUS];
	struct hold_wrong *wrong = &churn->bss->wrong;
	__u64 preempted = 0;
	int i;

	for (i = 0; i < TRIES && !wrong->twice; i++)
		crowd(w, CHURN_ONE, 1, &preempted);
	print_message(
		"note: preemption %s: without the guard, in %d s: %llu objects handed out twice, %llu freed that nobody held, %llu frees refused\n",
		mode, i, wrong->twice, wrong->lost_mark, wrong->refused);
	assert_true(wrong->twice > 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_the_guard_it_is_noticed),
	};

	rig_start();
	ask_mode();
	if (!preempting()) {
		printf("this kernel does not preempt its own code (preemption: %s)\n", mode);
		return 77;
	}
	/* What it leaves is a broken heap: no walkers at the end. */
	return cmocka_run_group_tests(tests, setup, NULL) != 0;
}

#else

static int seconds(void)
{
	const char *s = getenv("TEST_SECONDS");

	return s && atoi(s) > 0 ? atoi(s) : 1;
}

static void preempted_in(enum churn_sizes sizes)
{
	static struct worker w[PER_CPU * MAX_CPUS];
	__u64 bypass = rig_fail(t, ARN_FAIL_BYPASS), preempted = 0, made = 0;
	int n = crowd(w, sizes, seconds(), &preempted), i;

	for (i = 0; i < n; i++)
		made += w[i].arg.made;
	bypass = rig_fail(t, ARN_FAIL_BYPASS) - bypass;
	print_message(
		"note: preemption %s: %llu objects; a thread lost its CPU %llu times, a cache was in use %llu times\n",
		mode, made, preempted, bypass);
	crowd_sound(w, n);
	assert_true(made > 1000);
	if (preempting())
		assert_true(bypass > 0);
}

static void one_class(void **state)
{
	preempted_in(CHURN_ONE);
}

static void small_sizes(void **state)
{
	preempted_in(CHURN_SMALL);
}

static void through_the_depot(void **state)
{
	preempted_in(CHURN_WHOLE);
}

static void mixed_sizes(void **state)
{
	preempted_in(CHURN_MIXED);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_class),
		cmocka_unit_test(small_sizes),
		cmocka_unit_test(through_the_depot),
		cmocka_unit_test(mixed_sizes),
	};

	rig_start();
	ask_mode();
	return cmocka_run_group_tests(tests, setup, crowd_teardown) != 0;
}

#endif
