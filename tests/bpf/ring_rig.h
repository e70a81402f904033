/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring_rig.h - a heap with ring.bpf.c on it, single calls of it, and the two ends of a hand-over. */
#ifndef TEST_RING_RIG_H
#define TEST_RING_RIG_H

#include <pthread.h>
#include <sched.h>
#include "rig.h"
#include "ring.h"
#include "ring.skel.h"

static struct rig *t;
static struct ring_bpf *bpf;
static volatile bool broken; /* an end gave up: the other does too */

static inline int setup(void **state)
{
	t = rig_new(64 * MiB, 16 * MiB);
	bpf = ring_bpf__open();
	assert_non_null(bpf);
	assert_int_equal(rig_load(t->heap, bpf->skeleton), 0);
	return 0;
}

static inline int teardown(void **state)
{
	ring_bpf__destroy(bpf);
	assert_int_equal(rig_live(t->heap), 0);
	rig_end(t);
	return 0;
}

static inline __s64 call(struct ring_op o)
{
	rig_run(bpf->progs.ring_do, &o, sizeof(o));
	return o.ret;
}

static inline __u64 create(enum ring_kind kind, __u32 size)
{
	return (__u64)call((struct ring_op){ .code = RING_CREATE, .kind = kind, .obj = size });
}

static inline __s64 destroy(__u64 q)
{
	return call((struct ring_op){ .code = RING_DESTROY, .ring = q });
}

static inline __s64 put(enum ring_kind kind, __u64 q, __u64 obj)
{
	return call((struct ring_op){ .code = RING_PUT, .kind = kind, .ring = q, .obj = obj });
}

static inline __u64 get(enum ring_kind kind, __u64 q)
{
	return (__u64)call((struct ring_op){ .code = RING_GET, .kind = kind, .ring = q });
}

static inline __s64 bulk(enum ring_code code, enum ring_kind kind, __u64 q, void *vec, __u32 least, __u32 n)
{
	return call((struct ring_op){ code, kind, least, n, q, (__u64)vec, 0 });
}

static inline __s64 count(__u64 q)
{
	return call((struct ring_op){ .code = RING_COUNT, .ring = q });
}

/* The n-th address that may be in a ring. */
static inline __u64 nth(__u32 n)
{
	return (__u64)t->base + 16 + (__u64)n * 16;
}

/* One end of a hand-over, on a CPU of its own. */
struct end {
	struct ring_side s;
	struct arn_ring_handle *h; /* user space's end; NULL: BPF's */
	bool sends;
	int cpu, err;
	pthread_t thread;
	__u64 next[RING_PRODUCERS];
	void *vec[RING_BATCH];
};

/* In a loop that waits for the other end: now and then the CPU to others. */
static inline void wait_a_moment(__u32 *turns)
{
	if (++*turns % 200 == 0)
		sched_yield();
}

static inline int user_send(struct end *e)
{
	struct ring_side *s = &e->s;
	__u32 n = s->count - s->done < s->most ? (__u32)(s->count - s->done) : s->most, i, least = s->all ? n : 1;
	int got;

	for (i = 0; i < n; i++) {
		struct ring_cell *c = (struct ring_cell *)s->cells + (s->done + i) % RING_CELLS;

		c->n = s->done + i;
		c->id = s->id;
		e->vec[i] = c;
	}
	if (s->kind == RING_SPSC)
		got = s->most == 1 ? arn_ring_enqueue_spsc(e->h, e->vec[0])
				   : arn_ring_enqueue_bulk_spsc(e->h, e->vec, least, n);
	else
		got = s->most == 1 ? arn_ring_enqueue_mpsc(e->h, e->vec[0])
				   : arn_ring_enqueue_bulk_mpsc(e->h, e->vec, least, n);
	return got;
}

static inline int user_receive(struct end *e)
{
	struct ring_side *s = &e->s;
	__u32 n = s->count - s->done < s->most ? (__u32)(s->count - s->done) : s->most, least = s->all ? n : 1;
	int got, i;

	if (s->most == 1) {
		e->vec[0] = s->kind == RING_SPSC ? arn_ring_dequeue_spsc(e->h) : arn_ring_dequeue_mpsc(e->h);
		got = e->vec[0] != NULL;
	} else {
		got = s->kind == RING_SPSC ? arn_ring_dequeue_bulk_spsc(e->h, e->vec, least, n)
					   : arn_ring_dequeue_bulk_mpsc(e->h, e->vec, least, n);
	}
	for (i = 0; i < got; i++) {
		struct ring_cell *c = e->vec[i];

		if (c->id >= RING_PRODUCERS || c->n != e->next[c->id])
			s->wrong++;
		else
			e->next[c->id]++;
	}
	return got;
}

static inline void *run_end(void *arg)
{
	struct end *e = arg;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &e->s, .ctx_size_in = sizeof(e->s));
	__u32 turns = 0;
	int got;

	rig_pin_cpu(e->cpu);
	while (e->s.done < e->s.count && !broken) {
		__u64 before = e->s.done;

		if (!e->h) {
			struct bpf_program *prog = e->sends ? bpf->progs.ring_send : bpf->progs.ring_receive;

			e->err = bpf_prog_test_run_opts(bpf_program__fd(prog), &opts);
			if (e->s.done == before)
				sched_yield();
			broken |= e->err != 0;
			continue;
		}
		got = e->sends ? user_send(e) : user_receive(e);
		if (got < 0 && got != -EAGAIN) /* that is an answer too: others were first each time */
			e->err = got;
		else if (got > 0)
			e->s.done += (__u32)got;
		else
			wait_a_moment(&turns);
		broken |= e->err != 0;
	}
	return NULL;
}

static inline struct end end_new(struct arn_ring_handle *h, bool user, bool sends, enum ring_kind kind, __u32 most,
				 __u64 n)
{
	struct end e = { .h = user ? h : NULL, .sends = sends, .cpu = sends ? 0 : 1 % rig_cpus() };

	e.s.ring = (__u64)arn_ring_address(h);
	e.s.kind = kind;
	e.s.most = most;
	e.s.count = n;
	e.s.vec = (__u64)bpf_malloc(t, RING_BATCH * 8);
	if (sends)
		e.s.cells = (__u64)bpf_malloc(t, RING_CELLS * sizeof(struct ring_cell));
	assert_true(e.s.vec && (e.s.cells || !sends));
	return e;
}

static inline void end_over(struct end *e)
{
	if (e->err)
		fail_msg("%s %s: %s", e->h ? "user" : "BPF", e->sends ? "producer" : "consumer", strerror(-e->err));
	assert_int_equal(e->s.done, e->s.count);
	assert_int_equal(e->s.wrong, 0);
	assert_int_equal(bpf_free(t, (void *)e->s.vec), 0);
	assert_int_equal(bpf_free(t, (void *)e->s.cells), 0);
}

#endif
