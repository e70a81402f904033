// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * slab_test.c - objects in slabs: cut, taken, put back by anyone at any time, and slabs given back.
 *
 * Shows that an object is never in two hands and none is lost, also when puts race with takes and with
 * retiring (TSan looks at the order).  Cannot show the bounded waits of BPF.
 */
#include <pthread.h>
#include <sched.h>
#include "harness.h"

static __u32 slab(struct core *c, __u32 cls)
{
	__u32 pg;

	assert_true(arn_lock(c->r, 0));
	pg = arn_slab_new(c->b, c->r, cls);
	arn_unlock(c->r);
	assert_int_not_equal(pg, 0);
	return pg;
}

/* Takes one object of the class's first slab with free ones; 0: there is none. */
static __u32 one(struct core *c, __u32 cls)
{
	__u32 off = 0, head;

	assert_true(arn_lock(c->r, 0));
	arn_settle(c->b, c->r);
	head = c->r->depot[cls].partial;
	if (head)
		assert_int_equal(arn_slab_take(c->b, c->r, cls, head, 0, 0, 1, &off), 1);
	arn_unlock(c->r);
	if (off)
		mark(c, off, cls);
	return off;
}

static void put(struct core *c, __u32 off)
{
	unmark(c, off);
	arn_slab_put(c->b, c->r, off);
}

static __u32 retire(struct core *c, __u32 cls)
{
	__u32 pages;

	assert_true(arn_lock(c->r, 0));
	arn_settle(c->b, c->r);
	pages = arn_slab_retire(c->b, c->r, cls);
	arn_settle(c->b, c->r);
	arn_unlock(c->r);
	return pages;
}

/* Of every class: a slab's objects come out once each, at their places, and go back; its pages too. */
static void every_object_comes_out_once(void **state)
{
	struct core *c = core_new(32 * MIB);
	static __u32 got[ARN_SLAB_MAX_PAGES * 256];
	__u32 cls, pg, i, at, last, nobj;

	core_grow(c, 1);
	for (cls = 0; cls < ARN_CLASSES; cls++) {
		struct arn_class *k = &c->r->cls[cls];

		nobj = k->nobj;
		pg = slab(c, cls);
		assert_int_equal(pg % k->align, 0);
		sound(&c->heap);
		for (i = 0, last = 0; i < nobj; i++) {
			got[i] = one(c, cls);
			at = got[i] - (pg << ARN_PAGE_SHIFT);
			assert_int_equal(at % k->size, 0);
			assert_true(at / k->size < nobj);
			assert_true(got[i] > last);
			last = got[i];
		}
		assert_int_equal(one(c, cls), 0);
		assert_int_equal(c->r->depot[cls].partial, 0);
		sound(&c->heap);
		for (i = 0; i < nobj; i++)
			put(c, got[i]);
		sound(&c->heap);
		assert_int_equal(retire(c, cls), k->run);
		assert_int_equal(c->r->depot[cls].nslabs, 0);
		assert_int_equal(c->r->pages_free, 256);
	}
	core_end(c);
}

/* The first object put into a spent slab pends it once; the following ones do not again. */
static void a_spent_slab_is_pended_once(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 pg, got[3] = { 0 }, i;

	core_grow(c, 1);
	pg = slab(c, 20);
	for (i = 0; i < c->r->cls[20].nobj; i++)
		got[i % 3] = one(c, 20);
	assert_int_equal(c->r->pending, 0);
	put(c, got[0]);
	assert_int_equal(c->r->pending, pg);
	put(c, got[1]);
	put(c, got[2]);
	assert_int_equal(c->r->pending, pg);
	assert_int_equal(arn_desc(c->b, c->r, pg)->pend_next, 0);
	sound(&c->heap);
	settle(c);
	assert_int_equal(c->r->depot[20].partial, pg);
	sound(&c->heap);
	core_end(c);
}

