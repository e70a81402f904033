// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * checked.c - a checked heap in BPF: what its users do wrong is found and named, and what they do
 * right is not.
 *
 * Mistakes are made from user space, through the same pages.  Interrupts and several CPUs are not
 * looked at here.
 */
#include "rig.h"

static struct rig *t;

static int setup(void **state)
{
	t = rig_new_flags(64 * MiB, 16 * MiB, ARN_CHECKED);
	return 0;
}

static int teardown(void **state)
{
	rig_end(t);
	return 0;
}

static int sound(void **state)
{
	rig_sound(t->heap);
	return 0;
}

static __u64 complaints(void)
{
	return rig_fail(t, ARN_FAIL_OVERRUN) + rig_fail(t, ARN_FAIL_AFTER_FREE) + rig_fail(t, ARN_FAIL_DOUBLE);
}

/* All of what was asked for may be written, in every class and beyond, and is as large as asked for. */
static void good_users_are_not_accused(void **state)
{
	__u64 before = complaints(), size;
	char *p;

	for (size = 1; size < 100000; size += size / 3 + 1) {
		p = bpf_malloc(t, size);
		assert_non_null(p);
		assert_int_equal(bpf_usable(t, p), size);
		memset(p, 0x11, size);
		assert_int_equal(bpf_free(t, p), 0);
	}
	assert_int_equal(complaints(), before);
}

static void powers_of_two_stay_aligned(void **state)
{
	__u64 size;
	void *p;

	for (size = 16; size <= 1 * MiB; size *= 2) {
		p = bpf_malloc(t, size);
		assert_non_null(p);
		assert_int_equal((__u64)p % size, 0);
		assert_int_equal(bpf_free(t, p), 0);
	}
}

/* One byte behind the object, small and large: the free says so and names it, and frees it. */
static void an_overrun_is_found(void **state)
{
	static const __u64 sizes[] = { 1, 16, 50, 64, 1000, 20000, 100000 };
	__u64 before, i;
	char *p;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		before = rig_fail(t, ARN_FAIL_OVERRUN);
		p = bpf_malloc(t, sizes[i]);
		assert_non_null(p);
		p[sizes[i]] ^= 1;
		assert_int_equal(bpf_free(t, p), 0);
		assert_int_equal(rig_fail(t, ARN_FAIL_OVERRUN), before + 1);
		assert_int_equal(rig_stats(t->heap).bad_ptr, (__u64)p);
	}
}

/* A freed object stays in quarantine for 256 frees of its CPU; then the write to it is found, once. */
static void a_write_after_free_is_found(void **state)
{
	__u64 before = rig_fail(t, ARN_FAIL_AFTER_FREE);
	char *p = bpf_malloc(t, 100), *q;
	int i;

	assert_int_equal(bpf_free(t, p), 0);
	p[40] = 1;
	for (i = 0; i < 255; i++) {
		q = bpf_malloc(t, 100);
		assert_ptr_not_equal(q, p);
		assert_int_equal(bpf_free(t, q), 0);
	}
	assert_int_equal(rig_fail(t, ARN_FAIL_AFTER_FREE), before);
	for (i = 0; i < 600; i++)
		assert_int_equal(bpf_free(t, bpf_malloc(t, 100)), 0);
	assert_int_equal(rig_fail(t, ARN_FAIL_AFTER_FREE), before + 1);
}

static void a_second_free_is_refused(void **state)
{
	void *p = bpf_malloc(t, 64), *big = bpf_malloc(t, 1 * MiB);

	assert_int_equal(bpf_free(t, p), 0);
	assert_int_equal(bpf_free(t, p), -EINVAL);
	assert_int_equal(bpf_free(t, big), 0);
	assert_int_equal(bpf_free(t, big), -EINVAL);
}

struct seen {
	__u64 addr;
	int n;
};

static int see(const struct arn_object *o, void *arg)
{
	struct seen *s = arg;

	if (o->tag != 4711)
		return 0;
	assert_int_equal(o->addr, s->addr);
	assert_int_equal(o->size, 77);
	s->n++;
	return 0;
}

/* The walk over what lives tells size and tag of what was allocated under the tag. */
static void tags_name_leaks(void **state)
{
	struct seen s = {};

	rig_op(t, OP_TAG, 4711, 0, 0);
	s.addr = (__u64)bpf_malloc(t, 77);
	rig_op(t, OP_TAG, 0, 0, 0);
	assert_true(arn_live(t->heap, see, &s) >= 1);
	assert_int_equal(s.n, 1);
	assert_int_equal(bpf_free(t, (void *)s.addr), 0);
}

/* Bulk calls, exhaustion and trim as on other heaps: it ends with NULL, and with nothing mapped. */
static void a_full_heap_empties_again(void **state)
{
	__u64 chain = 0;
	__u32 n;

	n = bpf_take(t, 1000, 1u << 20, &chain);
	assert_true(n > 8000);
	assert_null(bpf_malloc(t, 1000));
	assert_int_equal(bpf_drop(t, n, &chain), n);
	assert_true(arn_trim(t->heap) > 0);
	assert_int_equal(rig_stats(t->heap).pages_mapped, 0);
	assert_ok(arn_reserve(t->heap, 16 * MiB));
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, sound)
	static const struct CMUnitTest tests[] = {
		T(good_users_are_not_accused),	T(powers_of_two_stay_aligned), T(an_overrun_is_found),
		T(a_write_after_free_is_found), T(a_second_free_is_refused),   T(tags_name_leaks),
		T(a_full_heap_empties_again),
	};

	rig_start();
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
