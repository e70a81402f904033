/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * checked.h - heaps that look for their users' mistakes (ARN_F_CHECKED).
 *
 *   | what was asked for | guard bytes 0xa5 | size, tag, seal |
 *   0                    size               block - 16        block
 *
 * An overrun breaks the guard bytes or the seal, and the free says so.  A free fills the object with
 * poison and puts it into its slot's quarantine, 256 frees long; when it leaves that, and again when
 * it is handed out, broken poison says that somebody wrote to it meanwhile.  The tag (arn_set_tag) says
 * in a leak report who allocated.  Such a heap has no caches (magazines of capacity 0), so the fast
 * path never serves and pays nothing for the check: every call comes here.
 *
 * Two CPUs that free one object in the same instant are told apart: the seal is exchanged.
 */
#ifndef ARN_CHECKED_H
#define ARN_CHECKED_H

#include "heap.h"

#define ARN_SEAL_LIVE  0x6c69766500000000ULL
#define ARN_SEAL_FREE  0x6672656500000000ULL
#define ARN_POISON     0xdedededededededeULL
#define ARN_GUARD_WORD 0xa5a5a5a5a5a5a5a5ULL
#define ARN_GUARD_BYTE 0xa5

static arn_inline _Bool arn_is_checked(struct arn_root __arena *r)
{
	return arn_unlikely(r->flags & ARN_F_CHECKED);
}

/* Bytes of an object with its trailer: of its class, or of its page run. */
static arn_inline __u32 arn_block(arn_base b, struct arn_root __arena *r, __u32 cls, __u32 off)
{
	return cls < ARN_CLASSES ? r->cls[cls].size : arn_desc(b, r, off >> ARN_PAGE_SHIFT)->npages << ARN_PAGE_SHIFT;
}

/* A power of two keeps its natural alignment, although the trailer makes the block larger. */
static arn_inline __u64 arn_checked_align(__u64 size, __u64 align)
{
	__u64 nat = size & (size - 1) ? 0 : size;

	return nat > align ? nat : align ? align : 1;
}

/* Counts what was found at an object. */
static arn_inline void arn_found(struct arn_root __arena *r, __u32 off, __u32 what)
{
	arn_refuse(r, r->base | off, what);
}

/* Is the poison of a freed object whole?  Large objects carry none. */
static arn_inline _Bool arn_poison_whole(arn_base b, __u32 off, __u32 block)
{
	__u32 end = off + block - (__u32)sizeof(struct arn_trailer), at;

	for (at = arn_opaque(off); at < end && arn_may_loop; at += 8)
		if (arn_load_relaxed(arn_ptr(b, __u64, at)) != ARN_POISON)
			return 0;
	return 1;
}

/* Where the guard's whole words begin. */
static arn_inline __u32 arn_guard_start(__u32 off, __u32 size)
{
	return (off + size + 7) & ~7u;
}

/* An object is about to be handed out: looks at its poison, then guards what lies behind size. */
static arn_inline void arn_dress(arn_base b, struct arn_root __arena *r, __u32 cls, __u32 off, __u32 size, __u32 tag)
{
	__u32 block = arn_block(b, r, cls, off), end = off + block - (__u32)sizeof(struct arn_trailer), at;
	struct arn_trailer __arena *t = arn_trailer(b, off, block);

	if (cls < ARN_CLASSES && arn_load_relaxed(&t->seal) == (ARN_SEAL_FREE ^ off) &&
	    !arn_poison_whole(b, off, block))
		arn_found(r, off, ARN_FAIL_AFTER_FREE);
	for (at = arn_opaque(off + size); at < arn_guard_start(off, size) && arn_may_loop; at++)
		arn_store_relaxed(arn_ptr(b, __u8, at), ARN_GUARD_BYTE);
	for (at = arn_guard_start(off, arn_opaque(size)); at < end && arn_may_loop; at += 8)
		arn_store_relaxed(arn_ptr(b, __u64, at), ARN_GUARD_WORD);
	t->size = size;
	t->tag = tag;
	arn_xchg64_full(&t->seal, ARN_SEAL_LIVE ^ off);
}

