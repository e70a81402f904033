/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * chunk.h - chunks grown and given back.  Only for who may sleep (BPF: sleepable programs).
 *
 * The port brings
 *   int arn_port_map(b, off, bytes)     kernel pages at [off, off + bytes), zero; 0 or -errno
 *   void arn_port_unmap(b, off, bytes)
 *
 * A directory entry belongs to whoever changed it to BUSY; nothing is locked across a port call.
 * The kernel's page call says NULL for a range that is taken as for memory that is short: a chunk
 * that is refused while its successor is granted is REFUSED and passed over (somebody's pages lie
 * there) until nothing else is left, otherwise it is memory, and the caller hears so.
 */
#ifndef ARN_CHUNK_H
#define ARN_CHUNK_H

#include "directory.h"
#include "heap.h"

#define ARN_MAP_TRIES  3u
#define ARN_GROW_TURNS (ARN_MAX_CHUNKS * 8) /* of a whole search */
#define ARN_GROW_CHUNK 0xffffu /* root.grow_chunk: a chunk, and above it how often one was given back */

/* Kernel pages for a chunk and what describes it.  0, or -ENOMEM with nothing mapped. */
static arn_inline int arn_chunk_map(arn_base b, struct arn_root __arena *r, __u32 chunk)
{
	__u32 state = arn_chunk_state_off(r, chunk), desc = arn_chunk_desc_off(r, chunk);
	_Bool own_desc = (1u << r->sys_page_shift) <= ARN_CHUNK_DESC_BYTES;

	if (arn_port_map(b, state, ARN_CHUNK_STATE_BYTES))
		return -ARN_ENOMEM;
	if (own_desc) {
		if (arn_port_map(b, desc, ARN_CHUNK_DESC_BYTES))
			goto no_desc;
	} else {
		/* Shared with the chunk's neighbours, mapped by the first and kept.  (Native memory is had anew each time.) */
		__u32 page = (desc - arn_chunk_desc_off(r, arn_first_chunk(r))) >> r->sys_page_shift;
		__u32 mask = (1u << r->sys_page_shift) - 1;

		if (!arn_port_map(b, desc & ~mask, mask + 1))
			arn_or64_full(&r->desc_mapped[(page >> 6) & 15], 1ULL << (page & 63));
		if (!(arn_load_relaxed(&r->desc_mapped[(page >> 6) & 15]) >> (page & 63) & 1))
			goto no_desc;
	}
	if (arn_port_map(b, chunk << ARN_CHUNK_SHIFT, ARN_CHUNK_SIZE))
		goto no_pages;
	arn_add64_full(&r->meta_mapped,
		       (ARN_CHUNK_STATE_BYTES + (own_desc ? ARN_CHUNK_DESC_BYTES : 0)) >> r->sys_page_shift);
	return 0;
no_pages:
	if (own_desc)
		arn_port_unmap(b, desc, ARN_CHUNK_DESC_BYTES);
no_desc:
	arn_port_unmap(b, state, ARN_CHUNK_STATE_BYTES);
	return -ARN_ENOMEM;
}

static arn_inline void arn_chunk_unmap(arn_base b, struct arn_root __arena *r, __u32 chunk)
{
	__u32 bytes = ARN_CHUNK_STATE_BYTES;

	arn_port_unmap(b, chunk << ARN_CHUNK_SHIFT, ARN_CHUNK_SIZE);
	arn_port_unmap(b, arn_chunk_state_off(r, chunk), ARN_CHUNK_STATE_BYTES);
	if ((1u << r->sys_page_shift) <= ARN_CHUNK_DESC_BYTES) {
		arn_port_unmap(b, arn_chunk_desc_off(r, chunk), ARN_CHUNK_DESC_BYTES);
		bytes += ARN_CHUNK_DESC_BYTES;
	}
	arn_add64_full(&r->meta_mapped, -(__u64)(bytes >> r->sys_page_shift));
}

/* A chunk can be had (again): searches start there at the latest, also those that passed it already. */
static arn_inline void arn_grow_from(struct arn_root __arena *r, __u32 chunk)
{
	__u32 old, at, i;

	for (i = arn_opaque(0u); i < ARN_DEPOT_TRIES && arn_may_loop; i++) {
		old = arn_load_relaxed(&r->grow_chunk);
		at = old & ARN_GROW_CHUNK;
		at = at < chunk ? at : chunk;
		if (arn_cas32_full(&r->grow_chunk, old, ((old & ~ARN_GROW_CHUNK) + ARN_GROW_CHUNK + 1) | at) == old)
			break;
	}
}

