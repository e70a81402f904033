// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * ring.c - rings with BPF at one end, at the other, or at both: the calls' answers; hand-overs on two CPUs;
 * interrupts on top of producers, in their middle; words overwritten by a process.
 *
 * The algorithm itself is shown by tests/unit/ring_test.c and ring_mpsc_test.c; processes that are killed by
 * ring_kill.c.  Preempted tasks are not shown on kernels that do not preempt.
 */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include "rig.h"
#include "ring.h"
#include "ops.skel.h"
#include "ring.skel.h"

static struct rig *t;
static struct ring_bpf *bpf;
static volatile bool broken; /* an end gave up: the other does too */

static int setup(void **state)
{
	t = rig_new(64 * MiB, 16 * MiB);
	bpf = ring_bpf__open();
	assert_non_null(bpf);
	assert_int_equal(rig_load(t->heap, bpf->skeleton), 0);
	return 0;
}

static int teardown(void **state)
{
	ring_bpf__destroy(bpf);
	assert_int_equal(rig_live(t->heap), 0);
	rig_end(t);
	return 0;
}

static __s64 call(struct ring_op o)
{
	rig_run(bpf->progs.ring_do, &o, sizeof(o));
	return o.ret;
}

static __u64 create(enum ring_kind kind, __u32 size)
{
	return (__u64)call((struct ring_op){ .code = RING_CREATE, .kind = kind, .obj = size });
}

static __s64 destroy(__u64 q)
{
	return call((struct ring_op){ .code = RING_DESTROY, .ring = q });
}

static __s64 put(enum ring_kind kind, __u64 q, __u64 obj)
{
	return call((struct ring_op){ .code = RING_PUT, .kind = kind, .ring = q, .obj = obj });
}

static __u64 get(enum ring_kind kind, __u64 q)
{
	return (__u64)call((struct ring_op){ .code = RING_GET, .kind = kind, .ring = q });
}

static __s64 bulk(enum ring_code code, enum ring_kind kind, __u64 q, void *vec, __u32 least, __u32 n)
{
	return call((struct ring_op){ code, kind, least, n, q, (__u64)vec, 0 });
}

static __s64 count(__u64 q)
{
	return call((struct ring_op){ .code = RING_COUNT, .ring = q });
}

/* The n-th address that may be in a ring. */
static __u64 nth(__u32 n)
{
	return (__u64)t->base + 16 + (__u64)n * 16;
}

/* ---- answers ---- */

/* Full, empty, in order, in both kinds and at every size; user space opens each. */
static void each_call_answers(void **state)
{
	enum ring_kind kind;
	__u32 size, i;

	for (kind = RING_SPSC; kind <= RING_MPSC; kind++) {
		for (size = 1; size <= 65536; size *= 4) {
			__u64 q = create(kind, size);
			struct arn_ring_handle *h = arn_ring_open(t->heap, (struct arn_ring *)q);
			__u32 n = size < 20 ? size : 20;

			assert_true(q && h);
			assert_int_equal(arn_ring_size(h), size);
			assert_int_equal(get(kind, q), 0);
			for (i = 0; i < n; i++)
				assert_int_equal(put(kind, q, nth(i)), 1);
			assert_int_equal(count(q), n);
			if (n == size)
				assert_int_equal(put(kind, q, nth(0)), 0);
			for (i = 0; i < n; i++)
				assert_int_equal(get(kind, q), nth(i));
			assert_int_equal(get(kind, q), 0);
			assert_int_equal(count(q), 0);
			arn_ring_close(h);
			assert_int_equal(destroy(q), 0);
		}
		assert_int_equal(create(kind, 0), 0);
		assert_int_equal(create(kind, 48), 0);
		assert_int_equal(create(kind, 131072), 0);
	}
}

