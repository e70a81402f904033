// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * refuse.c - frees of what is no allocated object: -EINVAL, counted under its cause and with its
 * address, and harmless.
 *
 * After each test the walkers find a sound heap with nothing live but what the test left on purpose.
 * Two CPUs that free one object in the same instant are not looked at.
 */
#include "rig.h"

#define ARENA (64 * MiB)

static struct rig *t;

static int setup(void **state)
{
	t = rig_new(ARENA, 16 * MiB);
	return 0;
}

static int teardown(void **state)
{
	rig_end(t);
	return 0;
}

static int nothing_left(void **state)
{
	rig_sound(t->heap);
	assert_int_equal(rig_live(t->heap), 0);
	return 0;
}

/* The free of p is refused for exactly this cause. */
static void refused(__u64 p, enum arn_fail why)
{
	__u64 before[ARN_FAIL_COUNT];
	int i, err;

	for (i = 0; i < ARN_FAIL_COUNT; i++)
		before[i] = rig_fail(t, i);
	err = bpf_free(t, (void *)p);
	if (err != -EINVAL)
		fail_msg("free of 0x%llx: %d", p, err);
	for (i = 0; i < ARN_FAIL_COUNT; i++)
		if (rig_fail(t, i) - before[i] != (i == (int)why))
			fail_msg("free of 0x%llx: counter %d went from %llu to %llu, expected cause %d", p, i,
				 before[i], rig_fail(t, i), why);
	assert_int_equal(t->root->bad_ptr, p);
	assert_int_equal(rig_op(t, OP_USABLE, p, 0, 0), 0);
}

static __u64 at(__u64 off)
{
	return (__u64)t->base + off;
}

static void null_is_nothing(void **state)
{
	struct arn_stats before = rig_stats(t->heap), after;

	assert_int_equal(bpf_free(t, NULL), 0);
	after = rig_stats(t->heap);
	assert_memory_equal(before.fail, after.fail, sizeof(before.fail));
}

static void an_offset_alone_is_a_pointer(void **state)
{
	char *p = bpf_malloc(t, 64);

	assert_int_equal(bpf_free(t, (void *)(__u64)(__u32)(__u64)p), 0);
}

static void garbage(void **state)
{
	static const __u64 p[] = { 1, 16, 0x1234567890abcdf0ULL, ~0ULL, ~0ULL << 4, 1ULL << 63, 0xffff888000000000ULL };
	size_t i;

	for (i = 0; i < sizeof(p) / sizeof(*p); i++)
		refused(p[i], ARN_FAIL_FOREIGN);
}

/* The lower half names a live object, the upper half another place. */
static void another_upper_half(void **state)
{
	char *p = bpf_malloc(t, 64);

	refused((__u64)p + 4 * GiB, ARN_FAIL_FOREIGN);
	refused((__u64)p - 4 * GiB, ARN_FAIL_FOREIGN);
	refused((__u64)p ^ 1ULL << 63, ARN_FAIL_FOREIGN);
	refused((__u64)p ^ 1ULL << 32, ARN_FAIL_FOREIGN);
	assert_int_equal(bpf_free(t, p), 0);
}

static void around_the_arena(void **state)
{
	refused(at(0) - 16, ARN_FAIL_FOREIGN);
	refused(at(0) - 4096, ARN_FAIL_FOREIGN);
	refused(at(ARENA), ARN_FAIL_FOREIGN);
	refused(at(ARENA) + 4096, ARN_FAIL_FOREIGN);
	refused(at(4 * GiB - 16), ARN_FAIL_FOREIGN);
}

static void page_0_and_the_users_part(void **state)
{
	refused(at(0), ARN_FAIL_FOREIGN);
	refused(at(4080), ARN_FAIL_FOREIGN);
	refused(at(ARN_ROOT_OFF - 16), ARN_FAIL_FOREIGN);
}

