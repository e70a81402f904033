// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * emergency_test.c - the objects that each class sets aside: taken without anybody's leave, put back under
 * the lock, and the last to be given up.
 *
 * Who comes here, and when, is in signal_test.c and, for interrupts, in tests/bpf.
 */
#include <pthread.h>
#include "harness.h"
#include "../../src/core/heap.h"

#define CLS 12u

/* As the slow paths' ends do.  How many objects were put. */
static __u32 restock(struct core *c)
{
	__u32 at, n = 0;

	while (c->r->emergency_low) {
		at = arn_emergency_hole(c->b, c->r);
		if (at > ARN_EMERGENCY_CARVE)
			at = arn_more_slabs(c->b, c->r, 0, at - ARN_EMERGENCY_CARVE - 1);
		if (!at)
			continue;
		at = arn_fill(c->b, c->r, 0, at - 1, 0);
		if (!at)
			break;
		arn_emergency_put(c->b, c->r, at);
		n++;
	}
	return n;
}

static void nothing_is_set_aside_before_it_is_asked_for(void **state)
{
	struct core *c = core_new(32 * MIB);

	core_grow(c, 1);
	assert_int_equal(restock(c), 0);
	assert_true(arn_emergency_short(c->b, CLS));
	assert_false(arn_emergency_short(c->b, ARN_CLASSES));
	assert_int_equal(arn_emergency_take(c->b, c->r, CLS), 0);
	assert_int_equal(c->r->fail[ARN_FAIL_EMERGENCY], 0);
	core_end(c);
}

/* Every object once; who finds none leaves word, and the class is filled again. */
static void each_class_has_its_share(void **state)
{
	struct core *c = core_new(64 * MIB);
	__u32 cls, i, n, off[ARN_EMERGENCY];

	core_grow(c, 16);
	for (cls = 0; cls < ARN_CLASSES; cls++) {
		n = c->r->cls[cls].emergency;
		assert_in_range(n, 2, ARN_EMERGENCY);
		assert_true(n == 2 || (__u64)n * c->r->cls[cls].size <= 32 * KIB);
		assert_int_equal(arn_emergency_take(c->b, c->r, cls), 0);
		assert_int_equal(c->r->emergency_low, 1ULL << cls);
		assert_int_equal(restock(c), n);
		assert_false(arn_emergency_short(c->b, cls));
		assert_int_equal(stats(&c->heap).cls[cls].in_emergency, n);
		sound(&c->heap);
		for (i = 0; i < n; i++) {
			off[i] = arn_emergency_take(c->b, c->r, cls);
			assert_int_not_equal(off[i], 0);
			mark(c, off[i], cls);
		}
		assert_int_equal(arn_emergency_take(c->b, c->r, cls), 0);
		assert_int_equal(stats(&c->heap).cls[cls].live, n);
		assert_int_equal(restock(c), n);
		for (i = 0; i < n; i++) {
			unmark(c, off[i]);
			arn_slab_put(c->b, c->r, off[i]);
		}
		settle(c);
		sound(&c->heap);
	}
	core_end(c);
}

/* Only as many as were taken. */
static void holes_are_filled(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 off;

	core_grow(c, 1);
	arn_emergency_want(c->r, CLS);
	restock(c);
	off = arn_emergency_take(c->b, c->r, CLS);
	assert_true(arn_emergency_short(c->b, CLS));
	assert_int_equal(restock(c), 1);
	arn_emergency_put(c->b, c->r, off); /* there is no place: back to its slab */
	settle(c);
	assert_int_equal(stats(&c->heap).cls[CLS].in_emergency, c->r->cls[CLS].emergency);
	core_end(c);
}

static void without_memory_holes_stay(void **state)
{
	struct core *c = core_new(32 * MIB);

	arn_emergency_want(c->r, CLS);
	assert_int_equal(restock(c), 0);
	assert_int_equal(c->r->emergency_low, 0); /* nobody tries again in vain */
	core_grow(c, 1);
	assert_int_equal(arn_emergency_take(c->b, c->r, CLS), 0);
	assert_int_equal(restock(c), c->r->cls[CLS].emergency);
	core_end(c);
}

static void without_the_lock_it_is_left_to_others(void **state)
{
	struct core *c = core_new(32 * MIB);

	core_grow(c, 1);
	assert_true(arn_more_slabs(c->b, c->r, 0, CLS));
	arn_emergency_want(c->r, CLS);
	assert_true(arn_lock(c->r, 0));
	assert_int_equal(restock(c), 0);
	arn_unlock(c->r);
	assert_int_equal(c->r->emergency_low, 1ULL << CLS);
	assert_int_equal(restock(c), c->r->cls[CLS].emergency);
	core_end(c);
}

static void given_up_they_are_whole_pages_again(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u64 before;

	core_grow(c, 1);
	before = c->r->pages_free;
	arn_emergency_want(c->r, CLS);
	restock(c);
	assert_true(c->r->pages_free < before);
	arn_emergency_release(c->b, c->r, CLS);
	settle(c);
	assert_true(arn_class_retire(c->b, c->r, 0, CLS) > 0);
	settle(c);
	assert_int_equal(c->r->pages_free, before);
	core_end(c);
}

struct racer {
	struct core *c;
	__u8 *held; /* a byte a granule: who has the object, 0: nobody */
	__u32 id, got, turns;
};

/* Takes, and puts what it took: never what somebody else has. */
static void *race(void *arg)
{
	struct racer *me = arg;
	__u32 i, off, granule;
	__u8 none;

	for (i = 0; i < me->turns; i++) {
		off = arn_emergency_take(me->c->b, me->c->r, CLS);
		if (!off)
			continue;
		granule = (off >> ARN_GRANULE_SHIFT) - me->c->r->first_granule;
		none = 0;
		insist(__atomic_compare_exchange_n(&me->held[granule], &none, (__u8)me->id, 0, __ATOMIC_SEQ_CST,
						   __ATOMIC_SEQ_CST));
		__atomic_store_n(&me->held[granule], 0, __ATOMIC_SEQ_CST);
		arn_emergency_put(me->c->b, me->c->r, off);
		me->got++;
	}
	return NULL;
}

static void nobody_takes_what_another_has(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u8 *held = calloc(c->r->ngranules, 1);
	struct racer racer[4];
	pthread_t th[4];
	__u32 i, got = 0;

	core_grow(c, 1);
	arn_emergency_want(c->r, CLS);
	restock(c);
	for (i = 0; i < 4; i++) {
		racer[i] = (struct racer){ .c = c, .held = held, .id = i + 1, .turns = 40000 / ARN_TEST_SCALE };
		assert_int_equal(pthread_create(&th[i], NULL, race, &racer[i]), 0);
	}
	for (i = 0; i < 4; i++) {
		pthread_join(th[i], NULL);
		got += racer[i].got;
	}
	assert_true(got > 1000);
	settle(c);
	restock(c);
	assert_int_equal(stats(&c->heap).cls[CLS].in_emergency, c->r->cls[CLS].emergency);
	free(held);
	core_end(c);
}

unit_main(t(nothing_is_set_aside_before_it_is_asked_for), t(each_class_has_its_share), t(holes_are_filled),
	  t(without_memory_holes_stay), t(without_the_lock_it_is_left_to_others),
	  t(given_up_they_are_whole_pages_again), t(nobody_takes_what_another_has))
