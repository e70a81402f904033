/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * magazine.h - slot caches and the depot (Bonwick, Adams 2001).
 *
 *      slot                        depot, per class
 *   +--------+                  full  -> [m]->[m]->[m]
 *   | loaded |  <- whole         ^         whole magazines by one compare-and-swap
 *   | prev   |     magazines ->  v
 *   +--------+                  empty -> [m]->[m]
 *
 * A pop or push touches only the slot: under the guard, with busy set.  Whoever finds busy set (an
 * interrupt, an NMI, a signal handler on the interrupted owner) goes past the cache: to the depot to
 * allocate, to the slab to free.  There is no atomic instruction on that path.
 *
 * The depot's heads are {index, tag}: the tag counts every change, so a pop that slept between
 * reading the head and its compare-and-swap fails (ABA; Treiber 1986, IBM 1983).  Reading the link
 * of a magazine that somebody else has popped meanwhile is harmless: magazine pages stay readable.
 *
 * An exchange needs no memory.  A push that gives up after ARN_DEPOT_TRIES parks the magazine in the
 * slot; the next exchange tries again before it does anything else.
 */
#ifndef ARN_MAGAZINE_H
#define ARN_MAGAZINE_H

#include "slab.h"

#define ARN_DEPOT_TRIES	 64u /* every lost turn is somebody else's progress */
#define ARN_DEPOT_INSIST 65536u /* where there is no slot to park in */

static arn_inline struct arn_slot __arena *arn_slot(arn_base b, __u32 slot)
{
	return arn_ptr(b, struct arn_slot, ARN_SLOTS_OFF + (slot << ARN_SLOT_SHIFT));
}

static arn_inline struct arn_mag __arena *arn_mag(arn_base b, __u32 off)
{
	return arn_ptr(b, struct arn_mag, off);
}

/* Pushes the magazine at off, which holds n objects. */
static arn_inline _Bool arn_depot_push(arn_base b, __u64 __arena *head, __u32 off, __u32 n, __u32 tries)
{
	struct arn_mag __arena *m = arn_mag(b, off);
	__u64 old, new;
	__u32 i;

	arn_store_relaxed(&m->n, n);
	for (i = arn_opaque(0u); i < tries && arn_may_loop; i++) {
		old = arn_load_relaxed(head);
		arn_store_relaxed(&m->next, (__u32)(old & ARN_STACK_IDX_MASK));
		new = ((old & ~ARN_STACK_IDX_MASK) + ARN_STACK_TAG_ONE) | (off >> ARN_MAG_SHIFT);
		if (arn_cas64_full(head, old, new) == old)
			return 1;
	}
	arn_inc64_relaxed(&arn_root(b)->fail[ARN_FAIL_PUSH]);
	return 0;
}

/* Pops a magazine's offset, or 0. */
static arn_inline __u32 arn_depot_pop(arn_base b, __u64 __arena *head)
{
	__u64 old, new;
	__u32 off, i;

	for (i = arn_opaque(0u); i < ARN_DEPOT_TRIES && arn_may_loop; i++) {
		old = arn_load_relaxed(head);
		off = (__u32)(old & ARN_STACK_IDX_MASK) << ARN_MAG_SHIFT;
		if (!off)
			return 0;
		new = ((old & ~ARN_STACK_IDX_MASK) + ARN_STACK_TAG_ONE) |
		      (arn_load_relaxed(&arn_mag(b, off)->next) & ARN_STACK_IDX_MASK);
		if (arn_cas64_full(head, old, new) == old)
			return off;
	}
	arn_inc64_relaxed(&arn_root(b)->fail[ARN_FAIL_POP]);
	return 0;
}

static arn_inline _Bool arn_depot_has(__u64 __arena *head)
{
	return (arn_load_relaxed(head) & ARN_STACK_IDX_MASK) != 0;
}

/* Where nothing can be parked.  Returns 0, or -EAGAIN (counted; the magazine is lost until reload). */
static arn_inline void arn_depot_give(arn_base b, struct arn_root __arena *r, __u32 cls, __u32 off, __u32 n)
{
	arn_depot_push(b, n ? &r->depot[cls].full : &r->depot[cls].empty, off, n, ARN_DEPOT_INSIST);
}

/* Objects in a magazine that came out of the depot; a corrupt count is none. */
static arn_inline __u32 arn_mag_count(arn_base b, __u32 off)
{
	__u32 n = arn_load_relaxed(&arn_mag(b, off)->n);

	return n > ARN_MAG_OBJS ? 0 : n;
}

/* The owner's, under the guard: a parked magazine goes to the depot.  Is the parking place free? */
static arn_inline _Bool arn_unpark(arn_base b, struct arn_depot __arena *d, struct arn_cache __arena *c)
{
	if (arn_likely(!c->parked))
		return 1;
	if (!arn_depot_push(b, c->parked_n ? &d->full : &d->empty, c->parked, c->parked_n, ARN_DEPOT_TRIES))
		return 0;
	c->parked = 0;
	return 1;
}

/*
 * Under the guard, loaded is spent: makes a magazine with objects the loaded one.  Returns how many
 * it holds; 0: the depot has none.
 */
