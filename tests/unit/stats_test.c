// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * stats_test.c - statistics that balance in every state, and count what was done.
 *
 * A heap in use may be off by what moves (stats.h); that reading one is safe is in thread_test.c.
 */
#include <unistd.h>
#include "unit.h"

/* Live counts per class are what was allocated, at random, over all classes and large objects. */
static void live_is_what_was_allocated(void **state)
{
	enum { N = 3000 };
	struct arn_heap *h = heap_new(256 * MIB);
	static void *p[N];
	__u64 seed = 4, mine[ARN_CLASSES] = {}, large = 0, have;
	static __u8 cls[N];
	struct arn_stats s;
	__u32 i, k, c;

	s = stats(h);
	for (i = 0; i < 40000 / ARN_TEST_SCALE; i++) {
		k = rnd(&seed) % N;
		if (p[k]) {
			assert_int_equal(arn_free(h, p[k]), 0);
			if (cls[k] == ARN_CLASSES)
				large--;
			else
				mine[cls[k]]--;
			p[k] = NULL;
		} else {
			p[k] = arn_malloc(h, rnd(&seed) % (1u << (4 + rnd(&seed) % 13)));
			assert_non_null(p[k]);
			have = arn_usable_size(h, p[k]);
			for (c = 0; c < ARN_CLASSES && s.cls[c].size != have; c++)
				;
			cls[k] = c;
			if (c == ARN_CLASSES)
				large++;
			else
				mine[c]++;
		}
		if (i % 1000 == 0) {
			s = stats(h);
			for (c = 0; c < ARN_CLASSES; c++)
				assert_int_equal(s.cls[c].live, mine[c]);
			assert_int_equal(s.large, large);
			sound(h);
		}
	}
	for (k = 0; k < N; k++)
		arn_free(h, p[k]);
	assert_int_equal(live(h), 0);
	heap_end(h);
}

/* A fresh heap has nothing but its tables. */
static void a_fresh_heap(void **state)
{
	struct arn_heap *h = heap_new(64 * MIB);
	struct arn_stats s = stats(h);
	int i;

	assert_int_equal(s.arena_bytes, 64 * MIB);
	assert_int_equal(s.pages_mapped, 0);
	assert_int_equal(s.slots, 64);
	assert_int_equal(s.slots_cpu, 0);
	assert_int_equal(s.slots_claimed, 0);
	assert_in_range(s.meta_bytes, 1, 128 * KIB);
	for (i = 0; i < ARN_CLASSES; i++)
		assert_int_equal(s.cls[i].objects, 0);
	for (i = 0; i < ARN_FAIL_COUNT; i++)
		assert_int_equal(s.fail[i], 0);
	heap_end(h);
}

/* Pages are told apart by what they are for. */
static void pages_by_kind(void **state)
{
	struct arn_heap *h = heap_new(64 * MIB);
	void *p = arn_malloc(h, 100000), *q = arn_malloc(h, 64);
	struct arn_stats s = stats(h);

	assert_int_equal(s.pages_large, 25);
	assert_int_equal(s.large, 1);
	assert_in_range(s.pages_slab, 1, 16);
	assert_int_equal(s.pages_mags, 1);
	assert_int_equal(s.pages_mapped, 256);
	assert_int_equal(s.cls[3].live, 1);
	assert_int_equal(s.cls[3].magazines, 8);
	assert_int_equal(s.slots_claimed, 1);
	arn_free(h, p);
	arn_free(h, q);
	s = stats(h);
	assert_int_equal(s.pages_large, 0);
	assert_int_equal(s.cls[3].live, 0);
	heap_end(h);
}

/* After frees and a trim everything is back at the starting figure, magazines too. */
static void trim_returns_to_the_start(void **state)
{
	enum { N = 20000 };
	struct arn_heap *h = heap_new(128 * MIB);
	static void *p[N];
	struct arn_stats before = stats(h), after;
	__u64 seed = 8;
	__u32 i, turn;

	for (turn = 0; turn < 3; turn++) {
		for (i = 0; i < N; i++)
			p[i] = arn_malloc(h, rnd(&seed) % 4000);
		for (i = 0; i < N; i++)
			assert_int_equal(arn_free(h, p[i]), 0);
		after = stats(h);
		assert_int_equal(arn_trim(h), after.pages_mapped * ARN_PAGE_SIZE);
		after = stats(h);
		after.slots_claimed = before.slots_claimed; /* this thread's */
		if (sysconf(_SC_PAGESIZE) > 16384) { /* descriptors of several chunks share a page, which stays */
			assert_true(after.meta_bytes <= 128 * MIB / 64 + (__u64)sysconf(_SC_PAGESIZE));
			after.meta_bytes = before.meta_bytes;
		}
		assert_memory_equal(&after, &before, sizeof(after));
		sound(h);
		assert_int_equal(arn_trim(h), 0);
	}
	heap_end(h);
}

