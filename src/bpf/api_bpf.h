/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * api_bpf.h - the BPF side's functions: the core under the names of arenite.bpf.h.
 *
 * Each is a global function, verified once and on its own.  Frames: arn__malloc_bulk or arn__malloc,
 * arn__alloc_rest, one of the parts that it puts an allocation together from; arn_free_bulk, arn__free,
 * one of its parts: three at most, in 160 bytes (tests/bpf/verifier.c adds them up).
 * Nothing here is inlined into a user's program, so loops may use may_goto (a spent patience there
 * would end an inlined loop at once).
 */
#ifndef ARN_API_BPF_H
#define ARN_API_BPF_H

#include "../core/port.h"
#include "../core/checked.h"
#include "ask_bpf.h"

__u64 arn_calls_without_heap __weak;

static arn_inline _Bool arn_has_heap(struct arn_root __arena *r)
{
	if (arn_likely(r->magic == ARN_MAGIC))
		return 1;
	arn_calls_without_heap++;
	return 0;
}

/* The parts of a refill, each small on its own (arn_refill in core/heap.h is their sum). */
__weak __u32 arn__empty_mag(__u32 cls)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return cls < ARN_CLASSES ? arn_empty_mag(ARN_HERE, r, bpf_get_smp_processor_id(), cls) : 0;
}

__weak __u32 arn__fill(__u32 cls, __u32 m)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return cls < ARN_CLASSES ? arn_fill(ARN_HERE, r, bpf_get_smp_processor_id(), cls, m) : 0;
}

__weak __u32 arn__share(__u32 cls, __u32 m, __u32 n)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return cls < ARN_CLASSES ? arn_share(ARN_HERE, r, cls, m, n) : 0;
}

/* An object from the slabs; what is left of the stretch goes to the depot. */
static arn_inline __u32 arn_refill_here(__u32 cls)
{
	__u32 m = arn__empty_mag(cls), n = arn__fill(cls, m);

	return m ? arn__share(cls, m, n) : n;
}

/* An object from the depot, past a cache that is busy. */
__weak __u32 arn__bypass(__u32 cls)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	arn_inc64_relaxed(&r->fail[ARN_FAIL_BYPASS]);
	return cls < ARN_CLASSES ? arn_depot_one(ARN_HERE, r, bpf_get_smp_processor_id(), cls) : 0;
}

__weak int arn__more_slabs(__u32 cls)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return cls < ARN_CLASSES ? arn_more_slabs(ARN_HERE, r, bpf_get_smp_processor_id(), cls) : 0;
}

__weak int arn__more_mags(__u32 cls)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return cls < ARN_CLASSES ? arn_more_mags(ARN_HERE, r, bpf_get_smp_processor_id(), cls) : 0;
}

__weak __u32 arn__large(__u32 pages, __u32 align)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	if (!align)
		return 0;
	return arn_large_alloc(ARN_HERE, r, bpf_get_smp_processor_id(), pages, align);
}

/*
 * One page of root.pending: 1, or 0: there is none, or the lock is held.  The loop is the callers'
 * (arn__settle): around one in here, 6.12's verifier tells turns apart by what they leave in dead
 * registers and stack slots (132,000 instructions).
 */
__weak int arn__settle_one(void)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	if (!arn_load_relaxed(&r->pending) || !arn_lock(r, bpf_get_smp_processor_id()))
		return 0;
	arn_settle_one(ARN_HERE, r);
	arn_unlock(r);
	return 1;
}

/* All of them, or as many as the kernel's patience allows. */
static arn_inline int arn__settle(void)
{
	while (arn__settle_one() && arn_may_loop)
		;
	return 0;
}

/* Checked heaps: an object as its user shall have it. */
__weak int arn__dress(__u32 cls, __u32 off, __u32 size)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	arn_dress(ARN_HERE, r, cls, off, size, arn_slot(ARN_HERE, bpf_get_smp_processor_id())->tag);
	return 0;
}

/* Checked heaps: a small object comes back. */
__weak int arn__checked_free(__u32 cls, __u32 off)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return arn_checked_free(ARN_HERE, r, bpf_get_smp_processor_id(), cls, off, arn_state(ARN_HERE, r, off));
}

/* Checked heaps: a large one.  0, or -EINVAL: somebody freed it in this instant. */
__weak int arn__undress(__u32 off)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return arn_undress(ARN_HERE, r, ARN_CLASSES, off) ? 0 : -ARN_EINVAL;
}

/* Checked heaps: this CPU's quarantine goes back to the slabs. */
__weak int arn__release(void)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	arn_quarantine_drain(ARN_HERE, r, bpf_get_smp_processor_id());
	return 0;
}

