// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * scribble_fuzz.c - a heap's structures overwritten as the input says: walkers and statistics end.
 *
 * The heap is made once and repaired after each input.  Shows that arn_check, arn_get_stats and arn_live
 * neither crash nor hang on any contents (libFuzzer's -timeout sees a hang); that they find corruption
 * is for tests/unit/check_test.c.
 */
#include <string.h>
#include "input.h"
#include "../../src/core/checked.h"

#define OBJECTS 600
#define CHANGES 64

static struct arn_heap *heap;
static struct arn_root good;
static struct {
	__u8 *at, was[8];
	__u32 n;
} undo[CHANGES];
static __u32 undone;

static void make(void)
{
	struct arn_options o = { .sz = sizeof(o), .bytes = 32 * MIB, .flags = ARN_NATIVE, .user_slots = 2 };
	static void *p[OBJECTS];
	__u32 i, x = 1;

	heap = arn_create(&o);
	expect(heap);
	for (i = 0; i < OBJECTS; i++) {
		x = x * 1664525 + 1013904223;
		p[i] = arn_malloc(heap, (x >> 8) % (i % 20 ? 600 : 60000));
	}
	for (i = 0; i < OBJECTS; i++)
		if (i % 3)
			arn_free(heap, p[i]);
	good = *arn_root(heap->base);
}

/* Where: the root, directory, slots, a page's descriptor, a state byte, the contents of a page. */
static __u32 place(struct input *in)
{
	__u32 what = byte(in) % 6, x = word(in), page = good.first_page + x % (3 * ARN_CHUNK_PAGES);

	switch (what) {
	case 0:
		return ARN_ROOT_OFF + x % sizeof(good);
	case 1:
		return ARN_DIR_OFF + x % (64 * 4);
	case 2:
		return ARN_SLOTS_OFF + x % (2 * ARN_SLOT_SIZE);
	case 3:
		return good.page_bias + page * (__u32)sizeof(struct arn_page) + (x >> 16) % sizeof(struct arn_page);
	case 4:
		return good.state_bias + page * 256 + (x >> 16) % 256;
	default:
		return page * ARN_PAGE_SIZE + (x >> 12) % (ARN_PAGE_SIZE - 8);
	}
}

static void change(struct input *in)
{
	__u32 at = place(in), n = 1u << byte(in) % 4, how = byte(in);
	__u8 *p = (__u8 *)heap->base + at;
	__u64 v = 0;

	undo[undone].at = p;
	undo[undone].n = n;
	memcpy(undo[undone++].was, p, n);
	memcpy(&v, p, n);
	switch (how % 4) {
	case 0:
		v = word(in) | (__u64)word(in) << 32;
		break;
	case 1:
		v = good.first_page + word(in) % good.npages;
		break;
	case 2:
		v += (__s8)byte(in);
		break;
	default:
		v ^= 1ULL << byte(in) % 64;
	}
	memcpy(p, &v, n);
}

static int visit(const struct arn_object *o, void *arg)
{
	++*(__u64 *)arg;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, data + size };
	struct arn_stats s;
	__u64 n = 0;
	int err;

	if (!heap)
		make();
	while (in.at < in.end && undone < CHANGES)
		change(&in);
	err = arn_check(heap);
	expect(err == 0 || err == -EUCLEAN);
	err = arn_get_stats(heap, &s, sizeof(s));
	expect(err == 0 || err == -EUCLEAN);
	expect(arn_live(heap, visit, &n) >= -EUCLEAN);
	while (undone) {
		undone--;
		memcpy(undo[undone].at, undo[undone].was, undo[undone].n);
	}
	return 0;
}
