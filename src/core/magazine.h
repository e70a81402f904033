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
 * A pop or push touches only the slot, between claim and unclaim of its top.  Whoever finds it busy
 * (an interrupt, an NMI, a task that preempted another, a signal handler) goes past the cache: to the
 * depot to allocate, to the slab to free.
 *
 * The depot's heads are {index, tag}: the tag counts every change, so a pop that slept between
 * reading the head and its compare-and-swap fails (ABA; Treiber 1986, IBM 1983).  Reading the link
 * of a magazine that somebody else has popped meanwhile is harmless: magazine pages stay readable.
 *
 * Each slot has two stacks of its own before the class's (near_full, near_empty), so that objects and
 * magazines stay with the CPU whose caches know them; they are stacks like the others, and whoever
 * reclaims memory empties them too.  near_n and near_empty_n only bound them, and may be off.  Near a
 * thread's slot the tag counts what its owner does, and only that: a reclaimer takes the first magazine
 * and leaves the tag.  Nobody but the owner pushes there, so a first magazine that was taken cannot come
 * back under the same tag; and whether the owner, killed in the middle, still did its swap can be seen
 * from the tag (intent.h).
 *
 * An exchange needs no memory.  A push that gives up after ARN_DEPOT_TRIES parks the magazine in the
 * slot; the next exchange tries again before it does anything else.
 */
#ifndef ARN_MAGAZINE_H
#define ARN_MAGAZINE_H

#include "slab.h"

#ifndef ARN_DEPOT_TRIES /* a test has it vary */
#define ARN_DEPOT_TRIES 64u /* every lost turn is somebody else's progress */
#endif
#define ARN_DEPOT_INSIST 65536u /* where there is no slot to park in */

static arn_inline struct arn_slot __arena *arn_slot(arn_base b, __u32 slot)
{
	return arn_ptr(b, struct arn_slot, ARN_SLOTS_OFF + (slot << ARN_SLOT_SHIFT));
}

static arn_inline struct arn_cache __arena *arn_cache(arn_base b, __u32 slot, __u32 cls)
{
	return &arn_slot(b, slot)->cache[cls];
}

static arn_inline struct arn_mag __arena *arn_mag(arn_base b, __u32 off)
{
	return arn_ptr(b, struct arn_mag, off);
}

/* A top: that of the empty magazine is the entry before the first, and busy is none of a magazine's. */
#define ARN_TOP_MASK  (ARN_MAG_SIZE - 1)
#define ARN_TOP_EMPTY ((__u32) __builtin_offsetof(struct arn_mag, obj) - 4)

static arn_inline __u32 arn_top(__u32 m, __u32 n)
{
	return m + ARN_TOP_EMPTY + n * 4;
}

static arn_inline __u32 arn_top_mag(__u32 top)
{
	return top & ~ARN_TOP_MASK;
}

/* Objects in the loaded magazine.  No magazine, busy, corrupt: none. */
static arn_inline __u32 arn_top_count(__u32 top)
{
	__u32 n = (top & ARN_TOP_MASK) - ARN_TOP_EMPTY;

	return n >> 2 <= ARN_MAG_OBJS ? n >> 2 : 0;
}

static arn_inline _Bool arn_top_has(__u32 top)
{
	return (top & ARN_TOP_MASK) > ARN_TOP_EMPTY;
}

static arn_inline _Bool arn_top_room(__u32 top, __u32 room)
{
	return (top & ARN_TOP_MASK) - ARN_TOP_EMPTY < room;
}

static arn_inline _Bool arn_cache_busy(struct arn_cache __arena *c)
{
	return arn_load_relaxed(&c->top) == ARN_CACHE_BUSY || arn_load_relaxed(&c->busy);
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
		arn_linger();
		if (arn_cas64_full(head, old, new) == old)
			return 1;
	}
	arn_inc64_relaxed(&arn_root(b)->fail[ARN_FAIL_PUSH]);
	return 0;
}

