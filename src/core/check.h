/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * check.h - the walkers: every page, magazine and object of a heap at rest is in exactly one place.
 *
 * On a heap in use some of that cannot hold: sums are off by what is on its way, and who is at work shows.
 * A walk that is told so (.in_use) passes over these; what else it finds may still come from things that
 * moved while they were copied, and then does not last.
 *
 *   page      in a free run (and that in its bin), a slab, a large object, or holds magazines
 *   magazine  in the depot (full or empty stack of its class), or in one slot
 *   object    allocated (state byte), in its slab (bit), in exactly one magazine, or in reserve
 *
 * Host only.  The walk is made on a private copy that spans 4 GiB, so whatever an offset says, it
 * reads memory and not a fault; every loop ends because it steps forward or marks what it saw.
 */
#ifndef ARN_CHECK_H
#define ARN_CHECK_H

#include "directory.h"
#include "heap.h"

struct arn_checker {
	arn_base b;
	__u64 *seen; /* a bit a granule of the arena: objects in magazines, and magazines */
	_Bool in_use;
	const char *what; /* first contradiction, NULL: none */
	__u64 where; /* offset, or page << 12 */
	__u64 found, expected;
	/* found on the way */
	__u64 mapped, free, slab_pages, large_pages, mag_pages, runs, large, live;
	__u64 cached[ARN_CLASSES], in_slabs[ARN_CLASSES], alive[ARN_CLASSES], slabs[ARN_CLASSES];
	__u64 mags[ARN_CLASSES], mags_seen[ARN_CLASSES], listed[ARN_CLASSES];
};

static inline int arn_wrong(struct arn_checker *c, const char *what, __u64 where, __u64 found, __u64 expected)
{
	if (!c->what) {
		c->what = what;
		c->where = where;
		c->found = found;
		c->expected = expected;
	}
	return -1;
}

/* The same, of what cannot be told while the heap is in use. */
static inline int arn_unsure(struct arn_checker *c, const char *what, __u64 where, __u64 found, __u64 expected)
{
	return c->in_use ? 0 : arn_wrong(c, what, where, found, expected);
}

/* Marks the granule at off; false: it was marked. */
static inline _Bool arn_see(struct arn_checker *c, __u32 off)
{
	__u64 bit = 1ULL << ((off >> ARN_GRANULE_SHIFT) & 63), *w = &c->seen[off >> 10];

	if (*w & bit)
		return 0;
	*w |= bit;
	return 1;
}

static inline _Bool arn_chunk_mapped(struct arn_checker *c, __u32 pg)
{
	struct arn_root *r = arn_root(c->b);

	return arn_page_valid(r, pg) && *arn_dir(c->b, pg >> 8) == ARN_CHUNK_MAPPED;
}

static inline int arn_check_states_zero(struct arn_checker *c, __u32 from, __u32 to, const char *what)
{
	struct arn_root *r = arn_root(c->b);
	__u32 off;

	for (off = from; off != to; off += 1u << ARN_GRANULE_SHIFT) /* to is 0 at the end of 4 GiB */
		if (*arn_state(c->b, r, off))
			return arn_wrong(c, what, off, *arn_state(c->b, r, off), 0);
	return 0;
}

