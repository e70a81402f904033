// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * alloc_test.c - what arn_malloc, arn_calloc, arn_aligned_alloc and arn_realloc give on a native heap.
 *
 * Shows sizes, alignment, contents and errors as arenite.h promises them.  Frees are in free_test.c,
 * many threads in thread_test.c.
 */
#include "unit.h"

static size_t usable(struct arn_heap *h, void *p)
{
	return arn_usable_size(h, p);
}

/* Every class boundary, one below, one above, and sizes up to half the arena. */
static size_t boundary(int i)
{
	static const size_t above[] = {
		32769,	 32770,		40000,	 65535,		65536,	 65537,	  100000,
		1 << 17, (1 << 17) + 1, 1 << 20, (1 << 20) + 1, 3 << 20, 1 << 22, (1 << 24) + 4097,
		1 << 25, 1 << 26
	};
	size_t size;
	__u32 c;

	if (i < 3)
		return i;
	i -= 3;
	if (i < 3 * ARN_PLAIN_CLASSES) {
		c = i / 3;
		size = c < 8 ? (c + 1) * 16 : (128u << ((c - 8) >> 2)) + (((c - 8) & 3) + 1) * (32u << ((c - 8) >> 2));
		return size - 1 + i % 3;
	}
	i -= 3 * ARN_PLAIN_CLASSES;
	return i < (int)NELEMS(above) ? above[i] : 0;
}
#define BOUNDARIES (3 + 3 * ARN_PLAIN_CLASSES + 16)

/* Each size gives at least that many usable bytes, aligned to 16, all writable, at most a quarter wasted. */
static void every_boundary_size(void **state)
{
	struct arn_heap *h = heap_new(128 * MIB);
	size_t size, have;
	void *p, *q;
	int i;

	for (i = 0; i < BOUNDARIES; i++) {
		size = boundary(i);
		p = arn_malloc(h, size);
		assert_non_null(p);
		have = usable(h, p);
		assert_true(have >= size && have >= 16);
		assert_true(size <= 64 || (have - size) * 4 <= size);
		assert_int_equal((__u64)p & 15, 0);
		memset(p, 0x5a, have);
		q = size < 32 * MIB ? arn_malloc(h, size) : NULL;
		if (q)
			memset(q, 0xa5, have);
		assert_int_equal(*(__u8 *)p, 0x5a);
		assert_int_equal(((__u8 *)p)[have - 1], 0x5a);
		assert_int_equal(arn_free(h, p), 0);
		assert_int_equal(arn_free(h, q), 0);
	}
	assert_int_equal(live(h), 0);
	heap_end(h);
}

/* A power of two is aligned to itself, up to half the arena. */
static void powers_of_two_are_naturally_aligned(void **state)
{
	struct arn_heap *h = heap_new(128 * MIB);
	size_t size;
	void *p[3];
	int i;

	for (size = 16; size <= 64 * MIB; size *= 2) {
		for (i = 0; i < 3; i++) {
			p[i] = arn_malloc(h, size);
			if (!p[i])
				break;
			assert_int_equal((__u64)p[i] & (size - 1), 0);
		}
		assert_true(i > 0);
		while (i--)
			assert_int_equal(arn_free(h, p[i]), 0);
	}
	heap_end(h);
}

/* Above half the arena is E2BIG, counted, however large; exactly half is granted. */
static void above_half_the_arena(void **state)
{
	static const size_t sizes[] = { (64ULL << 20) + 1, 128ULL << 20, 1ULL << 32, (1ULL << 32) + 16,
					1ULL << 44,	   ~0ULL - 4095, ~0ULL };
	struct arn_heap *h = heap_new(128 * MIB);
	void *p;
	__u32 i;

	for (i = 0; i < NELEMS(sizes); i++) {
		errno = 0;
		assert_null(arn_malloc(h, sizes[i]));
		assert_int_equal(errno, E2BIG);
		assert_int_equal(failed(h, ARN_FAIL_SIZE), i + 1);
		assert_non_null(strstr(arn_last_error(), "half the arena"));
	}
	p = arn_malloc(h, 64 * MIB);
	assert_non_null(p);
	assert_int_equal(arn_free(h, p), 0);
	heap_end(h);
}

