/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sizeclass.h - sizes to classes and back.
 *
 * 40 classes: 16 to 128 by 16, then four a doubling (160, 192, 224, 256, 320, ... 32768).
 * A request above 64 bytes wastes less than 25 % of what it asked for; a power of two has a class
 * of exactly its size, whose objects are aligned to it.
 *
 * The mapping is two byte tables in the root (BPF has no count-leading-zeros instruction).
 */
#ifndef ARN_SIZECLASS_H
#define ARN_SIZECLASS_H

#include "port.h"

#define ARN_SMALL_MAX	   1024u
#define ARN_MAG_BYTES	   32768u /* a magazine caches at most this much, but at least one object */
#define ARN_NEAR_BYTES	   524288u /* a slot keeps at most this much of a class's depot near */
#define ARN_NEAR_MAGS	   40u
#define ARN_NEAR_MOST	   256u /* more than there can be, whatever interrupts */
#define ARN_SLAB_MAX_PAGES 16u

static arn_inline __u32 arn_class_size(__u32 cls)
{
	__u32 d;

	if (cls < 8)
		return (cls + 1) * 16;
	d = (cls - 8) >> 2;
	return (128u << d) + (((cls - 8) & 3) + 1) * (32u << d);
}

/* Class of a size in 0 .. ARN_MAX_CLASSED; 0 counts as 1. */
static arn_inline __u32 arn_class_of(struct arn_root __arena *r, __u64 size)
{
	if (arn_likely(size <= ARN_SMALL_MAX))
		return r->class_small[((__u32)size + 15) >> 4];
	return r->class_mid[(((__u32)size - 1) >> 8) & 127];
}

/* Largest power of two that divides every object's address in a class. */
static arn_inline __u32 arn_class_align(__u32 size)
{
	return size & -size;
}

#ifndef __bpf__
/* Smallest slab with 32 objects (or 64 KiB) whose unused tail is at most a sixteenth. */
static inline __u32 arn_slab_pages(__u32 size)
{
	__u32 align = size > ARN_PAGE_SIZE && !(size & (size - 1)) ? size >> ARN_PAGE_SHIFT : 1;
	__u32 best = 0, n;

	for (n = align; n <= ARN_SLAB_MAX_PAGES; n += align) {
		__u32 bytes = n << ARN_PAGE_SHIFT;

		if (bytes < size || bytes % size > bytes / 16)
			continue;
		best = n;
		if (bytes / size >= 32)
			break;
	}
	return best;
}

/* A checked heap's magazines hold nothing, so that every call takes the way past the caches. */
static inline void arn_classes_init(struct arn_root *r)
{
	_Bool checked = r->flags & ARN_F_CHECKED;
	__u32 c, i;

	for (c = 0; c < ARN_PLAIN_CLASSES; c++) {
		struct arn_class *k = &r->cls[c];
		__u32 size = arn_class_size(c), cap = ARN_MAG_BYTES / size;

		k->size = size;
		k->cap = cap > ARN_MAG_OBJS ? ARN_MAG_OBJS : cap < 1 ? 1 : cap;
		k->near = ARN_NEAR_BYTES / (k->cap * size);
		if (k->near > ARN_NEAR_MAGS)
			k->near = ARN_NEAR_MAGS;
		k->emergency = cap > ARN_EMERGENCY ? ARN_EMERGENCY : cap < 2 ? 2 : cap;
		if (checked)
			k->cap = k->near = 0;
		k->cap_low = k->cap_high = k->cap;
		k->npages = k->run = arn_slab_pages(size);
		k->nobj = (k->npages << ARN_PAGE_SHIFT) / size;
		k->align = size > ARN_PAGE_SIZE && arn_class_align(size) > ARN_PAGE_SIZE
				   ? arn_class_align(size) >> ARN_PAGE_SHIFT
				   : 1;
	}
	for (i = 0; i < 64; i++)
		r->bit_place[(1ULL << i) * ARN_DE_BRUIJN >> 58] = i;
	for (i = 0, c = 0; i <= ARN_SMALL_MAX / 16; i++) {
		while (arn_class_size(c) < i * 16)
			c++;
		r->class_small[i] = c;
	}
	for (i = 0, c = 0; i < 128; i++) {
		while (arn_class_size(c) < (i + 1) * 256)
			c++;
		r->class_mid[i] = c;
	}
}
#endif

#endif
