// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * growth.c - heaps with watermarks: programs that may not sleep go on allocating, and somebody else maps
 * the memory in time.
 *
 * The programs have a pace of their own, and nothing waits for growth between two of their runs, but in
 * bursts_of_32768_in_one_xdp_run.  What happens when there is no memory: shortage.c.
 */
#include <pthread.h>
#include "growth_rig.h"

static bool low(void)
{
	return *(volatile __u64 *)&t->root->pages_free < t->root->low_pages;
}

/* Until what was asked for is done, ten seconds at most. */
static void wait_for_growth(void)
{
	__u64 deadline = now_ms() + 10000;

	while (low() && now_ms() < deadline)
		usleep(1000);
	assert_false(low());
}

static void a_new_heap_has_the_low_mark_mapped(void **state)
{
	begin(64 * MiB, 5 * MiB, 0, "grow_xdp");
	assert_true(rig_stats(t->heap).pages_free >= 5 * MiB / 4096);
	assert_int_equal(rig_stats(t->heap).pages_mapped, 5 * MiB / 4096);
	assert_int_equal(rig_stats(t->heap).low_watermark, 5 * MiB);
}

/* The largest burst fits into the low mark, again and again. */
static void bursts_of_32768_in_one_xdp_run(void **state)
{
	int i;

	need("wq-callback");
	begin(256 * MiB, 4 * MiB, 0, "grow_xdp");
	gs->bss->g.batch = 32768;
	for (i = 0; i < 20; i++) {
		gs->bss->g.left = 32768;
		xdp_run();
		assert_int_equal(gs->bss->g.failed, 0);
		wait_for_growth();
	}
	assert_int_equal(gs->bss->g.got, 20 * 32768);
	rest();
	rig_sound(t->heap);
}

static void all_of_them(const char *who)
{
	struct growth *g = &gs->bss->g;

	rest();
	print_message(
		"%s: %llu allocated, %llu failed (nomem %llu, lock %llu); asked %llu, queued %llu, rung %llu, deferred %llu, grown %llu\n",
		who, g->got, g->failed, rig_fail(t, ARN_FAIL_NOMEM), rig_fail(t, ARN_FAIL_LOCK), count(ARN_COUNT_ASKED),
		count(ARN_COUNT_QUEUED), count(ARN_COUNT_RUNG), count(ARN_COUNT_DEFERRED), count(ARN_COUNT_GROWN));
	/* Elsewhere one that interrupted the merging of new memory may have got little. */
	if (arn_has("irq-save") > 0)
		assert_int_equal(g->failed, 0);
	assert_int_equal(g->got + g->failed, a_million());
	assert_true(count(ARN_COUNT_GROWN) >= (a_million() * 64 - 8 * MiB) / MiB);
	assert_int_equal(rig_fail(t, ARN_FAIL_NOMEM), 0);
	rig_sound(t->heap);
}

/* The CPU is busy all the time, as it is with packets. */
static void xdp_runs(void)
{
	__u64 next = now_ns();

	while (gs->bss->g.left) {
		while (now_ns() < next)
			;
		next += pace_ns();
		xdp_run();
	}
}

static void a_million_by_xdp_and_a_work_queue(void **state)
{
	need("wq-callback");
	begin(256 * MiB, 8 * MiB, 0, "grow_xdp");
	gs->bss->g.batch = 256;
	gs->bss->g.left = a_million();
	xdp_runs();
	assert_true(count(ARN_COUNT_QUEUED) > 0);
	all_of_them("xdp, work queue");
}

static void a_million_by_xdp_and_a_keeper(void **state)
{
	begin(256 * MiB, 8 * MiB, 0, "grow_xdp");
	assert_ok(arn_keeper_start(t->heap, NULL));
	gs->bss->g.batch = 256;
	gs->bss->g.left = a_million();
	xdp_runs();
	assert_ok(arn_keeper_stop(t->heap));
	all_of_them("xdp, keeper");
}

