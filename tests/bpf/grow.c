// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * grow.c - memory taken from the kernel and given back: arn_reserve and arn_trim, from a sleepable
 * BPF program and from user space.
 *
 * Other sleepable program types reserve in contexts.c.  That the kernel has no memory is not shown.
 */
#include <pthread.h>
#include "rig.h"

#define ARENA (64 * MiB)

static struct rig *t;

static int setup(void **state)
{
	t = rig_new(ARENA, 0);
	return 0;
}

static int teardown(void **state)
{
	rig_end(t);
	t = NULL;
	return 0;
}

static int bpf_reserve(__u64 bytes)
{
	return (int)rig_op(t, OP_RESERVE, bytes, 0, 0);
}

static __u64 mapped(void)
{
	return rig_stats(t->heap).pages_mapped;
}

static void a_new_heap_has_no_pages(void **state)
{
	struct arn_stats st = rig_stats(t->heap);

	assert_int_equal(st.pages_mapped, 0);
	assert_null(bpf_malloc(t, 64));
	assert_int_equal(rig_fail(t, ARN_FAIL_NOMEM), 1);
	/* A heap costs under 128 KiB plus 4 KiB a CPU before its first object. */
	assert_in_range(st.meta_bytes, 1, 128 * KiB + 4 * KiB * st.slots_cpu - 1);
}

static void reserve_from_bpf(void **state)
{
	assert_int_equal(bpf_reserve(3 * MiB), 0);
	assert_true(rig_stats(t->heap).pages_free >= 3 * MiB / 4096);
	assert_int_equal(mapped(), 3 * MiB / 4096);
	assert_int_equal(bpf_free(t, bpf_malloc(t, 64)), 0);
}

static void reserve_from_user_space(void **state)
{
	assert_ok(arn_reserve(t->heap, 3 * MiB));
	assert_true(rig_stats(t->heap).pages_free >= 3 * MiB / 4096);
	assert_int_equal(mapped(), 3 * MiB / 4096);
	assert_int_equal(bpf_free(t, bpf_malloc(t, 64)), 0);
}

static void reserve_maps_no_more_than_missing(void **state)
{
	assert_int_equal(bpf_reserve(2 * MiB), 0);
	assert_int_equal(bpf_reserve(2 * MiB), 0);
	assert_int_equal(bpf_reserve(1), 0);
	assert_int_equal(bpf_reserve(0), 0);
	assert_ok(arn_reserve(t->heap, 2 * MiB));
	assert_int_equal(mapped(), 2 * MiB / 4096);
	assert_int_equal(bpf_reserve(2 * MiB + 1), 0);
	assert_int_equal(mapped(), 3 * MiB / 4096);
}

static void beyond_the_arena_is_e2big(void **state)
{
	__u64 heap = (__u64)t->root->npages << ARN_PAGE_SHIFT;

	assert_int_equal(bpf_reserve(heap + 1), -E2BIG);
	assert_int_equal(arn_reserve(t->heap, heap + 1), -E2BIG);
	assert_non_null(strstr(arn_last_error(), "mapped to its end"));
	assert_int_equal(bpf_reserve(~0ULL), -E2BIG);
	assert_int_equal(mapped(), 0);
	assert_int_equal(bpf_reserve(heap), 0);
	assert_int_equal(mapped(), heap >> ARN_PAGE_SHIFT);
	/* What is in use is not free, and there is no more. */
	void *p = bpf_malloc(t, MiB);

	assert_non_null(p);
	assert_int_equal(bpf_reserve(heap), -E2BIG);
	assert_int_equal(arn_reserve(t->heap, heap), -E2BIG);
	assert_int_equal(bpf_free(t, p), 0);
}

static void trim_gives_back_every_page(void **state)
{
	struct arn_stats before = rig_stats(t->heap), after;
	__u64 chain = 0;

	assert_int_equal(bpf_reserve(5 * MiB), 0);
	assert_int_equal(bpf_take(t, 64, 20000, &chain), 20000);
	assert_int_equal(bpf_drop(t, 20000, &chain), 20000);
	assert_int_equal(arn_trim(t->heap), 5 * MiB);
	after = rig_stats(t->heap);
	assert_int_equal(after.pages_mapped, before.pages_mapped);
	assert_int_equal(after.meta_bytes, before.meta_bytes);
	assert_int_equal(arn_trim(t->heap), 0);
}

static void trim_from_bpf_gives_back_every_page(void **state)
{
	__u64 meta = rig_stats(t->heap).meta_bytes, chain = 0;

	assert_int_equal(bpf_reserve(5 * MiB), 0);
	assert_int_equal(bpf_take(t, 200, 10000, &chain), 10000);
	assert_int_equal(bpf_drop(t, 10000, &chain), 10000);
	assert_int_equal(rig_op(t, OP_TRIM, 0, 0, 0), 5 * MiB / 4096);
	assert_int_equal(mapped(), 0);
	assert_int_equal(rig_stats(t->heap).meta_bytes, meta);
}