/* A trim while objects are alive gives back what it can and leaves them alone. */
static void trim_leaves_objects_alone(void **state)
{
	enum { N = 5000 };
	struct arn_heap *h = heap_new(128 * MIB);
	static void *p[N];
	__u32 i;

	for (i = 0; i < N; i++)
		paint(p[i] = arn_malloc(h, 1000), 1000, i);
	for (i = 0; i < N; i++)
		if (i % 50)
			arn_free(h, p[i]);
	arn_trim(h);
	sound(h);
	assert_int_equal(live(h), N / 50);
	for (i = 0; i < N; i += 50) {
		assert_true(painted(p[i], 1000, 1000, i));
		assert_int_equal(arn_free(h, p[i]), 0);
	}
	assert_true(arn_trim(h) > 0);
	assert_int_equal(stats(h).pages_mapped, 0);
	heap_end(h);
}

/* A reserve maps so many bytes in free runs, no more than a chunk too much, and objects come from there. */
static void reserve_maps_ahead(void **state)
{
	struct arn_heap *h = heap_new(64 * MIB);
	struct arn_stats s;

	assert_int_equal(arn_reserve(h, 0), 0);
	assert_int_equal(stats(h).pages_mapped, 0);
	assert_int_equal(arn_reserve(h, 1), 0);
	assert_int_equal(stats(h).pages_mapped, 256);
	assert_int_equal(arn_reserve(h, 10 * MIB), 0);
	s = stats(h);
	assert_in_range(s.pages_free * ARN_PAGE_SIZE, 10 * MIB, 11 * MIB);
	assert_int_equal(arn_reserve(h, 10 * MIB), 0);
	assert_int_equal(stats(h).pages_mapped, s.pages_mapped);
	arn_free(h, arn_malloc(h, 9 * MIB));
	assert_int_equal(stats(h).pages_mapped, s.pages_mapped);
	heap_end(h);
}

/* More than there is room for is E2BIG, whatever the number; the heap works on. */
static void reserve_beyond_the_arena(void **state)
{
	static const __u64 much[] = { 65ULL << 20, 1ULL << 32, 1ULL << 44, 1ULL << 52, ~0ULL - 4096, ~0ULL };
	struct arn_heap *h = heap_new(64 * MIB);
	__u32 i;

	for (i = 0; i < NELEMS(much); i++) {
		assert_int_equal(arn_reserve(h, much[i]), -E2BIG);
		assert_non_null(strstr(arn_last_error(), "reserve"));
	}
	assert_int_equal(arn_free(h, arn_malloc(h, 64)), 0);
	heap_end(h);
}

/* A caller with a smaller or larger struct gets what it has room for, the rest zero. */
static void sizes_of_the_struct(void **state)
{
	struct arn_heap *h = heap_new(64 * MIB);
	struct {
		struct arn_stats s;
		__u64 more[4];
	} big;
	__u64 one[2] = { 7, 7 };

	memset(&big, 0xff, sizeof(big));
	assert_int_equal(arn_get_stats(h, &big.s, sizeof(big)), 0);
	assert_int_equal(big.s.arena_bytes, 64 * MIB);
	assert_int_equal(big.more[0] | big.more[3], 0);
	assert_int_equal(arn_get_stats(h, (struct arn_stats *)one, sizeof(one[0])), 0);
	assert_int_equal(one[0], 64 * MIB);
	assert_int_equal(one[1], 7);
	heap_end(h);
}

unit_main(t(a_fresh_heap), t(live_is_what_was_allocated), t(pages_by_kind), t(trim_returns_to_the_start),
	  t(trim_leaves_objects_alone), t(reserve_maps_ahead), t(reserve_beyond_the_arena), t(sizes_of_the_struct))
