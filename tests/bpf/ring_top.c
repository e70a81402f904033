// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * ring_top.c - interrupts that produce or consume on top of a producer on their CPU: where the clock will have
 * it, and, by a watchpoint, in an NMI just between a producer's two steps.
 */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include "ring_rig.h"

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

	rig_run(bpf->progs.kern_find, NULL, 0);
	attr.bp_addr = bpf->bss->kern_base + (__u32)(__u64)word;
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(interrupts_produce_on_top_of_a_bpf_producer),
		cmocka_unit_test(interrupts_produce_on_top_of_a_user_producer),
		cmocka_unit_test(interrupts_consume_on_top_of_their_producer),
		cmocka_unit_test(an_nmi_produces_between_reserve_and_publish),
		cmocka_unit_test(an_nmi_finds_what_is_not_published_absent),
	};

	rig_start();
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
