// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * checked_test.c - checked heaps find what their users do wrong: overruns, writes after free, frees by two.
 *
 * Each mistake is made once and found once, in the right counter, and the heap stays sound.  BPF
 * programs' mistakes are for the BPF tests.
 */
#include <pthread.h>
#include "unit.h"

static struct arn_heap *checked(__u64 bytes)
{
	struct arn_options o = { .sz = sizeof(o), .bytes = bytes, .flags = ARN_NATIVE | ARN_CHECKED };
	struct arn_heap *h = arn_create(&o);

	assert_non_null(h);
	return h;
}

static const size_t sizes[] = { 0,    1,    7,	  8,	15,    16,    17,    48,    64,	   100,	  112,	  113,	  1000,
				1008, 1024, 4080, 4096, 30000, 32751, 32752, 32753, 32768, 32769, 100000, 1 << 20 };

/* Correct use finds nothing, at any size; what was asked for is what can be used (0 counts as 1). */
static void correct_use_is_silent(void **state)
{
	struct arn_heap *h = checked(64 * MIB);
	void *p, *q;
	__u32 i, k;

	for (k = 0; k < 3; k++) {
		for (i = 0; i < NELEMS(sizes); i++) {
			p = arn_malloc(h, sizes[i]);
			assert_non_null(p);
			assert_int_equal(arn_usable_size(h, p), sizes[i] ? sizes[i] : 1);
			memset(p, 0xff, arn_usable_size(h, p));
			q = arn_realloc(h, p, sizes[i] * 3 + 5);
			assert_non_null(q);
			memset(q, 0x11, sizes[i] * 3 + 5);
			assert_int_equal(arn_free(h, q), 0);
		}
		sound(h);
	}
	assert_int_equal(failures(h), 0);
	assert_int_equal(live(h), 0);
	heap_end(h);
}

/* Powers of two are aligned to themselves here, too, and asked alignments are kept. */
static void alignment_is_kept(void **state)
{
	struct arn_heap *h = checked(64 * MIB);
	size_t size;
	void *p;

	for (size = 16; size <= 8 * MIB; size *= 2) {
		p = arn_malloc(h, size);
		assert_non_null(p);
		assert_int_equal((__u64)p & (size - 1), 0);
		assert_int_equal(arn_free(h, p), 0);
		p = arn_aligned_alloc(h, size, 24);
		assert_non_null(p);
		assert_int_equal((__u64)p & (size - 1), 0);
		assert_int_equal(arn_free(h, p), 0);
	}
	assert_int_equal(failures(h), 0);
	heap_end(h);
}

/*
 * A byte just past the end, at any size, and a few farther (what lies there is guard, size or seal; the tag
 * is not looked at), is found by the free, which frees all the same.
 */
static void overruns_are_found(void **state)
{
	static const __u32 past[] = { 0, 1, 2, 3, 8, 12, 15 };
	struct arn_heap *h = checked(64 * MIB);
	__u64 found = 0;
	__u32 i, k;
	__u8 *p;

	for (i = 1; i < NELEMS(sizes); i++) {
		for (k = 0; k < NELEMS(past); k++) {
			if (past[k] > 3 && sizes[i] % 16)
				continue;
			p = arn_malloc(h, sizes[i]);
			memset(p, 0x33, sizes[i]);
			p[sizes[i] + past[k]] ^= 0x80;
			assert_int_equal(arn_free(h, p), 0);
			assert_int_equal(failed(h, ARN_FAIL_OVERRUN), ++found);
			assert_int_equal(stats(h).bad_ptr, (__u64)p);
		}
	}
	assert_int_equal(live(h), 0);
	heap_end(h);
}

/* A write to a freed object is found when it leaves the quarantine, at the latest by a trim. */
static void writes_after_free_are_found(void **state)
{
	struct arn_heap *h = checked(64 * MIB);
	__u64 found = 0;
	__u32 i, at;
	__u8 *p;

	for (i = 0; i < NELEMS(sizes) && sizes[i] <= 30000; i++) {
		for (at = 0; at < sizes[i]; at += sizes[i] / 3 + 1) {
			p = arn_malloc(h, sizes[i]);
			assert_int_equal(arn_free(h, p), 0);
			p[at] ^= 1;
			arn_trim(h);
			assert_int_equal(failed(h, ARN_FAIL_AFTER_FREE), ++found);
			assert_int_equal(stats(h).bad_ptr, (__u64)p);
		}
	}
	assert_true(found > 20);
	heap_end(h);
}

