/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * any_bpf.h - allocations that map memory themselves: objects built with ARN_PAGES_ANY_CONTEXT, for kernels
 * that give pages to every program.  For the others the same name is just the allocation.
 */
#ifndef ARN_ANY_BPF_H
#define ARN_ANY_BPF_H

#ifdef ARN_PAGES_ANY_CONTEXT
int arn__grow(void);

__weak int arn__reclaim(void)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	arn_reclaim(r);
	return 0;
}

#define ARN_GROW_TRIES	 3
#define ARN_GROW_AT_ONCE 64 /* chunks: some 10 ms; for a larger object reserve ahead */

/* Chunks for an allocation that found nothing.  False: there are none. */
static arn_inline _Bool arn_grow_for(struct arn_root __arena *r, __u64 size, __u64 align)
{
	__u32 aligned = arn_large_align(size, align) >> (ARN_CHUNK_SHIFT - ARN_PAGE_SHIFT), i;
	__u32 n = ((size + sizeof(struct arn_trailer)) >> ARN_CHUNK_SHIFT) + aligned;

	if (n >= ARN_GROW_AT_ONCE)
		return 0;
	for (i = arn_opaque(0u); i <= n && arn_may_loop; i++)
		if (arn__grow())
			break;
	return i > n;
}

/* No hit: everything else, and if that is nothing, chunks from the kernel, and last what is cached. */
static arn_inline __u64 arn_alloc_more(struct arn_root __arena *r, __u64 size, __u64 align)
{
	__u64 p = arn__alloc_rest(size, align);
	__u32 turn;

	if (p || r->magic != ARN_MAGIC || size > r->arena_bytes / 2 || align > r->arena_bytes / 2)
		return p;
	/* Others may take what this one mapped: a few turns. */
	for (turn = arn_opaque(0u); !p && turn < ARN_GROW_TRIES && arn_may_loop; turn++) {
		/* On top of the lock's holder more chunks do not help, nor while some wait to be merged: each try would add some. */
		if (arn_lock_below(r, bpf_get_smp_processor_id()))
			break;
		arn__settle();
		if (!arn_load_relaxed(&r->pending) && !arn_grow_for(r, size, align)) {
			arn__reclaim();
			turn = ARN_GROW_TRIES;
		}
		p = arn__alloc_rest(size, align);
	}
	if (!p)
		arn_inc64_relaxed(&r->fail[ARN_FAIL_NOMEM]);
	return p;
}
#else
static arn_inline __u64 arn_alloc_more(struct arn_root __arena *r, __u64 size, __u64 align)
{
	return arn__alloc_rest(size, align);
}
#endif

#endif
