/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * check.c - the walkers, on snapshots.
 *
 * A copy is not made in an instant.  If two made one after the other are equal, nothing changed meanwhile,
 * and a walk over either is exact, unless somebody stands still in the middle of a call, which shows.  Of a heap
 * that changes all the time only what lasts can be said to be wrong.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "internal.h"
#include "snapshot.h"
#include "../core/check.h"

#define SEEN_BYTES (1ULL << 25) /* a bit a granule of 4 GiB */
#define WALKS	   20
#define MUST_LAST  5 /* walks in a row that find what the one before found */
#define STILL_US   100000

/* 0, or what contradicts, in *c; -ENOMEM. */
static int walk(struct arn_snapshot *s, struct arn_checker *c, bool in_use)
{
	int err = 0;

	memset(c, 0, sizeof(*c));
	c->b = s->base;
	c->in_use = in_use;
	c->seen = mmap(NULL, SEEN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c->seen == MAP_FAILED)
		return arn_error(ENOMEM, "heap: no memory to walk it");
	if (arn_check_heap(c))
		err = -EUCLEAN;
	munmap(c->seen, SEEN_BYTES);
	return err;
}

static int say(struct arn_heap *heap, const struct arn_checker *c)
{
	return arn_error(EUCLEAN, "heap at %p: %s: at 0x%llx: found %llu (0x%llx), expected %llu", (void *)heap->base,
			 c->what, (unsigned long long)c->where, (unsigned long long)c->found,
			 (unsigned long long)c->found, (unsigned long long)c->expected);
}

int arn_check(struct arn_heap *heap)
{
	struct arn_checker c;
	struct arn_snapshot s;
	int err;

	err = arn_snapshot_take(&s, heap, true);
	if (err)
		return err;
	err = walk(&s, &c, false);
	arn_snapshot_drop(&s);
	return err == -EUCLEAN ? say(heap, &c) : err;
}

/* Is somebody in the middle of a call?  (Who puts an object into its slab does not show; it takes no time.) */
static bool at_work(arn_base b)
{
	struct arn_root *r = arn_root(b);
	__u32 slot, cls, chunk;

	if (r->lock)
		return true;
	for (chunk = arn_first_chunk(r); chunk < arn_end_chunk(r); chunk++)
		if (*arn_dir(b, chunk) == ARN_CHUNK_BUSY)
			return true;
	for (slot = 0; slot < r->nslots; slot++)
		for (cls = 0; cls < ARN_CLASSES; cls++)
			if (arn_cache_busy(arn_cache(b, slot, cls)) || arn_cache(b, slot, cls)->intent)
				return true;
	return false;
}

/* A copy of the heap that is still what it holds a while later, or (not *still) one of a heap in use. */
static int take_still(struct arn_snapshot *s, struct arn_heap *heap, bool *still)
{
	struct arn_snapshot before;
	int err;

	err = arn_snapshot_take(&before, heap, true);
	if (err)
		return err;
	usleep(STILL_US);
	err = arn_snapshot_take(s, heap, true);
	if (!err)
		*still = arn_snapshot_same(&before, s) && !at_work(s->base);
	arn_snapshot_drop(&before);
	return err;
}

int arn_check_live(struct arn_heap *heap)
{
	struct arn_checker c, last = {};
	__u32 i, lasted = 0;
	struct arn_snapshot s;
	bool still;
	int err;

	for (i = 0; i < WALKS; i++) {
		err = arn_check(heap);
		if (err != -EUCLEAN)
			return err;
		err = take_still(&s, heap, &still);
		if (err)
			return err;
		err = walk(&s, &c, !still);
		arn_snapshot_drop(&s);
		if (err && err != -EUCLEAN)
			return err;
		if (err && c.what == last.what && c.where == last.where && c.found == last.found)
			lasted++;
		else
			lasted = 0;
		last = c;
		if (err && (still || lasted == MUST_LAST))
			return say(heap, &c);
	}
	return arn_error(EAGAIN,
			 "heap at %p: in use: %u walks met it in the middle of something, and found nothing that lasts",
			 (void *)heap->base, WALKS);
}
