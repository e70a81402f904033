/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * known.c - what a process knows of a shared heap by itself, and so may touch (shared.h).
 *
 * A chunk is known to be mapped when it was looked at since any was last unmapped (root.unmaps).  The look
 * is a system call that reads from there, and fails where a load would be a fault.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "exchange.h"
#include "shared.h"
#include "../core/checked.h"
#include "../core/percpu_class.h"

static __u64 shadow_bytes(const struct arn_heap *heap)
{
	return (__u64)heap->k->nslots << ARN_SLOT_SHIFT;
}

int arn_shared_open(struct arn_heap *h)
{
	struct arn_root *r = arn_root(h->base), *k = calloc(1, sizeof(*k));
	__u32 cpus = r->percpu_cpus, max = r->percpu_max, i;

	if (!k)
		return arn_error(ENOMEM, "heap: no memory for its handle");
	h->k = k;
	if (cpus > ARN_MAX_SLOTS || max > ARN_PERCPU_MAX_LIMIT)
		return arn_error(EINVAL, "heap at %p: its per-CPU objects have impossible sizes", (void *)h->base);
	k->base = r->base;
	k->flags = r->flags;
	k->state_bias = r->state_bias;
	k->page_bias = r->page_bias;
	k->first_page = r->first_page;
	k->npages = r->npages;
	k->ncpus = r->ncpus;
	k->nslots = r->nslots;
	k->first_granule = r->first_page << (ARN_PAGE_SHIFT - ARN_GRANULE_SHIFT);
	k->ngranules = r->npages << (ARN_PAGE_SHIFT - ARN_GRANULE_SHIFT);
	k->arena_bytes = h->bytes;
	arn_classes_init(k);
	arn_percpu_init(k, cpus, max, 0, 1);
	h->state0 = (__u8 *)h->base + (__u32)(k->state_bias + k->first_granule) - k->first_granule;
	memcpy(h->class_small, k->class_small, sizeof(h->class_small));
	for (i = 0; i < ARN_MAX_CHUNKS; i++)
		h->known[i] = ARN_UNSEEN;
	h->shadow =
		mmap(NULL, shadow_bytes(h), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (h->shadow == MAP_FAILED) {
		h->shadow = NULL;
		return arn_error(ENOMEM, "heap: no memory for its handle");
	}
	h->shadow -= ARN_SLOTS_OFF + ARN_CLAIM_SHARED;
	h->caches = h->base - ARN_CLAIM_SHARED;
	return 0;
}

void arn_shared_close(struct arn_heap *heap)
{
	if (heap->shadow)
		munmap(heap->shadow + ARN_SLOTS_OFF + ARN_CLAIM_SHARED, shadow_bytes(heap));
	free(heap->k);
}

void arn_shared_begin(struct arn_heap *heap, __u32 slot)
{
	__u32 cls;

	for (cls = 0; cls < ARN_CLASSES; cls++)
		*arn_shadow_of(heap, slot, cls) = (struct arn_shadow){ arn_nowhere(slot), heap->k->cls[cls].cap };
}

void arn_met_corruption(struct arn_heap *heap)
{
	arn_inc64_relaxed(&arn_root(heap->base)->fail[ARN_FAIL_CORRUPT]);
}

/* Has the chunk memory, for its pages and for its state bytes? */
static bool chunk_known(struct arn_heap *heap, __u32 chunk)
{
	__u32 now = arn_load_relaxed(&arn_root(heap->base)->unmaps);
	__u64 word;

	if (arn_load_relaxed(&heap->known[chunk]) == now)
		return true;
	if (chunk < arn_first_chunk(heap->k) || chunk >= arn_end_chunk(heap->k) ||
	    !arn_peek(heap->base + arn_chunk_state_off(heap->k, chunk), &word) ||
	    !arn_peek(heap->base + (chunk << ARN_CHUNK_SHIFT), &word))
		return false;
	arn_store_relaxed(&heap->known[chunk], now);
	return true;
}

bool arn_mag_known(struct arn_heap *heap, __u32 m)
{
	return !(m & ARN_TOP_MASK) && chunk_known(heap, m >> ARN_CHUNK_SHIFT);
}

bool arn_shared_mapped(struct arn_heap *heap, const void *ptr, size_t n)
{
	__u64 at = (__u64)ptr - (__u64)heap->base, end = at + n;

	for (; at < end; at = (at | (ARN_CHUNK_SIZE - 1)) + 1) {
		if (at >> 32 || !chunk_known(heap, (__u32)(at >> ARN_CHUNK_SHIFT))) {
			arn_met_corruption(heap);
			arn_error(EUCLEAN, "heap at %p: an object of %zu bytes at %p lies where there is no memory",
				  (void *)heap->base, n, ptr);
			return false;
		}
	}
	return true;
}

/* State byte of an offset where an object may be, NULL: there is no memory.  May have to look. */
__u8 *arn_state_at(struct arn_heap *heap, __u32 off)
{
	__u64 granule = arn_granule_of(off);

	if (granule < ARN_GRANULES && chunk_known(heap, off >> ARN_CHUNK_SHIFT))
		return heap->state0 + granule;
	return NULL;
}

/* The same, of what a user says is an object; NULL too if it is none. */
__u8 *arn_state_of(struct arn_heap *heap, __u64 ptr)
{
	__u8 *state = NULL;

	if (!(ptr >> 32) || !((ptr ^ (__u64)heap->base) >> 32))
		state = arn_state_at(heap, (__u32)ptr);
	return state && arn_load_relaxed(state) ? state : NULL;
}

size_t arn_shared_usable(struct arn_heap *heap, const void *ptr)
{
	__u8 *state = arn_state_of(heap, (__u64)ptr);
	__u32 off = (__u32)(__u64)ptr, st = state ? arn_load_relaxed(state) : 0, size;
	__u64 block = 0;

	if (st - 1 < ARN_PLAIN_CLASSES)
		block = heap->k->cls[st - 1].size;
	else if (st == ARN_STATE_LARGE)
		block = (__u64)arn_load_relaxed(&arn_desc(heap->base, heap->k, off >> ARN_PAGE_SHIFT)->npages)
			<< ARN_PAGE_SHIFT;
	if (off + block > heap->bytes)
		return 0;
	if (!block || !(heap->k->flags & ARN_F_CHECKED))
		return block;
	if (!arn_shared_mapped(heap, arn_trailer(heap->base, off, (__u32)block), sizeof(struct arn_trailer)))
		return 0;
	size = arn_load_relaxed(&arn_trailer(heap->base, off, (__u32)block)->size);
	return size < block ? size : block;
}
