// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * ring_fuzz.c - sequences of ring calls against a list of what must come out, with producers that stop half
 * way, skips, and in the end words overwritten as the input says.
 *
 * One thread: what producers do to each other is for tests/unit/ring_mpsc_test.c and tests/model/ring.pml.
 */
#include <string.h>
#include "input.h"
#include "../../src/core/ring_mpsc.h"

#define LIST  4096
#define MOST  100
#define GUARD 4096u

static struct arn_heap *heap;

/* What stands at a position; else an object's address. */
#define RESERVED NULL
#define SKIPPED	 ((void *)1)

struct run {
	struct input in;
	struct arn_ring_handle *q;
	struct arn_ring_view v;
	bool mpsc, corrupt;
	__u32 size, fed;
	__u32 first, last; /* positions */
	void *at[LIST];
	__u32 stopped[8]; /* positions that were reserved and not filled */
};

static void *nth(__u32 n)
{
	return heap->base + 16 + (size_t)n % 100000 * 16;
}

static void put(struct run *r, __u32 least, __u32 n, bool single)
{
	__u32 room = r->size - (r->last - r->first), want = n < room ? n : room, i;
	void *p[MOST];
	int got;

	for (i = 0; i < n; i++)
		p[i] = nth(r->fed + i);
	r->fed += n;
	if (single)
		got = r->mpsc ? arn_ring_enqueue_mpsc(r->q, p[0]) : arn_ring_enqueue_spsc(r->q, p[0]);
	else
		got = r->mpsc ? arn_ring_enqueue_bulk_mpsc(r->q, p, least, n)
			      : arn_ring_enqueue_bulk_spsc(r->q, p, least, n);
	expect(got <= (int)n);
	if (r->corrupt)
		return;
	expect(got == (int)(want < least ? 0 : want));
	for (i = 0; i < (__u32)got; i++)
		r->at[r->last++ % LIST] = p[i];
}

/* Objects that a consumer finds.  *end: it has seen all places there are, and some are skipped. */
static __u32 ready(const struct run *r, bool *end)
{
	__u32 i, n = 0;

	for (i = r->first; i != r->last && r->at[i % LIST] != RESERVED; i++)
		n += r->at[i % LIST] != SKIPPED;
	*end = i - r->first == r->size && n < r->size;
	return n;
}

static void get(struct run *r, __u32 least, __u32 n, bool single)
{
	__u32 have, i = 0;
	void *out[MOST];
	bool end;
	int got;

	if (single) {
		out[0] = r->mpsc ? arn_ring_dequeue_mpsc(r->q) : arn_ring_dequeue_spsc(r->q);
		got = out[0] != NULL;
	} else {
		got = r->mpsc ? arn_ring_dequeue_bulk_mpsc(r->q, out, least, n)
			      : arn_ring_dequeue_bulk_spsc(r->q, out, least, n);
	}
	expect(got <= (int)n);
	if (r->corrupt) {
		for (; got > 0 && i < (__u32)got; i++)
			expect((__u64)out[i] >> 32 == (__u64)heap->base >> 32);
		return;
	}
	have = ready(r, &end);
	if (n < least || (least > 1 && have < least && !end)) {
		expect(got == 0);
		return;
	}
	expect(got == (int)(have < n ? have : n));
	for (; r->first != r->last && i < n && r->at[r->first % LIST] != RESERVED; r->first++)
		if (r->at[r->first % LIST] != SKIPPED)
			expect(out[i++] == r->at[r->first % LIST]);
	expect(i == (__u32)got);
}

/* A producer that reserves, publishes some, and comes to no end. */
static void stop(struct run *r, __u32 n, __u32 some)
{
	void *p[MOST] = { 0 };
	__u32 pos, i;
	int got;

	for (i = 0; i < n; i++)
		p[i] = nth(r->fed + i);
	r->fed += n;
	got = arn_ring_reserve(heap->base, arn_root(heap->base), &r->v, 1, n, &pos);
	if (got <= 0)
		return;
	some = arn_ring_publish_all(heap->base, &r->v, pos, p, some % ((__u32)got + 1));
	if (r->corrupt)
		return;
	expect(pos == r->last);
	for (i = 0; i < (__u32)got; i++) {
		r->at[r->last % LIST] = i < some ? p[i] : RESERVED;
		if (i >= some)
			r->stopped[r->last % 8] = r->last;
		r->last++;
	}
}

