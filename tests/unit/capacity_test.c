// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * capacity_test.c - how much a heap holds, what it costs, and what comes back.
 *
 * Shows the figures that the project promises for one thread of a native heap.  What other slots
 * cache when memory ends is in thread_test.c.
 */
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>
#include "unit.h"

/* Bytes of the arena that the process really has. */
static __u64 resident(struct arn_heap *h, __u64 bytes)
{
	char *base = arn_base_address(h);
	static unsigned char vec[1 << 20];
	__u64 i, n = 0, page = (__u64)sysconf(_SC_PAGESIZE);

	assert_int_equal(mincore(base, bytes, vec), 0);
	for (i = 0; i < bytes / page; i++)
		n += vec[i] & 1;
	return n * page;
}

/* Before its first object a heap has touched less than 128 KiB (a native heap has no CPU slots). */
static void an_idle_heap_is_cheap(void **state)
{
	struct arn_heap *h = heap_new(512 * MIB);

	assert_true(resident(h, 512 * MIB) < 128 * KIB);
	assert_true(stats(h).meta_bytes < 128 * KIB);
	heap_end(h);
}

/* The largest arena with its 4 GiB is as cheap. */
static void an_idle_large_heap_is_cheap(void **state)
{
	struct arn_heap *h = heap_new(4096 * MIB);

	assert_true(resident(h, 4096 * MIB) < 128 * KIB);
	heap_end(h);
}

/* Trimmed memory is the kernel's again, but for descriptors that share a large kernel page. */
static void trimmed_memory_is_gone(void **state)
{
	struct arn_heap *h = heap_new(256 * MIB);
	static void *p[100];
	__u64 before, after, meta;
	int i;

	arn_free(h, arn_malloc(h, 64));
	arn_trim(h);
	meta = stats(h).meta_bytes; /* reading touches pages too */
	before = resident(h, 256 * MIB);
	for (i = 0; i < 100; i++)
		memset(p[i] = arn_malloc(h, 300000), 1, 300000);
	assert_true(resident(h, 256 * MIB) > before + 7000 * 4 * KIB);
	for (i = 0; i < 100; i++)
		arn_free(h, p[i]);
	arn_trim(h);
	after = resident(h, 256 * MIB);
	assert_true(after <= before + 16 * KIB + stats(h).meta_bytes - meta);
	heap_end(h);
}

/* A million (with sanitizers fewer) live 64-byte objects, each its own, all freed. */
static void a_million_small_objects(void **state)
{
	const __u32 n = 1000000 / ARN_TEST_SCALE;
	struct arn_heap *h = heap_new(256 * MIB);
	__u64 **p = malloc(n * sizeof(*p));
	__u32 i;

	for (i = 0; i < n; i++) {
		p[i] = arn_malloc(h, 64);
		assert_non_null(p[i]);
		*p[i] = (__u64)i * 0x9e3779b97f4a7c15ULL;
	}
	assert_int_equal(stats(h).cls[3].live, n);
	sound(h);
	for (i = 0; i < n; i++)
		assert_true(*p[i] == (__u64)i * 0x9e3779b97f4a7c15ULL);
	for (i = 0; i < n; i++)
		assert_int_equal(arn_free(h, p[i]), 0);
	assert_int_equal(live(h), 0);
	assert_int_equal(failures(h), 0);
	free(p);
	heap_end(h);
}

/* A thousand live 1 MiB objects, naturally aligned, in a 4 GiB arena. */
static void a_thousand_large_objects(void **state)
{
	struct arn_heap *h = heap_new(4096 * MIB);
	static __u64 *p[1000];
	__u64 mapped;
	__u32 i;

	for (i = 0; i < 1000; i++) {
		p[i] = arn_malloc(h, MIB);
		assert_non_null(p[i]);
		assert_int_equal((__u64)p[i] & (MIB - 1), 0);
		p[i][0] = p[i][MIB / 8 - 1] = i;
	}
	assert_int_equal(stats(h).large, 1000);
	for (i = 0; i < 1000; i++) {
		assert_true(p[i][0] == i && p[i][MIB / 8 - 1] == i);
		assert_int_equal(arn_free(h, p[i]), 0);
	}
	mapped = stats(h).pages_mapped;
	assert_int_equal(arn_trim(h), mapped * 4096);
	assert_int_equal(stats(h).pages_mapped, 0);
	heap_end(h);
}

/* The last byte of a 4 GiB arena is usable: offsets do not run over. */
static void the_end_of_the_largest_arena(void **state)
{
	struct arn_heap *h = heap_new(4096 * MIB);
	char *a = arn_malloc(h, 2048 * MIB), *b;

	assert_ptr_equal(a, (char *)arn_base_address(h) + 2048 * MIB);
	a[0] = a[2048 * MIB - 1] = 1;
	assert_int_equal(arn_free(h, a + 2048 * MIB - 16), -EINVAL);
	b = arn_malloc(h, 64);
	assert_non_null(b);
	assert_int_equal(live(h), 2);
	assert_int_equal(arn_free(h, a), 0);
	assert_int_equal(arn_free(h, b), 0);
	assert_int_equal(live(h), 0);
	heap_end(h);
}

/*
 * Log-uniform sizes of 16 B to 1 MiB from a fixed seed fill over 85 % of a 512 MiB arena (sum of what was
 * asked for); then all is freed and trimmed and the mapped pages are back at the starting figure.
 */