/* Pops a magazine's offset, or 0.  step: what the pop adds to the head's tag. */
static arn_inline __u32 arn_stack_pop(arn_base b, __u64 __arena *head, __u64 step)
{
	__u64 old, new;
	__u32 off, i;

	for (i = arn_opaque(0u); i < ARN_DEPOT_TRIES && arn_may_loop; i++) {
		old = arn_load_relaxed(head);
		off = (__u32)(old & ARN_STACK_IDX_MASK) << ARN_MAG_SHIFT;
		if (!off)
			return 0;
		new = ((old & ~ARN_STACK_IDX_MASK) + step) |
		      (arn_load_relaxed(&arn_mag(b, off)->next) & ARN_STACK_IDX_MASK);
		arn_linger();
		if (arn_cas64_full(head, old, new) == old)
			return off;
	}
	arn_inc64_relaxed(&arn_root(b)->fail[ARN_FAIL_POP]);
	return 0;
}

static arn_inline __u32 arn_depot_pop(arn_base b, __u64 __arena *head)
{
	return arn_stack_pop(b, head, ARN_STACK_TAG_ONE);
}

static arn_inline _Bool arn_depot_has(__u64 __arena *head)
{
	return (arn_load_relaxed(head) & ARN_STACK_IDX_MASK) != 0;
}

/* Where nothing can be parked.  One that cannot be pushed even so is counted, and lost until reload. */
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

/* A magazine from the slot's own stack, else from the class's; 0: none. */
static arn_inline __u32 arn_take_full(arn_base b, struct arn_depot __arena *d, struct arn_cache __arena *c)
{
	__u32 m = arn_depot_pop(b, &c->near_full), n = arn_load_relaxed(&c->near_n);

	arn_store_relaxed(&c->near_n, m && n ? n - 1 : 0);
	return m ? m : arn_depot_pop(b, &d->full);
}

static arn_inline __u32 arn_take_empty(arn_base b, struct arn_depot __arena *d, struct arn_cache __arena *c)
{
	__u32 m = arn_depot_pop(b, &c->near_empty), n = arn_load_relaxed(&c->near_empty_n);

	arn_store_relaxed(&c->near_empty_n, m && n ? n - 1 : 0);
	return m ? m : arn_depot_pop(b, &d->empty);
}

/* The other way round.  False: both pushes gave up. */
static arn_inline _Bool arn_put_full(arn_base b, struct arn_depot __arena *d, struct arn_cache __arena *c, __u32 near,
				     __u32 m, __u32 n)
{
	__u32 have = arn_load_relaxed(&c->near_n);

	if (have < near) {
		arn_store_relaxed(&c->near_n, have + 1);
		return arn_depot_push(b, &c->near_full, m, n, ARN_DEPOT_TRIES);
	}
	return arn_depot_push(b, &d->full, m, n, ARN_DEPOT_TRIES);
}

static arn_inline _Bool arn_put_empty(arn_base b, struct arn_depot __arena *d, struct arn_cache __arena *c, __u32 near,
				      __u32 m)
{
	__u32 have = arn_load_relaxed(&c->near_empty_n);

	if (have < near) {
		arn_store_relaxed(&c->near_empty_n, have + 1);
		return arn_depot_push(b, &c->near_empty, m, 0, ARN_DEPOT_TRIES);
	}
	return arn_depot_push(b, &d->empty, m, 0, ARN_DEPOT_TRIES);
}

/* Claimed: a parked magazine goes to the depot.  Is the parking place free? */
static arn_inline _Bool arn_unpark(arn_base b, struct arn_depot __arena *d, struct arn_cache __arena *c)
{
	if (arn_likely(!c->parked))
		return 1;
	if (!arn_depot_push(b, arn_top_has(c->parked) ? &d->full : &d->empty, arn_top_mag(c->parked),
			    arn_top_count(c->parked), ARN_DEPOT_TRIES))
		return 0;
	c->parked = 0;
	return 1;
}

/*
 * Claimed, and top's magazine is spent: makes one with objects the loaded one.  Returns the new top; one
 * without objects: the depot has none.
 */
