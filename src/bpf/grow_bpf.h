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

#ifdef ARN_TEST_MAP_FAILS /* for the test that has the kernel refuse pages at random */
	if (ARN_TEST_MAP_FAILS)
		return -ARN_ENOMEM;
#endif
	return bpf_arena_alloc_pages(&ARN_MAP, arn_page_addr(at), bytes >> r->sys_page_shift, -1, 0) ? 0 : -ARN_ENOMEM;
}

static arn_inline void arn_port_unmap(arn_base b, __u32 off, __u32 bytes)
{
	struct arn_root __arena *r = arn_root(b);
	__u64 at = r->base | off;

	bpf_arena_free_pages(&ARN_MAP, arn_page_addr(at), bytes >> r->sys_page_shift);
}

#include "../core/chunk.h"
#include "ask_bpf.h"

extern void bpf_local_irq_save___arn(unsigned long *flags) __weak __ksym;
extern void bpf_local_irq_restore___arn(unsigned long *flags) __weak __ksym;

/*
 * What has been mapped joins the free runs, as by arn__settle.  Interrupts wait (from 6.14 on), a page at a
 * time: the programs that growth is for run in them, and on top of the lock's holder they would get next to
 * nothing.
 */
__weak int arn__settle_one_quietly(void)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	unsigned long flags;
	int done = 0;

	arn_name_arena();
	if (!arn_load_relaxed(&r->pending))
		return 0;
	if (bpf_ksym_exists(bpf_local_irq_save___arn))
		bpf_local_irq_save___arn(&flags);
	if (arn_lock(r, bpf_get_smp_processor_id())) {
		arn_settle_one(ARN_HERE, r);
		arn_unlock(r);
		done = 1;
	}
	if (bpf_ksym_exists(bpf_local_irq_save___arn))
		bpf_local_irq_restore___arn(&flags);
	return done;
}

__weak int arn__settle_quietly(void)
{
	arn_name_arena();
	while (arn__settle_one_quietly() && arn_may_loop)
		;
	return 0;
}

static arn_inline void arn_growth_failed(struct arn_root __arena *r)
{
	arn_count(r, ARN_COUNT_GROW_FAILED);
	arn_ask_later(r, bpf_ktime_get_ns());
}

/* One chunk, by a function of its own: loops around it are cheap to verify. */
__weak int arn__chunk_add(__u32 chunk, __u32 from)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return arn_chunk_add(ARN_HERE, r, chunk, from);
}

#ifndef ARN_PAGES_ANY_CONTEXT
__weak int arn__chunk_drop(void)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return arn_shrink_chunk(ARN_HERE, r, bpf_get_smp_processor_id());
}
#endif

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
		arn__settle_quietly();
		if (arn_load_relaxed(&r->pages_free) >= want)
			return 0;
		err = arn__grow();
		if (err)
			return err;
	}
	return -ARN_EAGAIN;
}

/* What somebody asked for below the low mark.  0, or why the mark was not reached. */
__weak int arn__grow_asked(void)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	int i, err = 0;

	arn_name_arena();
	if (!arn_has_heap(r))
		return -ARN_ENOENT;
	arn_ask_heard(r);
	if (!arn_below_low(r))
		return 0;
	bpf_for(i, 0, ARN_GROW_TURNS) {
		arn__settle_quietly();
		if (arn_load_relaxed(&r->pages_free) >= arn_growth_goal(r))
			return 0;
		err = arn__grow();
		if (err)
			break;
		arn_count(r, ARN_COUNT_GROWN);
	}
	if (!arn_below_low(r))
		return 0;
	arn_growth_failed(r);
	return err;
}

#ifndef ARN_PAGES_ANY_CONTEXT
/* Gives back at most most chunks while keep pages stay free.  Returns pages given back. */
__weak int arn__shrink(__u32 keep, __u32 most)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 pages = arn_opaque(0u);
	int i, n;

	arn_name_arena();
	bpf_for(i, 0, ARN_MAX_CHUNKS) {
		if ((__u32)i >= most || arn_load_relaxed(&r->pages_free) < (__u64)keep + ARN_CHUNK_PAGES)
			break;
		n = arn__chunk_drop();
		if (!n)
			break;
		pages += n;
	}
	if (pages)
		arn_ask_heard(r); /* there is memory again: nobody has to wait out a refusal */
	return pages;
}
#endif

__weak int arn_trim(void)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	if (!arn_has_heap(r))
		return -ARN_ENOENT;
	arn_reclaim(r);
	arn_reclaim_emergency();
#ifdef ARN_PAGES_ANY_CONTEXT
	/*
	 * From who may not sleep the kernel takes pages back later, by a worker: a process would go on seeing the old
	 * ones where the chunk has been mapped again since.
	 */
	return 0;
#else
	return arn__shrink(arn_load_relaxed(&r->low_pages), ARN_MAX_CHUNKS);
#endif
}

#endif
