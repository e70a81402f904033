// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * interrupt.c - a producer busy on each of two CPUs, and on top of both, at times that chance sets: timer
 * interrupts, 20,000 a second and more on each, that allocate and free objects of the same class through the
 * same boxes; then three levels, a syscall program, in the timer's interrupt a tp_btf program, and in that
 * NMIs at stores to the cache and to the depot.
 *
 * Seconds here, a minute by make torture.  An NMI at every store in turn is nmi.c's.
 */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include "rig.h"
#include "churn.h"
#include "churn.skel.h"

#define PERIOD_NS  20000
#define LEAST_HZ   20000
#define HARDIRQ_MS 10000
#define LEVELS_MS  3000
#define TORTURE_MS 60000
#define CPUS	   2
#define FAILS	   (sizeof(((struct arn_root *)0)->fail) / sizeof(__u64))

static struct rig *t;
static struct churn_bpf *churn;
static __u64 deadline;

struct worker {
	struct churn arg;
	int cpu, err;
	pthread_t thread;
};

static __u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * 1000 + (__u64)ts.tv_nsec / 1000000;
}

static int setup(void **state)
{
	t = rig_new(CHURN_ARENA, 16 * MiB);
	churn = churn_bpf__open();
	assert_non_null(churn);
	assert_int_equal(rig_load(t->heap, churn->skeleton), 0);
	rig_run(churn->progs.kern_find, NULL, 0);
	return 0;
}

static int teardown(void **state)
{
	churn_bpf__destroy(churn);
	rig_end(t);
	return 0;
}

/* A program on top of what happens on a CPU; NULL: errno. */
static struct bpf_link *on_top(struct bpf_program *prog, struct perf_event_attr *attr, int cpu)
{
	int fd;

	attr->size = sizeof(*attr);
	fd = (int)syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? NULL : bpf_program__attach_perf_event(prog, fd);
}

static struct bpf_link *start_ticking(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = PERIOD_NS,
	};

	return on_top(churn->progs.churn_tick, &attr, cpu);
}

/* NMIs where a word of 8 bytes is written. */
static struct bpf_link *watch(int cpu, const volatile void *word)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = churn->bss->kern_base + (__u64)((const volatile char *)word - t->base),
		.bp_len = HW_BREAKPOINT_LEN_8,
		.sample_period = 1,
		.exclude_user = 1,
	};

	return on_top(churn->progs.churn_nmi, &attr, cpu);
}

static void *produce(void *arg)
{
	struct worker *w = arg;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &w->arg, .ctx_size_in = sizeof(w->arg));

	rig_pin_cpu(w->cpu);
	do
		w->err = bpf_prog_test_run_opts(bpf_program__fd(churn->progs.churn_run), &opts);
	while (!w->err && now_ms() < deadline);
	return NULL;
}

/* A producer a CPU, for so long.  How many objects they made; *nulls: how often they got none. */
static __u64 produce_for(__u64 ms, int cpus, __u64 *nulls)
{
	__u64 made = 0;
	struct worker p[CPUS] = {};
	int i;

	deadline = now_ms() + ms;
	for (i = 0; i < cpus; i++) {
		p[i].cpu = i;
		p[i].arg = (struct churn){ .seed = 99 + (__u64)i,
					   .rounds = 20000,
					   .sizes = CHURN_ONE,
					   .role = CHURN_ALLOC | CHURN_FREE,
					   .boxes = CHURN_BOXES };
		assert_int_equal(pthread_create(&p[i].thread, NULL, produce, &p[i]), 0);
	}
	for (i = 0; i < cpus; i++) {
		pthread_join(p[i].thread, NULL);
		assert_int_equal(p[i].err, 0);
		*nulls += p[i].arg.nulls;
		made += p[i].arg.made;
	}
	return made;
}

/* Nothing runs now: everything is where it belongs, and nobody was refused. */
static void nothing_wrong(__u64 nulls, const __u64 *before)
{
	struct hold_wrong *w = &churn->bss->wrong;
	__u64 boxed = 0;
	int i;

	assert_int_equal(w->twice, 0);
	assert_int_equal(w->lost_mark, 0);
	assert_int_equal(w->torn, 0);
	assert_int_equal(w->refused, 0);
	/* Emulated, many interrupts fit into one visit to the lock, and the reserve runs out. */
	if (!getenv("TEST_SCALE"))
		assert_int_equal(rig_fail(t, ARN_FAIL_NESTED), before[ARN_FAIL_NESTED]);
	/* A NULL while there is memory: only when the lock's holder lost its CPU for a millisecond. */
	nulls += churn->bss->top_nulls;
	if (nulls && rig_fail(t, ARN_FAIL_LOCK) == before[ARN_FAIL_LOCK] &&
	    rig_fail(t, ARN_FAIL_NESTED) == before[ARN_FAIL_NESTED])
		fail_msg("%llu allocations refused with memory left", nulls);
	rig_sound(t->heap);
	for (i = 0; i < CHURN_BOXES; i++)
		boxed += churn->bss->box[i] != 0;
	assert_int_equal(rig_live(t->heap), boxed);
	for (i = 0; i < CHURN_BOXES; i++) {
		__u64 at = churn->bss->box[i];

		if (at)
			churn->bss->bits[(__u32)at >> 10] &= ~(1ULL << (at >> 4 & 63));
		churn->bss->box[i] = 0;
		assert_int_equal(bpf_free(t, (void *)at), 0);
	}
	assert_int_equal(rig_live(t->heap), 0);
}

