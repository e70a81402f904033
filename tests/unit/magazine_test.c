// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * magazine_test.c - a slot's cache: two magazines, exchanged whole, parked when an exchange gives up.
 *
 * Shows that a magazine is never in two places and none is lost, also when exchanges lose.  Preemption
 * inside of a claim is for the BPF tests.
 */
#include "magazines.h"

/* A cache takes a magazine's worth twice over, then whole magazines go to the depot, and come back. */
static void whole_magazines_change_hands(void **state)
{
	struct core *c = magazines(1);
	__u32 cap = c->r->cls[CLS].cap, i;

	push_new(c, 2 * cap);
	assert_int_equal(length(c, *full(c)), 0);
	assert_int_equal(length(c, *empty(c)), 6);
	sound(&c->heap);
	push_new(c, cap);
	assert_int_equal(length(c, *full(c)), 1);
	assert_int_equal(arn_mag(c->b, idx_of(*full(c)))->n, cap);
	sound(&c->heap);
	for (i = 0; i < 3 * cap; i++)
		assert_int_not_equal(pop(c), 0);
	assert_int_equal(pop(c), 0);
	assert_int_equal(length(c, *full(c)), 0);
	assert_int_equal(length(c, *empty(c)), 6);
	core_end(c);
}

/* Going back and forth over a magazine's edge costs no exchange with the depot: two magazines. */
static void an_edge_is_not_exchanged_over(void **state)
{
	struct core *c = magazines(1);
	__u32 cap = c->r->cls[CLS].cap, i;
	__u64 e, f;

	push_new(c, cap + 1);
	e = *empty(c);
	f = *full(c);
	for (i = 0; i < 100; i++) {
		__u32 a = pop(c), b = pop(c), d = pop(c);

		assert_true(a && b && d);
		assert_true(push(c, a) && push(c, b) && push(c, d));
	}
	assert_true(*empty(c) == e && *full(c) == f);
	core_end(c);
}

/* A push without an empty magazine is not taken, and nothing has changed. */
static void no_magazine_no_push(void **state)
{
	struct core *c = magazines(0);
	__u32 off = object(c);

	assert_false(push(c, off));
	sound(&c->heap);
	assert_true(arn_more_mags(c->b, c->r, 0, CLS));
	assert_true(push(c, off));
	core_end(c);
}

/* Whoever finds the cache busy goes past it, and leaves it alone. */
static void a_busy_cache_is_passed(void **state)
{
	struct core *c = magazines(1);
	__u32 off = object(c);
	struct arn_cache before;
	_Bool bypass = 0;
	__u32 top;

	push_new(c, 3);
	top = arn_claim(cache(c));
	assert_int_equal(arn_top_count(top), 3);
	before = *cache(c);
	assert_int_equal(arn_cache_pop(c->b, c->r, cache(c), CLS, &bypass), 0);
	assert_true(bypass);
	assert_false(push(c, off));
	assert_false(arn_cache_drain(c->b, c->r, 1, CLS));
	assert_memory_equal(cache(c), &before, sizeof(before));
	arn_unclaim(cache(c), top);
	assert_int_not_equal(pop(c), 0);
	core_end(c);
}

/*
 * Parking.  Exchanging a full magazine, the pop of an empty one wins and the push of the full one loses
 * every turn: it is parked in the slot with its objects, and the next exchange sends it off first.
 */
static __u32 swaps;
static void lose_the_second(void)
{
	if (swaps++)
		cas_lose = ARN_DEPOT_TRIES;
	else
		cas_before = lose_the_second;
}

static void a_lost_push_of_a_full_one_is_parked(void **state)
{
	struct core *c = magazines(1);
	__u32 cap = c->r->cls[CLS].cap, i, prev;

	push_new(c, 2 * cap);
	prev = cache(c)->prev;
	swaps = 0;
	cas_before = lose_the_second;
	push_new(c, 1);
	assert_int_equal(cache(c)->parked, prev);
	assert_int_equal(arn_top_count(prev), cap);
	assert_int_equal(c->r->fail[ARN_FAIL_PUSH], 1);
	sound(&c->heap);
	push_new(c, cap);
	assert_int_equal(cache(c)->parked, 0);
	assert_int_equal(length(c, *full(c)), 2);
	sound(&c->heap);
	for (i = 0; i < 3 * cap + 1; i++)
		assert_int_not_equal(pop(c), 0);
	assert_int_equal(pop(c), 0);
	core_end(c);
}

/* The same with an empty one that goes off when a full one is fetched. */
static void a_lost_push_of_an_empty_one_is_parked(void **state)
{
	struct core *c = magazines(1);
	__u32 cap = c->r->cls[CLS].cap, i;

	push_new(c, 4 * cap);
	for (i = 0; i < 2 * cap; i++)
		pop(c);
	swaps = 0;
	cas_before = lose_the_second;
	assert_int_not_equal(pop(c), 0);
	assert_int_not_equal(cache(c)->parked, 0);
	assert_int_equal(arn_top_count(cache(c)->parked), 0);
	sound(&c->heap);
	for (i = 0; i < 2 * cap - 1; i++)
		assert_int_not_equal(pop(c), 0);
	assert_int_equal(cache(c)->parked, 0);
	assert_int_equal(pop(c), 0);
	sound(&c->heap);
	core_end(c);
}

