/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * directory.h - where a chunk, and what describes it, lies; one __u32 of enum arn_chunk_state each.
 */
#ifndef ARN_DIRECTORY_H
#define ARN_DIRECTORY_H

#include "port.h"

static arn_inline __u32 __arena *arn_dir(arn_base b, __u32 chunk)
{
	return arn_ptr(b, __u32, ARN_DIR_OFF + (chunk & (ARN_MAX_CHUNKS - 1)) * 4);
}

/* Has the chunk of a page kernel pages?  In BPF a look at a descriptor that has none is a fault. */
static arn_inline _Bool arn_page_mapped(arn_base b, __u32 pg)
{
	return arn_load_relaxed(arn_dir(b, pg >> (ARN_CHUNK_SHIFT - ARN_PAGE_SHIFT))) == ARN_CHUNK_MAPPED;
}

static arn_inline __u32 arn_first_chunk(struct arn_root __arena *r)
{
	return r->first_page >> (ARN_CHUNK_SHIFT - ARN_PAGE_SHIFT);
}

static arn_inline __u32 arn_end_chunk(struct arn_root __arena *r)
{
	__u32 end = (r->first_page + r->npages) >> (ARN_CHUNK_SHIFT - ARN_PAGE_SHIFT);

	return end > ARN_MAX_CHUNKS ? ARN_MAX_CHUNKS : end;
}

/* State bytes and descriptors of a chunk.  Descriptors of four chunks share a 64 KiB kernel page. */
static arn_inline __u32 arn_chunk_state_off(struct arn_root __arena *r, __u32 chunk)
{
	return r->state_bias + (chunk << (ARN_CHUNK_SHIFT - ARN_GRANULE_SHIFT));
}

static arn_inline __u32 arn_chunk_desc_off(struct arn_root __arena *r, __u32 chunk)
{
	return r->page_bias + chunk * ARN_CHUNK_PAGES * (__u32)sizeof(struct arn_page);
}

#define ARN_CHUNK_STATE_BYTES (ARN_CHUNK_SIZE >> ARN_GRANULE_SHIFT)
#define ARN_CHUNK_DESC_BYTES  (ARN_CHUNK_PAGES * (__u32)sizeof(struct arn_page))

#endif
