/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * thread_bpf.h - what a user thread of a shared heap has the kernel do for it.
 *
 * A thread touches its own slot only.  Everything that is others' too - depot, slabs, page runs, the lock,
 * new memory - is done here, by a program that its system call runs: that ends whatever happens to the
 * process, so nothing is ever left half done by a kill.  While it runs, the thread does not: so a program
 * may work on its caller's slot as the owner.
 *
 * Slots are claimed, given back and reaped here too, because only here a thread has a name that means the
 * same in every PID namespace.
 */
#ifndef ARN_THREAD_BPF_H
#define ARN_THREAD_BPF_H

#include "../core/intent.h"
#include "sys.h"

#define ARN_BATCH 8 /* magazines ahead of need that a visit brings */

struct task_struct {
	int exit_state;
	__u64 start_time;
	__u64 self_exec_id;
} __attribute__((preserve_access_index));

extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *p) __ksym __weak;

static arn_inline _Bool arn_is_mine(__u32 slot)
{
	return arn_load_relaxed(&arn_slot(ARN_HERE, slot)->owner) == bpf_get_current_pid_tgid();
}

/* ---- Slots ---- */

/* Memory for a slot.  It is never given back, so that its contents can be read at any time. */
__weak int arn__slot_map(__u32 slot)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_slot __arena *s = arn_slot(ARN_HERE, slot);
	__u64 at;

	arn_name_arena();
	if (arn_load_relaxed(&s->mapped) == 1)
		return 0;
	at = r->base | (ARN_SLOTS_OFF + (slot << ARN_SLOT_SHIFT));
	at &= ~((1ULL << (r->sys_page_shift & 31)) - 1);
	if (bpf_arena_alloc_pages(&ARN_MAP, arn_page_addr(at), 1, -1, 0))
		arn_add64_full(&r->meta_mapped, 1);
	/* Refused, it may have come with a neighbour's (a large kernel page), or at this moment. */
	arn_store_relaxed(&s->mapped, 1);
	return arn_load_relaxed(&s->mapped) == 1 ? 0 : -ARN_ENOMEM;
}

/* A slot for the calling thread: 1; 0: it is taken. */
__weak int arn__slot_claim(__u32 slot)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_slot __arena *s = arn_slot(ARN_HERE, slot);
	struct task_struct *me = (struct task_struct *)bpf_get_current_task_btf();
	__u32 i, used;

	arn_name_arena();
	if (arn_cas64_full(&s->owner, 0, ARN_OWNER_HELD) != 0)
		return 0;
	s->owner_start = me->start_time;
	s->owner_exec = me->self_exec_id;
	/* Only a hint how far to look, raised before anything lies near the slot. */
	for (i = arn_opaque(0u); i < ARN_DEPOT_INSIST && arn_may_loop; i++) {
		used = arn_load_relaxed(&r->slots_used);
		if (used > slot || arn_cas32_full(&r->slots_used, used, slot + 1) == used)
			break;
	}
	arn_xchg64_full(&s->owner, bpf_get_current_pid_tgid());
	return 1;
}

__weak int arn__slot_settle(__u32 slot, __u32 cls)
{
	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return -ARN_EINVAL;
	arn_slot_settle(ARN_HERE, arn_root(ARN_HERE), slot, cls);
	return 0;
}

/* A slot's owner goes, or is gone: everything in it to the depot.  0: somebody else is at it. */
__weak int arn__slot_drain(__u32 slot, __u64 owner)
{
	struct arn_slot __arena *s = arn_slot(ARN_HERE, slot);
	__u32 cls;

	arn_name_arena();
	if (arn_cas64_full(&s->owner, owner, ARN_OWNER_HELD) != owner)
		return 0;
	for (cls = arn_opaque(0u); cls < ARN_CLASSES && arn_may_loop; cls++)
		arn__slot_settle(slot, cls);
	s->tag = 0;
	arn_xchg64_full(&s->owner, cls >= ARN_CLASSES ? 0 : ARN_OWNER_DEAD);
	return cls >= ARN_CLASSES;
}

/* Is a thread gone?  One that has begun to exit or to execute another program is. */
__weak int arn__thread_gone(__u32 tid, __u64 start, __u64 exec)
{
	struct task_struct *t = bpf_task_from_pid((__s32)tid);
	int gone;

	if (!t)
		return 1;
	gone = t->exit_state || t->start_time != start || t->self_exec_id != exec;
	bpf_task_release(t);
	return gone;
}

