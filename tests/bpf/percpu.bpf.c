// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * percpu.bpf.c - the per-CPU functions behind a syscall program, and a churn of them that interrupts
 * (pc_tick, in hardirq or NMI context) make on top of the same.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <arenite/arenite.bpf.h>
#include "kern.bpf.h"
#include "percpu.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 box[PERCPU_BOXES];
struct percpu_wrong wrong;
__u64 ticks, in_nmi_ticks;
__u32 tick_size = 64;

#define MOST	 (1 << 20)
#define RUN_NS	 200000000ULL
#define word(at) (*(volatile __u64 __arena *)(__u64)(at))

/* The value of a word of the copy of cpu. */
#define mark_of(p, cpu, i) ((p) * 0x9e3779b97f4a7c15ULL + (__u64)(cpu) * 1000003 + (i))

/* Are all copies zero?  Marks them. */
__weak int mark(__u64 p, __u64 bytes)
{
	int dirty = arn_opaque(0), cpu, i;

	asm volatile("" : : "r"(&arn_arena));
	arn_for_each_cpu(cpu)
	{
		__u64 at = (__u64)arn_per_cpu_ptr((char __arena *)p, cpu);

		bpf_for(i, 0, 64) {
			if ((__u64)i * 8 + 8 > bytes)
				break;
			if (word(at + i * 8))
				dirty = 1;
			word(at + i * 8) = mark_of(p, cpu, i);
		}
	}
	return dirty;
}

/* Did a copy lose its mark? */
__weak int look(__u64 p, __u64 bytes)
{
	int torn = arn_opaque(0), cpu, i;

	asm volatile("" : : "r"(&arn_arena));
	arn_for_each_cpu(cpu)
	{
		__u64 at = (__u64)arn_per_cpu_ptr((char __arena *)p, cpu);

		bpf_for(i, 0, 64) {
			if ((__u64)i * 8 + 8 > bytes)
				break;
			if (word(at + i * 8) != mark_of(p, cpu, i))
				torn = 1;
		}
	}
	return torn;
}

/* A new object of 16 to 512 bytes into a box; what was there is looked at and freed.  Its size is in no place: by class of box. */
static __always_inline _Bool turn(__u64 size)
{
	__u32 r = bpf_get_prandom_u32();
	__u64 *at = &box[r & (PERCPU_BOXES - 1)], p, old;
	__u64 bytes = size ? size : 16 * ((r & (PERCPU_BOXES - 1)) % 32 + 1);

	p = (__u64)arn_percpu_alloc(bytes);
	if (p && mark(p, bytes))
		__sync_fetch_and_add(&wrong.dirty, 1);
	old = __sync_lock_test_and_set(at, p);
	if (old && look(old, bytes))
		__sync_fetch_and_add(&wrong.torn, 1);
	if (arn_percpu_free((void __arena *)old))
		__sync_fetch_and_add(&wrong.refused, 1);
	return p != 0;
}

SEC("perf_event")
int pc_tick(struct bpf_perf_event_data *ctx)
{
	asm volatile("" : : "r"(&arn_arena));
	__sync_fetch_and_add(&ticks, 1);
	turn(tick_size);
	return 0;
}

static void each(struct pc *o)
{
	__u64 p = o->a, n = arn_opaque(0ull);
	int cpu;

	arn_for_each_cpu(cpu) n += word(arn_per_cpu_ptr((char __arena *)p, cpu)) == (__u64)cpu + 1;
	o->ret = n;
}

static void count(struct pc *o)
{
	__u64 p = o->a;
	__u32 n = o->n;
	int i;

	bpf_for(i, 0, MOST) {
		if ((__u32)i >= n)
			break;
		__sync_fetch_and_add((__u64 __arena *)arn_this_cpu_ptr((char __arena *)p), 1);
	}
	o->ret = 0;
}

static void churn(struct pc *o)
{
	__u64 size = o->a, nulls = arn_opaque(0ull), until = bpf_ktime_get_ns() + RUN_NS;
	__u32 n = o->n;
	int i;

	bpf_for(i, 0, MOST) {
		if ((__u32)i >= n || bpf_ktime_get_ns() > until)
			break;
		nulls += !turn(size);
	}
	o->ret = nulls;
}

static void mark_or_look(struct pc *o, _Bool marks)
{
	__u64 size = o->a, vec = o->b, bad = arn_opaque(0ull);
	__u32 n = o->n;
	int i;

	bpf_for(i, 0, MOST) {
		if ((__u32)i >= n)
			break;
		bad += marks ? mark(word(vec + i * 8), size) : look(word(vec + i * 8), size);
	}
	o->ret = bad;
}

SEC("syscall")
int pc_run(struct pc *o)
{
	asm volatile("" : : "r"(&arn_arena));
	switch (o->code) {
	case PC_ALLOC:
		o->ret = (__s64)arn_percpu_alloc(o->a);
		break;
	case PC_FREE:
		o->ret = arn_percpu_free((void __arena *)o->a);
		break;
	case PC_ALLOC_BULK:
		o->ret = arn_percpu_alloc_bulk(o->a, o->n, o->b);
		break;
	case PC_FREE_BULK:
		o->ret = arn_percpu_free_bulk(o->b, o->n);
		break;
	case PC_PREPARE:
		o->ret = arn_percpu_prepare(o->a, o->n);
		break;
	case PC_SUM:
		o->ret = arn_percpu_sum((__u64 __arena *)o->a);
		break;
	case PC_CPUS:
		o->ret = arn_percpu_cpus();
		break;
	case PC_THIS:
		o->ret = (__s64)arn_this_cpu_ptr((char __arena *)o->a);
		break;
	case PC_EACH:
		each(o);
		break;
	case PC_COUNT:
		count(o);
		break;
	case PC_CHURN:
		churn(o);
		break;
	case PC_MARK:
		mark_or_look(o, 1);
		break;
	case PC_LOOK:
		mark_or_look(o, 0);
		break;
	default:
		o->ret = -1;
	}
	return 0;
}
