// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * free_test.c - frees of what is no allocated object: refused, counted by kind, and harmless.
 *
 * After each, the walkers look at the heap and the objects beside are as they were.  Two threads that
 * free one object in the same instant are told apart only in checked heaps (checked_test.c).
 */
#include "unit.h"

static struct arn_heap *h;
static char *small[3], *large[2];

static int setup(void **state)
{
	int i;

	h = heap_new(64 * MIB);
	for (i = 0; i < 3; i++) {
		small[i] = arn_malloc(h, 320);
		paint(small[i], 320, i);
	}
	for (i = 0; i < 2; i++) {
		large[i] = arn_malloc(h, 200000);
		paint(large[i], 200000, 10 + i);
	}
	return 0;
}

static int teardown(void **state)
{
	int i;

	for (i = 0; i < 3; i++) {
		assert_true(!small[i] || painted(small[i], 320, 320, i));
		assert_int_equal(arn_free(h, small[i]), 0);
	}
	for (i = 0; i < 2; i++) {
		assert_true(!large[i] || painted(large[i], 200000, 200000, 10 + i));
		assert_int_equal(arn_free(h, large[i]), 0);
	}
	assert_int_equal(live(h), 0);
	heap_end(h);
	return 0;
}

/* A free of ptr is refused for this reason and no other, remembers the pointer, and changes nothing. */
static void refused_at(void *ptr, enum arn_fail why, int line)
{
	struct arn_stats before = stats(h), after;
	int err;

	err = arn_free(h, ptr);
	after = stats(h);
	if (err != -EINVAL || after.fail[why] != before.fail[why] + 1) {
		print_error("line %d: free of %p: %d, %s\n", line, ptr, err, arn_last_error());
		fail();
	}
	assert_int_equal(errno, EINVAL);
	assert_int_equal(after.bad_ptr, (__u64)ptr);
	assert_int_equal(live_objects(&after), live_objects(&before));
	after.fail[why]--;
	after.bad_ptr = before.bad_ptr;
	assert_memory_equal(&after, &before, sizeof(after));
	sound(h);
}
#define refused(ptr, why) refused_at(ptr, ARN_FAIL_##why, __LINE__)

/* NULL is nothing. */
static void free_of_null(void **state)
{
	assert_int_equal(arn_free(h, NULL), 0);
	assert_int_equal(failures(h), 0);
}

/* Pointers that were never the heap's: stack, libc's heap, other heaps, small numbers, all ones. */
static void foreign(void **state)
{
	struct arn_heap *other = heap_new(32 * MIB);
	void *theirs = arn_malloc(other, 64), *libc = malloc(64);
	char on_stack[64];
	static char in_data[64];

	refused(on_stack, FOREIGN);
	refused(in_data, FOREIGN);
	refused(libc, FOREIGN);
	refused(theirs, FOREIGN);
	refused((void *)1, FOREIGN);
	refused((void *)16, FOREIGN);
	refused((void *)4096, FOREIGN);
	refused((void *)~0ULL, FOREIGN);
	refused((void *)~15ULL, FOREIGN);
	refused((void *)(1ULL << 63), FOREIGN);
	free(libc);
	assert_int_equal(arn_free(other, theirs), 0);
	heap_end(other);
}

/* Addresses around the heap: below its base, in its root, tables and slots, behind its end. */
static void around_the_heap(void **state)
{
	char *base = arn_base_address(h);

	refused(base - 16, FOREIGN);
	refused(base, FOREIGN);
	refused(base + 16, FOREIGN);
	refused(base + ARN_ROOT_OFF, FOREIGN);
	refused(base + ARN_SLOTS_OFF, FOREIGN);
	refused(base + 18 * MIB, FOREIGN);
	refused(base + 64 * MIB - 16, FOREIGN); /* a chunk that is not mapped yet */
	refused(base + 64 * MIB, FOREIGN);
	refused(base + 4096 * MIB - 16, FOREIGN);
	refused(base + 4096 * MIB, FOREIGN);
}

/* The right lower half under a wrong upper one. */
static void wrong_upper_half(void **state)
{
	refused(small[0] + (4ULL << 30), FOREIGN);
	refused(small[0] - (4ULL << 30), FOREIGN);
	refused((char *)((__u64)small[0] ^ 1ULL << 63), FOREIGN);
	refused((char *)((__u32)(__u64)small[0] | 1ULL << 32), FOREIGN);
}

