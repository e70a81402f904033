// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * basics.c - one object at a time: sizes, alignment, contents, before and after its free, as a BPF
 * program sees it and as user space does.
 *
 * One CPU, nothing in parallel; whether the fast path or a slow one served a call is not told apart.
 */
#include "rig.h"
#include "ops.skel.h"

#define ARENA (64 * MiB)

static struct rig *t;

static int setup(void **state)
{
	t = rig_new(ARENA, RIG_ALL);
	return 0;
}

static int teardown(void **state)
{
	rig_end(t);
	return 0;
}

/* Every test frees what it took. */
static int nothing_left(void **state)
{
	rig_sound(t->heap);
	assert_int_equal(rig_live(t->heap), 0);
	return 0;
}

/* Nine pages: what comes behind it starts on an odd one, and is aligned only if somebody sees to it. */
#define PAD 36864

static void one_object(__u64 size, __u64 usable, __u64 align)
{
	char *pad = bpf_malloc(t, PAD), *p = bpf_malloc(t, size);

	if (!p)
		fail_msg("no object of %llu bytes", size);
	assert_true(p >= t->base && p + size <= t->base + ARENA);
	if ((__u64)p % align)
		fail_msg("%p, of %llu bytes, is not aligned to %llu", p, size, align);
	assert_int_equal(bpf_usable(t, p), usable);
	memset(p, 0xa5, usable);
	assert_int_equal(bpf_usable(t, p), usable);
	assert_int_equal(bpf_free(t, p), 0);
	assert_int_equal(bpf_usable(t, p), 0);
	assert_int_equal(bpf_free(t, pad), 0);
}

/* The smallest and the largest request of each class gets an object of that class. */
static void every_class_at_both_ends(void **state)
{
	__u32 c, below = 0, size;

	for (c = 0; c < ARN_PLAIN_CLASSES; c++) {
		size = t->root->cls[c].size;
		one_object(below + 1, size, 16);
		one_object(size, size, size & -size);
		below = size;
	}
	assert_int_equal(below, ARN_MAX_CLASSED);
}

static void no_size_wastes_more_than_a_quarter(void **state)
{
	__u64 size, usable;
	void *p;

	for (size = 1; size <= ARN_MAX_CLASSED + 4096; size++) {
		p = bpf_malloc(t, size);
		usable = bpf_usable(t, p);
		assert_true(usable >= size);
		if (size > 64 && usable - size > size / 4)
			fail_msg("an object of %llu bytes takes %llu", size, usable);
		assert_int_equal(bpf_free(t, p), 0);
	}
}

static void large_up_to_half_the_arena(void **state)
{
	static const __u64 sizes[] = {
		ARN_MAX_CLASSED + 1, 64 * KiB, 64 * KiB + 1, 100000,	    MiB - 1,  MiB, MiB + 1, 3 * MiB,
		3 * MiB + 5,	     8 * MiB,  16 * MiB,     ARENA / 2 - 1, ARENA / 2
	};
	__u64 size;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size = sizes[i];
		one_object(size, (size + 4095) & ~4095ULL, size & (size - 1) ? 4096 : size);
	}
}

static void above_half_the_arena_is_refused_and_counted(void **state)
{
	__u64 before = rig_fail(t, ARN_FAIL_SIZE), nomem = rig_fail(t, ARN_FAIL_NOMEM);

	assert_null(bpf_malloc(t, ARENA / 2 + 1));
	assert_null(bpf_malloc(t, ~0ULL));
	assert_null(bpf_malloc(t, 1ULL << 32));
	assert_int_equal(rig_fail(t, ARN_FAIL_SIZE), before + 3);
	assert_int_equal(rig_fail(t, ARN_FAIL_NOMEM), nomem);
}

static void malloc_of_0_is_a_minimal_object(void **state)
{
	void *p = bpf_malloc(t, 0), *q = bpf_malloc(t, 0);

	assert_non_null(p);
	assert_non_null(q);
	assert_ptr_not_equal(p, q);
	assert_int_equal(bpf_usable(t, p), 16);
	assert_int_equal(bpf_free(t, p), 0);
	assert_int_equal(bpf_free(t, q), 0);
}

static void user_space_reads_what_bpf_wrote(void **state)
{
	__u64 *p = bpf_malloc(t, 4096), i;

	assert_int_equal((__u64)p >> 32, (__u64)t->base >> 32);
	assert_int_equal(rig_op(t, OP_WRITE, (__u64)p, 1000, 512), 512);
	for (i = 0; i < 512; i++)
		assert_int_equal(p[i], 1000 + i);
	assert_int_equal(bpf_free(t, p), 0);
}

