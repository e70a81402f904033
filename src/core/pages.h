/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * pages.h - page runs: the heap's pages, split and coalesced.  All of it under root.lock.
 *
 * Free runs hang in 80 bins by length (two-level segregated fit; Masmano, Ripoll, Crespo, Real 2004):
 * exact below 8 pages, then four bins a doubling.  First and last page of a free run say how long
 * it is and where it begins (boundary tags; Knuth 1973), so a freed run finds its neighbours in
 * constant time, also across chunks.  A buddy system would round a run of 129 pages to 256, or
 * leave 127-page tails that no request of its own kind fits into; this packs a fixed-seed log-uniform
 * mix to 99 % of the heap pages.
 *
 *   desc[s]     FREE npages=n head=s next prev     -- in a bin
 *   desc[s+1]   NONE
 *   ...
 *   desc[s+n-1] FREE head=s
 *
 * Invariants: free runs do not touch; pages_free is their sum; a page of an unmapped chunk is NONE.
 */
#ifndef ARN_PAGES_H
#define ARN_PAGES_H

#include "directory.h"

#define ARN_SCAN_NEAR 8u /* entries of the request's own bin that are tried first */
#define ARN_SCAN_ALL  65536u /* bound of the last resort, which looks at every run */

static arn_inline struct arn_page __arena *arn_desc(arn_base b, struct arn_root __arena *r, __u32 pg)
{
	return arn_ptr(b, struct arn_page, r->page_bias + pg * (__u32)sizeof(struct arn_page));
}

static arn_inline _Bool arn_page_valid(struct arn_root __arena *r, __u32 pg)
{
	return pg - r->first_page < r->npages;
}

/* Whether the caller interrupted the lock's holder. */
static arn_inline _Bool arn_lock_below(struct arn_root __arena *r, __u32 slot)
{
	return slot != ARN_NO_SLOT && arn_load_relaxed(&r->lock) == slot + 1;
}

/*
 * The try-lock.  Held with preemption off; never across a call that maps or unmaps pages.  False:
 * not held, and the caller falls back.
 */
static arn_inline _Bool arn_lock(struct arn_root __arena *r, __u32 slot)
{
	__u32 me = slot == ARN_NO_SLOT ? slot : slot + 1, i;

	arn_pin_enter();
	for (i = arn_opaque(0u); i < ARN_SPIN_MAX && arn_may_loop; i++) {
		if (!arn_load_relaxed(&r->lock) && !arn_cas32_full(&r->lock, 0, me))
			return 1;
		/* What this slot holds cannot be let go while an interrupt on it waits. */
		if (arn_lock_below(r, slot))
			break;
		arn_relax(i);
	}
	arn_pin_leave();
	arn_inc64_relaxed(&r->fail[ARN_FAIL_LOCK]);
	return 0;
}

static arn_inline void arn_unlock(struct arn_root __arena *r)
{
	arn_xchg32_full(&r->lock, 0);
	arn_pin_leave();
}

/* Bin whose runs have at least the length that begins it; n >= 1. */
static arn_inline __u32 arn_bin_of(struct arn_root __arena *r, __u32 n)
{
	__u32 l;

	if (n < 8)
		return n;
	l = arn_log2(r, n);
	return 8 + (l - 3) * 4 + ((n >> (l - 2)) & 3);
}

/* First bin in which every run has at least n pages. */
static arn_inline __u32 arn_bin_ceil(struct arn_root __arena *r, __u32 n)
{
	__u32 bin = arn_bin_of(r, n), l;

	if (n < 8)
		return bin;
	l = arn_log2(r, n);
	return n & ((1u << (l - 2)) - 1) ? bin + 1 : bin;
}

static arn_inline void arn_bin_mark(struct arn_root __arena *r, __u32 bin, _Bool set)
{
	__u64 __arena *map = &r->bin_map[bin >> 6];
	__u64 bit = 1ULL << (bin & 63);

	*map = set ? *map | bit : *map & ~bit;
}

/* First bin at or after bin that holds a run, or ARN_BINS. */
static arn_inline __u32 arn_bin_next(struct arn_root __arena *r, __u32 bin)
{
	__u64 m;

	if (bin < 64) {
		m = r->bin_map[0] >> bin << bin;
		if (m)
			return arn_ctz64(r, m);
		bin = 64;
	}
	if (bin >= ARN_BINS)
		return ARN_BINS;
	m = r->bin_map[1] >> (bin & 63) << (bin & 63);
	return m ? 64 + arn_ctz64(r, m) : ARN_BINS;
}

static arn_inline void arn_run_insert(arn_base b, struct arn_root __arena *r, __u32 pg, __u32 n)
{
	struct arn_page __arena *d = arn_desc(b, r, pg), *e;
	__u32 bin = arn_bin_of(r, n);

	if (bin >= ARN_BINS)
		return;
	e = arn_desc(b, r, pg + n - 1);
	e->kind = ARN_PG_FREE;
	e->head = pg;
	d->kind = ARN_PG_FREE;
	d->head = pg;
	d->npages = n;
	d->prev = 0;
	d->next = r->bins[bin];
	if (d->next)
		arn_desc(b, r, d->next)->prev = pg;
	r->bins[bin] = pg;
	arn_bin_mark(r, bin, 1);
	arn_store_relaxed(&r->pages_free, r->pages_free + n);
}

