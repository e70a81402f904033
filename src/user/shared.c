/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * shared.c - user threads on a shared heap.
 *
 *   hit            in the thread's own slot: no system call, no atomic instruction
 *   exchange       with the slot's own stacks of magazines (exchange.h): no system call
 *   all the rest   a BPF program (thread_bpf.h) that a system call runs
 *
 * So a process can be killed at any instruction: what it leaves half done is in its slot, and intent.h says
 * how that is settled.  Threads without a slot, and signal handlers on top of a call that has the cache,
 * go past it, to the CPU's.
 */
#include "exchange.h"
#include "shared.h"
#include "../core/bulk.h"
#include "../core/checked.h"
#include "../bpf/sys.h"

#define TAKE_TURNS 8 /* magazines looked at for an object that is one */

static __u32 my_slot(struct arn_heap *heap)
{
	__u32 at;

	return arn_claim_of_shared(arn_load_relaxed(&arn_claimed), heap, &at) ? ARN_CLAIM_SLOT(at)
									      : arn_claim_slot(heap);
}

/* ---- The slot's cache, claimed ---- */

static arn_inline void let_go(struct arn_cache *c)
{
	arn_barrier_compiler();
	arn_store_relaxed(&c->busy, 0);
}

/* Has looked where the cache points.  What is no magazine is forgotten. */
static void look(struct arn_heap *heap, struct arn_cache *c, __u32 slot, __u32 cls)
{
	__u32 top = c->top, prev = c->prev;

	if (top && !arn_top_known(heap, top)) {
		arn_met_corruption(heap);
		top = 0;
	}
	if (prev && !arn_top_known(heap, prev)) {
		arn_met_corruption(heap);
		prev = 0;
	}
	if (top != c->top || prev != c->prev)
		arn_store_relaxed(&c->both, arn_both(top, prev));
	arn_store_relaxed(&arn_shadow_of(heap, slot, cls)->first,
			  top ? arn_top(arn_top_mag(top), 1) : arn_nowhere(slot));
}

/* If that comes to nothing, arn_alloc_past tries harder. */
static bool refill(struct arn_heap *heap, __u32 slot, __u32 cls)
{
	__s64 ret = arn_ask(heap, ARN_OP_REFILL, slot, cls, 0);

	if (ret == -ENOMEM && !arn_ask(heap, ARN_OP_GROW, 0, 0, heap->k->cls[cls].npages + 1u))
		ret = arn_ask(heap, ARN_OP_REFILL, slot, cls, 0);
	return !ret;
}

/* Makes a magazine with objects the loaded one. */
static bool load(struct arn_heap *heap, struct arn_cache *c, __u32 slot, __u32 cls)
{
	if (!arn_thread_load(heap, c, heap->k->cls[cls].near) && !refill(heap, slot, cls))
		return false;
	look(heap, c, slot, cls);
	return arn_top_has(c->top);
}

static bool has_room(struct arn_heap *heap, struct arn_cache *c, __u32 cls)
{
	return c->top && arn_top_room(c->top, heap->k->cls[cls].cap * 4u);
}

/* One with room. */
static bool unload(struct arn_heap *heap, struct arn_cache *c, __u32 slot, __u32 cls)
{
	if (!arn_thread_unload(heap, c, heap->k->cls[cls].near) && arn_ask(heap, ARN_OP_SPILL, slot, cls, 0))
		return false;
	look(heap, c, slot, cls);
	return has_room(heap, c, cls);
}

/* An object's offset, 0: the slot has none. */
static __u32 take(struct arn_heap *heap, struct arn_cache *c, __u32 slot, __u32 cls)
{
	__u32 off, turn;
	__u8 *state;

	for (turn = 0; turn < TAKE_TURNS; turn++) {
		while (arn_top_has(c->top)) {
			off = arn_load_relaxed(arn_ptr(heap->base, __u32, c->top));
			state = arn_state_at(heap, off);
			if (state) {
				arn_store_relaxed(state, (__u8)(cls + 1));
				arn_barrier_compiler();
				arn_store_relaxed(&c->top, c->top - 4);
				return off;
			}
			arn_met_corruption(heap);
			arn_store_relaxed(&c->top, c->top - 4);
		}
		if (!load(heap, c, slot, cls))
			return 0;
	}
	return 0;
}

/* An object that has its state byte goes into the loaded magazine, which has room. */
static arn_inline void give(struct arn_heap *heap, struct arn_cache *c, __u32 top, __u32 off, __u8 *state)
{
	arn_store_relaxed(arn_ptr(heap->base, __u32, top + 4), off);
	arn_linger();
	arn_barrier_compiler();
	arn_store_relaxed(&c->top, top + 4);
	arn_barrier_compiler();
	arn_store_relaxed(state, 0);
}

/* The cache of a class, claimed and looked at.  NULL: what this call interrupted has it. */
static struct arn_cache *claim(struct arn_heap *heap, __u32 slot, __u32 cls)
{
	struct arn_cache *c = arn_cache(heap->base, slot, cls);

