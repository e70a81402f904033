/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * alloc.c - allocation calls of user threads: those of native heaps, and the way to shared ones (shared.c).
 *
 * The same steps as the BPF side's (api_bpf.h), except that the heap grows by itself before cached
 * memory is reclaimed.  A claim in arn_claimed is on a native heap, so its hits do not ask.
 */
#include <string.h>
#include "shared.h"
#include "../core/bulk.h"
#include "../core/checked.h"

#define GROW_TRIES (ARN_MAX_CHUNKS + 64)

static void reclaim(struct arn_heap *heap, __u32 slot)
{
	struct arn_root *r = arn_root(heap->base);
	__u32 cls;

	arn_inc64_relaxed(&r->fail[ARN_FAIL_RECLAIM]);
	if (arn_is_checked(r) && slot != ARN_NO_SLOT)
		arn_quarantine_drain(heap->base, r, slot);
	for (cls = 0; cls < ARN_CLASSES; cls++) {
		if (slot != ARN_NO_SLOT)
			arn_cache_drain(heap->base, r, slot, cls);
		arn_depot_drain(heap->base, r, cls);
		arn_settle_pending(heap->base, r, slot);
		arn_class_retire(heap->base, r, slot, cls);
		arn_mags_retire(heap->base, r, slot, cls);
	}
}

/* These too: the very last. */
static void reclaim_emergency(struct arn_heap *heap, __u32 slot)
{
	struct arn_root *r = arn_root(heap->base);
	__u32 cls;

	for (cls = 0; cls < ARN_CLASSES; cls++) {
		arn_emergency_release(heap->base, r, cls);
		arn_settle_pending(heap->base, r, slot);
		arn_class_retire(heap->base, r, slot, cls);
	}
}

/* At a slow path's end: what signal handlers took from the emergency reserves meanwhile. */
static void restock(struct arn_heap *heap, __u32 slot)
{
	struct arn_root *r = arn_root(heap->base);

	__u32 at;

	while (arn_load_relaxed(&r->emergency_low)) {
		at = arn_emergency_hole(heap->base, r);
		if (at > ARN_EMERGENCY_CARVE)
			at = arn_more_slabs(heap->base, r, slot, at - ARN_EMERGENCY_CARVE - 1);
		if (!at)
			continue;
		at = arn_fill(heap->base, r, slot, at - 1, 0);
		if (!at)
			break;
		arn_emergency_put(heap->base, r, at);
	}
}

/* One attempt at memory that neither slot nor depot has: a class's object, or pages. */
static __u32 attempt(struct arn_heap *heap, __u32 slot, __u32 cls, __u32 pages, __u32 align)
{
	struct arn_root *r = arn_root(heap->base);
	__u32 off;

	if (cls >= ARN_CLASSES)
		return arn_large_alloc(heap->base, r, slot, pages, align);
	off = arn_has_caches(r, cls) ? arn_depot_one(heap->base, r, slot, cls) : 0;
	if (off)
		return off;
	if (!arn_has_empty_mag(heap->base, r, slot, cls))
		arn_more_mags(heap->base, r, slot, cls);
	off = arn_refill(heap->base, r, slot, cls);
	if (!off && arn_more_slabs(heap->base, r, slot, cls))
		off = arn_refill(heap->base, r, slot, cls);
	return off;
}

__attribute__((noinline)) __u32 arn_alloc_slow(struct arn_heap *heap, __u32 slot, __u32 cls, __u32 pages, __u32 align)
{
	struct arn_root *r = arn_root(heap->base);
	__u32 off = 0, i, reclaimed = 0;

	for (i = 0; i < GROW_TRIES && !off; i++) {
		arn_settle_pending(heap->base, r, slot);
		off = attempt(heap, slot, cls, pages, align);
		/* A signal handler on top of the lock's holder: more memory would not help it. */
		if (!off && (arn_lock_below(r, slot) || arn_load_relaxed(&arn_pins))) {
			off = cls < ARN_CLASSES ? arn_emergency_take(heap->base, r, cls) : 0;
			if (!off)
				arn_inc64_relaxed(&r->fail[ARN_FAIL_NESTED]);
			goto out;
		}
		if (off || !arn_native_grow(heap))
			continue;
		if (reclaimed == 2)
			break;
		if (reclaimed++)
			reclaim_emergency(heap, slot);
		else
			reclaim(heap, slot);
	}
	if (!off)
		arn_inc64_relaxed(&r->fail[ARN_FAIL_NOMEM]);
	if (arn_emergency_short(heap->base, cls))
		arn_emergency_want(r, cls);
	restock(heap, slot);
out:
	if (!off)
		errno = ENOMEM;
	return off;
}

