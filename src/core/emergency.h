/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * emergency.h - objects set aside for who can neither find a magazine nor have the lock.
 *
 * That is who interrupted the lock's holder (an interrupt, an NMI, a signal handler) while the class's
 * magazines are spent, or in the hands of those it interrupted.  Each class has up to ARN_EMERGENCY
 * objects (32 KiB, at least two) as single words in the root, from its first refill on:
 *
 *   take     a word exchanged for 0: wait-free, no other state, nothing is ever in somebody's hands
 *   put      objects from the slabs into the holes, by whoever is at a slow path's end and can have the
 *            lock
 *
 * A class that somebody took from has its bit in emergency_low.  Takers begin at the first word and
 * restocking ends with none of them empty, so a first word of 0 says that there are holes.
 *
 * Reserves are the last memory to go: only when nothing else is left they return to the slabs.
 */
#ifndef ARN_EMERGENCY_H
#define ARN_EMERGENCY_H

#include "slab.h"

/*
 * A word of a class's reserve.  Its place is added up before it becomes an address: clang may otherwise add the
 * arena's address to the sum of both indices, which Linux 6.16.12 and 6.18.15 refuse ("pointer arithmetic on arena
 * prohibited": they know it only the other way round).
 */
static arn_inline __u32 __arena *arn_emergency_word(arn_base b, __u32 cls, __u32 i)
{
	return arn_ptr(b, __u32,
		       ARN_ROOT_OFF + (__u32) __builtin_offsetof(struct arn_root, emergency) +
			       (cls * ARN_EMERGENCY + i) * (__u32)sizeof(__u32));
}

static arn_inline void arn_emergency_want(struct arn_root __arena *r, __u32 cls)
{
	arn_or64_full(&r->emergency_low, 1ULL << (cls & 63));
}

/* An object out of a class's reserve, or 0.  Any context. */
static arn_inline __u32 arn_emergency_take(arn_base b, struct arn_root __arena *r, __u32 cls)
{
	__u32 i, off = 0;

	for (i = arn_opaque(0u); i < ARN_EMERGENCY && arn_may_loop; i++) {
		if (!arn_load_relaxed(arn_emergency_word(b, cls, i)))
			continue;
		off = arn_xchg32_full(arn_emergency_word(b, cls, i), 0);
		if (off)
			break;
	}
	arn_emergency_want(r, cls);
	if (off)
		arn_inc64_relaxed(&r->fail[ARN_FAIL_EMERGENCY]);
	return off;
}

/* Whether somebody at the end of a slow path of this class should restock. */
static arn_inline _Bool arn_emergency_short(arn_base b, __u32 cls)
{
	return cls < ARN_CLASSES && !arn_load_relaxed(arn_emergency_word(b, cls, 0));
}

#define ARN_EMERGENCY_CARVE 64u

/*
 * A class that somebody took from and that has a hole, plus 1, and plus ARN_EMERGENCY_CARVE if it has no
 * slab with free objects either; 0: look again, while emergency_low is not 0.
 */
static arn_inline __u32 arn_emergency_hole(arn_base b, struct arn_root __arena *r)
{
	__u64 low = arn_load_relaxed(&r->emergency_low);
	__u32 cls, i, n = 0;

	if (!low)
		return 0;
	cls = arn_ctz64(r, low) & 63;
	if (cls < ARN_CLASSES)
		n = r->cls[cls].emergency;
	for (i = arn_opaque(0u); i < n && i < ARN_EMERGENCY && arn_may_loop; i++)
		if (!arn_load_relaxed(arn_emergency_word(b, cls, i)))
			break;
	if (i < n && arn_load_relaxed(&r->depot[cls].partial))
		return cls + 1;
	/* Put sets the bit again. */
	arn_cas64_full(&r->emergency_low, low, low & (low - 1));
	return i < n ? cls + 1 + ARN_EMERGENCY_CARVE : 0;
}

/* An object out of a slab into its class's reserve, or back if that is full. */
static arn_inline void arn_emergency_put(arn_base b, struct arn_root __arena *r, __u32 off)
{
	__u32 cls = arn_desc(b, r, off >> ARN_PAGE_SHIFT)->cls, i;

	if (cls >= ARN_CLASSES)
		return;
	for (i = arn_opaque(0u); i < r->cls[cls].emergency && i < ARN_EMERGENCY && arn_may_loop; i++)
		if (!arn_load_relaxed(arn_emergency_word(b, cls, i)) &&
		    !arn_cas32_full(arn_emergency_word(b, cls, i), 0, off)) {
			arn_emergency_want(r, cls);
			return;
		}
	arn_slab_put(b, r, off);
}

/* A class's reserve goes back to the slabs. */
static arn_inline void arn_emergency_release(arn_base b, struct arn_root __arena *r, __u32 cls)
{
	__u32 i, off;

	for (i = arn_opaque(0u); i < ARN_EMERGENCY && arn_may_loop; i++) {
		off = arn_xchg32_full(arn_emergency_word(b, cls, i), 0);
		if (off)
			arn_slab_put(b, r, off);
	}
}

#endif