/* Every alignment from 1 to half the arena is kept for sizes around it; none is ignored. */
static void every_alignment_is_kept(void **state)
{
	static const size_t odd[] = { 0, 1, 7, 16, 33, 100, 1000, 4095, 4097, 32767, 32768, 32769, 100001 };
	struct arn_heap *h = heap_new(128 * MIB);
	size_t align, i;
	void *p, *q;

	for (align = 1; align <= 64 * MIB; align *= 2) {
		for (i = 0; i < NELEMS(odd); i++) {
			p = arn_aligned_alloc(h, align, odd[i]);
			assert_non_null(p);
			assert_int_equal((__u64)p & (align - 1), 0);
			assert_true(usable(h, p) >= odd[i]);
			paint(p, odd[i], i);
			/* a second one is not the same, and as aligned */
			q = align <= 16 * MIB ? arn_aligned_alloc(h, align, odd[i]) : NULL;
			assert_int_equal((__u64)q & (align - 1), 0);
			assert_ptr_not_equal(p, q);
			assert_true(painted(p, odd[i], odd[i], i));
			assert_int_equal(arn_free(h, p), 0);
			assert_int_equal(arn_free(h, q), 0);
		}
	}
	assert_int_equal(live(h), 0);
	heap_end(h);
}

/* An alignment that is none, or above half the arena, is EINVAL, counted, and gives nothing. */
static void impossible_alignments(void **state)
{
	static const size_t wrong[] = { 0, 3, 24, 100, 4095, ~0ULL, (1ULL << 63) + 1 };
	struct arn_heap *h = heap_new(128 * MIB);
	__u32 i;

	for (i = 0; i < NELEMS(wrong); i++) {
		errno = 0;
		assert_null(arn_aligned_alloc(h, wrong[i], 64));
		assert_int_equal(errno, EINVAL);
		assert_int_equal(failed(h, ARN_FAIL_SIZE), i + 1);
	}
	errno = 0;
	assert_null(arn_aligned_alloc(h, 128 * MIB, 64));
	assert_int_equal(errno, EINVAL);
	assert_null(arn_aligned_alloc(h, 1ULL << 63, 64));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(arn_aligned_alloc(h, 4096, 65 * MIB));
	assert_int_equal(errno, E2BIG);
	assert_null(arn_aligned_alloc(h, 16, ~0ULL));
	assert_int_equal(live(h), 0);
	heap_end(h);
}

/* calloc's memory is zero although the memory was dirty before, at every class and above. */
static void calloc_zeroes(void **state)
{
	struct arn_heap *h = heap_new(128 * MIB);
	static const __u8 zeros[1 << 17];
	size_t size;
	__u8 *p;
	int i, k;

	for (i = 0; i < BOUNDARIES; i++) {
		size = boundary(i);
		if (size > sizeof(zeros))
			continue;
		for (k = 0; k < 2; k++) {
			p = arn_malloc(h, size);
			memset(p, 0xff, usable(h, p));
			assert_int_equal(arn_free(h, p), 0);
		}
		p = arn_calloc(h, 1, size);
		assert_memory_equal(p, zeros, size);
		assert_int_equal(arn_free(h, p), 0);
	}
	p = arn_calloc(h, 7, 13);
	assert_true(usable(h, p) >= 91);
	assert_memory_equal(p, zeros, 91);
	assert_int_equal(arn_free(h, p), 0);
	assert_int_equal(arn_free(h, arn_calloc(h, 0, 100)), 0);
	heap_end(h);
}

/* A product that overflows, or only looks small for it, is refused and counted. */
static void calloc_overflow(void **state)
{
	static const struct {
		size_t n, size;
	} wrong[] = { { 1ULL << 32, 1ULL << 32 }, { ~0ULL, 2 },	    { 2, ~0ULL },
		      { (1ULL << 63) + 1, 2 },	  { ~0ULL, ~0ULL }, { 1ULL << 60, 16 } };
	struct arn_heap *h = heap_new(32 * MIB);
	__u32 i;

	for (i = 0; i < NELEMS(wrong); i++) {
		errno = 0;
		assert_null(arn_calloc(h, wrong[i].n, wrong[i].size));
		assert_int_equal(errno, E2BIG);
		assert_int_equal(failed(h, ARN_FAIL_SIZE), i + 1);
	}
	heap_end(h);
}