/* The same without a trim, by freeing on: 256 frees later the object has left. */
static void quarantine_is_256_frees_long(void **state)
{
	struct arn_heap *h = checked(64 * MIB);
	__u8 *p = arn_malloc(h, 64), *q;
	__u32 i;

	assert_int_equal(arn_free(h, p), 0);
	for (i = 0; i < ARN_QUARANTINE - 1; i++) {
		q = arn_malloc(h, 64);
		assert_ptr_not_equal(p, q); /* not reused meanwhile */
		assert_int_equal(arn_free(h, q), 0);
	}
	p[5] = 1;
	assert_int_equal(failed(h, ARN_FAIL_AFTER_FREE), 0);
	assert_int_equal(arn_free(h, arn_malloc(h, 64)), 0);
	assert_int_equal(failed(h, ARN_FAIL_AFTER_FREE), 1);
	sound(h);
	heap_end(h);
}

/* A write to one that has left the quarantine is found when it is handed out again. */
static void poison_is_looked_at_again(void **state)
{
	struct arn_heap *h = checked(64 * MIB);
	void *p[64];
	__u8 *q = arn_malloc(h, 64);
	int i;

	assert_int_equal(arn_free(h, q), 0);
	for (i = 0; i < ARN_QUARANTINE; i++)
		assert_int_equal(arn_free(h, arn_malloc(h, 64)), 0);
	q[9] = 1;
	for (i = 0; i < 64; i++)
		p[i] = arn_malloc(h, 64);
	assert_int_equal(failed(h, ARN_FAIL_AFTER_FREE), 1);
	for (i = 0; i < 64; i++)
		assert_int_equal(arn_free(h, p[i]), 0);
	heap_end(h);
}

/* What is refused elsewhere is refused here. */
static void wrong_frees(void **state)
{
	struct arn_heap *h = checked(64 * MIB);
	char *p = arn_malloc(h, 200), *large = arn_malloc(h, 100000), local;

	assert_int_equal(arn_free(h, p + 16), -EINVAL);
	assert_int_equal(arn_free(h, &local), -EINVAL);
	assert_int_equal(arn_free(h, large + 4096), -EINVAL);
	assert_int_equal(arn_free(h, p), 0);
	assert_int_equal(arn_free(h, p), -EINVAL);
	assert_int_equal(failed(h, ARN_FAIL_DOUBLE), 1);
	assert_int_equal(arn_free(h, large), 0);
	assert_int_equal(arn_free(h, large), -EINVAL);
	assert_int_equal(failed(h, ARN_FAIL_DOUBLE), 2);
	sound(h);
	heap_end(h);
}

static struct {
	struct arn_heap *h;
	pthread_barrier_t gate;
	void *p;
	__u32 freed;
} both;

static void *free_it(void *arg)
{
	int i;

	for (i = 0; i < 2000 / ARN_TEST_SCALE; i++) {
		if (arg)
			both.p = arn_malloc(both.h, 64);
		pthread_barrier_wait(&both.gate);
		if (!arn_free(both.h, both.p))
			__atomic_fetch_add(&both.freed, 1, __ATOMIC_RELAXED);
		pthread_barrier_wait(&both.gate);
	}
	return NULL;
}

/* Two threads free one object in the same instant: one of them is told so, every time. */
static void one_of_two_frees_in_an_instant(void **state)
{
	pthread_t th[2];
	__u64 i;

	both.h = checked(64 * MIB);
	both.freed = 0;
	pthread_barrier_init(&both.gate, NULL, 2);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&th[i], NULL, free_it, (void *)i), 0);
	for (i = 0; i < 2; i++)
		pthread_join(th[i], NULL);
	assert_int_equal(both.freed, 2000 / ARN_TEST_SCALE);
	assert_int_equal(failed(both.h, ARN_FAIL_DOUBLE), 2000 / ARN_TEST_SCALE);
	assert_int_equal(live(both.h), 0);
	pthread_barrier_destroy(&both.gate);
	heap_end(both.h);
}

