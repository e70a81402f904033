/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * percpu_class.h - classes of per-CPU objects: classes like the others, whose slabs have a page a CPU.
 *
 *   head            head + 1         head + 2
 *   +-+-+-+-+-----+ +-+-+-+-+------+ +-+-+-+-+------+
 *   |a|b|c|d| ... | |a|b|c|d| ...  | |a|b|c|d| ...  |      a run of as many pages as there are CPUs
 *   +-+-+-+-+-----+ +-+-+-+-+------+ +-+-+-+-+------+
 *    CPU 0's copies  CPU 1's          CPU 2's
 *
 * Only the first page is a slab to the layers below: its descriptor has the bits, its objects have the
 * state bytes, its offsets travel through magazines and depot.  So there is nothing of the caches here.
 * What is: an object of s bytes takes s bytes a CPU, so what slots may keep of a class to themselves
 * costs slots x CPUs x s, and has to be bounded by the machine's size and by a budget.
 *
 * Marks.  A magazine of a class takes cap objects, cap_low <= cap <= cap_high.  Who comes to the slabs for
 * a magazineful changes cap: doubles it if somebody came within the last second, else halves it a second
 * that nobody came.  Giving slabs back (trim, reclaim) sets it to cap_low.  Nothing excludes two at once:
 * each writes a value within the bounds.
 */
#ifndef ARN_PERCPU_CLASS_H
#define ARN_PERCPU_CLASS_H

#include "sizeclass.h"

#define ARN_PERCPU_BUDGET (16ULL << 20) /* for what all slots keep of one class, unless a heap says otherwise */
#define ARN_PERCPU_LOW	  8u
#define ARN_CLOCK_SECOND  1024u /* of arn_clock(), about */

static arn_inline _Bool arn_class_percpu(__u32 cls)
{
	return cls - ARN_PLAIN_CLASSES < ARN_PERCPU_CLASSES;
}

/* The class of a size in 1 .. root.percpu_max. */
static arn_inline __u32 arn_percpu_class(struct arn_root __arena *r, __u64 size)
{
	return r->percpu_of[arn_class_of(r, size)];
}

/* What an allocated object's state byte says. */
static arn_inline __u8 arn_state_for(struct arn_root __arena *r, __u32 cls)
{
	return cls + 1 + (arn_class_percpu(cls) && r->flags & ARN_F_CHECKED ? ARN_PERCPU_CLASSES : 0);
}

/* And back; above ARN_CLASSES: no class. */
static arn_inline __u32 arn_state_class(__u32 st)
{
	return st - 1 - (st - 1 - ARN_CLASSES < ARN_PERCPU_CLASSES ? ARN_PERCPU_CLASSES : 0);
}

/* Somebody wants more objects of a per-CPU class than slot and depot have. */
static arn_inline void arn_percpu_mark(struct arn_root __arena *r, __u32 cls)
{
	struct arn_class __arena *k = &r->cls[cls];
	__u32 now = arn_clock(), idle = (now - arn_load_relaxed(&k->marked)) / ARN_CLOCK_SECOND;
	__u32 cap = arn_load_relaxed(&k->cap);

	cap = idle ? cap >> (idle < 7 ? idle : 7) : cap * 2;
	if (cap > k->cap_high)
		cap = k->cap_high;
	if (cap < k->cap_low)
		cap = k->cap_low;
	arn_store_relaxed(&k->marked, now);
	arn_store_relaxed(&k->cap, cap);
}

/* Nobody does. */
static arn_inline void arn_percpu_unmark(struct arn_root __arena *r, __u32 cls)
{
	arn_store_relaxed(&r->cls[cls].cap, r->cls[cls].cap_low);
}

#ifndef __bpf__
/* Bytes of the i-th class.  Where the limit is raised the 16 classes lie further apart above 128. */
static inline __u32 arn_percpu_class_size(const struct arn_root *r, __u32 i)
{
	static const __u16 raised[] = { 192, 256, 384, 512, 768, 1024, 2048, 4096 };

	return i < 8 || r->percpu_max <= ARN_PERCPU_MAX ? arn_class_size(i) : raised[i - 8];
}

/* cpus, max, budget: 0 is the default.  slots: how many may cache. */
static inline void arn_percpu_init(struct arn_root *r, __u32 cpus, __u32 max, __u64 budget, __u32 slots)
{
	__u32 c, i;

	cpus = cpus ? cpus : slots;
	budget = budget ? budget : ARN_PERCPU_BUDGET;
	r->percpu_cpus = cpus;
	r->percpu_max = max ? max : ARN_PERCPU_MAX;
	for (i = 0; i < ARN_PERCPU_CLASSES; i++) {
		struct arn_class *k = &r->cls[ARN_PLAIN_CLASSES + i];
		__u64 mags; /* objects that a slot may keep, then magazines of cap_high objects */

		k->size = arn_percpu_class_size(r, i);
		k->npages = k->align = 1;
		k->run = cpus;
		k->nobj = ARN_PERCPU_STRIDE / k->size;
		k->emergency = k->nobj / 4 < ARN_EMERGENCY ? k->nobj / 4 : ARN_EMERGENCY;
		mags = budget / ((__u64)k->size * cpus) / slots;
		k->cap_high = mags / 2 < 1 ? 1 : mags / 2 > ARN_MAG_OBJS ? ARN_MAG_OBJS : mags / 2;
		k->cap_low = k->cap_high < ARN_PERCPU_LOW ? k->cap_high : ARN_PERCPU_LOW;
		mags /= k->cap_high;
		k->near = mags < 2 ? 0 : mags - 2 > ARN_NEAR_MAGS ? ARN_NEAR_MAGS : mags - 2;
		if (r->flags & ARN_F_CHECKED)
			k->cap_low = k->cap_high = k->near = 0;
		k->cap = k->cap_low;
	}
	for (c = 0, i = 0; c < sizeof(r->percpu_of); c++) {
		while (i < ARN_PERCPU_CLASSES - 1 && arn_percpu_class_size(r, i) < arn_class_size(c))
			i++;
		r->percpu_of[c] = ARN_PLAIN_CLASSES + i;
	}
}
#endif

#endif
