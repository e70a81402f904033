/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys.c - the embedded BPF programs that do what only the kernel side may: map and unmap pages,
 * touch another CPU's slot, say who somebody is.  Loaded against a heap's arena on first need.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"
#include "../bpf/sys.h"
#include "../core/growth.h"
#include "arenite_sys.skel.h"

#define DRAIN_TURNS    20
#define DRAIN_PAUSE_US 1000
#define TRIM_TURNS     64
#define LEASE_TURNS    100

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

/*
 * arn_sys_thread takes the verifier three times as long as all others together, and only threads that allocate need
 * it: it is loaded by itself.
 */
static int load(struct arn_heap *heap, bool thread)
{
	struct arn_sys_bpf *s, **to = thread ? &heap->sys_thread : &heap->sys;
	libbpf_print_fn_t old;
	struct bpf_program *p;
	int err;

	if (*to)
		return 0;
	old = libbpf_set_print(quiet);
	s = arn_sys_bpf__open();
	err = s ? 0 : -errno;
	if (!err) {
		bpf_object__for_each_program(p, s->obj)
			bpf_program__set_autoload(p, (p == s->progs.arn_sys_thread) == thread);
		bpf_map__set_autocreate(s->maps.arn_queues, !thread);
		bpf_map__set_autocreate(s->maps.arn_tasks, !thread);
		bpf_map__set_max_entries(s->maps.arn_tasks, (__u32)libbpf_num_possible_cpus() * ARN_TASK_ITEMS);
		err = bpf_map__reuse_fd(s->maps.arn_arena, heap->map_fd);
	}
	if (!err)
		err = arn_sys_bpf__load(s);
	libbpf_set_print(old);
	if (err) {
		arn_sys_bpf__destroy(s);
		if (err == -EPERM)
			return arn_error(
				EPERM,
				"heap: loading the growth programs was refused: needs root, or CAP_BPF and CAP_PERFMON");
		return arn_error(-err, "heap: the growth programs do not load on this kernel: %s", strerror(-err));
	}
	*to = s;
	if (thread)
		arn_store_relaxed(&heap->thread_fd, bpf_program__fd(s->progs.arn_sys_thread));
	return 0;
}

static int load_once(struct arn_heap *heap, bool thread)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static __thread bool loading;
	int err;

	if (loading)
		return arn_error(EAGAIN, "heap: a signal handler on top of its first call, which loads programs");
	loading = true;
	pthread_mutex_lock(&lock);
	err = load(heap, thread);
	pthread_mutex_unlock(&lock);
	loading = false;
	return err;
}

int arn_sys_load(struct arn_heap *heap)
{
	return load_once(heap, false);
}

void arn_sys_close(struct arn_heap *heap)
{
	arn_sys_bpf__destroy(heap->sys);
	arn_sys_bpf__destroy(heap->sys_thread);
	heap->sys = heap->sys_thread = NULL;
	heap->thread_fd = -1;
}

long long arn_sys_call(struct arn_heap *heap, struct arn_call *call)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = call, .ctx_size_in = sizeof(*call));
	int fd = arn_load_relaxed(&heap->thread_fd), err = fd < 0 ? load_once(heap, true) : 0;

	if (err)
		return err;
	if (bpf_prog_test_run_opts(fd < 0 ? arn_load_relaxed(&heap->thread_fd) : fd, &opts))
		return arn_error(errno, "heap: running arn_sys_thread failed: %s", strerror(errno));
	return call->ret;
}

static int run_with(struct bpf_program *prog, void *args, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = (__u32)size);

	if (bpf_prog_test_run_opts(bpf_program__fd(prog), &opts))
		return arn_error(errno, "heap: running %s failed: %s", bpf_program__name(prog), strerror(errno));
	return 0;
}

static long long run(struct bpf_program *prog, struct arn_sys_args *args)
{
	int err = run_with(prog, args, sizeof(*args));

	return err ? err : args->ret;
}

int arn_sys_map_root(struct arn_heap *heap, __u32 off, __u32 pages)
{
	struct arn_sys_args args = { .base = (__u64)(unsigned long)heap->base, .off = off, .pages = pages };

	return (int)run(heap->sys->progs.arn_sys_map, &args);
}

