// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * exhaust.c - to the last object and back: nothing is refused while mapped memory is left, refusals
 * are counted, and what is freed serves any other size, then the kernel.
 *
 * One CPU, so no other slot caches anything; what these may keep is not shown here.  With TEST_SCALE=N (slow
 * machines) the heaps are smaller.
 */
#include <math.h>
#include "rig.h"
#include "pack.h"
#include "pack.skel.h"

#define ALL	  0xffffffffu
#define FEW_PAGES 16 /* for magazines, and ends of runs that a class cannot use */

static struct rig *t;

#define LARGE	(rig_scale() > 1 ? 8 * MiB : 32 * MiB)
#define MILLION (1000000 / rig_scale())

static int setup(void **state)
{
	t = rig_new(rig_scale() > 1 ? 32 * MiB : 64 * MiB, RIG_ALL);
	return 0;
}

static int teardown(void **state)
{
	rig_end(t);
	return 0;
}

/* Frees all of a chain: in pieces, as one run of the program has a bound. */
static __u64 drop_all(struct rig *r, __u64 chain)
{
	__u64 sum = 0;

	while (chain)
		sum += bpf_drop(r, ALL, &chain);
	return sum;
}

/* Fills the heap with objects of one size; how many. */
static __u64 fill(__u64 size, __u64 *chain)
{
	__u64 before = rig_fail(t, ARN_FAIL_NOMEM), n = bpf_take(t, size, ALL, chain);

	assert_int_equal(rig_fail(t, ARN_FAIL_NOMEM), before + 1);
	return n;
}

static void the_last_object_of_every_page(void **state)
{
	__u64 chain = 0, n = fill(64, &chain);
	struct arn_stats st = rig_stats(t->heap);
	__u32 c = rig_class(t, 64);

	assert_int_equal(st.cls[c].live, n);
	assert_int_equal(st.pages_free, 0);
	/* Nothing is cached when an allocation was refused. */
	assert_int_equal(st.cls[c].in_slots + st.cls[c].in_depot + st.cls[c].in_slabs, 0);
	assert_int_equal(n, st.pages_slab * 64);
	assert_in_range(st.pages_mags, 0, FEW_PAGES);
	assert_int_equal(st.pages_slab + st.pages_mags, st.pages_mapped);
	rig_sound(t->heap);
	assert_int_equal(drop_all(t, chain), n);
	assert_int_equal(rig_live(t->heap), 0);
}

static void every_refusal_is_counted(void **state)
{
	__u64 chain = 0, n = fill(4096, &chain), before = rig_fail(t, ARN_FAIL_NOMEM), i;

	for (i = 1; i <= 10; i++) {
		assert_null(bpf_malloc(t, i % 2 ? 4096 : 100000));
		assert_int_equal(rig_fail(t, ARN_FAIL_NOMEM), before + i);
	}
	assert_int_equal(drop_all(t, chain), n);
}

static void works_again_after_a_free(void **state)
{
	__u64 chain = 0, n = fill(1024, &chain), i;
	void *p;

	for (i = 0; i < 10; i++) {
		assert_int_equal(bpf_drop(t, 1, &chain), 1);
		p = bpf_malloc(t, 1024);
		assert_non_null(p);
		assert_null(bpf_malloc(t, 1024));
		assert_int_equal(bpf_free(t, p), 0);
		assert_int_equal(bpf_take(t, 1024, 1, &chain), 1);
	}
	assert_int_equal(drop_all(t, chain), n);
}

/* Memory that one class cached serves each other class, to the same extent as a fresh heap's. */
static void one_class_gets_what_another_cached(void **state)
{
	__u64 pages = rig_stats(t->heap).pages_mapped, chain = 0, n;
	__u32 c;

	for (c = 0; c < ARN_PLAIN_CLASSES; c++) {
		struct arn_class *k = &t->root->cls[c];

		n = fill(k->size, &chain);
		/* All but magazines, and less than a slab's worth (twice, when it wants alignment). */
		if ((n / k->nobj + 2) * k->npages + FEW_PAGES < pages)
			fail_msg("%llu objects of %u bytes, in %llu pages, is all there is", n, k->size, pages);
		assert_int_equal(drop_all(t, chain), n);
		chain = 0;
	}
}

static void a_large_object_gets_what_classes_cached(void **state)
{
	__u64 chain = 0, n = fill(16, &chain);
	void *p;

	assert_int_equal(drop_all(t, chain), n);
	p = bpf_malloc(t, LARGE);
	assert_non_null(p);
	assert_int_equal(bpf_free(t, p), 0);
}