static void bpf_reads_what_user_space_wrote(void **state)
{
	__u64 *p = bpf_malloc(t, 4096), i;

	for (i = 0; i < 512; i++)
		p[i] = i * i;
	assert_int_equal(rig_op(t, OP_SUM, (__u64)p, 0, 512), 511 * 512 * 1023 / 6);
	assert_int_equal(bpf_free(t, p), 0);
}

static void neighbours_do_not_touch(void **state)
{
	static const __u64 sizes[] = { 16, 48, 64, 80, 320, 1024, 5120, 32768, 40000 };
	char *p[8], i;
	size_t s, k;

	for (s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		for (i = 0; i < 8; i++) {
			p[(int)i] = bpf_malloc(t, sizes[s]);
			memset(p[(int)i], 'a' + i, sizes[s]);
		}
		for (i = 0; i < 8; i++) {
			for (k = 0; k < sizes[s]; k++)
				assert_int_equal(p[(int)i][k], 'a' + i);
			assert_int_equal(bpf_free(t, p[(int)i]), 0);
		}
	}
}

/* What was there before is seen to: the same memory is made dirty first. */
static void calloc_gives_zeroes(void **state)
{
	static const __u64 sizes[] = { 1, 16, 17, 64, 4000, 32768, MiB + 8 };
	__u64 k, usable;
	char *p;
	size_t s;

	for (s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		p = bpf_malloc(t, sizes[s]);
		memset(p, 0xff, bpf_usable(t, p));
		assert_int_equal(bpf_free(t, p), 0);
		p = (char *)rig_op(t, OP_CALLOC, 1, sizes[s], 0);
		assert_non_null(p);
		usable = bpf_usable(t, p);
		assert_true(usable >= sizes[s]);
		for (k = 0; k < sizes[s]; k++)
			assert_int_equal(p[k], 0);
		assert_int_equal(bpf_free(t, p), 0);
	}
}

static void calloc_zeroes_all_of_a_large_object(void **state)
{
	__u64 size = 24 * MiB, k;
	__u64 *p = bpf_malloc(t, size);

	assert_non_null(p);
	memset(p, 0xff, size);
	assert_int_equal(bpf_free(t, p), 0);
	p = (__u64 *)rig_op(t, OP_CALLOC, size / 8, 8, 0);
	assert_non_null(p);
	for (k = 0; k < size / 8; k++)
		if (p[k])
			fail_msg("byte %llu of %llu is not 0", k * 8, size);
	assert_int_equal(bpf_free(t, p), 0);
}

static void calloc_that_overflows_is_null(void **state)
{
	assert_int_equal(rig_op(t, OP_CALLOC, 1ULL << 32, 16, 0), 0);
	assert_int_equal(rig_op(t, OP_CALLOC, 16, 1ULL << 32, 0), 0);
	assert_int_equal(rig_op(t, OP_CALLOC, 1ULL << 60, 16, 0), 0);
	assert_int_equal(rig_op(t, OP_CALLOC, (1ULL << 32) - 1, (1ULL << 32) - 1, 0), 0);
}

static void realloc_keeps_the_contents(void **state)
{
	static const __u64 sizes[] = { 16, 100, 64, 4096, 40000, 2 * MiB, 33000, 24, 1 };
	__u64 had = 0, k;
	char *p = NULL;
	size_t s;

	for (s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		p = (char *)rig_op(t, OP_REALLOC, (__u64)p, sizes[s], 0);
		assert_non_null(p);
		assert_true(bpf_usable(t, p) >= sizes[s]);
		for (k = 0; k < had && k < sizes[s]; k++)
			if (p[k] != (char)(k * 7))
				fail_msg("from %llu to %llu bytes: byte %llu is lost", had, sizes[s], k);
		for (k = 0; k < sizes[s]; k++)
			p[k] = (char)(k * 7);
		had = sizes[s];
	}
	assert_int_equal(bpf_free(t, p), 0);
}

static void realloc_in_place_when_it_fits(void **state)
{
	void *p = bpf_malloc(t, 100);

	assert_ptr_equal(rig_op(t, OP_REALLOC, (__u64)p, 112, 0), p);
	assert_ptr_equal(rig_op(t, OP_REALLOC, (__u64)p, 60, 0), p);
	assert_int_equal(bpf_free(t, p), 0);
}

static void realloc_that_fails_leaves_the_object(void **state)
{
	char *p = bpf_malloc(t, 64);

	memset(p, 'x', 64);
	assert_int_equal(rig_op(t, OP_REALLOC, (__u64)p, ARENA, 0), 0);
	assert_int_equal(bpf_usable(t, p), 64);
	assert_int_equal(p[63], 'x');
	assert_int_equal(rig_op(t, OP_REALLOC, (__u64)p + 16, 128, 0), 0);
	assert_int_equal(bpf_usable(t, p), 64);
	assert_int_equal(bpf_free(t, p), 0);
	assert_int_equal(rig_op(t, OP_REALLOC, (__u64)p, 64, 0), 0);
}

