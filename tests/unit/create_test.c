// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * create_test.c - native heaps made and closed: options, errors in words, many at once.
 *
 * Shared heaps are made in the BPF tests.
 */
#include "unit.h"

static struct arn_heap *create(struct arn_options o)
{
	o.flags |= ARN_NATIVE;
	errno = 0;
	return arn_create(&o);
}

/* Unset options have defaults: 256 MiB, 64 user slots. */
static void defaults(void **state)
{
	struct arn_heap *h = create((struct arn_options){ .sz = sizeof(struct arn_options) });
	struct arn_stats s = stats(h);

	assert_int_equal(s.arena_bytes, 256 * MIB);
	assert_int_equal(s.slots, 64);
	assert_int_equal((__u64)arn_base_address(h) % (4ULL << 30), 0);
	assert_int_equal(arn_map_fd(h), -EINVAL);
	assert_null(arn_globals(h));
	heap_end(h);
}

/* A caller that was compiled with a shorter struct gets defaults for the rest. */
static void a_shorter_struct(void **state)
{
	struct arn_options o = { .sz = offsetof(struct arn_options, user_slots),
				 .bytes = 32 * MIB,
				 .flags = ARN_NATIVE,
				 .user_slots = 99999,
				 .name = (const char *)1 };
	struct arn_heap *h = arn_create(&o);

	assert_non_null(h);
	assert_int_equal(stats(h).slots, 64);
	heap_end(h);
}

/* Wrong options are EINVAL, and the message names what is wrong. */
static void wrong_options(void **state)
{
	static const struct {
		struct arn_options o;
		const char *says;
	} wrong[] = {
		{ { .sz = 0 }, "sz" },
		{ { .sz = 4 }, "sz" },
		{ { .sz = 1 << 20 }, "sz" },
		{ { .sz = sizeof(struct arn_options), .bytes = (24ULL << 20) - 1 }, "24 MiB" },
		{ { .sz = sizeof(struct arn_options), .bytes = 1 }, "24 MiB" },
		{ { .sz = sizeof(struct arn_options), .bytes = (4ULL << 30) + 1 }, "4 GiB" },
		{ { .sz = sizeof(struct arn_options), .bytes = ~0ULL }, "4 GiB" },
		{ { .sz = sizeof(struct arn_options), .user_slots = 4097 }, "slots" },
		{ { .sz = sizeof(struct arn_options), .bytes = 24ULL << 20, .user_slots = 4096 }, "too small" },
		{ { .sz = sizeof(struct arn_options), .flags = 1u << 31 }, "flags" },
	};
	__u32 i;

	for (i = 0; i < NELEMS(wrong); i++) {
		assert_null(create(wrong[i].o));
		assert_int_equal(errno, EINVAL);
		if (!strstr(arn_last_error(), wrong[i].says))
			print_error("%u: %s\n", i, arn_last_error());
		assert_non_null(strstr(arn_last_error(), wrong[i].says));
	}
}

/* Sizes that are no whole MiB are rounded up; the limits themselves are allowed. */
static void sizes_at_the_limits(void **state)
{
	static const __u64 sizes[] = { 24ULL << 20, (24ULL << 20) + 1, (1ULL << 30) + 12345, 4ULL << 30 };
	struct arn_heap *h;
	__u32 i;

	for (i = 0; i < NELEMS(sizes); i++) {
		h = heap_new(sizes[i]);
		assert_int_equal(stats(h).arena_bytes, (sizes[i] + MIB - 1) / MIB * MIB);
		assert_int_equal(arn_free(h, arn_malloc(h, 100)), 0);
		heap_end(h);
	}
}

/* The most slots there are. */
static void many_slots(void **state)
{
	struct arn_heap *h = create((struct arn_options){ .sz = sizeof(struct arn_options), .user_slots = 4096 });

	assert_int_equal(stats(h).slots, 4096);
	assert_int_equal(arn_free(h, arn_malloc(h, 100)), 0);
	heap_end(h);
}

