// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * percpu_test.c - per-CPU objects: every copy is the object's own and zero, sizes, refusals, memory, marks.
 *
 * On native heaps laid out for as many CPUs as a test wants.  Interrupts and the kernel side are
 * tests/bpf/percpu.c.
 */
#include <pthread.h>
#include "unit.h"
#include "../core/percpu_class.h"

enum { MOST = 40000 };
static void *p[MOST];

static struct arn_heap *heap_for(__u32 cpus, __u64 bytes, __u32 flags, __u32 max)
{
	struct arn_options o = {
		.sz = sizeof(o), .bytes = bytes, .flags = ARN_NATIVE | flags, .percpu_cpus = cpus, .percpu_max = max
	};
	struct arn_heap *h = arn_create(&o);

	if (!h)
		print_error("%s\n", arn_last_error());
	assert_non_null(h);
	assert_int_equal(arn_percpu_cpus(h), cpus);
	return h;
}

/* What a byte of a copy shall be: of the object, the CPU and the place in it. */
static __u8 mark(size_t object, __u32 cpu, size_t at)
{
	return (__u8)(object * 31 + cpu * 101 + at * 7 + 1);
}

static void write_all(struct arn_heap *h, size_t n, size_t size)
{
	size_t i, at;
	__u32 cpu;

	for (i = 0; i < n; i++)
		arn_for_each_cpu(h, cpu) for (at = 0; at < size; at++)((__u8 *)arn_per_cpu_ptr(h, p[i], cpu))[at] =
			mark(i, cpu, at);
}

static void all_as_written(struct arn_heap *h, size_t n, size_t size)
{
	size_t i, at;
	__u32 cpu;

	for (i = 0; i < n; i++)
		arn_for_each_cpu(h, cpu) for (at = 0; at < size;
					      at++) if (((__u8 *)arn_per_cpu_ptr(h, p[i], cpu))[at] != mark(i, cpu, at))
			fail_msg("object %zu of %zu bytes, CPU %u, byte %zu", i, size, cpu, at);
}

static void all_zero(struct arn_heap *h, size_t n, size_t size)
{
	size_t i, at;
	__u32 cpu;

	for (i = 0; i < n; i++)
		arn_for_each_cpu(h, cpu) for (at = 0; at < size; at++) if (((__u8 *)arn_per_cpu_ptr(h, p[i], cpu))[at])
			fail_msg("object %zu of %zu bytes, CPU %u, byte %zu", i, size, cpu, at);
}

static void take(struct arn_heap *h, size_t n, size_t size)
{
	size_t i;

	for (i = 0; i < n; i++) {
		p[i] = arn_percpu_alloc(h, size);
		if (!p[i])
			fail_msg("%zu of %zu objects of %zu bytes: %s", i, n, size, arn_last_error());
	}
}

static void *free_elsewhere(void *heap)
{
	size_t i;

	for (i = 0; p[i]; i++)
		insist(!arn_percpu_free(heap, p[i]));
	return NULL;
}

/* Batches, freed in order, in another order, by another thread, in bulk; new ones are zero on every CPU. */
static void batches(struct arn_heap *h)
{
	static const size_t sizes[] = { 8, 16, 32, 64, 96, 128, 192, 256, 512, 1, 17, 511 };
	pthread_t other;
	size_t k, i, n, size, turn;

	for (k = 0; k < NELEMS(sizes); k++) {
		size = sizes[k];
		n = size == 512 ? 64 : 128;
		for (turn = 0; turn < 4; turn++) {
			if (turn == 2)
				assert_int_equal(arn_percpu_alloc_bulk(h, size, n, p), n);
			else
				take(h, n, size);
			assert_int_equal(live(h), n);
			all_zero(h, n, size);
			write_all(h, n, size);
			all_as_written(h, n, size);
			p[n] = NULL;
			switch (turn) {
			case 0:
				for (i = 0; i < n; i++)
					assert_int_equal(arn_percpu_free(h, p[i]), 0);
				break;
			case 1:
				for (i = 0; i < n; i++)
					assert_int_equal(arn_percpu_free(h, p[(i * 37) % n]), 0);
				break;
			case 2:
				assert_int_equal(pthread_create(&other, NULL, free_elsewhere, h), 0);
				pthread_join(other, NULL);
				break;
			default:
				assert_int_equal(arn_percpu_free_bulk(h, p, n), n);
			}
			assert_int_equal(live(h), 0);
			sound(h);
		}
	}
	assert_int_equal(failures(h), 0);
}

