/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ring.h - pointer rings: objects of the heap handed from one context to another, either of which may be
 * a BPF program or a user thread.  Slots are 32-bit offsets, 16 to a cache line.
 *
 *             head                tail
 *              v                   v
 *   [ ][ ][ ][x][x][x][x][x][x][x][ ][ ][ ]      head: the consumer's line, tail: the producers'
 *
 * Positions count on and wrap at 2^32; the slot of one is position & mask.  Full and empty are answers, not
 * waits.  A call carries one object or many: all, or as many as fit (DPDK's bulk and burst, 2010).
 *
 * _spsc  One producer, one consumer (Lamport 1983).  The producer writes slots, then tail; the consumer reads
 *        tail, then slots, then writes head.  Each keeps the other's index as it saw it last in its own line
 *        and looks again only when that is used up (MCRingBuffer: Lee, Bu, Chandranmenon 2010).  Wait-free.
 *
 * _mpsc  Any number of producers, also on top of each other (interrupt, NMI, signal handler), one consumer:
 *        ring_mpsc.h.
 *
 *   word               written by                          excluded by
 *   kind, mask         who makes the ring                  -
 *   tail               spsc: the producer                  only one
 *                      mpsc: producers                     compare-and-swap
 *   head_seen          producers: a head that once was     (an old one only makes them look again)
 *   head, tail_seen    the consumer                        only one
 *   slot               spsc: producer: tail to head + size the indices
 *                      mpsc: see there
 *
 * Contents of objects go with the slot: by release and acquire of tail; and of head, so that a slot is read
 * before it is written again.
 *
 * Any word may be wrong, because another process may have written it: loops end by counts of their own,
 * indices are masked, and what comes out has the upper half of the arena's addresses.  Then objects may be
 * lost, come twice or be none, or calls say -EUCLEAN.
 */
#ifndef ARN_RING_H
#define ARN_RING_H

#include "bulk.h"

#ifdef __bpf__
#define arn_vec_next(v, n)   ((v) + (__u64)(n) * 8)
#define arn_vec_left(v, end) ((__u32)(((end) - (v)) >> 3))
#else
#define arn_vec_next(v, n)   ((v) + (n))
#define arn_vec_left(v, end) ((__u32)((end) - (v)))
#endif

#define ARN_RING_EMPTY(p) ((p) * 2 + 1) /* mpsc: no object is odd */

/* A ring as a call sees it.  On the host all of it is out of the reach of other processes. */
struct arn_ring_view {
	__u64 base; /* address of offset 0 */
	__u32 off; /* of the ring */
	__u32 mask;
};

static arn_inline struct arn_ring __arena *arn_ring(arn_base b, const struct arn_ring_view *v)
{
	return arn_ptr(b, struct arn_ring, v->off);
}

static arn_inline __u32 __arena *arn_ring_slot(arn_base b, const struct arn_ring_view *v, __u32 pos)
{
	return arn_ptr(b, __u32, v->off + (__u32)sizeof(struct arn_ring) + (pos & v->mask) * 4);
}

static arn_inline __u64 arn_ring_bytes(__u32 size)
{
	return sizeof(struct arn_ring) + (__u64)size * 4;
}

static arn_inline _Bool arn_ring_size_ok(__u32 size)
{
	return size && size <= ARN_RING_MAX && !(size & (size - 1));
}

/* Its lines, all but kind, in fresh memory.  Returns how many slots were written: size, or patience ended. */
static arn_inline __u32 arn_ring_init(arn_base b, __u32 off, __u32 size)
{
	struct arn_ring_view v = { .off = off, .mask = size - 1 };
	struct arn_ring __arena *q = arn_ring(b, &v);
	__u32 i;

	arn_store_relaxed(&q->mask, size - 1);
	arn_store_relaxed(&q->tail, 0);
	arn_store_relaxed(&q->head_seen, 0);
	arn_store_relaxed(&q->head, 0);
	arn_store_relaxed(&q->tail_seen, 0);
	for (i = arn_opaque(0u); i < size && arn_may_loop; i++)
		arn_store_relaxed(arn_ring_slot(b, &v, i), ARN_RING_EMPTY(i));
	return i;
}

#define ARN_RING_IS_OBJECT(w) (!((w) & ((1u << ARN_GRANULE_SHIFT) - 1)))

/* The offset of an address with the base's upper half or none, or 0. */
static arn_inline __u32 arn_ring_offset(const struct arn_ring_view *v, __u64 addr)
{
	if (arn_unlikely((addr ^ v->base) >> 32 && addr >> 32) || arn_unlikely(!ARN_RING_IS_OBJECT(addr)))
		return 0;
	return (__u32)addr;
}

/* What is wrong with an address that is an object's as most are, with the base's upper half: 0 if nothing. */
#define ARN_RING_FLAW(v, addr) ((addr) ^ (v)->base)
#define ARN_RING_FLAWED(flaw)  arn_unlikely((flaw) & ~0xfffffff0ULL)

/* 0; -EINVAL: one of n addresses is not in the arena; -EAGAIN: patience ended. */
static arn_inline int arn_ring_objects(const struct arn_ring_view *v, arn_vec from, __u32 n)
{
	arn_vec end = arn_vec_next(from, n);
	__u64 flaw;
	__u32 k;

	while (from != end && arn_may_loop) {
		arn_vec_word __arena *p = arn_vec_at(from, 0);

		if (arn_vec_left(from, end) >= ARN_BULK_STEP) {
			flaw = 0;
			arn_unroll for (k = 0; k < ARN_BULK_STEP; k++) flaw |= ARN_RING_FLAW(v, p[k]);
			if (!ARN_RING_FLAWED(flaw)) {
				from = arn_vec_next(from, ARN_BULK_STEP);
				continue;
			}
		}
		if (!arn_ring_offset(v, *p))
			return -ARN_EINVAL;
		from = arn_vec_next(from, 1);
	}
	return from == end ? 0 : -ARN_EAGAIN;
}

/* Slots ahead in one go: a step, if as many are wanted and the ring does not end before. */
static arn_inline _Bool arn_ring_step(const struct arn_ring_view *v, __u32 pos, __u32 want)
{
	return want >= ARN_BULK_STEP && (pos & v->mask) + ARN_BULK_STEP - 1 <= v->mask;
}

/* ---- Both kinds ---- */

/*
 * Free slots for a producer that wants some, looking at head if need be.  False: the indices contradict each
 * other, because they are corrupt or (several producers) others went on meanwhile.
 */
static arn_inline _Bool arn_ring_room(arn_base b, struct arn_root __arena *r, const struct arn_ring_view *v, __u32 tail,
				      __u32 want, __u32 *room)
{
	struct arn_ring __arena *q = arn_ring(b, v);
	__u32 head = arn_load_relaxed(&q->head_seen);

	*room = v->mask + 1 - (tail - head);
	if (arn_likely(tail - head <= v->mask + 1 && *room >= want))
		return 1;
	head = arn_load_acquire32(r, &q->head);
	arn_store_relaxed(&q->head_seen, head);
	*room = v->mask + 1 - (tail - head);
	return tail - head <= v->mask + 1;
}

/* Positions between head and tail, published or not. */
static arn_inline __u32 arn_ring_held(arn_base b, const struct arn_ring_view *v)
{
	struct arn_ring __arena *q = arn_ring(b, v);
	__u32 tail = arn_load_relaxed(&q->tail), n = tail - arn_load_relaxed(&q->head);

	if (n > v->mask + 1)
		return (__s32)n < 0 ? 0 : v->mask + 1;
	return n;
}

/* ---- One producer, one consumer ---- */

/* Full slots for the consumer, the other way round. */
static arn_inline _Bool arn_ring_stock(arn_base b, struct arn_root __arena *r, const struct arn_ring_view *v,
				       __u32 head, __u32 want, __u32 *stock)
{
	struct arn_ring __arena *q = arn_ring(b, v);

	*stock = arn_load_relaxed(&q->tail_seen) - head;
	if (arn_likely(*stock <= v->mask + 1 && *stock >= want))
		return 1;
	*stock = arn_load_acquire32(r, &q->tail);
	arn_store_relaxed(&q->tail_seen, *stock);
	*stock -= head;
	return *stock <= v->mask + 1;
}

/* 1; 0: full; -EINVAL: not an object; -EUCLEAN. */
static arn_inline int arn_ring_put_spsc(arn_base b, struct arn_root __arena *r, const struct arn_ring_view *v,
					__u64 addr)
{
	struct arn_ring __arena *q = arn_ring(b, v);
	__u32 off = arn_ring_offset(v, addr), tail = arn_load_relaxed(&q->tail), room;

	if (arn_unlikely(!off))
		return -ARN_EINVAL;
	if (arn_unlikely(!arn_ring_room(b, r, v, tail, 1, &room)))
		return -ARN_EUCLEAN;
	if (!room)
		return 0;
	arn_store_relaxed(arn_ring_slot(b, v, tail), off);
	arn_store_release32(r, &q->tail, tail + 1);
	return 1;
}

/* 1, and the object's address; 0: empty; -EUCLEAN. */
static arn_inline int arn_ring_get_spsc(arn_base b, struct arn_root __arena *r, const struct arn_ring_view *v,
					__u64 *addr)
{
	struct arn_ring __arena *q = arn_ring(b, v);
	__u32 head = arn_load_relaxed(&q->head), stock, off;

	if (arn_unlikely(!arn_ring_stock(b, r, v, head, 1, &stock)))
		return -ARN_EUCLEAN;
	if (!stock)
		return 0;
	off = arn_load_relaxed(arn_ring_slot(b, v, head));
	arn_store_release32(r, &q->head, head + 1);
	*addr = v->base | off;
	return 1;
}

/* At least so many, at most n, or none.  Returns how many, or an error as above: then none. */
static arn_inline int arn_ring_put_bulk_spsc(arn_base b, struct arn_root __arena *r, const struct arn_ring_view *v,
					     arn_vec from, __u32 least, __u32 n)
{
	__u32 pos = arn_load_relaxed(&arn_ring(b, v)->tail), end, room, k;
	arn_vec first = from;
	__u64 flaw = 0;
	int err;

	if (arn_unlikely(!arn_ring_room(b, r, v, pos, n, &room)))
		return -ARN_EUCLEAN;
	n = n < room ? n : room;
	for (end = pos + n; pos != end && arn_may_loop;) {
		__u32 __arena *to = arn_ring_slot(b, v, pos);
		arn_vec_word __arena *p = arn_vec_at(from, 0);

		if (arn_likely(arn_ring_step(v, pos, end - pos))) {
			arn_unroll for (k = 0; k < ARN_BULK_STEP; k++)
			{
				flaw |= ARN_RING_FLAW(v, p[k]);
				arn_store_relaxed(&to[k], (__u32)p[k]);
			}
			pos += ARN_BULK_STEP;
			from = arn_vec_next(from, ARN_BULK_STEP);
		} else {
			flaw |= ARN_RING_FLAW(v, *p);
			arn_store_relaxed(to, (__u32)*p);
			pos++;
			from = arn_vec_next(from, 1);
		}
	}
	n -= end - pos;
	if (n < least || !n)
		return 0;
	if (ARN_RING_FLAWED(flaw)) {
		err = arn_ring_objects(v, first, n);
		if (err)
			return err;
	}
	arn_store_release32(r, &arn_ring(b, v)->tail, pos);
	return (int)n;
}

static arn_inline int arn_ring_get_bulk_spsc(arn_base b, struct arn_root __arena *r, const struct arn_ring_view *v,
					     arn_vec out, __u32 least, __u32 n)
{
	__u32 pos = arn_load_relaxed(&arn_ring(b, v)->head), end, stock, k;

	if (arn_unlikely(!arn_ring_stock(b, r, v, pos, n, &stock)))
		return -ARN_EUCLEAN;
	n = n < stock ? n : stock;
	for (end = pos + n; pos != end && arn_may_loop;) {
		__u32 __arena *from = arn_ring_slot(b, v, pos);
		arn_vec_word __arena *to = arn_vec_at(out, 0);

		if (arn_likely(arn_ring_step(v, pos, end - pos))) {
			arn_unroll for (k = 0; k < ARN_BULK_STEP; k++) to[k] = v->base | arn_load_relaxed(&from[k]);
			pos += ARN_BULK_STEP;
			out = arn_vec_next(out, ARN_BULK_STEP);
		} else {
			*to = v->base | arn_load_relaxed(from);
			pos++;
			out = arn_vec_next(out, 1);
		}
	}
	n -= end - pos;
	if (n < least || !n)
		return 0;
	arn_store_release32(r, &arn_ring(b, v)->head, pos);
	return (int)n;
}

#endif