/* One slab: its pages say so, bits and state bytes stand only where objects start. */
static inline int arn_check_slab(struct arn_checker *c, __u32 pg)
{
	struct arn_root *r = arn_root(c->b);
	struct arn_page *h = arn_desc(c->b, r, pg), *d;
	struct arn_class *k = &r->cls[h->cls];
	__u32 i, off, start = pg << ARN_PAGE_SHIFT, in, nfree = 0;

	if (pg % k->align)
		return arn_wrong(c, "slab: not aligned", start, pg % k->align, 0);
	for (i = 0; i < k->npages; i++) {
		d = arn_desc(c->b, r, pg + i);
		if (d->kind != (i ? ARN_PG_BODY : ARN_PG_SLAB) || d->head != pg || d->cls != h->cls)
			return arn_wrong(c, "slab: a page of it says something else", start + i * ARN_PAGE_SIZE,
					 d->kind, i ? ARN_PG_BODY : ARN_PG_SLAB);
	}
	for (in = 0; in < (__u32)k->npages * ARN_PAGE_SIZE; in += 16) {
		_Bool starts = in % k->size == 0 && in / k->size < k->nobj;
		__u8 st = *arn_state(c->b, r, start + in);
		_Bool bit;

		off = start + in;
		bit = *arn_bits(c->b, r, off) >> ((off >> ARN_GRANULE_SHIFT) & 63) & 1;
		if (!starts && (st || bit))
			return arn_wrong(c, "slab: a state byte or bit where no object starts", off, st, 0);
		if (st && st != arn_state_for(r, h->cls))
			return arn_wrong(c, "slab: a state byte of another class", off, st, arn_state_for(r, h->cls));
		if (st && bit)
			return arn_wrong(c, "object: allocated and in its slab", off, 1, 0);
		nfree += bit;
		c->alive[h->cls] += !!st;
	}
	if (nfree != h->nfree && arn_unsure(c, "slab: its count is not that of its bits", start, h->nfree, nfree))
		return -1;
	if (nfree && !h->listed && arn_unsure(c, "slab: free objects that nobody can find", start, nfree, 0))
		return -1;
	if (!nfree && h->listed && arn_unsure(c, "slab: on the partial list without a free object", start, 0, 1))
		return -1;
	c->in_slabs[h->cls] += nfree;
	c->slabs[h->cls]++;
	c->listed[h->cls] += h->listed & 1;
	if (arn_check_states_zero(c, start + k->npages * ARN_PAGE_SIZE, start + k->run * ARN_PAGE_SIZE,
				  "per-CPU slab: a state byte in another CPU's page"))
		return -1;
	c->slab_pages += k->run;
	return 0;
}

/* The pages of every mapped chunk, run by run. */
static inline int arn_check_pages(struct arn_checker *c)
{
	struct arn_root *r = arn_root(c->b);
	__u32 pg = r->first_page, end = r->first_page + r->npages, n;
	_Bool was_free = 0;

	while (pg < end) {
		struct arn_page *d = arn_desc(c->b, r, pg), *e;
		__u32 start = pg << ARN_PAGE_SHIFT;

		if (!(pg & (ARN_CHUNK_PAGES - 1)) && !arn_chunk_mapped(c, pg)) {
			if (*arn_dir(c->b, pg >> 8) == ARN_CHUNK_BUSY &&
			    arn_unsure(c, "chunk: busy on a heap at rest", start, ARN_CHUNK_BUSY, 0))
				return -1;
			pg += ARN_CHUNK_PAGES;
			was_free = 0;
			continue;
		}
		n = d->npages;
		if (d->kind == ARN_PG_SLAB) {
			if (d->cls >= ARN_CLASSES || n != r->cls[d->cls].npages)
				return arn_wrong(c, "slab: impossible class or length", start, d->cls, n);
			n = r->cls[d->cls].run;
		}
		if (!n || n > end - pg)
			return arn_wrong(c, "page run: impossible length", start, n, end - pg);
		if (!arn_chunk_mapped(c, pg + n - 1))
			return arn_wrong(c, "page run: reaches into an unmapped chunk", start, n, 0);
		switch (d->kind) {
		case ARN_PG_FREE:
			e = arn_desc(c->b, r, pg + n - 1);
			if (d->head != pg || e->kind != ARN_PG_FREE || e->head != pg)
				return arn_wrong(c, "free run: its ends disagree", start, e->head, pg);
			if (was_free)
				return arn_wrong(c, "free run: not merged with the one before", start, 0, 0);
			if (arn_check_states_zero(c, start, start + (n << ARN_PAGE_SHIFT),
						  "free run: a state byte is set"))
				return -1;
			c->free += n;
			c->runs++;
			break;
		case ARN_PG_SLAB:
			if (arn_check_slab(c, pg))
				return -1;
			break;
		case ARN_PG_LARGE:
			if (*arn_state(c->b, r, start) != ARN_STATE_LARGE)
				return arn_wrong(c, "large object: no state byte", start, *arn_state(c->b, r, start),
						 ARN_STATE_LARGE);
			if (arn_check_states_zero(c, start + 16, start + (n << ARN_PAGE_SHIFT),
						  "large object: a state byte inside"))
				return -1;
			c->large++;
			c->large_pages += n;
			break;
		case ARN_PG_DEAD:
			if (!d->listed && arn_unsure(c, "page run: given up and lost", start, n, 0))
				return -1;
			c->large_pages += n;
			break;
		case ARN_PG_MAGS:
			if (n != 1 || d->cls >= ARN_CLASSES)
				return arn_wrong(c, "magazine page: impossible", start, n, 1);
			if (arn_check_states_zero(c, start, start + ARN_PAGE_SIZE,
						  "magazine page: a state byte is set"))
				return -1;
			c->mag_pages++;
			c->mags[d->cls] += ARN_MAG_PER_PAGE;
			break;
		default:
			return arn_wrong(c, "page: nobody's", start, d->kind, 0);
		}
		was_free = d->kind == ARN_PG_FREE;
		pg += n;
	}
	return 0;
}

