/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ring_bpf.h - the global functions of rings.  Their loops are cut short by the kernel's patience only if
 * the program was preempted in them for that long; what is left then is said at each.
 */
#ifndef ARN_RING_BPF_H
#define ARN_RING_BPF_H

#include "ring_inline_bpf.h"

__weak int arn__ring_init(__u64 ring, __u32 size, __u32 kind)
{
	arn_name_arena();
	if (arn_ring_init(ARN_HERE, ring, size) != size)
		return -ARN_EAGAIN;
	arn_xchg32_full(&arn_ptr(ARN_HERE, struct arn_ring, ring)->kind, kind);
	return 0;
}

__weak int arn__ring_put_spsc(__u64 ring, __u64 obj)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_ring_view v;

	arn_name_arena();
	return arn_ring_view(r, ring, ARN_RING_SPSC, &v) ? arn_ring_put_spsc(ARN_HERE, r, &v, obj) : -ARN_EINVAL;
}

__weak __u64 arn__ring_get_spsc(__u64 ring)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_ring_view v;
	__u64 obj;

	arn_name_arena();
	if (!arn_ring_view(r, ring, ARN_RING_SPSC, &v))
		return 0;
	return arn_ring_get_spsc(ARN_HERE, r, &v, &obj) > 0 ? obj : 0;
}

__weak int arn__ring_put_mpsc(__u64 ring, __u64 obj)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_ring_view v;
	__u32 off, pos;
	int n;

	arn_name_arena();
	if (!arn_ring_view(r, ring, ARN_RING_MPSC, &v))
		return -ARN_EINVAL;
	off = arn_ring_offset(&v, obj);
	if (!off)
		return -ARN_EINVAL;
	n = arn_ring_reserve(ARN_HERE, r, &v, 1, 1, &pos);
	if (n <= 0)
		return n;
	return arn_ring_publish(ARN_HERE, &v, pos, off) ? 1 : -ARN_EAGAIN;
}

__weak __u64 arn__ring_get_mpsc(__u64 ring)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_ring_view v;
	__u64 obj;

	arn_name_arena();
	if (!arn_ring_view(r, ring, ARN_RING_MPSC, &v))
		return 0;
	return arn_ring_get_mpsc(ARN_HERE, r, &v, &obj) > 0 ? obj : 0;
}

/* Cut short: fewer are enqueued, or none where fewer will not do. */
__weak int arn__ring_put_bulk_spsc(__u64 ring, __u64 ptrs, __u32 least, __u32 n)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_ring_view v;

	arn_name_arena();
	return arn_ring_view(r, ring, ARN_RING_SPSC, &v) ? arn_ring_put_bulk_spsc(ARN_HERE, r, &v, ptrs, least, n)
							 : -ARN_EINVAL;
}

__weak int arn__ring_get_bulk_spsc(__u64 ring, __u64 out, __u32 least, __u32 n)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_ring_view v;

	arn_name_arena();
	return arn_ring_view(r, ring, ARN_RING_SPSC, &v) ? arn_ring_get_bulk_spsc(ARN_HERE, r, &v, out, least, n)
							 : -ARN_EINVAL;
}

/* A function of its own has patience of its own. */
__weak int arn__ring_abandon(__u64 ring, __u32 pos, __u32 n)
{
	struct arn_ring_view v;

	arn_name_arena();
	arn_ring_view(arn_root(ARN_HERE), ring, ARN_RING_MPSC, &v);
	arn_ring_abandon(ARN_HERE, &v, pos, n);
	return 0;
}

/* Cut short: fewer are enqueued than there were places for, and the others are abandoned. */
__weak int arn__ring_put_bulk_mpsc(__u64 ring, __u64 ptrs, __u32 least, __u32 n)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_ring_view v;
	__u32 pos, done;
	int got;

	arn_name_arena();
	if (!arn_ring_view(r, ring, ARN_RING_MPSC, &v))
		return -ARN_EINVAL;
	if (n > v.mask + 1)
		n = v.mask + 1;
	got = arn_ring_objects(&v, ptrs, n);
	if (got)
		return got;
	got = arn_ring_reserve(ARN_HERE, r, &v, least, n, &pos);
	if (got <= 0)
		return got;
	done = arn_ring_publish_all(ARN_HERE, &v, pos, ptrs, got);
	if (arn_likely(done == (__u32)got))
		return got;
	arn__ring_abandon(ring, pos + done, got - done);
	return done ? (int)done : -ARN_EAGAIN;
}

/* Cut short: fewer are dequeued. */
__weak int arn__ring_get_bulk_mpsc(__u64 ring, __u64 out, __u32 least, __u32 n)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_ring_view v;

	arn_name_arena();
	return arn_ring_view(r, ring, ARN_RING_MPSC, &v) ? arn_ring_get_bulk_mpsc(ARN_HERE, r, &v, out, least, n)
							 : -ARN_EINVAL;
}

__weak int arn__ring_skip(__u64 ring)
{
	struct arn_ring_view v;

	arn_name_arena();
	return arn_ring_view(arn_root(ARN_HERE), ring, ARN_RING_MPSC, &v) ? arn_ring_pass_over(ARN_HERE, &v)
									  : -ARN_EINVAL;
}

#endif
