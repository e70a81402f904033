/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * floor.bpf.h - the limit: what any per-CPU cache in an arena must at least do.
 *
 * An array of pointers in arena memory, indexed by CPU id, in a global function under the preempt
 * guard: one load, one store, one index update; no check of any kind.  It is no allocator: the
 * caller balances its calls on each CPU (a round frees as much as it allocates, and a program does
 * not migrate), and floor_reset fills the arrays between cells.
 */
#ifndef BENCH_FLOOR_BPF_H
#define BENCH_FLOOR_BPF_H

#include "round.h"

#define FLOOR_OBJS ((BENCH_FLOOR_SIZE - 64) / 8)

struct floor_cpu {
	__u64 n;
	__u32 busy; /* floor_claim */
	__u32 pad0;
	__u64 pad[6];
	__u64 obj[];
};

static arn_inline struct floor_cpu __arena *floor_cpu(__u32 cpu)
{
	return arn_ptr(ARN_HERE, struct floor_cpu, BENCH_FLOOR + (cpu << BENCH_FLOOR_SHIFT));
}

__weak __u64 floor_alloc(__u64 size)
{
	struct floor_cpu __arena *c;
	__u64 p, n;

	arn_name_arena();
	bpf_preempt_disable();
	c = floor_cpu(bpf_get_smp_processor_id());
	n = c->n - 1;
	p = c->obj[n];
	c->n = n;
	bpf_preempt_enable();
	return p;
}

__weak int floor_free(__u64 p)
{
	struct floor_cpu __arena *c;
	__u64 n;

	arn_name_arena();
	bpf_preempt_disable();
	c = floor_cpu(bpf_get_smp_processor_id());
	n = c->n;
	c->obj[n] = p;
	c->n = n + 1;
	bpf_preempt_enable();
	return 0;
}

/*
 * The same under the guard that arenite has instead: claimed by an exchange, released by a plain
 * store, with no call.  Where a call's return costs 7 ns (Safe RET) it lies far below the other.
 */
static arn_inline __u64 floor_claim_pop(void)
{
	struct floor_cpu __arena *c = floor_cpu(bpf_get_smp_processor_id());
	__u64 p, n;

	if (arn_unlikely(arn_xchg32_full(&c->busy, 1)))
		return 0;
	n = c->n - 1;
	p = c->obj[n];
	c->n = n;
	arn_barrier_compiler();
	arn_store_relaxed(&c->busy, 0);
	return p;
}

static arn_inline int floor_claim_push(__u64 p)
{
	struct floor_cpu __arena *c = floor_cpu(bpf_get_smp_processor_id());
	__u64 n;

	if (arn_unlikely(arn_xchg32_full(&c->busy, 1)))
		return -ARN_EAGAIN;
	n = c->n;
	c->obj[n] = p;
	c->n = n + 1;
	arn_barrier_compiler();
	arn_store_relaxed(&c->busy, 0);
	return 0;
}

__weak __u64 floor_claim_alloc(__u64 size)
{
	arn_name_arena();
	return floor_claim_pop();
}

__weak int floor_claim_free(__u64 p)
{
	arn_name_arena();
	return floor_claim_push(p);
}

/* Each of c->cpus CPUs gets c->objs objects of c->size bytes, which lie from c->off on. */
SEC("syscall") int floor_reset(struct bench_setup *c)
{
	__u32 at = c->off, objs = c->objs, size = c->size;
	__u32 i, j;

	arn_name_arena();
	c->err = 0;
	if (objs > FLOOR_OBJS) {
		c->err = -ARN_E2BIG;
		return 0;
	}
	bpf_for(i, 0, c->cpus) {
		floor_cpu(i)->n = objs;
		floor_cpu(i)->busy = 0;
		bpf_for(j, 0, objs) {
			floor_cpu(i)->obj[objs - 1 - j] = at;
			at += size;
		}
	}
	return 0;
}

#endif
