// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * shared.bpf.c - BPF's side of 'arenite bench shared': shared.c has the same text for user space.
 *
 * Its arena is the heap under test (arn_attach before load).
 */
#include <linux/bpf.h>
#include <arenite/arenite.bpf.h>

#include "shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define word(at) (*(volatile __u64 __arena *)(__u64)(at))
#define ring(s)	 ((struct arn_ring __arena *)(s)->ring)

static arn_inline void write_line(__u64 at, __u64 number)
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

static arn_inline __u64 read_line(__u64 at)
{
	return word(at) + word(at + 8) + word(at + 16) + word(at + 24) + word(at + 32) + word(at + 40) + word(at + 48) +
	       word(at + 56);
}

static arn_inline __u32 make_batch(struct shared_side *s, enum shared_impl impl)
{
	__u64 p, vec = s->vec, number = s->number;
	__u32 i, n = SHARED_BATCH, at, size = s->size;

	if (impl == SHARED_BULK) {
		n = arn_malloc_bulk(size, SHARED_BATCH, vec);
		s->fails += n < SHARED_BATCH;
	}
	for (i = arn_opaque(0u); i < n && arn_may_loop; i++) {
		if (impl == SHARED_BULK)
			p = word(vec + i * 8ULL);
		else if (impl == SHARED_SINGLE)
			p = (__u64)arn_malloc(size);
		else
			p = word(s->ready + number % SHARED_READY * 8);
		if (arn_unlikely(!p)) {
			s->fails++;
			break;
		}
		for (at = arn_opaque(0u); at < size && arn_may_loop; at += SHARED_LINE)
			write_line(p + at, number);
		word(vec + i * 8ULL) = p;
		number++;
	}
	s->number = number;
	return i;
}

static arn_inline void take_batch(struct shared_side *s, __u32 n, enum shared_impl impl)
{
	__u64 p, vec = s->vec, number = s->number, wrong = 0;
	__u32 i, at, size = s->size;

	for (i = arn_opaque(0u); i < n && arn_may_loop; i++) {
		p = word(vec + i * 8ULL);
		for (at = arn_opaque(0u); at < size && arn_may_loop; at += SHARED_LINE)
			wrong |= read_line(p + at) ^ number * 8;
		if (impl == SHARED_SINGLE && arn_unlikely(arn_free((void __arena *)p)))
			s->fails++;
		number++;
	}
	if (impl == SHARED_BULK && arn_unlikely((__u32)arn_free_bulk(vec, n) != n))
		s->fails++;
	s->number = number;
	s->objs += i;
	s->wrong += wrong != 0 || i != n;
}

/* The run ends when it has handed over enough, or the ring stays full. */
static arn_inline int make(struct shared_side *s, enum shared_impl impl)
{
	__u32 batch = arn_opaque(0u), waited = arn_opaque(0u);
	int n;

	arn_name_arena();
	while (batch < SHARED_BATCHES && waited < SHARED_WAIT && arn_may_loop) {
		if (s->at == s->held) {
			s->at = 0;
			s->held = make_batch(s, impl);
			batch++;
			if (!s->held)
				break;
		}
		n = arn_ring_enqueue_bulk_spsc(ring(s), s->vec + s->at * 8ULL, 1, s->held - s->at);
		if (n < 0) {
			s->err = n;
			break;
		}
		s->at += n;
		s->objs += n;
		waited = n ? arn_opaque(0u) : waited + 1;
	}
	return 0;
}

static arn_inline int take(struct shared_side *s, enum shared_impl impl)
{
	__u32 batch = arn_opaque(0u), waited = arn_opaque(0u);
	int n;

	arn_name_arena();
	while (batch < SHARED_BATCHES && waited < SHARED_WAIT && arn_may_loop) {
		n = arn_ring_dequeue_bulk_spsc(ring(s), s->vec, 1, SHARED_BATCH);
		if (n < 0) {
			s->err = n;
			break;
		}
		if (!n) {
			waited++;
			continue;
		}
		waited = arn_opaque(0u);
		batch++;
		take_batch(s, n, impl);
	}
	return 0;
}

#define PROGS(name, impl)                                                                                              \
	SEC("syscall") int make_##name(struct shared_side *s)                                                          \
	{                                                                                                              \
		return make(s, impl);                                                                                  \
	}                                                                                                              \
	SEC("syscall") int take_##name(struct shared_side *s)                                                          \
	{                                                                                                              \
		return take(s, impl);                                                                                  \
	}

PROGS(bulk, SHARED_BULK)
PROGS(single, SHARED_SINGLE)
PROGS(ring, SHARED_RINGS)
