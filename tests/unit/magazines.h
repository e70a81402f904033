/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * magazines.h - a core with magazines of one class, and a compare-and-swap that tests can interrupt.
 *
 * The 64-bit compare-and-swap under the core is this file's: it can lose any number of times, or let
 * somebody in between a load and its swap.
 */
#ifndef ARN_TEST_MAGAZINES_H
#define ARN_TEST_MAGAZINES_H

#include "port.h"

static __u32 cas_lose; /* so many swaps fail */
static void (*cas_before)(void); /* runs once, just before a swap */

static inline __u64 tested_cas64(__u64 *p, __u64 old, __u64 new)
{
	void (*run)(void) = cas_before;

	if (run) {
		cas_before = 0;
		run();
	}
	if (cas_lose) {
		cas_lose--;
		return old + ARN_STACK_TAG_ONE;
	}
	return arn_cas64_full(p, old, new);
}
#define arn_cas64_full tested_cas64

#include "harness.h"

#define CLS 5u

/* A heap of two chunks with magazines for CLS in the depot; a slot keeps none of them near. */
static inline struct core *magazines(__u32 pages)
{
	struct core *c = core_new(32 * MIB);

	cas_lose = 0;
	cas_before = NULL;
	core_grow(c, 2);
	c->r->cls[CLS].near = 0;
	c->r->slots_used = c->r->nslots;
	while (pages--)
		assert_true(arn_more_mags(c->b, c->r, 0, CLS));
	return c;
}

static inline struct arn_cache *cache(struct core *c)
{
	return arn_cache(c->b, 1, CLS);
}

static inline __u64 *full(struct core *c)
{
	return &c->r->depot[CLS].full;
}

static inline __u64 *empty(struct core *c)
{
	return &c->r->depot[CLS].empty;
}

static inline __u32 length(struct core *c, __u64 head)
{
	__u32 m, n = 0;

	for (m = idx_of(head); m; m = arn_mag(c->b, m)->next << ARN_MAG_SHIFT)
		n++;
	return n;
}

/* An object out of the slabs, in the caller's hand. */
static inline __u32 object(struct core *c)
{
	__u32 off = 0, head;

	assert_true(arn_lock(c->r, 0));
	arn_settle(c->b, c->r);
	head = c->r->depot[CLS].partial ?: arn_slab_new(c->b, c->r, CLS);
	assert_int_equal(arn_slab_take(c->b, c->r, CLS, head, 0, 0, 1, &off), 1);
	arn_unlock(c->r);
	mark(c, off, CLS);
	return off;
}

static inline bool push(struct core *c, __u32 off)
{
	return arn_cache_push(c->b, c->r, cache(c), CLS, off, arn_state(c->b, c->r, off));
}

static inline __u32 pop(struct core *c)
{
	_Bool bypass = 0;
	__u32 off = arn_cache_pop(c->b, c->r, cache(c), CLS, &bypass);

	assert_false(bypass);
	if (off)
		mark(c, off, CLS);
	return off;
}

static inline void push_new(struct core *c, __u32 n)
{
	while (n--)
		assert_true(push(c, object(c)));
}

#endif