static void begin(__u64 *before)
{
	memcpy(before, t->root->fail, sizeof(t->root->fail));
	churn->bss->ticks = churn->bss->middles = churn->bss->nmis = churn->bss->deep = churn->bss->top_nulls = 0;
}

static int cpus_here(void)
{
	return rig_cpus() < CPUS ? rig_cpus() : CPUS;
}

static void interrupts_on_top_of_busy_producers(void **state)
{
	__u64 ms = getenv("ARN_TORTURE") ? TORTURE_MS : HARDIRQ_MS, start, made, bypass, nulls = 0;
	__u64 before[FAILS];
	struct bpf_link *ticking[CPUS] = {};
	int cpus = cpus_here(), i;

	begin(before);
	for (i = 0; i < cpus; i++) {
		ticking[i] = start_ticking(i);
		if (ticking[i])
			continue;
		print_message("skipped: no clock events (perf_event_open): %s\n", strerror(errno));
		while (i--)
			bpf_link__destroy(ticking[i]);
		skip();
	}
	start = now_ms();
	made = produce_for(ms, cpus, &nulls);
	start = now_ms() - start;
	for (i = 0; i < cpus; i++)
		bpf_link__destroy(ticking[i]);
	nothing_wrong(nulls, before);
	bypass = rig_fail(t, ARN_FAIL_BYPASS) - before[ARN_FAIL_BYPASS];
	print_message("%llu objects; %llu interrupts on %d CPUs in %llu ms, %llu of them inside the cache's few "
		      "instructions\n",
		      made, churn->bss->ticks, cpus, start, bypass);
	assert_true(bypass > 0);
	/* (Emulated, a tick takes longer than their period.) */
	if (!getenv("TEST_SCALE") && churn->bss->ticks * 1000 < (__u64)cpus * LEAST_HZ * start)
		fail_msg("%llu interrupts in %llu ms: fewer than %d a second and CPU", churn->bss->ticks, start,
			 LEAST_HZ);
}

static void three_levels_at_once(void **state)
{
	struct arn_slot *slot = (struct arn_slot *)(t->base + ARN_SLOTS_OFF);
	__u32 cls = rig_class(t, 64);
	__u64 ms = getenv("ARN_TORTURE") ? TORTURE_MS : LEVELS_MS, made, nulls = 0, before[FAILS];
	struct bpf_link *ticking = NULL, *middle, *nmi[2] = {};
	int i;

	begin(before);
	ticking = start_ticking(0); /* so that timers expire often */
	middle = bpf_program__attach(churn->progs.churn_middle);
	nmi[0] = watch(0, &slot->cache[cls].near_full);
	nmi[1] = watch(0, &t->root->depot[cls].full);
	if (!ticking || !middle || !nmi[0] || !nmi[1]) {
		print_message("skipped: no %s: %s\n",
			      !ticking	? "clock events"
			      : !middle ? "tp_btf program at hrtimer_expire_entry"
					: "watchpoints",
			      strerror(errno));
		bpf_link__destroy(ticking);
		bpf_link__destroy(middle);
		bpf_link__destroy(nmi[0]);
		bpf_link__destroy(nmi[1]);
		skip();
	}
	made = produce_for(ms, cpus_here(), &nulls);
	bpf_link__destroy(ticking);
	bpf_link__destroy(middle);
	for (i = 0; i < 2; i++)
		bpf_link__destroy(nmi[i]);
	nothing_wrong(nulls, before);
	print_message(
		"%llu objects; %llu interrupts, %llu tp_btf programs on top of a producer, %llu NMIs, %llu of them "
		"on top of both\n",
		made, churn->bss->ticks, churn->bss->middles, churn->bss->nmis, churn->bss->deep);
	assert_true(churn->bss->ticks > 100);
	assert_true(churn->bss->middles > 100);
	assert_true(churn->bss->nmis > 100);
	assert_true(churn->bss->deep > 10);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(interrupts_on_top_of_busy_producers),
		cmocka_unit_test(three_levels_at_once),
	};

	rig_start();
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