static void every_copy_is_the_objects_own(void **state)
{
	static const __u32 cpus[] = { 1, 2, 3, 8, 128 };
	size_t i;

	for (i = 0; i < NELEMS(cpus); i++) {
		struct arn_heap *h = heap_for(cpus[i], 256 * MIB, 0, 0);

		batches(h);
		arn_trim(h);
		assert_int_equal(stats(h).pages_percpu, 0);
		heap_end(h);
	}
}

/* Checked heaps have no caches for them; everything else holds. */
static void in_a_checked_heap_too(void **state)
{
	struct arn_heap *h = heap_for(4, 64 * MIB, ARN_CHECKED, 0);
	void *plain = arn_malloc(h, 64), *object;

	object = arn_percpu_alloc(h, 64);
	assert_non_null(object);
	assert_int_equal(arn_free(h, plain), 0); /* to quarantine, where caches would be */
	assert_int_equal(arn_free(h, object), -EINVAL);
	assert_int_equal(arn_percpu_free(h, object), 0);
	assert_int_equal(arn_percpu_free(h, object), -EINVAL);
	assert_int_equal(failed(h, ARN_FAIL_DOUBLE), 1);
	sound(h);
	heap_end(h);
	h = heap_for(2, 64 * MIB, ARN_CHECKED, 0);
	batches(h);
	heap_end(h);
}

static void refused_size(struct arn_heap *h, size_t size, int err, const char *says)
{
	__u64 before = failed(h, ARN_FAIL_SIZE);

	errno = 0;
	assert_null(arn_percpu_alloc(h, size));
	assert_int_equal(errno, err);
	if (!strstr(arn_last_error(), says))
		fail_msg("'%s' instead of '%s'", arn_last_error(), says);
	assert_int_equal(arn_percpu_alloc_bulk(h, size, 3, p), 0);
	assert_int_equal(arn_percpu_prepare(h, size, 1), -err);
	assert_int_equal(failed(h, ARN_FAIL_SIZE), before + 3);
}

static void impossible_sizes_are_refused(void **state)
{
	struct arn_heap *h = heap_for(2, 32 * MIB, 0, 0);

	refused_size(h, 0, EINVAL, "per-CPU object size (0) is less than 1");
	refused_size(h, 513, E2BIG, "per-CPU object size (513) is greater than 512");
	refused_size(h, 600, E2BIG, "per-CPU object size (600) is greater than 512");
	refused_size(h, (size_t)-1, E2BIG, "is greater than 512");
	refused_size(h, (size_t)1 << 40, E2BIG, "is greater than 512");
	refused_size(h, (1ULL << 32) + 64, E2BIG, "is greater than 512");
	assert_int_equal(stats(h).pages_mapped, 0);
	heap_end(h);
}

/* Rounded to the class and no further: 32 costs 32. */
static void a_size_costs_its_class(void **state)
{
	struct arn_heap *h = heap_for(4, 64 * MIB, 0, 0);
	size_t size, want;
	__u32 c;

	for (size = 1; size <= 512; size++) {
		struct arn_stats s;

		p[0] = arn_percpu_alloc(h, size);
		s = stats(h);
		for (c = ARN_PLAIN_CLASSES; !s.cls[c].live; c++)
			;
		want = size <= 128 ? (size + 15) & ~15ULL : size <= 256 ? (size + 31) & ~31ULL : (size + 63) & ~63ULL;
		assert_int_equal(s.cls[c].size, want);
		arn_percpu_free(h, p[0]);
	}
	heap_end(h);
}

static void the_limit_can_be_raised(void **state)
{
	static const size_t sizes[] = { 1, 64, 128, 129, 500, 513, 600, 1024, 1025, 2048, 3000 };
	struct arn_heap *h = heap_for(4, 64 * MIB, 0, 3000);
	struct arn_options o = { .sz = sizeof(o), .flags = ARN_NATIVE, .percpu_max = 4097 };
	size_t i;

	for (i = 0; i < NELEMS(sizes); i++) {
		take(h, 50, sizes[i]);
		all_zero(h, 50, sizes[i]);
		write_all(h, 50, sizes[i]);
		all_as_written(h, 50, sizes[i]);
		sound(h);
		assert_int_equal(arn_percpu_free_bulk(h, p, 50), 50);
	}
	refused_size(h, 3001, E2BIG, "per-CPU object size (3001) is greater than 3000");
	assert_int_equal(stats(h).percpu_max, 3000);
	p[0] = arn_percpu_alloc(h, 3000);
	assert_true(stats(h).percpu_bytes >= 4096);
	arn_percpu_free(h, p[0]);
	heap_end(h);
	assert_null(arn_create(&o));
	assert_int_equal(errno, EINVAL);
}

