// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * scribble_test.c - whatever the heap's structures hold, the walkers and statistics end and do not crash.
 *
 * Words of root, directory, slots, descriptors, state bytes and magazines are overwritten with values that
 * lead somewhere.  Shows that arn_check, arn_get_stats and arn_live end; that they find each corruption is
 * for check_test.c.  The fuzzer tests/fuzz/scribble_fuzz.c looks further.
 */
#include <unistd.h>
#include "unit.h"

#define ROOM 600

static struct arn_heap *h;
static struct arn_root good; /* as it was before */
static void *object[ROOM];

/* A heap with something of everything. */
static void populate(__u32 flags)
{
	struct arn_options o = { .sz = sizeof(o), .bytes = 32 * MIB, .flags = ARN_NATIVE | flags, .user_slots = 4 };
	__u64 seed = 21;
	int i;

	h = arn_create(&o);
	assert_non_null(h);
	for (i = 0; i < ROOM; i++)
		object[i] = arn_malloc(h, rnd(&seed) % (i % 20 ? 600 : 60000));
	for (i = 0; i < ROOM; i++)
		if (rnd(&seed) % 3)
			arn_free(h, object[i]);
	sound(h);
	good = *arn_root(h->base);
}

static int visit(const struct arn_object *o, void *arg)
{
	++*(__u64 *)arg;
	return 0;
}

/* All who read a heap's structures from outside: they end. */
static void read_all(void)
{
	struct arn_stats s;
	__u64 n = 0;
	int err;

	alarm(60);
	err = arn_check(h);
	insist(err == 0 || err == -EUCLEAN);
	err = arn_get_stats(h, &s, sizeof(s));
	insist(err == 0 || err == -EUCLEAN);
	insist(arn_live(h, visit, &n) >= -EUCLEAN);
	alarm(0);
}

static struct {
	__u64 *at, was;
} undo[64];
static __u32 undone;

static void put(__u64 off, __u64 value)
{
	__u64 *at = (__u64 *)((char *)arn_base_address(h) + (off & ~7ULL));

	undo[undone].at = at;
	undo[undone++].was = *at;
	*at = value;
}

static void restore(void)
{
	while (undone--)
		*undo[undone].at = undo[undone].was;
	undone = 0;
}

/* A value that leads somewhere: nothing, all ones, a bit off, a small number, an offset, noise. */
static __u64 value(__u64 *seed, __u64 was)
{
	__u64 x = rnd(seed);

	switch (rnd(seed) % 10) {
	case 0:
		return 0;
	case 1:
		return ~0ULL;
	case 2:
		return was ^ 1ULL << (x & 63);
	case 3:
		return was + (x & 1 ? 1 : -1ULL);
	case 4:
		return x & 0xff;
	case 5:
		return (x & 0xff) << 32 | (was & 0xffffffff);
	case 6: /* a page of the heap, in either half */
		return (was & ~0xffffffffULL) | (good.first_page + x % good.npages);
	case 7:
		return (was & 0xffffffff) | (good.first_page + x % good.npages) << 32;
	case 8: /* a magazine's index, or an offset */
		return x & 1 ? (was & ~0xffffffULL) | (good.first_page * 8ULL + x % 4096) : x % (32 * MIB) << (x & 32);
	default:
		return x;
	}
}

/* A place in the structures: the root's head, the root, the directory, slots, descriptors, state bytes, a page. */
static __u64 place(__u64 *seed)
{
	__u64 x = rnd(seed), page = good.first_page + x % (2 * ARN_CHUNK_PAGES);

	switch (rnd(seed) % 8) {
	case 0:
		return ARN_ROOT_OFF + x % 512;
	case 1:
		return ARN_ROOT_OFF + x % sizeof(struct arn_root);
	case 2:
		return ARN_DIR_OFF + (good.first_page / 256 + x % 16) * 4;
	case 3:
		return ARN_SLOTS_OFF + x % (2 * ARN_SLOT_SIZE);
	case 4:
	case 5:
		return (__u32)(good.page_bias + page * sizeof(struct arn_page) + rnd(seed) % 64);
	case 6:
		return (__u32)(good.state_bias + page * 256 + rnd(seed) % 256);
	default:
		return page * ARN_PAGE_SIZE + rnd(seed) % ARN_PAGE_SIZE;
	}
}

static void scribble(__u32 flags, __u32 turns)
{
	__u64 seed = 77 + flags, at;
	__u32 i, k, n;

	populate(flags);
	for (i = 0; i < turns; i++) {
		n = 1 + rnd(&seed) % (i % 4 ? 3 : 40);
		for (k = 0; k < n; k++) {
			at = place(&seed);
			put(at, value(&seed, *(__u64 *)((char *)arn_base_address(h) + (at & ~7ULL))));
		}
		read_all();
		restore();
	}
	heap_end(h);
}

static void a_heap(void **state)
{
	scribble(0, 600 / ARN_TEST_SCALE);
}

static void a_checked_heap(void **state)
{
	scribble(ARN_CHECKED, 240 / ARN_TEST_SCALE);
}

/* Each word of the root, the directory and a slot in turn, by the values that lead farthest. */
static void each_word_of_the_root(void **state)
{
	static const __u64 values[] = { 0, ~0ULL, 0xffffffff00000000ULL, 0xffffffffULL, 0x100000001ULL };
	__u64 off, end = ARN_ROOT_OFF + sizeof(struct arn_root);
	__u32 i;

	populate(0);
	for (off = ARN_ROOT_OFF; off < ARN_SLOTS_OFF + ARN_SLOT_SIZE; off += 8) {
		if (off == ((end + 7) & ~7ULL))
			off = ARN_DIR_OFF + 16 * 4;
		if (off == ARN_DIR_OFF + 40 * 4)
			off = ARN_SLOTS_OFF;
		for (i = 0; i < NELEMS(values); i++) {
			if ((off / 8 + i) % (10 * ARN_TEST_SCALE))
				continue;
			put(off, values[i]);
			read_all();
			restore();
		}
	}
	heap_end(h);
}

unit_main(t(a_heap), t(a_checked_heap), t(each_word_of_the_root))
