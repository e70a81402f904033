// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * ring_mpsc_test.c - producers on top of each other, and such as do not come to the end of their call: no
 * object is lost, none comes twice, nobody waits.
 *
 * The core's 32-bit compare-and-swap is this file's where the core is called directly; it can lose.  A
 * producer that stops half way is made by calling its steps one by one, or by a signal at every instruction
 * of the call.  Threads are in ring_threads_test.c, processes that are killed, and interrupts in BPF, in tests/bpf.
 */
#include "stepping.h"
#include "port.h"

static __u32 cas_lose; /* so many swaps fail */

static inline __u32 tested_cas32(__u32 *p, __u32 old, __u32 new)
{
	if (cas_lose) {
		cas_lose--;
		return ~old;
	}
	return arn_cas32_full(p, old, new);
}
#define arn_cas32_full tested_cas32

#include "rings.h"

static bool publish(struct bare *t, __u32 pos, void *obj)
{
	return arn_ring_publish(t->h->base, &t->v, pos, (__u32)(__u64)obj);
}

/* ---- who stops half way ---- */

/* Others go on past a producer that does not publish; the consumer stops there, until the place is skipped. */
static void a_stopped_producer_stops_the_consumer_only(void **state)
{
	struct bare t = bare_new(16);
	__u32 pos, i;

	arn_ring_enqueue_mpsc(t.q, nth(t.h, 1));
	assert_int_equal(reserve(&t, 1, &pos), 1);
	for (i = 2; i < 16; i++)
		assert_int_equal(arn_ring_enqueue_mpsc(t.q, nth(t.h, i)), 1);
	assert_int_equal(arn_ring_enqueue_mpsc(t.q, nth(t.h, 99)), 0);
	assert_ptr_equal(arn_ring_dequeue_mpsc(t.q), nth(t.h, 1));
	assert_null(arn_ring_dequeue_mpsc(t.q));
	assert_int_equal(arn_ring_count(t.q), 15);
	assert_int_equal(arn_ring_skip(t.q), 1);
	assert_int_equal(arn_ring_skip(t.q), 0);
	for (i = 2; i < 16; i++)
		assert_ptr_equal(arn_ring_dequeue_mpsc(t.q), nth(t.h, i));
	ring_is_empty(MPSC, t.q);
	bare_end(&t);
}

/* It publishes late, but before anybody skips it: nothing has happened. */
static void a_late_producer_is_waited_for(void **state)
{
	struct bare t = bare_new(16);
	__u32 pos = 0;

	assert_int_equal(reserve(&t, 1, &pos), 1);
	arn_ring_enqueue_mpsc(t.q, nth(t.h, 2));
	assert_null(arn_ring_dequeue_mpsc(t.q));
	assert_true(publish(&t, pos, nth(t.h, 1)));
	assert_int_equal(arn_ring_skip(t.q), 0);
	assert_ptr_equal(arn_ring_dequeue_mpsc(t.q), nth(t.h, 1));
	assert_ptr_equal(arn_ring_dequeue_mpsc(t.q), nth(t.h, 2));
	bare_end(&t);
}

/* Once skipped, it fails, however many laps later, and whatever stands in its slot then stays. */
static void a_skipped_producer_fails_in_every_later_lap(void **state)
{
	struct bare t = bare_new(4);
	__u32 pos = 0, i, lap;

	assert_int_equal(reserve(&t, 1, &pos), 1);
	assert_int_equal(arn_ring_skip(t.q), 1);
	assert_false(publish(&t, pos, nth(t.h, 1)));
	for (lap = 0; lap < 1000; lap++) {
		for (i = 0; i < 5; i++) {
			assert_null(arn_ring_dequeue_mpsc(t.q));
			assert_false(publish(&t, pos, nth(t.h, 1)));
			assert_int_equal(arn_ring_enqueue_mpsc(t.q, nth(t.h, 100 + i)), 1);
			assert_false(publish(&t, pos, nth(t.h, 1)));
			assert_ptr_equal(arn_ring_dequeue_mpsc(t.q), nth(t.h, 100 + i));
		}
	}
	bare_end(&t);
}