/* Growing and shrinking through every boundary keeps the contents that both sizes have. */
static void realloc_keeps_contents(void **state)
{
	struct arn_heap *h = heap_new(256 * MIB);
	size_t from, to, less;
	void *p, *q;
	int i, k;

	for (i = 0; i < BOUNDARIES; i += 1 + (i > 40)) {
		for (k = 0; k < BOUNDARIES; k += 7) {
			from = boundary(i);
			to = boundary(k);
			if (from > 4 * MIB || to > 4 * MIB)
				continue;
			less = from < to ? from : to;
			p = arn_malloc(h, from);
			paint(p, from, i);
			q = arn_realloc(h, p, to);
			assert_non_null(q);
			assert_true(usable(h, q) >= to);
			assert_true(painted(q, from, less, i));
			assert_int_equal(arn_free(h, q), 0);
		}
	}
	assert_int_equal(live(h), 0);
	assert_int_equal(failures(h), 0);
	heap_end(h);
}

/* realloc of NULL is malloc; to 0 bytes gives a minimal object, not nothing. */
static void realloc_at_its_ends(void **state)
{
	struct arn_heap *h = heap_new(32 * MIB);
	void *p = arn_realloc(h, NULL, 100), *q;

	assert_true(usable(h, p) >= 100);
	q = arn_realloc(h, p, 0);
	assert_non_null(q);
	assert_int_equal(usable(h, q), 16);
	assert_int_equal(live(h), 1);
	assert_int_equal(arn_free(h, q), 0);
	heap_end(h);
}

/* A realloc that fails leaves the old object as it was; of no object it is EINVAL. */
static void realloc_that_fails(void **state)
{
	struct arn_heap *h = heap_new(32 * MIB);
	char *p = arn_malloc(h, 1000);

	paint(p, 1000, 3);
	errno = 0;
	assert_null(arn_realloc(h, p, 17 * MIB));
	assert_int_equal(errno, E2BIG);
	assert_null(arn_realloc(h, p, 16 * MIB - 1));
	assert_int_equal(errno, ENOMEM);
	assert_true(painted(p, 1000, 1000, 3));
	assert_int_equal(live(h), 1);
	assert_null(arn_realloc(h, p + 16, 2000));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(arn_free(h, p), 0);
	assert_null(arn_realloc(h, p, 2000));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(live(h), 0);
	heap_end(h);
}

/* Zero bytes are a minimal object, each its own. */
static void nothing_is_a_minimal_object(void **state)
{
	struct arn_heap *h = heap_new(32 * MIB);
	void *p = arn_malloc(h, 0), *q = arn_malloc(h, 0);

	assert_true(p && q && p != q);
	assert_int_equal(usable(h, p), 16);
	assert_int_equal(arn_free(h, p), 0);
	assert_int_equal(arn_free(h, q), 0);
	heap_end(h);
}

/* usable_size of what is no object is 0, and that is no failure to count. */
static void usable_size_of_no_object(void **state)
{
	struct arn_heap *h = heap_new(32 * MIB);
	char *p = arn_malloc(h, 64), *large = arn_malloc(h, 100000);
	int local;

	assert_int_equal(usable(h, NULL), 0);
	assert_int_equal(usable(h, p + 1), 0);
	assert_int_equal(usable(h, p + 16), 0);
	assert_int_equal(usable(h, large + 4096), 0);
	assert_int_equal(usable(h, &local), 0);
	assert_int_equal(usable(h, (void *)~0ULL), 0);
	assert_int_equal(usable(h, large), 102400);
	arn_free(h, p);
	arn_free(h, large);
	assert_int_equal(usable(h, p), 0);
	assert_int_equal(usable(h, large), 0);
	assert_int_equal(failures(h), 0);
	heap_end(h);
}

unit_main(t(every_boundary_size), t(powers_of_two_are_naturally_aligned), t(above_half_the_arena),
	  t(every_alignment_is_kept), t(impossible_alignments), t(calloc_zeroes), t(calloc_overflow),
	  t(realloc_keeps_contents), t(realloc_at_its_ends), t(realloc_that_fails), t(nothing_is_a_minimal_object),
	  t(usable_size_of_no_object))
