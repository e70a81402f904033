/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * snapshot.c - a private copy of a heap's structures, for walking.
 *
 * The copy spans all 4 GiB that a 32-bit offset can name, so nothing that the heap says can lead
 * outside of it; what is not mapped in the heap reads as 0.  Bytes come through /proc/self/mem,
 * where a page that is gone is an error and not a signal.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "internal.h"
#include "snapshot.h"
#include "../core/pages.h"
#include "../core/root.h"

#define SPAN ((4ULL << 30) + (1u << 20))

static void copy(struct arn_snapshot *s, struct arn_heap *heap, __u32 off, __u32 bytes)
{
	__u32 at = 0, step = (__u32)sysconf(_SC_PAGESIZE);
	ssize_t n;

	/* What cannot be read is skipped a page at a time. */
	while (at < bytes) {
		n = pread(s->mem, s->base + off + at, bytes - at, (off_t)(unsigned long)(heap->base + off + at));
		at += n > 0 ? (__u32)n : step - (off + at) % step;
	}
}

static bool same(const struct arn_snapshot *s, const struct arn_snapshot *t, __u32 off, __u32 bytes)
{
	return !memcmp(s->base + off, t->base + off, bytes);
}

int arn_snapshot_take(struct arn_snapshot *s, struct arn_heap *heap, bool states)
{
	int err = arn_alive(heap);
	const char *wrong;
	struct arn_root *r;
	__u32 chunk, pg, i;

	if (err)
		return err;
	s->base = mmap(NULL, SPAN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->base == MAP_FAILED)
		return arn_error(errno, "heap: no room for a copy of its structures");
	s->mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	if (s->mem < 0) {
		munmap(s->base, SPAN);
		return arn_error(errno, "heap: /proc/self/mem cannot be read: mount /proc");
	}
	r = arn_root(s->base);
	copy(s, heap, ARN_ROOT_OFF, ARN_SLOTS_OFF - ARN_ROOT_OFF);
	wrong = arn_root_wrong(heap->base, r, heap->bytes);
	if (wrong) {
		arn_snapshot_drop(s);
		return arn_error(EUCLEAN, "heap at %p: %s", (void *)heap->base, wrong);
	}
	copy(s, heap, ARN_SLOTS_OFF, r->nslots << ARN_SLOT_SHIFT);
	for (chunk = arn_first_chunk(r); chunk < arn_end_chunk(r); chunk++) {
		if (*arn_dir(s->base, chunk) != ARN_CHUNK_MAPPED)
			continue;
		copy(s, heap, arn_chunk_desc_off(r, chunk), ARN_CHUNK_DESC_BYTES);
		if (states)
			copy(s, heap, arn_chunk_state_off(r, chunk), ARN_CHUNK_STATE_BYTES);
		for (i = 0; i < ARN_CHUNK_PAGES; i++) {
			pg = chunk * ARN_CHUNK_PAGES + i;
			if (arn_desc(s->base, r, pg)->kind == ARN_PG_MAGS)
				copy(s, heap, pg << ARN_PAGE_SHIFT, ARN_PAGE_SIZE);
		}
	}
	return 0;
}

bool arn_snapshot_same(const struct arn_snapshot *s, const struct arn_snapshot *t)
{
	struct arn_root *r = arn_root(s->base);
	__u32 chunk, pg, i;

	/* The root comes first: if it is the same, so is what it says about the rest. */
	if (!same(s, t, ARN_ROOT_OFF, ARN_SLOTS_OFF - ARN_ROOT_OFF) ||
	    !same(s, t, ARN_SLOTS_OFF, r->nslots << ARN_SLOT_SHIFT))
		return false;
	for (chunk = arn_first_chunk(r); chunk < arn_end_chunk(r); chunk++) {
		if (*arn_dir(s->base, chunk) != ARN_CHUNK_MAPPED)
			continue;
		if (!same(s, t, arn_chunk_desc_off(r, chunk), ARN_CHUNK_DESC_BYTES) ||
		    !same(s, t, arn_chunk_state_off(r, chunk), ARN_CHUNK_STATE_BYTES))
			return false;
		for (i = 0; i < ARN_CHUNK_PAGES; i++) {
			pg = chunk * ARN_CHUNK_PAGES + i;
			if (arn_desc(s->base, r, pg)->kind == ARN_PG_MAGS &&
			    !same(s, t, pg << ARN_PAGE_SHIFT, ARN_PAGE_SIZE))
				return false;
		}
	}
	return true;
}

void arn_snapshot_drop(struct arn_snapshot *s)
{
	close(s->mem);
	munmap(s->base, SPAN);
}
