/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * unit.h - what the tests share: heaps that are proved sound when they end, statistics that are
 * proved to balance when they are read, contents that tell whose they are.
 */
#ifndef ARN_TEST_UNIT_H
#define ARN_TEST_UNIT_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "arenite.h"
#include "internal.h"

#ifndef ARN_TEST_SCALE
#define ARN_TEST_SCALE 1
#endif

#define MIB	  (1ULL << 20)
#define KIB	  (1ULL << 10)
#define NELEMS(a) (sizeof(a) / sizeof((a)[0]))

#define unit_main(...)                                                                                                 \
	int main(void)                                                                                                 \
	{                                                                                                              \
		const struct CMUnitTest tests[] = { __VA_ARGS__ };                                                     \
		return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;                                              \
	}
#define t(f) cmocka_unit_test(f)

/* Where an assertion cannot return to cmocka: in threads and signal handlers. */
#define insist(x)                                                                                                      \
	do {                                                                                                           \
		if (!(x)) {                                                                                            \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #x);                              \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

/* The walkers find nothing to say. */
static inline void sound_at(struct arn_heap *h, int line)
{
	if (arn_check(h)) {
		print_error("line %d: %s\n", line, arn_last_error());
		fail();
	}
}
#define sound(h) sound_at(h, __LINE__)

/* A native heap. */
static inline struct arn_heap *heap_new(__u64 bytes)
{
	struct arn_options o = { .sz = sizeof(o), .bytes = bytes, .flags = ARN_NATIVE };
	struct arn_heap *h = arn_create(&o);

	if (!h)
		print_error("%s\n", arn_last_error());
	assert_non_null(h);
	return h;
}

static inline void heap_end(struct arn_heap *h)
{
	sound(h);
	arn_close(h);
}

/* The identities of stats.h. */
static inline void balance(const struct arn_stats *s)
{
	int i;

	assert_int_equal(s->pages_mapped, s->pages_free + s->pages_slab + s->pages_large + s->pages_mags +
						  s->pages_percpu + s->pages_pending);
	for (i = 0; i < ARN_CLASSES; i++)
		assert_int_equal(s->cls[i].objects, s->cls[i].live + s->cls[i].in_slots + s->cls[i].in_depot +
							    s->cls[i].in_slabs + s->cls[i].in_emergency +
							    s->cls[i].quarantined);
}

static inline struct arn_stats stats(struct arn_heap *h)
{
	struct arn_stats s;

	assert_int_equal(arn_get_stats(h, &s, sizeof(s)), 0);
	balance(&s);
	return s;
}

/* Objects allocated, of every class and large. */
static inline __u64 live_objects(const struct arn_stats *s)
{
	__u64 n = s->large;
	int i;

	for (i = 0; i < ARN_CLASSES; i++)
		n += s->cls[i].live;
	return n;
}

static inline __u64 live(struct arn_heap *h)
{
	struct arn_stats s = stats(h);

	return live_objects(&s);
}

static inline __u64 failed(struct arn_heap *h, enum arn_fail why)
{
	return stats(h).fail[why];
}

/* Every failure counter but the one of reclaiming, which is none. */
static inline __u64 failures(struct arn_heap *h)
{
	struct arn_stats s = stats(h);
	__u64 n = 0;
	int i;

	for (i = 0; i < ARN_FAIL_COUNT; i++)
		n += i == ARN_FAIL_RECLAIM ? 0 : s.fail[i];
	return n;
}

/* xorshift64*: the same numbers on every machine. */
static inline __u64 rnd(__u64 *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

#define EDGE 256u /* bytes at each end of an object that carry its pattern */

static inline __u8 pattern(__u64 tag, size_t i)
{
	return (__u8)(tag * 167 + i * 13 + (tag >> 8) + 1);
}

/* Writes an object's two ends so that they tell its tag and its size. */
static inline void paint(void *p, size_t n, __u64 tag)
{
	__u8 *c = p;
	size_t i;

	for (i = 0; i < n && i < EDGE; i++)
		c[i] = pattern(tag, i);
	for (i = n > EDGE ? (n - EDGE > EDGE ? n - EDGE : EDGE) : n; i < n; i++)
		c[i] = pattern(tag, i);
}

/* Is it still as painted?  upto: of an object that was n bytes, how many are looked at. */
static inline bool painted(const void *p, size_t n, size_t upto, __u64 tag)
{
	const __u8 *c = p;
	size_t i;

	for (i = 0; i < upto && i < EDGE; i++)
		if (c[i] != pattern(tag, i))
			return false;
	for (i = n > EDGE ? (n - EDGE > EDGE ? n - EDGE : EDGE) : n; i < upto; i++)
		if (c[i] != pattern(tag, i))
			return false;
	return true;
}

#endif