	if (arn_load_relaxed(&c->busy)) {
		arn_inc64_relaxed(&arn_root(heap->base)->fail[ARN_FAIL_BYPASS]);
		return NULL;
	}
	arn_claim_idle(c);
	look(heap, c, slot, cls);
	return c;
}

/* ---- Calls ---- */

/* Whether the slot caches objects of this class: there is one, and the heap is not a checked one. */
static bool cached(const struct arn_heap *heap, __u32 slot, __u32 cls)
{
	return slot != ARN_NO_SLOT && cls < ARN_PLAIN_CLASSES && heap->k->cls[cls].cap;
}

static __attribute__((noinline)) void *malloc_rest(struct arn_heap *heap, size_t size, size_t align)
{
	struct arn_cache *c = NULL;
	__u32 cls, slot, off = 0;

	if (arn_alive(heap))
		return NULL;
	slot = my_slot(heap);
	cls = arn_class_aligned(heap->k, size, align);
	if (cls >= ARN_CLASSES && !arn_possible(heap, size, align))
		return NULL;
	if (cached(heap, slot, cls))
		c = claim(heap, slot, cls);
	if (c) {
		off = take(heap, c, slot, cls);
		let_go(c);
	}
	return off ? heap->base + off : arn_alloc_past(heap, slot, size, align);
}

void *arn_shared_aligned(struct arn_heap *heap, size_t size, size_t align)
{
	return malloc_rest(heap, size, align);
}

void *arn_shared_malloc(struct arn_heap *heap, size_t size, __u64 at)
{
	struct arn_shadow *shadow;
	__u32 cls, top, off, in;
	struct arn_cache *c;
	__u64 granule;

	if (arn_unlikely(size > ARN_SMALL_MAX))
		return malloc_rest(heap, size, 1);
	cls = heap->class_small[(size + 15) >> 4];
	at += (__u64)cls * sizeof(struct arn_cache);
	c = (struct arn_cache *)(heap->caches + at);
	shadow = (struct arn_shadow *)(heap->shadow + at);
	if (arn_unlikely(arn_load_relaxed(&c->busy)))
		return malloc_rest(heap, size, 1);
	top = arn_claim_idle(c);
	/* Rotated: an entry of the magazine that we looked at, or a number beyond. */
	in = top - shadow->first;
	if (arn_unlikely((in >> 2 | in << 30) >= ARN_MAG_OBJS))
		goto rest;
	off = arn_load_relaxed(arn_ptr(heap->base, __u32, top));
	granule = off >> ARN_GRANULE_SHIFT | off << (32 - ARN_GRANULE_SHIFT);
	if (arn_unlikely(!arn_granule_known(heap, granule))) {
		size = heap->k->cls[cls].size; /* (so that it needs no register until here) */
		goto rest;
	}
	arn_store_relaxed(heap->state0 + granule, (__u8)(cls + 1));
	arn_linger();
	arn_unclaim(c, top - 4);
	return heap->base + off;
rest:
	let_go(c);
	return malloc_rest(heap, size, 1);
}

int arn_shared_free_rest(struct arn_heap *heap, __u64 ptr)
{
	struct arn_cache *c = NULL;
	__u32 slot, cls = ARN_CLASSES;
	__u8 *state;
	int err;

	if (!ptr)
		return 0;
	err = arn_alive(heap);
	if (err)
		return err;
	slot = my_slot(heap);
	state = arn_state_of(heap, ptr);
	if (state)
		cls = arn_load_relaxed(state) - 1;
	if (cached(heap, slot, cls))
		c = claim(heap, slot, cls);
	if (c && (has_room(heap, c, cls) || unload(heap, c, slot, cls))) {
		give(heap, c, c->top, (__u32)ptr, state);
		let_go(c);
		return 0;
	}
	if (c)
		let_go(c);
	return arn_free_past(heap, ARN_OP_FREE, ptr);
}

int arn_shared_free(struct arn_heap *heap, __u64 ptr, __u64 at)
{
	__u64 granule = arn_granule_of(ptr - (__u64)heap->base);
	struct arn_shadow *shadow;
	__u32 cls, top, in;
	struct arn_cache *c;
	__u8 *state;

	if (arn_unlikely(!arn_granule_known(heap, granule)))
		return arn_shared_free_rest(heap, ptr);
	state = heap->state0 + granule;
	cls = arn_load_relaxed(state) - 1u;
	if (arn_unlikely(cls >= ARN_PLAIN_CLASSES))
		return arn_shared_free_rest(heap, ptr);
	at += (__u64)cls * sizeof(struct arn_cache);
	c = (struct arn_cache *)(heap->caches + at);
	shadow = (struct arn_shadow *)(heap->shadow + at);
	if (arn_unlikely(arn_load_relaxed(&c->busy)))
		return arn_shared_free_rest(heap, ptr);
	top = arn_claim_idle(c);
	in = top + 4 - shadow->first;
	if (arn_unlikely((in >> 2 | in << 30) >= shadow->cap)) {
		let_go(c);
		return arn_shared_free_rest(heap, ptr);
	}
	give(heap, c, top, (__u32)ptr, state);
	let_go(c);
	return 0;
}