static inline int arn_check_bins(struct arn_checker *c)
{
	struct arn_root *r = arn_root(c->b);
	__u64 runs = 0, pages = 0;
	__u32 bin, pg, prev;

	for (bin = 0; bin < ARN_BINS; bin++) {
		_Bool bit = r->bin_map[bin >> 6] >> (bin & 63) & 1;

		if (bit != !!r->bins[bin])
			return arn_wrong(c, "bin: the map of bins disagrees", bin, bit, !!r->bins[bin]);
		for (pg = r->bins[bin], prev = 0; pg; prev = pg, pg = arn_desc(c->b, r, pg)->next) {
			struct arn_page *d = arn_desc(c->b, r, pg);

			if (!arn_chunk_mapped(c, pg) || d->kind != ARN_PG_FREE || d->head != pg ||
			    arn_bin_of(r, d->npages) != bin || d->prev != prev)
				return arn_wrong(c, "bin: an entry does not belong there", (__u64)pg << ARN_PAGE_SHIFT,
						 d->kind, bin);
			pages += d->npages;
			if (++runs > c->runs)
				return arn_wrong(c, "bin: more entries than free runs", bin, runs, c->runs);
		}
	}
	if (r->bin_map[1] >> (ARN_BINS - 64))
		return arn_wrong(c, "bin: the map of bins disagrees", ARN_BINS, r->bin_map[1], 0);
	if (runs != c->runs && arn_unsure(c, "bins: a free run is in none", 0, runs, c->runs))
		return -1;
	if ((pages != c->free || r->pages_free != c->free) &&
	    arn_unsure(c, "pages_free: not the sum of the free runs", 0, r->pages_free, c->free))
		return -1;
	return 0;
}

#define ARN_SEEN_PENDING 2u /* in the copy's listed: this walk comes before the one over the pages */

static inline int arn_check_pending(struct arn_checker *c)
{
	struct arn_root *r = arn_root(c->b);
	__u64 pg = r->pending;

	while (pg) {
		struct arn_page *d;

		if (!arn_chunk_mapped(c, (__u32)pg) || pg >> 32)
			return arn_wrong(c, "pending: an entry is no page of the heap", pg << ARN_PAGE_SHIFT, pg, 0);
		d = arn_desc(c->b, r, (__u32)pg);
		if (d->kind != ARN_PG_SLAB && d->kind != ARN_PG_DEAD)
			return arn_wrong(c, "pending: an entry is neither slab nor given up", pg << ARN_PAGE_SHIFT,
					 d->kind, ARN_PG_DEAD);
		if (d->listed & ARN_SEEN_PENDING)
			return arn_wrong(c, "pending: a page is in it twice", pg << ARN_PAGE_SHIFT, 2, 1);
		d->listed |= ARN_SEEN_PENDING;
		pg = d->pend_next;
	}
	return 0;
}

static inline int arn_check_partial(struct arn_checker *c, __u32 cls)
{
	struct arn_root *r = arn_root(c->b);
	__u32 pg, n = 0;

	for (pg = r->depot[cls].partial; pg; pg = arn_desc(c->b, r, pg)->next) {
		struct arn_page *d = arn_desc(c->b, r, pg);

		if (!arn_chunk_mapped(c, pg) || d->kind != ARN_PG_SLAB || d->cls != cls || !(d->listed & 1))
			return arn_wrong(c, "partial list: an entry does not belong there", (__u64)pg << ARN_PAGE_SHIFT,
					 d->kind, cls);
		if (++n > c->slabs[cls])
			return arn_wrong(c, "partial list: more entries than slabs", cls, n, c->slabs[cls]);
	}
	if (n != c->listed[cls] &&
	    arn_unsure(c, "partial list: a slab that says it is on it is not", cls, n, c->listed[cls]))
		return -1;
	if (r->depot[cls].nslabs != c->slabs[cls] &&
	    arn_unsure(c, "class: slab count", cls, r->depot[cls].nslabs, c->slabs[cls]))
		return -1;
	return 0;
}