/* Every second object stays: pages cannot be given to others, objects can be had again. */
static void full_of_holes(void **state)
{
	__u64 even = 0, odd = 0, half, n = 0, next, i;
	void *p;

	do {
		half = bpf_take(t, 256, 1, &even);
		n += bpf_take(t, 256, 1, &odd) + half;
	} while (n % 2 == 0 && half && n < 20000);
	half = drop_all(t, odd);
	odd = 0;
	for (i = 0; i < half; i++)
		assert_int_equal(bpf_take(t, 256, 1, &odd), 1);
	rig_sound(t->heap);
	next = drop_all(t, odd) + drop_all(t, even);
	assert_int_equal(next, n);
	p = bpf_malloc(t, LARGE);
	assert_non_null(p);
	assert_int_equal(bpf_free(t, p), 0);
}

static void a_million_live_64_byte_objects(void **state)
{
	struct rig *r = rig_new(128 * MiB, 68 * MiB);
	struct arn_stats st;
	__u64 chain = 0;

	assert_int_equal(bpf_take(r, 64, MILLION, &chain), MILLION);
	st = rig_stats(r->heap);
	assert_int_equal(st.cls[rig_class(r, 64)].live, MILLION);
	assert_int_equal(st.fail[ARN_FAIL_NOMEM], 0);
	rig_sound(r->heap);
	assert_int_equal(drop_all(r, chain), MILLION);
	assert_int_equal(rig_live(r->heap), 0);
	rig_end(r);
}

/* A gigabyte: skipped without the memory for it. */
static void a_thousand_live_objects_of_1_mib(void **state)
{
	__u64 chain = 0, left = 1000, p, seen = 0;
	struct rig *r;

	if ((__u64)sysconf(_SC_AVPHYS_PAGES) * (__u64)sysconf(_SC_PAGESIZE) < 2 * GiB) {
		print_message("skipped: needs 2 GiB of free memory\n");
		skip();
	}
	r = rig_new(4 * GiB, 0);
	assert_ok(arn_reserve(r->heap, 1000 * MiB));
	assert_int_equal(bpf_take(r, MiB, (__u32)left, &chain), left);
	assert_int_equal(rig_stats(r->heap).large, 1000);
	for (p = chain; p; p = *(__u64 *)p, seen++)
		((char *)p)[MiB - 1] = 1;
	assert_int_equal(seen, 1000);
	assert_int_equal(drop_all(r, chain), 1000);
	rig_end(r);
}

/* xorshift64*, Marsaglia 2003, Vigna 2016 */
static double uniform(__u64 *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return (double)(*seed * 0x2545f4914f6cdd1dULL >> 11) / 9007199254740992.0;
}

static void log_uniform_sizes_fill_85_percent(void **state)
{
	__u64 bytes = rig_scale() > 1 ? 128 * MiB : 512 * MiB;
	/* What lies below the root is a heap's fixed cost, which counts in the full size only. */
	__u64 most = rig_scale() > 1 ? bytes - ARN_ROOT_OFF : bytes;
	struct rig *r = rig_new(bytes, 0);
	struct pack_bpf *pack = pack_bpf__open();
	__u64 seed = 0x5eed, mapped, meta;
	struct pack a = {};
	int i;

	assert_non_null(pack);
	assert_int_equal(rig_load(r->heap, pack->skeleton), 0);
	mapped = rig_stats(r->heap).pages_mapped;
	meta = rig_stats(r->heap).meta_bytes;
	assert_ok(arn_reserve(r->heap, (__u64)r->root->npages << ARN_PAGE_SHIFT));
	for (i = 0; i < PACK_SIZES; i++)
		pack->bss->sizes[i] = (__u32)(16 * exp2(uniform(&seed) * 16));
	rig_run(pack->progs.pack_fill, &a, sizeof(a));
	print_message("%u objects, %.1f %% of the arena\n", a.objects, a.asked * 100.0 / (double)bytes);
	assert_true(a.asked > most * 85 / 100);
	assert_int_equal(rig_live(r->heap), a.objects);
	rig_sound(r->heap);

	assert_int_equal(drop_all(r, a.chain), a.objects);
	assert_true(arn_trim(r->heap) > 0);
	assert_int_equal(rig_stats(r->heap).pages_mapped, mapped);
	assert_int_equal(rig_stats(r->heap).meta_bytes, meta);
	pack_bpf__destroy(pack);
	rig_end(r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_object_of_every_page),
		cmocka_unit_test(every_refusal_is_counted),
		cmocka_unit_test(works_again_after_a_free),
		cmocka_unit_test(one_class_gets_what_another_cached),
		cmocka_unit_test(a_large_object_gets_what_classes_cached),
		cmocka_unit_test(full_of_holes),
		cmocka_unit_test(a_million_live_64_byte_objects),
		cmocka_unit_test(a_thousand_live_objects_of_1_mib),
		cmocka_unit_test(log_uniform_sizes_fill_85_percent),
	};

	rig_start();
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
