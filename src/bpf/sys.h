/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys.h - arguments of the syscall programs, read by both sides. */
#ifndef ARN_SYS_H
#define ARN_SYS_H

struct arn_sys_args {
	__u64 base;
	__u64 bytes;
	__u32 off;
	__u32 pages; /* kernel pages */
	__s64 ret;
};

/* What a user thread asks for (thread_bpf.h). */
enum arn_thread_op {
	ARN_OP_CLAIM, /* a slot of those from .slot to below .end -> the slot, or -EAGAIN */
	ARN_OP_LEAVE, /* the caller's slots of those, whole: of its whole process -> how many were given back */
	ARN_OP_REAP, /* those whose owners are gone -> how many were given back */
	ARN_OP_REFILL, /* objects of .cls into the caller's .slot, whose cache it has claimed */
	ARN_OP_SPILL, /* room for objects of .cls, likewise */
	ARN_OP_ALLOC, /* an object of .a bytes at alignment .b, past .slot's caches -> its offset */
	ARN_OP_FREE, /* the pointer .a; -EINVAL: .cls says why (enum arn_fail) */
	ARN_OP_GROW, /* a chunk more, unless .a heap pages are free */
	ARN_OP_RECLAIM, /* cached memory back to page runs */
	ARN_OP_PERCPU_ALLOC, /* a per-CPU object of .a bytes -> its address */
	ARN_OP_PERCPU_FREE, /* the pointer .a; -EINVAL: .cls says why (enum arn_fail) */
	ARN_OP_PERCPU_PREPARE, /* slabs for .b of .a bytes */
};

struct arn_call {
	__u32 op;
	__u32 slot, end;
	__u32 cls;
	__u32 whole;
	__u32 pad;
	__u64 a, b;
	__s64 ret;
};

struct arn_sys_trim_args {
	__u32 keep; /* heap pages that stay free */
	__u32 chunks; /* to give back at most */
	__u32 reclaim; /* cached memory first */
	__u32 emergency; /* the emergency reserves too */
	__s64 ret; /* heap pages given back */
};

#define ARN_LEASE_NS 10000000000ULL /* so long without a sign of its holder, and a lease is free */

struct arn_sys_lease_args {
	__u32 release; /* else take or renew */
	__u32 pad;
	__u64 owner; /* out: the holder */
	__s64 ret;
};

#endif
