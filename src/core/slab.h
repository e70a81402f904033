/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * slab.h - objects of one class carved from a run of pages (Bonwick 1994).
 *
 * Which objects lie free in a slab is a bit a granule in the page descriptors: bit (off >> 4) & 255
 * of the page in which the object starts.  No division, no list through free memory.
 *
 * Taking objects out is the lock holder's.  Putting one back needs no lock and no memory, so a
 * free can always end here:
 *
 *   put:   bits |= bit;  old = nfree++ (full);  if old == 0, push the slab on root.pending
 *   take:  bits exchanged for 0;  new = nfree -= taken (full);  if new <= 0, off the partial list
 *
 * nfree lags behind bits (never the other way round), so a slab with nfree > 0 has bits to take.
 * It crosses from 0 to 1 once for each time it left the list, and who does that step pushes it: a
 * slab is on the partial list, or in root.pending, or on neither with nfree <= 0, and cannot be
 * retired under somebody who still has to push it.  Nobody touches a descriptor after its step but
 * the one who has to push.
 *
 *   who \ whom   take           put            settle, retire
 *   take         root.lock      atomics        root.lock
 *   put          atomics        atomics        the crossing rule above
 */
#ifndef ARN_SLAB_H
#define ARN_SLAB_H

#include "pages.h"
#include "percpu_class.h"

#define ARN_PEND_TRIES 65536u
#define ARN_PEND_MAX   (1u << 20) /* a page is in pending at most once */

static arn_inline __u64 __arena *arn_bits(arn_base b, struct arn_root __arena *r, __u32 off)
{
	return &arn_desc(b, r, off >> ARN_PAGE_SHIFT)->bits[(off >> 10) & 3];
}

/* Lock-free push of a page that wants the lock holder's attention. */
static arn_inline void arn_pend(arn_base b, struct arn_root __arena *r, __u32 pg)
{
	struct arn_page __arena *d = arn_desc(b, r, pg);
	__u64 old;
	__u32 i;

	for (i = arn_opaque(0u); i < ARN_PEND_TRIES && arn_may_loop; i++) {
		old = arn_load_relaxed(&r->pending);
		arn_store_relaxed(&d->pend_next, (__u32)old);
		if (arn_cas64_full(&r->pending, old, pg) == old)
			return;
	}
	/* Its objects wait for the next trim. */
	arn_inc64_relaxed(&r->fail[ARN_FAIL_PUSH]);
}

/*
 * Gives a run of pages up: its first page is marked and pushed on root.pending, so that this needs
 * no lock either, and merging free runs stands in one place (arn_settle).  The other descriptors of
 * the run are NONE.
 */
static arn_inline void arn_run_drop(arn_base b, struct arn_root __arena *r, __u32 pg)
{
	arn_store_relaxed(&arn_desc(b, r, pg)->kind, ARN_PG_DEAD);
	arn_pend(b, r, pg);
}

/* Puts a free object back into its slab.  Lock-free, any context, never fails on a sound heap. */
static arn_inline void arn_slab_put(arn_base b, struct arn_root __arena *r, __u32 off)
{
	struct arn_page __arena *d = arn_desc(b, r, off >> ARN_PAGE_SHIFT);
	__u8 kind = arn_load_relaxed(&d->kind);
	__u32 head = arn_load_relaxed(&d->head);

	if (!arn_page_valid(r, off >> ARN_PAGE_SHIFT) || (kind != ARN_PG_SLAB && kind != ARN_PG_BODY) ||
	    !arn_page_valid(r, head)) {
		arn_inc64_relaxed(&r->fail[ARN_FAIL_CORRUPT]);
		return;
	}
	arn_or64_full(&d->bits[(off >> 10) & 3], 1ULL << ((off >> ARN_GRANULE_SHIFT) & 63));
	arn_linger();
	if (arn_add32_full(&arn_desc(b, r, head)->nfree, 1) == 0)
		arn_pend(b, r, head);
}

/* The partial list is a stack: only its head is ever spent, and retiring walks all of it anyway. */
static arn_inline void arn_partial_push(arn_base b, struct arn_root __arena *r, __u32 cls, __u32 head)
{
	struct arn_page __arena *d = arn_desc(b, r, head);

	d->listed = 1;
	d->next = r->depot[cls].partial;
	arn_store_relaxed(&r->depot[cls].partial, head);
}

