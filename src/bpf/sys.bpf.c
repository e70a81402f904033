/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys.bpf.c - what user space has the kernel do: map the root, grow, trim, drain a CPU's slot.
 *
 * Embedded in libarenite and loaded against any arena on first need.
 */
#include <linux/bpf.h>
#include "arenite.bpf.h"
#include "sys.h"

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
