// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * pages_test.c - page runs: bins, splitting, coalescing, alignment, and the lock around them.
 *
 * Runs are taken and dropped as large objects (the walkers want an owner for every page).
 * Shows that no page is lost or in two runs; cannot show BPF's bounded loops.
 */
#include "port.h"

static __u32 relaxed; /* turns of spin loops */

static inline void counted_relax(__u32 i)
{
	__atomic_fetch_add(&relaxed, 1, __ATOMIC_RELAXED);
	if (i == 100000000) /* nobody is going to let it go */
		__builtin_trap();
	arn_relax(i);
}
#define arn_relax counted_relax

#include <pthread.h>
#include "harness.h"

static __u32 take(struct core *c, __u32 n, __u32 align)
{
	return arn_large_alloc(c->b, c->r, 0, n, align) >> ARN_PAGE_SHIFT;
}

static void drop(struct core *c, __u32 pg)
{
	*arn_state(c->b, c->r, pg << ARN_PAGE_SHIFT) = 0;
	assert_int_equal(arn_large_free(c->b, c->r, pg << ARN_PAGE_SHIFT), 0);
	settle(c);
}

static __u32 runs(struct core *c)
{
	__u32 bin, pg, n = 0;

	for (bin = 0; bin < ARN_BINS; bin++)
		for (pg = c->r->bins[bin]; pg; pg = arn_desc(c->b, c->r, pg)->next)
			n++;
	return n;
}

/* Bins are in order of length, and the largest run there can be has one. */
static void bins_partition_lengths(void **state)
{
	__u32 n, bin, last = 0, least[ARN_BINS + 1] = {};

	for (n = 1; n <= ARN_MAX_CHUNKS * ARN_CHUNK_PAGES; n++) {
		bin = arn_bin_of(NULL, n);
		assert_true(bin < ARN_BINS && (bin == last || bin == last + 1));
		if (bin != last)
			least[bin] = n;
		last = bin;
	}
	/* arn_bin_ceil(n) is the first whose shortest run has n pages. */
	for (n = 1; n <= ARN_MAX_CHUNKS * ARN_CHUNK_PAGES; n++) {
		bin = arn_bin_ceil(NULL, n);
		assert_true(bin <= last + 1);
		assert_true(bin > last || least[bin] >= n);
		assert_true(least[bin - 1] < n);
	}
}

/* The search for a bin that holds a run finds the first at or after any bin, in both words of the map. */
static void bin_search_finds_the_first(void **state)
{
	struct arn_root r = {};
	__u32 set, from;

	for (from = 0; from <= ARN_BINS; from++)
		assert_int_equal(arn_bin_next(&r, from), ARN_BINS);
	for (set = 0; set < ARN_BINS; set++) {
		arn_bin_mark(&r, set, 1);
		for (from = 0; from < ARN_BINS; from++)
			assert_int_equal(arn_bin_next(&r, from), from <= set ? set : ARN_BINS);
		arn_bin_mark(&r, set, 0);
		assert_true(!r.bin_map[0] && !r.bin_map[1]);
	}
}

/* A taken run is split off; what is left stays one run. */
static void take_splits(void **state)
{
	struct core *c = core_new(32 * MIB);

	core_grow(c, 1);
	assert_int_equal(c->r->pages_free, 256);
	assert_int_not_equal(take(c, 100, 1), 0);
	assert_int_equal(c->r->pages_free, 156);
	assert_int_equal(runs(c), 1);
	core_end(c);
}

/* A dropped run merges with the run before, behind, both or none: the free runs never touch. */
static void drop_merges_with_its_neighbours(void **state)
{
	static const struct {
		const char *order; /* in which the runs a b c d are dropped */
		__u32 runs[4]; /* free runs after each, e being in use behind them */
	} cases[] = {
		{ "abcd", { 1, 1, 1, 1 } }, { "dcba", { 1, 1, 1, 1 } }, { "acbd", { 1, 2, 1, 1 } },
		{ "bdca", { 1, 2, 1, 1 } }, { "adbc", { 1, 2, 2, 1 } }, { "cabd", { 1, 2, 1, 1 } },
	};
	struct core *c = core_new(32 * MIB);
	__u32 i, k, pg[5];

	core_grow(c, 1);
	for (i = 0; i < NELEMS(cases); i++) {
		for (k = 0; k < 4; k++)
			pg[k] = take(c, 10 + k, 1);
		pg[4] = take(c, (__u32)c->r->pages_free, 1);
		assert_int_not_equal(pg[4], 0);
		assert_int_equal(runs(c), 0);
		for (k = 0; k < 4; k++) {
			drop(c, pg[cases[i].order[k] - 'a']);
			assert_int_equal(runs(c), cases[i].runs[k]);
			sound(&c->heap);
		}
		drop(c, pg[4]);
		assert_int_equal(runs(c), 1);
		assert_int_equal(c->r->pages_free, 256);
	}
	core_end(c);
}

