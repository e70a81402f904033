// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * heap_test.c - the steps between slot, depot, slabs and page runs, each by itself.
 *
 * What the public calls make of them is in alloc_test.c and free_test.c.
 */
#include "harness.h"

#define CLS 12u

static __u64 *empty(struct core *c)
{
	return &c->r->depot[CLS].empty;
}

/* An object through the refill, marked allocated; 0: the slabs are spent. */
static __u32 refill(struct core *c)
{
	__u32 off = arn_refill(c->b, c->r, 0, CLS);

	if (off)
		mark(c, off, CLS);
	return off;
}

static __u32 pages_of(struct core *c, enum arn_page_kind kind)
{
	__u32 pg, n = 0;

	for (pg = c->r->first_page; pg < c->r->first_page + c->r->npages; pg++)
		n += arn_desc(c->b, c->r, pg)->kind == kind;
	return n;
}

static void shuffle(__u32 *a, __u32 n, __u64 *seed)
{
	__u32 k, x;

	for (; n > 1; n--) {
		k = rnd(seed) % n;
		x = a[k];
		a[k] = a[n - 1];
		a[n - 1] = x;
	}
}

/* Everything that caches keep goes back: depot, slabs, pages of magazines. */
static void give_back(struct core *c)
{
	arn_cache_drain(c->b, c->r, 0, CLS);
	arn_depot_drain(c->b, c->r, CLS);
	settle(c);
	arn_class_retire(c->b, c->r, 0, CLS);
	arn_mags_retire(c->b, c->r, 0, CLS);
	settle(c);
}

/* With an empty magazine a refill fetches a magazine's worth in one visit: one is returned, the rest cached. */
static void a_refill_fills_a_magazine(void **state)
{
	struct core *c = core_new(32 * MIB);
	struct arn_stats s;

	core_grow(c, 1);
	assert_true(arn_more_mags(c->b, c->r, 0, CLS));
	assert_int_equal(refill(c), 0);
	assert_true(arn_more_slabs(c->b, c->r, 0, CLS));
	assert_int_not_equal(refill(c), 0);
	s = stats(&c->heap);
	assert_int_equal(s.cls[CLS].live, 1);
	assert_int_equal(s.cls[CLS].in_depot + 1,
			 c->r->cls[CLS].cap < c->r->cls[CLS].nobj ? c->r->cls[CLS].cap : c->r->cls[CLS].nobj);
	core_end(c);
}

/* A refill visits as many slabs as it takes to fill the magazine. */
static void a_refill_visits_several_slabs(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 i, slabs = c->r->cls[CLS].cap / c->r->cls[CLS].nobj + 2;
	struct arn_stats s;

	core_grow(c, 1);
	for (i = 0; i < slabs; i++)
		assert_true(arn_more_slabs(c->b, c->r, 0, CLS));
	assert_true(arn_more_mags(c->b, c->r, 0, CLS));
	assert_int_not_equal(refill(c), 0);
	s = stats(&c->heap);
	assert_int_equal(s.cls[CLS].in_depot, c->r->cls[CLS].cap - 1);
	core_end(c);
}

/* Without a magazine it takes just the one object; when the slabs are spent, none. */
static void a_refill_without_magazine_takes_one(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 i;

	core_grow(c, 1);
	assert_true(arn_more_slabs(c->b, c->r, 0, CLS));
	for (i = 0; i < c->r->cls[CLS].nobj; i++) {
		assert_int_not_equal(refill(c), 0);
		assert_int_equal(stats(&c->heap).cls[CLS].live, i + 1);
	}
	assert_int_equal(refill(c), 0);
	core_end(c);
}

/* Whoever cannot have the lock gets nothing, counted, and the magazine it had fetched is back. */
static void no_lock_no_refill(void **state)
{
	struct core *c = core_new(32 * MIB);

	core_grow(c, 1);
	arn_more_slabs(c->b, c->r, 0, CLS);
	arn_more_mags(c->b, c->r, 0, CLS);
	assert_true(arn_lock(c->r, 0));
	assert_int_equal(refill(c), 0);
	assert_false(arn_more_mags(c->b, c->r, 0, CLS));
	assert_false(arn_more_slabs(c->b, c->r, 0, CLS));
	assert_int_equal(arn_large_alloc(c->b, c->r, 0, 1, 1), 0);
	assert_int_equal(arn_class_retire(c->b, c->r, 0, CLS), 0);
	assert_int_equal(arn_mags_retire(c->b, c->r, 0, CLS), 0);
	arn_unlock(c->r);
	assert_int_equal(c->r->fail[ARN_FAIL_LOCK], 6);
	assert_int_not_equal(refill(c), 0);
	core_end(c);
}

