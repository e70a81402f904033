// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * ring_threads_test.c - threads at the ends of rings: all objects come, once, in order, with what was written to
 * them; many producers, and somebody who skips all the time.
 *
 * On two CPUs, and under TSan: that the order of memory is what it must be on weaker machines is argued in
 * docs/memory-ordering.md.
 */
#include <pthread.h>
#include "rings.h"

/* ---- one producer ---- */

struct side {
	const struct kind *k;
	struct arn_heap *h;
	struct arn_ring_handle *q;
	__u32 most; /* objects a call; 1: single calls */
	__u64 n, *cell;
};

#define CELLS 4096

/* Objects are cells that carry a number, written just before they are sent. */
static void *send(void *arg)
{
	struct side *s = arg;
	__u64 i = 0, seed = 3;
	void *p[64];
	__u32 k, n, turns = 0;
	int got;

	while (i < s->n) {
		n = s->most > 1 ? 1 + rnd(&seed) % s->most : 1;
		if (n > s->n - i)
			n = (__u32)(s->n - i);
		for (k = 0; k < n; k++) {
			__u64 *c = &s->cell[(i + k) % CELLS * 2];

			*c = i + k;
			p[k] = c;
		}
		got = s->most > 1 ? s->k->put_bulk(s->q, p, rnd(&seed) % 2 ? n : 1, n) : s->k->put(s->q, p[0]);
		insist(got >= 0);
		i += (__u32)got;
		if (!got)
			pause_now_and_then(&turns);
	}
	return NULL;
}

/* All come, in order, with what was written to them. */
static void receive(struct side *s)
{
	__u64 i = 0, seed = 4;
	void *p[64];
	__u32 k, n, turns = 0;
	int got;

	while (i < s->n) {
		n = s->most > 1 ? 1 + rnd(&seed) % s->most : 1;
		if (s->most > 1) {
			got = s->k->get_bulk(s->q, p, rnd(&seed) % 4 || s->n - i < n ? 1 : n, n);
		} else {
			p[0] = s->k->get(s->q);
			got = p[0] != NULL;
		}
		insist(got >= 0);
		for (k = 0; k < (__u32)got; k++) {
			insist(p[k] == &s->cell[(i + k) % CELLS * 2]);
			insist(*(__u64 *)p[k] == i + k);
		}
		i += (__u32)got;
		if (!got)
			pause_now_and_then(&turns);
	}
}

static void threads_hand_over_in_order(void **state)
{
	static const __u32 sizes[] = { 1, 2, 64, 1024 }, most[] = { 1, 8, 64 };
	struct arn_heap *h = heap_new(32 * MIB);
	__u64 *cell = arn_malloc(h, CELLS * 16);
	const struct kind *k;
	pthread_t th;
	__u32 i, j;

	for_each_kind(k) for (i = 0; i < NELEMS(sizes); i++) for (j = 0; j < NELEMS(most); j++)
	{
		struct side s = { k, h, ring_new(k, h, sizes[i]), most[j], 0, cell };

		s.n = (sizes[i] > 2 ? 200000 : 5000) / ARN_TEST_SCALE;
		assert_int_equal(pthread_create(&th, NULL, send, &s), 0);
		receive(&s);
		pthread_join(th, NULL);
		ring_is_empty(k, s.q);
		arn_ring_destroy(s.q);
	}
	arn_free(h, cell);
	heap_end(h);
}

/* ---- many producers ---- */

#define PRODUCERS 3
#define BATCH	  24

struct producer {
	struct bare *t;
	__u32 id, n, again;
	bool slow;
};

/* As the library's call, but a moment passes between its steps, and in the middle of the second. */
static int put_slowly(struct bare *t, void **p, __u32 n)
{
	__u32 pos, done, half;
	int got = reserve(t, n, &pos);

	if (got <= 0)
		return got;
	sched_yield();
	half = n / 2;
	done = arn_ring_publish_all(t->h->base, &t->v, pos, p, half);
	sched_yield();
	if (done == half)
		done += arn_ring_publish_all(t->h->base, &t->v, pos + half, p + half, n - half);
	if (done == n)
		return got;
	arn_ring_abandon(t->h->base, &t->v, pos + done, n - done);
	return done ? (int)done : -EAGAIN;
}

/* Objects tell producer, number in its sequence, and how many of the same call are still to come. */
struct cell {
	__u32 id, n, more, pad;
};