/*
 * Under lock: looks after the first page in root.pending.  Nobody else pops, so it cannot come back
 * meanwhile (no tag).
 */
static arn_inline void arn_settle_one(arn_base b, struct arn_root __arena *r)
{
	__u64 pg = arn_load_relaxed(&r->pending);
	struct arn_page __arena *d;
	__u32 cls;

	if (!pg)
		return;
	if (!arn_page_valid(r, (__u32)pg)) {
		arn_xchg64_full(&r->pending, 0);
		arn_inc64_relaxed(&r->fail[ARN_FAIL_CORRUPT]);
		return;
	}
	d = arn_desc(b, r, (__u32)pg);
	if (arn_cas64_full(&r->pending, pg, arn_load_relaxed(&d->pend_next)) != pg)
		return; /* pushed upon: the next turn has it */
	cls = d->cls;
	if (d->kind == ARN_PG_SLAB && cls < ARN_CLASSES) {
		if (!d->listed)
			arn_partial_push(b, r, cls, (__u32)pg);
	} else if (d->kind == ARN_PG_DEAD) {
		d->kind = ARN_PG_NONE;
		arn_run_free(b, r, (__u32)pg, d->npages);
	}
}

/* Under lock: every page in root.pending, or what a loop that is cut short comes to. */
static arn_inline void arn_settle(arn_base b, struct arn_root __arena *r)
{
	__u32 i;

	for (i = arn_opaque(0u); i < ARN_PEND_MAX && arn_load_relaxed(&r->pending) && arn_may_loop; i++)
		arn_settle_one(b, r);
}

/* What stands behind an object of a checked heap (checked.h). */
struct arn_trailer {
	__u32 size; /* asked for */
	__u32 tag;
	__u64 seal; /* ARN_SEAL_* ^ offset of the object */
};

static arn_inline struct arn_trailer __arena *arn_trailer(arn_base b, __u32 off, __u32 block)
{
	return arn_ptr(b, struct arn_trailer, off + block - (__u32)sizeof(struct arn_trailer));
}

/* Under lock: a new slab at the head of its class's partial list.  Returns its first page, or 0. */
static arn_inline __u32 arn_slab_new(arn_base b, struct arn_root __arena *r, __u32 cls)
{
	struct arn_class __arena *k;
	__u32 pg, i, n, off, size, nobj;

	if (cls >= ARN_CLASSES)
		return 0;
	k = &r->cls[cls];
	n = k->npages;
	size = k->size;
	nobj = k->nobj;
	pg = arn_run_alloc(b, r, k->run, k->align ? k->align : 1);
	if (!pg)
		return 0;
	for (i = arn_opaque(0u); i < n && i < ARN_SLAB_MAX_PAGES && arn_may_loop; i++) {
		struct arn_page __arena *d = arn_desc(b, r, pg + i);

		arn_store_relaxed(&d->kind, i ? ARN_PG_BODY : ARN_PG_SLAB);
		d->cls = cls;
		arn_store_relaxed(&d->head, pg);
		d->npages = n;
		arn_store_relaxed(&d->bits[0], 0);
		arn_store_relaxed(&d->bits[1], 0);
		arn_store_relaxed(&d->bits[2], 0);
		arn_store_relaxed(&d->bits[3], 0);
	}
	off = pg << ARN_PAGE_SHIFT;
	for (i = arn_opaque(0u); i < nobj && i < ARN_PAGE_SIZE && arn_may_loop; i++) {
		*arn_bits(b, r, off) |= 1ULL << ((off >> ARN_GRANULE_SHIFT) & 63);
		if (r->flags & ARN_F_CHECKED && !arn_class_percpu(cls))
			arn_store_relaxed(&arn_trailer(b, off, size)->seal, 0); /* it has never been freed */
		off += size;
	}
	arn_store_relaxed(&arn_desc(b, r, pg)->nfree, nobj);
	arn_partial_push(b, r, cls, pg);
	r->depot[cls].nslabs++;
	return pg;
}

/*
 * Under lock: moves free objects of the slab at head, the first of its class's partial list, into the
 * magazine at m until it holds want, and takes the slab off the list when it is spent.  With m = 0 takes
 * one object into *one.  Returns how many the magazine then holds (or 1).
 */