static void a_mixture_fills_the_arena(void **state)
{
	struct arn_heap *h = heap_new(512 * MIB);
	const __u32 max = 1 << 15;
	void **p = malloc(max * sizeof(*p));
	__u64 seed = 1, asked = 0, start = stats(h).pages_mapped;
	size_t size;
	__u32 n, i;

	for (n = 0; n < max; n++) {
		size = (size_t)(16 * pow(65536, (double)(rnd(&seed) >> 11) / (double)(1ULL << 53)));
		p[n] = arn_malloc(h, size);
		if (!p[n])
			break;
		asked += size;
	}
	assert_in_range(n, 1000, max - 1);
	print_message("filled %.1f %% with %u objects\n", 100.0 * (double)asked / (double)(512 * MIB), n);
	assert_true(asked * 100 > 512 * MIB * 85);
	assert_int_equal(live(h), n);
	sound(h);
	for (i = 0; i < n; i++)
		assert_int_equal(arn_free(h, p[i]), 0);
	arn_trim(h);
	assert_int_equal(stats(h).pages_mapped, start);
	free(p);
	heap_end(h);
}

/* Allocates until NULL; returns how many. */
static __u32 exhaust(struct arn_heap *h, size_t size, void **p, __u32 max)
{
	__u32 n = 0;

	errno = 0;
	while (n < max && (p[n] = arn_malloc(h, size)))
		n++;
	assert_true(n < max);
	assert_int_equal(errno, ENOMEM);
	return n;
}

/*
 * No allocation fails while mapped memory is left: when one does, no object lies in slot, depot or slab,
 * and what page runs are left no slab of the class fits into.  After the frees everything works again.
 */
static void exhaustion_leaves_nothing(void **state)
{
	static const size_t sizes[] = { 16, 64, 112, 1000, 4096, 20000, 32768, 65536, 1 << 20 };
	const __u32 max = 1 << 19;
	void **p = malloc(max * sizeof(*p));
	struct arn_heap *h = heap_new(24 * MIB);
	struct arn_stats s;
	__u32 n[2], i, k, c, turn;

	for (k = ARN_TEST_SCALE > 4 ? 3 : 0; k < NELEMS(sizes); k++) {
		for (turn = 0; turn < 2; turn++) {
			n[turn] = exhaust(h, sizes[k], p, max);
			s = stats(h);
			assert_int_equal(s.pages_mapped, 6 * 256);
			for (c = 0; c < ARN_CLASSES; c++)
				assert_int_equal(s.cls[c].in_slots + s.cls[c].in_depot + s.cls[c].in_slabs, 0);
			assert_true(s.pages_free < 256);
			assert_null(arn_malloc(h, sizes[k]));
			sound(h);
			for (i = 0; i < n[turn]; i++)
				assert_int_equal(arn_free(h, p[(i * 7919ULL) % n[turn]]), 0);
			assert_int_equal(live(h), 0);
		}
		assert_int_equal(n[0], n[1]);
		assert_true((__u64)n[0] * sizes[k] * 100 > 6 * MIB * 90);
	}
	free(p);
	heap_end(h);
}

/* What one class caches is reclaimed for any other: each in turn gets the whole memory, no trim between. */
static void cached_memory_serves_other_classes(void **state)
{
	const __u32 max = 1 << 19;
	void **p = malloc(max * sizeof(*p));
	struct arn_heap *h = heap_new(24 * MIB);
	__u32 n, i, turn;
	__u64 seed = 12;
	size_t size;

	for (turn = 0; turn < 40 / ARN_TEST_SCALE + 4; turn++) {
		size = 16 + rnd(&seed) % (1u << (6 + rnd(&seed) % 12));
		n = exhaust(h, size, p, max);
		assert_true((__u64)n * arn_usable_size(h, p[0]) * 100 > 6 * MIB * 85);
		for (i = 0; i < n; i++)
			arn_free(h, p[i]);
	}
	assert_true(stats(h).fail[ARN_FAIL_RECLAIM] > 0);
	free(p);
	heap_end(h);
}

/* At the edge, again and again: one more, NULL, one less, one more. */
static void the_edge_is_stable(void **state)
{
	const __u32 max = 1 << 19;
	void **p = malloc(max * sizeof(*p)), *q;
	struct arn_heap *h = heap_new(24 * MIB);
	__u32 n = exhaust(h, 64, p, max), i, k;
	__u64 seed = 3;

	assert_true(n > 0);
	for (i = 0; i < 300 / ARN_TEST_SCALE; i++) {
		assert_null(arn_malloc(h, 64));
		k = rnd(&seed) % n;
		assert_int_equal(arn_free(h, p[k]), 0);
		q = arn_malloc(h, 64);
		assert_non_null(q);
		p[k] = q;
	}
	assert_int_equal(live(h), n);
	for (i = 0; i < n; i++)
		assert_int_equal(arn_free(h, p[i]), 0);
	free(p);
	heap_end(h);
}

unit_main(t(an_idle_heap_is_cheap), t(an_idle_large_heap_is_cheap), t(trimmed_memory_is_gone),
	  t(a_million_small_objects), t(a_thousand_large_objects), t(the_end_of_the_largest_arena),
	  t(a_mixture_fills_the_arena), t(exhaustion_leaves_nothing), t(cached_memory_serves_other_classes),
	  t(the_edge_is_stable))
