// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * interrupt.c - a timer interrupt that allocates and frees on top of a program on the same CPU that
 * is in the middle of doing so, for two seconds; both from one class, through the same boxes.
 *
 * Where the interrupt strikes is left to chance.  NMIs are not shown.
 */
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <time.h>
#include "rig.h"
#include "churn.h"
#include "churn.skel.h"

#define MS	  2000
#define PERIOD_NS 25000

static struct rig *t;
static struct churn_bpf *churn;

static int setup(void **state)
{
	t = rig_new(CHURN_ARENA, 16 * MiB);
	churn = churn_bpf__open();
	assert_non_null(churn);
	assert_int_equal(rig_load(t->heap, churn->skeleton), 0);
	return 0;
}

static int teardown(void **state)
{
	churn_bpf__destroy(churn);
	rig_end(t);
	return 0;
}

/* A clock event on CPU 0 that runs churn_tick in its interrupt. */
static struct bpf_link *start_ticking(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = PERIOD_NS,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? NULL : bpf_program__attach_perf_event(churn->progs.churn_tick, fd);
}

static __u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * 1000 + (__u64)ts.tv_nsec / 1000000;
}

static void interrupts_on_top_of_malloc_and_free(void **state)
{
	struct churn a = {
		.seed = 99, .rounds = 20000, .sizes = CHURN_ONE, .role = CHURN_ALLOC | CHURN_FREE, .boxes = CHURN_BOXES
	};
	struct churn_wrong *w = &churn->bss->wrong;
	struct bpf_link *ticking;
	__u64 deadline, bypass = rig_fail(t, ARN_FAIL_BYPASS), boxed = 0, k;

	ticking = start_ticking();
	if (!ticking) {
		print_message("skipped: no clock events (perf_event_open): %s\n", strerror(errno));
		skip();
	}
	for (deadline = now_ms() + MS; now_ms() < deadline;)
		rig_run(churn->progs.churn_run, &a, sizeof(a));
	bpf_link__destroy(ticking);
	print_message("%llu objects, %llu interrupts, %llu of them inside the cache's few instructions\n", a.made,
		      churn->bss->ticks, rig_fail(t, ARN_FAIL_BYPASS) - bypass);
	assert_true(churn->bss->ticks > 100);
	assert_true(rig_fail(t, ARN_FAIL_BYPASS) > bypass);
	assert_int_equal(w->twice, 0);
	assert_int_equal(w->lost_mark, 0);
	assert_int_equal(w->torn, 0);
	assert_int_equal(w->refused, 0);
	assert_int_equal(a.nulls, 0);
	rig_sound(t->heap);
	for (k = 0; k < CHURN_BOXES; k++)
		boxed += churn->bss->box[k] != 0;
	assert_int_equal(rig_live(t->heap), boxed);
	for (k = 0; k < CHURN_BOXES; k++)
		assert_int_equal(bpf_free(t, (void *)churn->bss->box[k]), 0);
	assert_int_equal(rig_live(t->heap), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(interrupts_on_top_of_malloc_and_free),
	};

	rig_start();
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