/* Neighbouring chunks are one run, whichever came first, and an object may lie across them. */
static void runs_coalesce_across_chunks(void **state)
{
	struct core *c = core_new(40 * MIB);
	__u32 first = arn_first_chunk(c->r), pg;

	assert_int_equal(arn_chunk_add(c->b, c->r, first + 2, ARN_CHUNK_NONE), 0);
	assert_int_equal(arn_chunk_add(c->b, c->r, first, ARN_CHUNK_NONE), 0);
	settle(c);
	assert_int_equal(runs(c), 2);
	assert_int_equal(take(c, 300, 1), 0);
	assert_int_equal(arn_chunk_add(c->b, c->r, first + 1, ARN_CHUNK_NONE), 0);
	settle(c);
	assert_int_equal(runs(c), 1);
	pg = take(c, 700, 1);
	assert_int_not_equal(pg, 0);
	sound(&c->heap);
	drop(c, pg);
	assert_int_equal(c->r->pages_free, 768);
	core_end(c);
}

/* Any power-of-two alignment is kept, and what is cut off in front and behind is not lost. */
static void aligned_runs(void **state)
{
	struct core *c = core_new(128 * MIB);
	__u32 align, odd, pg;

	core_grow(c, 64);
	odd = take(c, 3, 1);
	for (align = 1; align <= 4096; align *= 2) {
		pg = take(c, align > 2048 ? 100 : align + 1, align);
		assert_int_not_equal(pg, 0);
		assert_int_equal(pg & (align - 1), 0);
		sound(&c->heap);
		drop(c, pg);
	}
	drop(c, odd);
	assert_int_equal(runs(c), 1);
	core_end(c);
}

/* Of many runs just one, the last in its bin, holds the request at its alignment: it is found. */
static void the_only_fitting_run_is_found(void **state)
{
	struct core *c = core_new(64 * MIB);
	__u32 base = arn_first_chunk(c->r) * ARN_CHUNK_PAGES, pages = 8 * ARN_CHUNK_PAGES, i, k;

	core_grow(c, 8);
	for (i = 0; i < pages; i++)
		assert_in_range(take(c, 1, 1), base, base + pages - 1);
	/* Holes of 11 pages: the first to be made begins at a multiple of 16, the others 4 behind one. */
	for (i = 0; i < pages; i += 32)
		for (k = 0; k < 11; k++)
			drop(c, base + i + k + (i ? 4 : 0));
	assert_int_equal(runs(c), pages / 32);
	assert_int_equal(take(c, 11, 16), base);
	assert_int_equal(take(c, 11, 16), 0);
	assert_int_not_equal(take(c, 11, 4), 0);
	core_end(c);
}

/* What does not fit is refused, and nothing has changed. */
static void no_fit_changes_nothing(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 pg;

	core_grow(c, 2);
	assert_int_equal(take(c, 513, 1), 0);
	assert_int_equal(take(c, 1u << 20, 1), 0);
	assert_int_equal(take(c, ~0u, 1), 0);
	assert_int_equal(c->r->pages_free, 512);
	sound(&c->heap);
	pg = take(c, 512, 1);
	assert_int_not_equal(pg, 0);
	assert_int_equal(take(c, 1, 1), 0);
	drop(c, pg);
	core_end(c);
}

/*
 * Takes and drops at random against a map of owners: a page is never in two runs, everything is found
 * again, and when all is dropped there is one run.
 */
