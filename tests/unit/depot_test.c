// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * depot_test.c - the lock-free stacks of magazines: tags, ABA, giving up, and several threads at once.
 *
 * Shows that a stack survives being overtaken between load and swap (made to happen, not waited for).
 * What two CPUs' BPF programs do to it is for the BPF tests.
 */
#include <pthread.h>
#include "magazines.h"

/* Last in, first out; every change raises the tag, so no head value comes twice. */
static void depot_is_a_tagged_stack(void **state)
{
	struct core *c = magazines(1);
	__u32 a, b;
	__u64 h0, h1, h2;

	h0 = *empty(c);
	a = arn_depot_pop(c->b, empty(c));
	b = arn_depot_pop(c->b, empty(c));
	assert_true(a && b && a != b);
	assert_true(arn_depot_push(c->b, empty(c), a, 0, 1));
	h1 = *empty(c);
	assert_int_equal(arn_depot_pop(c->b, empty(c)), a);
	assert_true(arn_depot_push(c->b, empty(c), b, 0, 1));
	assert_true(arn_depot_push(c->b, empty(c), a, 0, 1));
	h2 = *empty(c);
	assert_int_equal(idx_of(h0), a);
	assert_int_equal(idx_of(h2), a);
	assert_int_equal(h1 >> 24, (h0 >> 24) + 3); /* two pops, a push */
	assert_int_equal(h2 >> 24, (h1 >> 24) + 3);
	core_end(c);
}

/* An empty stack gives nothing, which is no failure. */
static void empty_depot_gives_nothing(void **state)
{
	struct core *c = magazines(0);

	assert_int_equal(arn_depot_pop(c->b, empty(c)), 0);
	assert_false(arn_depot_has(full(c)));
	assert_int_equal(pop(c), 0);
	assert_int_equal(c->r->fail[ARN_FAIL_POP], 0);
	core_end(c);
}

/* The tag runs over into nothing: after 2^40 changes the stack still works. */
static void tag_wraps(void **state)
{
	struct core *c = magazines(1);
	__u32 a;

	*empty(c) |= ~ARN_STACK_IDX_MASK;
	a = arn_depot_pop(c->b, empty(c));
	assert_int_equal(*empty(c) >> 24, 0);
	assert_true(arn_depot_push(c->b, empty(c), a, 0, 1));
	assert_int_equal(length(c, *empty(c)), 8);
	core_end(c);
}

static struct core *aba;

/* Pops two magazines and puts the first one back: the head's index is what it was. */
static void pop_pop_push(void)
{
	__u32 a = arn_depot_pop(aba->b, empty(aba)), m = arn_depot_pop(aba->b, empty(aba));

	cas_before = NULL;
	insist(a && m);
	cache(aba)->parked = arn_top(m, 0); /* it has a place, so the walkers find it */
	insist(arn_depot_push(aba->b, empty(aba), a, 0, 1));
}

/* ABA: a pop that was overtaken so does not install the link it read before. */
static void an_overtaken_pop_starts_again(void **state)
{
	__u32 a;

	aba = magazines(1);
	cas_before = pop_pop_push;
	a = arn_depot_pop(aba->b, empty(aba));
	assert_int_not_equal(a, 0);
	assert_int_equal(length(aba, *empty(aba)), 6);
	assert_int_not_equal(idx_of(*empty(aba)), arn_top_mag(cache(aba)->parked));
	assert_true(arn_depot_push(aba->b, empty(aba), a, 0, 1));
	core_end(aba);
}

/* The same for a push. */
static void an_overtaken_push_starts_again(void **state)
{
	__u32 a;

	aba = magazines(1);
	a = arn_depot_pop(aba->b, empty(aba));
	cas_before = pop_pop_push;
	assert_true(arn_depot_push(aba->b, empty(aba), a, 0, 2));
	assert_int_equal(length(aba, *empty(aba)), 7);
	core_end(aba);
}

/* Who loses every turn gives up: false or nothing, counted, and the stack is as it was. */
static void giving_up_is_counted(void **state)
{
	struct core *c = magazines(1);
	__u32 a = arn_depot_pop(c->b, empty(c));
	__u64 head = *empty(c);

	cas_lose = ARN_DEPOT_TRIES;
	assert_false(arn_depot_push(c->b, empty(c), a, 0, ARN_DEPOT_TRIES));
	assert_int_equal(c->r->fail[ARN_FAIL_PUSH], 1);
	cas_lose = ARN_DEPOT_TRIES;
	assert_int_equal(arn_depot_pop(c->b, empty(c)), 0);
	assert_int_equal(c->r->fail[ARN_FAIL_POP], 1);
	assert_int_equal(*empty(c), head);
	/* where nothing can be parked, a hundred lost turns are not enough to give up */
	cas_lose = 100;
	arn_depot_give(c->b, c->r, CLS, a, 0);
	assert_int_equal(length(c, *empty(c)), 8);
	core_end(c);
}

