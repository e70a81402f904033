// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * sizeclass_test.c - the class tables, proved by trying every size there is.
 *
 * Shows that each size gets the smallest class that holds it, that waste and alignment are as
 * promised, and that slabs are cut without overlap.  Cannot show what BPF reads from the tables.
 */
#include "unit.h"
#include "../../src/core/heap.h"
#include "../../src/core/root.h"

static struct arn_root *root(void)
{
	static struct arn_root r;

	arn_classes_init(&r);
	return &r;
}

/* The classes ascend from 16 bytes to the largest classed size, all of them multiples of a granule. */
static void classes_ascend(void **state)
{
	struct arn_root *r = root();
	__u32 c;

	assert_int_equal(r->cls[0].size, 16);
	assert_int_equal(r->cls[ARN_PLAIN_CLASSES - 1].size, ARN_MAX_CLASSED);
	for (c = 0; c < ARN_PLAIN_CLASSES; c++) {
		assert_int_equal(r->cls[c].size, arn_class_size(c));
		assert_int_equal(r->cls[c].size % 16, 0);
		assert_true(!c || r->cls[c].size > r->cls[c - 1].size);
	}
}

/* Both byte tables agree with a search for the smallest class that holds the size. */
static void every_size_gets_the_smallest_class(void **state)
{
	struct arn_root *r = root();
	__u32 size, best = 0;

	for (size = 0; size <= ARN_MAX_CLASSED; size++) {
		while (r->cls[best].size < size)
			best++;
		assert_int_equal(arn_class_of(r, size), best);
	}
}

/* Above 64 bytes a class is at most a quarter larger than what was asked. */
static void waste_is_at_most_a_quarter(void **state)
{
	struct arn_root *r = root();
	__u32 size;

	for (size = 65; size <= ARN_MAX_CLASSED; size++)
		assert_true((r->cls[arn_class_of(r, size)].size - size) * 4 <= size);
}

/* The same for page runs, up to the largest object of the largest arena. */
static void waste_of_page_runs_is_at_most_a_quarter(void **state)
{
	__u64 size, seed = 1;
	int i;

	for (i = 0; i < 200000; i++) {
		size = ARN_MAX_CLASSED + 1 + rnd(&seed) % (i & 1 ? 4096 * 40 : ARN_MAX_ARENA / 2);
		assert_true((__u64)arn_large_pages(size) * ARN_PAGE_SIZE >= size);
		assert_true(((__u64)arn_large_pages(size) * ARN_PAGE_SIZE - size) * 4 <= size);
	}
}

/* A power of two has a class of exactly its size. */
static void a_power_of_two_has_its_own_class(void **state)
{
	struct arn_root *r = root();
	__u32 size;

	for (size = 16; size <= ARN_MAX_CLASSED; size *= 2)
		assert_int_equal(r->cls[arn_class_of(r, size)].size, size);
}

/*
 * In a slab that starts at any multiple of its alignment, every object is aligned to the largest power
 * of two in its class's size, lies inside, and overlaps no other; what is left over is a sixteenth.
 */
static void slabs_are_cut_aligned_and_without_waste(void **state)
{
	struct arn_root *r = root();
	__u32 c, i, off;

	for (c = 0; c < ARN_PLAIN_CLASSES; c++) {
		struct arn_class *k = &r->cls[c];
		__u32 bytes = k->npages * ARN_PAGE_SIZE, start = k->align * ARN_PAGE_SIZE;

		assert_in_range(k->npages, 1, ARN_SLAB_MAX_PAGES);
		assert_in_range(k->nobj, 1, bytes / k->size);
		assert_true(bytes - k->nobj * k->size <= bytes / 16);
		assert_int_equal(k->align & (k->align - 1), 0);
		for (i = 0; i < k->nobj; i++) {
			off = start + i * k->size;
			assert_int_equal(off & (arn_class_align(k->size) - 1), 0);
			assert_int_equal(off & 15, 0);
		}
	}
}

/* A slab has at least 32 objects, unless 64 KiB do not hold that many. */
static void slabs_hold_enough_for_a_visit(void **state)
{
	struct arn_root *r = root();
	__u32 c;

	for (c = 0; c < ARN_PLAIN_CLASSES; c++)
		assert_true(r->cls[c].nobj >= 32 || r->cls[c].size > ARN_SLAB_MAX_PAGES * ARN_PAGE_SIZE / 32 / 2);
}

/* A magazine caches at most 32 KiB, at least one object, at most what its array has room for. */
static void magazines_are_limited_in_bytes(void **state)
{
	struct arn_root *r = root();
	__u32 c;

	for (c = 0; c < ARN_PLAIN_CLASSES; c++) {
		assert_in_range(r->cls[c].cap, 1, ARN_MAG_OBJS);
		assert_true(r->cls[c].cap == 1 || r->cls[c].cap * r->cls[c].size <= ARN_MAG_BYTES);
	}
}

/*
 * For every alignment up to 32 KiB and every size: the class holds the size and aligns its objects so,
 * or a page run has to serve, which happens only where no class could.
 */
static void aligned_requests_get_an_aligning_class(void **state)
{
	struct arn_root *r = root();
	__u32 align, size, cls;

	for (align = 1; align <= ARN_MAX_CLASSED; align *= 2) {
		for (size = 0; size <= ARN_MAX_CLASSED; size += size < 2100 ? 1 : 61) {
			cls = arn_class_aligned(r, size, align);
			if (cls >= ARN_CLASSES) {
				assert_true(ARN_ROUND_UP(size, align) > ARN_MAX_CLASSED);
				continue;
			}
			assert_true(r->cls[cls].size >= size);
			assert_int_equal(r->cls[cls].size & (align - 1), 0);
		}
	}
	assert_int_equal(arn_class_aligned(r, 1, 2 * ARN_MAX_CLASSED), ARN_CLASSES);
	assert_int_equal(arn_class_aligned(r, ARN_MAX_CLASSED + 1, 1), ARN_CLASSES);
	assert_int_equal(arn_class_aligned(r, ~0ULL, 1), ARN_CLASSES);
	assert_int_equal(arn_class_aligned(r, 1, 1ULL << 63), ARN_CLASSES);
}

/* An aligned request of no bytes is a minimal object: the class of the alignment, or one page. */
static void aligned_requests_of_nothing_are_minimal_objects(void **state)
{
	struct arn_root *r = root();
	__u32 align;

	for (align = 1; align <= ARN_MAX_CLASSED; align *= 2)
		assert_int_equal(arn_class_aligned(r, 0, align), arn_class_of(r, align));
	assert_int_equal(arn_large_pages(0), 1);
}

/* The table by which BPF finds a bit's place is a permutation that names each bit. */
static void de_bruijn_table_names_each_bit(void **state)
{
	struct arn_root *r = root();
	__u32 i;

	for (i = 0; i < 64; i++)
		assert_int_equal(r->bit_place[(1ULL << i) * ARN_DE_BRUIJN >> 58], i);
}

unit_main(t(classes_ascend), t(every_size_gets_the_smallest_class), t(waste_is_at_most_a_quarter),
	  t(waste_of_page_runs_is_at_most_a_quarter), t(a_power_of_two_has_its_own_class),
	  t(slabs_are_cut_aligned_and_without_waste), t(slabs_hold_enough_for_a_visit),
	  t(magazines_are_limited_in_bytes), t(aligned_requests_get_an_aligning_class),
	  t(aligned_requests_of_nothing_are_minimal_objects), t(de_bruijn_table_names_each_bit))
