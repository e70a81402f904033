/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * inline_bpf.h - a hit in this CPU's cache, inlined into the calling program.
 *
 * A call costs more than the hit itself where the kernel guards its returns (8 of 15 ns with SRSO
 * return thunks).  Nothing here loops, so a spent may_goto patience of the user's cannot hurt, and
 * about 50 instructions stand in the user's program at each call.  ARN_NO_INLINE before the include
 * leaves it at calls, for programs that mind their size.  Whatever is no hit is left as it was found
 * and done over by the global function.
 */
#ifndef ARN_INLINE_BPF_H
#define ARN_INLINE_BPF_H

#include "../core/heap.h"

/* The class of a size that the compiler knows. */
#define ARN_CONST_CLASS(size)                                                                                          \
	((size) <= 128 ? ((size) + 15) / 16 - !!(size)                                                                 \
		       : 8 + (56 - __builtin_clzll((size) - 1)) * 4 +                                                  \
				 (((size) - 1) >> (61 - __builtin_clzll((size) - 1)) & 3))

/*
 * An object of a class from the loaded magazine, to *p; false: there was none.  (Not *p alone, to be
 * tested for 0: the verifier would follow a loop around that through states without end.)
 */
static arn_inline _Bool arn_hit_malloc(struct arn_root __arena *r, __u32 cls, __u64 *p)
{
	struct arn_cache __arena *c = arn_cache(ARN_HERE, bpf_get_smp_processor_id(), cls);
	__u32 top = arn_claim(c), off;

	if (arn_unlikely(!arn_top_has(top))) {
		if (top != ARN_CACHE_BUSY)
			arn_unclaim(c, top);
		return 0;
	}
	off = arn_load_relaxed(arn_ptr(ARN_HERE, __u32, top));
	arn_unclaim(c, top - 4);
	arn_store_relaxed(arn_state(ARN_HERE, r, off), cls + 1);
	*p = r->base | off;
	return 1;
}

/*
 * An object of one of n classes, from first on, into the loaded magazine.  False: everything else, and
 * nothing was done.  As arn_object, for a pointer with the base's upper half: rotated, a misaligned one, one of another arena and one
 * outside of the heap are all granules beyond it.
 */
static arn_inline _Bool arn_hit_free(struct arn_root __arena *r, __u64 ptr, __u32 first, __u32 n)
{
	__u64 in = ptr - r->base, granule = in >> ARN_GRANULE_SHIFT | in << (64 - ARN_GRANULE_SHIFT);
	struct arn_cache __arena *c;
	__u8 __arena *state;
	__u32 st, top;

	if (arn_unlikely(granule - r->first_granule >= r->ngranules))
		return 0;
	state = arn_ptr(ARN_HERE, __u8, r->state_bias + (__u32)granule);
	st = arn_load_relaxed(state);
	if (arn_unlikely(st - 1 - first >= n))
		return 0;
	c = arn_cache(ARN_HERE, bpf_get_smp_processor_id(), st - 1);
	top = arn_claim(c);
	if (arn_unlikely(!arn_top_room(top, c->room))) {
		if (top != ARN_CACHE_BUSY)
			arn_unclaim(c, top);
		return 0;
	}
	arn_store_relaxed(state, 0);
	arn_store_relaxed(arn_ptr(ARN_HERE, __u32, top + 4), (__u32)ptr);
	arn_unclaim(c, top + 4);
	return 1;
}

#ifdef ARN_NO_INLINE
#define arn_malloc_inline arn__malloc
#define arn_free_inline	  arn__free
#else
static arn_inline __u64 arn_malloc_inline(__u64 size)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 cls;
	__u64 p;

	arn_name_arena();
	if (size > ARN_MAX_CLASSED)
		return arn__malloc(size);
	cls = __builtin_constant_p(size) ? (__u32)ARN_CONST_CLASS(size) : arn_class_of(r, size);
	return arn_likely(arn_hit_malloc(r, cls, &p)) ? p : arn__malloc(size);
}

static arn_inline int arn_free_inline(__u64 ptr)
{
	arn_name_arena();
	return arn_likely(arn_hit_free(arn_root(ARN_HERE), ptr, 0, ARN_PLAIN_CLASSES)) ? 0 : arn__free(ptr);
}
#endif

#endif