static void random_runs_against_a_model(void **state)
{
	enum { HELD = 300 };
	struct core *c = core_new(64 * MIB);
	static __u8 owned[1u << 20];
	__u32 held[HELD] = {}, len[HELD], i, k, n, align, turns = 20000 / ARN_TEST_SCALE;
	__u64 seed = 7, mine = 0;

	memset(owned, 0, sizeof(owned));
	core_grow(c, 16);
	for (i = 0; i < turns; i++) {
		k = rnd(&seed) % HELD;
		if (held[k]) {
			drop(c, held[k]);
			memset(owned + held[k], 0, len[k]);
			mine -= len[k];
			held[k] = 0;
		} else {
			n = 1 + rnd(&seed) % (rnd(&seed) % 8 ? 12 : 400);
			align = rnd(&seed) % 4 ? 1 : 1u << rnd(&seed) % 9;
			held[k] = take(c, n, align);
			if (held[k]) {
				len[k] = n;
				mine += n;
				assert_int_equal(held[k] % align, 0);
				assert_null(memchr(owned + held[k], 1, n));
				memset(owned + held[k], 1, n);
			}
		}
		assert_int_equal(c->r->pages_free + mine, 16 * 256);
		if (i % 500 == 0)
			sound(&c->heap);
	}
	for (k = 0; k < HELD; k++)
		if (held[k])
			drop(c, held[k]);
	assert_int_equal(runs(c), 1);
	core_end(c);
}

/* A list head that is no free run is refused and counted, and nothing is handed out. */
static void corrupt_list_head_is_refused(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 pg;

	core_grow(c, 1);
	pg = c->r->bins[arn_bin_of(c->r, 256)];
	arn_desc(c->b, c->r, pg)->kind = ARN_PG_SLAB;
	assert_int_equal(take(c, 1, 1), 0);
	assert_int_equal(c->r->fail[ARN_FAIL_CORRUPT], 1);
	core_drop(c);
}

/* A run that is not the heap's is refused. */
static void foreign_runs_are_refused(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 end = c->r->first_page + c->r->npages;

	core_grow(c, 1);
	assert_int_equal(arn_run_free(c->b, c->r, c->r->first_page, 0), -ARN_EINVAL);
	assert_int_equal(arn_run_free(c->b, c->r, c->r->first_page - 1, 1), -ARN_EINVAL);
	assert_int_equal(arn_run_free(c->b, c->r, end - 1, 2), -ARN_EINVAL);
	core_end(c);
}

/* Who comes on top of the lock's holder (a signal handler) is told no at once, and that is counted. */
static void own_lock_is_not_waited_for(void **state)
{
	struct core *c = core_new(32 * MIB);

	assert_true(arn_lock(c->r, 3));
	assert_true(arn_lock_below(c->r, 3));
	assert_false(arn_lock_below(c->r, 2));
	relaxed = 0;
	assert_false(arn_lock(c->r, 3));
	assert_int_equal(relaxed, 0);
	assert_int_equal(c->r->fail[ARN_FAIL_LOCK], 1);
	arn_unlock(c->r);
	assert_true(arn_lock(c->r, 3));
	arn_unlock(c->r);
	core_end(c);
}

struct contest {
	struct arn_root *r;
	__u32 slot, turns;
	__u64 *sum; /* not atomic: the lock protects it */
};

static void *contestant(void *arg)
{
	struct contest *me = arg;
	__u32 i;

	for (i = 0; i < me->turns; i++) {
		insist(arn_lock(me->r, me->slot));
		++*me->sum;
		arn_unlock(me->r);
	}
	return NULL;
}

/* The lock excludes, threads without a slot among them, and a native heap's wait ends with the lock. */
static void lock_excludes(void **state)
{
	struct core *c = core_new(32 * MIB);
	__u32 i, turns = 200000 / ARN_TEST_SCALE;
	struct contest me[4];
	pthread_t th[4];
	__u64 sum = 0;

	for (i = 0; i < 4; i++) {
		me[i] = (struct contest){ c->r, i < 2 ? i : ARN_NO_SLOT, turns, &sum };
		assert_int_equal(pthread_create(&th[i], NULL, contestant, &me[i]), 0);
	}
	for (i = 0; i < 4; i++)
		pthread_join(th[i], NULL);
	assert_int_equal(sum, 4ull * turns);
	core_end(c);
}

unit_main(t(bins_partition_lengths), t(bin_search_finds_the_first), t(take_splits), t(drop_merges_with_its_neighbours),
	  t(runs_coalesce_across_chunks), t(aligned_runs), t(the_only_fitting_run_is_found), t(no_fit_changes_nothing),
	  t(random_runs_against_a_model), t(corrupt_list_head_is_refused), t(foreign_runs_are_refused),
	  t(own_lock_is_not_waited_for), t(lock_excludes))