/* Many at once: at least, at most, or none; whole rings of all sizes. */
static void bulk_answers(void **state)
{
	__u64 *p = bpf_malloc(t, 65536 * 2 * 8), *out = bpf_malloc(t, 65536 * 8);
	enum ring_kind kind;
	__u32 size, i;

	for (kind = RING_SPSC; kind <= RING_MPSC; kind++) {
		for (size = 16; size <= 65536; size *= 16) {
			__u64 q = create(kind, size);

			for (i = 0; i < 2 * size; i++)
				p[i] = nth(i);
			assert_int_equal(bulk(RING_GET_BULK, kind, q, out, 1, size), 0);
			assert_int_equal(bulk(RING_PUT_BULK, kind, q, p, size + 1, size + 1), 0);
			assert_int_equal(bulk(RING_PUT_BULK, kind, q, p, 5, 5), 5);
			assert_int_equal(bulk(RING_PUT_BULK, kind, q, p, size, size), 0);
			assert_int_equal(bulk(RING_PUT_BULK, kind, q, p + 5, 1, size), size - 5);
			assert_int_equal(count(q), size);
			assert_int_equal(bulk(RING_GET_BULK, kind, q, out, size + 1, size + 1), 0);
			assert_int_equal(bulk(RING_GET_BULK, kind, q, out, 3, 3), 3);
			assert_int_equal(bulk(RING_GET_BULK, kind, q, out + 3, size - 3, size), size - 3);
			for (i = 0; i < size; i++)
				assert_int_equal(out[i], nth(i));
			assert_int_equal(destroy(q), 0);
		}
	}
	assert_int_equal(bpf_free(t, p), 0);
	assert_int_equal(bpf_free(t, out), 0);
}

/* Another kind, no ring, a wrong address among many: -EINVAL, NULL, and nothing is enqueued. */
static void wrong_uses_are_refused(void **state)
{
	__u64 s = create(RING_SPSC, 16), m = create(RING_MPSC, 16), *p = bpf_malloc(t, 20 * 8);
	__u64 wrong[] = { 0, (__u64)&s, nth(3) + 8, nth(3) - (4 * GiB) };
	__u32 i, k;

	assert_int_equal(put(RING_SPSC, m, nth(1)), -EINVAL);
	assert_int_equal(put(RING_MPSC, s, nth(1)), -EINVAL);
	assert_int_equal(get(RING_SPSC, m), 0);
	assert_int_equal(bulk(RING_PUT_BULK, RING_SPSC, m, p, 1, 1), -EINVAL);
	assert_int_equal(bulk(RING_PUT_BULK, RING_MPSC, s, p, 1, 1), -EINVAL);
	assert_int_equal(bulk(RING_GET_BULK, RING_SPSC, m, p, 1, 1), -EINVAL);
	assert_int_equal(bulk(RING_GET_BULK, RING_MPSC, s, p, 1, 1), -EINVAL);
	assert_int_equal(call((struct ring_op){ .code = RING_SKIP, .ring = s }), -EINVAL);
	assert_int_equal(put(RING_MPSC, (__u64)p, nth(1)), -EINVAL);
	assert_int_equal(put(RING_MPSC, 0, nth(1)), -EINVAL);
	assert_int_equal(destroy((__u64)p), -EINVAL);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(put(RING_SPSC, s, wrong[i]), -EINVAL);
		assert_int_equal(put(RING_MPSC, m, wrong[i]), -EINVAL);
		for (k = 0; k < 10; k++) {
			p[0] = p[1] = p[2] = p[3] = p[4] = p[5] = p[6] = p[7] = p[8] = p[9] = nth(k);
			p[k] = wrong[i];
			assert_int_equal(bulk(RING_PUT_BULK, RING_SPSC, s, p, 1, 10), -EINVAL);
			assert_int_equal(bulk(RING_PUT_BULK, RING_MPSC, m, p, 1, 10), -EINVAL);
		}
	}
	/* an offset is as good as an address */
	assert_int_equal(put(RING_SPSC, s, (__u32)nth(7)), 1);
	assert_int_equal(get(RING_SPSC, s), nth(7));
	assert_int_equal(count(s) + count(m), 0);
	assert_int_equal(destroy(s), 0);
	assert_int_equal(destroy(s), -EINVAL);
	assert_int_equal(destroy(m), 0);
	assert_int_equal(bpf_free(t, p), 0);
}