/* Caches, depot, slabs and magazines all go back to one run of pages. */
static void everything_goes_back(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 i, off[500];
	__u64 seed = 3;

	core_grow(c, 1);
	c->r->slots_used = 1;
	for (i = 0; i < 500; i++) {
		if (!arn_depot_has(empty(c)))
			arn_more_mags(c->b, c->r, 0, CLS);
		off[i] = arn_depot_one(c->b, c->r, 0, CLS);
		while (!off[i] && !(off[i] = refill(c)))
			assert_true(arn_more_slabs(c->b, c->r, 0, CLS));
		mark(c, off[i], CLS);
	}
	sound(&c->heap);
	shuffle(off, 500, &seed);
	for (i = 0; i < 500; i++) {
		if (!arn_cache_push(c->b, c->r, arn_cache(c->b, 0, CLS), CLS, off[i], arn_state(c->b, c->r, off[i]))) {
			unmark(c, off[i]);
			arn_slab_put(c->b, c->r, off[i]);
		}
	}
	sound(&c->heap);
	give_back(c);
	assert_int_equal(c->r->pages_free, 256);
	assert_int_equal(c->r->depot[CLS].nslabs, 0);
	assert_int_equal(c->r->depot[CLS].nmags, 0);
	core_end(c);
}

/*
 * A page of magazines goes back only when all eight lie in the depot, however often one asked before
 * while some were elsewhere, and whichever those were.
 */
static void magazine_pages_go_back_whole(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 away[8], split, i;

	core_grow(c, 1);
	for (split = 1; split < 8; split++) {
		assert_true(arn_more_mags(c->b, c->r, 0, CLS));
		for (i = 0; i < split; i++)
			away[i] = arn_depot_pop(c->b, empty(c));
		assert_int_equal(arn_mags_retire(c->b, c->r, 0, CLS), 0);
		/* those that were there are gone, the others are back: again not all */
		for (i = split; i < 8; i++)
			away[i] = arn_depot_pop(c->b, empty(c));
		for (i = 0; i < split; i++)
			arn_depot_give(c->b, c->r, CLS, away[i], 0);
		assert_int_equal(arn_mags_retire(c->b, c->r, 0, CLS), 0);
		assert_int_equal(pages_of(c, ARN_PG_MAGS), 1);
		for (i = split; i < 8; i++)
			arn_depot_give(c->b, c->r, CLS, away[i], 0);
		sound(&c->heap);
		assert_int_equal(arn_mags_retire(c->b, c->r, 0, CLS), 1);
		settle(c);
		assert_int_equal(c->r->pages_free, 256);
	}
	core_end(c);
}

/* Of several pages, mixed in the depot, exactly the whole ones go. */
static void whole_magazine_pages_are_told_from_others(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 m[32], i, keep;
	__u64 seed = 11;

	core_grow(c, 1);
	for (i = 0; i < 4; i++)
		assert_true(arn_more_mags(c->b, c->r, 0, CLS));
	for (i = 0; i < 32; i++)
		m[i] = arn_depot_pop(c->b, empty(c));
	shuffle(m, 32, &seed);
	keep = m[31];
	for (i = 0; i < 31; i++)
		arn_depot_give(c->b, c->r, CLS, m[i], 0);
	assert_int_equal(arn_mags_retire(c->b, c->r, 0, CLS), 3);
	assert_int_equal(c->r->depot[CLS].nmags, 8);
	arn_depot_give(c->b, c->r, CLS, keep, 0);
	settle(c);
	sound(&c->heap);
	assert_int_equal(arn_mags_retire(c->b, c->r, 0, CLS), 1);
	settle(c);
	core_end(c);
}

