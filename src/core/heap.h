/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * heap.h - allocate and free, put together from the layers below.
 *
 *   allocate: slot cache -> depot -> refill (slabs, page runs) -> [native: grow] -> reclaim -> NULL
 *                                 \-> on top of the lock's holder: emergency reserve -> NULL
 *   free:     state byte -> slot cache -> depot -> spill (a new page of magazines) -> slab
 *
 * The first two steps are the fast path; each of the others is a function of its own that never
 * touches the slot's cache, so it may be interrupted anywhere by anything that allocates.
 *
 * Reclaim turns cached memory into page runs: this slot's caches and the whole depot go back to
 * the slabs, empty slabs to the runs; and if that is not enough, the emergency reserves.  So an
 * allocation fails while mapped memory is left only for what other slots cache: at most two magazines
 * (32 KiB each) a class and slot.
 */
#ifndef ARN_HEAP_H
#define ARN_HEAP_H

#include "directory.h"
#include "emergency.h"
#include "magazine.h"

#define ARN_RECLAIM_MAGS (1u << 20)

static arn_inline __u8 __arena *arn_state(arn_base b, struct arn_root __arena *r, __u32 off)
{
	return arn_ptr(b, __u8, r->state_bias + (off >> ARN_GRANULE_SHIFT));
}

/* Classes of a checked heap have none; where the caches of its per-CPU ones would be is its quarantine. */
static arn_inline _Bool arn_has_caches(struct arn_root __arena *r, __u32 cls)
{
	return arn_load_relaxed(&r->cls[cls].cap) != 0;
}

/* Pages of a large object; an aligned one of 0 bytes counts as 1. */
static arn_inline __u32 arn_large_pages(__u64 size)
{
	return (__u32)((size + !size + ARN_PAGE_SIZE - 1) >> ARN_PAGE_SHIFT);
}

/* Pages in root.pending are looked after; whoever is about to ask slabs or runs does this first. */
static arn_inline void arn_settle_pending(arn_base b, struct arn_root __arena *r, __u32 slot)
{
	if (arn_load_relaxed(&r->pending) && arn_lock(r, slot)) {
		arn_settle(b, r);
		arn_unlock(r);
	}
}

/* A page of magazines for a class's depot.  False: no memory, or no lock. */
static arn_inline _Bool arn_more_mags(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 cls)
{
	__u32 page = 0;

	if (arn_lock(r, slot)) {
		page = arn_mags_new(b, r, cls);
		arn_unlock(r);
	}
	if (!page)
		return 0;
	arn_mags_give(b, r, cls, page);
	return 1;
}

/* A slab for a class's partial list: the class + 1; 0: no memory, or no lock. */
static arn_inline __u32 arn_more_slabs(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 cls)
{
	__u32 pg = 0;

	if (arn_lock(r, slot)) {
		pg = arn_slab_new(b, r, cls);
		arn_unlock(r);
	}
	return pg ? cls + 1 : 0;
}

/* An empty magazine to be filled, from near or far; 0: none. */
static arn_inline __u32 arn_empty_mag(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 cls)
{
	if (!arn_has_caches(r, cls))
		return 0;
	if (arn_class_percpu(cls))
		arn_percpu_mark(r, cls);
	if (slot == ARN_NO_SLOT)
		return arn_depot_pop(b, &r->depot[cls].empty);
	return arn_take_empty(b, &r->depot[cls], arn_cache(b, slot, cls));
}

/* Whether a refill will find an empty magazine, or needs none. */
static arn_inline _Bool arn_has_empty_mag(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 cls)
{
	return !arn_has_caches(r, cls) || arn_depot_has(&r->depot[cls].empty) ||
	       (slot != ARN_NO_SLOT && arn_depot_has(&arn_cache(b, slot, cls)->near_empty));
}

/*
 * Fills the empty magazine at m from the slabs in one visit to the lock.  Returns how many objects it
 * then holds; 0: the slabs are spent.  With m = 0 takes one object and returns its offset.
 */
static arn_inline __u32 arn_fill(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 cls, __u32 m)
{
	__u32 n = arn_opaque(0u), want = m ? arn_load_relaxed(&r->cls[cls].cap) : 1, head, off = 0;

	if (want > ARN_MAG_OBJS)
		want = ARN_MAG_OBJS;
	if (!arn_lock(r, slot))
		return 0;
	/* Each turn takes an object or the slab off the list. */
	while (n < want && (head = r->depot[cls].partial) && arn_may_loop)
		n = arn_slab_take(b, r, cls, head, m, n, want, &off);
	arn_unlock(r);
	return m ? n : off;
}