/* A ring that user space makes on a shared heap is one for BPF, and frees its memory. */
static void user_space_makes_one_too(void **state)
{
	struct arn_ring_handle *h = arn_ring_create_mpsc(t->heap, 32);
	__u64 q = (__u64)arn_ring_address(h);

	if (!h)
		fail_msg("%s", arn_last_error());
	assert_int_equal(arn_ring_enqueue_mpsc(h, (void *)nth(4)), 1);
	assert_int_equal(get(RING_MPSC, q), nth(4));
	assert_int_equal(put(RING_MPSC, q, nth(5)), 1);
	assert_ptr_equal(arn_ring_dequeue_mpsc(h), (void *)nth(5));
	assert_ok(arn_ring_destroy(h));
	assert_int_equal(put(RING_MPSC, q, nth(5)), -EINVAL);
}

/* ---- hand-overs ---- */

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
static void wait_a_moment(__u32 *turns)
{
	if (++*turns % 200 == 0)
		sched_yield();
}

static int user_send(struct end *e)
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

static int user_receive(struct end *e)
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

static void *run_end(void *arg)
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

static struct end end_new(struct arn_ring_handle *h, bool user, bool sends, enum ring_kind kind, __u32 most, __u64 n)
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

static void end_over(struct end *e)
{
	if (e->err)
		fail_msg("%s %s: %s", e->h ? "user" : "BPF", e->sends ? "producer" : "consumer", strerror(-e->err));
	assert_int_equal(e->s.done, e->s.count);
	assert_int_equal(e->s.wrong, 0);
	assert_int_equal(bpf_free(t, (void *)e->s.vec), 0);
	assert_int_equal(bpf_free(t, (void *)e->s.cells), 0);
}

/* Numbered objects from one CPU to the other: all, in order, with what was written to them. */
static void hand_over(bool user_sends, bool user_receives)
{
	static const __u32 most[] = { 1, 8, 64 }, size[] = { 1, 16, 1024 };
	enum ring_kind kind;
	__u32 i, k;

	for (kind = RING_SPSC; kind <= RING_MPSC; kind++)
		for (i = 0; i < 3; i++)
			for (k = 0; k < 3; k++) {
				__u64 n = size[k] * 200 < 100000 ? size[k] * 200 : 100000;
				struct arn_ring_handle *h = kind == RING_SPSC ? arn_ring_create_spsc(t->heap, size[k])
									      : arn_ring_create_mpsc(t->heap, size[k]);
				struct end a = end_new(h, user_sends, true, kind, most[i], n);
				struct end b = end_new(h, user_receives, false, kind, most[i], n);

				/* all or none, where all can fit */
				a.s.all = most[i] <= size[k] / 2;
				b.s.all = a.s.all && n % most[i] == 0;
				memset(bpf->bss->next, 0, sizeof(bpf->bss->next));
				assert_int_equal(pthread_create(&a.thread, NULL, run_end, &a), 0);
				assert_int_equal(pthread_create(&b.thread, NULL, run_end, &b), 0);
				pthread_join(a.thread, NULL);
				pthread_join(b.thread, NULL);
				end_over(&a);
				end_over(&b);
				assert_int_equal(arn_ring_count(h), 0);
				assert_ok(arn_ring_destroy(h));
			}
}

static void bpf_to_user(void **state)
{
	hand_over(false, true);
}

static void user_to_bpf(void **state)
{
	hand_over(true, false);
}

static void bpf_to_bpf(void **state)
{
	hand_over(false, false);
}

