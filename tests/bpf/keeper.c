// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * keeper.c - the thread that keeps a heap: one at a time, whoever dies; it grows and trims by the marks,
 * hears the doorbell wherever it runs, and costs next to nothing while nothing happens.
 *
 * Growth at a program's pace is in growth.c.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include "growth_rig.h"
#include "ops.skel.h"

static int setup_marks(__u64 bytes, __u64 low, __u64 high)
{
	t = rig_new_marks(bytes, low, high);
	return 0;
}

static int setup(void **state)
{
	return setup_marks(64 * MiB, 0, 0);
}

static int teardown(void **state)
{
	if (!t)
		return 0;
	rest();
	assert_int_equal(rig_live(t->heap), 0);
	rig_end(t);
	t = NULL;
	return 0;
}

static __u64 mapped(void)
{
	return *(volatile __u64 *)&t->root->pages_mapped * 4096;
}

static __u64 holder(void)
{
	return *(volatile __u64 *)&t->root->keeper;
}

/* Until expr is true, half a minute at most. */
#define wait_for(expr)                                                                                                 \
	do {                                                                                                           \
		__u64 deadline__ = now_ms() + 30000;                                                                   \
		while (!(expr) && now_ms() < deadline__)                                                               \
			usleep(2000);                                                                                  \
		assert_true(expr);                                                                                     \
	} while (0)

/* ---- The lease ---- */

static void the_lease_names_the_thread(void **state)
{
	assert_int_equal(holder(), 0);
	assert_ok(arn_keeper_start(t->heap, NULL));
	/* This process's ids are those of the init namespace, or the test below shows that they are not. */
	assert_true(holder() != 0);
	assert_int_equal(rig_stats(t->heap).keeper, holder() >> 32);
	assert_ok(arn_keeper_stop(t->heap));
	assert_int_equal(holder(), 0);
	assert_int_equal(arn_keeper_stop(t->heap), -ENOENT);
}

static void one_at_a_time(void **state)
{
	assert_ok(arn_keeper_start(t->heap, NULL));
	assert_int_equal(arn_keeper_start(t->heap, NULL), -EBUSY);
	assert_ok(arn_keeper_stop(t->heap));
	assert_ok(arn_keeper_start(t->heap, NULL));
	assert_ok(arn_keeper_stop(t->heap));
}

static void bad_options_start_nothing(void **state)
{
	struct arn_keeper_options o = { .sz = sizeof(o), .low_watermark = 65 * MiB };

	assert_int_equal(arn_keeper_start(t->heap, &o), -EINVAL);
	o.low_watermark = 8 * MiB;
	o.high_watermark = 9 * MiB;
	assert_int_equal(arn_keeper_start(t->heap, &o), -EINVAL);
	assert_non_null(strstr(arn_last_error(), "watermark"));
	o.sz = 0;
	assert_int_equal(arn_keeper_start(t->heap, &o), -EINVAL);
	assert_int_equal(holder(), 0);
	assert_int_equal(t->root->low_pages, 0);
}

static void closing_ends_it(void **state)
{
	struct arn_options opts = { .sz = sizeof(opts), .bytes = 32 * MiB };
	struct arn_heap *h = arn_create(&opts);
	int fd;

	assert_non_null(h);
	fd = dup(arn_map_fd(h));
	assert_ok(arn_keeper_start(h, NULL));
	arn_close(h);
	h = arn_open_fd(fd, 0, NULL);
	assert_non_null(h);
	assert_int_equal(rig_stats(h).keeper, 0);
	arn_close(h);
	close(fd);
}

/*
 * A process of its own that keeps the heap, says so through the pipe, and waits to be killed.  ns: in a
 * PID namespace of its own.
 */
static pid_t keep_elsewhere(bool ns, int *started)
{
	int fds[2], map = arn_map_fd(t->heap), err = 0;
	struct arn_heap *h;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ns && unshare(CLONE_NEWPID))
			err = -errno;
		/* The first process of the namespace; its parent goes with it. */
		if (ns && !err) {
			pid = fork();
			if (pid) {
				waitpid(pid, NULL, 0);
				_exit(0);
			}
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		}
		if (!err) {
			h = arn_open_fd(map, 0, NULL);
			err = h ? arn_keeper_start(h, NULL) : -errno;
		}
		if (write(fds[1], &err, sizeof(err)) != sizeof(err))
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], started, sizeof(*started)), sizeof(*started));
	close(fds[0]);
	return pid;
}

