/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys.bpf.c - what user space has the kernel do: map the root, grow, trim, drain a CPU's slot, what its
 * threads may not do themselves (thread_bpf.h), and what growth needs that nobody asks user space for.
 *
 * Embedded in libarenite and loaded against any arena on first need.
 */
#define bpf_task_work bpf_task_work_of_the_header /* which has it or not, by its version */
#include <linux/bpf.h>
#undef bpf_task_work
#define ARN_GROWS_ITSELF
#include "arenite.bpf.h"
#include "thread_bpf.h"

char arn_license[] SEC("license") = "Dual BSD/GPL";

/* Kernel pages for the root, before it says where the base is. */
SEC("syscall")
int arn_sys_map(struct arn_sys_args *args)
{
	__u64 at = args->base | args->off;

	arn_name_arena();
	args->ret = bpf_arena_alloc_pages(&ARN_MAP, (void __arena *)at, args->pages, -1, 0) ? 0 : -ARN_ENOMEM;
	return 0;
}

SEC("syscall")
int arn_sys_unmap(struct arn_sys_args *args)
{
	__u64 at = args->base | args->off;

	arn_name_arena();
	bpf_arena_free_pages(&ARN_MAP, (void __arena *)at, args->pages);
	return 0;
}

/* A mark in the root, to look for in a mapping.  -ENOENT: the root has no pages. */
SEC("syscall")
int arn_sys_mark(struct arn_sys_args *args)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	arn_store_relaxed(&r->mark, args->bytes);
	args->ret = arn_load_relaxed(&r->mark) == args->bytes ? 0 : -ARN_ENOENT;
	return 0;
}

SEC("syscall")
int arn_sys_reserve(struct arn_sys_args *args)
{
	args->ret = arn_reserve(args->bytes);
	return 0;
}

SEC("syscall")
int arn_sys_grow(struct arn_sys_args *args)
{
	args->ret = arn__grow_asked();
	return 0;
}

SEC("syscall")
int arn_sys_trim(struct arn_sys_trim_args *args)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	if (args->reclaim)
		arn_reclaim(r);
	if (args->emergency)
		arn_reclaim_emergency();
	args->ret = arn__shrink(args->keep, args->chunks);
	return 0;
}

/* Returns how many caches were in use.  Run on the CPU whose slot it is: test_run with BPF_F_TEST_RUN_ON_CPU, which raw_tp has. */
SEC("raw_tp")
int arn_sys_drain(void *ctx)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 cls, busy = 0;

	arn_name_arena();
	if (r->magic != ARN_MAGIC)
		return 0;
	if (arn_is_checked(r))
		arn__release();
	for (cls = arn_opaque(0u); cls < ARN_CLASSES && arn_may_loop; cls++)
		busy += arn__drain(cls) != 0;
	return busy;
}

/* The slots of [c->slot, c->end) one after another, those that op is about. */
static __s64 slots(struct arn_call *c)
{
	__u64 owner, me = bpf_get_current_pid_tgid();
	__u32 op = c->op, from = c->slot, end = c->end, whole = c->whole;
	__s64 n = arn_opaque(0ll);
	int i, err;

	bpf_for(i, 0, (int)ARN_MAX_SLOTS) {
		__u32 slot = from + i;

		if (slot >= end)
			break;
		owner = arn_load_relaxed(&arn_slot(ARN_HERE, slot)->owner);
		if (op == ARN_OP_CLAIM) {
			if (owner)
				continue;
			err = arn__slot_map(slot);
			if (err)
				return err;
			if (arn__slot_claim(slot))
				return slot;
		} else if (op == ARN_OP_LEAVE) {
			if (owner == me || (whole && owner >> 32 == me >> 32))
				n += arn__slot_drain(slot, owner);
		} else if (owner && arn__slot_dead(slot)) {
			n += arn__slot_drain(slot, owner);
		}
	}
	return op == ARN_OP_CLAIM ? -ARN_EAGAIN : n;
}