/* Half a visit: the magazine gets what it wants, the rest stays to be found. */
static void a_take_leaves_the_rest(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 pg, m, n, i, cls = 3;

	core_grow(c, 1);
	assert_true(arn_more_mags(c->b, c->r, 0, cls));
	m = arn_depot_pop(c->b, &c->r->depot[cls].empty);
	pg = slab(c, cls);
	assert_true(arn_lock(c->r, 0));
	n = arn_slab_take(c->b, c->r, cls, pg, m, 2, 40, NULL);
	arn_unlock(c->r);
	assert_int_equal(n, 40);
	assert_int_equal(arn_desc(c->b, c->r, pg)->nfree, c->r->cls[cls].nobj - 38);
	assert_int_equal(c->r->depot[cls].partial, pg);
	/* the two that it was said to hold already */
	arn_mag(c->b, m)->obj[0] = one(c, cls);
	arn_mag(c->b, m)->obj[1] = one(c, cls);
	for (i = 0; i < 2; i++)
		unmark(c, arn_mag(c->b, m)->obj[i]);
	arn_depot_give(c->b, c->r, cls, m, n);
	core_end(c);
}

/* A put of what is in no slab is counted as a contradiction and changes nothing. */
static void a_put_elsewhere_is_refused(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 free_page, large;

	core_grow(c, 1);
	large = arn_large_alloc(c->b, c->r, 0, 4, 1);
	free_page = c->r->bins[arn_bin_of(c->r, 252)] << ARN_PAGE_SHIFT;
	arn_slab_put(c->b, c->r, free_page + 64);
	arn_slab_put(c->b, c->r, large);
	arn_slab_put(c->b, c->r, 0);
	arn_slab_put(c->b, c->r, ARN_ROOT_OFF);
	assert_int_equal(c->r->fail[ARN_FAIL_CORRUPT], 4);
	assert_int_equal(c->r->pending, 0);
	core_end(c);
}

/* Retiring takes the empty slabs out of the list, wherever they stand in it, and keeps the others. */
static void retiring_keeps_slabs_in_use(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 set, i, pg, keep, cls = 30, pages, n;

	core_grow(c, 1);
	pages = c->r->cls[cls].npages;
	for (set = 0; set < 16; set++) {
		__u32 got[4];

		for (i = 0, keep = 0; i < 4; i++) {
			slab(c, cls);
			got[i] = one(c, cls);
		}
		for (i = 0; i < 4; i++) {
			if (set >> i & 1)
				keep++;
			else
				put(c, got[i]);
		}
		assert_int_equal(retire(c, cls), (4 - keep) * pages);
		assert_int_equal(c->r->depot[cls].nslabs, keep);
		for (n = 0, pg = c->r->depot[cls].partial; pg; pg = arn_desc(c->b, c->r, pg)->next)
			n++;
		assert_int_equal(n, keep);
		sound(&c->heap);
		for (i = 0; i < 4; i++)
			if (set >> i & 1)
				put(c, got[i]);
		assert_int_equal(retire(c, cls), keep * pages);
	}
	core_end(c);
}

/* A count that says "all back" while a bit is missing does not give the slab away. */
static void a_wrong_count_does_not_retire(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 pg, off, cls = 10;

	core_grow(c, 1);
	pg = slab(c, cls);
	off = one(c, cls);
	arn_desc(c->b, c->r, pg)->nfree++;
	assert_int_equal(retire(c, cls), 0);
	arn_desc(c->b, c->r, pg)->nfree--;
	put(c, off);
	assert_int_equal(retire(c, cls), c->r->cls[cls].npages);
	core_end(c);
}

/* The last slab of a 4 GiB arena ends where 32-bit offsets run over: its objects are found all the same. */
static void a_slab_at_the_end_of_4_gib(void **state)
{
	struct core *c = core_new(4096 * MIB);
	__u32 cls = ARN_PLAIN_CLASSES - 1, n = 0, large, got[8];

	assert_int_equal(arn_chunk_add(c->b, c->r, arn_end_chunk(c->r) - 1, ARN_CHUNK_NONE), 0);
	settle(c);
	large = arn_large_alloc(c->b, c->r, 0, 256 - c->r->cls[cls].npages, 1);
	assert_int_equal(slab(c, cls) + c->r->cls[cls].npages, 1u << 20);
	while (n < NELEMS(got) && (got[n] = one(c, cls)))
		n++;
	assert_int_equal(n, c->r->cls[cls].nobj);
	sound(&c->heap);
	while (n--)
		put(c, got[n]);
	sound(&c->heap);
	assert_int_equal(retire(c, cls), c->r->cls[cls].npages);
	unmark(c, large);
	arn_large_free(c->b, c->r, large);
	settle(c);
	assert_int_equal(c->r->pages_free, 256);
	core_end(c);
}

