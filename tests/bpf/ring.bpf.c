// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * ring.bpf.c - rings from BPF: single calls, hand-overs of numbered cells, and interrupts that do either on
 * top of what runs.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <arenite/arenite.bpf.h>
#include "kern.bpf.h"
#include "ring.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define RUN_TURNS (1 << 14)

__u64 next[RING_PRODUCERS]; /* number that a consumer expects */
struct ring_side tick_side;
__u32 tick_role;
__u64 ticks, tick_refused;

typedef struct ring_cell __arena cell;

static int put(struct arn_ring __arena *q, __u32 kind, __u64 obj)
{
	return kind == RING_SPSC ? arn_ring_enqueue_spsc(q, (void __arena *)obj)
				 : arn_ring_enqueue_mpsc(q, (void __arena *)obj);
}

static __u64 get(struct arn_ring __arena *q, __u32 kind)
{
	return (__u64)(kind == RING_SPSC ? arn_ring_dequeue_spsc(q) : arn_ring_dequeue_mpsc(q));
}

static int put_bulk(struct arn_ring __arena *q, __u32 kind, __u64 vec, __u32 least, __u32 n)
{
	return kind == RING_SPSC ? arn_ring_enqueue_bulk_spsc(q, vec, least, n)
				 : arn_ring_enqueue_bulk_mpsc(q, vec, least, n);
}

static int get_bulk(struct arn_ring __arena *q, __u32 kind, __u64 vec, __u32 least, __u32 n)
{
	return kind == RING_SPSC ? arn_ring_dequeue_bulk_spsc(q, vec, least, n)
				 : arn_ring_dequeue_bulk_mpsc(q, vec, least, n);
}

SEC("syscall")
int ring_do(struct ring_op *o)
{
	struct arn_ring __arena *q = (struct arn_ring __arena *)o->ring;

	asm volatile("" : : "r"(&arn_arena));
	switch (o->code) {
	case RING_CREATE:
		o->ret = (__u64)(o->kind == RING_SPSC ? arn_ring_create_spsc(o->obj) : arn_ring_create_mpsc(o->obj));
		break;
	case RING_DESTROY:
		o->ret = arn_ring_destroy(q);
		break;
	case RING_PUT:
		o->ret = put(q, o->kind, o->obj);
		break;
	case RING_GET:
		o->ret = get(q, o->kind);
		break;
	case RING_PUT_BULK:
		o->ret = put_bulk(q, o->kind, o->obj, o->least, o->n);
		break;
	case RING_GET_BULK:
		o->ret = get_bulk(q, o->kind, o->obj, o->least, o->n);
		break;
	case RING_COUNT:
		o->ret = arn_ring_count(q);
		break;
	case RING_SKIP:
		o->ret = arn_ring_skip(q);
		break;
	}
	return 0;
}

/* The next objects of a side into the ring; how many went. */
static int send(struct ring_side *s)
{
	struct arn_ring __arena *q = (struct arn_ring __arena *)s->ring;
	__u64 done = s->done, left = s->count - done;
	__u32 n = s->most < left ? s->most : left;
	int i, got;

	if (n > RING_BATCH)
		n = RING_BATCH;
	bpf_for(i, 0, RING_BATCH) {
		__u64 at = s->cells + ((done + i) & (RING_CELLS - 1)) * sizeof(struct ring_cell);

		if ((__u32)i >= n)
			break;
		((cell *)at)->n = done + i;
		((cell *)at)->id = s->id;
		*(__u64 __arena *)(s->vec + (__u64)i * 8) = at;
	}
	if (s->most == 1)
		got = put(q, s->kind, *(__u64 __arena *)s->vec);
	else
		got = put_bulk(q, s->kind, s->vec, s->all ? n : 1, n);
	if (got > 0)
		s->done = done + got;
	else
		s->idle++;
	return got;
}

static int receive(struct ring_side *s)
{
	struct arn_ring __arena *q = (struct arn_ring __arena *)s->ring;
	__u64 left = s->count - s->done, p;
	__u32 n = s->most < left ? s->most : left;
	int i, got;

	if (n > RING_BATCH)
		n = RING_BATCH;
	if (s->most == 1) {
		p = get(q, s->kind);
		*(__u64 __arena *)s->vec = p;
		got = p != 0;
	} else {
		got = get_bulk(q, s->kind, s->vec, s->all ? n : 1, n);
	}
	if (got <= 0) {
		s->idle++;
		return got;
	}
	bpf_for(i, 0, RING_BATCH) {
		__u64 id, number;
		cell *c;

		if (i >= got)
			break;
		c = *(cell * __arena *)(s->vec + (__u64)i * 8);
		id = c->id;
		number = c->n;
		if (id >= RING_PRODUCERS || number != next[id])
			s->wrong++;
		else
			next[id] = number + 1;
	}
	s->done += got;
	return got;
}

SEC("syscall")
int ring_send(struct ring_side *a)
{
	struct ring_side s = *a;
	int i;

	asm volatile("" : : "r"(&arn_arena));
	bpf_for(i, 0, RUN_TURNS) {
		if (s.done >= s.count || send(&s) < 0)
			break;
	}
	*a = s;
	return 0;
}

SEC("syscall")
int ring_receive(struct ring_side *a)
{
	struct ring_side s = *a;
	int i;

	asm volatile("" : : "r"(&arn_arena));
	bpf_for(i, 0, RUN_TURNS) {
		if (s.done >= s.count || receive(&s) < 0)
			break;
	}
	*a = s;
	return 0;
}

/* On top of whatever runs on this CPU: by a clock event in an interrupt, by a watchpoint in an NMI. */
SEC("perf_event")
int ring_tick(struct bpf_perf_event_data *ctx)
{
	struct ring_side s = tick_side;

	asm volatile("" : : "r"(&arn_arena));
	__sync_fetch_and_add(&ticks, 1);
	if (s.done >= s.count)
		return 0;
	if ((tick_role == TICK_PUT ? send(&s) : tick_role == TICK_GET ? receive(&s) : 0) < 0)
		__sync_fetch_and_add(&tick_refused, 1);
	tick_side = s;
	return 0;
}