__weak int arn_set_tag(__u32 tag)
{
	arn_name_arena();
	arn_slot(ARN_HERE, bpf_get_smp_processor_id())->tag = tag;
	return 0;
}

/* This CPU's magazines of a class to the depot.  -EAGAIN: the cache is in use. */
__weak int arn__drain(__u32 cls)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return -ARN_EINVAL;
	return arn_cache_drain(ARN_HERE, r, bpf_get_smp_processor_id(), cls) ? 0 : -ARN_EAGAIN;
}

/* A magazine from the depot, from slot on: slot << 32 | its offset, which is 0 at the end. */
__weak __u64 arn__depot_take(__u32 cls, __u32 slot)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 m;

	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return 0;
	m = arn_depot_take(ARN_HERE, r, cls, &slot);
	return (__u64)slot << 32 | m;
}

__weak int arn__mag_empty(__u32 cls, __u32 m)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return cls < ARN_CLASSES && arn_mag_empty(ARN_HERE, r, cls, m);
}

/* Empty slabs of a class back to the page runs. */
__weak int arn__retire(__u32 cls)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return -ARN_EINVAL;
	return arn_class_retire(ARN_HERE, r, bpf_get_smp_processor_id(), cls);
}

/* Pages of empty magazines likewise. */
__weak int arn__retire_mags(__u32 cls)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return -ARN_EINVAL;
	return arn_mags_retire(ARN_HERE, r, bpf_get_smp_processor_id(), cls);
}

/* An object that was set aside for who cannot have the lock. */
__weak __u32 arn__emergency(__u32 cls)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return cls < ARN_CLASSES ? arn_emergency_take(ARN_HERE, r, cls) : 0;
}

__weak __u32 arn__emergency_hole(void)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return arn_emergency_hole(ARN_HERE, r);
}

__weak int arn__emergency_put(__u32 off)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	arn_emergency_put(ARN_HERE, r, off);
	return 0;
}

__weak int arn__emergency_release(__u32 cls)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	if (cls < ARN_CLASSES)
		arn_emergency_release(ARN_HERE, r, cls);
	return 0;
}

/* At a slow path's end: fills up what was taken from the emergency reserves meanwhile. */
static arn_inline void arn_restock(struct arn_root __arena *r)
{
	__u32 at;

	while (arn_unlikely(arn_load_relaxed(&r->emergency_low)) && arn_may_loop) {
		at = arn__emergency_hole();
		if (at > ARN_EMERGENCY_CARVE)
			at = arn__more_slabs(at - ARN_EMERGENCY_CARVE - 1);
		if (!at)
			continue;
		at = arn__fill(at - 1, 0);
		if (!at)
			break;
		arn__emergency_put(at);
	}
}

/* Cached memory back to page runs, but for the emergency reserves. */
static arn_inline void arn_reclaim(struct arn_root __arena *r)
{
	__u64 at;
	__u32 cls;

	arn_inc64_relaxed(&r->fail[ARN_FAIL_RECLAIM]);
	if (arn_is_checked(r))
		arn__release();
	for (cls = arn_opaque(0u); cls < ARN_CLASSES && arn_may_loop; cls++) {
		arn__drain(cls);
		for (at = arn__depot_take(cls, 0); (__u32)at && arn_may_loop; at = arn__depot_take(cls, at >> 32))
			if (!arn__mag_empty(cls, at))
				break;
		arn__settle();
		arn__retire(cls);
		arn__retire_mags(cls);
	}
	arn__settle();
}

/* In an object that maps memory itself, that comes before reclaiming, and both after this (arn_alloc_more). */
#ifdef ARN_PAGES_ANY_CONTEXT
#define ARN_SLOW_TURNS 2
#else
#define ARN_SLOW_TURNS 4
#endif

/* These too: the very last. */
static arn_inline void arn_reclaim_emergency(void)
{
	__u32 cls;

	for (cls = arn_opaque(0u); cls < ARN_CLASSES && arn_may_loop; cls++) {
		arn__emergency_release(cls);
		arn__settle();
		arn__retire(cls);
	}
	arn__settle();
}

/*
 * Past the cache: an object of a class, or (ARN_CLASSES) pages.  Reclaims before it says no; on top of
 * the lock's holder, which makes all of that impossible, asks depot and emergency reserve.  Returns an
 * offset, or 0, counted.
 */