static arn_inline __u32 arn_slab_take(arn_base b, struct arn_root __arena *r, __u32 cls, __u32 head, __u32 m, __u32 n,
				      __u32 want, __u32 *one)
{
	__u32 taken = n, w = head * 4, end;
	struct arn_page __arena *h;
	__u64 rest;

	/* (Masked: a corrupt descriptor's pages would take seconds.) */
	end = w + (arn_desc(b, r, head)->npages & (2 * ARN_SLAB_MAX_PAGES - 1)) * 4;
	/* By words of bits, not by offsets: the last slab of 4 GiB ends at offset 0. */
	for (; w < end && n < want && arn_may_loop; w++) {
		if (!arn_load_relaxed(arn_bits(b, r, w << 10)))
			continue;
		rest = arn_xchg64_full(arn_bits(b, r, w << 10), 0);
		while (rest && n < want && arn_may_loop) {
			__u32 o = (w << 10) + (arn_ctz64(r, rest) << ARN_GRANULE_SHIFT);

			rest &= rest - 1;
			if (m)
				arn_store_relaxed(&arn_ptr(b, struct arn_mag, m)->obj[n & 127], o);
			else
				*one = o;
			n++;
		}
		if (rest)
			arn_or64_full(arn_bits(b, r, w << 10), rest);
	}
	taken = n - taken;
	h = arn_desc(b, r, head);
	if ((__s32)(arn_add32_full(&h->nfree, -taken) - taken) <= 0 || !taken) {
		h->listed = 0;
		arn_store_relaxed(&r->depot[cls].partial, h->next);
	}
	return n;
}

/* Under lock: is every object of the slab in it?  nfree alone is not asked: a double free in the
 * same instant on two CPUs could have counted twice. */
static arn_inline _Bool arn_slab_empty(arn_base b, struct arn_root __arena *r, __u32 cls, __u32 head)
{
	struct arn_page __arena *h = arn_desc(b, r, head);
	__u32 nobj = r->cls[cls].nobj, words = h->npages * 4, found = arn_opaque(0u), i;
	__u64 w;

	/* The second look is ordered: whoever put one here is done with object and descriptor. */
	if (arn_load_relaxed(&h->nfree) != nobj || arn_cas32_full(&h->nfree, nobj, nobj) != nobj)
		return 0;
	for (i = arn_opaque(0u); i < words && i < ARN_SLAB_MAX_PAGES * 4 && arn_may_loop; i++) {
		w = arn_load_relaxed(&arn_desc(b, r, head + (i >> 2))->bits[i & 3]);
		w -= (w >> 1) & 0x5555555555555555ULL;
		w = (w & 0x3333333333333333ULL) + ((w >> 2) & 0x3333333333333333ULL);
		w = (w + (w >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
		found += (__u32)((w * 0x0101010101010101ULL) >> 56);
	}
	return found == nobj;
}

/* Under lock: gives the empty slabs of a class back to the page runs.  Returns pages given back. */
static arn_inline __u32 arn_slab_retire(arn_base b, struct arn_root __arena *r, __u32 cls)
{
	__u32 pg, next, prev, i, k, n, pages = 0;

	pg = r->depot[cls].partial;
	prev = arn_opaque(0u);
	for (i = arn_opaque(0u); pg && i < ARN_PEND_MAX && arn_may_loop; i++) {
		struct arn_page __arena *d = arn_desc(b, r, pg);

		next = d->next;
		if (!arn_slab_empty(b, r, cls, pg)) {
			prev = pg;
			pg = next;
			continue;
		}
		if (prev)
			arn_desc(b, r, prev)->next = next;
		else
			arn_store_relaxed(&r->depot[cls].partial, next);
		d->listed = 0;
		n = d->npages;
		for (k = arn_opaque(1u); k < n && k < ARN_SLAB_MAX_PAGES && arn_may_loop; k++)
			arn_store_relaxed(&arn_desc(b, r, pg + k)->kind, ARN_PG_NONE);
		n = r->cls[cls].run;
		d->npages = n;
		arn_run_drop(b, r, pg);
		r->depot[cls].nslabs--;
		pages += n;
		pg = next;
	}
	return pages;
}

#endif
