// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * percpu.c - per-CPU objects in the running kernel: batches, other CPUs, refusals, sums, and interrupts
 * (hardirq by a clock event, NMI by a watchpoint on the cache's own word) that allocate and free on top.
 */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include "rig.h"
#include "percpu.h"
#include "percpu.skel.h"

#define MS 1500
enum { MOST = 32768 };

static struct rig *t;
static struct percpu_bpf *pc;
static __u64 *vec; /* in the arena, so that both sides use it */

static __s64 run(__u32 code, __u64 a, __u64 b, __u32 n)
{
	struct pc o = { .code = code, .n = n, .a = a, .b = b };

	rig_run(pc->progs.pc_run, &o, sizeof(o));
	return o.ret;
}

static int setup(void **state)
{
	t = rig_new(256 * MiB, 96 * MiB);
	pc = percpu_bpf__open();
	assert_non_null(pc);
	assert_int_equal(rig_load(t->heap, pc->skeleton), 0);
	vec = bpf_malloc(t, MOST * 8);
	assert_non_null(vec);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(bpf_free(t, vec), 0);
	percpu_bpf__destroy(pc);
	rig_end(t);
	return 0;
}

/* Only vec is left. */
static void all_gone(void)
{
	assert_int_equal(rig_live(t->heap), 1);
	rig_sound(t->heap);
}

static void take(__u64 size, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		vec[i] = (__u64)run(PC_ALLOC, size, 0, 0);
		assert_int_not_equal(vec[i], 0);
	}
}

static void batches_on_two_cpus(void **state)
{
	static const __u64 sizes[] = { 8, 16, 32, 64, 96, 128, 192, 256, 512 };
	__u32 k, n, i, turn;

	for (k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
		n = sizes[k] == 512 ? 64 : 128;
		for (turn = 0; turn < 4; turn++) {
			if (turn & 1)
				assert_int_equal(run(PC_ALLOC_BULK, sizes[k], (__u64)vec, n), n);
			else
				take(sizes[k], n);
			assert_int_equal(run(PC_MARK, sizes[k], (__u64)vec, n), 0);
			assert_int_equal(run(PC_LOOK, sizes[k], (__u64)vec, n), 0);
			if (turn >= 2 && rig_cpus() > 1)
				rig_pin_cpu(1);
			if (turn & 1)
				assert_int_equal(run(PC_FREE_BULK, 0, (__u64)vec, n), n);
			else
				for (i = 0; i < n; i++)
					assert_int_equal(run(PC_FREE, vec[(i * 37) % n], 0, 0), 0);
			rig_pin_cpu(0);
			all_gone();
		}
	}
}

static void a_burst_of_32768_without_one_null(void **state)
{
	__u64 fails = rig_fail(t, ARN_FAIL_NOMEM);

	assert_int_equal(run(PC_ALLOC_BULK, 64, (__u64)vec, MOST), MOST);
	assert_int_equal(run(PC_MARK, 64, (__u64)vec, MOST), 0);
	assert_int_equal(run(PC_LOOK, 64, (__u64)vec, MOST), 0);
	assert_int_equal(run(PC_FREE_BULK, 0, (__u64)vec, MOST), MOST);
	assert_int_equal(rig_fail(t, ARN_FAIL_NOMEM), fails);
	all_gone();
	assert_true(arn_trim(t->heap) > 0);
	assert_true(rig_stats(t->heap).pages_percpu * 4096 <= 8192ull * (__u64)run(PC_CPUS, 0, 0, 0));
	assert_ok(arn_reserve(t->heap, 96 * MiB));
}

static void impossible_sizes_are_null_and_counted(void **state)
{
	static const __u64 sizes[] = { 0, 513, 600, (__u64)-1, (__u64)-64, 1ULL << 40, (1ULL << 32) + 64 };
	__u64 before = rig_fail(t, ARN_FAIL_SIZE);
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		assert_int_equal(run(PC_ALLOC, sizes[i], 0, 0), 0);
		assert_int_equal(run(PC_ALLOC_BULK, sizes[i], (__u64)vec, 3), 0);
	}
	assert_int_equal(rig_fail(t, ARN_FAIL_SIZE), before + 2 * i);
	assert_int_equal(run(PC_PREPARE, 600, 0, 5), -E2BIG);
}