/* Plain and per-CPU objects are not each other's, and only the name is the object. */
static void what_is_no_per_cpu_object_is_refused(void **state)
{
	struct arn_heap *h = heap_for(4, 64 * MIB, 0, 0);
	char *object = arn_percpu_alloc(h, 64), *plain = arn_malloc(h, 64), *large = arn_malloc(h, 100000);

	assert_int_equal(arn_free(h, object), -EINVAL);
	assert_int_equal(failed(h, ARN_FAIL_FOREIGN), 1);
	assert_int_equal(arn_percpu_free(h, plain), -EINVAL);
	assert_int_equal(arn_percpu_free(h, large), -EINVAL);
	assert_int_equal(failed(h, ARN_FAIL_FOREIGN), 3);
	assert_int_equal(arn_percpu_free(h, object + 16), -EINVAL);
	assert_int_equal(arn_percpu_free(h, arn_per_cpu_ptr(h, object, 1)), -EINVAL);
	assert_int_equal(arn_percpu_free(h, arn_per_cpu_ptr(h, object, 3)), -EINVAL);
	assert_int_equal(failed(h, ARN_FAIL_INTERIOR), 3);
	assert_int_equal(arn_percpu_free(h, object + 1), -EINVAL);
	assert_int_equal(arn_usable_size(h, object), 0);
	assert_null(arn_realloc(h, object, 100));
	assert_int_equal(arn_percpu_free(h, NULL), 0);
	assert_int_equal(arn_percpu_free(h, object), 0);
	assert_int_equal(arn_percpu_free(h, object), -EINVAL);
	assert_int_equal(failed(h, ARN_FAIL_DOUBLE), 1);
	p[0] = arn_malloc(h, 64);
	p[1] = arn_percpu_alloc(h, 64);
	assert_int_equal(arn_percpu_free_bulk(h, p, 2), 1);
	p[1] = arn_percpu_alloc(h, 64);
	assert_int_equal(arn_free_bulk(h, p, 2), 1);
	arn_percpu_free(h, p[1]);
	arn_free(h, plain);
	arn_free(h, large);
	assert_int_equal(live(h), 0);
	heap_end(h);
}

static double used(struct arn_heap *h)
{
	struct arn_stats s = stats(h);
	double pages = (double)s.pages_percpu;
	int c;

	for (c = ARN_PLAIN_CLASSES; c < ARN_CLASSES; c++)
		pages += (double)s.cls[c].magazines / ARN_MAG_PER_PAGE;
	return pages * (4096 + 256 + 64); /* with state bytes and descriptors */
}

/* N objects of s bytes on C CPUs take at most 1.25 N s C + 64 KiB + 8 KiB x C; freed and trimmed 8 KiB x C. */
static void memory_is_linear_in_cpus(void **state)
{
	static const __u32 cpus[] = { 1, 2, 8, 128, 512, 1024 };
	static const size_t sizes[] = { 16, 64, 96, 320, 384, 448, 512 }, numbers[] = { 1, 7, 128, 2000 };
	size_t i, k, m;

	for (i = 0; i < NELEMS(cpus); i++) {
		struct arn_heap *h = heap_for(cpus[i], 4096 * MIB, 0, 0);

		assert_int_equal(stats(h).pages_mapped, 0); /* nothing before the first */
		for (k = 0; k < NELEMS(sizes); k++)
			for (m = 0; m < NELEMS(numbers); m++) {
				if (sizes[k] * numbers[m] * cpus[i] > 64 * MIB / ARN_TEST_SCALE)
					continue;
				take(h, numbers[m], sizes[k]);
				if (used(h) > 1.25 * numbers[m] * sizes[k] * cpus[i] + 65536 + 8192.0 * cpus[i])
					fail_msg("%zu of %zu bytes on %u CPUs: %.0f", numbers[m], sizes[k], cpus[i],
						 used(h));
				if (numbers[m] == 1 && cpus[i] == 128)
					assert_true(used(h) < MIB);
				assert_int_equal(arn_percpu_free_bulk(h, p, numbers[m]), numbers[m]);
				arn_trim(h);
				assert_true(used(h) <= 8192.0 * cpus[i]);
			}
		heap_end(h);
	}
}