/* A 32-bit offset is a name of the object, too. */
static void upper_half_of_zero(void **state)
{
	assert_int_equal(arn_free(h, (void *)(__u64)(__u32)(__u64)small[0]), 0);
	refused(small[0], DOUBLE);
	small[0] = NULL;
}

static void misaligned(void **state)
{
	int i;

	for (i = 1; i < 16; i++) {
		refused(small[1] + i, MISALIGNED);
		refused(large[1] + i, MISALIGNED);
	}
}

/* Every granule inside of an object, first page, last page. */
static void interior(void **state)
{
	size_t at;

	for (at = 16; at < 320; at += 16)
		refused(small[1] + at, INTERIOR);
	for (at = 16; at < 200000; at += at < 4200 ? 16 : 6000 * 16)
		refused(large[0] + at, INTERIOR);
	refused(large[0] + 200704 - 16, INTERIOR);
}

/* The second free of a small object, at once, and after others were freed. */
static void double_free_of_small_ones(void **state)
{
	assert_int_equal(arn_free(h, small[1]), 0);
	refused(small[1], DOUBLE);
	assert_int_equal(arn_free(h, small[0]), 0);
	refused(small[1], DOUBLE);
	refused(small[0], DOUBLE);
	small[0] = small[1] = NULL;
	/* also when it lies in the slab again */
	arn_trim(h);
	refused(small[2] + 320, DOUBLE);
}

/* The same for large ones, also when the run was merged, and inside of what was one. */
static void double_free_of_large_ones(void **state)
{
	char *p = large[0];

	assert_int_equal(arn_free(h, p), 0);
	large[0] = NULL;
	refused(p, DOUBLE);
	refused(p + 4096, DOUBLE);
	refused(p, DOUBLE);
}

/* A freed object's address that was given out again is an object: no library can tell. */
static void a_reused_address_is_an_object(void **state)
{
	char *p = small[2];

	assert_int_equal(arn_free(h, p), 0);
	small[2] = arn_malloc(h, 320);
	assert_ptr_equal(small[2], p);
	paint(small[2], 320, 2);
}

/* A page of a chunk that was given back is foreign again. */
static void after_the_chunk_has_gone(void **state)
{
	char *p = arn_malloc(h, 20 * MIB), *last = p + 20 * MIB - 4096;

	assert_int_equal(arn_free(h, p), 0);
	assert_true(arn_trim(h) > 0);
	refused(last, FOREIGN);
}

/* Hundreds of refused frees at random among the valid ones: every object is there to the end. */
static void a_storm_of_wrong_pointers(void **state)
{
	enum { N = 400 };
	struct {
		char *p;
		size_t size;
	} mine[N];
	char *base = arn_base_address(h), *p;
	__u64 seed = 99, wrong = 0, refused_all = failures(h);
	__u32 i, k;
	struct arn_stats s;

	for (i = 0; i < N; i++) {
		mine[i].size = rnd(&seed) % (rnd(&seed) % 4 ? 2000 : 60000);
		mine[i].p = arn_malloc(h, mine[i].size);
		paint(mine[i].p, mine[i].size, i);
	}
	for (i = 0; i < 20000 / ARN_TEST_SCALE; i++) {
		k = rnd(&seed) % N;
		p = rnd(&seed) & 1 ? base + rnd(&seed) % (64 * MIB) : mine[k].p + 1 + rnd(&seed) % (mine[k].size + 1);
		if (arn_usable_size(h, p))
			continue;
		wrong++;
		assert_int_equal(arn_free(h, p), p ? -EINVAL : 0);
	}
	s = stats(h);
	assert_int_equal(failures(h), refused_all + wrong);
	assert_int_equal(live_objects(&s), N + 5);
	sound(h);
	for (i = 0; i < N; i++) {
		assert_true(painted(mine[i].p, mine[i].size, mine[i].size, i));
		assert_int_equal(arn_free(h, mine[i].p), 0);
	}
}

#define ts(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
unit_main(ts(free_of_null), ts(foreign), ts(around_the_heap), ts(wrong_upper_half), ts(upper_half_of_zero),
	  ts(misaligned), ts(interior), ts(double_free_of_small_ones), ts(double_free_of_large_ones),
	  ts(a_reused_address_is_an_object), ts(after_the_chunk_has_gone), ts(a_storm_of_wrong_pointers))