/* Several at a time: one alone may be aligned by luck. */
static void every_alignment_is_honoured(void **state)
{
	static const __u64 sizes[] = { 1, 24, 64, 100, 4096, 5000, 32768, 36000, 70000 };
	__u64 align;
	void *p[8];
	size_t s;
	int i, n;

	for (align = 1; align <= ARENA / 2; align *= 2) {
		n = align > MiB ? 1 : 8;
		for (s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
			for (i = 0; i < n; i++) {
				p[i] = (void *)rig_op(t, OP_ALIGNED, align, sizes[s], 0);
				if (!p[i] || (__u64)p[i] % align)
					fail_msg("align %llu, size %llu: %p", align, sizes[s], p[i]);
				assert_true(bpf_usable(t, p[i]) >= sizes[s]);
				memset(p[i], 0x5a, sizes[s]);
			}
			for (i = 0; i < n; i++)
				assert_int_equal(bpf_free(t, p[i]), 0);
		}
	}
}

static void impossible_alignments_are_refused_and_counted(void **state)
{
	static const __u64 aligns[] = { 0, 3, 24, 48, 100, ARENA, 1ULL << 40, ~0ULL };
	__u64 before = rig_fail(t, ARN_FAIL_SIZE);
	size_t i, n = sizeof(aligns) / sizeof(*aligns);

	for (i = 0; i < n; i++)
		assert_int_equal(rig_op(t, OP_ALIGNED, aligns[i], 64, 0), 0);
	assert_int_equal(rig_fail(t, ARN_FAIL_SIZE), before + n);
}

/* An arena that no heap was made in: every call says so and touches nothing. */
static void without_a_heap_every_call_refuses(void **state)
{
	struct ops_bpf *ops = ops_bpf__open();
	struct op o = { .code = OP_MALLOC, .a = 64 };
	__u64 calls;

	assert_non_null(ops);
	assert_ok(arn_prepare_map(ops->maps.arn_arena, 24 * MiB));
	assert_int_equal(ops_bpf__load(ops), 0);
	calls = ops->bss->arn_calls_without_heap;
	assert_int_equal(rig_do(ops, &o), 0);
	assert_int_equal(ops->bss->arn_calls_without_heap, calls + 1);
	o = (struct op){ .code = OP_ALIGNED, .a = 64, .b = 64 };
	assert_int_equal(rig_do(ops, &o), 0);
	assert_int_equal(ops->bss->arn_calls_without_heap, calls + 2);
	o = (struct op){ .code = OP_MALLOC, .a = MiB };
	assert_int_equal(rig_do(ops, &o), 0);
	assert_int_equal(ops->bss->arn_calls_without_heap, calls + 3);
	o = (struct op){ .code = OP_FREE, .a = 0x12340 };
	assert_int_equal(rig_do(ops, &o), -EINVAL);
	o = (struct op){ .code = OP_FREE };
	assert_int_equal(rig_do(ops, &o), 0);
	o = (struct op){ .code = OP_USABLE, .a = 0x12340 };
	assert_int_equal(rig_do(ops, &o), 0);
	o = (struct op){ .code = OP_RESERVE, .a = MiB };
	assert_int_equal(rig_do(ops, &o), -ENOENT);
	o = (struct op){ .code = OP_TRIM };
	assert_int_equal(rig_do(ops, &o), -ENOENT);
	ops_bpf__destroy(ops);
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, nothing_left)
	static const struct CMUnitTest tests[] = {
		T(every_class_at_both_ends),
		T(no_size_wastes_more_than_a_quarter),
		T(large_up_to_half_the_arena),
		T(above_half_the_arena_is_refused_and_counted),
		T(malloc_of_0_is_a_minimal_object),
		T(user_space_reads_what_bpf_wrote),
		T(bpf_reads_what_user_space_wrote),
		T(neighbours_do_not_touch),
		T(calloc_gives_zeroes),
		T(calloc_zeroes_all_of_a_large_object),
		T(calloc_that_overflows_is_null),
		T(realloc_keeps_the_contents),
		T(realloc_in_place_when_it_fits),
		T(realloc_that_fails_leaves_the_object),
		T(every_alignment_is_honoured),
		T(impossible_alignments_are_refused_and_counted),
		T(without_a_heap_every_call_refuses),
	};

	rig_start();
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