static arn_cold __u32 arn_cache_load(arn_base b, struct arn_root __arena *r, struct arn_cache __arena *c, __u32 cls,
				     __u32 top)
{
	struct arn_depot __arena *d = &r->depot[cls];
	__u32 spare = c->prev, m;

	if (arn_top_has(spare)) {
		c->prev = top;
		return spare;
	}
	if (!arn_unpark(b, d, c))
		return top;
	m = arn_take_full(b, d, c);
	if (!m)
		return top;
	if (top) {
		c->prev = top;
		if (spare && !arn_put_empty(b, d, c, r->cls[cls].near, arn_top_mag(spare)))
			c->parked = spare;
	}
	c->room = arn_load_relaxed(&r->cls[cls].cap) * 4u;
	return arn_top(m, arn_mag_count(b, m));
}

/* Claimed, and top's magazine is full: makes an empty one the loaded one; the same top: there is none. */
static arn_cold __u32 arn_cache_unload(arn_base b, struct arn_root __arena *r, struct arn_cache __arena *c, __u32 cls,
				       __u32 top)
{
	struct arn_depot __arena *d = &r->depot[cls];
	__u32 full = c->prev, m;

	if (full && !arn_top_has(full)) {
		c->prev = top;
		return full;
	}
	if (!arn_unpark(b, d, c))
		return top;
	m = arn_take_empty(b, d, c);
	if (!m)
		return top;
	if (top) {
		c->prev = top;
		if (full && !arn_put_full(b, d, c, r->cls[cls].near, arn_top_mag(full), arn_top_count(full)))
			c->parked = full;
	}
	c->room = arn_load_relaxed(&r->cls[cls].cap) * 4u;
	return arn_top(m, 0);
}

/*
 * Pops one object of a class from the slot's cache.  Returns its offset, or 0: spent, or (bypass) in
 * use by whom this call interrupted.
 */
static arn_inline __u32 arn_cache_pop(arn_base b, struct arn_root __arena *r, struct arn_cache __arena *c, __u32 cls,
				      _Bool *bypass)
{
	__u32 top = arn_claim(c), off;

	if (arn_unlikely(!arn_top_has(top))) {
		if (top == ARN_CACHE_BUSY) {
			*bypass = 1;
			return 0;
		}
		top = arn_cache_load(b, r, c, cls, top);
		if (!arn_top_has(top)) {
			arn_unclaim(c, top);
			return 0;
		}
	}
	off = arn_load_relaxed(arn_ptr(b, __u32, top));
	arn_linger();
	arn_unclaim(c, top - 4);
	return off;
}

/*
 * Pushes an object onto the slot's cache and clears its state byte (at state), both or neither: until
 * unclaimed nobody else can pop it.  False: the cache is in use, or wants a magazine.
 */
static arn_inline _Bool arn_cache_push(arn_base b, struct arn_root __arena *r, struct arn_cache __arena *c, __u32 cls,
				       __u32 off, __u8 __arena *state)
{
	__u32 top = arn_claim(c), was = top;

	if (arn_unlikely(!arn_top_room(top, c->room))) {
		if (top == ARN_CACHE_BUSY)
			return 0;
		top = arn_cache_unload(b, r, c, cls, top);
		if (top == was) {
			arn_unclaim(c, top);
			return 0;
		}
	}
	arn_store_relaxed(state, 0);
	arn_store_relaxed(arn_ptr(b, __u32, top + 4), off);
	arn_linger();
	arn_unclaim(c, top + 4);
	return 1;
}

/* Takes one object out of the depot, past the cache.  Returns its offset, or 0. */
static arn_inline __u32 arn_depot_one(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 cls)
{
	__u32 m = 0, n, off = 0;

	if (slot != ARN_NO_SLOT)
		m = arn_depot_pop(b, &arn_cache(b, slot, cls)->near_full);
	if (!m)
		m = arn_depot_pop(b, &r->depot[cls].full);
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
	__u32 pg = arn_run_alloc(b, r, 1, 1);
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
