/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * grow_bpf.h - chunks grown and given back from sleepable BPF programs.
 *
 * Before 7.0 the kernel's page calls are refused under an RCU section or with preemption off, and a
 * global function that may sleep is refused in a program that may not, also behind a constant 0: so these
 * are functions of their own, and nothing else calls them but in an object that is built with
 * ARN_PAGES_ANY_CONTEXT.
 */
#ifndef ARN_GROW_BPF_H
#define ARN_GROW_BPF_H

static arn_inline int arn_port_map(arn_base b, __u32 off, __u32 bytes)
{
	struct arn_root __arena *r = arn_root(b);
	__u64 at = r->base | off;

	return bpf_arena_alloc_pages(&ARN_MAP, arn_page_addr(at), bytes >> r->sys_page_shift, -1, 0) ? 0 : -ARN_ENOMEM;
}

static arn_inline void arn_port_unmap(arn_base b, __u32 off, __u32 bytes)
{
	struct arn_root __arena *r = arn_root(b);
	__u64 at = r->base | off;

	bpf_arena_free_pages(&ARN_MAP, arn_page_addr(at), bytes >> r->sys_page_shift);
}

#include "../core/chunk.h"

/* One chunk, by a function of its own: loops around it are cheap to verify. */
__weak int arn__chunk_add(__u32 chunk, __u32 from)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return arn_chunk_add(ARN_HERE, r, chunk, from);
}

__weak int arn__chunk_drop(void)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return arn_shrink_chunk(ARN_HERE, r, bpf_get_smp_processor_id());
}

/* One chunk more: 0, or why not. */
static arn_inline int arn_grow_one(struct arn_root __arena *r)
{
	struct arn_grow g;
	int err;
	__u32 i;

	arn_grow_start(r, &g);
	for (i = arn_opaque(0u); i < ARN_GROW_TURNS && arn_may_loop; i++) {
		err = g.chunk < arn_end_chunk(r) ? arn__chunk_add(g.chunk, g.from) : -ARN_EEXIST;
		if (!err) {
			arn_grow_done(ARN_HERE, r, &g);
			return 0;
		}
		err = arn_grow_next(ARN_HERE, r, &g, err);
		if (err)
			return err;
	}
	return -ARN_EAGAIN;
}

__weak int arn__grow(void)
{
	arn_name_arena();
	return arn_grow_one(arn_root(ARN_HERE));
}

/* bpf_for, because 4096 chunks outlast may_goto's 250 ms. */
__weak int arn_reserve(__u64 bytes)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u64 want = (bytes >> ARN_PAGE_SHIFT) + !!(bytes & (ARN_PAGE_SIZE - 1));
	int i, err;

	arn_name_arena();
	if (!arn_has_heap(r))
		return -ARN_ENOENT;
	if (want > r->npages)
		return -ARN_E2BIG;
	bpf_for(i, 0, ARN_GROW_TURNS) {
		arn__settle();
		if (arn_load_relaxed(&r->pages_free) >= want)
			return 0;
		err = arn__grow();
		if (err)
			return err;
	}
	return -ARN_EAGAIN;
}

__weak int arn_trim(void)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	int i, n, pages = 0;

	arn_name_arena();
	if (!arn_has_heap(r))
		return -ARN_ENOENT;
	arn_reclaim(r);
	arn_reclaim_emergency();
	bpf_for(i, 0, ARN_MAX_CHUNKS) {
		n = arn__chunk_drop();
		if (!n)
			break;
		pages += n;
	}
	return pages;
}

#endif
