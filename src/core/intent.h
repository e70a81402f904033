/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * intent.h - what a killed thread leaves behind in its slot of a shared heap, and how it is settled.
 *
 * A thread may be killed between any two stores.  Its slot is then drained by somebody else, who finds
 * every magazine and object of it in exactly one place, because the thread (src/user/exchange.h, shared.c)
 * keeps to this:
 *
 *   hit        busy = 1; state byte of the object set (free: cleared last); top moved; busy = 0.
 *              So an object whose state byte is set although it lies in the loaded magazine was in the
 *              thread's hands: it is free.
 *   exchange of the two magazines      one store (arn_cache.both)
 *   push       intent = {push, magazine, tag of the stack}; the slot stops naming the magazine; swap;
 *              intent = 0
 *   pop        intent = {pop, magazine, tag}; swap; top = the magazine; intent = 0
 *
 * The tag of a stack near a thread's slot changes with the owner's swaps and with nobody else's
 * (magazine.h), and one at a time, because what nests on a busy cache leaves its stacks alone.  So the tag
 * says whether the swap that the intent announces was done: it is then one more.
 *
 * One intent a cache, not one a nesting level: busy makes the cache its claimer's, with its near stacks.
 * User space touches nothing else of the heap but state bytes of objects that it has or frees.
 */
#ifndef ARN_INTENT_H
#define ARN_INTENT_H

#include "heap.h"

enum arn_intent {
	ARN_INTENT_PUSH_FULL = 1,
	ARN_INTENT_PUSH_EMPTY,
	ARN_INTENT_POP_FULL,
	ARN_INTENT_POP_EMPTY,
};

#define ARN_INTENT_TAG_SHIFT 24
#define ARN_INTENT_OP_SHIFT  56

/* head: of the stack, before the swap. */
static arn_inline __u64 arn_intent(enum arn_intent op, __u64 head, __u32 mag)
{
	return (__u64)op << ARN_INTENT_OP_SHIFT | (head >> ARN_INTENT_TAG_SHIFT & 0xffffffff) << ARN_INTENT_TAG_SHIFT |
	       mag >> ARN_MAG_SHIFT;
}

/* Is it a magazine of this class?  Of a sound heap always. */
static arn_inline _Bool arn_mag_sound(arn_base b, struct arn_root __arena *r, __u32 cls, __u32 m)
{
	struct arn_page __arena *d = arn_desc(b, r, m >> ARN_PAGE_SHIFT);

	return arn_page_valid(r, m >> ARN_PAGE_SHIFT) && arn_load_relaxed(&d->kind) == ARN_PG_MAGS &&
	       arn_load_relaxed(&d->cls) == cls;
}

/* Nobody works on the cache any more: an exchange that was begun is finished, or taken back. */
static arn_inline void arn_intent_settle(arn_base b, struct arn_root __arena *r, struct arn_cache __arena *c, __u32 cls)
{
	__u64 intent = arn_load_relaxed(&c->intent), head;
	__u32 op = (__u32)(intent >> ARN_INTENT_OP_SHIFT), m = (__u32)(intent & ARN_STACK_IDX_MASK) << ARN_MAG_SHIFT;
	_Bool full = op == ARN_INTENT_PUSH_FULL || op == ARN_INTENT_POP_FULL;
	_Bool push = op == ARN_INTENT_PUSH_FULL || op == ARN_INTENT_PUSH_EMPTY;
	_Bool swapped;

	if (!intent)
		return;
	head = full ? arn_load_relaxed(&c->near_full) : arn_load_relaxed(&c->near_empty);
	swapped = ((head ^ intent) >> ARN_INTENT_TAG_SHIFT & 0xffffffff) != 0;
	arn_store_relaxed(&c->intent, 0);
	/* Not pushed, or popped: then it is nowhere else, unless the slot (still, or already) names it. */
	if (push == swapped || arn_top_mag(arn_load_relaxed(&c->top)) == m ||
	    arn_top_mag(arn_load_relaxed(&c->prev)) == m)
		return;
	if (op > ARN_INTENT_POP_EMPTY || !arn_mag_sound(b, r, cls, m)) {
		arn_inc64_relaxed(&r->fail[ARN_FAIL_CORRUPT]);
		return;
	}
	arn_depot_give(b, r, cls, m, arn_mag_count(b, m));
}

/* Likewise the hit: what lies in the loaded magazine is free. */
static arn_inline void arn_hit_settle(arn_base b, struct arn_root __arena *r, struct arn_cache __arena *c, __u32 cls)
{
	__u32 top = arn_load_relaxed(&c->top), m = arn_top_mag(top), n = arn_top_count(top), i, off;

	if (!arn_load_relaxed(&c->busy))
		return;
	arn_store_relaxed(&c->busy, 0);
	if (!arn_mag_sound(b, r, cls, m))
		return;
	for (i = arn_opaque(0u); i < n && i < ARN_MAG_OBJS && arn_may_loop; i++) {
		off = arn_load_relaxed(&arn_mag(b, m)->obj[i & 127]);
		if (arn_page_valid(r, off >> ARN_PAGE_SHIFT))
			arn_store_relaxed(arn_ptr(b, __u8, r->state_bias + (off >> ARN_GRANULE_SHIFT)), 0);
	}
}

/* A stack that is too long to be one is cut off; its tag stays. */
static arn_inline void arn_near_cut(struct arn_root __arena *r, __u64 __arena *head)
{
	__u64 old = arn_load_relaxed(head);

	if (!(old & ARN_STACK_IDX_MASK))
		return;
	arn_inc64_relaxed(&r->fail[ARN_FAIL_CORRUPT]);
	arn_cas64_full(head, old, old & ~ARN_STACK_IDX_MASK);
}

/* What a thread that is gone had cached of a class goes to the depot. */
static arn_inline void arn_slot_settle(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 cls)
{
	struct arn_cache __arena *c = arn_cache(b, slot, cls);

	/* (A checked heap has its quarantine there.) */
	if (arn_class_percpu(cls) && !arn_has_caches(r, cls))
		return;
	arn_intent_settle(b, r, c, cls);
	arn_hit_settle(b, r, c, cls);
	if (arn_load_relaxed(&c->top) == ARN_CACHE_BUSY)
		arn_store_relaxed(&c->top, 0);
	arn_cache_drain(b, r, slot, cls);
	arn_near_release(b, r, slot, cls);
	arn_near_cut(r, &c->near_full);
	arn_near_cut(r, &c->near_empty);
}

#endif