SEC("syscall")
int arn_sys_thread(struct arn_call *c)
{
	__u32 slot = c->slot, cls = c->cls, tag;
	__u64 a = c->a, b = c->b;
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__s64 ret = -ARN_EINVAL;

	arn_name_arena();
	if (r->magic != ARN_MAGIC)
		goto out;
	switch (c->op) {
	case ARN_OP_CLAIM:
	case ARN_OP_LEAVE:
	case ARN_OP_REAP:
		ret = slots(c);
		break;
	case ARN_OP_REFILL:
		if (arn_is_mine(slot))
			ret = arn__refill(slot, cls);
		break;
	case ARN_OP_SPILL:
		if (arn_is_mine(slot))
			ret = arn__spill(slot, cls);
		break;
	case ARN_OP_ALLOC:
		tag = arn_is_mine(slot) ? arn_slot(ARN_HERE, slot)->tag : 0;
		ret = arn__thread_alloc(a, b, tag);
		break;
	case ARN_OP_FREE:
		ret = arn__free(a);
		if (ret)
			c->cls = arn__why_not(a);
		break;
	case ARN_OP_GROW:
		ret = arn__thread_grow(a);
		break;
	case ARN_OP_RECLAIM:
		ret = arn__thread_reclaim(slot);
		break;
	case ARN_OP_PERCPU_ALLOC:
		ret = arn__percpu_alloc(a);
		ret = ret ? ret : -ARN_ENOMEM;
		break;
	case ARN_OP_PERCPU_FREE:
		ret = arn__percpu_free(a);
		if (ret)
			c->cls = arn__why_not(a);
		break;
	case ARN_OP_PERCPU_PREPARE:
		ret = arn_percpu_prepare(a, b);
		break;
	}
	arn_restock(r);
	/* Here one may sleep, and need ask nobody; but not again at once what the kernel just refused. */
	if (arn_unlikely(arn_below_low(r)) && (__s64)(bpf_ktime_get_ns() - arn_load_relaxed(&r->asked_at)) >= 0)
		arn__grow_asked();
out:
	c->ret = ret;
	return 0;
}

/*
 * Growth for others' programs (ask_bpf.h, later_bpf.h): maps to stand in for their arn_growth.  The
 * work queue lives as long as a process holds its map.
 */
struct arn_queue {
	struct bpf_wq wq;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, struct arn_queue);
} arn_queues SEC(".maps");

struct bpf_task_work {
	__u64 opaque;
} __attribute__((aligned(8)));

struct arn_task {
	struct bpf_task_work work;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ARN_TASK_ITEMS); /* times the possible CPUs */
	__type(key, int);
	__type(value, struct arn_task);
} arn_tasks SEC(".maps");

typedef int arn_wq_fn(void *map, int *key, void *value);

extern int bpf_wq_init___arn(struct bpf_wq___arn *wq, void *map, unsigned int flags) __weak __ksym;
extern int bpf_wq_set_callback_impl___arn(struct bpf_wq___arn *wq, arn_wq_fn *fn, unsigned int flags,
					  void *aux) __weak __ksym;
extern int bpf_wq_set_callback___arn(struct bpf_wq___arn *wq, arn_wq_fn *fn, unsigned int flags) __weak __ksym;

static int arn_queued(void *map, int *key, void *value)
{
	arn__grow_asked();
	return 0;
}

/* 0: what is in arn_queues can be started, while a process has the map. */
SEC("syscall")
int arn_sys_queue(struct arn_sys_args *args)
{
	struct bpf_wq___arn *wq;
	int key = 0;

	arn_name_arena();
	args->ret = -ARN_EOPNOTSUPP;
	wq = bpf_map_lookup_elem(&arn_queues, &key);
	if (!wq)
		return 0;
	bpf_wq_init___arn(wq, &arn_queues, 0); /* -EBUSY when done before */
	if (bpf_ksym_exists(bpf_wq_set_callback___arn))
		args->ret = bpf_wq_set_callback___arn(wq, arn_queued, 0);
	else if (bpf_ksym_exists(bpf_wq_set_callback_impl___arn))
		args->ret = bpf_wq_set_callback_impl___arn(wq, arn_queued, 0, 0);
	return 0;
}

/* ---- The keeper's lease ---- */

/* Takes, renews or gives up the lease for the calling thread.  -EBUSY: owner has it.  -EAGAIN: no lock. */
SEC("syscall")
int arn_sys_lease(struct arn_sys_lease_args *args)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u64 me = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns(), owner, start;
	_Bool gone, mine;

	arn_name_arena();
	owner = arn_load_relaxed(&r->keeper);
	start = arn_load_relaxed(&r->keeper_start);
	gone = !owner || (__s64)(now - arn_load_relaxed(&r->keeper_until)) >= 0 ||
	       arn__thread_gone(owner, start, arn_load_relaxed(&r->keeper_exec));
	args->owner = owner;
	args->ret = -ARN_EAGAIN;
	if (!arn_lock(r, bpf_get_smp_processor_id()))
		return 0;
	/* Unless it changed hands meanwhile. */
	mine = r->keeper == me && r->keeper_start == task->start_time;
	gone = gone && r->keeper == owner && r->keeper_start == start;
	args->ret = mine || (gone && !args->release) ? 0 : -ARN_EBUSY;
	if (!args->ret) {
		arn_store_relaxed(&r->keeper_start, task->start_time);
		arn_store_relaxed(&r->keeper_exec, task->self_exec_id);
		arn_store_relaxed(&r->keeper_until, now + ARN_LEASE_NS);
		arn_store_relaxed(&r->keeper, args->release ? 0 : me);
	}
	arn_unlock(r);
	return 0;
}