static void user_to_user(void **state)
{
	hand_over(true, true);
}

/* Four producers, two of them BPF's, on two CPUs. */
static void producers_of_both_worlds(void **state)
{
	struct arn_ring_handle *h = arn_ring_create_mpsc(t->heap, 256);
	struct end p[4], c = end_new(h, true, false, RING_MPSC, 64, 200000);
	__u32 i;

	for (i = 0; i < 4; i++) {
		p[i] = end_new(h, i & 1, true, RING_MPSC, i / 2 ? 1 : 16, 50000);
		p[i].s.id = i;
		p[i].cpu = (int)(i ^ i / 2) % rig_cpus() & 1;
	}
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&p[i].thread, NULL, run_end, &p[i]), 0);
	assert_int_equal(pthread_create(&c.thread, NULL, run_end, &c), 0);
	for (i = 0; i < 4; i++)
		pthread_join(p[i].thread, NULL);
	pthread_join(c.thread, NULL);
	for (i = 0; i < 4; i++)
		end_over(&p[i]);
	end_over(&c);
	assert_ok(arn_ring_destroy(h));
}

/* ---- on top of each other ---- */

static int perf_open(struct perf_event_attr *attr)
{
	attr->size = sizeof(*attr);
	return (int)syscall(SYS_perf_event_open, attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Clock interrupts on CPU 0 that produce, on top of a BPF producer or a user one there. */
static void an_interrupt_on_top(bool user, enum ring_kind kind, enum ring_tick role)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = 25000 };
	bool consumer = role == TICK_PUT;
	struct arn_ring_handle *h =
		kind == RING_SPSC ? arn_ring_create_spsc(t->heap, 1024) : arn_ring_create_mpsc(t->heap, 1024);
	struct end p = end_new(h, user, true, kind, 16, 300000),
		   tick = end_new(h, false, consumer, kind, 8, ~0ULL >> 1);
	struct end c = end_new(h, true, false, kind, 64, ~0ULL >> 1);
	struct bpf_link *link;
	int fd = perf_open(&attr);

	tick.s.id = 1;
	bpf->bss->ticks = bpf->bss->tick_refused = 0;
	bpf->bss->tick_side = tick.s;
	bpf->bss->tick_role = role;
	memset(bpf->bss->next, 0, sizeof(bpf->bss->next));
	link = fd < 0 ? NULL : bpf_program__attach_perf_event(bpf->progs.ring_tick, fd);
	if (!link) {
		print_message("skipped: no clock events (perf_event_open): %s\n", strerror(errno));
	} else {
		assert_int_equal(pthread_create(&p.thread, NULL, run_end, &p), 0);
		if (consumer) {
			/* ends when all is there that was sent */
			rig_pin_cpu(1 % rig_cpus());
			while (!bpf->bss->ticks || c.s.done < p.s.count + bpf->bss->tick_side.done ||
			       *(volatile __u64 *)&p.s.done < p.s.count) {
				int got = user_receive(&c);

				assert_true(got >= 0);
				c.s.done += (__u32)got;
			}
			rig_pin_cpu(0);
		}
		pthread_join(p.thread, NULL);
		bpf_link__destroy(link);
		while (consumer && user_receive(&c) > 0)
			;
		print_message("%llu interrupts, %llu objects of theirs\n", bpf->bss->ticks, bpf->bss->tick_side.done);
		assert_true(bpf->bss->ticks > 20 && bpf->bss->tick_side.done > 20);
		if (consumer) {
			assert_int_equal(c.next[0], p.s.count);
			assert_int_equal(c.next[1], bpf->bss->tick_side.done);
		} else {
			assert_int_equal(bpf->bss->tick_side.wrong, 0);
			assert_int_equal(bpf->bss->next[0], bpf->bss->tick_side.done);
			assert_int_equal(bpf->bss->next[0] + (__u32)arn_ring_count(h), p.s.count);
		}
	}
	p.err = 0;
	c.s.count = c.s.done;
	tick.s.count = tick.s.done;
	end_over(&p);
	end_over(&tick);
	end_over(&c);
	assert_ok(arn_ring_destroy(h));
}