bool arn_possible(struct arn_heap *heap, size_t size, size_t align)
{
	struct arn_root *r = arn_root(heap->base);

	if (size <= r->arena_bytes / 2 && align <= r->arena_bytes / 2)
		return true;
	arn_inc64_relaxed(&r->fail[ARN_FAIL_SIZE]);
	arn_error(size <= r->arena_bytes / 2 ? EINVAL : E2BIG,
		  "object of %zu bytes at alignment %zu: above half the arena (%llu bytes): create a larger heap", size,
		  align, (unsigned long long)r->arena_bytes);
	return false;
}

/* Everything but a hit in the calling thread's cache.  cls is ARN_CLASSES for a page run. */
static __attribute__((noinline)) void *alloc_rest(struct arn_heap *heap, __u32 cls, size_t size, size_t align)
{
	arn_base b = heap->base;
	struct arn_root *r = arn_root(b);
	__u32 slot, off = 0;
	size_t block = size;
	_Bool bypass = 0;

	if (arn_alive(heap) || (cls >= ARN_CLASSES && !arn_possible(heap, size, align)))
		return NULL;
	slot = arn_my_slot(heap);
	if (arn_is_checked(r)) {
		size += !size; /* a minimal object has a byte to guard */
		block = size + sizeof(struct arn_trailer);
		if (cls < ARN_CLASSES)
			cls = arn_class_aligned(r, block, arn_checked_align(size, align));
	} else if (cls < ARN_CLASSES && slot != ARN_NO_SLOT) { /* this thread's first call had no cache to ask */
		off = arn_cache_pop(b, r, arn_cache(b, slot, cls), cls, &bypass);
		if (bypass)
			arn_inc64_relaxed(&r->fail[ARN_FAIL_BYPASS]);
	}
	if (!off)
		off = arn_alloc_slow(heap, slot, cls, arn_large_pages(block), arn_large_align(size, align));
	if (!off)
		return NULL;
	if (arn_is_checked(r))
		arn_dress(b, r, cls, off, (__u32)size, slot != ARN_NO_SLOT ? arn_slot(b, slot)->tag : 0);
	if (cls < ARN_CLASSES)
		arn_store_relaxed(arn_state(b, r, off), (__u8)(cls + 1));
	return b + off;
}

/*
 * A hit in the calling thread's cache, or everything else as a tail call: so that the compiler saves
 * no register here.  A native pair is compared with allocators that check nothing.
 */
static arn_inline void *alloc_class(struct arn_heap *heap, struct arn_cache *c, __u32 cls, size_t size)
{
	arn_base b = heap->base;
	__u32 top, off;

	if (arn_unlikely(arn_load_relaxed(&c->busy)))
		return alloc_rest(heap, cls, size, 0);
	top = arn_claim_idle(c);
	if (arn_unlikely(!arn_top_has(top))) {
		arn_unclaim(c, top);
		return alloc_rest(heap, cls, size, 0);
	}
	off = arn_load_relaxed(arn_ptr(b, __u32, top));
	arn_unclaim(c, top - 4);
	arn_store_relaxed(arn_state(b, arn_root(b), off), (__u8)(cls + 1));
	return b + off;
}

/* This thread's first call on the heap since it used another one, or a large object. */
static __attribute__((noinline)) void *malloc_rest(struct arn_heap *heap, size_t size)
{
	__u32 cls = ARN_CLASSES, at;
	bool mine = arn_claim_of(arn_load_relaxed(&arn_claimed), heap, &at);

	if (!heap->native)
		return arn_shared_aligned(heap, size, 1);
	if (size <= ARN_MAX_CLASSED && (mine || !arn_alive(heap)))
		cls = arn_class_of(arn_root(heap->base), size);
	if (arn_likely(mine && cls < ARN_CLASSES))
		return alloc_class(heap, arn_claimed_cache(heap, at, cls), cls, size);
	return alloc_rest(heap, cls, size, 0);
}

void *arn_malloc(struct arn_heap *heap, size_t size)
{
	__u64 claim = arn_load_relaxed(&arn_claimed) ^ heap->id;
	__u32 cls, at = (__u32)claim;

	if (arn_unlikely(claim >> 27 != 0) || arn_unlikely(size > ARN_SMALL_MAX))
		return claim >> 27 == 1 ? arn_shared_malloc(heap, size, claim) : malloc_rest(heap, size);
	cls = arn_root(heap->base)->class_small[(size + 15) >> 4];
	return alloc_class(heap, arn_claimed_cache(heap, at, cls), cls, size);
}

void *arn_aligned_alloc(struct arn_heap *heap, size_t align, size_t size)
{
	__u32 cls;

	if (arn_alive(heap))
		return NULL;
	if (!align || align & (align - 1)) {
		arn_inc64_relaxed(&arn_root(heap->base)->fail[ARN_FAIL_SIZE]);
		arn_error(EINVAL, "alignment %zu: not a power of two", align);
		return NULL;
	}
	if (!heap->native)
		return arn_shared_aligned(heap, size, align);
	cls = arn_class_aligned(arn_root(heap->base), size, align);
	return alloc_rest(heap, cls, size, align);
}