static void the_heaps_own_structures(void **state)
{
	__u64 first = (__u64)t->root->first_page << ARN_PAGE_SHIFT;

	refused(at(ARN_ROOT_OFF), ARN_FAIL_FOREIGN);
	refused(at(ARN_DIR_OFF), ARN_FAIL_FOREIGN);
	refused(at(ARN_SLOTS_OFF), ARN_FAIL_FOREIGN);
	refused(at((__u32)(t->root->state_bias + (first >> 4))), ARN_FAIL_FOREIGN);
	refused(at((__u32)(t->root->page_bias + t->root->first_page * 64)), ARN_FAIL_FOREIGN);
	refused(at(first - 16), ARN_FAIL_FOREIGN);
}

static void a_chunk_that_is_not_mapped(void **state)
{
	assert_int_equal(*(__u32 *)at(ARN_DIR_OFF + (ARENA / MiB - 1) * 4), ARN_CHUNK_NONE);
	refused(at(ARENA - MiB), ARN_FAIL_FOREIGN);
	refused(at(ARENA - 16), ARN_FAIL_FOREIGN);
}

/* A slab of 96-byte objects has an end where none fits. */
static void the_tail_of_a_slab(void **state)
{
	__u32 c = rig_class(t, 96);
	struct arn_page *d;
	__u64 end;
	char *p;

	p = bpf_malloc(t, 96);
	d = (struct arn_page *)at((__u32)(t->root->page_bias + (__u32)((p - t->base) >> ARN_PAGE_SHIFT) * 64));
	end = at((__u64)d->head << ARN_PAGE_SHIFT) + t->root->cls[c].nobj * 96ULL;
	assert_true(end % 4096 != 0);
	refused(end, ARN_FAIL_FOREIGN);
	assert_int_equal(bpf_free(t, p), 0);
}

static void a_page_of_magazines(void **state)
{
	__u32 pg, end = t->root->first_page + t->root->npages, seen = 0;
	char *p = bpf_malloc(t, 64);

	for (pg = t->root->first_page; pg < end; pg++) {
		struct arn_page *d = (struct arn_page *)at((__u32)(t->root->page_bias + pg * 64));

		if (*(__u32 *)at(ARN_DIR_OFF + (pg >> 8) * 4) != ARN_CHUNK_MAPPED || d->kind != ARN_PG_MAGS)
			continue;
		refused(at((__u64)pg << ARN_PAGE_SHIFT), ARN_FAIL_FOREIGN);
		refused(at(((__u64)pg << ARN_PAGE_SHIFT) + 512), ARN_FAIL_FOREIGN);
		seen++;
	}
	assert_true(seen > 0);
	assert_int_equal(bpf_free(t, p), 0);
}

static void misaligned(void **state)
{
	char *p = bpf_malloc(t, 64), *q = bpf_malloc(t, 100000);
	int i;

	for (i = 1; i < 16; i++) {
		refused((__u64)p + i, ARN_FAIL_MISALIGNED);
		refused((__u64)q + i, ARN_FAIL_MISALIGNED);
	}
	assert_int_equal(bpf_free(t, p), 0);
	assert_int_equal(bpf_free(t, q), 0);
}

static void inside_an_object_of_every_class(void **state)
{
	__u32 c, size;
	char *p;

	for (c = 0; c < ARN_PLAIN_CLASSES; c++) {
		size = t->root->cls[c].size;
		p = bpf_malloc(t, size);
		if (size > 16) {
			refused((__u64)p + 16, ARN_FAIL_INTERIOR);
			refused((__u64)p + size - 16, ARN_FAIL_INTERIOR);
			refused((__u64)p + size / 32 * 16ULL, ARN_FAIL_INTERIOR);
		}
		assert_int_equal(bpf_usable(t, p), size);
		assert_int_equal(bpf_free(t, p), 0);
	}
}