static void end_elsewhere(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void another_processs_lease_is_respected_until_it_dies(void **state)
{
	char says[32];
	int err;
	pid_t pid = keep_elsewhere(false, &err);

	assert_int_equal(err, 0);
	assert_int_equal(arn_keeper_start(t->heap, NULL), -EBUSY);
	snprintf(says, sizeof(says), "process %llu ", holder() >> 32);
	assert_non_null(strstr(arn_last_error(), says));
	/* Dead is enough: it need not have been waited for. */
	kill(pid, SIGKILL);
	err = 1;
	wait_for(!err || !(err = arn_keeper_start(t->heap, NULL)));
	waitpid(pid, NULL, 0);
	assert_ok(arn_keeper_stop(t->heap));
}

/* Its own ids are 1 and 2; what counts are those that we see. */
static void a_keeper_in_another_pid_namespace_is_known_alive(void **state)
{
	int err;
	pid_t pid = keep_elsewhere(true, &err);

	if (err == -EPERM) {
		end_elsewhere(pid);
		print_message("skipped: no PID namespaces here\n");
		skip();
	}
	assert_int_equal(err, 0);
	assert_true(holder() >> 32 > 2);
	assert_int_equal(arn_keeper_start(t->heap, NULL), -EBUSY);
	assert_int_equal(kill((pid_t)(holder() >> 32), SIGKILL), 0);
	waitpid(pid, NULL, 0);
	assert_ok(arn_keeper_start(t->heap, NULL));
	assert_ok(arn_keeper_stop(t->heap));
}

/* One that was stopped for too long finds another one in its place, and gets its turn after it. */
static void a_lease_ends(void **state)
{
	int err;
	pid_t pid = keep_elsewhere(false, &err);
	__u64 first = holder(), second;

	assert_int_equal(err, 0);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	usleep(100000);
	*(volatile __u64 *)&t->root->keeper_until = 1;
	assert_ok(arn_keeper_start(t->heap, NULL));
	second = holder();
	assert_true(second != first);
	assert_int_equal(kill(pid, SIGCONT), 0);
	sleep(2);
	assert_int_equal(holder(), second);
	assert_ok(arn_keeper_stop(t->heap));
	wait_for(holder() == first);
	end_elsewhere(pid);
}

static void a_forked_child_has_none(void **state)
{
	int status;
	pid_t pid;

	assert_ok(arn_keeper_start(t->heap, NULL));
	fflush(NULL);
	pid = fork();
	if (!pid) {
		if (arn_keeper_stop(t->heap) != -EOWNERDEAD || arn_keeper_start(t->heap, NULL) != -EOWNERDEAD)
			_exit(1);
		arn_close(t->heap);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(holder() != 0);
	assert_ok(arn_keeper_stop(t->heap));
}

/* ---- Growth ---- */

static void watermarks_may_come_with_the_keeper(void **state)
{
	struct arn_keeper_options o = { .sz = sizeof(o), .low_watermark = 6 * MiB, .high_watermark = 10 * MiB };

	assert_ok(arn_keeper_start(t->heap, &o));
	wait_for(mapped() >= 6 * MiB);
	assert_int_equal(rig_stats(t->heap).low_watermark, 6 * MiB);
	assert_int_equal(rig_stats(t->heap).high_watermark, 10 * MiB);
	assert_ok(arn_keeper_stop(t->heap));
	/* They stay; trim leaves the low one. */
	assert_true(arn_trim(t->heap) >= 0);
	assert_int_equal(mapped(), 6 * MiB);
}

/* The doorbell is found by its id in the root. */
static void a_keeper_elsewhere_hears_the_doorbell(void **state)
{
	__u64 chain = 0, rung;
	int err, i;
	pid_t pid = keep_elsewhere(false, &err);

	assert_int_equal(err, 0);
	t->root->low_pages = 4 * MiB / 4096;
	wait_for(mapped() >= 4 * MiB);
	rung = count(ARN_COUNT_RUNG);
	for (i = 0; i < 10; i++) {
		assert_int_equal(bpf_take(t, 1024, 3000, &chain), 3000);
		wait_for(*(volatile __u64 *)&t->root->pages_free >= t->root->low_pages);
	}
	assert_in_range(count(ARN_COUNT_RUNG) - rung, 1, 40);
	assert_int_equal(t->root->unheard, 0);
	end_elsewhere(pid);
	bpf_drop(t, 1 << 20, &chain);
}

/* An object that made its arena itself has a doorbell of its own. */
static void an_adopted_arenas_doorbell_is_found(void **state)
{
	struct arn_options opts = { .sz = sizeof(opts), .low_watermark = 4 * MiB };
	struct ops_bpf *ops = ops_bpf__open();
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);
	struct arn_heap *h;
	struct op o;
	int i;

	assert_ok(arn_prepare_map(ops->maps.arn_arena, 64 * MiB));
	assert_int_equal(ops_bpf__load(ops), 0);
	h = arn_open_fd(bpf_map__fd(ops->maps.arn_arena), ARN_INIT, &opts);
	if (!h)
		fail_msg("%s", arn_last_error());
	teardown(NULL);
	t = calloc(1, sizeof(*t));
	t->heap = h;
	t->base = arn_base_address(h);
	t->root = (struct arn_root *)(t->base + ARN_ROOT_OFF);
	t->ops = ops;
	assert_int_equal(t->root->pages_free, 4 * MiB / 4096);
	assert_ok(arn_keeper_start(h, NULL));
	o = (struct op){ .code = OP_TAKE, .a = 1024 };
	for (i = 0; i < 10; i++) {
		o.n = 3000;
		assert_int_equal(rig_do(ops, &o), 3000);
		wait_for(*(volatile __u64 *)&t->root->pages_free >= t->root->low_pages);
	}
	assert_int_equal(bpf_map_get_info_by_fd(bpf_map__fd(ops->maps.arn_doorbell), &info, &len), 0);
	assert_int_equal(t->root->doorbell_id, info.id);
	assert_true(count(ARN_COUNT_RUNG) > 0);
	bpf_drop(t, 1 << 20, &o.b);
	assert_ok(arn_keeper_stop(h));
	rig_sound(h);
	assert_int_equal(rig_live(h), 0);
	arn_close(h);
	ops_bpf__destroy(ops);
	free(t);
	t = NULL;
}

/* ---- Trimming ---- */

static void what_lies_free_above_the_high_mark_goes(void **state)
{
	__u64 big[8];
	int i;

	teardown(NULL);
	setup_marks(128 * MiB, 4 * MiB, 16 * MiB);
	assert_ok(arn_reserve(t->heap, 70 * MiB));
	for (i = 0; i < 8; i++)
		assert_true(big[i] = (__u64)bpf_malloc(t, 8 * MiB));
	assert_ok(arn_keeper_start(t->heap, NULL));
	usleep(1200000);
	assert_true(mapped() >= 64 * MiB);
	for (i = 0; i < 8; i++)
		assert_int_equal(bpf_free(t, (void *)big[i]), 0);
	wait_for(mapped() < 17 * MiB);
	usleep(50000);
	assert_true(mapped() >= 16 * MiB);
	assert_true(count(ARN_COUNT_TRIMMED) >= 48);
	assert_int_equal(count(ARN_COUNT_DRAINED), 0);
	assert_ok(arn_keeper_stop(t->heap));
}

static void *take_and_drop(void *unused)
{
	__u64 chain = 0;

	rig_pin_cpu(1);
	assert_int_equal(bpf_take(t, 64, 300000, &chain), 300000);
	while (chain)
		bpf_drop(t, 1 << 20, &chain);
	/* Near this CPU, and in its cache. */
	bpf_take(t, 32768, 2, &chain);
	bpf_drop(t, 2, &chain);
	return NULL;
}

static void what_is_cached_above_the_high_mark_goes(void **state)
{
	__u64 chain = 0;
	pthread_t thread;

	teardown(NULL);
	setup_marks(128 * MiB, 4 * MiB, 8 * MiB);
	assert_ok(arn_reserve(t->heap, 64 * MiB));
	assert_int_equal(bpf_take(t, 512, 60000, &chain), 60000);
	while (chain)
		bpf_drop(t, 1 << 20, &chain);
	if (rig_cpus() > 1) {
		assert_int_equal(pthread_create(&thread, NULL, take_and_drop, NULL), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	assert_true(mapped() >= 40 * MiB);
	assert_ok(arn_keeper_start(t->heap, NULL));
	/* The emergency reserves of the three classes stay, and the chunk that they lie in. */
	wait_for(mapped() < 10 * MiB);
	assert_true(count(ARN_COUNT_DRAINED) > 0);
	assert_ok(arn_keeper_stop(t->heap));
	assert_int_equal(rig_stats(t->heap).cls[rig_class(t, 32768)].in_slots, 0);
	rig_sound(t->heap);
}

/* What is in use is not cached: the caches are left alone. */
static void a_busy_heap_is_not_drained(void **state)
{
	__u64 chain = 0;

	teardown(NULL);
	setup_marks(128 * MiB, 4 * MiB, 8 * MiB);
	assert_ok(arn_reserve(t->heap, 44 * MiB));
	assert_int_equal(bpf_take(t, 512, 80000, &chain), 80000);
	assert_ok(arn_keeper_start(t->heap, NULL));
	sleep(4);
	assert_int_equal(count(ARN_COUNT_DRAINED), 0);
	assert_ok(arn_keeper_stop(t->heap));
	while (chain)
		bpf_drop(t, 1 << 20, &chain);
}

/* ---- Killed processes ---- */

static void a_killed_processs_slots_are_given_back(void **state)
{
	int map = arn_map_fd(t->heap), fds[2];
	struct arn_heap *h;
	char ok = 0;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		h = arn_open_fd(map, 0, NULL);
		ok = h && !arn_free(h, arn_malloc(h, 64));
		if (write(fds[1], &ok, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(fds[0], &ok, 1), 1);
	assert_true(ok);
	assert_int_equal(rig_stats(t->heap).slots_claimed, 1);
	assert_ok(arn_keeper_start(t->heap, NULL));
	sleep(1);
	assert_int_equal(rig_stats(t->heap).slots_claimed, 1);
	end_elsewhere(pid);
	wait_for(!rig_stats(t->heap).slots_claimed);
	assert_int_equal(count(ARN_COUNT_REAPED), 1);
	assert_ok(arn_keeper_stop(t->heap));
}

/* ---- Cost ---- */

static __u64 cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (__u64)ts.tv_sec * 1000000000 + (__u64)ts.tv_nsec;
}

static void an_idle_keeper_takes_less_than_a_thousandth(void **state)
{
	__u64 wall, cpu, kept, chain = 0;

	teardown(NULL);
	setup_marks(128 * MiB, 4 * MiB, 64 * MiB);
	assert_int_equal(bpf_take(t, 64, 100, &chain), 100);
	assert_int_equal(bpf_drop(t, 100, &chain), 100);
	assert_ok(arn_keeper_start(t->heap, NULL));
	usleep(500000);
	kept = count(ARN_COUNT_KEPT); /* (takes a snapshot: not the keeper's cost) */
	wall = now_ns();
	cpu = cpu_ns();
	sleep(5);
	cpu = cpu_ns() - cpu;
	wall = now_ns() - wall;
	kept = count(ARN_COUNT_KEPT) - kept;
	print_message("idle: %.4f %% of a CPU, woken %.1f times a second\n", 100.0 * (double)cpu / (double)wall,
		      1e9 * (double)kept / (double)wall);
	assert_true(cpu * 1000 < wall);
	assert_ok(arn_keeper_stop(t->heap));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(the_lease_names_the_thread),
		T(one_at_a_time),
		T(bad_options_start_nothing),
		T(closing_ends_it),
		T(another_processs_lease_is_respected_until_it_dies),
		T(a_keeper_in_another_pid_namespace_is_known_alive),
		T(a_lease_ends),
		T(a_forked_child_has_none),
		T(watermarks_may_come_with_the_keeper),
		T(a_keeper_elsewhere_hears_the_doorbell),
		T(an_adopted_arenas_doorbell_is_found),
		T(what_lies_free_above_the_high_mark_goes),
		T(what_is_cached_above_the_high_mark_goes),
		T(a_busy_heap_is_not_drained),
		T(a_killed_processs_slots_are_given_back),
		T(an_idle_keeper_takes_less_than_a_thousandth),
	};

	rig_start();
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
