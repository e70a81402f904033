/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * native.c - page source of native heaps: an anonymous mapping whose pages come by being touched
 * and go by MADV_DONTNEED.
 */
#include <sys/mman.h>
#include "internal.h"

static inline int arn_port_map(arn_base b, __u32 off, __u32 bytes)
{
	(void)b;
	(void)off;
	(void)bytes;
	return 0;
}

static inline void arn_port_unmap(arn_base b, __u32 off, __u32 bytes)
{
	madvise(b + off, bytes, MADV_DONTNEED);
}

#include "../core/checked.h"
#include "../core/chunk.h"

/* One chunk more: 0, or why not. */
int arn_native_grow(struct arn_heap *heap)
{
	struct arn_root *r = arn_root(heap->base);
	struct arn_grow g;
	int err, i;

	arn_grow_start(r, &g);
	for (i = 0; i < ARN_GROW_TURNS; i++) {
		err = g.chunk < arn_end_chunk(r) ? arn_chunk_add(heap->base, r, g.chunk, g.from) : -EEXIST;
		if (!err) {
			arn_grow_done(heap->base, r, &g);
			return 0;
		}
		err = arn_grow_next(heap->base, r, &g, err);
		if (err)
			return err;
	}
	return -EAGAIN;
}

int arn_native_reserve(struct arn_heap *heap, __u64 bytes)
{
	struct arn_root *r = arn_root(heap->base);
	__u64 want = (bytes >> ARN_PAGE_SHIFT) + !!(bytes & (ARN_PAGE_SIZE - 1));
	int err;

	for (;;) {
		arn_settle_pending(heap->base, r, arn_my_slot(heap));
		if (arn_load_relaxed(&r->pages_free) >= want)
			return 0;
		err = arn_native_grow(heap);
		if (err)
			return err;
	}
}

long long arn_native_trim(struct arn_heap *heap)
{
	struct arn_root *r = arn_root(heap->base);
	__u32 slot = arn_my_slot(heap), cls, n;
	long long bytes = 0;

	arn_drain_idle(heap);
	if (arn_is_checked(r) && slot != ARN_NO_SLOT)
		arn_quarantine_drain(heap->base, r, slot);
	for (cls = 0; cls < ARN_CLASSES; cls++) {
		if (slot != ARN_NO_SLOT)
			arn_cache_drain(heap->base, r, slot, cls);
		arn_depot_drain(heap->base, r, cls);
		arn_emergency_release(heap->base, r, cls);
		arn_settle_pending(heap->base, r, slot);
		arn_class_retire(heap->base, r, slot, cls);
		arn_mags_retire(heap->base, r, slot, cls);
	}
	arn_settle_pending(heap->base, r, slot);
	while ((n = arn_shrink_chunk(heap->base, r, slot)))
		bytes += (long long)n << ARN_PAGE_SHIFT;
	return bytes;
}