/* A burst raises a class's mark, giving back lowers it; what a slot may keep follows CPUs and budget. */
static void marks_follow_the_rate(void **state)
{
	struct arn_options o = { .sz = sizeof(o),
				 .bytes = 1024 * MIB,
				 .flags = ARN_NATIVE,
				 .percpu_cpus = 4,
				 .user_slots = 4,
				 .percpu_budget = 64 * KIB };
	struct arn_heap *h = heap_for(2, 256 * MIB, 0, 0);
	struct arn_class *k = &arn_root(h->base)->cls[ARN_PLAIN_CLASSES + 3];

	assert_int_equal(k->size, 64);
	assert_int_equal(k->cap, ARN_PERCPU_LOW);
	take(h, 32768, 64);
	assert_int_equal(k->cap, ARN_MAG_OBJS);
	assert_int_equal(failures(h), 0);
	k->marked -= 3 * ARN_CLOCK_SECOND + 10; /* three seconds without anybody coming for more */
	arn_percpu_mark(arn_root(h->base), ARN_PLAIN_CLASSES + 3);
	assert_int_equal(k->cap, ARN_MAG_OBJS >> 3);
	assert_int_equal(arn_percpu_free_bulk(h, p, 32768), 32768);
	arn_trim(h);
	assert_int_equal(k->cap, ARN_PERCPU_LOW);
	heap_end(h);
	h = heap_for(1024, 1024 * MIB, 0, 0);
	assert_in_range(arn_root(h->base)->cls[ARN_PLAIN_CLASSES + 3].cap_high, 1, 4);
	assert_int_equal(arn_root(h->base)->cls[ARN_PLAIN_CLASSES + 3].near, 0);
	heap_end(h);
	h = arn_create(&o);
	assert_non_null(h);
	k = &arn_root(h->base)->cls[ARN_PLAIN_CLASSES + 3];
	assert_int_equal(k->cap_high, 32); /* 2 magazines x 32 objects x 64 bytes x 4 CPUs x 4 slots */
	assert_int_equal(k->near, 0);
	take(h, 10000, 64);
	assert_int_equal(arn_percpu_free_bulk(h, p, 10000), 10000);
	assert_true(stats(h).cls[ARN_PLAIN_CLASSES + 3].in_slots <= 64);
	heap_end(h);
}

static void prepared_objects_are_there(void **state)
{
	struct arn_heap *h = heap_for(8, 256 * MIB, 0, 0);
	__u64 pages;

	assert_int_equal(arn_percpu_prepare(h, 64, 1000), 0);
	pages = stats(h).pages_percpu;
	assert_int_equal(pages, (1000 + 63) / 64 * 8);
	take(h, 1000, 64);
	assert_int_equal(stats(h).pages_percpu, pages);
	arn_percpu_free_bulk(h, p, 1000);
	assert_int_equal(arn_percpu_prepare(h, 64, 0), 0);
	assert_int_equal(arn_percpu_prepare(h, 512, ~0u), -E2BIG);
	arn_trim(h);
	assert_int_equal(stats(h).pages_percpu, 0);
	heap_end(h);
}

/* Full: NULL and ENOMEM; what was given works, and comes back. */
static void when_memory_ends(void **state)
{
	struct arn_heap *h = heap_for(16, 24 * MIB, 0, 0);
	size_t n = 0;

	while (n < MOST && (p[n] = arn_percpu_alloc(h, 256)))
		n++;
	assert_int_equal(errno, ENOMEM);
	assert_in_range(n, 500, MOST - 1);
	write_all(h, n, 256);
	all_as_written(h, n, 256);
	sound(h);
	assert_int_equal(arn_percpu_free_bulk(h, p, n), n);
	p[0] = arn_malloc(h, 5 * MIB); /* and their memory is everybody's */
	assert_non_null(p[0]);
	arn_free(h, p[0]);
	heap_end(h);
}

enum { THREADS = 4, ADDS = 200000 / ARN_TEST_SCALE };
static struct arn_heap *shared;
static __u64 *counter;