/* One of the n objects in the magazine at m, which then goes to the depot; 0: it has none. */
static arn_inline __u32 arn_share(arn_base b, struct arn_root __arena *r, __u32 cls, __u32 m, __u32 n)
{
	__u32 off = 0;

	if (n) {
		n--;
		off = arn_load_relaxed(&arn_mag(b, m)->obj[n & 127]);
	}
	arn_depot_give(b, r, cls, m, n);
	return off;
}

/*
 * The depot had nothing for a class: fills a magazine from the slabs, hands it to the depot and returns
 * one object, or 0: the slabs are spent.  Without an empty magazine takes just one.
 */
static arn_inline __u32 arn_refill(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 cls)
{
	__u32 m = arn_empty_mag(b, r, slot, cls), n = arn_fill(b, r, slot, cls, m);

	return m ? arn_share(b, r, cls, m, n) : n;
}

/* A page run as one object, its address a multiple of align pages.  Returns its offset, or 0. */
static arn_inline __u32 arn_large_alloc(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 n, __u32 align)
{
	struct arn_page __arena *d;
	__u32 pg = 0;

	if (arn_lock(r, slot)) {
		pg = arn_run_alloc(b, r, n, align);
		if (pg) {
			d = arn_desc(b, r, pg);
			arn_store_relaxed(&d->kind, ARN_PG_LARGE);
			arn_store_relaxed(&d->head, pg);
			d->npages = n;
		}
		arn_unlock(r);
	}
	if (pg)
		arn_store_relaxed(arn_state(b, r, pg << ARN_PAGE_SHIFT), ARN_STATE_LARGE);
	return pg << ARN_PAGE_SHIFT;
}

/* The state byte is cleared already. */
static arn_inline int arn_large_free(arn_base b, struct arn_root __arena *r, __u32 off)
{
	__u32 pg = off >> ARN_PAGE_SHIFT;
	struct arn_page __arena *d = arn_desc(b, r, pg);

	if (arn_load_relaxed(&d->kind) != ARN_PG_LARGE) {
		arn_inc64_relaxed(&r->fail[ARN_FAIL_CORRUPT]);
		return -ARN_EINVAL;
	}
	arn_run_drop(b, r, pg);
	return 0;
}

/* This slot's magazines of a class go to the depot.  False: the cache is in use. */
static arn_inline _Bool arn_cache_drain(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 cls)
{
	struct arn_cache __arena *c = arn_cache(b, slot, cls);
	__u32 i, top;

	if (!arn_has_caches(r, cls))
		return 1;
	top = arn_claim(c);
	if (top == ARN_CACHE_BUSY)
		return 0;
	arn_store_relaxed(&c->room, 0);
	for (i = arn_opaque(0u); i < 3; i++) { /* (a spent patience would lose a magazine here) */
		if (top)
			arn_depot_give(b, r, cls, arn_top_mag(top), arn_top_count(top));
		top = i ? c->parked : c->prev;
		if (i)
			arn_store_relaxed(&c->parked, 0);
		else
			arn_store_relaxed(&c->prev, 0);
	}
	arn_unclaim(c, 0);
	return 1;
}

/* What lies near a slot goes to the class's stacks: its owner leaves. */
static arn_inline void arn_near_release(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 cls)
{
	struct arn_cache __arena *c = arn_cache(b, slot, cls);
	__u32 m, i;

	if (!arn_has_caches(r, cls))
		return;
	/* (Bounded: in a corrupt heap they may be rings.) */
	for (i = arn_opaque(0u); i < ARN_NEAR_MOST && arn_may_loop && (m = arn_depot_pop(b, &c->near_full)); i++)
		arn_depot_give(b, r, cls, m, arn_mag_count(b, m));
	for (i = arn_opaque(0u); i < ARN_NEAR_MOST && arn_may_loop && (m = arn_depot_pop(b, &c->near_empty)); i++)
		arn_depot_give(b, r, cls, m, 0);
	arn_store_relaxed(&c->near_n, 0);
	arn_store_relaxed(&c->near_empty_n, 0);
}

/*
 * A magazine out of the depot of a class, for reclaim: from near a slot, whoever's, from *slot on, else
 * a full one of the class's own.  Returns its offset, or 0.
 */
static arn_inline __u32 arn_depot_take(arn_base b, struct arn_root __arena *r, __u32 cls, __u32 *slot)
{
	__u32 m, i, slots = arn_load_relaxed(&r->slots_used);
	__u64 step;

	if (slots > r->nslots)
		slots = r->nslots;
	if (!arn_has_caches(r, cls))
		slots = 0;
	for (i = arn_opaque(*slot); i < slots && arn_may_loop; i++) {
		*slot = i;
		step = i < r->ncpus ? ARN_STACK_TAG_ONE : 0;
		m = arn_stack_pop(b, &arn_cache(b, i, cls)->near_full, step);
		if (!m)
			m = arn_stack_pop(b, &arn_cache(b, i, cls)->near_empty, step);
		if (m)
			return m;
	}
	*slot = slots;
	return arn_depot_pop(b, &r->depot[cls].full);
}