static arn_inline __u32 arn_cache_load(arn_base b, struct arn_root __arena *r, struct arn_cache __arena *c, __u32 cls)
{
	struct arn_depot __arena *d = &r->depot[cls];
	__u32 m = c->loaded, spare = c->prev, n = c->prev_n;

	if (n) {
		c->loaded = spare;
		c->prev = m;
		arn_store_relaxed(&c->prev_n, 0);
		return n;
	}
	if (!arn_unpark(b, d, c))
		return 0;
	m = arn_depot_pop(b, &d->full);
	if (!m)
		return 0;
	n = arn_mag_count(b, m);
	if (c->loaded) {
		c->prev = c->loaded;
		if (spare && !arn_depot_push(b, &d->empty, spare, 0, ARN_DEPOT_TRIES)) {
			c->parked_n = 0;
			c->parked = spare;
		}
	}
	c->loaded = m;
	c->cap = r->cls[cls].cap;
	return n;
}

/* Under the guard, loaded is full: makes an empty magazine the loaded one; 0: the depot has none. */
static arn_inline _Bool arn_cache_unload(arn_base b, struct arn_root __arena *r, struct arn_cache __arena *c,
					 __u32 cls)
{
	struct arn_depot __arena *d = &r->depot[cls];
	__u32 m, full = c->prev, n = c->prev_n;

	if (full && !n) {
		c->prev = c->loaded;
		arn_store_relaxed(&c->prev_n, c->n);
		c->loaded = full;
		return 1;
	}
	if (!arn_unpark(b, d, c))
		return 0;
	m = arn_depot_pop(b, &d->empty);
	if (!m)
		return 0;
	if (c->loaded) {
		c->prev = c->loaded;
		arn_store_relaxed(&c->prev_n, c->n);
		if (full && !arn_depot_push(b, &d->full, full, n, ARN_DEPOT_TRIES)) {
			c->parked_n = n;
			c->parked = full;
		}
	}
	c->loaded = m;
	c->cap = r->cls[cls].cap;
	return 1;
}

/* Pops one object of a class from the slot's cache.  Returns its offset, or 0. */
static arn_inline __u32 arn_cache_pop(arn_base b, struct arn_root __arena *r, struct arn_cache __arena *c, __u32 cls,
				      _Bool *bypass)
{
	__u32 off = 0, n;

	*bypass = 0;
	if (arn_likely(arn_claim(&c->busy))) {
		n = c->n;
		if (arn_unlikely(!n))
			n = arn_cache_load(b, r, c, cls);
		if (arn_likely(n)) {
			n--;
			off = arn_load_relaxed(&arn_mag(b, c->loaded)->obj[n & 127]);
			arn_store_relaxed(&c->n, n);
		}
		arn_unclaim(&c->busy);
	} else {
		*bypass = 1;
	}
	return off;
}

/* Pushes a free object, whose state byte is at st, onto the slot's cache.  False: not taken. */
static arn_inline _Bool arn_cache_push(arn_base b, struct arn_root __arena *r, struct arn_cache __arena *c, __u32 cls,
				       __u32 off)
{
	_Bool done = 0;
	__u32 n;

	if (arn_likely(arn_claim(&c->busy))) {
		n = c->n;
		if (arn_likely(n < c->cap) || arn_cache_unload(b, r, c, cls)) {
			n = arn_unlikely(n >= c->cap) ? 0 : n;
			arn_store_relaxed(&arn_mag(b, c->loaded)->obj[n & 127], off);
			arn_store_relaxed(&c->n, n + 1);
			done = 1;
		}
		arn_unclaim(&c->busy);
	}
	return done;
}

/* Takes one object out of the depot, past the cache.  Returns its offset, or 0. */
static arn_inline __u32 arn_depot_one(arn_base b, struct arn_root __arena *r, __u32 cls)
{
	__u32 m = arn_depot_pop(b, &r->depot[cls].full), n, off = 0;

	if (!m)
		return 0;
	n = arn_mag_count(b, m);
	if (n) {
		n--;
		off = arn_load_relaxed(&arn_mag(b, m)->obj[n & 127]);
	}
	arn_depot_give(b, r, cls, m, n);
	return off;
}

/* Puts the objects of a magazine in nobody's hands into their slabs.  Returns how many are left. */
static arn_inline __u32 arn_mag_flush(arn_base b, struct arn_root __arena *r, __u32 m, __u32 n)
{
	while (n && n <= ARN_MAG_OBJS && arn_may_loop) {
		n--;
		arn_slab_put(b, r, arn_load_relaxed(&arn_mag(b, m)->obj[n & 127]));
	}
	return n;
}

/* Under lock: makes a page of magazines for a class.  Returns its offset, or 0. */
static arn_inline __u32 arn_mags_new(arn_base b, struct arn_root __arena *r, __u32 cls)
{
	__u32 pg = arn_run_take(b, r, 1, 1);
	struct arn_page __arena *d;

	if (!pg)
		return 0;
	d = arn_desc(b, r, pg);
	d->kind = ARN_PG_MAGS;
	d->cls = cls;
	d->head = pg;
	d->npages = 1;
	d->nfree = 0;
	return pg << ARN_PAGE_SHIFT;
}

/* Hands a new page's magazines to the depot. */
static arn_inline void arn_mags_give(arn_base b, struct arn_root __arena *r, __u32 cls, __u32 page)
{
	__u32 i;

	for (i = arn_opaque(0u); i < ARN_MAG_PER_PAGE && arn_may_loop; i++) {
		arn_store_relaxed(&arn_mag(b, page + (i << ARN_MAG_SHIFT))->cls, cls);
		arn_depot_give(b, r, cls, page + (i << ARN_MAG_SHIFT), 0);
	}
	arn_add64_full(&r->depot[cls].nmags, ARN_MAG_PER_PAGE);
}

#endif
