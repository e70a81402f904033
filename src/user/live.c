/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* live.c - every allocated object, for leak reports. */
#include <unistd.h>
#include "internal.h"
#include "snapshot.h"
#include "../core/checked.h"

/* Size and tag of a live object of a checked heap, from behind it. */
static void read_trailer(struct arn_snapshot *s, struct arn_heap *heap, __u32 cls, __u32 off, struct arn_object *o)
{
	__u64 at = off + (__u64)arn_block(s->base, arn_root(s->base), cls, off) - sizeof(struct arn_trailer);
	struct arn_trailer t;

	if (pread(s->mem, &t, sizeof(t), (off_t)((__u64)(unsigned long)heap->base + at)) != sizeof(t))
		return;
	o->size = t.size;
	o->tag = t.tag;
}

long arn_live(struct arn_heap *heap, int (*fn)(const struct arn_object *, void *), void *arg)
{
	struct arn_snapshot s;
	struct arn_root *r;
	__u32 chunk, off, st, cls;
	long n = 0;
	int err;

	err = arn_snapshot_take(&s, heap, true);
	if (err)
		return err;
	r = arn_root(s.base);
	for (chunk = arn_first_chunk(r); chunk < arn_end_chunk(r); chunk++) {
		if (*arn_dir(s.base, chunk) != ARN_CHUNK_MAPPED)
			continue;
		for (off = 0; off < ARN_CHUNK_SIZE; off += 1u << ARN_GRANULE_SHIFT) {
			struct arn_object o = {};
			__u32 at = (chunk << ARN_CHUNK_SHIFT) + off;

			st = *arn_state(s.base, r, at);
			cls = arn_state_class(st);
			if (cls >= ARN_CLASSES && st != ARN_STATE_LARGE)
				continue;
			o.addr = (__u64)(unsigned long)heap->base + at;
			o.size = arn_block(s.base, r, cls, at);
			o.percpu = cls < ARN_CLASSES && arn_class_percpu(cls);
			if (r->flags & ARN_F_CHECKED && !o.percpu)
				read_trailer(&s, heap, cls, at, &o);
			n++;
			err = fn(&o, arg);
			if (err) {
				n = err;
				goto out;
			}
		}
	}
out:
	arn_snapshot_drop(&s);
	return n;
}
