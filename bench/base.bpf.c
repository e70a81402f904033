// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * base.bpf.c - the baselines that live in an arena: loop, floor, buddy-lock.
 *
 * In an arena of their own, so that they and the heap measured share no page.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <arenite/layout.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, ARN_MAP_FLAGS);
} bench_arena SEC(".maps");

#define ARN_MAP bench_arena
#include "port.h"

#include "round.bpf.h"
#include "floor.bpf.h"
#include "buddy.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define LOOP_ALLOC(i) (aux + (i) * size)
#define LOOP_FREE(p)  arn_opaque((int)((p) >> 48))
BENCH_IMPL(loop, LOOP_ALLOC, LOOP_FREE)

#define LOOP_ALLOC_BULK(buf, n) arn_opaque(n)
#define LOOP_FREE_BULK(buf, n)	arn_opaque(n)
BENCH_IMPL_BULK(loop_bulk, LOOP_ALLOC_BULK, LOOP_FREE_BULK)

#define FLOOR_ALLOC(i) floor_alloc(size)
BENCH_IMPL(floor, FLOOR_ALLOC, floor_free)

#define FLOOR_CLAIM_ALLOC(i) floor_claim_alloc(size)
BENCH_IMPL(floor_claim, FLOOR_CLAIM_ALLOC, floor_claim_free)

#define FLOOR_INLINE_ALLOC(i) floor_claim_pop()
BENCH_IMPL(floor_inline, FLOOR_INLINE_ALLOC, floor_claim_push)

#define BUDDY_ALLOC(i) buddy_alloc(size)
BENCH_IMPL(buddy, BUDDY_ALLOC, buddy_free)

/* For loop_bulk, whose arrays nobody fills: c->objs ready-made objects from c->off in the array at c->pages. */
SEC("syscall") int loop_ready(struct bench_setup *c)
{
	__u64 at = c->off, buf = c->pages;
	__u32 i;

	arn_name_arena();
	c->err = 0;
	bpf_for(i, 0, c->objs) {
		arn_ptr(ARN_HERE, __u64, buf)[i] = at;
		at += c->size;
	}
	return 0;
}