static void *adds(void *arg)
{
	int i;

	for (i = 0; i < ADDS; i++)
		__atomic_fetch_add((__u64 *)arn_this_cpu_ptr(shared, counter), 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Others count while somebody adds up: sums never go down, and the last one is all. */
static void sums_while_others_write(void **state)
{
	pthread_t th[THREADS];
	__u64 last = 0, now;
	int i;

	shared = heap_for(8, 64 * MIB, 0, 0);
	counter = (__u64 *)((char *)arn_percpu_alloc(shared, 64) + 24);
	assert_int_equal(arn_percpu_sum(shared, counter), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&th[i], NULL, adds, NULL), 0);
	for (i = 0; i < 1000; i++, last = now) {
		now = arn_percpu_sum(shared, counter);
		assert_in_range(now, last, (__u64)THREADS * ADDS);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
	assert_int_equal(arn_percpu_sum(shared, counter), (__u64)THREADS * ADDS);
	assert_int_equal(arn_percpu_free(shared, (char *)counter - 24), 0);
	heap_end(shared);
}

static void *churns(void *arg)
{
	enum { HELD = 300 };
	__u64 seed = (__u64)arg, *mine[HELD] = { 0 };
	__u32 cpu;
	int i, k;

	for (i = 0; i < 60000 / ARN_TEST_SCALE; i++) {
		k = (int)(rnd(&seed) % HELD);
		if (mine[k]) {
			arn_for_each_cpu(shared, cpu)
				insist(*(__u64 *)arn_per_cpu_ptr(shared, mine[k], cpu) == (__u64)mine[k] + cpu);
			insist(!arn_percpu_free(shared, mine[k]));
			mine[k] = NULL;
			continue;
		}
		mine[k] = arn_percpu_alloc(shared, 8 + rnd(&seed) % 200);
		insist(mine[k]);
		arn_for_each_cpu(shared, cpu)
		{
			__u64 *copy = arn_per_cpu_ptr(shared, mine[k], cpu);

			insist(!*copy);
			*copy = (__u64)mine[k] + cpu;
		}
	}
	for (k = 0; k < HELD; k++)
		insist(!arn_percpu_free(shared, mine[k]));
	return NULL;
}

static void threads_share_a_heap(void **state)
{
	pthread_t th[THREADS];
	int i;

	shared = heap_for(4, 256 * MIB, 0, 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&th[i], NULL, churns, (void *)(long)(i + 1)), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
	assert_int_equal(live(shared), 0);
	assert_int_equal(failures(shared), 0);
	heap_end(shared);
}

static int count_percpu(const struct arn_object *o, void *arg)
{
	*(int *)arg += (int)o->percpu;
	return 0;
}

static void leak_reports_tell_them(void **state)
{
	struct arn_heap *h = heap_for(2, 64 * MIB, 0, 0);
	int n = 0;

	take(h, 5, 100);
	p[5] = arn_malloc(h, 100);
	assert_int_equal(arn_live(h, count_percpu, &n), 6);
	assert_int_equal(n, 5);
	arn_free(h, p[5]);
	arn_percpu_free_bulk(h, p, 5);
	heap_end(h);
}

/* Walkers on damaged per-CPU structures say so, and end. */
static void damage_is_found(void **state)
{
	struct arn_heap *h = heap_for(4, 64 * MIB, 0, 0);
	struct arn_root *r = arn_root(h->base);
	__u8 *state_of_copy;

	p[0] = arn_percpu_alloc(h, 64);
	state_of_copy = h->state + (((__u64)p[0] + 2 * 4096 - h->first) >> 4);
	*state_of_copy = 3;
	assert_int_equal(arn_check(h), -EUCLEAN);
	*state_of_copy = 0;
	r->cls[ARN_PLAIN_CLASSES].cap = 1000;
	assert_int_equal(arn_check(h), -EUCLEAN);
	r->cls[ARN_PLAIN_CLASSES].cap = r->cls[ARN_PLAIN_CLASSES].cap_low;
	r->cls[ARN_PLAIN_CLASSES].run++;
	assert_int_equal(arn_check(h), -EUCLEAN);
	r->cls[ARN_PLAIN_CLASSES].run--;
	r->percpu_of[3]++;
	assert_int_equal(arn_check(h), -EUCLEAN);
	r->percpu_of[3]--;
	arn_percpu_free(h, p[0]);
	heap_end(h);
}

unit_main(t(every_copy_is_the_objects_own), t(in_a_checked_heap_too), t(impossible_sizes_are_refused),
	  t(a_size_costs_its_class), t(the_limit_can_be_raised), t(what_is_no_per_cpu_object_is_refused),
	  t(memory_is_linear_in_cpus), t(marks_follow_the_rate), t(prepared_objects_are_there), t(when_memory_ends),
	  t(sums_while_others_write), t(threads_share_a_heap), t(leak_reports_tell_them), t(damage_is_found))
