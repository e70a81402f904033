/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * shared.h - the calls of arenite.h on shared heaps, where they differ from those on native ones (alloc.c).
 *
 * Whoever else maps the arena may have written anything there.  So nothing that is read from it is used as
 * an address before it was compared with what this process knows by itself: the root as it was when the
 * heap was opened (heap->k), which chunks are mapped (heap->known), and in which magazine a cache was found to
 * point (heap->shadow).
 */
#ifndef ARN_SHARED_H
#define ARN_SHARED_H

#include "internal.h"

#define ARN_GRANULES (1u << (32 - ARN_GRANULE_SHIFT)) /* of 4 GiB */

/* Chunks that were never looked at; else heap->known has root.unmaps as it was then. */
#define ARN_UNSEEN 0xa5c3f19du

/* Of one cache of a slot, known to its owner only. */
struct arn_shadow {
	__u32 first; /* entry of the loaded magazine */
	__u32 cap; /* objects that a magazine holds */
};

static inline struct arn_shadow *arn_shadow_of(const struct arn_heap *heap, __u32 slot, __u32 cls)
{
	return (struct arn_shadow *)(heap->shadow + (ARN_CLAIM_SHARED | ARN_CLAIM_AT(slot))) +
	       cls * (sizeof(struct arn_cache) / 8);
}

/* Where a cache without a magazine points: at nothing of anybody's, but memory. */
static inline __u32 arn_nowhere(__u32 slot)
{
	return ARN_SLOTS_OFF + (slot << ARN_SLOT_SHIFT) + (__u32)offsetof(struct arn_slot, quarantine);
}

/* Rotated, a misaligned offset is a granule beyond any heap. */
static arn_inline __u64 arn_granule_of(__u64 off)
{
	return off >> ARN_GRANULE_SHIFT | off << (64 - ARN_GRANULE_SHIFT);
}

/*
 * Is it a granule of a chunk that is known to be mapped?  (Only the heap's chunks ever are.)  Plain loads,
 * which the compiler can make operands: either may change at any time, before and after as well.
 */
static arn_inline bool arn_granule_known(const struct arn_heap *heap, __u64 granule)
{
	return arn_likely(granule < ARN_GRANULES) &&
	       arn_likely(heap->known[granule >> (ARN_CHUNK_SHIFT - ARN_GRANULE_SHIFT)] ==
			  arn_root(heap->base)->unmaps);
}

/* ---- known.c ---- */

/* State byte of an offset where an object may be, NULL: there is no memory.  May have to look. */
__u8 *arn_state_at(struct arn_heap *heap, __u32 off);
/* The same, of what a user says is an object; NULL too if it is none. */
__u8 *arn_state_of(struct arn_heap *heap, __u64 ptr);
/* Can all of [ptr, ptr + n) be read and written?  False: errno is EUCLEAN. */
bool arn_shared_mapped(struct arn_heap *heap, const void *ptr, size_t n);
size_t arn_shared_usable(struct arn_heap *heap, const void *ptr);
void arn_met_corruption(struct arn_heap *heap);

/* ---- past.c ---- */

__s64 arn_ask(struct arn_heap *heap, __u32 op, __u32 slot, __u32 cls, __u64 a);
void *arn_alloc_past(struct arn_heap *heap, __u32 slot, size_t size, size_t align);
int arn_free_past(struct arn_heap *heap, __u32 op, __u64 ptr);
void *arn_percpu_past(struct arn_heap *heap, size_t size);
int arn_percpu_prepare_past(struct arn_heap *heap, size_t size, __u32 n);
/* This thread's caches go to the depot, but for what the call is on top of. */
void arn_shared_drain(struct arn_heap *heap);

/* ---- shared.c ---- */

/* at: the thread has a slot, whose caches lie there (and ARN_CLAIM_SHARED is set). */
void *arn_shared_malloc(struct arn_heap *heap, size_t size, __u64 at);
int arn_shared_free(struct arn_heap *heap, __u64 ptr, __u64 at);
int arn_shared_free_rest(struct arn_heap *heap, __u64 ptr);
void *arn_shared_aligned(struct arn_heap *heap, size_t size, size_t align);
size_t arn_shared_malloc_bulk(struct arn_heap *heap, size_t size, size_t n, void **out);
long arn_shared_free_bulk(struct arn_heap *heap, void **ptrs, size_t n);

#endif