/* Are the guard bytes behind what was asked for whole? */
static arn_inline _Bool arn_guard_whole(arn_base b, __u32 off, __u32 block, __u32 size)
{
	__u32 end = off + block - (__u32)sizeof(struct arn_trailer), at;

	for (at = arn_opaque(off + size); at < arn_guard_start(off, size) && arn_may_loop; at++)
		if (arn_load_relaxed(arn_ptr(b, __u8, at)) != ARN_GUARD_BYTE)
			return 0;
	for (at = arn_guard_start(off, arn_opaque(size)); at < end && arn_may_loop; at += 8)
		if (arn_load_relaxed(arn_ptr(b, __u64, at)) != ARN_GUARD_WORD)
			return 0;
	return 1;
}

/* An object comes back: false, it has been freed in this instant by somebody else. */
static arn_inline _Bool arn_undress(arn_base b, struct arn_root __arena *r, __u32 cls, __u32 off)
{
	__u32 block = arn_block(b, r, cls, off), size, end = off + block - (__u32)sizeof(struct arn_trailer), at;
	struct arn_trailer __arena *t = arn_trailer(b, off, block);
	__u64 seal;

	size = arn_load_relaxed(&t->size);
	seal = arn_xchg64_full(&t->seal, ARN_SEAL_FREE ^ off);
	if (seal == (ARN_SEAL_FREE ^ off)) {
		arn_found(r, off, ARN_FAIL_DOUBLE);
		return 0;
	}
	if (seal != (ARN_SEAL_LIVE ^ off) || size > block - sizeof(*t) || !arn_guard_whole(b, off, block, size))
		arn_found(r, off, ARN_FAIL_OVERRUN);
	if (cls < ARN_CLASSES)
		for (at = arn_opaque(off); at < end && arn_may_loop; at += 8)
			arn_store_relaxed(arn_ptr(b, __u64, at), ARN_POISON);
	return 1;
}

/* The oldest object of a slot's quarantine makes room: its offset, or 0.  off 0 takes one out only. */
static arn_inline __u32 arn_quarantine(arn_base b, __u32 slot, __u32 off, __u32 at)
{
	return arn_xchg32_full(&arn_slot(b, slot)->quarantine[at & (ARN_QUARANTINE - 1)], off);
}

/* An object leaves the quarantine for its slab. */
static arn_inline void arn_release(arn_base b, struct arn_root __arena *r, __u32 off)
{
	__u32 cls = arn_desc(b, r, off >> ARN_PAGE_SHIFT)->cls;

	if (cls < ARN_CLASSES && !arn_poison_whole(b, off, r->cls[cls].size)) {
		arn_found(r, off, ARN_FAIL_AFTER_FREE);
		arn_store_relaxed(&arn_trailer(b, off, r->cls[cls].size)->seal, 0); /* once is enough */
	}
	arn_slab_put(b, r, off);
}

/* Frees a small object of a checked heap; state is its state byte. */
static arn_inline int arn_checked_free(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 cls, __u32 off,
				       __u8 __arena *state)
{
	__u32 out;

	if (!arn_undress(b, r, cls, off))
		return -ARN_EINVAL;
	arn_store_relaxed(state, 0);
	if (slot == ARN_NO_SLOT)
		out = off;
	else
		out = arn_quarantine(b, slot, off, arn_add32_full(&arn_slot(b, slot)->quarantine_at, 1));
	if (out)
		arn_release(b, r, out);
	return 0;
}

/* A slot's quarantine goes back to the slabs. */
static arn_inline void arn_quarantine_drain(arn_base b, struct arn_root __arena *r, __u32 slot)
{
	__u32 i, off;

	for (i = arn_opaque(0u); i < ARN_QUARANTINE && arn_may_loop; i++) {
		off = arn_quarantine(b, slot, 0, i);
		if (off)
			arn_release(b, r, off);
	}
}

#endif