static void *produce(void *arg)
{
	struct producer *w = arg;
	__u64 seed = w->id + 1;
	void *p[BATCH];
	__u32 i = 0, k, n, turns = 0;
	int got;

	while (i < w->n) {
		n = rnd(&seed) % 3 ? 1 + rnd(&seed) % BATCH : 1;
		n = n < w->n - i ? n : w->n - i;
		for (k = 0; k < n; k++) {
			struct cell *c = arn_malloc(w->t->h, sizeof(*c));

			insist(c);
			*c = (struct cell){ w->id, i + k, n - 1 - k, 0 };
			p[k] = c;
		}
		do {
			if (w->slow && rnd(&seed) % 8 == 0)
				got = put_slowly(w->t, p, n);
			else if (n == 1)
				got = arn_ring_enqueue_mpsc(w->t->q, p[0]);
			else
				got = arn_ring_enqueue_bulk_mpsc(w->t->q, p, n, n);
			if (got <= 0) {
				insist(!got || got == -EAGAIN);
				w->again += got < 0;
				pause_now_and_then(&turns);
			} else if (got < (int)n) { /* cut short by a skip */
				w->again++;
				memmove(p, p + got, (n - (__u32)got) * sizeof(void *));
				n -= (__u32)got;
				i += (__u32)got;
				got = 0;
			}
		} while (got <= 0);
		i += n;
	}
	return NULL;
}

static bool over; /* tells the skipper to end */

static void *skip_all_the_time(void *arg)
{
	struct bare *t = arg;
	__u32 turns = 0;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		insist(arn_ring_skip(t->q) >= 0);
		pause_now_and_then(&turns);
	}
	return NULL;
}

/* Producers of whom each sends its sequence; all of it comes, once, in its order. */
static void producers_and_a_consumer(__u32 size, bool skipping)
{
	struct bare t = bare_new(size);
	__u32 n = 30000 / ARN_TEST_SCALE, next[PRODUCERS] = {}, i, total, more = 0, id = 0, again = 0, turns = 0;
	struct producer w[PRODUCERS];
	pthread_t th[PRODUCERS], skipper;
	void *out[BATCH];
	__u64 seed = 9;
	int got;

	over = false;
	for (i = 0; i < PRODUCERS; i++) {
		w[i] = (struct producer){ &t, i, n, 0, skipping };
		assert_int_equal(pthread_create(&th[i], NULL, produce, &w[i]), 0);
	}
	if (skipping)
		assert_int_equal(pthread_create(&skipper, NULL, skip_all_the_time, &t), 0);
	for (total = 0; total < PRODUCERS * n;) {
		if (rnd(&seed) % 2) {
			out[0] = arn_ring_dequeue_mpsc(t.q);
			got = out[0] != NULL;
		} else {
			__u32 most = 1 + (__u32)rnd(&seed) % BATCH;

			got = arn_ring_dequeue_bulk_mpsc(t.q, out, 1, most);
		}
		insist(got >= 0);
		for (i = 0; i < (__u32)got; i++) {
			struct cell *c = out[i];

			insist(c->id < PRODUCERS && c->n == next[c->id]);
			next[c->id]++;
			if (!skipping && more)
				insist(c->id == id && c->more == more - 1);
			id = c->id;
			more = c->more;
			insist(arn_free(t.h, c) == 0);
		}
		total += (__u32)got;
		if (!got)
			pause_now_and_then(&turns);
	}
	for (i = 0; i < PRODUCERS; i++) {
		pthread_join(th[i], NULL);
		again += w[i].again;
	}
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	if (skipping) {
		pthread_join(skipper, NULL);
		print_message("%u calls were overtaken by a skip\n", again);
		assert_true(again > 0);
	}
	ring_is_empty(MPSC, t.q);
	assert_int_equal(live(t.h), 1); /* the ring */
	bare_end(&t);
}

static void nothing_is_lost_between_threads(void **state)
{
	producers_and_a_consumer(1024, false);
}

static void nor_in_a_small_ring(void **state)
{
	producers_and_a_consumer(32, false);
}

static void nor_when_somebody_skips_all_the_time(void **state)
{
	producers_and_a_consumer(1024, true);
}

static void nor_then_in_a_small_ring(void **state)
{
	producers_and_a_consumer(32, true);
}

unit_main(t(threads_hand_over_in_order), t(nothing_is_lost_between_threads), t(nor_in_a_small_ring),
	  t(nor_when_somebody_skips_all_the_time), t(nor_then_in_a_small_ring))
