/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * bulk_bpf.h - many objects a call: one guard a magazine instead of one an object.
 *
 * Preemption is off for at most one magazine's worth (120 objects).
 */
#ifndef ARN_BULK_BPF_H
#define ARN_BULK_BPF_H

#include "../core/bulk.h"

__weak __u32 arn__bulk_pop(__u64 size, __u32 want, __u64 out)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 cls = ARN_CLASSES;

	arn_name_arena();
	if (size <= ARN_MAX_CLASSED)
		cls = arn_class_of(r, size);
	return cls < ARN_CLASSES ? arn_bulk_pop(ARN_HERE, r, bpf_get_smp_processor_id(), cls, want, out) : 0;
}

__weak __u32 arn__bulk_push(__u64 ptrs, __u32 want)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return arn_bulk_push(ARN_HERE, r, bpf_get_smp_processor_id(), 0, ARN_PLAIN_CLASSES, ptrs, want);
}

/*
 * Returns how many are missing.  (What it is given and gives back fits the four registers that a call
 * keeps: it is the first of three frames that share 160 bytes.)
 */
__weak __u32 arn__malloc_bulk(__u64 size, __u32 n, __u64 out)
{
	__u32 got, more;

	arn_name_arena();
	for (n = arn_opaque(n);;) {
		/* clang would keep n and what it is at the end, 0, apart. */
		more = n;
		asm volatile("" : "+r"(more));
		if (!more || !arn_may_loop)
			break;
		got = arn__bulk_pop(size, n, out);
		if (!got) {
			__u64 p = arn_alloc_more(arn_root(ARN_HERE), size, 0);

			if (!p)
				break;
			*arn_ptr(ARN_HERE, __u64, out) = p;
			got = 1;
		}
		out += (__u64)got * 8;
		n -= got;
	}
	return n;
}

__weak int arn_free_bulk(__u64 ptrs, __u32 n)
{
	__u32 at, freed, got;

	arn_name_arena();
	at = arn_opaque(0u);
	freed = arn_opaque(0u);
	while (at < n && arn_may_loop) {
		got = arn__bulk_push(ptrs + (__u64)at * 8, n - at);
		at += got;
		freed += got;
		if (got)
			continue;
		/* A pointer of another kind, or a cache that wants a magazine. */
		if (!arn__free(*arn_ptr(ARN_HERE, __u64, ptrs + (__u64)at * 8)))
			freed++;
		at++;
	}
	return freed || !n ? (int)freed : -ARN_EINVAL;
}

#endif