static void what_is_no_per_cpu_object_is_refused(void **state)
{
	__u64 p = (__u64)run(PC_ALLOC, 64, 0, 0), plain = (__u64)bpf_malloc(t, 64);

	assert_int_equal(bpf_free(t, (void *)p), -EINVAL);
	assert_int_equal(bpf_usable(t, (void *)p), 0);
	assert_int_equal(run(PC_FREE, plain, 0, 0), -EINVAL);
	assert_int_equal(run(PC_FREE, (__u64)vec, 0, 0), -EINVAL);
	assert_int_equal(run(PC_FREE, p + 4096, 0, 0), -EINVAL);
	assert_int_equal(run(PC_FREE, p + 16, 0, 0), -EINVAL);
	assert_int_equal(run(PC_FREE, p + 1, 0, 0), -EINVAL);
	assert_int_equal(run(PC_FREE, 0, 0, 0), 0);
	assert_int_equal(run(PC_FREE, p, 0, 0), 0);
	assert_int_equal(run(PC_FREE, p, 0, 0), -EINVAL);
	assert_int_equal(bpf_free(t, (void *)plain), 0);
	all_gone();
}

static void copies_are_where_both_sides_look(void **state)
{
	__u32 cpus = (__u32)run(PC_CPUS, 0, 0, 0), cpu;
	__u64 *p = (void *)run(PC_ALLOC, 24, 0, 0), sum = 0;

	assert_int_equal(cpus, libbpf_num_possible_cpus());
	assert_int_equal(arn_percpu_cpus(t->heap), cpus);
	arn_for_each_cpu(t->heap, cpu) sum += *(__u64 *)arn_per_cpu_ptr(t->heap, p, cpu) = cpu + 1;
	assert_int_equal(run(PC_EACH, (__u64)p, 0, 0), cpus);
	assert_int_equal(run(PC_SUM, (__u64)p, 0, 0), sum);
	assert_int_equal(arn_percpu_sum(t->heap, p), sum);
	for (cpu = 0; cpu < (__u32)rig_cpus() && cpu < 2; cpu++) {
		rig_pin_cpu((int)cpu);
		assert_ptr_equal((void *)run(PC_THIS, (__u64)p, 0, 0), arn_per_cpu_ptr(t->heap, p, cpu));
		assert_ptr_equal(arn_this_cpu_ptr(t->heap, p), arn_per_cpu_ptr(t->heap, p, cpu));
	}
	rig_pin_cpu(0);
	assert_int_equal(run(PC_FREE, (__u64)p, 0, 0), 0);
	all_gone();
}

/* User space allocates, frees and prepares on the same heap. */
static void user_space_calls(void **state)
{
	void *p = arn_percpu_alloc(t->heap, 64), *q[5];
	__u64 pages = rig_stats(t->heap).pages_percpu;

	if (!p)
		fail_msg("%s", arn_last_error());
	assert_int_equal(arn_percpu_sum(t->heap, p), 0);
	assert_int_equal(run(PC_FREE, (__u64)p, 0, 0), 0);
	assert_int_equal(arn_percpu_free(t->heap, p), -EINVAL);
	p = (void *)run(PC_ALLOC, 64, 0, 0);
	assert_int_equal(arn_percpu_free(t->heap, p), 0);
	assert_int_equal(arn_percpu_alloc_bulk(t->heap, 100, 5, q), 5);
	assert_int_equal(arn_percpu_free_bulk(t->heap, q, 5), 5);
	assert_null(arn_percpu_alloc(t->heap, 600));
	assert_int_equal(errno, E2BIG);
	assert_non_null(strstr(arn_last_error(), "per-CPU object size (600) is greater than 512"));
	assert_ok(arn_percpu_prepare(t->heap, 512, 800));
	assert_true(rig_stats(t->heap).pages_percpu >= pages + 100 * arn_percpu_cpus(t->heap));
	assert_int_equal(run(PC_PREPARE, 512, 0, 8), 0);
	assert_int_equal(run(PC_PREPARE, 512, 0, ~0u), -E2BIG);
	all_gone();
}

static volatile bool stop;

static void *count_elsewhere(void *counter)
{
	rig_pin_cpu(rig_cpus() > 1 ? 1 : 0);
	while (!stop)
		run(PC_COUNT, (__u64)counter, 0, 1000);
	return NULL;
}