/* Is the owner of a slot gone? */
__weak int arn__slot_dead(__u32 slot)
{
	struct arn_slot __arena *s = arn_slot(ARN_HERE, slot);
	__u64 owner = arn_load_relaxed(&s->owner);

	arn_name_arena();
	if (owner < 1ULL << 32) /* or what nobody wrote */
		return owner && owner != ARN_OWNER_HELD;
	return arn__thread_gone(owner, s->owner_start, s->owner_exec);
}

/* ---- Magazines, for the owner of a slot ---- */

static arn_inline __u64 __arena *arn_near_stack(struct arn_cache __arena *c, __u32 full)
{
	return full ? &c->near_full : &c->near_empty;
}

static arn_inline __u32 __arena *arn_near_count(struct arn_cache __arena *c, __u32 full)
{
	return full ? &c->near_n : &c->near_empty_n;
}

/* A magazine onto one of a thread's stacks while it has fewer than most, else into the depot. */
__weak int arn__near_put(__u32 slot, __u32 cls, __u32 top, __u32 most)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_cache __arena *c;
	__u32 m = arn_top_mag(top), n = arn_top_count(top), have;

	arn_name_arena();
	if (cls >= ARN_CLASSES || !m)
		return 0;
	c = arn_cache(ARN_HERE, slot, cls);
	have = arn_load_relaxed(arn_near_count(c, n));
	if (have < most && arn_depot_push(ARN_HERE, arn_near_stack(c, n), m, n, ARN_DEPOT_TRIES))
		arn_store_relaxed(arn_near_count(c, n), have + 1);
	else
		arn_depot_give(ARN_HERE, r, cls, m, n);
	return 0;
}

/* The top of one of the depot's, full or empty, 0: it has none. */
__weak __u32 arn__depot_get(__u32 cls, __u32 full)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 m;

	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return 0;
	m = arn_depot_pop(ARN_HERE, full ? &r->depot[cls].full : &r->depot[cls].empty);
	return m ? arn_top(m, full ? arn_mag_count(ARN_HERE, m) : 0) : 0;
}

/* Where a thread's stack is as long as it may be, half of it goes to the depot. */
__weak int arn__near_halve(__u32 slot, __u32 cls, __u32 full)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_cache __arena *c;
	__u32 i, m, n;

	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return 0;
	c = arn_cache(ARN_HERE, slot, cls);
	n = arn_load_relaxed(arn_near_count(c, full));
	if (n < r->cls[cls].near)
		return 0;
	for (i = arn_opaque(0u); i < n - n / 2 && i < ARN_NEAR_MOST && arn_may_loop; i++) {
		m = arn_depot_pop(ARN_HERE, arn_near_stack(c, full));
		if (!m)
			break;
		arn_depot_give(ARN_HERE, r, cls, m, full ? arn_mag_count(ARN_HERE, m) : 0);
	}
	arn_store_relaxed(arn_near_count(c, full), i < n - n / 2 ? 0 : n / 2);
	return 0;
}

/* More of the depot's, ahead of need: half of what the stack may hold. */
__weak int arn__near_more(__u32 slot, __u32 cls, __u32 full)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 i, top, most;

	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return 0;
	most = r->cls[cls].near / 2;
	for (i = arn_opaque(0u); i < ARN_BATCH && arn_may_loop; i++) {
		if (arn_load_relaxed(arn_near_count(arn_cache(ARN_HERE, slot, cls), full)) >= most)
			break;
		top = arn__depot_get(cls, full);
		if (!top)
			break;
		arn__near_put(slot, cls, top, most);
	}
	return 0;
}

/* An empty magazine: the thread's, the depot's, a new one.  0: no memory. */
__weak __u32 arn__thread_empty(__u32 slot, __u32 cls)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 m;

	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return 0;
	m = arn_take_empty(ARN_HERE, &r->depot[cls], arn_cache(ARN_HERE, slot, cls));
	if (!m && arn__more_mags(cls))
		m = arn_depot_pop(ARN_HERE, &r->depot[cls].empty);
	return m;
}

/* Fills a magazine from the slabs.  Its top, 0: the slabs are spent. */
__weak __u32 arn__thread_fill(__u32 slot, __u32 cls)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 m = arn__thread_empty(slot, cls), n;

	arn_name_arena();
	if (!m)
		return 0;
	if (arn_load_relaxed(&r->pending))
		arn__settle();
	n = arn__fill(cls, m);
	if (!n && arn__more_slabs(cls))
		n = arn__fill(cls, m);
	if (!n)
		arn__near_put(slot, cls, arn_top(m, 0), 0);
	return n ? arn_top(m, n) : 0;
}