/* Its objects go back to their slabs, itself to the class's stacks.  False: it was cut short. */
static arn_inline _Bool arn_mag_empty(arn_base b, struct arn_root __arena *r, __u32 cls, __u32 m)
{
	__u32 n = arn_mag_flush(b, r, m, arn_mag_count(b, m));

	arn_depot_give(b, r, cls, m, n);
	return !n;
}

/* The depot's objects of a class go back to the slabs, what lies near slots included. */
static arn_inline void arn_depot_drain(arn_base b, struct arn_root __arena *r, __u32 cls)
{
	__u32 m, i, slot = 0;

	for (i = 0; i < ARN_RECLAIM_MAGS; i++) {
		m = arn_depot_take(b, r, cls, &slot);
		if (!m || !arn_mag_empty(b, r, cls, m))
			break;
	}
}

/* Empty slabs of a class go back to the page runs.  Returns pages given back. */
static arn_inline __u32 arn_class_retire(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 cls)
{
	__u32 pages = 0;

	if (arn_lock(r, slot)) {
		if (arn_class_percpu(cls))
			arn_percpu_unmark(r, cls);
		pages = arn_slab_retire(b, r, cls);
		arn_unlock(r);
	}
	return pages;
}

/*
 * Pages of magazines that lie empty in the depot, all eight of them, go back to the page runs.  A
 * pop that read such a magazine's link before fails on the tag.  Between the depot and a decision a
 * magazine hangs in depot.retiring (linked by tag), where a loop that is cut short leaves it to the
 * next call; nfree counts a page's magazines there, listed says that all of them were.
 */
static arn_inline __u32 arn_mags_retire(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 cls)
{
	struct arn_depot __arena *k = &r->depot[cls];
	struct arn_page __arena *d;
	__u32 m, i, pages = 0;

	if (!arn_lock(r, slot))
		return 0;
	for (i = arn_opaque(0u); i < ARN_RECLAIM_MAGS && arn_may_loop; i++) {
		m = arn_depot_pop(b, &k->empty);
		if (!m)
			break;
		d = arn_desc(b, r, m >> ARN_PAGE_SHIFT);
		if (!arn_page_valid(r, m >> ARN_PAGE_SHIFT) || d->kind != ARN_PG_MAGS) {
			arn_inc64_relaxed(&r->fail[ARN_FAIL_CORRUPT]);
			break;
		}
		d->nfree++;
		if (d->nfree == ARN_MAG_PER_PAGE)
			d->listed = 1;
		arn_store_relaxed(&arn_mag(b, m)->tag, k->retiring);
		k->retiring = m;
	}
	for (i = arn_opaque(0u); i < ARN_RECLAIM_MAGS && arn_may_loop; i++) {
		m = k->retiring;
		if (!m)
			break;
		k->retiring = arn_load_relaxed(&arn_mag(b, m)->tag);
		d = arn_desc(b, r, m >> ARN_PAGE_SHIFT);
		d->nfree--;
		if (!d->listed) {
			arn_depot_give(b, r, cls, m, 0);
		} else if (!d->nfree) {
			d->listed = 0;
			arn_run_drop(b, r, m >> ARN_PAGE_SHIFT);
			arn_add64_full(&k->nmags, -(__u64)ARN_MAG_PER_PAGE);
			pages++;
		}
	}
	arn_unlock(r);
	return pages;
}

/* Counts a refused pointer and says -EINVAL. */
static arn_inline int arn_refuse(struct arn_root __arena *r, __u64 ptr, __u32 why)
{
	arn_inc64_relaxed(&r->fail[why]);
	arn_store_relaxed(&r->bad_ptr, ptr);
	return -ARN_EINVAL;
}