struct seen {
	__u64 n, bytes[4];
};

static int by_tag(const struct arn_object *o, void *arg)
{
	struct seen *s = arg;

	s->n++;
	insist(o->tag < 4);
	s->bytes[o->tag] += o->size;
	insist(arn_usable_size(both.h, (void *)(unsigned long)o->addr) == o->size);
	return 0;
}

/* What is alive is told with its size as asked for and the tag of whoever allocated it. */
static void leaks_are_told_by_tag(void **state)
{
	struct seen s = {};
	void *p, *q;

	both.h = checked(64 * MIB);
	p = arn_malloc(both.h, 100);
	assert_int_equal(arn_set_tag(both.h, 2), 0);
	arn_malloc(both.h, 1000);
	arn_malloc(both.h, 50000);
	assert_int_equal(arn_set_tag(both.h, 3), 0);
	q = arn_malloc(both.h, 7);
	arn_malloc(both.h, 9);
	arn_free(both.h, q);
	assert_int_equal(arn_live(both.h, by_tag, &s), 4);
	assert_int_equal(s.n, 4);
	assert_int_equal(s.bytes[0], 100);
	assert_int_equal(s.bytes[2], 51000);
	assert_int_equal(s.bytes[3], 9);
	arn_free(both.h, p);
	assert_int_equal(arn_live(both.h, by_tag, &s), 3);
	heap_end(both.h);
}

static int stop_at_two(const struct arn_object *o, void *arg)
{
	return ++*(int *)arg == 2 ? 42 : 0;
}

/* The visit ends where the visitor says; other heaps tell class sizes. */
static void a_visit_can_be_ended(void **state)
{
	struct arn_heap *h = heap_new(64 * MIB);
	int n = 0, i;

	for (i = 0; i < 5; i++)
		arn_malloc(h, 70);
	assert_int_equal(arn_live(h, stop_at_two, &n), 42);
	assert_int_equal(n, 2);
	heap_end(h);
}

static void *allocate_and_end(void *arg)
{
	int i;

	for (i = 0; i < 500; i++)
		insist(arn_free(both.h, arn_malloc(both.h, 16 + i * 8)) == 0);
	return NULL;
}

/* What a thread's quarantine held is not lost when the thread ends: a trim brings all back. */
static void quarantines_of_ended_threads(void **state)
{
	pthread_t th;
	int i;

	both.h = checked(64 * MIB);
	for (i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&th, NULL, allocate_and_end, NULL), 0);
		pthread_join(th, NULL);
	}
	arn_trim(both.h);
	assert_int_equal(stats(both.h).pages_mapped, 0);
	heap_end(both.h);
}

/* At the edge of memory quarantined objects are handed out before a call fails. */
static void quarantine_is_no_leak(void **state)
{
	struct arn_heap *h = checked(24 * MIB);
	static void *p[1 << 17];
	__u32 n, m, i;

	for (n = 0; n < NELEMS(p) && (p[n] = arn_malloc(h, 1000)); n++)
		;
	for (i = 0; i < n; i++)
		assert_int_equal(arn_free(h, p[i]), 0);
	for (m = 0; m < NELEMS(p) && (p[m] = arn_malloc(h, 1000)); m++)
		;
	assert_int_equal(n, m);
	assert_int_equal(arn_free_bulk(h, p, m), m);
	arn_trim(h);
	assert_int_equal(stats(h).pages_mapped, 0);
	assert_int_equal(failed(h, ARN_FAIL_OVERRUN) + failed(h, ARN_FAIL_AFTER_FREE), 0);
	heap_end(h);
}

unit_main(t(correct_use_is_silent), t(alignment_is_kept), t(overruns_are_found), t(writes_after_free_are_found),
	  t(quarantine_is_256_frees_long), t(poison_is_looked_at_again), t(wrong_frees),
	  t(one_of_two_frees_in_an_instant), t(leaks_are_told_by_tag), t(a_visit_can_be_ended),
	  t(quarantines_of_ended_threads), t(quarantine_is_no_leak))