static void trim_leaves_what_is_live(void **state)
{
	__u64 chain = 0, p;
	char *big;
	int n = 0;

	assert_int_equal(bpf_reserve(8 * MiB), 0);
	big = bpf_malloc(t, 3 * MiB);
	memset(big, 'B', 3 * MiB);
	assert_int_equal(bpf_take(t, 64, 1000, &chain), 1000);
	assert_int_equal(arn_trim(t->heap) % (long long)MiB, 0);
	assert_in_range(mapped(), 4 * MiB / 4096, 5 * MiB / 4096);
	for (p = chain; p; p = *(__u64 *)p)
		n++;
	assert_int_equal(n, 1000);
	assert_int_equal(big[3 * MiB - 1], 'B');
	assert_int_equal(bpf_drop(t, 1000, &chain), 1000);
	assert_int_equal(bpf_free(t, big), 0);
	arn_trim(t->heap);
	assert_int_equal(mapped(), 0);
}

static void grows_again_after_a_trim(void **state)
{
	int i;

	for (i = 0; i < 10; i++) {
		assert_int_equal(i % 2 ? bpf_reserve(4 * MiB) : arn_reserve(t->heap, 4 * MiB), 0);
		void *p = bpf_malloc(t, 64), *q = bpf_malloc(t, 100000);

		assert_non_null(p);
		assert_non_null(q);
		/* New pages are zero: nothing may be taken from before. */
		assert_int_equal(*(__u64 *)p, 0);
		memset(p, 0xff, 64);
		assert_int_equal(bpf_free(t, p), 0);
		assert_int_equal(bpf_free(t, q), 0);
		assert_int_equal(arn_trim(t->heap), 4 * MiB);
		rig_sound(t->heap);
	}
}

/* Takes and frees on CPU 1, whose slot then caches some. */
static void *on_cpu_1(void *unused)
{
	__u64 chain = 0;

	rig_pin_cpu(1);
	bpf_take(t, 64, 200, &chain);
	bpf_drop(t, 200, &chain);
	return NULL;
}

static void only_user_space_trims_other_cpus(void **state)
{
	__u32 c = rig_class(t, 64);
	pthread_t thread;

	if (rig_cpus() < 2) {
		print_message("skipped: needs a second CPU\n");
		skip();
	}
	assert_int_equal(bpf_reserve(2 * MiB), 0);
	assert_int_equal(pthread_create(&thread, NULL, on_cpu_1, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(rig_op(t, OP_TRIM, 0, 0, 0), MiB / 4096);
	assert_true(rig_stats(t->heap).cls[c].in_slots > 0);
	assert_int_equal(rig_stats(t->heap).cls[c].in_depot, 0);
	assert_int_equal(arn_trim(t->heap), MiB);
	assert_int_equal(rig_stats(t->heap).cls[c].in_slots, 0);
	assert_int_equal(mapped(), 0);
}

/* Two objects far apart; the chunks between them go, and come again lowest first. */
static void chunks_in_the_middle_go_and_come(void **state)
{
	__u64 big[6], i;

	assert_int_equal(bpf_reserve(6 * MiB), 0);
	for (i = 0; i < 6; i++) {
		big[i] = (__u64)bpf_malloc(t, MiB);
		assert_true(big[i] != 0);
	}
	for (i = 1; i < 5; i++)
		assert_int_equal(bpf_free(t, (void *)big[i]), 0);
	assert_int_equal(arn_trim(t->heap), 4 * MiB);
	assert_int_equal(mapped(), 2 * MiB / 4096);
	rig_sound(t->heap);
	assert_int_equal(bpf_reserve(4 * MiB), 0);
	rig_sound(t->heap);
	/* All four lie together again. */
	big[1] = (__u64)bpf_malloc(t, 4 * MiB - 4096);
	assert_true(big[1] != 0);
	assert_int_equal(bpf_free(t, (void *)big[1]), 0);
	assert_int_equal(bpf_free(t, (void *)big[0]), 0);
	assert_int_equal(bpf_free(t, (void *)big[5]), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(a_new_heap_has_no_pages),
		T(reserve_from_bpf),
		T(reserve_from_user_space),
		T(reserve_maps_no_more_than_missing),
		T(beyond_the_arena_is_e2big),
		T(trim_gives_back_every_page),
		T(trim_from_bpf_gives_back_every_page),
		T(trim_leaves_what_is_live),
		T(grows_again_after_a_trim),
		T(only_user_space_trims_other_cpus),
		T(chunks_in_the_middle_go_and_come),
	};

	rig_start();
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