static arn_inline void arn_run_remove(arn_base b, struct arn_root __arena *r, __u32 pg)
{
	struct arn_page __arena *d = arn_desc(b, r, pg);
	__u32 n = d->npages, bin = arn_bin_of(r, n);

	if (bin >= ARN_BINS)
		return;
	if (d->next)
		arn_desc(b, r, d->next)->prev = d->prev;
	if (d->prev) {
		arn_desc(b, r, d->prev)->next = d->next;
	} else {
		r->bins[bin] = d->next;
		if (!d->next)
			arn_bin_mark(r, bin, 0);
	}
	d->kind = ARN_PG_NONE;
	arn_desc(b, r, pg + n - 1)->kind = ARN_PG_NONE;
	arn_store_relaxed(&r->pages_free, r->pages_free - n);
}

/* Gives [pg, pg + n) back; its descriptors are NONE.  Only arn_settle calls it. */
static arn_inline int arn_run_free(arn_base b, struct arn_root __arena *r, __u32 pg, __u32 n)
{
	struct arn_page __arena *d;

	if (!n || !arn_page_valid(r, pg) || !arn_page_valid(r, pg + n - 1))
		return -ARN_EINVAL;
	if (arn_page_valid(r, pg - 1) && arn_page_mapped(b, pg - 1)) {
		d = arn_desc(b, r, pg - 1);
		if (arn_load_relaxed(&d->kind) == ARN_PG_FREE && arn_page_valid(r, d->head)) {
			__u32 head = d->head;

			arn_run_remove(b, r, head);
			n += pg - head;
			pg = head;
		}
	}
	if (arn_page_valid(r, pg + n) && arn_page_mapped(b, pg + n)) {
		d = arn_desc(b, r, pg + n);
		if (arn_load_relaxed(&d->kind) == ARN_PG_FREE) {
			__u32 more = d->npages;

			arn_run_remove(b, r, pg + n);
			n += more;
		}
	}
	arn_run_insert(b, r, pg, n);
	return 0;
}

/* Start of n pages aligned to align within the free run at pg, or 0. */
static arn_inline __u32 arn_run_fit(arn_base b, struct arn_root __arena *r, __u32 pg, __u32 n, __u32 align)
{
	struct arn_page __arena *d = arn_desc(b, r, pg);
	__u32 at = (pg + align - 1) & ~(align - 1);

	return (__u64)at + n <= (__u64)pg + d->npages ? at : 0;
}

/*
 * Takes n pages whose index is a multiple of align (a power of two; the base is aligned, so are
 * addresses).  Good fit first; before it says no it has looked at every run.  Returns the first
 * page, or 0.
 */
static arn_inline __u32 arn_run_alloc(arn_base b, struct arn_root __arena *r, __u32 n, __u32 align)
{
	__u32 bin = arn_bin_of(r, n), pg, at, i, bound, left;

	/* 1. The request's own bin, a few entries; 2. a bin where any run fits; 3. everything. */
	pg = bin < ARN_BINS ? r->bins[bin] : 0;
	for (i = arn_opaque(0u); pg && i < ARN_SCAN_NEAR && arn_may_loop; i++) {
		at = arn_run_fit(b, r, pg, n, align);
		if (at)
			goto found;
		pg = arn_desc(b, r, pg)->next;
	}
	bin = arn_bin_next(r, arn_bin_ceil(r, n + align - 1));
	if (bin < ARN_BINS) {
		pg = r->bins[bin];
		at = arn_run_fit(b, r, pg, n, align);
		if (pg && at)
			goto found;
	}
	bound = ARN_SCAN_ALL;
	bin = arn_bin_next(r, arn_bin_of(r, n));
	pg = bin < ARN_BINS ? r->bins[bin] : 0;
	for (i = arn_opaque(0u); pg && i < bound && arn_may_loop; i++) {
		at = arn_run_fit(b, r, pg, n, align);
		if (at)
			goto found;
		pg = arn_desc(b, r, pg)->next;
		if (!pg) {
			bin = arn_bin_next(r, bin + 1);
			pg = bin < ARN_BINS ? r->bins[bin] : 0;
		}
	}
	return 0;
found:
	left = arn_desc(b, r, pg)->npages;
	if (arn_desc(b, r, pg)->kind != ARN_PG_FREE || !arn_page_valid(r, pg) || !arn_page_valid(r, pg + left - 1)) {
		arn_inc64_relaxed(&r->fail[ARN_FAIL_CORRUPT]);
		return 0;
	}
	arn_run_remove(b, r, pg);
	if (at > pg)
		arn_run_insert(b, r, pg, at - pg);
	if (at + n < pg + left)
		arn_run_insert(b, r, at + n, pg + left - at - n);
	return at;
}

#endif
