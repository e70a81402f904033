// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * shortage.c - growth where there is no memory to be had: the arena is mapped to its end, the memory
 * cgroup is full, page calls are refused at random.  NULLs, counted; nothing is lost, and everything
 * works again when memory is there.
 */
#include <sys/stat.h>
#include "growth_rig.h"

/* Fills the heap by XDP until nothing more comes. */
static void fill(void)
{
	struct growth *g = &gs->bss->g;
	__u64 deadline = now_ms() + 60000, got;
	int idle = 0;

	g->batch = 512;
	while (idle < 20 && now_ms() < deadline) {
		got = g->got;
		g->left = g->batch;
		xdp_run();
		idle = g->got == got ? idle + 1 : 0;
		if (idle)
			usleep(5000); /* growth may be on its way */
	}
	assert_int_equal(idle, 20);
}

/* Mapped to its end and full: NULLs, counted; nobody is asked all the time; then all of it again. */
static void a_full_arena(void **state)
{
	struct growth *g;
	__u64 heap, n, from, asked;

	need("wq-callback");
	begin(32 * MiB, 2 * MiB, 0, "grow_xdp");
	g = &gs->bss->g;
	g->size = 1024;
	heap = (__u64)t->root->npages << ARN_PAGE_SHIFT;
	fill();
	rest();
	n = g->got;
	assert_true(n * 1024 > heap * 9 / 10);
	assert_int_equal(rig_stats(t->heap).pages_mapped << 12, heap);
	assert_int_equal(rig_fail(t, ARN_FAIL_NOMEM), g->failed);
	assert_true(count(ARN_COUNT_GROW_FAILED) > 0);
	rig_sound(t->heap);

	from = now_ms();
	asked = count(ARN_COUNT_ASKED);
	g->left = 1 << 14;
	while (g->left)
		xdp_run();
	assert_in_range(count(ARN_COUNT_ASKED) - asked, 0, 1 + (now_ms() - from) / 20);

	bpf_drop(t, 1000, &g->chain);
	g->failed = 0;
	g->left = g->batch = 1000;
	xdp_run();
	assert_int_equal(g->failed, 0);

	while (g->chain)
		bpf_drop(t, 1 << 20, &g->chain);
	assert_true(arn_trim(t->heap) > 0);
	/* The mark stays. */
	assert_int_equal(rig_stats(t->heap).pages_mapped, 2 * MiB / 4096);
	g->got = 0;
	fill();
	rest();
	assert_in_range(g->got, n - 100, n + 100);
}

/* ---- Kernel pages that are refused ---- */

static void random_refusals_lose_nothing(void **state)
{
	struct growth *g;
	__u64 meta, heap, turn, i, refused = 0;

	begin(64 * MiB, 0, 0, "grow_reserve");
	g = &gs->bss->g;
	g->batch = 50;
	meta = rig_stats(t->heap).meta_bytes;
	heap = (__u64)t->root->npages << ARN_PAGE_SHIFT;
	for (turn = 0; turn < 5; turn++) {
		g->refuse = 10 + 15 * (__u32)turn;
		for (i = 0; i < 400; i++) {
			g->reserve = MiB * (i % 50);
			g->left = 50;
			rig_run(gs->progs.grow_reserve, NULL, 0);
			if (g->reserve_err) {
				assert_true(g->reserve_err == -ENOMEM || g->reserve_err == -E2BIG);
				refused++;
			}
		}
		rig_sound(t->heap);
		assert_true(g->chain != 0);
		while (g->chain)
			bpf_drop(t, 1 << 20, &g->chain);
		/* All of it is still there. */
		g->refuse = 0;
		arn_trim(t->heap);
		assert_int_equal(rig_stats(t->heap).pages_mapped, 0);
		assert_int_equal(rig_stats(t->heap).meta_bytes, meta);
		assert_ok(arn_reserve(t->heap, heap));
		rig_sound(t->heap);
		arn_trim(t->heap);
		assert_int_equal(rig_stats(t->heap).meta_bytes, meta);
	}
	assert_true(refused > 0);
	assert_true(rig_fail(t, ARN_FAIL_MAP) > 0);
}