/* The keeper's thread has a CPU at once, whatever else runs on the machine. */
static void keep_at_once(void)
{
	struct sched_param at_once = { .sched_priority = 1 }, before = { .sched_priority = 0 };

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &at_once);
	assert_ok(arn_keeper_start(t->heap, NULL));
	pthread_setschedparam(pthread_self(), SCHED_OTHER, &before);
}

static void a_million_by_perf_events_and_a_keeper(void **state)
{
	begin(256 * MiB, 8 * MiB, 0, "grow_perf");
	keep_at_once();
	ticks(gs->progs.grow_perf, a_million());
	assert_ok(arn_keeper_stop(t->heap));
	all_of_them("perf_event, keeper");
}

static void a_million_by_perf_events_and_task_work(void **state)
{
	need("task-work");
	begin(256 * MiB, 8 * MiB, 0, "grow_perf_later");
	ticks(gs->progs.grow_perf_later, a_million());
	assert_true(count(ARN_COUNT_DEFERRED) > 0);
	all_of_them("perf_event, task work");
}

/* Both CPUs find too little again and again; who was asked is not on his way yet. */
static void *storm(void *unused)
{
	__u64 chain = 0;
	int i;

	rig_pin_cpu(1);
	for (i = 0; i < 200; i++) {
		bpf_take(t, 2048, 64, &chain);
		bpf_drop(t, 64, &chain);
		bpf_free(t, bpf_malloc(t, 100000));
	}
	return NULL;
}

static void a_storm_rings_once(void **state)
{
	struct arn_root *r;
	pthread_t thread;
	__u64 from, chain = 0;
	int i;

	begin(64 * MiB, 0, 0, "grow_perf");
	r = t->root;
	assert_ok(arn_reserve(t->heap, 4 * MiB));
	r->low_pages = 16 * MiB / 4096;
	r->keeper = 1; /* as if there were one, who is slow */
	from = now_ms();
	if (rig_cpus() > 1)
		assert_int_equal(pthread_create(&thread, NULL, storm, NULL), 0);
	for (i = 0; i < 200; i++) {
		bpf_take(t, 2048, 64, &chain);
		bpf_drop(t, 64, &chain);
		bpf_free(t, bpf_malloc(t, 100000));
	}
	if (rig_cpus() > 1)
		assert_int_equal(pthread_join(thread, NULL), 0);
	/* Once, and again when that was not heard for 20 ms. */
	assert_in_range(count(ARN_COUNT_ASKED), 1, 1 + (now_ms() - from + 1) / 20);
	assert_int_equal(count(ARN_COUNT_RUNG), count(ARN_COUNT_ASKED));
	assert_true(r->asked_at != 0);
	r->keeper = 0;
	r->low_pages = 0;
}

/* Task work that is given to a kernel thread never runs. */
static void kernel_threads_get_no_task_work(void **state)
{
	struct bpf_link *link;
	int i;

	begin(64 * MiB, 2 * MiB, 0, "grow_switch");
	t->root->low_pages = 16 * MiB / 4096;
	link = bpf_program__attach(gs->progs.grow_switch);
	assert_non_null(link);
	/* Sleeping, so that others come and go. */
	for (i = 0; i < 10000 && *(volatile __u64 *)&gs->bss->g.kernel_threads < 20; i++)
		usleep(1000);
	bpf_link__destroy(link);
	assert_true(gs->bss->g.kernel_threads >= 20);
	assert_int_equal(gs->bss->g.scheduled_on_one, 0);
	assert_int_equal(count(ARN_COUNT_DEFERRED), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, end)
	static const struct CMUnitTest tests[] = {
		T(a_new_heap_has_the_low_mark_mapped),
		T(bursts_of_32768_in_one_xdp_run),
		T(a_million_by_xdp_and_a_work_queue),
		T(a_million_by_xdp_and_a_keeper),
		T(a_million_by_perf_events_and_a_keeper),
		T(a_million_by_perf_events_and_task_work),
		T(a_storm_rings_once),
		T(kernel_threads_get_no_task_work),
	};

	rig_start();
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
