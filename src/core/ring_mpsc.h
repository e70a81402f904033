/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ring_mpsc.h - rings with many producers, which may be on top of each other, and one consumer.
 *
 * Whether a slot is ready stands in the slot (FastForward: Giacomoni, Moseley, Vachharajani 2008), and one
 * that is not carries the position that it is empty for (as the sequence numbers of Vyukov's queue, 2010):
 *
 *   EMPTY(p) --reserve: cas tail--> EMPTY(p) --publish: cas--> object --take--> EMPTY(p + size)
 *                                       '------ skip: cas ---> SKIP -----take-----^
 *
 * No producer waits for another one, whatever became of that between its two steps (where producers publish
 * in order, as in DPDK's ring, an NMI on top of one would spin forever).  The consumer stops at the first
 * slot that is not published.  If its producer was killed, skip (by anybody, at any time) marks the slot,
 * and the consumer passes over it; if it only slept, its publishing finds the mark and fails, and its call
 * says that the object is still the caller's.  That is what the compare-and-swap is for: a plain store that
 * comes late would land in the slot's next lap.  It also gives the order that the object's contents need,
 * on every machine.  Two slots take one.  (A position comes back after 2^31 others: a producer would have
 * to be skipped and then sleep for exactly so many to publish in another's place; that one's call fails.)
 *
 * A consumer that is killed leaves the slots that it emptied before head: the next one passes over them.
 *
 * Lock-free among producers, wait-free for the consumer.
 *
 *   slot             from                to                  by
 *                    EMPTY(p)            object              who reserved p, compare-and-swap
 *                    EMPTY(p)            SKIP                anybody, compare-and-swap
 *                    anything else       EMPTY(p + size)     the consumer
 *
 * Contents of objects go with the slot: the publishing swap is a full one, and the consumer's accesses depend
 * on the address that it read in the slot.  Release and acquire of head: a slot in reach is seen to be EMPTY.
 */
#ifndef ARN_RING_MPSC_H
#define ARN_RING_MPSC_H

#include "ring.h"

#define ARN_RING_TRIES 64u /* every lost turn is another producer's progress */
#define ARN_RING_SKIP  2u /* no object has this address */

/*
 * Reserves slots from *pos on: at least so many, at most n, or none.  Returns how many; 0: full; -EAGAIN:
 * another producer was first.
 */
static arn_inline int arn_ring_reserve_once(arn_base b, struct arn_root __arena *r, const struct arn_ring_view *v,
					    __u32 least, __u32 n, __u32 *pos)
{
	struct arn_ring __arena *q = arn_ring(b, v);
	__u32 tail = arn_load_relaxed(&q->tail), room;

	if (arn_unlikely(!arn_ring_room(b, r, v, tail, n, &room)))
		return -ARN_EAGAIN;
	n = n < room ? n : room;
	if (n < least || !n)
		return 0;
	*pos = tail;
	return arn_likely(arn_cas32_full(&q->tail, tail, tail + n) == tail) ? (int)n : -ARN_EAGAIN;
}

static arn_inline int arn_ring_reserve(arn_base b, struct arn_root __arena *r, const struct arn_ring_view *v,
				       __u32 least, __u32 n, __u32 *pos)
{
	int got = -ARN_EAGAIN;
	__u32 i;

	for (i = arn_opaque(0u); got == -ARN_EAGAIN && i < ARN_RING_TRIES && arn_may_loop; i++)
		got = arn_ring_reserve_once(b, r, v, least, n, pos);
	return got;
}

static arn_inline _Bool arn_ring_publish(arn_base b, const struct arn_ring_view *v, __u32 pos, __u32 off)
{
	return arn_cas32_full(arn_ring_slot(b, v, pos), ARN_RING_EMPTY(pos), off) == ARN_RING_EMPTY(pos);
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define ARN_RING_PAIR(first, second) ((__u64)(first) << 32 | (__u32)(second))
#else
#define ARN_RING_PAIR(first, second) ((__u64)(second) << 32 | (__u32)(first))
#endif

/* Two at once, the first at an even position. */
static arn_inline _Bool arn_ring_publish_pair(arn_base b, const struct arn_ring_view *v, __u32 pos, __u64 first,
					      __u64 second)
{
	__u64 empty = ARN_RING_PAIR(ARN_RING_EMPTY(pos), ARN_RING_EMPTY(pos + 1));

	return arn_cas64_full((__u64 __arena *)arn_ring_slot(b, v, pos), empty, ARN_RING_PAIR((__u32)first, second)) ==
	       empty;
}

/* Fills n reserved slots.  Returns how many it could: the next was skipped. */
static arn_inline __u32 arn_ring_publish_all(arn_base b, const struct arn_ring_view *v, __u32 pos, arn_vec from,
					     __u32 n)
{
	__u32 end = pos + n, k;

	/* Atomics do not overlap as stores do: one after the other would wait for its line to come over. */
	arn_prefetch_write(arn_ring_slot(b, v, pos), n * 4);
	while (pos != end && arn_may_loop) {
		arn_vec_word __arena *p = arn_vec_at(from, 0);

		if (arn_likely(!(pos & 1) && end - pos >= 8)) {
			arn_unroll for (k = 0; k < 8; k += 2) if (arn_unlikely(!arn_ring_publish_pair(
									  b, v, pos + k, p[k], p[k + 1]))) break;
			pos += k;
			from = arn_vec_next(from, k);
			if (arn_likely(k == 8))
				continue;
			p = arn_vec_at(from, 0);
		}
		if (!arn_ring_publish(b, v, pos, (__u32)*p))
			break;
		pos++;
		from = arn_vec_next(from, 1);
	}
	return n - (end - pos);
}

/* Reserved slots that will not be filled. */
static arn_inline void arn_ring_abandon(arn_base b, const struct arn_ring_view *v, __u32 pos, __u32 n)
{
	__u32 i;

	for (i = arn_opaque(0u); i < n && arn_may_loop; i++)
		arn_cas32_full(arn_ring_slot(b, v, pos + i), ARN_RING_EMPTY(pos + i), ARN_RING_SKIP);
}

/* Objects from head on, up to want, all published.  *stuck: for want of room no more can come. */
static arn_inline __u32 arn_ring_ready(arn_base b, const struct arn_ring_view *v, __u32 head, __u32 want, _Bool *stuck)
{
	__u32 i, w, n = arn_opaque(0u);

	for (i = arn_opaque(0u); i <= v->mask && n < want && arn_may_loop; i++) {
		w = arn_load_relaxed(arn_ring_slot(b, v, head + i));
		if (w == ARN_RING_EMPTY(head + i))
			break;
		n += ARN_RING_IS_OBJECT(w);
	}
	*stuck = i > v->mask && n <= v->mask;
	return n;
}

/* 1, and the object's address; 0: empty, or the next is not published; -EAGAIN: that was no object. */
static arn_inline int arn_ring_get_once(arn_base b, struct arn_root __arena *r, const struct arn_ring_view *v,
					__u64 *addr)
{
	struct arn_ring __arena *q = arn_ring(b, v);
	__u32 head = arn_load_relaxed(&q->head), off = arn_load_consume32(arn_ring_slot(b, v, head));

	if (off == ARN_RING_EMPTY(head))
		return 0;
	arn_store_relaxed(arn_ring_slot(b, v, head), ARN_RING_EMPTY(head + v->mask + 1));
	arn_store_release32(r, &q->head, head + 1);
	*addr = v->base | off;
	return arn_likely(ARN_RING_IS_OBJECT(off)) ? 1 : -ARN_EAGAIN;
}

/* What is neither an object nor empty is passed over, see below. */
static arn_inline int arn_ring_get_mpsc(arn_base b, struct arn_root __arena *r, const struct arn_ring_view *v,
					__u64 *addr)
{
	int got = -ARN_EAGAIN;
	__u32 i;

	for (i = arn_opaque(0u); got == -ARN_EAGAIN && i <= v->mask && arn_may_loop; i++)
		got = arn_ring_get_once(b, r, v, addr);
	return got == -ARN_EAGAIN ? 0 : got;
}

/*
 * At least so many, at most n, or none.  What is neither an object nor empty is passed over: SKIP, what a
 * consumer took that was killed before it moved head, and corrupt words.  (Fewer than least only from a
 * ring that is full of such.)
 */
static arn_inline int arn_ring_get_bulk_mpsc(arn_base b, struct arn_root __arena *r, const struct arn_ring_view *v,
					     arn_vec out, __u32 least, __u32 n)
{
	__u32 pos = arn_load_relaxed(&arn_ring(b, v)->head), end = pos + v->mask + 1, off, all, k;
	arn_vec out_end = arn_vec_next(out, n);
	_Bool stuck;

	if (least > n || (least > 1 && arn_ring_ready(b, v, pos, least, &stuck) < least && !stuck))
		return 0;
	while (out != out_end && (__s32)(end - pos) > 0 && arn_may_loop) { /* a step may pass the end */
		__u32 __arena *from = arn_ring_slot(b, v, pos);
		arn_vec_word __arena *to = arn_vec_at(out, 0);

		if (arn_likely(arn_ring_step(v, pos, arn_vec_left(out, out_end)))) {
			all = 0;
			arn_unroll for (k = 0; k < ARN_BULK_STEP; k++)
			{
				off = arn_load_consume32(&from[k]);
				all |= off;
				to[k] = v->base | off;
			}
			if (arn_likely(ARN_RING_IS_OBJECT(all))) {
				all = ARN_RING_EMPTY(pos + v->mask + 1);
				arn_unroll for (k = 0; k < ARN_BULK_STEP; k++) arn_store_relaxed(&from[k], all + 2 * k);
				pos += ARN_BULK_STEP;
				out = arn_vec_next(out, ARN_BULK_STEP);
				continue;
			}
		}
		off = arn_load_consume32(from);
		if (off == ARN_RING_EMPTY(pos))
			break;
		if (arn_likely(ARN_RING_IS_OBJECT(off))) {
			*to = v->base | off;
			out = arn_vec_next(out, 1);
		}
		arn_store_relaxed(from, ARN_RING_EMPTY(pos + v->mask + 1));
		pos++;
	}
	/* As it was, if nothing was taken. */
	arn_store_release32(r, &arn_ring(b, v)->head, pos);
	return (int)(n - arn_vec_left(out, out_end));
}

/*
 * Skip: marks the reserved slots that the consumer would stop at, from head to the next that is published.
 * Returns how many.
 */
static arn_inline int arn_ring_pass_over(arn_base b, const struct arn_ring_view *v)
{
	struct arn_ring __arena *q = arn_ring(b, v);
	__u32 tail = arn_load_relaxed(&q->tail), head = arn_load_relaxed(&q->head), w, i, done = arn_opaque(0u);

	/* Only what was reserved before head was read. */
	if (tail - head > v->mask + 1)
		return 0;
	for (i = arn_opaque(0u); i < tail - head && arn_may_loop; i++) {
		w = arn_load_relaxed(arn_ring_slot(b, v, head + i));
		if (w == ARN_RING_EMPTY(head + i))
			done += arn_cas32_full(arn_ring_slot(b, v, head + i), w, ARN_RING_SKIP) == w;
		else if (ARN_RING_IS_OBJECT(w))
			break;
	}
	return (int)done;
}

#endif
