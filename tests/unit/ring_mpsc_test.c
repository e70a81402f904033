// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * ring_mpsc_test.c - producers beside each other, on top of each other, and such as do not come to the end of
 * their call: no object is lost, none comes twice, nobody waits.
 *
 * The core's 32-bit compare-and-swap is this file's where the core is called directly; it can lose.  A
 * producer that stops half way is made by calling its steps one by one, or by a signal at every instruction
 * of the call.  Processes that are killed, and interrupts in BPF, are in tests/bpf.
 */
#include <pthread.h>
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

#define MPSC (&kinds[1])

/* The core by itself on a ring that the library made. */
struct bare {
	struct arn_heap *h;
	struct arn_root *r;
	struct arn_ring_handle *q;
	struct arn_ring_view v;
};

static struct bare bare_new(__u32 size)
{
	struct bare t = { .h = heap_new(24 * MIB) };

	t.r = arn_root(t.h->base);
	t.q = ring_new(MPSC, t.h, size);
	t.v = (struct arn_ring_view){ (__u64)t.h->base, (__u32)(__u64)arn_ring_address(t.q), size - 1 };
	return t;
}

static void bare_end(struct bare *t)
{
	arn_ring_destroy(t->q);
	heap_end(t->h);
}

static int reserve(struct bare *t, __u32 n, __u32 *pos)
{
	return arn_ring_reserve(t->h->base, t->r, &t->v, n, n, pos);
}

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
	__u32 pos;

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
	__u32 pos, i, lap;

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
	__u32 pos, i, cut;

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
	__u32 pos;

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
	__u32 pos;

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
			for (i = 0; interrupted(action, sizes[n], i); i++)
				insist(i < 5000);
			assert_in_range(i, 20, 4999); /* the call was over at some point: all was seen */
		}
	}
	bare_end(&step.t);
}
#endif

/* ---- beside each other ---- */

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

unit_main(t(a_stopped_producer_stops_the_consumer_only), t(a_late_producer_is_waited_for),
	  t(a_skipped_producer_fails_in_every_later_lap), t(a_skip_cuts_many_short),
	  t(skipped_places_do_not_fill_a_ring_for_good), t(skip_leaves_free_places_alone),
	  t(a_killed_consumer_loses_what_it_held), t(giving_up_changes_nothing),
#ifdef STEPPING
	  t(every_instruction_of_a_producer),
#endif
	  t(nothing_is_lost_between_threads), t(nor_in_a_small_ring), t(nor_when_somebody_skips_all_the_time),
	  t(nor_then_in_a_small_ring))