/* It goes on, however much later: only a place that is still its own takes the object. */
static void go_on(struct run *r, __u32 which)
{
	__u32 pos = r->stopped[which % 8];
	void *obj = nth(r->fed++);
	bool done = arn_ring_publish(heap->base, &r->v, pos, (__u32)(__u64)obj);

	if (r->corrupt)
		return;
	expect(done == (pos - r->first < r->last - r->first && r->at[pos % LIST] == RESERVED));
	if (done)
		r->at[pos % LIST] = obj;
}

static void skip(struct run *r)
{
	__u32 i, n = 0;
	int got = arn_ring_skip(r->q);

	if (r->corrupt)
		return;
	for (i = r->first; i != r->last && (r->at[i % LIST] == RESERVED || r->at[i % LIST] == SKIPPED); i++) {
		n += r->at[i % LIST] == RESERVED;
		r->at[i % LIST] = SKIPPED;
	}
	expect(got == (int)n);
}

static void turn(struct run *r)
{
	__u32 what = byte(&r->in), n = byte(&r->in) % MOST, least = n ? byte(&r->in) % (n + 2) : 0;
	__u32 *words = (__u32 *)arn_ring_address(r->q);

	switch (what % 9) {
	case 0:
		put(r, 1, 1, true);
		break;
	case 1:
		get(r, 1, 1, true);
		break;
	case 2:
		put(r, what & 64 ? n : least, n, false);
		break;
	case 3:
		get(r, what & 64 ? n : least, n, false);
		break;
	case 4:
		if (r->mpsc && n)
			stop(r, n, least);
		break;
	case 5:
		if (r->mpsc)
			go_on(r, n);
		break;
	case 6:
		if (r->mpsc)
			skip(r);
		break;
	case 7:
		n = (__u32)arn_ring_count(r->q);
		expect(r->corrupt ? n <= r->size : n == r->last - r->first);
		break;
	default:
		if (what < 200) /* not too soon */
			break;
		words[(n * 100 + least) % (arn_ring_bytes(r->size) / 4)] = word(&r->in);
		r->corrupt = true;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct run r;
	static char before[2 * GUARD];
	struct arn_options o = { .sz = sizeof(o), .bytes = 24 * MIB, .flags = ARN_NATIVE };
	struct arn_ring *at;
	__u32 i, *slot;
	char *end;

	if (!heap)
		heap = arn_create(&o);
	expect(heap);
	memset(&r, 0, sizeof(r));
	r.in = (struct input){ data, data + bytes };
	r.mpsc = byte(&r.in) & 1;
	r.size = 1u << byte(&r.in) % 11;
	r.q = r.mpsc ? arn_ring_create_mpsc(heap, r.size) : arn_ring_create_spsc(heap, r.size);
	expect(r.q);
	at = arn_ring_address(r.q);
	r.v = (struct arn_ring_view){ (__u64)heap->base, (__u32)(__u64)at, r.size - 1 };
	r.first = r.last = word(&r.in);
	for (i = 0; i < 8; i++)
		r.stopped[i] = r.first - 1; /* nobody's */
	at->head = at->tail = at->head_seen = at->tail_seen = r.first;
	for (i = 0, slot = (__u32 *)(at + 1); i < r.size; i++)
		slot[(r.first + i) & (r.size - 1)] = ARN_RING_EMPTY(r.first + i);
	end = (char *)at + arn_ring_bytes(r.size);
	memcpy(before, (char *)at - GUARD, GUARD);
	memcpy(before + GUARD, end, GUARD);
	while (r.in.at < r.in.end)
		turn(&r);
	/* Nothing was written beside it. */
	expect(!memcmp(before, (char *)at - GUARD, GUARD));
	expect(!memcmp(before + GUARD, end, GUARD));
	at->kind = r.mpsc ? ARN_RING_MPSC : ARN_RING_SPSC;
	expect(!arn_ring_destroy(r.q));
	return 0;
}
