// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * bulk.c - arn_malloc_bulk and arn_free_bulk from BPF: any n, any mixture, and what they say.
 *
 * The array lies in a large object of the heap, where both sides reach it.  One CPU.
 */
#include "rig.h"

#define ARENA (64 * MiB)
#define MOST  65536u

static struct rig *t;
static __u64 *vec;

static int setup(void **state)
{
	t = rig_new(ARENA, RIG_ALL);
	vec = bpf_malloc(t, MOST * 8UL);
	assert_non_null(vec);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(bpf_free(t, vec), 0);
	rig_end(t);
	return 0;
}

/* Of what tests take, only the array is left. */
static int array_left(void **state)
{
	rig_sound(t->heap);
	assert_int_equal(rig_live(t->heap), 1);
	return 0;
}

static __u32 take(__u64 size, __u32 n)
{
	memset(vec, 0xee, MOST * 8UL);
	return (__u32)rig_op(t, OP_MALLOC_BULK, size, (__u64)vec, n);
}

static int give(__u32 n)
{
	return (int)rig_op(t, OP_FREE_BULK, (__u64)vec, 0, n);
}

static int by_value(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

/* n pointers, each an object of its own at least size apart. */
static void assert_distinct(__u32 n, __u64 size)
{
	__u64 *copy = malloc((n + 1) * 8ULL);
	__u32 i;

	assert_non_null(copy);
	memcpy(copy, vec, n * 8ULL);
	qsort(copy, n, 8, by_value);
	for (i = 0; i < n; i++) {
		assert_int_equal(copy[i] >> 32, (__u64)t->base >> 32);
		if (i && copy[i] < copy[i - 1] + size)
			fail_msg("objects at 0x%llx and 0x%llx overlap", copy[i - 1], copy[i]);
	}
	free(copy);
}

static void any_n(void **state)
{
	static const __u32 ns[] = { 1, 2, 7, 64, 119, 120, 121, 240, 241, 1000, MOST };
	size_t i;

	for (i = 0; i < sizeof(ns) / sizeof(*ns); i++) {
		assert_int_equal(take(64, ns[i]), ns[i]);
		assert_distinct(ns[i], 64);
		if (ns[i] < MOST)
			assert_int_equal(vec[ns[i]], 0xeeeeeeeeeeeeeeeeULL);
		assert_int_equal(rig_live(t->heap), ns[i] + 1);
		assert_int_equal(give(ns[i]), ns[i]);
		assert_int_equal(rig_live(t->heap), 1);
	}
}

static void n_of_0_is_0(void **state)
{
	assert_int_equal(take(64, 0), 0);
	assert_int_equal(vec[0], 0xeeeeeeeeeeeeeeeeULL);
	assert_int_equal(give(0), 0);
}

static void every_class(void **state)
{
	__u32 c, size, n;

	for (c = 0; c < ARN_PLAIN_CLASSES; c++) {
		size = t->root->cls[c].size;
		n = size > 8192 ? 100 : 500;
		assert_int_equal(take(size, n), n);
		assert_distinct(n, size);
		assert_int_equal(bpf_usable(t, (void *)vec[n - 1]), size);
		assert_int_equal(give(n), n);
	}
}

static void large_objects(void **state)
{
	assert_int_equal(take(100000, 50), 50);
	assert_distinct(50, 100000);
	assert_int_equal(give(50), 50);
}

static void mixed_classes_and_nulls(void **state)
{
	static const __u64 sizes[] = { 64, 64, 16, 5000, 0, 64, 40000, 128, 0, 64 };
	__u32 i, n = 1000, k = sizeof(sizes) / sizeof(*sizes);

	for (i = 0; i < n; i++)
		vec[i] = sizes[i % k] ? (__u64)bpf_malloc(t, sizes[i % k]) : 0;
	assert_int_equal(give(n), n);
}

static void only_nulls_are_freed(void **state)
{
	memset(vec, 0, 100 * 8);
	assert_int_equal(give(100), 100);
}

static void bad_pointers_are_left_out_and_counted(void **state)
{
	__u64 foreign = rig_fail(t, ARN_FAIL_FOREIGN), misaligned = rig_fail(t, ARN_FAIL_MISALIGNED);

	assert_int_equal(take(64, 300), 300);
	assert_int_equal(bpf_free(t, (void *)vec[0]), 0);
	assert_int_equal(bpf_free(t, (void *)vec[100]), 0);
	assert_int_equal(bpf_free(t, (void *)vec[299]), 0);
	vec[0] = 0xdead000000000000ULL;
	vec[100] = vec[101] + 8;
	vec[299] = 64;
	assert_int_equal(give(300), 297);
	assert_int_equal(rig_fail(t, ARN_FAIL_FOREIGN), foreign + 2);
	assert_int_equal(rig_fail(t, ARN_FAIL_MISALIGNED), misaligned + 1);
}

static void twice_in_one_array_is_freed_once(void **state)
{
	__u64 twice = rig_fail(t, ARN_FAIL_DOUBLE);

	assert_int_equal(take(64, 10), 10);
	vec[10] = vec[3];
	vec[11] = vec[9];
	assert_int_equal(give(12), 10);
	assert_int_equal(rig_fail(t, ARN_FAIL_DOUBLE), twice + 2);
}

static void an_error_only_when_nothing_was_freed(void **state)
{
	__u32 i;

	for (i = 0; i < 130; i++)
		vec[i] = 4096 + i * 16;
	assert_int_equal(give(130), -EINVAL);
	assert_int_equal(give(1), -EINVAL);
	vec[77] = (__u64)bpf_malloc(t, 64);
	assert_int_equal(give(130), 1);
	vec[77] = 0;
	assert_int_equal(give(130), 1);
}

static void an_impossible_size_gives_none(void **state)
{
	__u64 size = rig_fail(t, ARN_FAIL_SIZE);

	assert_int_equal(take(ARENA, 10), 0);
	assert_int_equal(rig_fail(t, ARN_FAIL_SIZE), size + 1);
}

static void more_than_there_is_gives_what_there_is(void **state)
{
	__u64 nomem = rig_fail(t, ARN_FAIL_NOMEM);
	__u32 got = take(32768, 4000);

	/* 64 MiB less root, tables and the array: some 1300. */
	assert_in_range(got, 1000, 2000);
	assert_distinct(got, 32768);
	assert_int_equal(rig_fail(t, ARN_FAIL_NOMEM), nomem + 1);
	assert_int_equal(give(got), got);
	assert_int_equal(take(32768, got), got);
	assert_int_equal(give(got), got);
}

/* Bulk and single calls share the cache: what one frees the other hands out. */
static void singles_and_bulk_mix(void **state)
{
	__u32 i, round;

	for (round = 0; round < 20; round++) {
		assert_int_equal(take(96, 130), 130);
		for (i = 0; i < 130; i += 2)
			assert_int_equal(bpf_free(t, (void *)vec[i]), 0);
		for (i = 0; i < 130; i += 2)
			vec[i] = (__u64)bpf_malloc(t, 96);
		assert_distinct(130, 96);
		assert_int_equal(give(130), 130);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, array_left)
	static const struct CMUnitTest tests[] = {
		T(any_n),
		T(n_of_0_is_0),
		T(every_class),
		T(large_objects),
		T(mixed_classes_and_nulls),
		T(only_nulls_are_freed),
		T(bad_pointers_are_left_out_and_counted),
		T(twice_in_one_array_is_freed_once),
		T(an_error_only_when_nothing_was_freed),
		T(an_impossible_size_gives_none),
		T(more_than_there_is_gives_what_there_is),
		T(singles_and_bulk_mix),
	};

	rig_start();
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
