/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rings.h - both kinds of ring under one set of names, for what must hold of both. */
#ifndef ARN_TEST_RINGS_H
#define ARN_TEST_RINGS_H

#include <sched.h>
#include "unit.h"
#include "../../src/core/ring_mpsc.h"

struct kind {
	const char *name;
	struct arn_ring_handle *(*create)(struct arn_heap *heap, __u32 size);
	int (*put)(struct arn_ring_handle *ring, void *obj);
	void *(*get)(struct arn_ring_handle *ring);
	int (*put_bulk)(struct arn_ring_handle *ring, void **objs, __u32 least, __u32 n);
	int (*get_bulk)(struct arn_ring_handle *ring, void **out, __u32 least, __u32 n);
};

#define KIND(k)                                                                                                        \
	{ #k,                                                                                                          \
	  arn_ring_create_##k,                                                                                         \
	  arn_ring_enqueue_##k,                                                                                        \
	  arn_ring_dequeue_##k,                                                                                        \
	  arn_ring_enqueue_bulk_##k,                                                                                   \
	  arn_ring_dequeue_bulk_##k }

static const struct kind kinds[] = { KIND(spsc), KIND(mpsc) };
#define MPSC		 (&kinds[1])
#define for_each_kind(k) for (k = kinds; k < kinds + NELEMS(kinds); k++)

/* The n-th address that may be in a ring; rings do not look behind it. */
static inline void *nth(struct arn_heap *h, __u32 n)
{
	return h->base + 16 + (size_t)n * 16;
}

static inline struct arn_ring_handle *ring_new(const struct kind *k, struct arn_heap *h, __u32 size)
{
	struct arn_ring_handle *q = k->create(h, size);

	if (!q)
		print_error("%s ring of %u: %s\n", k->name, size, arn_last_error());
	assert_non_null(q);
	return q;
}

/* Lets the ring's positions start elsewhere, as if so many had passed. */
static inline void ring_at(struct arn_ring_handle *q, __u32 pos)
{
	struct arn_ring *s = arn_ring_address(q);
	__u32 *slot = (__u32 *)(s + 1), i;

	s->head = s->tail = s->head_seen = s->tail_seen = pos;
	for (i = 0; i <= s->mask; i++)
		slot[(pos + i) & s->mask] = ARN_RING_EMPTY(pos + i);
}

/* Nothing comes out, and that is what errno says. */
static inline void ring_is_empty(const struct kind *k, struct arn_ring_handle *q)
{
	errno = 0;
	assert_null(k->get(q));
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(arn_ring_count(q), 0);
}

/* The core by itself on a ring that the library made. */
struct bare {
	struct arn_heap *h;
	struct arn_root *r;
	struct arn_ring_handle *q;
	struct arn_ring_view v;
};

static inline struct bare bare_new(__u32 size)
{
	struct bare t = { .h = heap_new(24 * MIB) };

	t.r = arn_root(t.h->base);
	t.q = ring_new(MPSC, t.h, size);
	t.v = (struct arn_ring_view){ (__u64)t.h->base, (__u32)(__u64)arn_ring_address(t.q), size - 1 };
	return t;
}

static inline void bare_end(struct bare *t)
{
	arn_ring_destroy(t->q);
	heap_end(t->h);
}

static inline int reserve(struct bare *t, __u32 n, __u32 *pos)
{
	return arn_ring_reserve(t->h->base, t->r, &t->v, n, n, pos);
}

/* In a loop that waits for another thread: a moment, and now and then the CPU to others. */
static inline void pause_now_and_then(__u32 *turns)
{
	if (++*turns % 1000 == 0)
		sched_yield();
}

#endif