/*
 * A process holds many heaps, each apart, and one thread uses more of them than it can hold claims on:
 * it works without a cache there.
 */
static void many_heaps(void **state)
{
	enum { N = 40 };
	struct arn_heap *h[N];
	void *p[N];
	int i, k, turn;

	for (i = 0; i < N; i++)
		h[i] = heap_new(24 * MIB);
	for (turn = 0; turn < 50; turn++) {
		for (i = 0; i < N; i++)
			paint(p[i] = arn_malloc(h[i], 200), 200, i);
		for (i = 0; i < N; i++)
			for (k = turn; k < turn + 3; k++)
				if (k % N != i)
					assert_int_equal(arn_free(h[k % N], p[i]), -EINVAL);
		for (i = 0; i < N; i++) {
			assert_true(painted(p[i], 200, 200, i));
			assert_int_equal(arn_free(h[i], p[i]), 0);
		}
	}
	for (i = 0; i < N; i++) {
		assert_int_equal(live(h[i]), 0);
		heap_end(h[i]);
	}
}

/* Heaps come and go, far more than a thread can hold claims on: claims on closed ones are forgotten. */
static void heaps_come_and_go(void **state)
{
	struct arn_heap *h;
	__u64 claimed = 0;
	int i;

	for (i = 0; i < 200; i++) {
		h = heap_new(24 * MIB);
		assert_int_equal(arn_free(h, arn_malloc(h, 64)), 0);
		claimed += stats(h).slots_claimed;
		heap_end(h);
	}
	assert_int_equal(claimed, 200);
}

/* A new heap at a closed one's address, for which one must wait for a turn, is not taken for it. */
static void a_new_heap_in_an_old_place(void **state)
{
	struct arn_heap *h = heap_new(24 * MIB), *k;
	void *base = arn_base_address(h), *p = arn_malloc(h, 64);
	int i;

	arn_close(h);
	for (i = 0, k = heap_new(24 * MIB); i < 200 && arn_base_address(k) != base; i++) {
		arn_close(k);
		k = heap_new(24 * MIB);
	}
	assert_ptr_equal(arn_base_address(k), base);
	assert_int_equal(live(k), 0);
	assert_int_equal(arn_free(k, p), -EINVAL);
	assert_non_null(arn_malloc(k, 64));
	assert_int_equal(stats(k).slots_claimed, 1);
	assert_int_equal(live(k), 1);
	heap_end(k);
}

/* What a native heap cannot do says so. */
static void shared_only_calls(void **state)
{
	struct arn_heap *h = heap_new(24 * MIB);

	assert_int_equal(arn_pin(h, "/sys/fs/bpf/arn_test_never"), -EINVAL);
	assert_non_null(strstr(arn_last_error(), "native"));
	assert_int_equal(arn_attach(h, NULL), -EINVAL);
	heap_end(h);
}

/* What is no heap cannot be opened; close of NULL is nothing. */
static void opening_what_is_none(void **state)
{
	errno = 0;
	assert_null(arn_open("/nonexistent/pin"));
	assert_int_not_equal(errno, 0);
	assert_non_null(strstr(arn_last_error(), "/nonexistent/pin"));
	assert_null(arn_open_fd(-1, 0, NULL));
	assert_int_equal(errno, EBADF);
	assert_null(arn_open_fd(0, 0, NULL));
	arn_close(NULL);
}

/* The last error is this thread's, and never NULL; the version is a version. */
static void words(void **state)
{
	assert_non_null(arn_last_error());
	assert_int_equal(strspn(arn_version(), "0123456789."), strlen(arn_version()));
}

unit_main(t(words), t(defaults), t(a_shorter_struct), t(wrong_options), t(sizes_at_the_limits), t(many_slots),
	  t(many_heaps), t(heaps_come_and_go), t(a_new_heap_in_an_old_place), t(shared_only_calls),
	  t(opening_what_is_none))
