/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ring.c - rings from user space.
 *
 * A handle keeps what a call must be able to believe (where the ring lies, how long it is, the bounds of the
 * arena), out of reach of whoever else maps the heap: no word in the shared memory makes a call leave the
 * ring's own bytes.
 */
#include <stdlib.h>
#include "shared.h"
#include "../core/ring_mpsc.h"

struct arn_ring_handle {
	struct arn_heap *heap;
	struct arn_ring_view v;
	__u32 kind;
};

static const char *kind_name(__u32 kind)
{
	return kind == ARN_RING_SPSC ? "spsc" : kind == ARN_RING_MPSC ? "mpsc" : "destroyed";
}

static __attribute__((noinline, cold)) int refuse(const struct arn_ring_handle *h, __u32 kind)
{
	int err = arn_alive(h->heap);

	if (err)
		return err;
	return arn_error(EINVAL, "ring %p: it is %s: use its own kind of calls, not those of %s",
			 (void *)arn_ring_address(h), kind_name(h->kind), kind_name(kind));
}

#define usable(h, k) (arn_likely((h)->kind == (k)) && arn_likely(!(h)->heap->gone))

/* Says why a call with n objects failed; returns err. */
static __attribute__((noinline, cold)) int failed(const struct arn_ring_handle *h, int err, void **objs, __u32 n)
{
	void *q = arn_ring_address(h);
	__u32 i;

	switch (-err) {
	case EINVAL:
		for (i = 0; i + 1 < n && arn_ring_offset(&h->v, (__u64)objs[i]); i++)
			;
		return arn_error(EINVAL,
				 "ring %p: object %u of %u, %p: not an address in the heap's arena aligned to 16", q,
				 i + 1, n, objs[i]);
	case EAGAIN:
		return arn_error(EAGAIN, "ring %p: other producers came first each time, or arn_ring_skip: try again",
				 q);
	default:
		return arn_error(-err,
				 "ring %p: its words contradict each other: somebody overwrote it: make a new one", q);
	}
}

#define checked(h, got, objs, n) (arn_likely((got) >= 0) ? (got) : failed(h, got, objs, n))

/* ---- Begin and end ---- */

static struct arn_ring_handle *handle_new(struct arn_heap *heap, struct arn_ring *q, __u32 kind, __u32 mask)
{
	struct arn_ring_handle *h = malloc(sizeof(*h));

	if (!h) {
		arn_error(ENOMEM, "ring: no memory for its handle");
		return NULL;
	}
	*h = (struct arn_ring_handle){
		.heap = heap,
		.v = { .base = (__u64)heap->base, .off = (__u32)(unsigned long)q, .mask = mask },
		.kind = kind,
	};
	return h;
}

static struct arn_ring_handle *ring_create(struct arn_heap *heap, __u32 size, __u32 kind)
{
	struct arn_ring_handle *h;
	struct arn_ring *q;

	if (arn_alive(heap))
		return NULL;
	if (!arn_ring_size_ok(size)) {
		arn_error(EINVAL, "ring of %u objects: must be a power of two up to %u", size, ARN_RING_MAX);
		return NULL;
	}
	q = arn_aligned_alloc(heap, ARN_RING_ALIGN, arn_ring_bytes(size));
	if (!q || (!heap->native && !arn_shared_mapped(heap, q, arn_ring_bytes(size))))
		return NULL;
	h = handle_new(heap, q, kind, size - 1);
	if (!h) {
		arn_free(heap, q);
		return NULL;
	}
	arn_ring_init(heap->base, h->v.off, size);
	arn_xchg32_full(&q->kind, kind);
	return h;
}

struct arn_ring_handle *arn_ring_create_spsc(struct arn_heap *heap, __u32 size)
{
	return ring_create(heap, size, ARN_RING_SPSC);
}

struct arn_ring_handle *arn_ring_create_mpsc(struct arn_heap *heap, __u32 size)
{
	return ring_create(heap, size, ARN_RING_MPSC);
}

struct arn_ring_handle *arn_ring_open(struct arn_heap *heap, struct arn_ring *ring)
{
	size_t bytes = sizeof(*ring), have;
	__u32 kind, mask;
	__u64 word;

	if (arn_alive(heap))
		return NULL;
	have = (__u64)ring % ARN_RING_ALIGN ? 0 : arn_usable_size(heap, ring);
	if (have < bytes) {
		arn_error(
			EINVAL,
			"ring %p: no address of one in this heap: take what BPF's arn_ring_create or arn_ring_address gave",
			(void *)ring);
		return NULL;
	}
	kind = arn_load_acquire32(arn_root(heap->base), &ring->kind);
	mask = arn_load_relaxed(&ring->mask);
	if ((kind != ARN_RING_SPSC && kind != ARN_RING_MPSC) || !arn_ring_size_ok(mask + 1)) {
		arn_error(EINVAL, "ring %p: there is none here: was it destroyed?", (void *)ring);
		return NULL;
	}
	bytes = arn_ring_bytes(mask + 1);
	/* Its pages may be those of two chunks. */
	if (have < bytes || !arn_peek((char *)ring + bytes - sizeof(word), &word)) {
		arn_error(EINVAL, "ring %p: %u objects do not fit in its memory: it is corrupt", (void *)ring,
			  mask + 1);
		return NULL;
	}
	return handle_new(heap, ring, kind, mask);
}

void arn_ring_close(struct arn_ring_handle *h)
{
	free(h);
}

