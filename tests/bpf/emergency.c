// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * emergency.c - the lock is not to be had: what calls still do, step by step to the last object.
 *
 * The lock word is written from user space, so a program on CPU 0 finds what an interrupt on top of a holder
 * there finds (it is CPU 0's), or what other CPUs find (it is somebody else's).  Real interrupts are in
 * nmi.c.
 */
#include "rig.h"

#define ALL	0xffffffffu
#define BELOW	1u /* CPU 0's */
#define ANOTHER 0x7fffu

static struct rig *t;

static int setup(void **state)
{
	t = rig_new(64 * MiB, 16 * MiB);
	return 0;
}

static int setup_checked(void **state)
{
	t = rig_new_flags(64 * MiB, 16 * MiB, ARN_CHECKED);
	return 0;
}

static int teardown(void **state)
{
	rig_end(t);
	return 0;
}

static void held_by(__u32 whom)
{
	*(volatile __u32 *)&t->root->lock = whom;
}

/* How many a class has for a caller that must do without the lock. */
static __u64 within_reach(__u32 cls)
{
	struct arn_stats st = rig_stats(t->heap);

	return st.cls[cls].in_slots + st.cls[cls].in_depot + st.cls[cls].in_emergency;
}

static void drop(__u64 chain, __u64 n)
{
	__u64 freed = 0, got;

	while (chain && (got = bpf_drop(t, ALL, &chain)))
		freed += got;
	assert_int_equal(freed, n);
}

/* Hits and exchanges of magazines, thousands of them: nobody looks at the lock. */
static void the_common_path_takes_no_lock(void **state)
{
	struct arn_stats before, after;
	__u64 chain = 0, n = 5000;
	int i;

	assert_int_equal(bpf_take(t, 64, n, &chain), n);
	drop(chain, n);
	before = rig_stats(t->heap);
	held_by(ANOTHER);
	for (i = 0; i < 20; i++) {
		chain = 0;
		assert_int_equal(bpf_take(t, 64, n, &chain), n);
		drop(chain, n);
	}
	held_by(0);
	after = rig_stats(t->heap);
	assert_memory_equal(before.fail, after.fail, sizeof(before.fail));
}

/* On top of the holder: everything within reach, to the last object; then NULL, counted as what it is. */
static void depot_and_reserve_serve_on_top_of_the_holder(void **state)
{
	struct arn_class *k;
	__u64 chain, before, after, reach, n, nested, nomem, lock;
	__u32 cls;

	for (cls = 0; cls < ARN_PLAIN_CLASSES; cls++) {
		k = &t->root->cls[cls];
		chain = before = after = 0;
		assert_int_equal(bpf_take(t, k->size, 3, &before), 3);
		reach = within_reach(cls);
		assert_true(reach >= k->emergency);
		nested = rig_fail(t, ARN_FAIL_NESTED);
		nomem = rig_fail(t, ARN_FAIL_NOMEM);
		lock = rig_fail(t, ARN_FAIL_LOCK);
		held_by(BELOW);
		n = bpf_take(t, k->size, ALL, &chain);
		assert_int_equal(n, reach);
		assert_int_equal(rig_fail(t, ARN_FAIL_NESTED), nested + 1);
		assert_null(bpf_malloc(t, k->size));
		assert_int_equal(rig_fail(t, ARN_FAIL_NESTED), nested + 2);
		assert_int_equal(rig_fail(t, ARN_FAIL_NOMEM), nomem);
		assert_int_equal(rig_fail(t, ARN_FAIL_LOCK), lock); /* it gave up at once */
		held_by(0);
		/* The next to come fills the reserve again. */
		assert_int_equal(bpf_take(t, k->size, 1, &after), 1);
		assert_int_equal(rig_stats(t->heap).cls[cls].in_emergency, k->emergency);
		drop(chain, n);
		drop(before, 3);
		drop(after, 1);
		assert_int_equal(rig_live(t->heap), 0);
		rig_sound(t->heap);
	}
}

/* The reserve alone: what it has it gives, each object once. */
static void the_reserve_gives_what_it_has(void **state)
{
	__u32 cls = rig_class(t, 256), have = t->root->cls[cls].emergency;
	__u64 chain = 0, n, used = rig_fail(t, ARN_FAIL_EMERGENCY);

	assert_int_equal(bpf_take(t, 256, 1, &chain), 1);
	held_by(BELOW);
	n = bpf_take(t, 256, ALL, &chain);
	held_by(0);
	assert_true(n >= have);
	assert_int_equal(rig_fail(t, ARN_FAIL_EMERGENCY), used + have);
	assert_int_equal(rig_stats(t->heap).cls[cls].in_emergency, 0);
	drop(chain, n + 1);
}