/* The top of the magazine that was looked at; 0: somebody has written another since. */
static __u32 loaded(struct arn_heap *heap, const struct arn_cache *c, __u32 slot, __u32 cls)
{
	__u32 top = arn_load_relaxed(&c->top);

	return arn_top_mag(top) == arn_top_mag(arn_shadow_of(heap, slot, cls)->first) ? top : 0;
}

/* Of a granule that has memory, without a call if its chunk was looked at. */
static arn_inline __u8 *state_known(struct arn_heap *heap, __u32 off)
{
	__u64 granule = arn_granule_of(off);

	return arn_likely(arn_granule_known(heap, granule)) ? heap->state0 + granule : arn_state_at(heap, off);
}

/* A stretch of the loaded magazine: marked first, then taken, so that a kill in between takes none. */
static size_t take_many(struct arn_heap *heap, struct arn_cache *c, __u32 slot, __u32 cls, size_t want, void **out)
{
	__u32 top = loaded(heap, c, slot, cls), have = arn_top_count(top), n = want < have ? (__u32)want : have, i, off;
	const __u32 *entry = arn_ptr(heap->base, __u32, top);
	__u8 *state;

	if (arn_unlikely(!n))
		return 0;
	for (i = 0; i < n; i++) {
		off = arn_load_relaxed(entry - i);
		state = state_known(heap, off);
		if (arn_unlikely(!state))
			break;
		arn_store_relaxed(state, (__u8)(cls + 1));
		out[i] = heap->base + off;
	}
	arn_barrier_compiler();
	arn_store_relaxed(&c->top, top - i * 4);
	return i;
}

size_t arn_shared_malloc_bulk(struct arn_heap *heap, size_t size, size_t n, void **out)
{
	__u32 cls = ARN_CLASSES, slot;
	struct arn_cache *c;
	size_t done = 0, got;

	if (arn_alive(heap))
		return 0;
	slot = my_slot(heap);
	if (size <= ARN_MAX_CLASSED)
		cls = arn_class_of(heap->k, size);
	while (done < n) {
		got = 0;
		c = cached(heap, slot, cls) ? claim(heap, slot, cls) : NULL;
		if (c) {
			if (arn_top_has(c->top) || load(heap, c, slot, cls))
				got = take_many(heap, c, slot, cls, n - done, out + done);
			let_go(c);
		}
		if (!got) {
			out[done] = malloc_rest(heap, size, 1);
			if (!out[done])
				break;
			got = 1;
		}
		done += got;
	}
	return done;
}

/*
 * Frees a stretch: objects of one class, as many as the loaded magazine takes.  One after another, so that
 * one that comes twice is seen.
 */
static size_t give_many(struct arn_heap *heap, struct arn_cache *c, __u32 slot, __u32 cls, void **ptrs, size_t n)
{
	__u32 top = loaded(heap, c, slot, cls), have = arn_top_count(top), cap = heap->k->cls[cls].cap, i;
	__u64 granule;
	__u8 *state;

	if (!top)
		return 0;
	for (i = 0; i < n && have + i < cap; i++, top += 4) {
		granule = arn_granule_of((__u64)ptrs[i] - (__u64)heap->base);
		if (arn_likely(arn_granule_known(heap, granule)))
			state = heap->state0 + granule;
		else
			state = arn_state_of(heap, (__u64)ptrs[i]);
		if (arn_unlikely(!state || arn_load_relaxed(state) != cls + 1))
			break;
		give(heap, c, top, (__u32)(__u64)ptrs[i], state);
	}
	return i;
}

long arn_shared_free_bulk(struct arn_heap *heap, void **ptrs, size_t n)
{
	size_t at = 0, freed = 0, got;
	int err = arn_alive(heap);
	struct arn_cache *c;
	__u32 slot, cls;
	__u8 *state;

	if (err)
		return err;
	slot = my_slot(heap);
	while (at < n) {
		got = 0;
		state = arn_state_of(heap, (__u64)ptrs[at]);
		cls = state ? arn_load_relaxed(state) - 1u : ARN_CLASSES;
		c = cached(heap, slot, cls) ? claim(heap, slot, cls) : NULL;
		if (c) {
			if (has_room(heap, c, cls) || unload(heap, c, slot, cls))
				got = give_many(heap, c, slot, cls, ptrs + at, n - at);
			let_go(c);
		}
		freed += got;
		at += got;
		if (!got && !arn_shared_free_rest(heap, (__u64)ptrs[at++]))
			freed++;
	}
	return freed || !n ? (long)freed : -EINVAL;
}
