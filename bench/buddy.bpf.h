/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * buddy.bpf.h - the "before": a binary buddy allocator in an arena, one lock, no caches.
 *
 * Blocks are 16 bytes << order, up to 1 MiB; freeing coalesces as far as it can.  A state byte a
 * unit says whether a block starts there, free or allocated, and its order, so a bad free is refused
 * as arenite refuses it.  Free blocks of an order form a doubly linked list through their first
 * eight bytes (a block belongs to its list while free, to its owner while not); a bit a list says
 * which have blocks.
 *
 * Invariant, under the lock: a unit's state byte is not 0 exactly where a block starts, blocks tile
 * the region, and no two free buddies of one order exist below the top order.
 */
#ifndef BENCH_BUDDY_BPF_H
#define BENCH_BUDDY_BPF_H

#include "lock.bpf.h"
#include "round.h"

#define BUDDY_UNIT_SHIFT 4
#define BUDDY_TOP	 16 /* 1 MiB */
#define BUDDY_FREE	 0x80
#define BUDDY_TAKEN	 0x40

struct buddy {
	__u32 lock;
	__u32 pad0[15];
	__u32 map; /* bit o: list[o] has blocks */
	__u32 units;
	__u32 list[BUDDY_TOP + 1]; /* first block's unit + 1; 0: none */
};

/* In a free block: next in the low half, previous in the high half; unit + 1, 0: end. */
struct buddy_link {
	__u64 both;
};

static arn_inline struct buddy __arena *buddy_heap(void)
{
	return arn_ptr(ARN_HERE, struct buddy, BENCH_BUDDY_HEAD);
}

static arn_inline __u8 __arena *buddy_state(__u32 unit)
{
	return arn_ptr(ARN_HERE, __u8, BENCH_BUDDY_META + unit);
}

static arn_inline struct buddy_link __arena *buddy_link(__u32 unit)
{
	return arn_ptr(ARN_HERE, struct buddy_link, BENCH_BUDDY + (unit << BUDDY_UNIT_SHIFT));
}

static arn_inline __u32 __arena *buddy_half(__u32 unit)
{
	return arn_ptr(ARN_HERE, __u32, BENCH_BUDDY + (unit << BUDDY_UNIT_SHIFT));
}

/*
 * List operations take the map of non-empty lists and return what it becomes: a chain of splits or
 * merges keeps it in a register.
 */
static arn_inline __u32 buddy_list_add(struct buddy __arena *b, __u32 map, __u32 unit, __u32 order)
{
	__u32 next = b->list[order];

	buddy_link(unit)->both = next;
	if (next)
		buddy_half(next - 1)[1] = unit + 1;
	b->list[order] = unit + 1;
	*buddy_state(unit) = BUDDY_FREE | order;
	return map | 1u << order;
}

static arn_inline __u32 buddy_list_del(struct buddy __arena *b, __u32 map, __u32 unit, __u32 order)
{
	__u64 both = buddy_link(unit)->both;
	__u32 next = both, prev = both >> 32;

	if (next)
		buddy_half(next - 1)[1] = prev;
	if (prev) {
		buddy_half(prev - 1)[0] = next;
		return map;
	}
	b->list[order] = next;
	return next ? map : map & ~(1u << order);
}

/* Index of the highest bit of x < 2^32; BPF has no instruction for it: halve. */
static arn_inline __u32 buddy_log2(__u32 x)
{
	__u32 n = 0;

	if (x >> 16) {
		n += 16;
		x >>= 16;
	}
	if (x >> 8) {
		n += 8;
		x >>= 8;
	}
	if (x >> 4) {
		n += 4;
		x >>= 4;
	}
	if (x >> 2) {
		n += 2;
		x >>= 2;
	}
	return n + (x >> 1);
}

static arn_inline __u32 buddy_order(__u32 size)
{
	return size <= 16 ? 0 : buddy_log2(size - 1) - 3;
}

__weak __u64 buddy_alloc(__u64 size)
{
	struct buddy __arena *b = buddy_heap();
	__u32 want, order, unit, mate, map, fit, i;

	arn_name_arena();
	if (size > 1u << (BUDDY_TOP + BUDDY_UNIT_SHIFT))
		return 0;
	want = buddy_order(size);
	if (!bench_lock(&b->lock))
		return 0;
	map = b->map;
	fit = map >> want << want;
	if (!fit) {
		bench_unlock(&b->lock);
		return 0;
	}
	order = buddy_log2(fit & -fit);
	unit = b->list[order & 31] - 1;
	map = buddy_list_del(b, map, unit, order & 31);
	/* The lists from want to order are empty, or one of them would have served. */
	map |= (1u << order) - (1u << want);
	/*
	 * Bounded by a count: under the lock no loop may end early, as one with may_goto would after a long
	 * wait for the lock in the same frame.
	 */
	for (i = 0; i < BUDDY_TOP && order > want; i++) {
		order--;
		mate = unit + (1u << order);
		buddy_link(mate)->both = 0;
		b->list[order & 31] = mate + 1;
		*buddy_state(mate) = BUDDY_FREE | order;
	}
	b->map = map;
	*buddy_state(unit) = BUDDY_TAKEN | want;
	bench_unlock(&b->lock);
	return BENCH_BUDDY + ((__u64)unit << BUDDY_UNIT_SHIFT);
}

__weak int buddy_free(__u64 p)
{
	struct buddy __arena *b = buddy_heap();
	__u32 off = (__u32)p - BENCH_BUDDY, unit = off >> BUDDY_UNIT_SHIFT, order, mate, map, i;
	__u8 state;

	arn_name_arena();
	if (!p)
		return 0;
	if (off & 15 || !bench_lock(&b->lock))
		return -ARN_EINVAL;
	if (unit >= b->units || !((state = *buddy_state(unit)) & BUDDY_TAKEN)) {
		bench_unlock(&b->lock);
		return -ARN_EINVAL;
	}
	map = b->map;
	order = state & 31u;
	for (i = 0; i < BUDDY_TOP && order < BUDDY_TOP; i++, order++) {
		mate = unit ^ (1u << order);
		if (*buddy_state(mate) != (BUDDY_FREE | order))
			break;
		map = buddy_list_del(b, map, mate, order & 31);
		*buddy_state(mate | unit) = 0;
		unit &= mate;
	}
	b->map = buddy_list_add(b, map, unit, order & 31);
	bench_unlock(&b->lock);
	return 0;
}

/* c->size bytes of the region (a multiple of 1 MiB), all free. */
SEC("syscall") int buddy_reset(struct bench_setup *c)
{
	struct buddy __arena *b = buddy_heap();
	__u32 units = c->size >> BUDDY_UNIT_SHIFT;
	__u32 i;

	arn_name_arena();
	c->err = 0;
	b->lock = 0;
	b->map = 0;
	b->units = units;
	bpf_for(i, 0, BUDDY_TOP + 1)
		b->list[i] = 0;
	bpf_for(i, 0, units / 8)
		arn_ptr(ARN_HERE, __u64, BENCH_BUDDY_META)[i] = 0;
	bpf_for(i, 0, units >> BUDDY_TOP)
		b->map = buddy_list_add(b, b->map, units - ((i + 1) << BUDDY_TOP), BUDDY_TOP);
	return 0;
}

#endif