/* A skip in the middle of many: those before it are in the ring, the others still the caller's. */
static void a_skip_cuts_many_short(void **state)
{
	struct bare t = bare_new(32);
	void *p[20], *out[32];
	__u32 pos = 0, i, cut;

	for (i = 0; i < 20; i++)
		p[i] = nth(t.h, i);
	for (cut = 0; cut < 20; cut++) {
		assert_int_equal(reserve(&t, 20, &pos), 20);
		assert_int_equal(arn_ring_publish_all(t.h->base, &t.v, pos, p, cut), cut);
		assert_int_equal(arn_ring_dequeue_bulk_mpsc(t.q, out, 1, 32), cut);
		assert_int_equal(arn_ring_skip(t.q), 20 - cut);
		assert_int_equal(arn_ring_publish_all(t.h->base, &t.v, pos + cut, p + cut, 20 - cut), 0);
		assert_int_equal(arn_ring_enqueue_mpsc(t.q, nth(t.h, 50)), 1);
		assert_ptr_equal(arn_ring_dequeue_mpsc(t.q), nth(t.h, 50));
	}
	/* one place alone, as if skip had been cut short too */
	for (cut = 0; cut < 20; cut++) {
		assert_int_equal(reserve(&t, 20, &pos), 20);
		assert_int_equal(arn_cas32_full(arn_ring_slot(t.h->base, &t.v, pos + cut), ARN_RING_EMPTY(pos + cut),
						ARN_RING_SKIP),
				 ARN_RING_EMPTY(pos + cut));
		assert_int_equal(arn_ring_publish_all(t.h->base, &t.v, pos, p, 20), cut);
		arn_ring_abandon(t.h->base, &t.v, pos + cut, 20 - cut);
		assert_int_equal(arn_ring_enqueue_mpsc(t.q, nth(t.h, 50)), 1);
		assert_int_equal(arn_ring_dequeue_bulk_mpsc(t.q, out, cut + 1, 32), cut + 1);
		assert_int_equal(memcmp(out, p, cut * sizeof(void *)), 0);
		assert_ptr_equal(out[cut], nth(t.h, 50));
		ring_is_empty(MPSC, t.q);
	}
	bare_end(&t);
}

/* A ring full of skipped places does not stay full, even if its consumer wants more than it has. */
static void skipped_places_do_not_fill_a_ring_for_good(void **state)
{
	struct bare t = bare_new(16);
	void *out[16];
	__u32 pos = 0;

	assert_int_equal(arn_ring_enqueue_mpsc(t.q, nth(t.h, 1)), 1);
	assert_int_equal(reserve(&t, 15, &pos), 15);
	assert_int_equal(arn_ring_skip(t.q), 0); /* an object comes first */
	arn_ring_abandon(t.h->base, &t.v, pos, 15);
	assert_int_equal(arn_ring_enqueue_mpsc(t.q, nth(t.h, 2)), 0);
	assert_int_equal(arn_ring_dequeue_bulk_mpsc(t.q, out, 16, 16), 1);
	assert_ptr_equal(out[0], nth(t.h, 1));
	assert_int_equal(reserve(&t, 16, &pos), 16);
	assert_int_equal(arn_ring_skip(t.q), 16);
	assert_int_equal(arn_ring_dequeue_bulk_mpsc(t.q, out, 2, 16), 0);
	assert_int_equal(arn_ring_enqueue_mpsc(t.q, nth(t.h, 3)), 1);
	assert_ptr_equal(arn_ring_dequeue_mpsc(t.q), nth(t.h, 3));
	/* one by one */
	assert_int_equal(reserve(&t, 16, &pos), 16);
	assert_int_equal(arn_ring_skip(t.q), 16);
	ring_is_empty(MPSC, t.q);
	bare_end(&t);
}

/* Nobody marks a place that nobody has reserved: the next producer's. */
static void skip_leaves_free_places_alone(void **state)
{
	struct bare t = bare_new(8);
	__u32 i;

	for (i = 0; i < 20; i++) {
		assert_int_equal(arn_ring_skip(t.q), 0);
		assert_int_equal(arn_ring_enqueue_mpsc(t.q, nth(t.h, i)), 1);
		assert_int_equal(arn_ring_skip(t.q), 0);
		assert_ptr_equal(arn_ring_dequeue_mpsc(t.q), nth(t.h, i));
	}
	bare_end(&t);
}

/* A consumer that was killed after it emptied slots, before it moved head: the next one goes on behind them. */
static void a_killed_consumer_loses_what_it_held(void **state)
{
	struct bare t = bare_new(16);
	__u32 taken, i, pos;
	void *out[16];

	for (taken = 0; taken <= 16; taken++) {
		for (i = 0; i < 16; i++)
			assert_int_equal(arn_ring_enqueue_mpsc(t.q, nth(t.h, i)), 1);
		pos = arn_ring_address(t.q)->head;
		for (i = 0; i < taken; i++)
			*arn_ring_slot(t.h->base, &t.v, pos + i) = ARN_RING_EMPTY(pos + i + 16);
		assert_int_equal(arn_ring_skip(t.q), 0);
		assert_int_equal(arn_ring_dequeue_bulk_mpsc(t.q, out, taken % 2 ? 16 - taken : 1, 16), 16 - taken);
		for (i = taken; i < 16; i++)
			assert_ptr_equal(out[i - taken], nth(t.h, i));
		ring_is_empty(MPSC, t.q);
	}
	bare_end(&t);
}