int arn_ring_destroy(struct arn_ring_handle *h)
{
	int err;

	if (!h)
		return 0;
	err = arn_alive(h->heap);
	if (err)
		return err;
	arn_xchg32_full(&arn_ring_address(h)->kind, 0);
	err = arn_free(h->heap, arn_ring_address(h));
	if (!err)
		free(h);
	return err;
}

struct arn_ring *arn_ring_address(const struct arn_ring_handle *h)
{
	return arn_ring(h->heap->base, &h->v);
}

__u32 arn_ring_size(const struct arn_ring_handle *h)
{
	return h->v.mask + 1;
}

/* ---- Objects ---- */

int arn_ring_enqueue_spsc(struct arn_ring_handle *h, void *obj)
{
	arn_base b = h->heap->base;
	int got;

	if (!usable(h, ARN_RING_SPSC))
		return refuse(h, ARN_RING_SPSC);
	got = arn_ring_put_spsc(b, arn_root(b), &h->v, (__u64)obj);
	return checked(h, got, &obj, 1);
}

int arn_ring_enqueue_bulk_spsc(struct arn_ring_handle *h, void **objs, __u32 least, __u32 n)
{
	arn_base b = h->heap->base;
	int got;

	if (!usable(h, ARN_RING_SPSC))
		return refuse(h, ARN_RING_SPSC);
	got = arn_ring_put_bulk_spsc(b, arn_root(b), &h->v, objs, least, n);
	return checked(h, got, objs, n);
}

int arn_ring_enqueue_mpsc(struct arn_ring_handle *h, void *obj)
{
	arn_base b = h->heap->base;
	__u32 off, pos;
	int n;

	if (!usable(h, ARN_RING_MPSC))
		return refuse(h, ARN_RING_MPSC);
	off = arn_ring_offset(&h->v, (__u64)obj);
	if (arn_unlikely(!off))
		return failed(h, -EINVAL, &obj, 1);
	n = arn_ring_reserve(b, arn_root(b), &h->v, 1, 1, &pos);
	if (n > 0 && arn_unlikely(!arn_ring_publish(b, &h->v, pos, off)))
		n = -EAGAIN;
	return checked(h, n, &obj, 1);
}

int arn_ring_enqueue_bulk_mpsc(struct arn_ring_handle *h, void **objs, __u32 least, __u32 n)
{
	arn_base b = h->heap->base;
	__u32 pos, done;
	int got;

	if (!usable(h, ARN_RING_MPSC))
		return refuse(h, ARN_RING_MPSC);
	if (n > arn_ring_size(h))
		n = arn_ring_size(h);
	if (arn_ring_objects(&h->v, objs, n))
		return failed(h, -EINVAL, objs, n);
	got = arn_ring_reserve(b, arn_root(b), &h->v, least, n, &pos);
	if (got <= 0)
		return checked(h, got, objs, n);
	done = arn_ring_publish_all(b, &h->v, pos, objs, (__u32)got);
	if (arn_likely(done == (__u32)got))
		return got;
	arn_ring_abandon(b, &h->v, pos + done, (__u32)got - done);
	return done ? (int)done : failed(h, -EAGAIN, objs, n);
}

/* A dequeued object, or why there is none. */
static inline void *object(const struct arn_ring_handle *h, int n, __u64 addr)
{
	if (arn_likely(n > 0))
		return (void *)addr;
	errno = n ? -failed(h, n, NULL, 0) : EAGAIN;
	return NULL;
}

void *arn_ring_dequeue_spsc(struct arn_ring_handle *h)
{
	arn_base b = h->heap->base;
	__u64 addr = 0;
	int n;

	if (!usable(h, ARN_RING_SPSC)) {
		refuse(h, ARN_RING_SPSC);
		return NULL;
	}
	n = arn_ring_get_spsc(b, arn_root(b), &h->v, &addr);
	return object(h, n, addr);
}

void *arn_ring_dequeue_mpsc(struct arn_ring_handle *h)
{
	arn_base b = h->heap->base;
	__u64 addr = 0;
	int n;

	if (!usable(h, ARN_RING_MPSC)) {
		refuse(h, ARN_RING_MPSC);
		return NULL;
	}
	n = arn_ring_get_mpsc(b, arn_root(b), &h->v, &addr);
	return object(h, n, addr);
}

int arn_ring_dequeue_bulk_spsc(struct arn_ring_handle *h, void **out, __u32 least, __u32 n)
{
	arn_base b = h->heap->base;
	int got;

	if (!usable(h, ARN_RING_SPSC))
		return refuse(h, ARN_RING_SPSC);
	got = arn_ring_get_bulk_spsc(b, arn_root(b), &h->v, out, least, n);
	return checked(h, got, out, n);
}

int arn_ring_dequeue_bulk_mpsc(struct arn_ring_handle *h, void **out, __u32 least, __u32 n)
{
	arn_base b = h->heap->base;

	if (!usable(h, ARN_RING_MPSC))
		return refuse(h, ARN_RING_MPSC);
	return arn_ring_get_bulk_mpsc(b, arn_root(b), &h->v, out, least, n);
}

int arn_ring_count(const struct arn_ring_handle *h)
{
	int err = arn_alive(h->heap);

	return err ? err : (int)arn_ring_held(h->heap->base, &h->v);
}

int arn_ring_skip(struct arn_ring_handle *h)
{
	if (!usable(h, ARN_RING_MPSC))
		return refuse(h, ARN_RING_MPSC);
	return arn_ring_pass_over(h->heap->base, &h->v);
}