void *arn_calloc(struct arn_heap *heap, size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		if (arn_alive(heap))
			return NULL;
		arn_inc64_relaxed(&arn_root(heap->base)->fail[ARN_FAIL_SIZE]);
		arn_error(E2BIG, "calloc of %zu times %zu bytes: overflows", n, size);
		return NULL;
	}
	p = arn_malloc(heap, bytes);
	if (!p || (!heap->native && !arn_shared_mapped(heap, p, bytes)))
		return NULL;
	return memset(p, 0, bytes);
}

/* A free of what is none: says why. */
__attribute__((noinline)) int arn_bad_free(struct arn_heap *heap, __u64 ptr, __u32 why)
{
	static const char *const text[] = {
#define X(id, name, what) [ARN_FAIL_##id] = what,
		ARN_FAIL_STATS(X)
#undef X
	};
	struct arn_root *r = arn_root(heap->base);

	if (why == ARN_FAIL_COUNT)
		why = arn_why_not(heap->base, r, (__u32)ptr);
	arn_refuse(r, ptr, why);
	return arn_error(EINVAL, "free of 0x%llx: %s", (unsigned long long)ptr, text[why]);
}

/* A sound object of a class into another magazine of the slot's cache, or its slab. */
void arn_free_slow(struct arn_heap *heap, __u32 slot, __u32 cls, __u32 off)
{
	arn_base b = heap->base;
	struct arn_root *r = arn_root(b);

	if (slot != ARN_NO_SLOT && arn_has_caches(r, cls)) {
		if (arn_cache_busy(arn_cache(b, slot, cls)))
			arn_inc64_relaxed(&r->fail[ARN_FAIL_BYPASS]);
		else if ((arn_has_empty_mag(b, r, slot, cls) || arn_more_mags(b, r, slot, cls)) &&
			 arn_cache_push(b, r, arn_cache(b, slot, cls), cls, off, arn_state(b, r, off)))
			return;
	}
	arn_store_relaxed(arn_state(b, r, off), 0);
	arn_slab_put(b, r, off);
}

/* Everything but a small object into the calling thread's cache; its state byte is untouched. */
static __attribute__((noinline)) int free_rest(struct arn_heap *heap, __u64 ptr)
{
	arn_base b = heap->base;
	struct arn_root *r = arn_root(b);
	__u32 slot, off, st, why, cls;
	int err;

	if (!heap->native)
		return arn_shared_free_rest(heap, ptr);
	if (!ptr)
		return 0;
	err = arn_alive(heap);
	if (err)
		return err;
	slot = arn_my_slot(heap);
	off = arn_object(b, r, ptr, &st, &why);
	cls = st - 1;
	if (cls >= ARN_PLAIN_CLASSES && st != ARN_STATE_LARGE)
		return arn_bad_free(heap, ptr, st ? ARN_FAIL_FOREIGN : why);
	if (cls >= ARN_PLAIN_CLASSES) {
		if (arn_is_checked(r) && !arn_undress(b, r, cls, off))
			return arn_bad_free(heap, ptr, ARN_FAIL_DOUBLE);
		arn_store_relaxed(arn_state(b, r, off), 0);
		err = arn_large_free(b, r, off);
		arn_settle_pending(b, r, slot);
		return err;
	}
	if (arn_is_checked(r)) {
		err = arn_checked_free(b, r, slot, cls, off, arn_state(b, r, off));
		return err ? arn_error(EINVAL, "free of 0x%llx: freed by somebody else in this instant",
				       (unsigned long long)ptr)
			   : 0;
	}
	arn_free_slow(heap, slot, cls, off);
	return 0;
}

int arn_free(struct arn_heap *heap, void *ptr)
{
	arn_base b = heap->base;
	struct arn_cache *c;
	__u64 granule;
	__u8 *state;
	__u64 claim = arn_load_relaxed(&arn_claimed) ^ heap->id;
	__u32 st, top, at = (__u32)claim;

	if (arn_unlikely(claim >> 27 != 0))
		return claim >> 27 == 1 ? arn_shared_free(heap, (__u64)ptr, claim) : free_rest(heap, (__u64)ptr);
	/* As arn_object: rotated, a misaligned pointer is a granule beyond any heap, as one from elsewhere is. */
	granule = ((__u64)ptr - heap->first) >> ARN_GRANULE_SHIFT | ((__u64)ptr - heap->first)
									    << (64 - ARN_GRANULE_SHIFT);
	if (arn_unlikely(granule >= heap->ngranules))
		return free_rest(heap, (__u64)ptr);
	state = heap->state + granule;
	st = arn_load_relaxed(state);
	if (arn_unlikely(st - 1 >= ARN_PLAIN_CLASSES))
		return free_rest(heap, (__u64)ptr);
	c = arn_claimed_cache(heap, at, st - 1);
	if (arn_unlikely(arn_load_relaxed(&c->busy)))
		return free_rest(heap, (__u64)ptr);
	top = arn_claim_idle(c);
	if (arn_unlikely(!arn_top_room(top, c->room))) { /* full, or none */
		arn_unclaim(c, top);
		return free_rest(heap, (__u64)ptr);
	}
	arn_store_relaxed(state, 0);
	arn_store_relaxed(arn_ptr(b, __u32, top + 4), (__u32)(__u64)ptr);
	arn_unclaim(c, top + 4);
	return 0;
}

