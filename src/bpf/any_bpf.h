/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * any_bpf.h - allocations that map memory themselves: objects built with ARN_PAGES_ANY_CONTEXT, for kernels
 * that give pages to every program.  For the others the same name is just the allocation.
 */
#ifndef ARN_ANY_BPF_H
#define ARN_ANY_BPF_H

#ifdef ARN_PAGES_ANY_CONTEXT
static arn_inline int arn_grow_one(struct arn_root __arena *r);

#define ARN_GROW_AT_ONCE 64u /* chunks: some 10 ms; for a larger object reserve ahead */

/* Could it be served at all?  (Who asks has counted why not.) */
static arn_inline _Bool arn_servable(struct arn_root __arena *r, __u64 size, __u64 align)
{
	return r->magic == ARN_MAGIC && size <= r->arena_bytes / 2 && align <= r->arena_bytes / 2;
}

/*
 * Chunks for an allocation that found nothing, or if the kernel has none, what is cached.  0: it need not try again.
 *
 * On top of the lock's holder neither helps, nor more chunks while some wait to be merged: an interrupt that comes
 * again and again would add some each time.
 */
__weak int arn__make_room(__u64 size, __u64 align)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 aligned = arn_large_align(size, align) >> (ARN_CHUNK_SHIFT - ARN_PAGE_SHIFT), left;

	arn_name_arena();
	if (!arn_servable(r, size, align) || arn_lock_below(r, bpf_get_smp_processor_id()))
		return 0;
	arn__settle();
	if (arn_load_relaxed(&r->pending))
		return 1;
	left = ((size + sizeof(struct arn_trailer)) >> ARN_CHUNK_SHIFT) + aligned + 1;
	for (left = left < ARN_GROW_AT_ONCE ? left : 0; left && arn_may_loop; left--) {
		if (arn_grow_one(r))
			break;
		if (left == 1)
			return 1;
	}
	arn_reclaim(r);
	arn_reclaim_emergency();
	return 1;
}

/* No hit: everything else, and if that is nothing, chunks from the kernel; twice, since others may take them. */
static arn_inline __u64 arn_alloc_more(struct arn_root __arena *r, __u64 size, __u64 align)
{
	__u64 p = arn__alloc_rest(size, align);

	if (!p && arn__make_room(size, align))
		p = arn__alloc_rest(size, align);
	if (!p && arn__make_room(size, align))
		p = arn__alloc_rest(size, align);
	if (!p && arn_servable(r, size, align))
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