static void interrupts_produce_on_top_of_a_bpf_producer(void **state)
{
	an_interrupt_on_top(false, RING_MPSC, TICK_PUT);
}

static void interrupts_produce_on_top_of_a_user_producer(void **state)
{
	an_interrupt_on_top(true, RING_MPSC, TICK_PUT);
}

/* An interrupt may be the consumer of a producer that it interrupted. */
static void interrupts_consume_on_top_of_their_producer(void **state)
{
	an_interrupt_on_top(false, RING_SPSC, TICK_GET);
}

/* A program on CPU 0 that runs in an NMI just after each store to a word of the arena; NULL: not here. */
static struct bpf_link *watch(const void *word)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_BREAKPOINT,
					.bp_type = HW_BREAKPOINT_W,
					.bp_len = HW_BREAKPOINT_LEN_4,
					.sample_period = 1 };
	struct bpf_link *link;
	int fd;

	rig_run(bpf->progs.ring_where, NULL, 0);
	attr.bp_addr = bpf->bss->kern_vm + 32768 + (__u32)(__u64)word; /* behind a guard */
	fd = perf_open(&attr);
	link = fd < 0 ? NULL : bpf_program__attach_perf_event(bpf->progs.ring_tick, fd);
	if (!link) {
		print_message("skipped: no watchpoints (perf_event_open): %s\n", strerror(errno));
		skip();
	}
	return link;
}

/*
 * An NMI between the two steps of a producer of n objects, just after tail has moved: what it does, and what is
 * in the ring when both are done.
 */
static void nmi_between(__u32 n, enum ring_tick role, __u32 most)
{
	__u64 q = create(RING_MPSC, 16), *p = bpf_malloc(t, 16 * 8);
	struct arn_ring_handle *h = arn_ring_open(t->heap, (struct arn_ring *)q);
	struct end e = end_new(h, false, true, RING_MPSC, most, most);
	void *out[16] = {};
	struct bpf_link *link;
	__u32 i;

	for (i = 0; i < n; i++)
		p[i] = nth(i);
	bpf->bss->ticks = bpf->bss->tick_refused = 0;
	bpf->bss->tick_side = e.s;
	bpf->bss->tick_role = role;
	link = watch(&((struct arn_ring *)q)->tail);
	if (n == 1)
		assert_int_equal(put(RING_MPSC, q, p[0]), 1);
	else
		assert_int_equal(bulk(RING_PUT_BULK, RING_MPSC, q, p, n, n), n);
	bpf_link__destroy(link);
	assert_true(bpf->bss->ticks > 0);
	assert_int_equal(bpf->bss->tick_refused, 0);
	if (role == TICK_PUT) {
		/* it did not wait, and comes after those who were first to reserve */
		assert_int_equal(bpf->bss->tick_side.done, most);
		assert_int_equal(arn_ring_dequeue_bulk_mpsc(h, out, 1, 16), n + most);
		for (i = 0; i < most; i++)
			assert_ptr_equal(out[n + i], (struct ring_cell *)e.s.cells + i);
	} else {
		/* nothing was there yet */
		assert_int_equal(bpf->bss->tick_side.done, 0);
		assert_true(bpf->bss->tick_side.idle > 0);
		assert_int_equal(arn_ring_dequeue_bulk_mpsc(h, out, 1, 16), n);
	}
	for (i = 0; i < n; i++)
		assert_ptr_equal(out[i], (void *)p[i]);
	e.s.done = e.s.count;
	end_over(&e);
	assert_ok(arn_ring_destroy(h));
	assert_int_equal(bpf_free(t, p), 0);
}