void arn_sys_unmap_root(struct arn_heap *heap, __u32 off, __u32 pages)
{
	struct arn_sys_args args = { .base = (__u64)(unsigned long)heap->base, .off = off, .pages = pages };

	run(heap->sys->progs.arn_sys_unmap, &args);
}

int arn_sys_mark_root(struct arn_heap *heap, __u64 mark)
{
	struct arn_sys_args args = { .bytes = mark };
	int err = arn_sys_load(heap);

	return err ? err : (int)run(heap->sys->progs.arn_sys_mark, &args);
}

int arn_sys_reserve_bytes(struct arn_heap *heap, __u64 bytes)
{
	struct arn_sys_args args = { .bytes = bytes };
	int err = arn_sys_load(heap);

	return err ? err : (int)run(heap->sys->progs.arn_sys_reserve, &args);
}

int arn_sys_drain_cpus(struct arn_heap *heap)
{
	__u32 cpu, turn, n = heap->k->ncpus; /* (the root's may be anything) */
	int err = arn_sys_load(heap);

	for (cpu = 0; !err && cpu < n; cpu++) {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);

		/*
		 * An offline CPU cannot be visited (ENXIO): what it cached stays until it is back.  A cache in
		 * use belongs to a program that was preempted there, and is tried again.
		 */
		for (turn = 0; turn < DRAIN_TURNS; turn++) {
			if (bpf_prog_test_run_opts(bpf_program__fd(heap->sys->progs.arn_sys_drain), &opts) ||
			    !opts.retval)
				break;
			usleep(DRAIN_PAUSE_US);
		}
	}
	return err;
}

long long arn_sys_trim_pages(struct arn_heap *heap, __u32 keep, __u32 chunks, enum arn_reclaim reclaim)
{
	struct arn_sys_trim_args args = { .keep = keep,
					  .chunks = chunks,
					  .reclaim = reclaim >= ARN_RECLAIM_CACHED,
					  .emergency = reclaim == ARN_RECLAIM_ALL };
	int err = arn_sys_load(heap), turn;
	long long pages = 0;

	/* A run that comes to the end of the kernel's patience leaves the rest to the next. */
	for (turn = 0; !err && turn < TRIM_TURNS && args.chunks; turn++) {
		err = run_with(heap->sys->progs.arn_sys_trim, &args, sizeof(args));
		if (err || args.ret <= 0)
			break;
		pages += args.ret;
		args.chunks -= (__u32)(args.ret / ARN_CHUNK_PAGES);
	}
	return err ? err : pages;
}

int arn_sys_grow_asked(struct arn_heap *heap)
{
	struct arn_sys_args args = { .ret = 0 };
	int err = arn_sys_load(heap);

	return err ? err : (int)run(heap->sys->progs.arn_sys_grow, &args);
}

int arn_sys_lease(struct arn_heap *heap, bool release, __u64 *owner)
{
	struct arn_sys_lease_args args = { .release = release };
	int err = arn_sys_load(heap), turn;

	for (turn = 0; !err && turn < LEASE_TURNS; turn++) {
		err = run_with(heap->sys->progs.arn_sys_lease, &args, sizeof(args));
		if (err || args.ret != -EAGAIN)
			break;
		usleep(DRAIN_PAUSE_US);
	}
	*owner = args.owner;
	return err ? err : (int)args.ret;
}

int arn_sys_growth_map(struct arn_heap *heap, __u32 *ways)
{
	struct arn_sys_args args = { .ret = 0 };
	int err = arn_sys_load(heap);

	if (err)
		return err;
	if (*ways & ARN_WAY_QUEUE && !run(heap->sys->progs.arn_sys_queue, &args)) {
		*ways = ARN_WAY_QUEUE;
		return bpf_map__fd(heap->sys->maps.arn_queues);
	}
	if (*ways & ARN_WAY_TASK && arn_has("task-work") > 0) {
		*ways = ARN_WAY_TASK;
		return bpf_map__fd(heap->sys->maps.arn_tasks);
	}
	return -EOPNOTSUPP;
}
