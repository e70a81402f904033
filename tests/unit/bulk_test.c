// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * bulk_test.c - whole stretches of objects: any number, any mixture, and how many.
 *
 * Shows that bulk calls give and take what as many single ones would.  The BPF side's arrays in arena
 * memory are for the BPF tests.
 */
#include "unit.h"

enum { MAX = 70000 };
static void *p[MAX];

/* No two of n are the same, and all can hold size bytes: each is written whole, then read. */
static void distinct(struct arn_heap *h, size_t n, size_t size)
{
	size_t i;

	for (i = 0; i < n; i++) {
		assert_non_null(p[i]);
		assert_true(arn_usable_size(h, p[i]) >= size);
		paint(p[i], size, i);
	}
	for (i = 0; i < n; i++)
		assert_true(painted(p[i], size, size, i));
}

/* Any n, around a magazine's capacity and its multiples, of small and large sizes. */
static void any_number(void **state)
{
	static const size_t numbers[] = { 0, 1, 2, 63, 64, 119, 120, 121, 239, 240, 241, 500, 32768 };
	static const size_t sizes[] = { 0, 16, 64, 400, 4096, 32768, 40000 };
	struct arn_heap *h = heap_new(256 * MIB);
	size_t i, k, n, size;

	for (k = 0; k < NELEMS(sizes); k++) {
		for (i = 0; i < NELEMS(numbers); i++) {
			n = numbers[i];
			size = sizes[k];
			if (n * size > 128 * MIB || (n > 1000 && k > 3))
				continue;
			assert_int_equal(arn_malloc_bulk(h, size, n, p), n);
			distinct(h, n, size);
			assert_int_equal(live(h), n);
			assert_int_equal(arn_free_bulk(h, p, n), n);
			assert_int_equal(live(h), 0);
		}
		sound(h);
	}
	assert_int_equal(failures(h), 0);
	heap_end(h);
}

/* One by one and in bulk mix: objects are objects. */
static void bulk_and_single_calls_mix(void **state)
{
	struct arn_heap *h = heap_new(64 * MIB);
	size_t i, n = 1000;

	assert_int_equal(arn_malloc_bulk(h, 100, n, p), n);
	for (i = 0; i < n; i++)
		assert_int_equal(arn_free(h, p[i]), 0);
	for (i = 0; i < n; i++)
		p[i] = arn_malloc(h, 100);
	distinct(h, n, 100);
	assert_int_equal(arn_free_bulk(h, p, n), n);
	assert_int_equal(live(h), 0);
	heap_end(h);
}

/* Sizes of all kinds in one array, in any order, with NULLs in it: all are freed, NULLs count. */
static void any_mixture_is_freed(void **state)
{
	struct arn_heap *h = heap_new(256 * MIB);
	__u64 seed = 17, nulls = 0;
	size_t i, n = 5000;

	for (i = 0; i < n; i++) {
		switch (rnd(&seed) % 8) {
		case 0:
			p[i] = NULL;
			nulls++;
			break;
		case 1:
			p[i] = rnd(&seed) % 50 ? arn_malloc(h, rnd(&seed) % 30000) : arn_malloc(h, 50000);
			break;
		default:
			p[i] = arn_malloc(h, i / 100 * 16);
		}
	}
	assert_int_equal(live(h), n - nulls);
	assert_int_equal(arn_free_bulk(h, p, n), n);
	assert_int_equal(live(h), 0);
	assert_int_equal(failures(h), 0);
	heap_end(h);
}

/* Wrong pointers among good ones: the good are freed, the wrong refused and counted one by one. */
static void wrong_pointers_are_passed_over(void **state)
{
	struct arn_heap *h = heap_new(64 * MIB);
	size_t i, n = 300, wrong = 0;
	int local;

	for (i = 0; i < n; i++) {
		p[i] = arn_malloc(h, 64);
		if (i % 7 == 3) {
			wrong++;
			p[i] = i % 2 ? (void *)&local : (char *)p[0] + 16;
		}
	}
	assert_int_equal(arn_free_bulk(h, p, n), n - wrong);
	assert_int_equal(failures(h), wrong);
	assert_int_equal(live(h), wrong); /* those whose pointers were overwritten */
	heap_end(h);
}

/* An object that stands twice in the array is freed once. */
static void duplicates_are_freed_once(void **state)
{
	struct arn_heap *h = heap_new(64 * MIB);
	size_t i;

	for (i = 0; i < 200; i++)
		p[i] = p[200 + i] = arn_malloc(h, 48);
	p[400] = p[401] = p[399];
	assert_int_equal(arn_free_bulk(h, p, 402), 200);
	assert_int_equal(failed(h, ARN_FAIL_DOUBLE), 202);
	assert_int_equal(live(h), 0);
	heap_end(h);
}

/* An error only when nothing was freed of something; nothing to free is no error. */
static void error_only_when_nothing_was_freed(void **state)
{
	struct arn_heap *h = heap_new(64 * MIB);
	int local;

	assert_int_equal(arn_free_bulk(h, NULL, 0), 0);
	p[0] = p[1] = &local;
	assert_int_equal(arn_free_bulk(h, p, 2), -EINVAL);
	assert_int_equal(failed(h, ARN_FAIL_FOREIGN), 2);
	p[1] = NULL;
	assert_int_equal(arn_free_bulk(h, p, 2), 1);
	p[0] = NULL;
	assert_int_equal(arn_free_bulk(h, p, 2), 2);
	heap_end(h);
}

/* Fewer than asked when memory ends: exactly those are given, errno says why, and all goes back. */
static void fewer_when_memory_ends(void **state)
{
	struct arn_heap *h = heap_new(24 * MIB);
	size_t n;

	errno = 0;
	n = arn_malloc_bulk(h, 1024, MAX, p);
	assert_int_equal(errno, ENOMEM);
	assert_in_range(n, 1000, MAX - 1);
	distinct(h, n, 1024);
	assert_int_equal(live(h), n);
	assert_int_equal(arn_malloc_bulk(h, 1024, 10, p + n), 0);
	assert_int_equal(arn_free_bulk(h, p, n), n);
	assert_int_equal(live(h), 0);
	assert_int_equal(arn_malloc_bulk(h, 1024, n, p), n);
	assert_int_equal(arn_free_bulk(h, p, n), n);
	heap_end(h);
}

/* A size that no object can have: none, and errno. */
static void impossible_size(void **state)
{
	struct arn_heap *h = heap_new(24 * MIB);

	errno = 0;
	assert_int_equal(arn_malloc_bulk(h, 13 * MIB, 3, p), 0);
	assert_int_equal(errno, E2BIG);
	assert_int_equal(arn_malloc_bulk(h, 13 * MIB, 0, p), 0);
	heap_end(h);
}

unit_main(t(any_number), t(bulk_and_single_calls_mix), t(any_mixture_is_freed), t(wrong_pointers_are_passed_over),
	  t(duplicates_are_freed_once), t(error_only_when_nothing_was_freed), t(fewer_when_memory_ends),
	  t(impossible_size))
