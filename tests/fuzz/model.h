/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * model.h - what should live in the heap: objects, what they hold, and which granules they take.
 */
#ifndef ARN_FUZZ_MODEL_H
#define ARN_FUZZ_MODEL_H

#include <string.h>
#include "input.h"
#include "../../src/core/checked.h"

#define ROOM  2048
#define SLOTS 4
#define EDGE  64

static struct object {
	__u8 *p;
	size_t size, have;
	__u8 tag;
} object[ROOM];
static __u32 count;
static __u8 *taken; /* a byte a granule of the arena */
static struct arn_heap *heap;
static struct arn_root *root;
static __u64 wrong_frees, nulls;
static bool checked, no_slot, locked;

/* Both ends of an object tell whose they are. */
static void paint(const struct object *o)
{
	size_t i;

	for (i = 0; i < o->size && i < EDGE; i++)
		o->p[i] = (__u8)(o->tag + i);
	for (i = o->size > EDGE ? o->size - EDGE : 0; i < o->size; i++)
		o->p[i] = (__u8)(o->tag + i);
}

static void look(const struct object *o, size_t size)
{
	size_t i;

	for (i = 0; i < size && i < EDGE; i++)
		expect(o->p[i] == (__u8)(o->tag + i));
	for (i = o->size > EDGE ? o->size - EDGE : 0; i < size; i++)
		expect(o->p[i] == (__u8)(o->tag + i));
}

static __u8 *granules(const struct object *o)
{
	return taken + ((__u32)(unsigned long)o->p >> 4);
}

/* A new object: aligned (0: to 16 only), nobody else's, as large as asked. */
static void add(void *p, size_t size, size_t align)
{
	struct object *o = &object[count++];
	size_t n;

	*o = (struct object){ .p = p, .size = size, .have = arn_usable_size(heap, p), .tag = (__u8)(count * 37) };
	expect(((__u64)(unsigned long)p & 15) == 0 && (!align || ((__u64)(unsigned long)p & (align - 1)) == 0));
	expect(o->have >= size);
	if (!(size & (size - 1)) && size >= 16 && align) /* a realloc may have left it in place */
		expect(((__u64)(unsigned long)p & (size - 1)) == 0);
	n = (o->have + 15) / 16;
	expect(!memchr(granules(o), 1, n));
	memset(granules(o), 1, n);
	paint(o);
}

static void forget(struct object *o)
{
	look(o, o->size);
	memset(granules(o), 0, (o->have + 15) / 16);
	*o = object[--count];
}

/* NULL is right only when the arena is mapped to its end and nobody can find another object. */
static void may_fail(size_t size, size_t align, int err)
{
	struct arn_stats s;
	__u32 c;

	if (size > root->arena_bytes / 2) {
		expect(err == E2BIG);
		return;
	}
	expect(err == ENOMEM);
	if (locked)
		return;
	expect(root->pages_mapped == root->npages);
	if (nulls++ % 8)
		return;
	expect(!arn_get_stats(heap, &s, sizeof(s)));
	c = arn_class_aligned(root, size, align);
	if (checked || c >= ARN_CLASSES)
		return;
	expect(s.cls[c].in_depot == 0 && s.cls[c].in_slabs == 0);
}

#endif