static arn_inline __u32 arn_slow_alloc(struct arn_root __arena *r, __u32 cls, __u32 bypass, __u32 pages, __u32 align)
{
	__u32 off = 0, turn;

	if (bypass)
		off = arn__bypass(cls);
	if (arn_lock_below(r, bpf_get_smp_processor_id())) {
		if (!off)
			off = arn__emergency(cls);
		if (!off)
			arn_inc64_relaxed(&r->fail[ARN_FAIL_NESTED]);
		return off;
	}
	if (!bypass && cls < ARN_CLASSES && !arn_has_empty_mag(ARN_HERE, r, bpf_get_smp_processor_id(), cls))
		arn__more_mags(cls);
	for (turn = arn_opaque(0u); !off && turn < ARN_SLOW_TURNS && arn_may_loop; turn++) {
		if (turn == 0 && arn_load_relaxed(&r->pending))
			arn__settle();
		/* Reclaiming is long, and vain where a holder elsewhere has lost its (virtual) CPU. */
		if (turn == 3 || (turn == 2 && arn_load_relaxed(&r->lock)))
			off = arn__emergency(cls);
		if (off)
			break;
		if (turn == 2)
			arn_reclaim(r);
		if (turn == 3)
			arn_reclaim_emergency();
		if (turn && cls < ARN_CLASSES)
			arn__more_slabs(cls);
		off = cls < ARN_CLASSES ? arn_refill_here(cls) : arn__large(pages, align);
	}
	if (!off && ARN_SLOW_TURNS > 2)
		arn_inc64_relaxed(&r->fail[ARN_FAIL_NOMEM]);
	if (arn_emergency_short(ARN_HERE, cls))
		arn_emergency_want(r, cls);
	arn_restock(r);
	return off;
}

#define ARN_BUSY_HERE 1u /* arn__pop: no offset is 1 */

/* What was no hit: from another magazine.  ARN_BUSY_HERE: whom this interrupted is at the cache. */
__weak __u32 arn__pop(__u32 cls)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	_Bool bypass = 0;
	__u32 off;

	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return 0;
	off = arn_cache_pop(ARN_HERE, r, arn_cache(ARN_HERE, bpf_get_smp_processor_id(), cls), cls, &bypass);
	return bypass ? ARN_BUSY_HERE : off;
}

#define ARN_PERCPU 3u /* as an alignment: size is the class of a per-CPU object */

/* Everything but a hit.  align: a power of two, 0, or ARN_PERCPU. */
__weak __u64 arn__alloc_rest(__u64 size, __u64 align)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 off = 0, pages = 0, cls;

	arn_name_arena();
	if (!arn_has_heap(r))
		return 0;
	if (align == ARN_PERCPU) {
		cls = size;
		align = arn_opaque(0ull); /* or the verifier would walk the rest twice */
	} else {
		cls = arn_class_aligned(r, size, align ? align : 1);
	}
	if (cls >= ARN_CLASSES && (size > r->arena_bytes / 2 || align > r->arena_bytes / 2)) {
		arn_inc64_relaxed(&r->fail[ARN_FAIL_SIZE]);
		return 0;
	}
	if (arn_is_checked(r)) {
		size += !size; /* a minimal object has a byte to guard */
		if (cls < ARN_PLAIN_CLASSES)
			cls = arn_class_aligned(r, size + sizeof(struct arn_trailer), arn_checked_align(size, align));
		pages = arn_large_pages(size + sizeof(struct arn_trailer));
	} else {
		pages = arn_large_pages(size);
		if (cls < ARN_CLASSES)
			off = arn__pop(cls);
	}
	if (off <= ARN_BUSY_HERE)
		off = arn_slow_alloc(r, cls, off == ARN_BUSY_HERE, pages, arn_large_align(size, align));
	if (off && arn_is_checked(r) && !arn_class_percpu(cls))
		arn__dress(cls, off, size);
	if (off && cls < ARN_CLASSES)
		*arn_state(ARN_HERE, r, off) = arn_state_for(r, cls);
	size = off ? r->base | off : 0;
	/* Here, where nothing else is kept over the call. */
	if (arn_unlikely(arn_below_low(r)))
		arn__ask();
	return size;
}

#include "any_bpf.h"

__weak __u64 arn__malloc(__u64 size)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 cls, off;
	__u64 p;

	arn_name_arena();
	if (arn_likely(size <= ARN_MAX_CLASSED)) {
		cls = arn_class_of(r, size);
		if (arn_likely(arn_hit_malloc(r, cls, &p)))
			return p;
		/* Another magazine: what a hit costs on average depends on how short this way is. */
		off = arn_is_checked(r) ? 0 : arn__pop(cls);
		if (arn_likely(off > ARN_BUSY_HERE)) {
			arn_store_relaxed(arn_state(ARN_HERE, r, off), cls + 1);
			return r->base | off;
		}
	}
	return arn_alloc_more(r, size, 0);
}

