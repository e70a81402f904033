/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * root.h - the root made and recognised: geometry from the size of the arena and the machine.
 *
 * Host only: the creator writes it before anybody else knows the heap; magic last.
 */
#ifndef ARN_ROOT_H
#define ARN_ROOT_H

#include "directory.h"
#include "sizeclass.h"

struct arn_geometry {
	__u64 arena_bytes; /* a multiple of 1 MiB */
	__u32 ncpus;
	__u32 nslots;
	__u32 sys_page_shift;
	__u32 flags;
};

#define ARN_ROUND_UP(x, to) (((x) + (to) - 1) / (to) * (to))

/* Bytes from ARN_ROOT_OFF that are mapped before the first chunk: root, directory, CPU slots. */
static inline __u32 arn_root_bytes(const struct arn_geometry *g)
{
	return ARN_ROUND_UP(ARN_SLOTS_OFF - ARN_ROOT_OFF + g->ncpus * ARN_SLOT_SIZE, 1u << g->sys_page_shift);
}

/* 0; -EINVAL: the arena is too small for its tables. The memory from ARN_ROOT_OFF on is zero. */
static inline int arn_root_init(arn_base b, const struct arn_geometry *g)
{
	struct arn_root *r = arn_root(b);
	__u32 total = (__u32)(g->arena_bytes >> ARN_CHUNK_SHIFT), first, heap, state, desc;

	state = ARN_ROUND_UP(ARN_SLOTS_OFF + g->nslots * ARN_SLOT_SIZE, ARN_CHUNK_SIZE);
	for (heap = total; heap; heap--) {
		desc = state + heap * ARN_CHUNK_STATE_BYTES;
		first = ARN_ROUND_UP(desc + heap * ARN_CHUNK_DESC_BYTES, ARN_CHUNK_SIZE) >> ARN_CHUNK_SHIFT;
		if (first + heap <= total)
			break;
	}
	if (!heap)
		return -ARN_EINVAL;
	r->base = (__u64)(unsigned long)b;
	r->version = ARN_LAYOUT_VERSION;
	r->flags = g->flags;
	r->arena_bytes = g->arena_bytes;
	r->first_page = first << (ARN_CHUNK_SHIFT - ARN_PAGE_SHIFT);
	r->npages = heap * ARN_CHUNK_PAGES;
	r->state_bias = state - (first << (ARN_CHUNK_SHIFT - ARN_GRANULE_SHIFT));
	r->page_bias = desc - r->first_page * (__u32)sizeof(struct arn_page);
	r->ncpus = g->ncpus;
	r->nslots = g->nslots;
	r->sys_page_shift = g->sys_page_shift;
	r->meta_pages = arn_root_bytes(g) >> g->sys_page_shift;
	r->grow_chunk = first;
	arn_classes_init(r);
	arn_xchg64_full(&r->magic, ARN_MAGIC);
	return 0;
}

/*
 * Whether a root (or a copy of it) of the arena at b can be believed: NULL, or what is wrong with it.
 */
static inline const char *arn_root_wrong(arn_base b, const struct arn_root *r, __u64 arena_bytes)
{
	__u64 total = arena_bytes >> ARN_PAGE_SHIFT;

	if (r->magic != ARN_MAGIC)
		return "it holds no heap (no magic at 16 MiB)";
	if (r->version != ARN_LAYOUT_VERSION)
		return "its layout version is another one than this library's";
	if (r->base != (__u64)(unsigned long)b || r->arena_bytes != arena_bytes)
		return "its root names another address or size";
	if (r->nslots > (1u << 14) || r->ncpus > r->nslots || r->first_page < (ARN_SLOTS_OFF >> ARN_PAGE_SHIFT) ||
	    r->npages > total || r->first_page > total || r->first_page + r->npages > total ||
	    r->first_page % ARN_CHUNK_PAGES || r->npages % ARN_CHUNK_PAGES || r->sys_page_shift < 12 ||
	    r->sys_page_shift > 16)
		return "its geometry contradicts itself";
	return 0;
}

#endif