/* A free object that a magazine (at), or the root's emergency reserve, has: it is in no other place. */
static inline int arn_check_cached(struct arn_checker *c, __u32 cls, __u32 at, __u32 off)
{
	struct arn_root *r = arn_root(c->b);
	struct arn_page *d;
	__u32 in;

	if (!arn_chunk_mapped(c, off >> ARN_PAGE_SHIFT))
		return arn_wrong(c, "magazine: an object outside of the heap", at, off, 0);
	d = arn_desc(c->b, r, off >> ARN_PAGE_SHIFT);
	if ((d->kind != ARN_PG_SLAB && d->kind != ARN_PG_BODY) || d->cls != cls)
		return arn_wrong(c, "magazine: an object of another class", at, off, d->cls);
	in = off - (d->head << ARN_PAGE_SHIFT);
	if (in % r->cls[cls].size || in / r->cls[cls].size >= r->cls[cls].nobj)
		return arn_wrong(c, "magazine: not the start of an object", at, off, 0);
	if (*arn_state(c->b, r, off))
		return arn_wrong(c, "object: allocated and in a magazine", off, at, 0);
	if (*arn_bits(c->b, r, off) >> ((off >> ARN_GRANULE_SHIFT) & 63) & 1)
		return arn_wrong(c, "object: in its slab and in a magazine", off, at, 0);
	if (!arn_see(c, off))
		return arn_wrong(c, "object: in two magazines, or twice in one", off, at, 0);
	c->cached[cls]++;
	return 0;
}

static inline int arn_check_emergency(struct arn_checker *c, __u32 cls)
{
	struct arn_root *r = arn_root(c->b);
	__u32 i, off;

	for (i = 0; i < ARN_EMERGENCY; i++) {
		off = r->emergency[cls][i];
		if (off && i >= r->cls[cls].emergency)
			return arn_wrong(c, "emergency reserve: more than the class's share", off, i,
					 r->cls[cls].emergency);
		if (off && arn_check_cached(c, cls, ARN_ROOT_OFF, off))
			return -1;
	}
	return 0;
}

/* A magazine with n objects: itself and each of them seen for the first time. */
static inline int arn_check_mag(struct arn_checker *c, __u32 cls, __u32 m, __u32 n)
{
	struct arn_root *r = arn_root(c->b);
	struct arn_page *d;
	__u32 i;

	if (m & ((1u << ARN_MAG_SHIFT) - 1) || !arn_chunk_mapped(c, m >> ARN_PAGE_SHIFT))
		return arn_wrong(c, "magazine: not one", m, m, 0);
	d = arn_desc(c->b, r, m >> ARN_PAGE_SHIFT);
	if (d->kind != ARN_PG_MAGS || d->cls != cls)
		return arn_wrong(c, "magazine: not in a magazine page of its class", m, d->cls, cls);
	if (!arn_see(c, m))
		return arn_wrong(c, "magazine: in two places", m, 2, 1);
	if (n > r->cls[cls].cap_high || n > ARN_MAG_OBJS)
		return arn_wrong(c, "magazine: holds more than it can", m, n, r->cls[cls].cap_high);
	c->mags_seen[cls]++;
	for (i = 0; i < n; i++)
		if (arn_check_cached(c, cls, m, arn_mag(c->b, m)->obj[i]))
			return -1;
	return 0;
}

static inline int arn_check_stack(struct arn_checker *c, __u32 cls, __u64 head, _Bool empty)
{
	__u32 m, n;

	for (m = (__u32)(head & ARN_STACK_IDX_MASK) << ARN_MAG_SHIFT; m; m = arn_mag(c->b, m)->next << ARN_MAG_SHIFT) {
		n = arn_mag(c->b, m)->n;
		if (arn_check_mag(c, cls, m, n))
			return -1;
		if (!n != empty)
			return arn_wrong(
				c, empty ? "depot: an empty magazine with objects" : "depot: a full magazine without",
				m, n, 0);
	}
	return 0;
}

