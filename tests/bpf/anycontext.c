// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * anycontext.c - an object built with ARN_PAGES_ANY_CONTEXT: allocations map memory themselves, in programs that
 * may not sleep, up to the arena's end and not beyond.
 *
 * Nothing is reserved here but where a test says so.  Skipped where the kernel gives pages to sleepable programs
 * only; features.c shows that such an object is refused there.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/syscall.h>
#include "rig.h"
#include "anycontext.h"
#include "anycontext.skel.h"

static struct arn_heap *heap;
static struct anycontext_bpf *s;

/* A heap, and the object on it: all its programs, or what fills and empties. */
static void heap_of(__u64 bytes, bool all)
{
	struct arn_options opts = { .sz = sizeof(opts), .bytes = bytes, .name = "bpftest" };
	struct bpf_program *p;

	heap = arn_create(&opts);
	s = anycontext_bpf__open();
	assert_true(heap && s);
	bpf_object__for_each_program(p, s->obj)
		bpf_program__set_autoload(p, all || p == s->progs.any_raw_tp || p == s->progs.any_drop);
	assert_int_equal(rig_load(heap, s->skeleton), 0);
}

static void heap_end(void)
{
	anycontext_bpf__destroy(s);
	arn_close(heap);
}

static int setup(void **state)
{
	heap_of(64 * MiB, true);
	return 0;
}

static int teardown(void **state)
{
	heap_end();
	return 0;
}

static void drop_all(void);

/* After each test nothing is live, and nothing mapped for the next. */
static int end_of_test(void **state)
{
	drop_all();
	assert_int_equal(s->bss->arn_calls_without_heap, 0);
	assert_int_equal(rig_live(heap), 0);
	rig_sound(heap);
	assert_true(arn_trim(heap) >= 0);
	assert_int_equal(rig_stats(heap).pages_mapped, 0);
	memset(s->bss->job, 0, sizeof(s->bss->job));
	return 0;
}

static void run(struct bpf_program *prog)
{
	char frame[64] = "";
	LIBBPF_OPTS(bpf_test_run_opts, packet, .data_in = frame, .data_size_in = sizeof(frame));
	LIBBPF_OPTS(bpf_test_run_opts, plain);
	bool raw = bpf_program__type(prog) == BPF_PROG_TYPE_RAW_TRACEPOINT;

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(prog), raw ? &plain : &packet), 0);
}

static void on_cpu(struct bpf_program *prog, int cpu)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = (__u32)cpu);

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(prog), &opts), 0);
}

/* What the next run on a CPU takes. */
static struct job *want(int cpu, __u64 size, __u32 turns)
{
	struct job *j = &s->bss->job[cpu];

	j->size = size;
	j->turns = turns;
	j->mark = 0x6d61726b00 + (__u64)cpu;
	return j;
}

static void drop_all(void)
{
	int cpu;

	for (cpu = 0; cpu < ANY_CPUS && cpu < rig_cpus(); cpu++) {
		while (s->bss->job[cpu].chain)
			on_cpu(s->progs.any_drop, cpu);
		assert_int_equal(s->bss->job[cpu].taken, 0);
		assert_int_equal(s->bss->job[cpu].bad, 0);
	}
}

static __u64 mapped(void)
{
	return rig_stats(heap).pages_mapped * 4096;
}

/* 20000 objects of 192 bytes, 3.7 MiB, of which nothing is mapped before. */
static void grows_in(struct bpf_program *prog)
{
	struct job *j = want(0, 192, 20000);

	assert_int_equal(mapped(), 0);
	run(prog);
	assert_int_equal(j->nulls, 0);
	assert_int_equal(j->taken, 20000);
	assert_in_range(mapped(), 4 * MiB, 6 * MiB);
}

static void in_a_raw_tracepoint(void **state)
{
	grows_in(s->progs.any_raw_tp);
}

static void in_xdp(void **state)
{
	grows_in(s->progs.any_xdp);
}

static void in_tc(void **state)
{
	grows_in(s->progs.any_tc);
}

