/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * exchange.h - a thread's slot of a shared heap: whole magazines between its cache and its own two stacks.
 *
 * The caller has claimed the cache (busy).  After every store here, whoever finds the thread dead finds
 * each magazine in one place (intent.h says how); so the order of the stores is what this file is about,
 * and barriers keep the compiler to it.
 *
 * Whatever the slot says is looked at before it is used as an address: mag_known says whether this process
 * may read and write a magazine there.
 */
#ifndef ARN_EXCHANGE_H
#define ARN_EXCHANGE_H

#include "internal.h"
#include "../core/intent.h"

bool arn_mag_known(struct arn_heap *heap, __u32 m); /* shared.c */

/* A top that names no magazine of ours is none. */
static inline bool arn_top_known(struct arn_heap *heap, __u32 top)
{
	return top && arn_top_count(top) * 4 == (top & ARN_TOP_MASK) - ARN_TOP_EMPTY &&
	       arn_mag_known(heap, arn_top_mag(top));
}

static inline __u64 arn_both(__u32 top, __u32 prev)
{
	return (__u64)prev << 32 | top;
}

/*
 * prev's magazine goes onto a stack, and top's becomes prev, which leaves none loaded.  False: nothing was
 * done (reclaimers were faster 64 times, or there is no stack there).
 */
static inline bool arn_thread_push(arn_base b, struct arn_cache *c, __u64 *stack, enum arn_intent op)
{
	__u32 top = c->top, prev = c->prev, m = arn_top_mag(prev), i;
	__u64 old = arn_load_relaxed(stack), new;

	arn_store_relaxed(&arn_mag(b, m)->n, arn_top_count(prev));
	arn_store_relaxed(&c->intent, arn_intent(op, old, m));
	arn_barrier_compiler();
	arn_store_relaxed(&c->both, arn_both(0, top));
	for (i = 0; i < ARN_DEPOT_TRIES; i++) {
		old = arn_load_relaxed(stack);
		arn_store_relaxed(&arn_mag(b, m)->next, (__u32)(old & ARN_STACK_IDX_MASK));
		new = ((old & ~ARN_STACK_IDX_MASK) + ARN_STACK_TAG_ONE) | (m >> ARN_MAG_SHIFT);
		arn_linger();
		if (arn_cas64_full(stack, old, new) == old)
			break;
	}
	if (i == ARN_DEPOT_TRIES)
		arn_store_relaxed(&c->both, arn_both(top, prev));
	arn_barrier_compiler();
	arn_linger();
	arn_store_relaxed(&c->intent, 0);
	return i < ARN_DEPOT_TRIES;
}

/* A magazine from a stack becomes the loaded one; there is none.  empty: its count is 0, whatever it says. */
static inline bool arn_thread_pop(struct arn_heap *heap, struct arn_cache *c, __u64 *stack, enum arn_intent op)
{
	arn_base b = heap->base;
	__u64 old, new;
	__u32 m, i;

	for (i = 0; i < ARN_DEPOT_TRIES; i++) {
		old = arn_load_relaxed(stack);
		m = (__u32)(old & ARN_STACK_IDX_MASK) << ARN_MAG_SHIFT;
		if (!m || !arn_mag_known(heap, m))
			break;
		new = ((old & ~ARN_STACK_IDX_MASK) + ARN_STACK_TAG_ONE) |
		      (arn_load_relaxed(&arn_mag(b, m)->next) & ARN_STACK_IDX_MASK);
		arn_store_relaxed(&c->intent, arn_intent(op, old, m));
		arn_linger();
		if (arn_cas64_full(stack, old, new) != old)
			continue;
		arn_linger();
		arn_store_relaxed(&c->top, arn_top(m, op == ARN_INTENT_POP_EMPTY ? 0 : arn_mag_count(b, m)));
		arn_barrier_compiler();
		arn_store_relaxed(&c->intent, 0);
		return true;
	}
	arn_store_relaxed(&c->intent, 0);
	return false;
}

/* Before a pop: the loaded magazine, which is used up, makes room.  near: what a stack is to hold at most. */
static inline bool arn_thread_retire(struct arn_heap *heap, struct arn_cache *c, __u64 *stack, __u32 *have,
				     enum arn_intent op, __u32 near)
{
	if (!c->top)
		return true;
	if (!c->prev) {
		arn_store_relaxed(&c->both, arn_both(0, c->top));
		return true;
	}
	if (*have >= near || !arn_thread_push(heap->base, c, stack, op))
		return false;
	arn_store_relaxed(have, *have + 1);
	return true;
}

/*
 * The loaded magazine is spent: makes one with objects the loaded one.  False: the slot has none, or its
 * empty ones are to be fetched.
 */
static inline bool arn_thread_load(struct arn_heap *heap, struct arn_cache *c, __u32 near)
{
	if (arn_top_has(c->prev)) {
		arn_store_relaxed(&c->both, arn_both(c->prev, c->top));
		return true;
	}
	if (!arn_depot_has(&c->near_full) ||
	    !arn_thread_retire(heap, c, &c->near_empty, &c->near_empty_n, ARN_INTENT_PUSH_EMPTY, near) ||
	    !arn_thread_pop(heap, c, &c->near_full, ARN_INTENT_POP_FULL))
		return false;
	arn_store_relaxed(&c->near_n, c->near_n ? c->near_n - 1 : 0);
	return true;
}

/* The loaded magazine is full: makes an empty one the loaded one.  False: as above. */
static inline bool arn_thread_unload(struct arn_heap *heap, struct arn_cache *c, __u32 near)
{
	if (c->prev && !arn_top_has(c->prev)) {
		arn_store_relaxed(&c->both, arn_both(c->prev, c->top));
		return true;
	}
	if (!arn_depot_has(&c->near_empty) ||
	    !arn_thread_retire(heap, c, &c->near_full, &c->near_n, ARN_INTENT_PUSH_FULL, near) ||
	    !arn_thread_pop(heap, c, &c->near_empty, ARN_INTENT_POP_EMPTY))
		return false;
	arn_store_relaxed(&c->near_empty_n, c->near_empty_n ? c->near_empty_n - 1 : 0);
	return true;
}

#endif