static void inside_a_large_object(void **state)
{
	__u64 size = 3 * MiB;
	char *p = bpf_malloc(t, size);

	refused((__u64)p + 16, ARN_FAIL_INTERIOR);
	refused((__u64)p + 4096, ARN_FAIL_INTERIOR);
	refused((__u64)p + MiB, ARN_FAIL_INTERIOR);
	refused((__u64)p + size - 4096, ARN_FAIL_INTERIOR);
	refused((__u64)p + size - 16, ARN_FAIL_INTERIOR);
	assert_int_equal(bpf_usable(t, p), size);
	assert_int_equal(bpf_free(t, p), 0);
}

static void twice_every_class(void **state)
{
	__u32 c;
	void *p;

	for (c = 0; c < ARN_PLAIN_CLASSES; c++) {
		p = bpf_malloc(t, t->root->cls[c].size);
		assert_int_equal(bpf_free(t, p), 0);
		refused((__u64)p, ARN_FAIL_DOUBLE);
		refused((__u64)p, ARN_FAIL_DOUBLE);
	}
}

/* The object is in the loaded magazine, the other one, the depot, and in its slab again. */
static void twice_wherever_it_lies_meanwhile(void **state)
{
	__u64 chain = 0, first;

	assert_int_equal(bpf_take(t, 64, 1, &chain), 1);
	first = chain;
	assert_int_equal(bpf_take(t, 64, 5000, &chain), 5000);
	while (bpf_drop(t, 100, &chain)) {
		if (chain == 0)
			refused(first, ARN_FAIL_DOUBLE);
	}
	refused(first, ARN_FAIL_DOUBLE);
	assert_true(rig_op(t, OP_TRIM, 0, 0, 0) >= 0);
	/* Its chunk is gone, then there again. */
	refused(first, ARN_FAIL_FOREIGN);
	assert_ok(arn_reserve(t->heap, 16 * MiB));
	refused(first, ARN_FAIL_DOUBLE);
}

static void twice_a_large_object(void **state)
{
	char *p = bpf_malloc(t, 200000), *q = bpf_malloc(t, 200000);

	assert_int_equal(bpf_free(t, p), 0);
	refused((__u64)p, ARN_FAIL_DOUBLE);
	assert_int_equal(bpf_free(t, q), 0);
	/* Both are merged into one free run by now. */
	refused((__u64)p, ARN_FAIL_DOUBLE);
	refused((__u64)q, ARN_FAIL_DOUBLE);
}

/* A refusal does not make the cache hand anything out twice. */
static void refusals_do_not_corrupt_the_caches(void **state)
{
	__u64 p[300], i, k;

	for (i = 0; i < 300; i++)
		p[i] = (__u64)bpf_malloc(t, 64);
	for (i = 0; i < 300; i++) {
		assert_int_equal(bpf_free(t, (void *)p[i]), 0);
		assert_int_equal(bpf_free(t, (void *)p[i]), -EINVAL);
		assert_int_equal(bpf_free(t, (void *)(p[i] + 16)), -EINVAL);
	}
	for (i = 0; i < 300; i++) {
		p[i] = (__u64)bpf_malloc(t, 64);
		for (k = 0; k < i; k++)
			assert_int_not_equal(p[k], p[i]);
	}
	for (i = 0; i < 300; i++)
		assert_int_equal(bpf_free(t, (void *)p[i]), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, nothing_left)
	static const struct CMUnitTest tests[] = {
		T(null_is_nothing),
		T(an_offset_alone_is_a_pointer),
		T(garbage),
		T(another_upper_half),
		T(around_the_arena),
		T(page_0_and_the_users_part),
		T(the_heaps_own_structures),
		T(a_chunk_that_is_not_mapped),
		T(the_tail_of_a_slab),
		T(a_page_of_magazines),
		T(misaligned),
		T(inside_an_object_of_every_class),
		T(inside_a_large_object),
		T(twice_every_class),
		T(twice_wherever_it_lies_meanwhile),
		T(twice_a_large_object),
		T(refusals_do_not_corrupt_the_caches),
	};

	rig_start();
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
