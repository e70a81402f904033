// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * ring_test.c - what holds of both kinds of ring: order, room, all or as many as fit, refusals, and that
 * nothing written into one's memory makes a call hang or leave it.
 *
 * What only rings with many producers have is in ring_mpsc_test.c, threads are in ring_threads_test.c, BPF at
 * either end is in tests/bpf/ring.c.
 */
#include <unistd.h>
#include "rings.h"

/* Every size there is: as many go in as it says, come out in order, and then it is empty; several laps. */
static void a_ring_holds_what_its_size_says(void **state)
{
	struct arn_heap *h = heap_new(32 * MIB);
	const struct kind *k;
	__u32 size, i, lap;

	for_each_kind(k)
	{
		for (size = 1; size <= ARN_RING_MAX; size *= 2) {
			struct arn_ring_handle *q = ring_new(k, h, size);

			assert_int_equal(arn_ring_size(q), size);
			for (lap = 0; lap < 3; lap++) {
				ring_is_empty(k, q);
				for (i = 0; i < size; i++)
					assert_int_equal(k->put(q, nth(h, lap + i)), 1);
				assert_int_equal(arn_ring_count(q), size);
				assert_int_equal(k->put(q, nth(h, 0)), 0);
				for (i = 0; i < size; i++)
					assert_ptr_equal(k->get(q), nth(h, lap + i));
				ring_is_empty(k, q);
				/* so that the next lap begins elsewhere */
				assert_int_equal(k->put(q, nth(h, 7)), 1);
				assert_ptr_equal(k->get(q), nth(h, 7));
			}
			assert_int_equal(arn_ring_destroy(q), 0);
		}
	}
	assert_int_equal(live(h), 0);
	heap_end(h);
}

/* All or none, as many as fit, or anything between. */
static void bulk_takes_at_least_and_at_most(void **state)
{
	struct arn_heap *h = heap_new(32 * MIB);
	const struct kind *k;
	void *p[64], *out[64];
	__u32 i;

	for (i = 0; i < 64; i++)
		p[i] = nth(h, i);
	for_each_kind(k)
	{
		struct arn_ring_handle *q = ring_new(k, h, 32);

		assert_int_equal(k->get_bulk(q, out, 1, 64), 0);
		assert_int_equal(k->put_bulk(q, p, 0, 0), 0);
		assert_int_equal(k->put_bulk(q, p, 33, 64), 0);
		assert_int_equal(k->put_bulk(q, p, 20, 20), 20);
		assert_int_equal(k->put_bulk(q, p + 20, 13, 13), 0);
		assert_int_equal(k->put_bulk(q, p + 20, 12, 13), 12);
		assert_int_equal(k->put_bulk(q, p, 1, 1), 0);
		assert_int_equal(k->get_bulk(q, out, 33, 64), 0);
		assert_int_equal(k->get_bulk(q, out, 5, 5), 5);
		assert_int_equal(k->get_bulk(q, out + 5, 28, 28), 0);
		assert_int_equal(k->put_bulk(q, p + 32, 1, 10), 5);
		assert_int_equal(k->get_bulk(q, out + 5, 0, 64 - 5), 32);
		assert_int_equal(memcmp(out, p, 37 * sizeof(void *)), 0);
		ring_is_empty(k, q);
		arn_ring_destroy(q);
	}
	heap_end(h);
}

/* Any sequence of calls does what it does to a list in order; also where positions wrap at 2^32. */
static void any_sequence_is_a_queue(void **state)
{
	static __u32 list[4096];
	struct arn_heap *h = heap_new(32 * MIB);
	void *p[100], *out[100];
	const struct kind *k;
	__u64 seed = 5;
	__u32 first, last, i, j, n, least, size, room, want, fed;
	int got;

	for_each_kind(k)
	{
		for (size = 1; size <= 256; size *= 2) {
			struct arn_ring_handle *q = ring_new(k, h, size);

			first = last = -(__u32)(20 * size + 13);
			ring_at(q, first);
			for (i = 0, fed = 1; i < 20000 / ARN_TEST_SCALE; i++) {
				n = rnd(&seed) % (rnd(&seed) % 3 ? 12 : 100);
				least = rnd(&seed) % 2 ? n : rnd(&seed) % (n + 2);
				room = size - (last - first);
				switch (rnd(&seed) % 4) {
				case 0:
					got = k->put(q, nth(h, fed));
					assert_int_equal(got, room ? 1 : 0);
					if (got)
						list[last++ % 4096] = fed++;
					break;
				case 1:
					out[0] = k->get(q);
					assert_ptr_equal(out[0], last == first ? NULL : nth(h, list[first % 4096]));
					first += out[0] != NULL;
					break;
				case 2:
					for (j = 0; j < n; j++)
						p[j] = nth(h, fed + j);
					want = n < room ? n : room;
					want = want < least ? 0 : want;
					assert_int_equal(k->put_bulk(q, p, least, n), want);
					for (j = 0; j < want; j++)
						list[last++ % 4096] = fed++;
					break;
				default:
					want = n < last - first ? n : last - first;
					want = want < least ? 0 : want;
					assert_int_equal(k->get_bulk(q, out, least, n), want);
					for (j = 0; j < want; j++)
						assert_ptr_equal(out[j], nth(h, list[first++ % 4096]));
				}
				assert_int_equal(arn_ring_count(q), last - first);
				fed = fed > 1000000 ? 1 : fed;
			}
			assert_true(last < 0x10000000); /* it wrapped */
			arn_ring_destroy(q);
		}
	}
	heap_end(h);
}