/* With no page run left there is no slab, and nothing has changed. */
static void no_pages_no_slab(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 large;

	core_grow(c, 1);
	large = arn_large_alloc(c->b, c->r, 0, 256, 1);
	assert_int_not_equal(large, 0);
	assert_true(arn_lock(c->r, 0));
	assert_int_equal(arn_slab_new(c->b, c->r, 5), 0);
	assert_int_equal(arn_slab_new(c->b, c->r, ARN_CLASSES), 0);
	arn_unlock(c->r);
	core_end(c);
}

/* ---- races ---- */

#define HANDS 512

struct race {
	struct core *c;
	__u32 cls, slot;
	__u32 *hand; /* objects on their way from the taker to the putters: a mailbox each */
	__u32 *stop;
	__u64 puts;
};

static void *putter(void *arg)
{
	struct race *me = arg;
	__u32 i, off;

	while (!arn_load_relaxed(me->stop)) {
		for (i = 0; i < HANDS; i++) {
			if (!arn_load_relaxed(&me->hand[i]))
				continue;
			off = arn_xchg32_full(&me->hand[i], 0);
			if (!off)
				continue;
			insist(*(__u64 *)(me->c->b + off) == off); /* nobody else has it */
			*(__u64 *)(me->c->b + off) = 0;
			unmark(me->c, off);
			arn_slab_put(me->c->b, me->c->r, off);
			me->puts++;
		}
		sched_yield();
	}
	return NULL;
}

/*
 * One thread takes, two put at the same time into the same slabs, and in between empty slabs are
 * retired: no object comes out while somebody holds it, and at the end all pages come back.
 */
static void puts_race_with_takes_and_retiring(void **state)
{
	static const __u32 classes[] = { 0, 7, 31, 39 };
	struct core *c = core_new(40 * MIB);
	__u32 k, i, off, turn, stop, turns = 300000 / ARN_TEST_SCALE;
	static __u32 hand[HANDS];
	struct race me[2];
	pthread_t th[2];
	__u64 taken;

	core_grow(c, 8);
	for (k = 0; k < NELEMS(classes); k++) {
		stop = 0;
		taken = 0;
		for (i = 0; i < 2; i++) {
			me[i] = (struct race){ c, classes[k], i + 1, hand, &stop, 0 };
			assert_int_equal(pthread_create(&th[i], NULL, putter, &me[i]), 0);
		}
		for (turn = 0; turn < turns; turn++) {
			i = turn % HANDS;
			if (!i) {
				retire(c, classes[k]);
				sched_yield();
			}
			if (arn_load_relaxed(&hand[i]))
				continue;
			off = one(c, classes[k]);
			if (!off) {
				arn_more_slabs(c->b, c->r, 0, classes[k]);
				continue;
			}
			insist(*(__u64 *)(c->b + off) == 0); /* it came back before it came out */
			*(__u64 *)(c->b + off) = off;
			taken++;
			insist(!arn_xchg32_full(&hand[i], off));
		}
		for (i = 0; i < HANDS; i++)
			while (arn_load_relaxed(&hand[i]))
				sched_yield();
		__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
		for (i = 0; i < 2; i++)
			pthread_join(th[i], NULL);
		assert_int_equal(me[0].puts + me[1].puts, taken);
		sound(&c->heap);
		retire(c, classes[k]);
		assert_int_equal(c->r->depot[classes[k]].nslabs, 0);
		assert_int_equal(c->r->pages_free, 8 * 256);
	}
	core_end(c);
}

unit_main(t(every_object_comes_out_once), t(a_spent_slab_is_pended_once), t(a_take_leaves_the_rest),
	  t(a_put_elsewhere_is_refused), t(retiring_keeps_slabs_in_use), t(a_wrong_count_does_not_retire),
	  t(no_pages_no_slab), t(a_slab_at_the_end_of_4_gib), t(puts_race_with_takes_and_retiring))