/* One object out of the depot leaves the others there; the last one leaves an empty magazine. */
static void one_past_the_cache(void **state)
{
	struct core *c = magazines(1);
	__u32 m = arn_depot_pop(c->b, empty(c)), i;

	for (i = 0; i < 3; i++) {
		arn_mag(c->b, m)->obj[i] = object(c);
		unmark(c, arn_mag(c->b, m)->obj[i]);
	}
	arn_depot_give(c->b, c->r, CLS, m, 3);
	for (i = 3; i--;) {
		mark(c, arn_depot_one(c->b, c->r, 1, CLS), CLS);
		sound(&c->heap);
		assert_int_equal(length(c, *full(c)), i ? 1 : 0);
	}
	assert_int_equal(arn_depot_one(c->b, c->r, 1, CLS), 0);
	assert_int_equal(length(c, *empty(c)), 8);
	core_end(c);
}

/* A magazine that claims more objects than there is room for is taken for an empty one. */
static void a_corrupt_count_is_none(void **state)
{
	struct core *c = magazines(1);
	__u32 m;

	push_new(c, 3 * c->r->cls[CLS].cap);
	m = idx_of(*full(c));
	arn_mag(c->b, m)->n = ARN_MAG_OBJS + 1;
	assert_int_equal(arn_mag_count(c->b, m), 0);
	assert_int_equal(arn_depot_one(c->b, c->r, 1, CLS), 0);
	core_drop(c);
}

/* ---- several threads on the two stacks ---- */

#define WORKERS 4

struct worker {
	struct core *c;
	__u32 turns, held[6];
	__u64 seed;
};

/* Holds up to six magazines at a time, writes its name into those it holds, finds it there later. */
static void *work(void *arg)
{
	struct worker *w = arg;
	__u64 *from, *to;
	__u32 i, k, m;

	for (i = 0; i < w->turns; i++) {
		k = rnd(&w->seed) % 6;
		from = rnd(&w->seed) & 1 ? full(w->c) : empty(w->c);
		to = rnd(&w->seed) & 1 ? full(w->c) : empty(w->c);
		m = w->held[k];
		if (m) {
			insist(arn_mag(w->c->b, m)->obj[0] == m + k &&
			       arn_mag(w->c->b, m)->stamp == (__u64)(unsigned long)w);
			arn_mag(w->c->b, m)->stamp = 0;
			/* "full" is only a name here: a magazine without objects, as the walkers will be told */
			w->held[k] = arn_depot_push(w->c->b, to, m, 0, ARN_DEPOT_INSIST) ? 0 : m;
			insist(!w->held[k]);
		} else {
			m = arn_depot_pop(w->c->b, from);
			if (!m)
				continue;
			insist(arn_mag(w->c->b, m)->stamp == 0); /* nobody else holds it */
			arn_mag(w->c->b, m)->stamp = (__u64)(unsigned long)w;
			arn_mag(w->c->b, m)->obj[0] = m + k;
			w->held[k] = m;
		}
	}
	return NULL;
}

/* Threads move magazines between two stacks at random: never two hold the same, and none is lost. */
static void magazines_are_in_one_hand(void **state)
{
	struct core *c = magazines(4);
	struct worker w[WORKERS];
	pthread_t th[WORKERS];
	__u32 i, k, m;

	for (i = 0; i < WORKERS; i++) {
		w[i] = (struct worker){ .c = c, .turns = 2000000 / ARN_TEST_SCALE, .seed = i + 1 };
		assert_int_equal(pthread_create(&th[i], NULL, work, &w[i]), 0);
	}
	for (i = 0; i < WORKERS; i++)
		pthread_join(th[i], NULL);
	for (i = 0; i < WORKERS; i++)
		for (k = 0; k < 6; k++)
			if (w[i].held[k])
				arn_depot_give(c->b, c->r, CLS, w[i].held[k], 0);
	while ((m = arn_depot_pop(c->b, full(c))))
		arn_depot_give(c->b, c->r, CLS, m, 0);
	assert_int_equal(length(c, *empty(c)), 32);
	core_end(c);
}

unit_main(t(depot_is_a_tagged_stack), t(empty_depot_gives_nothing), t(tag_wraps), t(an_overtaken_pop_starts_again),
	  t(an_overtaken_push_starts_again), t(giving_up_is_counted), t(one_past_the_cache), t(a_corrupt_count_is_none),
	  t(magazines_are_in_one_hand))