/* The magazine of top becomes the loaded one of a thread's cache, and the loaded one the other. */
__weak int arn__thread_load(__u32 slot, __u32 cls, __u32 top)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_cache __arena *c;

	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return -ARN_EINVAL;
	c = arn_cache(ARN_HERE, slot, cls);
	if (c->top) {
		arn__near_put(slot, cls, c->prev, r->cls[cls].near);
		c = arn_cache(ARN_HERE, slot, cls);
		c->prev = c->top;
	}
	c->room = r->cls[cls].cap * 4;
	arn_store_relaxed(&c->top, top);
	return 0;
}

__weak int arn__refill(__u32 slot, __u32 cls)
{
	__u32 top;

	arn_name_arena();
	arn__near_halve(slot, cls, 0);
	top = arn__depot_get(cls, 1);
	if (!top)
		top = arn__thread_fill(slot, cls);
	if (!top)
		return -ARN_ENOMEM;
	arn__thread_load(slot, cls, top);
	return arn__near_more(slot, cls, 1);
}

__weak int arn__spill(__u32 slot, __u32 cls)
{
	__u32 m;

	arn_name_arena();
	arn__near_halve(slot, cls, 1);
	m = arn__thread_empty(slot, cls);
	if (!m)
		return -ARN_ENOMEM;
	arn__thread_load(slot, cls, arn_top(m, 0));
	return arn__near_more(slot, cls, 0);
}

/* ---- Objects, past the caller's slot ---- */

/* From this CPU's cache, as a BPF program would, but without reclaim: the caller can grow the heap. */
__weak __u32 arn__thread_small(__u32 cls)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 off = 0;

	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return 0;
	if (!arn_is_checked(r)) {
		off = arn__pop(cls);
		if (off == ARN_BUSY_HERE)
			off = arn__bypass(cls);
		if (!off && !arn_has_empty_mag(ARN_HERE, r, bpf_get_smp_processor_id(), cls))
			arn__more_mags(cls);
	}
	if (!off && arn_load_relaxed(&r->pending))
		arn__settle();
	if (!off)
		off = arn_refill_here(cls);
	if (!off && arn__more_slabs(cls))
		off = arn_refill_here(cls);
	return off;
}

/* An object's offset; -ENOMEM; -E2BIG: above half the arena. */
__weak __s64 arn__thread_alloc(__u64 size, __u64 align, __u32 tag)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u64 block = size;
	__u32 cls, off;

	arn_name_arena();
	cls = arn_class_aligned(r, size, align ? align : 1);
	if (cls >= ARN_CLASSES && (size > r->arena_bytes / 2 || align > r->arena_bytes / 2)) {
		arn_inc64_relaxed(&r->fail[ARN_FAIL_SIZE]);
		return -ARN_E2BIG;
	}
	if (arn_is_checked(r)) {
		size += !size; /* a minimal object has a byte to guard */
		block = size + sizeof(struct arn_trailer);
		if (cls < ARN_CLASSES)
			cls = arn_class_aligned(r, block, arn_checked_align(size, align));
	}
	if (cls < ARN_CLASSES) {
		off = arn__thread_small(cls);
	} else {
		if (arn_load_relaxed(&r->pending))
			arn__settle();
		off = arn__large(arn_large_pages(block), arn_large_align(size, align));
	}
	if (!off)
		return -ARN_ENOMEM;
	if (arn_is_checked(r)) {
		arn__dress(cls, off, size);
		arn_trailer(ARN_HERE, off, arn_block(ARN_HERE, r, cls, off))->tag = tag;
	}
	if (cls < ARN_CLASSES)
		arn_store_relaxed(arn_state(ARN_HERE, r, off), cls + 1);
	return off;
}

/* Why a pointer cannot be freed (enum arn_fail). */
__weak __u32 arn__why_not(__u64 ptr)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 off, st, why;

	arn_name_arena();
	off = arn_object(ARN_HERE, r, ptr, &st, &why);
	if (st)
		return ARN_FAIL_FOREIGN; /* an object, but of the other kind */
	return why == ARN_FAIL_COUNT ? arn_why_not(ARN_HERE, r, off) : why;
}

/* Cached memory back to page runs, also what the caller's slot has and is not at work on. */
__weak int arn__thread_reclaim(__u32 slot)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 cls;

	arn_name_arena();
	for (cls = arn_opaque(0u); arn_is_mine(slot) && cls < ARN_CLASSES && arn_may_loop; cls++)
		if (!arn_load_relaxed(&arn_cache(ARN_HERE, slot, cls)->busy))
			arn__slot_settle(slot, cls);
	arn_reclaim(r);
	arn_reclaim_emergency();
	return 0;
}

/* A chunk more, unless so many pages are free already. */
__weak int arn__thread_grow(__u64 pages)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	arn__settle();
	if (pages && arn_load_relaxed(&r->pages_free) >= pages)
		return 0;
	return arn__grow();
}

#endif