static inline int arn_check_depot(struct arn_checker *c, __u32 cls)
{
	struct arn_root *r = arn_root(c->b);
	__u32 m;

	if (arn_check_stack(c, cls, r->depot[cls].full, 0) || arn_check_stack(c, cls, r->depot[cls].empty, 1))
		return -1;
	for (m = r->depot[cls].retiring; m; m = arn_mag(c->b, m)->tag)
		if (arn_check_mag(c, cls, m, 0))
			return -1;
	return 0;
}

/* A magazine that a slot has in its hands. */
static inline int arn_check_top(struct arn_checker *c, __u32 cls, __u32 top, __u64 slot)
{
	if (top && arn_top_count(top) * 4 != (top & ARN_TOP_MASK) - ARN_TOP_EMPTY)
		return arn_wrong(c, "slot: top is no entry of a magazine", slot, cls, top);
	return top ? arn_check_mag(c, cls, arn_top_mag(top), arn_top_count(top)) : 0;
}

static inline int arn_check_slots(struct arn_checker *c, __u32 cls)
{
	struct arn_root *r = arn_root(c->b);
	__u32 slot;

	if (arn_class_percpu(cls) && r->flags & ARN_F_CHECKED)
		return 0;
	for (slot = 0; slot < r->nslots; slot++) {
		struct arn_cache *k = arn_cache(c->b, slot, cls);
		__u64 where = ARN_SLOTS_OFF + ((__u64)slot << ARN_SLOT_SHIFT);

		if ((arn_cache_busy(k) || k->intent) &&
		    arn_unsure(c, "slot: busy on a heap at rest (its owner was killed? arn_reap)", where, cls, 0))
			return -1;
		/* (Without a magazine perhaps 0.) */
		if ((k->top || k->room) &&
		    (k->room < r->cls[cls].cap_low * 4u || k->room > r->cls[cls].cap_high * 4u || k->room & 3))
			return arn_wrong(c, "slot: room for another number of objects", where, k->room,
					 r->cls[cls].cap);
		if ((k->near_full || k->near_empty) && slot >= r->slots_used)
			return arn_wrong(c, "slot: magazines near one that nobody owned", where, slot, r->slots_used);
		if (arn_check_stack(c, cls, k->near_full, 0) || arn_check_stack(c, cls, k->near_empty, 1))
			return -1;
		if ((k->top != ARN_CACHE_BUSY && arn_check_top(c, cls, k->top, where)) ||
		    arn_check_top(c, cls, k->prev, where) || arn_check_top(c, cls, k->parked, where))
			return -1;
	}
	return 0;
}

/* Checked heaps: what was freed of late is in one place as well. */
static inline int arn_check_quarantine(struct arn_checker *c)
{
	struct arn_root *r = arn_root(c->b);
	__u32 slot, i, off, in;
	struct arn_page *d;

	if (!(r->flags & ARN_F_CHECKED))
		return 0;
	for (slot = 0; slot < r->nslots; slot++) {
		for (i = 0; i < ARN_QUARANTINE; i++) {
			off = arn_slot(c->b, slot)->quarantine[i];
			if (!off)
				continue;
			if (!arn_chunk_mapped(c, off >> ARN_PAGE_SHIFT))
				return arn_wrong(c, "quarantine: an object outside of the heap", off, slot, 0);
			d = arn_desc(c->b, r, off >> ARN_PAGE_SHIFT);
			if ((d->kind != ARN_PG_SLAB && d->kind != ARN_PG_BODY) || d->cls >= ARN_CLASSES)
				return arn_wrong(c, "quarantine: not an object", off, d->kind, ARN_PG_SLAB);
			in = off - (d->head << ARN_PAGE_SHIFT);
			if (in % r->cls[d->cls].size || *arn_state(c->b, r, off))
				return arn_wrong(c, "quarantine: not a free object", off, *arn_state(c->b, r, off), 0);
			if (*arn_bits(c->b, r, off) >> ((off >> ARN_GRANULE_SHIFT) & 63) & 1)
				return arn_wrong(c, "object: in its slab and in quarantine", off, slot, 0);
			if (!arn_see(c, off))
				return arn_wrong(c, "object: in quarantine twice, or in a magazine too", off, slot, 0);
			c->cached[d->cls]++;
		}
	}
	return 0;
}

