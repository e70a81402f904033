/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * harness.h - the core by itself over an anonymous mapping, with a page source that can refuse.
 *
 * As in a BPF arena, what is not mapped reads as 0; unlike there, a write to it is a fault, so that
 * a test sees it.  The page source is as strict as the kernel: it refuses what is mapped already.
 */
#ifndef ARN_TEST_HARNESS_H
#define ARN_TEST_HARNESS_H

#include <sys/mman.h>
#include "unit.h"
#include "../../src/core/root.h"

struct core {
	struct arn_heap heap; /* for arn_check and arn_get_stats */
	arn_base b;
	struct arn_root *r;
};

static struct {
	__u32 calls;
	bool (*refuse)(__u32 off, __u32 bytes, __u32 call); /* NULL: never */
	void (*before)(__u32 off, __u32 bytes, __u32 call); /* runs in the middle of a growth */
	bool again; /* grants what is mapped already, as native memory does */
	__u32 stray; /* pages unmapped that were not mapped */
	__u8 mapped[1u << 20];
} port;

static inline int arn_port_map(arn_base b, __u32 off, __u32 bytes)
{
	__u32 i, call = __atomic_fetch_add(&port.calls, 1, __ATOMIC_RELAXED);

	if (port.before)
		port.before(off, bytes, call);
	if (port.refuse && port.refuse(off, bytes, call))
		return -ARN_ENOMEM;
	for (i = 0; i < bytes >> 12; i++)
		if (port.mapped[(off >> 12) + i] && !port.again)
			return -ARN_ENOMEM;
	memset(port.mapped + (off >> 12), 1, bytes >> 12);
	insist(!mprotect(b + off, bytes, PROT_READ | PROT_WRITE));
	return 0;
}

static inline void arn_port_unmap(arn_base b, __u32 off, __u32 bytes)
{
	__u32 i;

	for (i = 0; i < bytes >> 12; i++)
		port.stray += !port.mapped[(off >> 12) + i];
	memset(port.mapped + (off >> 12), 0, bytes >> 12);
	insist(!madvise(b + off, bytes, MADV_DONTNEED));
	insist(!mprotect(b + off, bytes, PROT_READ));
}

static inline __u32 port_pages(void)
{
	__u32 i, n = 0;

	for (i = 0; i < sizeof(port.mapped); i++)
		n += port.mapped[i];
	return n;
}

#include "../../src/core/chunk.h"

static inline struct core *core_new_on(__u64 bytes, __u32 ncpus, __u32 nslots, __u32 page_shift)
{
	struct arn_geometry g = {
		.arena_bytes = bytes, .ncpus = ncpus, .nslots = nslots, .sys_page_shift = page_shift
	};
	struct core *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	memset(&port, 0, sizeof(port));
	c->b = arn_map_anywhere(-1, bytes);
	assert_non_null(c->b);
	assert_int_equal(mprotect(c->b, bytes, PROT_READ), 0);
	assert_int_equal(mprotect(c->b + ARN_ROOT_OFF, ARN_SLOTS_OFF - ARN_ROOT_OFF + nslots * ARN_SLOT_SIZE,
				  PROT_READ | PROT_WRITE),
			 0);
	assert_int_equal(arn_root_init(c->b, &g), 0);
	c->r = arn_root(c->b);
	c->heap = (struct arn_heap){ .base = c->b, .bytes = bytes, .native = true, .map_fd = -1, .id = ~0ULL };
	return c;
}

static inline struct core *core_new(__u64 bytes)
{
	return core_new_on(bytes, 2, 8, 12);
}

static inline void core_drop(struct core *c)
{
	assert_int_equal(port.stray, 0);
	munmap(c->b, c->heap.bytes);
	free(c);
}

static inline void core_end(struct core *c)
{
	sound(&c->heap);
	core_drop(c);
}

static inline void settle(struct core *c)
{
	arn_settle_pending(c->b, c->r, 0);
}

/* n chunks more, the lowest there are. */
static inline void core_grow(struct core *c, __u32 n)
{
	__u32 chunk;

	for (chunk = arn_first_chunk(c->r); n && chunk < arn_end_chunk(c->r); chunk++)
		n -= !arn_chunk_add(c->b, c->r, chunk, ARN_CHUNK_NONE);
	assert_int_equal(n, 0);
	settle(c);
}

/* Hand-made allocations of a class: out of the slabs, with the state byte that the walkers expect. */
static inline void mark(struct core *c, __u32 off, __u32 cls)
{
	*arn_state(c->b, c->r, off) = (__u8)(cls + 1);
}

static inline void unmark(struct core *c, __u32 off)
{
	*arn_state(c->b, c->r, off) = 0;
}

static inline __u32 idx_of(__u64 head)
{
	return (__u32)(head & ARN_STACK_IDX_MASK) << ARN_MAG_SHIFT;
}

#endif
