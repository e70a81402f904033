// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * shared_user.c - the user thread's side of 'arenite bench shared': the text of shared.bpf.c.
 */
#include "shared_user.h"

#define inlined	 static inline __attribute__((always_inline))
#define word(at) (*(volatile __u64 *)(at))

inlined void write_line(__u64 at, __u64 number)
{
	word(at) = number;
	word(at + 8) = number;
	word(at + 16) = number;
	word(at + 24) = number;
	word(at + 32) = number;
	word(at + 40) = number;
	word(at + 48) = number;
	word(at + 56) = number;
}

inlined __u64 read_line(__u64 at)
{
	return word(at) + word(at + 8) + word(at + 16) + word(at + 24) + word(at + 32) + word(at + 40) + word(at + 48) +
	       word(at + 56);
}

inlined __u32 make_batch(struct arn_heap *heap, struct shared_side *s, enum shared_impl impl)
{
	__u64 p, *vec = (__u64 *)s->vec, number = s->number;
	__u32 i, n = SHARED_BATCH, at, size = s->size;

	if (impl == SHARED_BULK) {
		n = (__u32)arn_malloc_bulk(heap, size, SHARED_BATCH, (void **)vec);
		s->fails += n < SHARED_BATCH;
	}
	for (i = 0; i < n; i++) {
		if (impl == SHARED_BULK)
			p = vec[i];
		else if (impl == SHARED_SINGLE)
			p = (__u64)arn_malloc(heap, size);
		else
			p = ((__u64 *)s->ready)[number % SHARED_READY];
		if (__builtin_expect(!p, 0)) {
			s->fails++;
			break;
		}
		for (at = 0; at < size; at += SHARED_LINE)
			write_line(p + at, number);
		vec[i] = p;
		number++;
	}
	s->number = number;
	return i;
}

inlined void take_batch(struct arn_heap *heap, struct shared_side *s, __u32 n, enum shared_impl impl)
{
	__u64 p, *vec = (__u64 *)s->vec, number = s->number, wrong = 0;
	__u32 i, at, size = s->size;

	for (i = 0; i < n; i++) {
		p = vec[i];
		for (at = 0; at < size; at += SHARED_LINE)
			wrong |= read_line(p + at) ^ number * 8;
		if (impl == SHARED_SINGLE && __builtin_expect(arn_free(heap, (void *)p) != 0, 0))
			s->fails++;
		number++;
	}
	if (impl == SHARED_BULK && __builtin_expect(arn_free_bulk(heap, (void **)vec, n) != (long)n, 0))
		s->fails++;
	s->number = number;
	s->objs += n;
	s->wrong += wrong != 0;
}

inlined void make(const struct shared_user *u, struct shared_side *s, enum shared_impl impl)
{
	__u32 batch = 0, waited = 0;
	int n;

	while (batch < SHARED_BATCHES && waited < SHARED_WAIT) {
		if (s->at == s->held) {
			s->at = 0;
			s->held = make_batch(u->heap, s, impl);
			batch++;
			if (!s->held)
				break;
		}
		n = arn_ring_enqueue_bulk_spsc(u->ring, (void **)s->vec + s->at, 1, s->held - s->at);
		if (n < 0) {
			s->err = n;
			break;
		}
		s->at += (__u32)n;
		s->objs += (__u32)n;
		waited = n ? 0 : waited + 1;
	}
}

inlined void take(const struct shared_user *u, struct shared_side *s, enum shared_impl impl)
{
	__u32 batch = 0, waited = 0;
	int n;

	while (batch < SHARED_BATCHES && waited < SHARED_WAIT) {
		n = arn_ring_dequeue_bulk_spsc(u->ring, (void **)s->vec, 1, SHARED_BATCH);
		if (n < 0) {
			s->err = n;
			break;
		}
		if (!n) {
			waited++;
			continue;
		}
		waited = 0;
		batch++;
		take_batch(u->heap, s, (__u32)n, impl);
	}
}

void shared_user_make(const struct shared_user *u, struct shared_side *s, enum shared_impl impl)
{
	if (impl == SHARED_BULK)
		make(u, s, SHARED_BULK);
	else if (impl == SHARED_SINGLE)
		make(u, s, SHARED_SINGLE);
	else
		make(u, s, SHARED_RINGS);
}

void shared_user_take(const struct shared_user *u, struct shared_side *s, enum shared_impl impl)
{
	if (impl == SHARED_BULK)
		take(u, s, SHARED_BULK);
	else if (impl == SHARED_SINGLE)
		take(u, s, SHARED_SINGLE);
	else
		take(u, s, SHARED_RINGS);
}