/* What is no address of the arena, or not aligned, is refused and nothing changes. */
static void a_wrong_address_is_refused(void **state)
{
	struct arn_heap *h = heap_new(32 * MIB);
	const struct kind *k;
	void *wrong[] = { NULL, &h, (void *)(h->base + 17), (void *)(h->base - 16), (void *)(h->base + (4ULL << 30)) };
	char says[80];
	void *p[20];
	__u32 i, at;

	for_each_kind(k)
	{
		struct arn_ring_handle *q = ring_new(k, h, 32);

		for (i = 0; i < NELEMS(wrong); i++) {
			assert_int_equal(k->put(q, wrong[i]), -EINVAL);
			assert_non_null(strstr(arn_last_error(), "aligned to 16"));
			for (at = 0; at < 20; at++)
				p[at] = nth(h, at);
			for (at = 0; at < 20; at++) {
				p[at] = wrong[i];
				assert_int_equal(k->put_bulk(q, p, 1, 20), -EINVAL);
				snprintf(says, sizeof(says), "object %u of 20, %p", at + 1, wrong[i]);
				if (wrong[i])
					assert_non_null(strstr(arn_last_error(), says));
				p[at] = nth(h, at);
			}
			ring_is_empty(k, q);
		}
		/* an offset is as good as an address: BPF may have either */
		assert_int_equal(k->put(q, (void *)0x123450), 1);
		p[3] = (void *)0x543210;
		assert_int_equal(k->put_bulk(q, p, 20, 20), 20);
		assert_ptr_equal(k->get(q), h->base + 0x123450);
		assert_int_equal(k->get_bulk(q, p, 20, 20), 20);
		assert_ptr_equal(p[3], h->base + 0x543210);
		arn_ring_destroy(q);
	}
	heap_end(h);
}