/* The kinds of pointers that are no allocated object are told apart. */
static void why_a_pointer_is_refused(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 size = c->r->cls[CLS].size, nobj = c->r->cls[CLS].nobj, slab, large, mags, end, st, why;
	__u64 hi = (__u64)(unsigned long)c->b;

	core_grow(c, 2);
	arn_more_slabs(c->b, c->r, 0, CLS);
	slab = c->r->depot[CLS].partial << ARN_PAGE_SHIFT;
	large = arn_large_alloc(c->b, c->r, 0, 20, 1);
	arn_more_mags(c->b, c->r, 0, CLS);
	mags = idx_of(*empty(c));
	end = (arn_first_chunk(c->r) + 2) << ARN_CHUNK_SHIFT;
#define is(ptr, reason)                                                                                                \
	do {                                                                                                           \
		arn_object(c->b, c->r, (ptr), &st, &why);                                                              \
		assert_int_equal(st, 0);                                                                               \
		if (why == ARN_FAIL_COUNT)                                                                             \
			why = arn_why_not(c->b, c->r, (__u32)(ptr));                                                   \
		assert_int_equal(why, ARN_FAIL_##reason);                                                              \
	} while (0)
	is(slab, DOUBLE); /* free, in its slab */
	is(hi + slab, DOUBLE);
	is(slab + size, DOUBLE);
	is(slab + 16, INTERIOR);
	is(slab + 8, MISALIGNED);
	is(slab + 1, MISALIGNED);
	is(hi + (4ULL << 30) + slab, FOREIGN);
	is(slab | 1ULL << 63, FOREIGN);
	is(slab | 1ULL << 32, FOREIGN);
	if (nobj * size + 16 <= (__u32)c->r->cls[CLS].npages * ARN_PAGE_SIZE)
		is(slab + nobj * size, FOREIGN); /* the slab's tail */
	is(large + 16, INTERIOR);
	is(large + ARN_PAGE_SIZE, INTERIOR);
	is(large + 20 * ARN_PAGE_SIZE - 16, INTERIOR);
	is(mags, FOREIGN);
	is(mags + 16, FOREIGN);
	is(end - ARN_PAGE_SIZE, DOUBLE); /* in a free run: its last page */
	is(end - 3 * ARN_PAGE_SIZE, DOUBLE); /* its middle */
	is(end, FOREIGN); /* not mapped */
	is(0, FOREIGN);
	is(16, FOREIGN);
	is(hi, FOREIGN);
	is(ARN_ROOT_OFF, FOREIGN);
	is(ARN_SLOTS_OFF + 4096, FOREIGN);
	is((c->r->first_page << ARN_PAGE_SHIFT) - 16, FOREIGN);
	is(0xfffffff0u, FOREIGN);
	is(~0ULL, FOREIGN);
	/* the large object, given up but not yet merged */
	*arn_state(c->b, c->r, large) = 0;
	arn_large_free(c->b, c->r, large);
	is(large, DOUBLE);
	settle(c);
	is(large, DOUBLE);
	is(large + ARN_PAGE_SIZE, DOUBLE);
	core_end(c);
}

/* A state byte that says "large" where the page says something else is refused as a contradiction. */
static void a_wrong_large_state_is_refused(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 slab;

	core_grow(c, 1);
	arn_more_slabs(c->b, c->r, 0, CLS);
	slab = c->r->depot[CLS].partial << ARN_PAGE_SHIFT;
	assert_int_equal(arn_large_free(c->b, c->r, slab), -ARN_EINVAL);
	assert_int_equal(c->r->fail[ARN_FAIL_CORRUPT], 1);
	core_end(c);
}

/* A large object is aligned to a page, a power of two to itself, more if asked. */
static void alignment_of_large_objects(void **state)
{
	assert_int_equal(arn_large_align(40000, 0), 1);
	assert_int_equal(arn_large_align(65536, 0), 16);
	assert_int_equal(arn_large_align(65536, 16), 16);
	assert_int_equal(arn_large_align(65536, 1 << 20), 256);
	assert_int_equal(arn_large_align(65537, 0), 1);
	assert_int_equal(arn_large_align(1, 65536), 16);
	assert_int_equal(arn_large_align(1, 4096), 1);
	assert_int_equal(arn_large_align(2ULL << 30, 0), 1 << 19);
}

unit_main(t(a_refill_fills_a_magazine), t(a_refill_visits_several_slabs), t(a_refill_without_magazine_takes_one),
	  t(no_lock_no_refill), t(everything_goes_back), t(magazine_pages_go_back_whole),
	  t(whole_magazine_pages_are_told_from_others), t(why_a_pointer_is_refused), t(a_wrong_large_state_is_refused),
	  t(alignment_of_large_objects))