/* Makes a chunk in state from part of the heap.  0; -EEXIST: it is in another one; -ENOMEM. */
static arn_inline int arn_chunk_add(arn_base b, struct arn_root __arena *r, __u32 chunk, __u32 from)
{
	__u32 pg = chunk << (ARN_CHUNK_SHIFT - ARN_PAGE_SHIFT);

	if (arn_load_relaxed(arn_dir(b, chunk)) != from ||
	    arn_cas32_full(arn_dir(b, chunk), from, ARN_CHUNK_BUSY) != from)
		return -ARN_EEXIST;
	if (arn_chunk_map(b, r, chunk)) {
		arn_inc64_relaxed(&r->fail[ARN_FAIL_MAP]);
		arn_xchg32_full(arn_dir(b, chunk), from);
		if (from == ARN_CHUNK_NONE)
			arn_grow_from(r, chunk);
		return -ARN_ENOMEM;
	}
	/* Published before its pages are handed out: who frees one asks the directory. */
	arn_xchg32_full(arn_dir(b, chunk), ARN_CHUNK_MAPPED);
	arn_add64_full(&r->pages_mapped, ARN_CHUNK_PAGES);
	arn_desc(b, r, pg)->npages = ARN_CHUNK_PAGES;
	arn_run_drop(b, r, pg);
	return 0;
}

/* A search for chunks to add, lowest first; then once more among those refused before. */
struct arn_grow {
	__u32 start; /* root.grow_chunk as it was found */
	__u32 from; /* state of what is looked for */
	__u32 chunk; /* the next to try */
	__u32 refused; /* one that the kernel refused, 0: none */
	__u32 tries;
};

static arn_inline void arn_grow_start(struct arn_root __arena *r, struct arn_grow *g)
{
	g->start = arn_load_relaxed(&r->grow_chunk);
	g->chunk = g->start & ARN_GROW_CHUNK;
	if (g->chunk < arn_first_chunk(r))
		g->chunk = arn_first_chunk(r);
	g->refused = g->tries = arn_opaque(0u);
	g->from = arn_opaque((__u32)ARN_CHUNK_NONE);
}

/* g->chunk was added: one refused before it is passed over; the next search starts behind. */
static arn_inline void arn_grow_done(arn_base b, struct arn_root __arena *r, struct arn_grow *g)
{
	if (g->refused)
		arn_cas32_full(arn_dir(b, g->refused), ARN_CHUNK_NONE, ARN_CHUNK_REFUSED);
	/* Unless one was given back meanwhile. */
	if (g->from == ARN_CHUNK_NONE)
		arn_cas32_full(&r->grow_chunk, g->start, (g->start & ~ARN_GROW_CHUNK) | (g->chunk + 1));
}

/*
 * What to do after arn_chunk_add(g->chunk) failed with err: 0, try g->chunk; or why to give up (-ENOMEM
 * the kernel's, -E2BIG the arena is full).
 */
static arn_inline int arn_grow_next(arn_base b, struct arn_root __arena *r, struct arn_grow *g, int err)
{
	g->tries = arn_opaque(g->tries + 1);
	if (err == -ARN_EEXIST || g->tries >= ARN_MAP_TRIES) {
		if (err == -ARN_ENOMEM && g->from == ARN_CHUNK_NONE) {
			if (g->refused)
				return err;
			g->refused = g->chunk;
		}
		g->chunk++;
		g->tries = arn_opaque(0u);
	}
	if (g->chunk < arn_end_chunk(r))
		return 0;
	if (g->refused)
		return -ARN_ENOMEM;
	if (g->from != ARN_CHUNK_NONE)
		return -ARN_E2BIG;
	g->from = arn_opaque((__u32)ARN_CHUNK_REFUSED);
	g->chunk = arn_first_chunk(r);
	return 0;
}

/* Gives one chunk without a used page back to the kernel.  Pages given back, 0: there is none. */
static arn_inline __u32 arn_shrink_chunk(arn_base b, struct arn_root __arena *r, __u32 slot)
{
	__u32 pg = 0, chunk;

	if (arn_lock(r, slot)) {
		pg = arn_run_alloc(b, r, ARN_CHUNK_PAGES, ARN_CHUNK_PAGES);
		if (pg)
			arn_add64_full(&r->pages_mapped, -(__u64)ARN_CHUNK_PAGES);
		arn_unlock(r);
	}
	if (!pg)
		return 0;
	chunk = pg >> (ARN_CHUNK_SHIFT - ARN_PAGE_SHIFT);
	arn_add32_full(&r->unmaps, 1);
	arn_xchg32_full(arn_dir(b, chunk), ARN_CHUNK_BUSY);
	arn_chunk_unmap(b, r, chunk);
	arn_add32_full(&r->unmaps, 1); /* who looked meanwhile looks again */
	arn_xchg32_full(arn_dir(b, chunk), ARN_CHUNK_NONE);
	arn_grow_from(r, chunk);
	return ARN_CHUNK_PAGES;
}

#endif
