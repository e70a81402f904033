/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * stats.c - statistics, read from a snapshot.
 *
 * No fast path counts anything: what lives where is read from the structures themselves.
 */
#include <string.h>
#include "internal.h"
#include "snapshot.h"
#include "../core/check.h"

/* Objects in the depot's magazines; a stack that moved while it was copied is cut short. */
static __u64 depot_objects(arn_base b, __u64 head, __u64 nmags)
{
	__u32 m = (__u32)(head & ARN_STACK_IDX_MASK) << ARN_MAG_SHIFT;
	__u64 sum = 0;

	for (; m && nmags; nmags--) {
		sum += arn_mag_count(b, m);
		m = arn_mag(b, m)->next << ARN_MAG_SHIFT;
	}
	return sum;
}

static void count_pages(arn_base b, struct arn_stats *st)
{
	struct arn_root *r = arn_root(b);
	__u32 pg = r->first_page, end = r->first_page + r->npages, n;

	while (pg < end) {
		struct arn_page *d = arn_desc(b, r, pg);

		if (*arn_dir(b, pg >> 8) != ARN_CHUNK_MAPPED) {
			pg = (pg | (ARN_CHUNK_PAGES - 1)) + 1;
			continue;
		}
		n = d->npages;
		if (d->kind == ARN_PG_SLAB && d->cls < ARN_CLASSES)
			n = r->cls[d->cls].run;
		if (!n || n > end - pg)
			n = 1;
		switch (d->kind) {
		case ARN_PG_FREE:
			st->pages_free += n;
			break;
		case ARN_PG_SLAB:
			if (d->cls >= ARN_CLASSES)
				break;
			if (arn_class_percpu(d->cls))
				st->pages_percpu += n;
			else
				st->pages_slab += n;
			st->cls[d->cls].slabs++;
			st->cls[d->cls].in_slabs += d->nfree <= r->cls[d->cls].nobj ? d->nfree : 0;
			break;
		case ARN_PG_LARGE:
			st->large++;
			st->pages_large += n;
			break;
		case ARN_PG_DEAD:
			st->pages_pending += n;
			break;
		case ARN_PG_MAGS:
			st->pages_mags += n;
			if (d->cls < ARN_CLASSES)
				st->cls[d->cls].magazines += ARN_MAG_PER_PAGE;
			break;
		default:
			n = 1;
		}
		pg += n;
	}
}

static void count_slots(arn_base b, struct arn_stats *st)
{
	struct arn_root *r = arn_root(b);
	__u32 slot, cls, i;

	for (slot = 0; slot < r->nslots; slot++) {
		for (i = 0; r->flags & ARN_F_CHECKED && i < ARN_QUARANTINE; i++) {
			__u32 off = arn_slot(b, slot)->quarantine[i], c = ARN_CLASSES;

			if (off)
				c = arn_desc(b, r, off >> ARN_PAGE_SHIFT)->cls;
			if (c < ARN_CLASSES)
				st->cls[c].quarantined++;
		}
		st->slots_claimed += slot >= r->ncpus && arn_slot(b, slot)->owner;
		for (cls = 0; cls < ARN_CLASSES; cls++) {
			struct arn_cache *c = arn_cache(b, slot, cls);

			if (arn_class_percpu(cls) && r->flags & ARN_F_CHECKED)
				break;
			st->cls[cls].in_slots += (__u64)arn_top_count(c->top) + arn_top_count(c->prev) +
						 arn_top_count(c->parked) +
						 depot_objects(b, c->near_full, st->cls[cls].magazines);
		}
	}
}

static void fill(arn_base b, struct arn_stats *st)
{
	struct arn_root *r = arn_root(b);
	__u32 cls, chunk, i;

	st->arena_bytes = r->arena_bytes;
	for (chunk = arn_first_chunk(r); chunk < arn_end_chunk(r); chunk++)
		st->pages_mapped += *arn_dir(b, chunk) == ARN_CHUNK_MAPPED ? ARN_CHUNK_PAGES : 0;
	st->meta_bytes = r->meta_pages + r->meta_mapped;
	for (i = 0; i < sizeof(r->desc_mapped) / sizeof(*r->desc_mapped); i++)
		st->meta_bytes += (unsigned int)__builtin_popcountll(r->desc_mapped[i]);
	st->meta_bytes <<= r->sys_page_shift;
	st->slots = r->nslots;
	st->slots_cpu = r->ncpus;
	st->percpu_cpus = r->percpu_cpus;
	st->percpu_max = r->percpu_max;
	st->low_watermark = (__u64)r->low_pages << ARN_PAGE_SHIFT;
	st->high_watermark = (__u64)r->high_pages << ARN_PAGE_SHIFT;
	st->keeper = r->keeper >> 32;
	count_pages(b, st);
	st->percpu_bytes = (st->pages_percpu << ARN_PAGE_SHIFT) / r->percpu_cpus;
	count_slots(b, st);
	for (cls = 0; cls < ARN_CLASSES; cls++) {
		struct arn_class_stats *c = &st->cls[cls];
		__u64 idle;

		c->size = r->cls[cls].size;
		c->objects = c->slabs * r->cls[cls].nobj;
		c->in_depot = depot_objects(b, r->depot[cls].full, c->magazines);
		for (i = 0; i < ARN_EMERGENCY; i++)
			c->in_emergency += r->emergency[cls][i] != 0;
		idle = c->in_slots + c->in_depot + c->in_slabs + c->in_emergency + c->quarantined;
		c->live = c->objects > idle ? c->objects - idle : 0;
	}
	memcpy(st->fail, r->fail, sizeof(st->fail));
	memcpy(st->count, r->count, sizeof(st->count));
	st->bad_ptr = r->bad_ptr;
}

int arn_get_stats(struct arn_heap *heap, struct arn_stats *st, size_t size)
{
	struct arn_stats full = {};
	struct arn_snapshot s;
	int err;

	memset(st, 0, size);
	err = arn_snapshot_take(&s, heap, false);
	if (err)
		return err;
	fill(s.base, &full);
	arn_snapshot_drop(&s);
	memcpy(st, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}