size_t arn_usable_size(struct arn_heap *heap, const void *ptr)
{
	struct arn_root *r = arn_root(heap->base);
	__u32 off, st, why;

	if (arn_alive(heap))
		return 0;
	if (!heap->native)
		return arn_shared_usable(heap, ptr);
	off = arn_object(heap->base, r, (__u64)ptr, &st, &why);
	if (st - 1 >= ARN_PLAIN_CLASSES && st != ARN_STATE_LARGE)
		return 0;
	if (arn_is_checked(r))
		return arn_trailer(heap->base, off, arn_block(heap->base, r, st - 1, off))->size;
	if (st - 1 < ARN_PLAIN_CLASSES)
		return r->cls[st - 1].size;
	if (st == ARN_STATE_LARGE)
		return (size_t)arn_desc(heap->base, r, off >> ARN_PAGE_SHIFT)->npages << ARN_PAGE_SHIFT;
	return 0;
}

void *arn_realloc(struct arn_heap *heap, void *ptr, size_t size)
{
	size_t have;
	void *p;

	if (!ptr)
		return arn_malloc(heap, size);
	have = arn_usable_size(heap, ptr);
	if (!have) {
		if (!arn_alive(heap))
			arn_error(EINVAL, "realloc of %p: not an allocated object of this heap", ptr);
		return NULL;
	}
	if (size <= have && size >= have / 2)
		return ptr;
	p = arn_malloc(heap, size);
	if (!p)
		return NULL;
	have = size < have ? size : have;
	if (!heap->native && (!arn_shared_mapped(heap, p, have) || !arn_shared_mapped(heap, ptr, have)))
		return NULL;
	memcpy(p, ptr, have);
	arn_free(heap, ptr);
	return p;
}

int arn_set_tag(struct arn_heap *heap, __u32 tag)
{
	int err = arn_alive(heap);
	__u32 slot;

	if (err)
		return err;
	slot = arn_claim_slot(heap);
	if (slot == ARN_NO_SLOT)
		return -EAGAIN;
	arn_slot(heap->base, slot)->tag = tag;
	return 0;
}

size_t arn_malloc_bulk(struct arn_heap *heap, size_t size, size_t n, void **out)
{
	struct arn_root *r = arn_root(heap->base);
	__u32 cls = ARN_CLASSES, slot, got;
	size_t done = 0;

	if (!heap->native)
		return arn_shared_malloc_bulk(heap, size, n, out);
	if (arn_alive(heap))
		return 0;
	slot = arn_my_slot(heap);
	if (size <= ARN_MAX_CLASSED)
		cls = arn_class_of(r, size);
	while (done < n) {
		got = 0;
		if (cls < ARN_CLASSES && slot != ARN_NO_SLOT)
			got = arn_bulk_pop(heap->base, r, slot, cls, n - done > ~0u ? ~0u : (__u32)(n - done),
					   out + done);
		if (!got) {
			out[done] = arn_malloc(heap, size);
			if (!out[done])
				break;
			got = 1;
		}
		done += got;
	}
	return done;
}

long arn_free_bulk(struct arn_heap *heap, void **ptrs, size_t n)
{
	struct arn_root *r = arn_root(heap->base);
	size_t at = 0, freed = 0;
	__u32 slot, got;
	int err = arn_alive(heap);

	if (err)
		return err;
	if (!heap->native)
		return arn_shared_free_bulk(heap, ptrs, n);
	slot = arn_my_slot(heap);
	while (at < n) {
		got = 0;
		if (slot != ARN_NO_SLOT)
			got = arn_bulk_push(heap->base, r, slot, 0, ARN_PLAIN_CLASSES, ptrs + at,
					    n - at > ~0u ? ~0u : (__u32)(n - at));
		freed += got;
		at += got;
		if (!got && !arn_free(heap, ptrs[at++]))
			freed++;
	}
	return freed || !n ? (long)freed : -EINVAL;
}