/* Attached programs: 20 runs of 1000 objects, 3.7 MiB, wherever they run. */
static void grows_attached(struct bpf_link *l, void (*poke)(void))
{
	__u64 taken = 0;
	int cpu, ms;

	assert_non_null(l);
	for (cpu = 0; cpu < ANY_CPUS; cpu++)
		want(cpu, 192, 1000);
	assert_int_equal(mapped(), 0);
	*(volatile __s64 *)&s->bss->done = 0;
	*(volatile __s64 *)&s->bss->left = 20;
	for (ms = 0; ms < 10000 && *(volatile __s64 *)&s->bss->done < 20; ms++) {
		poke();
		usleep(1000);
	}
	bpf_link__destroy(l);
	usleep(10000); /* one may be on its way through */
	assert_int_equal(s->bss->done, 20);
	for (cpu = 0; cpu < ANY_CPUS; cpu++) {
		assert_int_equal(s->bss->job[cpu].nulls, 0);
		taken += s->bss->job[cpu].taken;
	}
	assert_int_equal(taken, 20000);
	assert_in_range(mapped(), 4 * MiB, 7 * MiB);
}

static void nothing(void)
{
}

static void work(void)
{
	volatile int i;

	for (i = 0; i < 1000000; i++)
		;
}

__attribute__((noinline)) int any_probed(int x)
{
	asm volatile("");
	return x + 1;
}

static void probe(void)
{
	any_probed(1);
}

static void in_the_scheduler(void **state)
{
	grows_attached(bpf_program__attach(s->progs.any_tp_btf), nothing);
}

/* In a hard interrupt. */
static void in_a_perf_event(void **state)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	assert_true(fd >= 0);
	grows_attached(bpf_program__attach_perf_event(s->progs.any_perf, fd), work);
}

static void in_a_uprobe(void **state)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .func_name = "any_probed");

	grows_attached(bpf_program__attach_uprobe_opts(s->progs.any_uprobe, 0, "/proc/self/exe", 0, &opts), probe);
}

static void reserve_and_trim_where_nobody_may_sleep(void **state)
{
	s->bss->reserve_err = s->bss->trimmed = -1;
	run(s->progs.any_reserve);
	assert_int_equal(s->bss->reserve_err, 0);
	assert_int_equal(mapped(), 20 * MiB);
	/* Nothing is given back there: the kernel would take it later. */
	run(s->progs.any_trim);
	assert_int_equal(s->bss->trimmed, 0);
	assert_int_equal(mapped(), 20 * MiB);
	assert_int_equal(arn_trim(heap), 20 * MiB);
	/* And again what user space gave back. */
	grows_in(s->progs.any_xdp);
}

static void large_and_aligned_objects(void **state)
{
	static const struct {
		__u64 size, align;
	} want_of[] = { { 100000, 16 },	 { MiB, 16 },	  { 5 * MiB, 4096 },
			{ 8 * MiB, 16 }, { 64, 2 * MiB }, { 3 * MiB, 4 * MiB } };
	struct job *j = &s->bss->job[0];
	__u64 align;
	size_t i;

	for (i = 0; i < sizeof(want_of) / sizeof(*want_of); i++) {
		j->size = want_of[i].size;
		j->mark = want_of[i].align;
		align = j->size & (j->size - 1) || j->size < j->mark ? j->mark : j->size;
		assert_true(arn_trim(heap) >= 0);
		run(s->progs.any_aligned);
		assert_int_equal(j->nulls, 0);
		assert_true(j->chain != 0);
		assert_int_equal(j->chain % align, 0);
		*(__u64 *)j->chain = 0; /* what any_drop expects of it */
		((__u64 *)j->chain)[1] = j->mark;
		j->taken = 1;
		on_cpu(s->progs.any_drop, 0);
		assert_int_equal(rig_live(heap), 0);
	}
}

static void in_bulk(void **state)
{
	struct job *j = want(0, 256, 10000);

	run(s->progs.any_bulk);
	assert_int_equal(j->taken, 10000);
	assert_int_equal(j->bad, 0);
	j->taken = 0;
	assert_in_range(mapped(), 2 * MiB, 5 * MiB);
}