/* Growth by task work out of a kernel that refuses a third of the calls. */
static void random_refusals_of_task_work(void **state)
{
	need("task-work");
	begin(128 * MiB, 8 * MiB, 0, "grow_perf_later");
	gs->bss->g.refuse = 20;
	ticks(gs->progs.grow_perf_later, a_million());
	gs->bss->g.refuse = 0;
	assert_true(count(ARN_COUNT_DEFERRED) > 0);
	rest();
	print_message("%llu allocated, %llu NULL, %llu page calls refused, %llu times no growth\n", gs->bss->g.got,
		      gs->bss->g.failed, rig_fail(t, ARN_FAIL_MAP), count(ARN_COUNT_GROW_FAILED));
	assert_true(rig_fail(t, ARN_FAIL_MAP) > 0);
	assert_int_equal(rig_live(t->heap), gs->bss->g.got);
	rig_sound(t->heap);
}

/*
 * A memory cgroup with room for 12 MiB more than it has, which the heap is charged to.  False: there is
 * none to be had.
 */
static char group[512];

static bool write_file(const char *name, const char *text)
{
	char path[600];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", group, name);
	f = fopen(path, "w");
	if (!f)
		return false;
	ok = fputs(text, f) >= 0;
	return !fclose(f) && ok;
}

static bool enter_group(void)
{
	static const char *const roots[] = { "/sys/fs/cgroup/memory", "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char pid[32];
	size_t i;

	snprintf(pid, sizeof(pid), "%d", getpid());
	for (i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
		snprintf(group, sizeof(group), "%s/arn-test-%d", roots[i], getpid());
		if (mkdir(group, 0755))
			continue;
		if ((write_file("memory.limit_in_bytes", "1000000000") || write_file("memory.max", "1000000000")) &&
		    write_file("cgroup.procs", pid))
			return true;
		rmdir(group);
	}
	return false;
}

static void leave_group(void)
{
	char root[512], pid[32];

	snprintf(root, sizeof(root), "%s", group);
	*strrchr(group, '/') = 0;
	snprintf(pid, sizeof(pid), "%d", getpid());
	assert_true(write_file("cgroup.procs", pid));
	snprintf(group, sizeof(group), "%s", root);
}

static bool limit_group(__u64 more)
{
	char path[600], text[64] = "";
	__u64 used = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/memory.usage_in_bytes", group);
	f = fopen(path, "r");
	if (!f) {
		snprintf(path, sizeof(path), "%s/memory.current", group);
		f = fopen(path, "r");
	}
	if (f && fgets(text, sizeof(text), f))
		used = strtoull(text, NULL, 10);
	if (f)
		fclose(f);
	snprintf(text, sizeof(text), "%llu", used + more);
	write_file("memory.oom_control", "1"); /* refuse, and kill nobody */
	return write_file("memory.limit_in_bytes", text) || write_file("memory.max", text);
}

static void a_full_memory_cgroup(void **state)
{
	struct growth *g;
	__u64 n;

	if (!enter_group()) {
		print_message("skipped: no memory cgroup can be made here\n");
		skip();
	}
	begin(64 * MiB, 2 * MiB, 0, "grow_xdp");
	leave_group();
	assert_true(limit_group(12 * MiB));
	g = &gs->bss->g;
	g->size = 1024;
	fill();
	rest();
	n = g->got;
	print_message("%llu MiB allocated, %llu page calls refused\n", n >> 10, rig_fail(t, ARN_FAIL_MAP));
	assert_in_range(n * 1024, 8 * MiB, 20 * MiB);
	assert_int_equal(rig_fail(t, ARN_FAIL_NOMEM), g->failed);
	assert_true(rig_fail(t, ARN_FAIL_MAP) > 0);
	assert_true(count(ARN_COUNT_GROW_FAILED) > 0);
	rig_sound(t->heap);
	/* What is freed can be had again, and more when the limit allows it. */
	bpf_drop(t, 1000, &g->chain);
	g->failed = 0;
	g->left = g->batch = 1000;
	xdp_run();
	assert_int_equal(g->failed, 0);
	assert_true(limit_group(16 * MiB));
	g->got = 0;
	fill();
	rest();
	assert_true(g->got * 1024 > 8 * MiB);
	rig_sound(t->heap);
}

static int end_group(void **state)
{
	int err = t ? end(state) : 0;

	rmdir(group);
	return err;
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, end)
	static const struct CMUnitTest tests[] = {
		T(a_full_arena),
		T(random_refusals_lose_nothing),
		T(random_refusals_of_task_work),
		cmocka_unit_test_teardown(a_full_memory_cgroup, end_group),
	};

	rig_start();
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
