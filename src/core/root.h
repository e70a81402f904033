/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * root.h - the root made and recognised: geometry from the size of the arena and the machine.
 *
 * Host only: the creator writes it before anybody else knows the heap; magic last.
 */
#ifndef ARN_ROOT_H
#define ARN_ROOT_H

#include "directory.h"
#include "percpu_class.h"

struct arn_geometry {
	__u64 arena_bytes; /* a multiple of 1 MiB */
	__u32 ncpus;
	__u32 nslots;
	__u32 sys_page_shift;
	__u32 flags;
	__u32 percpu_cpus; /* copies of a per-CPU object */
	__u32 percpu_max; /* bytes of the largest */
	__u64 percpu_budget; /* for what all slots keep of a class of them */
};

#define ARN_ROUND_UP(x, to) (((x) + (to) - 1) / (to) * (to))

/* Bytes from ARN_ROOT_OFF that are mapped before the first chunk: root, directory, CPU slots. */
static inline __u32 arn_root_bytes(const struct arn_geometry *g)
{
	return ARN_ROUND_UP(ARN_SLOTS_OFF - ARN_ROOT_OFF + g->ncpus * ARN_SLOT_SIZE, 1u << g->sys_page_shift);
}

/* Where tables and heap lie: state and desc are offsets, first and heap count chunks. */
struct arn_regions {
	__u32 state, desc, first, heap;
};

/* As many heap chunks as there is room for, at the arena's end: so its upper half can be one object. */
static inline struct arn_regions arn_regions(__u32 total, __u32 nslots)
{
	struct arn_regions g = { .state = ARN_ROUND_UP(ARN_SLOTS_OFF + nslots * ARN_SLOT_SIZE, ARN_CHUNK_SIZE) };

	for (g.heap = total; g.heap; g.heap--) {
		g.desc = g.state + g.heap * ARN_CHUNK_STATE_BYTES;
		g.first = ARN_ROUND_UP(g.desc + g.heap * ARN_CHUNK_DESC_BYTES, ARN_CHUNK_SIZE) >> ARN_CHUNK_SHIFT;
		if (g.first + g.heap <= total)
			break;
	}
	g.first = total - g.heap;
	return g;
}

static inline __u32 arn_regions_state_bias(const struct arn_regions *g)
{
	return g->state - (g->first << (ARN_CHUNK_SHIFT - ARN_GRANULE_SHIFT));
}

static inline __u32 arn_regions_page_bias(const struct arn_regions *g)
{
	return g->desc - g->first * ARN_CHUNK_PAGES * (__u32)sizeof(struct arn_page);
}

/* 0; -EINVAL: the arena is too small for its tables. The memory from ARN_ROOT_OFF on is zero. */
static inline int arn_root_init(arn_base b, const struct arn_geometry *g)
{
	struct arn_root *r = arn_root(b);
	struct arn_regions at = arn_regions((__u32)(g->arena_bytes >> ARN_CHUNK_SHIFT), g->nslots);

	if (!at.heap)
		return -ARN_EINVAL;
	r->base = (__u64)(unsigned long)b;
	r->version = ARN_LAYOUT_VERSION;
	r->flags = g->flags | ARN_TSO_HERE;
	r->arena_bytes = g->arena_bytes;
	r->first_page = at.first * ARN_CHUNK_PAGES;
	r->npages = at.heap * ARN_CHUNK_PAGES;
	r->first_granule = r->first_page << (ARN_PAGE_SHIFT - ARN_GRANULE_SHIFT);
	r->ngranules = r->npages << (ARN_PAGE_SHIFT - ARN_GRANULE_SHIFT);
	r->state_bias = arn_regions_state_bias(&at);
	r->page_bias = arn_regions_page_bias(&at);
	r->ncpus = g->ncpus;
	r->nslots = g->nslots;
	r->slots_used = g->ncpus;
	r->sys_page_shift = g->sys_page_shift;
	r->meta_pages = arn_root_bytes(g) >> g->sys_page_shift;
	r->grow_chunk = at.first;
	r->unmaps = 1;
	arn_classes_init(r);
	arn_percpu_init(r, g->percpu_cpus, g->percpu_max, g->percpu_budget, g->ncpus ? g->ncpus : g->nslots);
	arn_xchg64_full(&r->magic, ARN_MAGIC);
	return 0;
}

/*
 * Whether a root (or a copy of it) of the arena at b can be believed: NULL, or what is wrong with it.
 */
static inline const char *arn_root_wrong(arn_base b, const struct arn_root *r, __u64 arena_bytes)
{
	struct arn_regions at;

	if (r->magic != ARN_MAGIC)
		return "it holds no heap (no magic at 16 MiB)";
	if (r->version != ARN_LAYOUT_VERSION)
		return "its layout version is another one than this library's";
	if (r->base != (__u64)(unsigned long)b || r->arena_bytes != arena_bytes)
		return "its root names another address or size";
	if (r->nslots > ARN_MAX_SLOTS || r->ncpus > r->nslots || r->sys_page_shift < 12 || r->sys_page_shift > 16)
		return "its geometry contradicts itself";
	if (!r->percpu_cpus || r->percpu_cpus > ARN_MAX_SLOTS || r->percpu_cpus < r->ncpus ||
	    r->percpu_max < ARN_PERCPU_MAX || r->percpu_max > ARN_PERCPU_MAX_LIMIT)
		return "its per-CPU objects have impossible sizes";
	at = arn_regions((__u32)(arena_bytes >> ARN_CHUNK_SHIFT), r->nslots);
	if (!at.heap || r->first_page != at.first * ARN_CHUNK_PAGES || r->npages != at.heap * ARN_CHUNK_PAGES ||
	    r->state_bias != arn_regions_state_bias(&at) || r->page_bias != arn_regions_page_bias(&at))
		return "its geometry contradicts itself";
	return 0;
}

#endif
