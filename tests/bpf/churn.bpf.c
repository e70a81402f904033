// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * churn.bpf.c - objects made here and freed there: whoever gets one puts it in a box at random and
 * frees what was in it.
 *
 * Each object is marked while somebody holds it (hold.bpf.h).
 *
 * A run ends after RUN_NS whatever happens: on a heap that a bug has broken each call may take as long
 * as the kernel's patience.  Counters start from arn_opaque(0): from a constant the verifier would
 * follow each turn's value ("The sequence of 8193 jumps is too complex").
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <arenite/arenite.bpf.h>
#include "churn.h"
#include "hold.bpf.h"
#include "kern.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 box[CHURN_BOXES];
__u64 ticks;
__u32 tick_sizes, tick_boxes = CHURN_BOXES; /* of churn_tick */

#define RUN_NS 200000000ULL

static __u64 size_of(__u32 sizes, __u64 *seed)
{
	__u64 r = next(seed), octave;

	switch (sizes) {
	case CHURN_ONE:
		return 64;
	case CHURN_WHOLE:
		return 32768;
	case CHURN_SMALL:
		return 16 + r % 497;
	case CHURN_MIXED:
		if (r % 512 == 0)
			return 100000;
		octave = (r >> 10) % 10;
		break;
	default:
		octave = (r >> 10) % 14;
	}
	return (16ULL << octave) + (r >> 20) % (16ULL << octave);
}

/* What a run of turns carries along. */
struct turns {
	__u64 seed, made, freed, nulls;
	__u32 sizes, role, boxes;
};

/* One turn: a new object into a box, or one out of it, or both. */
static void turn(struct turns *t)
{
	__u64 size = size_of(t->sizes, &t->seed), p = 0, old;
	__u64 *at = &box[next(&t->seed) & (t->boxes - 1) & (CHURN_BOXES - 1)];

	if (t->role & CHURN_ALLOC && (t->role & CHURN_FREE || !*at)) {
		p = (__u64)arn_malloc(size);
		if (!p) {
			t->nulls++;
			return;
		}
		hold(p, size);
		t->made++;
	}
	if (t->role & CHURN_FREE) {
		old = __sync_lock_test_and_set(at, p);
	} else {
		if (!p)
			return;
		old = __sync_val_compare_and_swap(at, 0, p) ? p : 0;
	}
	give_back(old);
	t->freed += old != 0;
}

/* How deep things are nested on a CPU: churn_run, on top of it churn_middle, on top of that churn_nmi. */
#define CPUS 64
__u8 below[CPUS], middle[CPUS];
__u64 middles, nmis, deep; /* churn_middle on top of churn_run; churn_nmi; of those on top of both */
__u64 top_nulls;

SEC("syscall")
int churn_run(struct churn *a)
{
	struct turns t = { a->seed, arn_opaque(0ull), arn_opaque(0ull), arn_opaque(0ull), a->sizes, a->role, a->boxes };
	__u64 until = bpf_ktime_get_ns() + RUN_NS;
	__u32 rounds = a->rounds, cpu = bpf_get_smp_processor_id() & (CPUS - 1);
	int i;

	asm volatile("" : : "r"(&arn_arena));
	*(volatile __u8 *)&below[cpu] = 1;
	bpf_for(i, 0, 1 << 20) {
		if ((__u32)i >= rounds || bpf_ktime_get_ns() > until)
			break;
		turn(&t);
	}
	*(volatile __u8 *)&below[cpu] = 0;
	a->seed = t.seed;
	a->made += t.made;
	a->freed += t.freed;
	a->nulls += t.nulls;
	return 0;
}

static void few_turns(int n)
{
	struct turns t = { ((__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32()) | 1,
			   arn_opaque(0ull),
			   arn_opaque(0ull),
			   arn_opaque(0ull),
			   tick_sizes,
			   CHURN_ALLOC | CHURN_FREE,
			   tick_boxes };
	int i;

	bpf_for(i, 0, n)
		turn(&t);
	if (t.nulls)
		__sync_fetch_and_add(&top_nulls, t.nulls);
}

/* On top of whatever runs on this CPU. */
SEC("perf_event")
int churn_tick(struct bpf_perf_event_data *ctx)
{
	arn_name_arena();
	__sync_fetch_and_add(&ticks, 1);
	few_turns(4);
	return 0;
}

/* In the timer's interrupt, before what it is for. */
SEC("tp_btf/hrtimer_expire_entry")
int churn_middle(void *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id() & (CPUS - 1);

	arn_name_arena();
	if (!below[cpu])
		return 0;
	__sync_fetch_and_add(&middles, 1);
	*(volatile __u8 *)&middle[cpu] = 1;
	few_turns(40);
	*(volatile __u8 *)&middle[cpu] = 0;
	return 0;
}

/* Where a watched word is written. */
SEC("perf_event")
int churn_nmi(struct bpf_perf_event_data *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id() & (CPUS - 1);

	arn_name_arena();
	__sync_fetch_and_add(&nmis, 1);
	if (middle[cpu])
		__sync_fetch_and_add(&deep, 1);
	few_turns(2);
	return 0;
}

SEC("syscall")
int churn_bulk(struct churn *a)
{
	__u64 made = arn_opaque(0ull), freed = arn_opaque(0ull), nulls = arn_opaque(0ull);
	__u64 seed = a->seed, in = a->vec, out = in + CHURN_BULK * 8, size, p, old;
	__u64 until = bpf_ktime_get_ns() + RUN_NS;
	__u32 rounds = a->rounds, sizes = a->sizes, n, got;
	int i, k;

	asm volatile("" : : "r"(&arn_arena));
	bpf_for(i, 0, 1 << 16) {
		if ((__u32)i >= rounds || bpf_ktime_get_ns() > until)
			break;
		size = size_of(sizes, &seed);
		got = arn_malloc_bulk(size, CHURN_BULK, in);
		made += got;
		nulls += got < CHURN_BULK;
		n = arn_opaque(0u);
		bpf_for(k, 0, CHURN_BULK) {
			if ((__u32)k >= got)
				break;
			p = word(in + k * 8ULL);
			hold(p, size);
			old = __sync_lock_test_and_set(&box[next(&seed) & (CHURN_BOXES - 1)], p);
			if (!old)
				continue;
			let_go(old);
			word(out + n * 8ULL) = old;
			n++;
		}
		if (n && arn_free_bulk(out, n) != (int)n)
			__sync_fetch_and_add(&wrong.bulk_short, 1);
		freed += n;
	}
	a->seed = seed;
	a->made += made;
	a->freed += freed;
	a->nulls += nulls;
	return 0;
}