/* Who loses every race gives up, and nothing has happened. */
static void giving_up_changes_nothing(void **state)
{
	struct bare t = bare_new(16);
	__u32 pos = 0;

	cas_lose = ARN_RING_TRIES;
	assert_int_equal(reserve(&t, 3, &pos), -EAGAIN);
	assert_int_equal(cas_lose, 0);
	ring_is_empty(MPSC, t.q);
	cas_lose = ARN_RING_TRIES - 1;
	assert_int_equal(reserve(&t, 3, &pos), 3);
	bare_end(&t);
}

/* ---- on top of each other ---- */

#ifdef STEPPING
static struct {
	struct bare t;
	__u32 at, traps;
	enum act { PUT, PUT_BULK, GET, SKIP } action;
	int got;
	void *out;
} step;

static void act(void)
{
	void *p[3] = { nth(step.t.h, 501), nth(step.t.h, 502), nth(step.t.h, 503) };

	switch (step.action) {
	case PUT:
		step.got = arn_ring_enqueue_mpsc(step.t.q, p[0]);
		break;
	case PUT_BULK:
		step.got = arn_ring_enqueue_bulk_mpsc(step.t.q, p, 3, 3);
		break;
	case GET:
		step.out = arn_ring_dequeue_mpsc(step.t.q);
		break;
	case SKIP:
		step.got = arn_ring_skip(step.t.q);
	}
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	if (step.traps++ == step.at)
		act();
	if (step.traps > step.at) /* the rest may run at full speed */
		uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

/*
 * A call that enqueues n objects, with another one on top of it at one instruction.  What came out before and
 * after is the n in order, less those that the call says are still the caller's, with the handler's between.
 */
static bool interrupted(enum act action, __u32 n, __u32 at)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	void *p[8], *out[32];
	__u32 i, mine = 0, theirs = 0, want;
	int done, got;

	for (i = 0; i < n; i++)
		p[i] = nth(step.t.h, i);
	step.action = action;
	step.at = at;
	step.traps = 0;
	step.got = 0;
	step.out = NULL;
	sigaction(SIGTRAP, &sa, NULL);
	if (n == 1) {
		STEP_ON();
		done = arn_ring_enqueue_mpsc(step.t.q, p[0]);
		STEP_OFF();
	} else {
		STEP_ON();
		done = arn_ring_enqueue_bulk_mpsc(step.t.q, p, n, n);
		STEP_OFF();
	}
	if (action != SKIP)
		insist(done == (int)n);
	else
		insist(step.got ? done == (int)n - step.got || (done == -EAGAIN && step.got == (int)n)
				: done == (int)n);
	want = done > 0 ? (__u32)done : 0;
	if (step.out)
		insist(step.out == p[mine++]);
	got = arn_ring_dequeue_bulk_mpsc(step.t.q, out, 1, 32);
	for (i = 0; i < (__u32)got; i++) {
		if (out[i] >= nth(step.t.h, 500)) {
			insist(out[i] == nth(step.t.h, 501 + theirs));
			insist(mine == 0 || mine == want); /* nothing between many */
			theirs++;
		} else {
			insist(mine < want && out[i] == p[mine]);
			mine++;
		}
	}
	insist(mine == want);
	if (action == PUT || action == PUT_BULK)
		insist(theirs == (step.traps > at ? (__u32)step.got : 0));
	insist(arn_ring_count(step.t.q) == 0);
	return step.traps > at;
}

static void every_instruction_of_a_producer(void **state)
{
	static const __u32 sizes[] = { 1, 2, 7 };
	enum act action;
	__u32 i, n;

	step.t = bare_new(16);
	for (action = PUT; action <= SKIP; action++) {
		for (n = 0; n < NELEMS(sizes); n++) {
			for (i = 0; interrupted(action, sizes[n], i); i += ARN_TEST_SCALE > 1 ? 5 : 1)
				insist(i < 5000);
			assert_in_range(i, 20, 4999); /* the call was over at some point: all was seen */
		}
	}
	bare_end(&step.t);
}
#else
static void every_instruction_of_a_producer(void **state)
{
	skip();
}
#endif

unit_main(t(a_stopped_producer_stops_the_consumer_only), t(a_late_producer_is_waited_for),
	  t(a_skipped_producer_fails_in_every_later_lap), t(a_skip_cuts_many_short),
	  t(skipped_places_do_not_fill_a_ring_for_good), t(skip_leaves_free_places_alone),
	  t(a_killed_consumer_loses_what_it_held), t(giving_up_changes_nothing), t(every_instruction_of_a_producer))
