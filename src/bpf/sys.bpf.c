/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys.bpf.c - what user space has the kernel do: map the root, grow, trim, drain a CPU's slot, and what its
 * threads may not do themselves (thread_bpf.h).
 *
 * Embedded in libarenite and loaded against any arena on first need.
 */
#include <linux/bpf.h>
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
int arn_sys_trim(struct arn_sys_args *args)
{
	args->ret = arn_trim();
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
	__s64 ret = -ARN_EINVAL;

	arn_name_arena();
	if (arn_root(ARN_HERE)->magic != ARN_MAGIC)
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
	arn_restock(arn_root(ARN_HERE));
out:
	c->ret = ret;
	return 0;
}