/* Wrong sizes, the other kind's calls, addresses of no ring: an error that says so. */
static void wrong_uses_are_refused(void **state)
{
	static const __u32 sizes[] = { 0, 3, 100, 65535, 65537, 131072, 0x80000000, ~0u };
	struct arn_heap *h = heap_new(32 * MIB);
	struct arn_ring_handle *s = arn_ring_create_spsc(h, 8), *m = arn_ring_create_mpsc(h, 8), *again;
	struct arn_ring *at = arn_ring_address(m);
	void *p[2] = { nth(h, 1), nth(h, 2) };
	__u32 i;

	for (i = 0; i < NELEMS(sizes); i++) {
		errno = 0;
		assert_null(arn_ring_create_spsc(h, sizes[i]));
		assert_int_equal(errno, EINVAL);
		assert_null(arn_ring_create_mpsc(h, sizes[i]));
		assert_non_null(strstr(arn_last_error(), "power of two"));
	}
	assert_int_equal(arn_ring_enqueue_spsc(m, p[0]), -EINVAL);
	assert_non_null(strstr(arn_last_error(), "mpsc"));
	assert_int_equal(arn_ring_enqueue_mpsc(s, p[0]), -EINVAL);
	assert_int_equal(arn_ring_enqueue_bulk_spsc(m, p, 1, 2), -EINVAL);
	assert_int_equal(arn_ring_enqueue_bulk_mpsc(s, p, 1, 2), -EINVAL);
	assert_int_equal(arn_ring_dequeue_bulk_spsc(m, p, 1, 2), -EINVAL);
	assert_int_equal(arn_ring_dequeue_bulk_mpsc(s, p, 1, 2), -EINVAL);
	assert_int_equal(arn_ring_skip(s), -EINVAL);
	errno = 0;
	assert_null(arn_ring_dequeue_spsc(m));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(arn_ring_dequeue_mpsc(s));
	assert_int_equal(errno, EINVAL);

	/* a second handle on a ring is as good as the first */
	again = arn_ring_open(h, at);
	assert_non_null(again);
	assert_int_equal(arn_ring_enqueue_mpsc(m, p[0]), 1);
	assert_ptr_equal(arn_ring_dequeue_mpsc(again), p[0]);
	arn_ring_close(again);
	/* what is none is not opened */
	errno = 0;
	assert_null(arn_ring_open(h, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(arn_ring_open(h, (void *)&h));
	assert_null(arn_ring_open(h, (void *)((char *)at + 128)));
	assert_null(arn_ring_open(h, (void *)((char *)at + 4)));
	assert_null(arn_ring_open(h, (void *)h->base));
	assert_null(arn_ring_open(h, (void *)(h->base + h->bytes - 128)));
	assert_null(arn_ring_open(h, (void *)(h->base + h->bytes)));
	assert_int_equal(arn_ring_destroy(m), 0);
	assert_null(arn_ring_open(h, at));
	assert_int_equal(arn_ring_destroy(NULL), 0);
	arn_ring_destroy(s);
	heap_end(h);
}

/* No memory for a ring: NULL, and the heap is as it was. */
static void no_memory_is_an_answer(void **state)
{
	struct arn_heap *h = heap_new(24 * MIB);
	struct arn_ring_handle *q[200];
	__u32 n = 0;

	do {
		errno = 0;
		q[n] = arn_ring_create_mpsc(h, ARN_RING_MAX);
	} while (q[n] && ++n < 200);
	assert_in_range(n, 4, 199);
	assert_int_equal(errno, ENOMEM);
	while (n--)
		assert_int_equal(arn_ring_destroy(q[n]), 0);
	assert_int_equal(live(h), 0);
	heap_end(h);
}

/* ---- any word may be wrong ---- */

/* A word that leads somewhere: near an index, an object, an extreme, or anything. */
static __u32 bad_word(__u64 *seed, const struct arn_ring *q)
{
	switch (rnd(seed) % 6) {
	case 0:
		return 0;
	case 1:
		return ~0u;
	case 2:
		return q->tail + (__u32)(rnd(seed) % 9) - 4;
	case 3:
		return ARN_RING_EMPTY(q->head + (__u32)(rnd(seed) % 40));
	case 4:
		return (__u32)rnd(seed) & ~15u;
	default:
		return (__u32)rnd(seed);
	}
}

static void one_call(const struct kind *k, struct arn_ring_handle *q, struct arn_heap *h, __u64 *seed)
{
	void *p[100];
	__u32 n = rnd(seed) % 100, least = rnd(seed) % (n + 1), i;
	int got = 0;

	for (i = 0; i < n; i++)
		p[i] = nth(h, i);
	switch (rnd(seed) % 6) {
	case 0:
		assert_in_range(k->put(q, nth(h, 5)) + 200, 0, 201);
		break;
	case 1:
		p[0] = k->get(q);
		got = p[0] != NULL;
		break;
	case 2:
		assert_in_range(k->put_bulk(q, p, least, n) + 200, 0, 200 + n);
		break;
	case 3:
		got = k->get_bulk(q, p, least, n);
		assert_in_range(got + 200, 0, 200 + n);
		break;
	case 4:
		assert_in_range(arn_ring_skip(q) + 200, 0, 200 + arn_ring_size(q));
		break;
	default:
		assert_in_range(arn_ring_count(q), 0, arn_ring_size(q));
	}
	for (i = 0; got > 0 && i < (__u32)got; i++)
		assert_int_equal((__u64)p[i] >> 32, (__u64)h->base >> 32);
}

/* Each word of a ring overwritten, then any calls: they end, and write nowhere but into the ring. */
static void a_corrupt_ring_keeps_to_its_memory(void **state)
{
	struct arn_heap *h = heap_new(32 * MIB);
	const struct kind *k;
	__u64 seed = 11;
	__u32 size, i, j, words;

	for_each_kind(k)
	{
		for (size = 4; size <= 64; size *= 4) {
			struct arn_ring_handle *q = ring_new(k, h, size);
			struct arn_ring *s = arn_ring_address(q);
			size_t bytes = arn_ring_bytes(size), room = arn_usable_size(h, s);
			char *before, *after;

			words = (__u32)bytes / 4;
			before = malloc(8 * MIB);
			after = malloc(8 * MIB);
			/* the heap pages around the ring, but the ring itself */
			memset((char *)s + bytes, 0x5a, room - bytes);
			memcpy(before, (char *)s - 16 * KIB, 64 * KIB);
			for (i = 0; i < 40 * words / ARN_TEST_SCALE; i++) {
				__u32 *w = (__u32 *)s + i % words;

				alarm(60);
				*w = bad_word(&seed, s);
				if (rnd(&seed) % 2)
					((__u32 *)s)[rnd(&seed) % words] = bad_word(&seed, s);
				for (j = 0; j < 12; j++)
					one_call(k, q, h, &seed);
				alarm(0);
				if (rnd(&seed) % 2) {
					s->kind = k == kinds ? ARN_RING_SPSC : ARN_RING_MPSC;
					s->mask = size - 1;
					ring_at(q, (__u32)rnd(&seed));
				}
			}
			memcpy(after, (char *)s - 16 * KIB, 64 * KIB);
			memcpy(after + 16 * KIB, before + 16 * KIB, bytes);
			assert_memory_equal(before, after, 64 * KIB);
			free(before);
			free(after);
			arn_ring_destroy(q);
		}
	}
	heap_end(h);
}

unit_main(t(a_ring_holds_what_its_size_says), t(bulk_takes_at_least_and_at_most), t(any_sequence_is_a_queue),
	  t(a_wrong_address_is_refused), t(wrong_uses_are_refused), t(no_memory_is_an_answer),
	  t(a_corrupt_ring_keeps_to_its_memory))