/* A class that nobody used before: the first finds nothing, and has left word for the next. */
static void a_class_first_used_there_is_stocked_by_the_next_to_come(void **state)
{
	__u32 cls = rig_class(t, 1000);
	__u64 chain = 0, other;

	assert_int_equal(arn_trim(t->heap) >= 0, 1);
	assert_ok(arn_reserve(t->heap, 8 * MiB));
	held_by(BELOW);
	assert_null(bpf_malloc(t, 1000));
	held_by(0);
	other = (__u64)bpf_malloc(t, 48); /* another class's refill */
	assert_int_equal(rig_stats(t->heap).cls[cls].in_emergency, t->root->cls[cls].emergency);
	held_by(BELOW);
	assert_int_equal(bpf_take(t, 1000, 5, &chain), 5);
	held_by(0);
	drop(chain, 5);
	assert_int_equal(bpf_free(t, (void *)other), 0);
}

static void what_needs_pages_is_refused_at_once(void **state)
{
	__u64 nested = rig_fail(t, ARN_FAIL_NESTED);

	held_by(BELOW);
	assert_null(bpf_malloc(t, 100000));
	held_by(0);
	assert_int_equal(rig_fail(t, ARN_FAIL_NESTED), nested + 1);
}

/* Small and large, in caches that are full or have no magazine: a free needs nothing. */
static void frees_never_fail_there(void **state)
{
	__u64 chain = 0, n = 3000;
	void *large[20];
	int i;

	assert_int_equal(bpf_take(t, 64, n, &chain), n);
	assert_int_equal(bpf_take(t, 8192, 30, &chain), 30);
	for (i = 0; i < 20; i++) {
		large[i] = bpf_malloc(t, 40000);
		assert_non_null(large[i]);
	}
	assert_true(arn_trim(t->heap) >= 0); /* no magazine is left */
	held_by(BELOW);
	drop(chain, n + 30);
	for (i = 0; i < 20; i++)
		assert_int_equal(bpf_free(t, large[i]), 0);
	held_by(0);
	assert_int_equal(rig_live(t->heap), 0);
	rig_sound(t->heap);
	/* And it is all there again. */
	chain = 0;
	assert_int_equal(bpf_take(t, 64, n, &chain), n);
	drop(chain, n);
}

/* In bulk what can be had is had. */
static void bulk_calls_there(void **state)
{
	__u32 cls = rig_class(t, 512), n, reach;
	__u64 *vec = bpf_malloc(t, 1000 * 8);

	assert_int_equal(bpf_free(t, bpf_malloc(t, 512)), 0);
	reach = (__u32)within_reach(cls);
	held_by(BELOW);
	n = (__u32)rig_op(t, OP_MALLOC_BULK, 512, (__u64)vec, 1000);
	assert_int_equal(n, reach);
	assert_int_equal(rig_op(t, OP_FREE_BULK, (__u64)vec, 0, n), n);
	held_by(0);
	assert_int_equal(bpf_free(t, vec), 0);
	assert_int_equal(rig_live(t->heap), 0);
}

/* A holder elsewhere that does not come to an end: waits are bounded and counted, and nothing is lost. */
static void a_holder_elsewhere_that_stopped(void **state)
{
	__u32 cls = rig_class(t, 256);
	__u64 chain = 0, lock = rig_fail(t, ARN_FAIL_LOCK), reach, n;

	assert_int_equal(bpf_take(t, 256, 1, &chain), 1);
	reach = within_reach(cls);
	held_by(ANOTHER);
	n = bpf_take(t, 256, (__u32)reach, &chain);
	assert_int_equal(n, reach);
	assert_null(bpf_malloc(t, 256));
	assert_true(rig_fail(t, ARN_FAIL_LOCK) > lock);
	drop(chain, n + 1);
	held_by(0);
	chain = 0;
	assert_int_equal(bpf_take(t, 256, 1000, &chain), 1000);
	drop(chain, 1000);
	assert_int_equal(rig_live(t->heap), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_common_path_takes_no_lock),
		cmocka_unit_test(depot_and_reserve_serve_on_top_of_the_holder),
		cmocka_unit_test(the_reserve_gives_what_it_has),
		cmocka_unit_test(a_class_first_used_there_is_stocked_by_the_next_to_come),
		cmocka_unit_test(what_needs_pages_is_refused_at_once),
		cmocka_unit_test(frees_never_fail_there),
		cmocka_unit_test(bulk_calls_there),
		cmocka_unit_test(a_holder_elsewhere_that_stopped),
	};
	static const struct CMUnitTest checked[] = {
		cmocka_unit_test(what_needs_pages_is_refused_at_once),
		cmocka_unit_test(frees_never_fail_there),
		cmocka_unit_test(the_reserve_gives_what_it_has),
	};
	int failed;

	rig_start();
	failed = cmocka_run_group_tests(tests, setup, teardown);
	failed += cmocka_run_group_tests(checked, setup_checked, teardown);
	return failed != 0;
}