/* While the parked one cannot be sent off, no exchange is begun: nothing is fetched that has no place. */
static void a_parked_one_goes_first(void **state)
{
	struct core *c = magazines(1);
	__u32 cap = c->r->cls[CLS].cap, off;
	struct arn_cache before;

	push_new(c, 2 * cap);
	swaps = 0;
	cas_before = lose_the_second;
	push_new(c, cap);
	assert_int_not_equal(cache(c)->parked, 0);
	off = object(c);
	before = *cache(c);
	cas_lose = ARN_DEPOT_TRIES;
	assert_false(push(c, off));
	assert_memory_equal(cache(c), &before, sizeof(before));
	assert_int_equal(cas_lose, 0);
	sound(&c->heap);
	core_end(c);
}

/* Draining a slot brings all three magazines to the depot, draining that the objects to their slabs. */
static void drain_empties_the_slot(void **state)
{
	struct core *c = magazines(1);
	__u32 cap = c->r->cls[CLS].cap;
	struct arn_stats s;

	push_new(c, 2 * cap);
	swaps = 0;
	cas_before = lose_the_second;
	push_new(c, 7);
	assert_int_not_equal(cache(c)->parked, 0);
	assert_true(arn_cache_drain(c->b, c->r, 1, CLS));
	s = stats(&c->heap);
	assert_int_equal(s.cls[CLS].in_slots, 0);
	assert_int_equal(s.cls[CLS].in_depot, 2 * cap + 7);
	sound(&c->heap);
	arn_depot_drain(c->b, c->r, CLS);
	assert_int_equal(length(c, *empty(c)), 8);
	s = stats(&c->heap);
	assert_int_equal(s.cls[CLS].in_slabs, s.cls[CLS].objects);
	sound(&c->heap);
	assert_int_equal(pop(c), 0);
	core_end(c);
}

/* A slot keeps a few full magazines near, more go to everybody's stack; the near ones are used first. */
static void some_magazines_stay_near(void **state)
{
	struct core *c = magazines(1);
	__u32 cap = c->r->cls[CLS].cap, i;
	struct arn_stats s;

	c->r->cls[CLS].near = 2;
	push_new(c, 6 * cap);
	assert_int_equal(length(c, cache(c)->near_full), 2);
	assert_int_equal(length(c, *full(c)), 2);
	s = stats(&c->heap);
	assert_int_equal(s.cls[CLS].in_slots, 4 * cap);
	assert_int_equal(s.cls[CLS].in_depot, 2 * cap);
	assert_int_equal(s.cls[CLS].live, 0);
	sound(&c->heap);
	for (i = 0; i < 4 * cap; i++)
		assert_int_not_equal(pop(c), 0);
	assert_int_equal(length(c, cache(c)->near_full), 0);
	assert_int_equal(length(c, *full(c)), 2);
	for (i = 0; i < 2 * cap; i++)
		assert_int_not_equal(pop(c), 0);
	assert_int_equal(pop(c), 0);
	assert_int_equal(length(c, cache(c)->near_empty), 2);
	sound(&c->heap);
	core_end(c);
}

/* What lies near a slot is found by whoever drains the depot, and left to all when its owner goes. */
static void near_magazines_are_not_lost(void **state)
{
	struct core *c = magazines(1);
	__u32 cap = c->r->cls[CLS].cap;
	struct arn_stats s;

	c->r->cls[CLS].near = 3;
	push_new(c, 5 * cap);
	assert_int_equal(length(c, cache(c)->near_full), 3);
	arn_depot_drain(c->b, c->r, CLS);
	assert_int_equal(cache(c)->near_full & ARN_STACK_IDX_MASK, 0);
	s = stats(&c->heap);
	assert_int_equal(s.cls[CLS].in_slots, 2 * cap);
	assert_int_equal(s.cls[CLS].in_slabs, s.cls[CLS].objects - 2ULL * cap);
	sound(&c->heap);
	cache(c)->near_n = 0; /* as the next take would find out */
	push_new(c, 2 * cap);
	assert_int_not_equal(length(c, cache(c)->near_full), 0);
	arn_cache_drain(c->b, c->r, 1, CLS);
	arn_near_release(c->b, c->r, 1, CLS);
	assert_int_equal(stats(&c->heap).cls[CLS].in_slots, 0);
	assert_int_equal(length(c, cache(c)->near_empty), 0);
	sound(&c->heap);
	core_end(c);
}

/* A bound that is off costs nothing but its purpose: stacks are as long as they are. */
static void near_counts_may_be_off(void **state)
{
	struct core *c = magazines(1);
	__u32 cap = c->r->cls[CLS].cap, i;

	c->r->cls[CLS].near = 2;
	push_new(c, 4 * cap);
	cache(c)->near_n = 0;
	push_new(c, 2 * cap);
	assert_int_equal(length(c, cache(c)->near_full), 4);
	cache(c)->near_n = 77;
	cache(c)->near_empty_n = 77;
	for (i = 0; i < 6 * cap; i++)
		assert_int_not_equal(pop(c), 0);
	assert_int_equal(pop(c), 0);
	assert_int_equal(cache(c)->near_n, 0);
	sound(&c->heap);
	core_end(c);
}

unit_main(t(whole_magazines_change_hands), t(an_edge_is_not_exchanged_over), t(no_magazine_no_push),
	  t(a_busy_cache_is_passed), t(a_lost_push_of_a_full_one_is_parked), t(a_lost_push_of_an_empty_one_is_parked),
	  t(a_parked_one_goes_first), t(drain_empties_the_slot), t(some_magazines_stay_near),
	  t(near_magazines_are_not_lost), t(near_counts_may_be_off))