/* Above half the arena: nothing is mapped for what cannot be. */
static void too_large_maps_nothing(void **state)
{
	__u64 refused = rig_stats(heap).fail[ARN_FAIL_SIZE];
	struct job *j = want(0, 33 * MiB, 1);

	run(s->progs.any_xdp);
	assert_int_equal(j->nulls, 1);
	assert_int_equal(mapped(), 0);
	assert_int_equal(rig_stats(heap).fail[ARN_FAIL_SIZE], refused + 1);
}

/* Then NULL, counted once; and what one class leaves cached another gets. */
static void up_to_the_arenas_end(void **state)
{
	struct arn_heap *shared = heap;
	struct anycontext_bpf *all_programs = s;
	struct arn_stats st;
	struct job *j;
	__u32 all;

	heap_of(24 * MiB, false);
	j = want(0, 256, 20000);
	while (!j->nulls)
		run(s->progs.any_raw_tp);
	st = rig_stats(heap);
	assert_int_equal(j->nulls, 1);
	assert_int_equal(st.fail[ARN_FAIL_NOMEM], 1);
	assert_in_range(st.pages_free + st.pages_pending, 0, 15); /* less than another slab */
	all = j->taken;
	assert_in_range(all * 256ULL, mapped() / 10 * 9, mapped());
	drop_all();

	j = want(0, 2048, 5000);
	j->nulls = 0;
	while (!j->nulls)
		run(s->progs.any_raw_tp);
	assert_in_range(j->taken * 8ULL, all / 10 * 9, all / 10 * 11);
	assert_true(rig_stats(heap).fail[ARN_FAIL_RECLAIM] > 0);
	end_of_test(state);
	heap_end();
	heap = shared;
	s = all_programs;
}

static void *worker(void *arg)
{
	int cpu = (int)(long)arg;

	rig_pin_cpu(cpu);
	while (s->bss->job[cpu].taken < 40000)
		on_cpu(s->progs.any_raw_tp, cpu);
	return NULL;
}

/*
 * All CPUs grow one heap; any_drop finds each object with its CPU's mark.  NULL is then only for who gave up the
 * lock, because its holder's CPU got no time (in a guest: from the host).
 */
static void on_every_cpu_at_once(void **state)
{
	int cpu, cpus = rig_cpus() < ANY_CPUS ? rig_cpus() : ANY_CPUS;
	__u64 live = 0, nulls = 0, gave_up = rig_stats(heap).fail[ARN_FAIL_LOCK];
	pthread_t thread[ANY_CPUS];

	for (cpu = 0; cpu < cpus; cpu++) {
		want(cpu, cpu % 2 ? 96 : 192, 1000);
		assert_int_equal(pthread_create(&thread[cpu], NULL, worker, (void *)(long)cpu), 0);
	}
	for (cpu = 0; cpu < cpus; cpu++)
		assert_int_equal(pthread_join(thread[cpu], NULL), 0);
	for (cpu = 0; cpu < cpus; cpu++) {
		nulls += s->bss->job[cpu].nulls;
		live += s->bss->job[cpu].taken;
	}
	assert_in_range(nulls, 0, rig_stats(heap).fail[ARN_FAIL_LOCK] - gave_up);
	assert_int_equal(rig_live(heap), live);
	rig_sound(heap);
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, end_of_test)
	static const struct CMUnitTest tests[] = {
		T(in_a_raw_tracepoint),
		T(in_xdp),
		T(in_tc),
		T(in_the_scheduler),
		T(in_a_perf_event),
		T(in_a_uprobe),
		T(reserve_and_trim_where_nobody_may_sleep),
		T(large_and_aligned_objects),
		T(in_bulk),
		T(too_large_maps_nothing),
		T(up_to_the_arenas_end),
		T(on_every_cpu_at_once),
	};

	rig_start();
	if (!arn_has("pages-any-context")) {
		puts("kernel: no 'pages-any-context' (arenite features): Linux 7.0 has it");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