__weak __u64 arn__aligned_alloc(__u64 align, __u64 size)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	if (!align || align & (align - 1)) {
		if (arn_has_heap(r))
			arn_inc64_relaxed(&r->fail[ARN_FAIL_SIZE]);
		return 0;
	}
	return arn_alloc_more(r, size, align);
}

/* The cold ends of a free: a pointer that is none, a large object, a cache that would not take it. */
__weak int arn__free_slow(__u64 ptr, __u32 why)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 off = ptr;

	arn_name_arena();
	if (!arn_has_heap(r))
		return -ARN_EINVAL;
	if (why == ARN_FAIL_COUNT)
		why = arn_why_not(ARN_HERE, r, off);
	return why < ARN_FAIL_COUNT ? arn_refuse(r, ptr, why) : -ARN_EINVAL;
}

__weak int arn__free_large(__u64 ptr)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return arn_large_free(ARN_HERE, r, ptr);
}

/* What was no hit: into another magazine, else straight into the slab. */
__weak int arn__push(__u32 cls, __u32 off)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return 0;
	return arn_cache_push(ARN_HERE, r, arn_cache(ARN_HERE, bpf_get_smp_processor_id(), cls), cls, off,
			      arn_state(ARN_HERE, r, off));
}

__weak int arn__put(__u32 off)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	arn_store_relaxed(arn_state(ARN_HERE, r, off), 0);
	arn_slab_put(ARN_HERE, r, off);
	return 0;
}

/* Everything but a hit, for a small object that is one. */
static arn_inline int arn_free_rest(struct arn_root __arena *r, __u32 cls, __u32 off)
{
	if (arn_is_checked(r))
		return arn__checked_free(cls, off);
	if (arn__push(cls, off))
		return 0;
	/* It may want a magazine; a cache in use has its own. */
	if (arn_cache_busy(arn_cache(ARN_HERE, bpf_get_smp_processor_id(), cls)))
		arn_inc64_relaxed(&r->fail[ARN_FAIL_BYPASS]);
	else if (arn__more_mags(cls) && arn__push(cls, off))
		return 0;
	return arn__put(off);
}

__weak int arn__free(__u64 ptr)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 off, st, why;

	arn_name_arena();
	if (!ptr || arn_likely(arn_hit_free(r, ptr, 0, ARN_PLAIN_CLASSES)))
		return 0;
	off = arn_object(ARN_HERE, r, ptr, &st, &why);
	if (st - 1 < ARN_PLAIN_CLASSES)
		return arn_free_rest(r, st - 1, off);
	if (st != ARN_STATE_LARGE)
		return arn__free_slow(ptr, st ? ARN_FAIL_FOREIGN : why);
	if (arn_is_checked(r) && arn__undress(off))
		return -ARN_EINVAL;
	*arn_state(ARN_HERE, r, off) = 0;
	arn__free_large(ptr);
	return arn__settle();
}

__weak __u64 arn__usable_size(__u64 ptr)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 off, st, why;

	arn_name_arena();
	off = arn_object(ARN_HERE, r, ptr, &st, &why);
	if (st - 1 >= ARN_PLAIN_CLASSES && st != ARN_STATE_LARGE)
		return 0;
	if (arn_is_checked(r))
		return arn_trailer(ARN_HERE, off, arn_block(ARN_HERE, r, st - 1, off))->size;
	if (st - 1 < ARN_PLAIN_CLASSES)
		return r->cls[st - 1].size;
	if (st == ARN_STATE_LARGE)
		return (__u64)arn_desc(ARN_HERE, r, off >> ARN_PAGE_SHIFT)->npages << ARN_PAGE_SHIFT;
	return 0;
}

/* Objects are multiples of 16 bytes, so words will do.  Return how far they came. */
__weak __u64 arn__zero(__u64 ptr, __u64 bytes)
{
	__u64 i;

	arn_name_arena();
	for (i = arn_opaque(0ull); i < bytes && arn_may_loop; i += 8)
		*arn_ptr(ARN_HERE, __u64, ptr + i) = 0;
	return i;
}

__weak __u64 arn__copy(__u64 to, __u64 from, __u64 bytes)
{
	__u64 i;

	arn_name_arena();
	for (i = arn_opaque(0ull); i < bytes && arn_may_loop; i += 8)
		*arn_ptr(ARN_HERE, __u64, to + i) = *arn_ptr(ARN_HERE, __u64, from + i);
	return i;
}

#include "bulk_bpf.h"
#include "grow_bpf.h"
#include "ring_bpf.h"
#ifndef ARN_GROWS_ITSELF
#include "later_bpf.h"
#endif
#include "percpu_bpf.h"

#endif
