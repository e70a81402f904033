// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* growth_rig.c - see growth_rig.h. */
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <time.h>
#include "growth_rig.h"

/*
 * From one run to the next: 256 objects of 64 bytes each time are 80 MB/s, so 8 MiB last 100 ms.  Growth is
 * some 40 times as fast, but must get a CPU in time on a machine that others use.
 */
#define PERIOD_NS 200000

struct rig *t;
struct growth_bpf *gs;

void begin(__u64 bytes, __u64 low, __u64 high, const char *prog)
{
	struct bpf_program *p;

	t = rig_new_marks(bytes, low, high);
	gs = growth_bpf__open();
	assert_non_null(gs);
	p = bpf_object__find_program_by_name(gs->obj, prog);
	assert_non_null(p);
	bpf_program__set_autoload(p, true);
	assert_int_equal(rig_load(t->heap, gs->skeleton), 0);
	gs->bss->g.size = 64;
}

int end(void **state)
{
	__u64 chain;

	if (!t)
		return 0;
	chain = gs->bss->g.chain;
	while (chain)
		bpf_drop(t, 1 << 20, &chain);
	growth_bpf__destroy(gs);
	rest();
	assert_int_equal(rig_live(t->heap), 0);
	rig_end(t);
	t = NULL;
	return 0;
}

void xdp_run(void)
{
	static __u8 frame[64];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame), .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(gs->progs.grow_xdp), &opts), 0);
}

__u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * 1000000000 + (__u64)ts.tv_nsec;
}

__u64 now_ms(void)
{
	return now_ns() / 1000000;
}

__u64 count(enum arn_count what)
{
	return *(volatile __u64 *)&t->root->count[what];
}

/* The kernel may take long to refuse a chunk. */
static bool somebody_maps(void)
{
	const volatile __u32 *dir = (__u32 *)(t->base + ARN_DIR_OFF);
	__u32 chunk;

	for (chunk = 0; chunk < ARN_MAX_CHUNKS; chunk++)
		if (dir[chunk] == ARN_CHUNK_BUSY)
			return true;
	return false;
}

void rest(void)
{
	__u64 mapped;

	do {
		mapped = *(volatile __u64 *)&t->root->pages_mapped;
		usleep(100000);
	} while (mapped != *(volatile __u64 *)&t->root->pages_mapped || somebody_maps());
}

void need(const char *feature)
{
	if (arn_has(feature) > 0)
		return;
	print_message("skipped: this kernel lacks '%s' ('arenite features' says what that is)\n", feature);
	skip();
}

/* Emulated kernels are slow, and their CPUs stand still at times: $TEST_SCALE. */
static __u64 slower(void)
{
	const char *scale = getenv("TEST_SCALE");

	return scale && atoi(scale) > 1 ? (__u64)atoi(scale) : 1;
}

__u64 pace_ns(void)
{
	return PERIOD_NS * (slower() > 1 ? 2 * slower() : 1);
}

__u64 a_million(void)
{
	return slower() > 1 ? 250000 : 1000000;
}

/* An event of the CPU time of this thread: others on the machine do not hurry it.  NULL: none is to be had. */
static struct bpf_link *tick(struct bpf_program *prog)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = pace_ns(),
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? NULL : bpf_program__attach_perf_event(prog, fd);
}

void ticks(struct bpf_program *prog, __u64 n)
{
	struct growth *g = &gs->bss->g;
	__u64 deadline = now_ms() + 200000 * slower();
	struct bpf_link *link;
	volatile __u64 spin;

	g->batch = 256;
	g->left = n;
	link = tick(prog);
	if (!link) {
		print_message("skipped: no clock events (perf_event_open): %s\n", strerror(errno));
		skip();
	}
	while (*(volatile __u64 *)&g->left && now_ms() < deadline)
		for (spin = 0; spin < 100000; spin++)
			;
	bpf_link__destroy(link);
	assert_int_equal(g->left, 0);
}