static void sums_while_others_write(void **state)
{
	__u64 *p = (void *)run(PC_ALLOC, 8, 0, 0), last = 0, now;
	pthread_t other;
	int i;

	stop = false;
	assert_int_equal(pthread_create(&other, NULL, count_elsewhere, p), 0);
	for (i = 0; i < 200; i++, last = now) {
		run(PC_COUNT, (__u64)p, 0, 100);
		now = i & 1 ? arn_percpu_sum(t->heap, p) : (__u64)run(PC_SUM, (__u64)p, 0, 0);
		assert_true(now >= last + 100);
	}
	stop = true;
	pthread_join(other, NULL);
	now = arn_percpu_sum(t->heap, p);
	assert_int_equal(now % 100, 0);
	assert_true(now >= last);
	assert_int_equal(run(PC_FREE, (__u64)p, 0, 0), 0);
	all_gone();
}

static __u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * 1000 + (__u64)ts.tv_nsec / 1000000;
}

/* Churns for a while with the event's program on top. */
static void under(struct perf_event_attr *attr, __u64 size)
{
	struct bpf_link *link;
	struct percpu_wrong *w = &pc->bss->wrong;
	__u64 ticks = pc->bss->ticks, bypass = rig_fail(t, ARN_FAIL_BYPASS), deadline, k, nulls = 0;
	int fd;

	pc->data->tick_size = (__u32)size; /* a box's size follows from it: before the first tick */
	fd = (int)syscall(SYS_perf_event_open, attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	link = fd < 0 ? NULL : bpf_program__attach_perf_event(pc->progs.pc_tick, fd);
	if (!link) {
		print_message("skipped: no such events here (perf_event_open): %s\n", strerror(errno));
		skip();
	}
	for (deadline = now_ms() + MS; now_ms() < deadline;)
		nulls += (__u64)run(PC_CHURN, size, 0, 20000);
	bpf_link__destroy(link);
	print_message("%llu interrupts, %llu calls went past a busy cache\n", pc->bss->ticks - ticks,
		      rig_fail(t, ARN_FAIL_BYPASS) - bypass);
	assert_true(pc->bss->ticks > ticks + 100);
	assert_int_equal(w->dirty, 0);
	assert_int_equal(w->torn, 0);
	assert_int_equal(w->refused, 0);
	assert_int_equal(nulls, 0);
	rig_sound(t->heap);
	for (k = 0; k < PERCPU_BOXES; k++) {
		assert_int_equal(run(PC_FREE, pc->bss->box[k], 0, 0), 0);
		pc->bss->box[k] = 0;
	}
	all_gone();
}

static void a_hardirq_on_top(void **state)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = 25000 };

	under(&attr, 64);
	under(&attr, 0);
}

/* The watchpoint fires when the cache is claimed, and when it is released: right inside and right after. */
static void an_nmi_on_top_of_every_claim(void **state)
{
	__u64 bypass = rig_fail(t, ARN_FAIL_BYPASS);
	struct perf_event_attr attr = { .type = PERF_TYPE_BREAKPOINT,
					.size = sizeof(attr),
					.bp_type = HW_BREAKPOINT_W,
					.bp_len = HW_BREAKPOINT_LEN_4,
					.sample_period = 1 };
	__u32 cls = ARN_PLAIN_CLASSES + 3; /* 64 bytes */

	rig_run(pc->progs.kern_find, NULL, 0);
	assert_int_not_equal(pc->bss->kern_base, 0);
	attr.bp_addr =
		pc->bss->kern_base + ARN_SLOTS_OFF + offsetof(struct arn_slot, cache) + cls * sizeof(struct arn_cache);
	under(&attr, 64);
	assert_true(rig_fail(t, ARN_FAIL_BYPASS) > bypass + 100);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_on_two_cpus),
		cmocka_unit_test(a_burst_of_32768_without_one_null),
		cmocka_unit_test(impossible_sizes_are_null_and_counted),
		cmocka_unit_test(what_is_no_per_cpu_object_is_refused),
		cmocka_unit_test(copies_are_where_both_sides_look),
		cmocka_unit_test(user_space_calls),
		cmocka_unit_test(sums_while_others_write),
		cmocka_unit_test(a_hardirq_on_top),
		cmocka_unit_test(an_nmi_on_top_of_every_claim),
	};

	rig_start();
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
