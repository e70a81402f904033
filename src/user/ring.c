/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ring.c - rings from user space.
 *
 * A handle keeps what a call must be able to believe (where the ring lies, how long it is, the bounds of the
 * arena), out of reach of whoever else maps the heap: no word in the shared memory makes a call leave the
 * ring's own bytes.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"
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
	if (h->heap->gone)
		return arn_error(EOWNERDEAD,
				 "ring: this process is a forked child of the one that opened its heap: open it anew");
	return arn_error(EINVAL, "ring %p: it is %s: use its own kind of calls, not those of %s",
			 (void *)arn_ring_address(h), kind_name(h->kind), kind_name(kind));
}

#define usable(h, k) (arn_likely((h)->kind == (k)) && arn_likely(!(h)->heap->gone))

/* Says why a call failed; returns err. */
static __attribute__((noinline, cold)) int failed(const struct arn_ring_handle *h, int err, const void *obj)
{
	switch (-err) {
	case EINVAL:
		return arn_error(EINVAL, "ring %p: object %p%s: not an address in the heap's arena, aligned to 16",
				 (void *)arn_ring_address(h), obj, obj ? "" : " (or one of several)");
	case EUCLEAN:
		return arn_error(EUCLEAN,
				 "ring %p: its words contradict each other: somebody overwrote it: make a new one",
				 (void *)arn_ring_address(h));
	case EAGAIN:
		return arn_error(
			EAGAIN,
			"ring %p: other producers were first each time, or arn_ring_skip overtook this one: try again",
			(void *)arn_ring_address(h));
	}
	return err;
}

static inline int checked(const struct arn_ring_handle *h, int n, const void *obj)
{
	return arn_likely(n >= 0) ? n : failed(h, n, obj);
}

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

	if (heap->gone) {
		arn_error(EOWNERDEAD, "heap: this process is a forked child of the one that opened it: open it anew");
		return NULL;
	}
	if (!arn_ring_size_ok(size)) {
		arn_error(EINVAL, "ring of %u objects: must be a power of two up to %u", size, ARN_RING_MAX);
		return NULL;
	}
	q = arn_aligned_alloc(heap, ARN_RING_ALIGN, arn_ring_bytes(size));
	if (!q)
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

/* Whether bytes from p on are all mapped: a write to a pipe finds out without a fault. */
static bool mapped(const char *p, __u64 bytes)
{
	__u64 page = (__u64)sysconf(_SC_PAGESIZE), at;
	int fds[2];
	bool ok = true;
	char c;

	if (pipe(fds))
		return false;
	for (at = 0; ok && at < bytes; at = (((__u64)p + at) | (page - 1)) + 1 - (__u64)p)
		ok = write(fds[1], p + at, 1) == 1 && read(fds[0], &c, 1) == 1;
	close(fds[0]);
	close(fds[1]);
	return ok;
}

struct arn_ring_handle *arn_ring_open(struct arn_heap *heap, struct arn_ring *ring)
{
	__u64 at = (__u64)ring - (__u64)heap->base, bytes = sizeof(*ring);
	__u32 kind = 0, mask = 0;

	if (heap->gone) {
		arn_error(EOWNERDEAD, "heap: this process is a forked child of the one that opened it: open it anew");
		return NULL;
	}
	if (!at || at % ARN_RING_ALIGN || at > heap->bytes - bytes || !mapped((char *)ring, bytes)) {
		arn_error(
			EINVAL,
			"ring %p: no address of one in this heap: take what arn_ring_create in BPF returned, or arn_ring_address",
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
	if (at > heap->bytes - bytes || !mapped((char *)ring, bytes)) {
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
	if (h->heap->gone)
		return refuse(h, h->kind);
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

	if (!usable(h, ARN_RING_SPSC))
		return refuse(h, ARN_RING_SPSC);
	return checked(h, arn_ring_put_spsc(b, arn_root(b), &h->v, (__u64)obj), obj);
}

int arn_ring_enqueue_bulk_spsc(struct arn_ring_handle *h, void **objs, __u32 least, __u32 n)
{
	arn_base b = h->heap->base;

	if (!usable(h, ARN_RING_SPSC))
		return refuse(h, ARN_RING_SPSC);
	return checked(h, arn_ring_put_bulk_spsc(b, arn_root(b), &h->v, objs, least, n), NULL);
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
		return failed(h, -EINVAL, obj);
	n = arn_ring_reserve(b, arn_root(b), &h->v, 1, 1, &pos);
	if (n > 0 && arn_unlikely(!arn_ring_publish(b, &h->v, pos, off)))
		n = -EAGAIN;
	return checked(h, n, obj);
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
		return failed(h, -EINVAL, NULL);
	got = arn_ring_reserve(b, arn_root(b), &h->v, least, n, &pos);
	if (got <= 0)
		return checked(h, got, NULL);
	done = arn_ring_publish_all(b, &h->v, pos, objs, (__u32)got);
	if (arn_likely(done == (__u32)got))
		return got;
	arn_ring_abandon(b, &h->v, pos + done, (__u32)got - done);
	return done ? (int)done : failed(h, -EAGAIN, NULL);
}

/* A dequeued object, or why there is none. */
static inline void *object(const struct arn_ring_handle *h, int n, __u64 addr)
{
	if (arn_likely(n > 0))
		return (void *)addr;
	errno = n ? -failed(h, n, NULL) : EAGAIN;
	return NULL;
}

void *arn_ring_dequeue_spsc(struct arn_ring_handle *h)
{
	arn_base b = h->heap->base;
	__u64 addr;
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
	__u64 addr;
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

	if (!usable(h, ARN_RING_SPSC))
		return refuse(h, ARN_RING_SPSC);
	return checked(h, arn_ring_get_bulk_spsc(b, arn_root(b), &h->v, out, least, n), NULL);
}

int arn_ring_dequeue_bulk_mpsc(struct arn_ring_handle *h, void **out, __u32 least, __u32 n)
{
	arn_base b = h->heap->base;

	if (!usable(h, ARN_RING_MPSC))
		return refuse(h, ARN_RING_MPSC);
	return checked(h, arn_ring_get_bulk_mpsc(b, arn_root(b), &h->v, out, least, n), NULL);
}

int arn_ring_count(const struct arn_ring_handle *h)
{
	return h->heap->gone ? refuse(h, h->kind) : (int)arn_ring_held(h->heap->base, &h->v);
}

int arn_ring_skip(struct arn_ring_handle *h)
{
	if (!usable(h, ARN_RING_MPSC))
		return refuse(h, ARN_RING_MPSC);
	return arn_ring_pass_over(h->heap->base, &h->v);
}