/* The tables that are written once; how much a slot keeps near is only a bound. */
static inline int arn_check_classes(struct arn_checker *c)
{
	struct arn_root *r = arn_root(c->b), want = { .flags = r->flags };
	__u32 i;

	arn_classes_init(&want);
	arn_percpu_init(&want, r->percpu_cpus, r->percpu_max, ARN_PERCPU_BUDGET, 1); /* whatever the budget */
	for (i = 0; i < ARN_CLASSES; i++) {
		struct arn_class *k = &r->cls[i], *w = &want.cls[i];

		if (arn_class_percpu(i) && (k->cap < k->cap_low || k->cap > k->cap_high || k->cap_high > ARN_MAG_OBJS ||
					    !k->cap_low != !w->cap_low))
			return arn_wrong(c, "class table: impossible marks", i, k->cap, k->cap_high);
		if (!arn_class_percpu(i) && (k->cap != w->cap || k->cap_low != w->cap || k->cap_high != w->cap))
			return arn_wrong(c, "class table: overwritten (what a magazine holds)", i, k->cap, w->cap);
		if (k->size != w->size || k->run != w->run || k->npages != w->npages || k->nobj != w->nobj ||
		    k->align != w->align || k->emergency != w->emergency)
			return arn_wrong(c, "class table: overwritten", i, k->size, w->size);
	}
	for (i = 0; i <= ARN_SMALL_MAX / 16; i++)
		if (r->class_small[i] != want.class_small[i])
			return arn_wrong(c, "class table: overwritten (sizes to 1 KiB)", i, r->class_small[i],
					 want.class_small[i]);
	for (i = 0; i < sizeof(want.class_mid); i++)
		if (r->class_mid[i] != want.class_mid[i])
			return arn_wrong(c, "class table: overwritten (sizes to 32 KiB)", i, r->class_mid[i],
					 want.class_mid[i]);
	for (i = 0; i < sizeof(want.percpu_of); i++)
		if (r->percpu_of[i] != want.percpu_of[i])
			return arn_wrong(c, "class table: overwritten (per-CPU sizes)", i, r->percpu_of[i],
					 want.percpu_of[i]);
	for (i = 0; i < sizeof(want.bit_place); i++)
		if (r->bit_place[i] != want.bit_place[i])
			return arn_wrong(c, "class table: overwritten (places of bits)", i, r->bit_place[i],
					 want.bit_place[i]);
	return 0;
}

/* Walks it all.  0, or -1 with c->what saying where.  c->b and c->seen (zeroed) are the caller's. */
static inline int arn_check_heap(struct arn_checker *c)
{
	struct arn_root *r = arn_root(c->b);
	__u32 chunk, cls;
	__u64 objects;

	if (r->lock && arn_unsure(c, "lock: held on a heap at rest", 0, r->lock, 0))
		return -1;
	for (chunk = arn_first_chunk(r); chunk < arn_end_chunk(r); chunk++)
		c->mapped += *arn_dir(c->b, chunk) == ARN_CHUNK_MAPPED ? ARN_CHUNK_PAGES : 0;
	if (r->pages_mapped != c->mapped &&
	    arn_unsure(c, "pages_mapped: not what the directory says", 0, r->pages_mapped, c->mapped))
		return -1;
	if (arn_check_classes(c))
		return -1;
	if (arn_check_pending(c) || arn_check_pages(c) || arn_check_bins(c) || arn_check_quarantine(c))
		return -1;
	for (cls = 0; cls < ARN_CLASSES; cls++) {
		if (arn_check_partial(c, cls) || arn_check_depot(c, cls) || arn_check_slots(c, cls) ||
		    arn_check_emergency(c, cls))
			return -1;
		if ((c->mags_seen[cls] != c->mags[cls] || r->depot[cls].nmags != c->mags[cls]) &&
		    arn_unsure(c, "class: a magazine is in no place", cls, c->mags_seen[cls], c->mags[cls]))
			return -1;
		objects = c->slabs[cls] * r->cls[cls].nobj;
		if (c->alive[cls] + c->cached[cls] + c->in_slabs[cls] != objects &&
		    arn_unsure(c, "class: an object is in no place (allocated + cached + in slabs)", cls,
			       c->alive[cls] + c->cached[cls] + c->in_slabs[cls], objects))
			return -1;
		c->live += c->alive[cls];
	}
	if (c->free + c->slab_pages + c->large_pages + c->mag_pages != c->mapped &&
	    arn_unsure(c, "pages: the kinds do not add up to what is mapped", 0,
		       c->free + c->slab_pages + c->large_pages + c->mag_pages, c->mapped))
		return -1;
	return 0;
}

#endif
