/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ring_inline_bpf.h - one object into a ring or out of it, inlined into the calling program, because the
 * call would cost more.  Nothing here loops; ARN_NO_INLINE leaves calls.
 */
#ifndef ARN_RING_INLINE_BPF_H
#define ARN_RING_INLINE_BPF_H

#include "../core/ring_mpsc.h"

/* A ring of a kind as it says it is.  What a wrong mask reaches lies in the arena's 4 GiB. */
static arn_inline _Bool arn_ring_view(struct arn_root __arena *r, __u64 ring, __u32 kind, struct arn_ring_view *v)
{
	struct arn_ring __arena *q;

	v->off = ring;
	v->base = r->base;
	q = arn_ring(ARN_HERE, v);
	v->mask = q->mask & (ARN_RING_MAX - 1);
	return arn_likely(q->kind == kind);
}

static arn_inline __u64 arn_ring_create_inline(__u32 size, __u32 kind)
{
	__u64 p;

	if (!arn_ring_size_ok(size))
		return 0;
	p = arn__aligned_alloc(ARN_RING_ALIGN, arn_ring_bytes(size));
	if (!p)
		return 0;
	if (arn__ring_init(p, size, kind)) {
		arn__free(p);
		return 0;
	}
	return p;
}

static arn_inline int arn_ring_destroy_inline(__u64 ring)
{
	struct arn_ring __arena *q = arn_ptr(ARN_HERE, struct arn_ring, ring);

	arn_name_arena();
	if (q->kind != ARN_RING_SPSC && q->kind != ARN_RING_MPSC)
		return -ARN_EINVAL;
	arn_store_relaxed(&q->kind, 0);
	return arn__free(ring);
}

static arn_inline __u32 arn_ring_count_inline(__u64 ring)
{
	struct arn_ring_view v;

	arn_name_arena();
	arn_ring_view(arn_root(ARN_HERE), ring, 0, &v);
	return arn_ring_held(ARN_HERE, &v);
}

#ifdef ARN_NO_INLINE
#define arn_ring_put_spsc_inline arn__ring_put_spsc
#define arn_ring_put_mpsc_inline arn__ring_put_mpsc
#define arn_ring_get_spsc_inline arn__ring_get_spsc
#define arn_ring_get_mpsc_inline arn__ring_get_mpsc
#else
static arn_inline int arn_ring_put_spsc_inline(__u64 ring, __u64 obj)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_ring_view v;

	arn_name_arena();
	return arn_ring_view(r, ring, ARN_RING_SPSC, &v) ? arn_ring_put_spsc(ARN_HERE, r, &v, obj) : -ARN_EINVAL;
}

static arn_inline __u64 arn_ring_get_spsc_inline(__u64 ring)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_ring_view v;
	__u64 obj;

	arn_name_arena();
	if (!arn_ring_view(r, ring, ARN_RING_SPSC, &v))
		return 0;
	return arn_ring_get_spsc(ARN_HERE, r, &v, &obj) > 0 ? obj : 0;
}

/* The first try; a lost race, and whatever else is not plain, is done over by the global function. */
static arn_inline int arn_ring_put_mpsc_inline(__u64 ring, __u64 obj)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_ring_view v;
	__u32 off, pos;
	int n;

	arn_name_arena();
	if (!arn_ring_view(r, ring, ARN_RING_MPSC, &v))
		return -ARN_EINVAL;
	off = arn_ring_offset(&v, obj);
	if (arn_unlikely(!off))
		return -ARN_EINVAL;
	n = arn_ring_reserve_once(ARN_HERE, r, &v, 1, 1, &pos);
	if (!n)
		return 0;
	if (n > 0 && arn_likely(arn_ring_publish(ARN_HERE, &v, pos, off)))
		return 1;
	return arn__ring_put_mpsc(ring, obj);
}

static arn_inline __u64 arn_ring_get_mpsc_inline(__u64 ring)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_ring_view v;
	__u64 obj;
	int n;

	arn_name_arena();
	if (!arn_ring_view(r, ring, ARN_RING_MPSC, &v))
		return 0;
	n = arn_ring_get_once(ARN_HERE, r, &v, &obj);
	if (!n)
		return 0;
	return arn_likely(n > 0) ? obj : arn__ring_get_mpsc(ring);
}
#endif

#endif
