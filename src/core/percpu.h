/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * percpu.h - per-CPU objects: where the copies lie, zeroing and summing them.
 *
 * Allocating and freeing are the plain classes' (percpu_class.h).  An object is named by the address of
 * CPU 0's copy; the copy of CPU c is c pages further on, so every address in an object has its
 * counterparts, members included.
 *
 * Zero on allocation, by who allocates, after the object has left the cache and before anybody else
 * knows it: a late write of who freed it is wiped, and a free costs what a plain one does.
 */
#ifndef ARN_PERCPU_H
#define ARN_PERCPU_H

#include "bulk.h"

static arn_inline __u32 arn_percpu_at(__u32 off, __u32 cpu)
{
	return off + cpu * ARN_PERCPU_STRIDE;
}

/*
 * Every copy of the object at off, of size bytes (a class's), becomes zero.  False: cut short.
 *
 * A turn is 64 bytes, or 16 of objects smaller than that: a may_goto costs as much as eight stores.  The
 * last turn of a copy may overlap the one before.
 */
static arn_inline _Bool arn_percpu_zero(arn_base b, struct arn_root __arena *r, __u32 off, __u32 size)
{
	__u32 left = arn_opaque(r->percpu_cpus), step = size < 64 ? 16 : 64, last = size - step, in = arn_opaque(0u);

	while (left && arn_may_loop) {
		__u64 __arena *w = arn_ptr(b, __u64, off + in);

		arn_store_relaxed(&w[0], 0);
		arn_store_relaxed(&w[1], 0);
		if (step == 64) {
			arn_store_relaxed(&w[2], 0);
			arn_store_relaxed(&w[3], 0);
			arn_store_relaxed(&w[4], 0);
			arn_store_relaxed(&w[5], 0);
			arn_store_relaxed(&w[6], 0);
			arn_store_relaxed(&w[7], 0);
		}
		if (in == last) {
			off += ARN_PERCPU_STRIDE;
			in = arn_opaque(0u);
			left--;
			continue;
		}
		in += step;
		if (in > last)
			in = last;
	}
	return !left;
}

/* The words at off and its counterparts, added up.  Each is read once; others may write meanwhile. */
static arn_inline __u64 arn_percpu_add_up(arn_base b, struct arn_root __arena *r, __u32 off)
{
	__u32 end = arn_opaque(arn_percpu_at(off, r->percpu_cpus)), at;
	__u64 sum = arn_opaque(0ull);

	for (at = arn_opaque(off); at != end && arn_may_loop; at += ARN_PERCPU_STRIDE)
		sum += arn_load_relaxed(arn_ptr(b, __u64, at));
	return sum;
}

/* The class of an allocated per-CPU object; ARN_CLASSES: it is none, and *why says so (or ARN_FAIL_COUNT). */
static arn_inline __u32 arn_percpu_object(arn_base b, struct arn_root __arena *r, __u64 ptr, __u32 *off, __u32 *why)
{
	__u32 st, cls;

	*off = arn_object(b, r, ptr, &st, why);
	cls = arn_state_class(st);
	if (cls - ARN_PLAIN_CLASSES < ARN_PERCPU_CLASSES)
		return cls;
	if (st)
		*why = ARN_FAIL_FOREIGN; /* an object, but a plain one */
	return ARN_CLASSES;
}

#endif