static void an_nmi_produces_between_reserve_and_publish(void **state)
{
	nmi_between(1, TICK_PUT, 1);
	nmi_between(1, TICK_PUT, 5);
	nmi_between(7, TICK_PUT, 1);
	nmi_between(7, TICK_PUT, 5);
}

static void an_nmi_finds_what_is_not_published_absent(void **state)
{
	nmi_between(1, TICK_GET, 1);
	nmi_between(7, TICK_GET, 5);
}

/* ---- a process writes anything into a ring ---- */

static __u64 rnd(__u64 *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * 0x2545f4914f6cdd1dULL >> 16;
}

/*
 * Every word in turn, and others at random, while BPF calls: each comes to its end.  (A wrong mask may lead it
 * to other words of the arena, so this has a heap of its own, which is not walked afterwards.)
 */
static void calls_on_a_corrupt_ring_end(void **state)
{
	struct rig *whole = t;
	struct ring_bpf *good = bpf;
	__u64 q, seed = 23, size = 64;
	enum ring_kind kind;
	__u32 i, k, words;

	t = rig_new(64 * MiB, 16 * MiB);
	bpf = ring_bpf__open();
	assert_non_null(bpf);
	assert_int_equal(rig_load(t->heap, bpf->skeleton), 0);
	for (kind = RING_SPSC; kind <= RING_MPSC; kind++) {
		__u64 *p = bpf_malloc(t, 100 * 8);
		struct arn_ring *s;

		q = create(kind, (__u32)size);
		s = (struct arn_ring *)q;
		words = (__u32)(sizeof(*s) / 4 + size);
		for (i = 0; i < 10 * words; i++) {
			((__u32 *)s)[i % words] = (__u32)(rnd(&seed) % 2 ? rnd(&seed) : rnd(&seed) % 200 - 100);
			if (rnd(&seed) % 2)
				((__u32 *)s)[rnd(&seed) % words] = (__u32)rnd(&seed);
			if (rnd(&seed) % 4)
				s->kind = kind == RING_SPSC ? ARN_RING_SPSC : ARN_RING_MPSC;
			if (rnd(&seed) % 4)
				s->mask = (__u32)size - 1;
			for (k = 0; k < 6; k++) {
				static const enum ring_code codes[] = { RING_PUT,      RING_GET,   RING_PUT_BULK,
									RING_GET_BULK, RING_COUNT, RING_SKIP };
				__u32 j, n = rnd(&seed) % 100;

				for (j = 0; j < n; j++)
					p[j] = nth(j);
				call((struct ring_op){ .code = codes[rnd(&seed) % 6],
						       .kind = kind,
						       .least = rnd(&seed) % (n + 1),
						       .n = n,
						       .ring = q,
						       .obj = rnd(&seed) % 2 ? (__u64)p : nth(3) });
			}
		}
	}
	ring_bpf__destroy(bpf);
	ops_bpf__destroy(t->ops);
	arn_close(t->heap);
	free(t);
	t = whole;
	bpf = good;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_answers),
		cmocka_unit_test(bulk_answers),
		cmocka_unit_test(wrong_uses_are_refused),
		cmocka_unit_test(user_space_makes_one_too),
		cmocka_unit_test(bpf_to_user),
		cmocka_unit_test(user_to_bpf),
		cmocka_unit_test(bpf_to_bpf),
		cmocka_unit_test(user_to_user),
		cmocka_unit_test(producers_of_both_worlds),
		cmocka_unit_test(interrupts_produce_on_top_of_a_bpf_producer),
		cmocka_unit_test(interrupts_produce_on_top_of_a_user_producer),
		cmocka_unit_test(interrupts_consume_on_top_of_their_producer),
		cmocka_unit_test(an_nmi_produces_between_reserve_and_publish),
		cmocka_unit_test(an_nmi_finds_what_is_not_published_absent),
		cmocka_unit_test(calls_on_a_corrupt_ring_end),
	};

	rig_start();
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
