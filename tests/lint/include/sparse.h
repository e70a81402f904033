/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sparse.h - in front of BPF code for sparse: what clang for BPF brings along, and port_bpf.h's atomics
 * with typed pointers into the arena.  The port's macros (which lint.mk takes out of it) cast whatever
 * they get, so a plain pointer, or one to a word of another width, would go unnoticed.
 */
#include <linux/types.h>

/* Only a cast to and from unsigned long may change the address space silently: addresses are __u64 here. */
#define __u64 unsigned long

#define __bpf__				   1
#define __BPF_FEATURE_ADDR_SPACE_CAST	   1
#define __arena				   __attribute__((address_space(1)))
#define __builtin_btf_type_id(...)	   0
#define __builtin_preserve_access_index(x) (x)
#define __builtin_preserve_enum_value(...) 0

/* sparse's typeof loses the address space. */
#define arn_load_relaxed(p)	(*(p))
#define arn_store_relaxed(p, v) ((void)(*(p) = (v)))
__u32 arn_cas32_full(__u32 __arena *p, __u32 old, __u32 new);
__u64 arn_cas64_full(__u64 __arena *p, __u64 old, __u64 new);
__u32 arn_xchg32_full(__u32 __arena *p, __u32 v);
__u64 arn_xchg64_full(__u64 __arena *p, __u64 v);
__u32 arn_add32_full(__u32 __arena *p, __u32 v);
__u64 arn_add64_full(__u64 __arena *p, __u64 v);
void arn_or64_full(__u64 __arena *p, __u64 v);
void arn_inc64_relaxed(__u64 __arena *p);