/* Why the object at off cannot be freed: its state byte is 0.  Cold. */
static arn_inline __u32 arn_why_not(arn_base b, struct arn_root __arena *r, __u32 off)
{
	__u32 pg = off >> ARN_PAGE_SHIFT, head, i;
	struct arn_page __arena *d = arn_desc(b, r, pg);

	if (arn_load_relaxed(arn_dir(b, off >> ARN_CHUNK_SHIFT)) != ARN_CHUNK_MAPPED)
		return ARN_FAIL_FOREIGN;
	if (d->kind == ARN_PG_SLAB || d->kind == ARN_PG_BODY) {
		__u32 size = d->cls < ARN_CLASSES ? r->cls[d->cls].size : 0, in = off - (d->head << ARN_PAGE_SHIFT);

		if (!size)
			return ARN_FAIL_CORRUPT;
		if (in / size >= r->cls[d->cls].nobj)
			return ARN_FAIL_FOREIGN;
		return in % size ? ARN_FAIL_INTERIOR : ARN_FAIL_DOUBLE;
	}
	if (d->kind == ARN_PG_FREE || d->kind == ARN_PG_DEAD)
		return ARN_FAIL_DOUBLE;
	if (d->kind == ARN_PG_MAGS)
		return ARN_FAIL_FOREIGN;
	if (d->kind == ARN_PG_LARGE)
		return off & (ARN_PAGE_SIZE - 1) ? ARN_FAIL_INTERIOR : ARN_FAIL_DOUBLE;
	/* Inside a large object, or of nobody: look for the first page of the run. */
	for (i = arn_opaque(1u); i < (1u << 20) && arn_page_valid(r, pg - i) && arn_may_loop; i++) {
		if (arn_load_relaxed(arn_dir(b, (pg - i) >> (ARN_CHUNK_SHIFT - ARN_PAGE_SHIFT))) != ARN_CHUNK_MAPPED)
			break;
		d = arn_desc(b, r, pg - i);
		if (d->kind == ARN_PG_NONE)
			continue;
		head = d->head;
		if (d->kind == ARN_PG_LARGE && head == pg - i && pg - head < d->npages)
			return ARN_FAIL_INTERIOR;
		/* Another CPU's copy of a per-CPU object. */
		if (d->kind == ARN_PG_SLAB && head == pg - i && d->cls < ARN_CLASSES && pg - head < r->cls[d->cls].run)
			return ARN_FAIL_INTERIOR;
		if (d->kind == ARN_PG_FREE && head == pg - i && pg - head < d->npages)
			return ARN_FAIL_DOUBLE;
		break;
	}
	return ARN_FAIL_FOREIGN;
}

/*
 * Offset of a pointer that says it is an allocated object, and its state byte; 0: it is none, and
 * *why says so.  The upper half of a pointer is the base's, or 0.
 */
static arn_inline __u32 arn_object(arn_base b, struct arn_root __arena *r, __u64 ptr, __u32 *st, __u32 *why)
{
	__u32 off = (__u32)ptr;

	*st = 0;
	*why = ARN_FAIL_FOREIGN;
	if (arn_unlikely(ptr >> 32 && (ptr ^ r->base) >> 32))
		return 0;
	/* Rotated, a misaligned offset is a granule beyond any heap: one comparison for both. */
	if (arn_unlikely((off >> ARN_GRANULE_SHIFT | off << (32 - ARN_GRANULE_SHIFT)) - r->first_granule >=
			 r->ngranules)) {
		if (arn_page_valid(r, off >> ARN_PAGE_SHIFT))
			*why = ARN_FAIL_MISALIGNED;
		return 0;
	}
#ifdef ARN_UNMAPPED_FAULTS
	*why = ARN_FAIL_FOREIGN;
	if (arn_load_relaxed(arn_dir(b, off >> ARN_CHUNK_SHIFT)) != ARN_CHUNK_MAPPED)
		return 0;
#endif
	*why = ARN_FAIL_COUNT; /* ask arn_why_not */
	*st = arn_load_relaxed(arn_state(b, r, off));
	return off;
}

/* Alignment in pages of a large object: natural for powers of two, else one page. */
static arn_inline __u32 arn_large_align(__u64 size, __u64 align)
{
	__u64 nat = size & (size - 1) ? 0 : size;

	if (align < nat)
		align = nat;
	return align > ARN_PAGE_SIZE ? (__u32)(align >> ARN_PAGE_SHIFT) : 1;
}

/*
 * The class that serves a size at an alignment (a power of two), or ARN_CLASSES: a page run must.
 * A class aligns its objects to the largest power of two in its size, up to 32 KiB.
 */
static arn_inline __u32 arn_class_aligned(struct arn_root __arena *r, __u64 size, __u64 align)
{
	__u32 cls;

	if (size > ARN_MAX_CLASSED || align > ARN_MAX_CLASSED)
		return ARN_CLASSES;
	size += !size;
	cls = arn_class_of(r, size);
	if (cls >= ARN_CLASSES || !(r->cls[cls].size & (align - 1)))
		return cls;
	/* size rounded up to a multiple of align may have it; the power of two always does. */
	size = (size + align - 1) & ~(align - 1);
	if (size > ARN_MAX_CLASSED)
		return ARN_CLASSES;
	cls = arn_class_of(r, size);
	if (cls >= ARN_CLASSES || !(r->cls[cls].size & (align - 1)))
		return cls;
	size = 1ULL << (arn_log2(r, size) + 1);
	return size > ARN_MAX_CLASSED ? ARN_CLASSES : arn_class_of(r, size);
}

#endif
