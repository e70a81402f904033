// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * nmi.bpf.c - an interrupted program, and the one that interrupts it where a watched word is written.
 *
 * nmi_work goes through every part of the library in turns.  nmi_hit runs in the debug exception right
 * after the store, which it knows by the address of the next instruction: it allocates, and frees what it
 * allocated before.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

/* Exchanges with the depot may be made to lose all their races now and then. */
__u32 fickle;

static inline __u32 tries(void)
{
	return fickle && !(bpf_get_prandom_u32() & 3) ? 0 : 64;
}
#define ARN_DEPOT_TRIES tries()

#include <arenite/arenite.bpf.h>
#include <bpf/bpf_tracing.h>
#include "nmi.h"
#include "hold.bpf.h"
#include "kern.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* ---- On top ---- */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NMI_SITES);
	__type(key, __u64); /* address of the instruction after the store */
	__type(value, __u32);
} sites SEC(".maps");

__u64 hits[NMI_SITES]; /* by site: how often nmi_hit acted there, and how often it was told no */
__u64 nulls[NMI_SITES];
__u64 want; /* of each */
__u64 strays; /* stores of others: these programs' own */
__u64 acted;
__u32 armed; /* how often, in one call of the interrupted: or it would never be done */
__u64 box[4], vec;

/* False: an allocation failed. */
static _Bool act(void)
{
	__u32 n = acted++, k, got;
	__u64 p;

	if (n % 8 == 7) {
		got = arn_malloc_bulk(NMI_SIZE, 2, vec);
		for (k = 0; k < 2; k++) {
			if (k >= got)
				break;
			hold(word(vec + k * 8), NMI_SIZE);
			let_go(word(vec + k * 8));
		}
		if (got && arn_free_bulk(vec, got) != (int)got)
			__sync_fetch_and_add(&wrong.bulk_short, 1);
		return got == 2;
	}
	p = (__u64)arn_malloc(NMI_SIZE);
	if (p)
		hold(p, NMI_SIZE);
	give_back(box[n % 4]);
	box[n % 4] = p;
	return p != 0;
}

SEC("perf_event")
int nmi_hit(struct bpf_perf_event_data *ctx)
{
	__u64 ip = PT_REGS_IP(&ctx->regs);
	__u32 *at = bpf_map_lookup_elem(&sites, &ip), site;

	arn_name_arena();
	if (!at || *at >= NMI_SITES) {
		strays++;
		return 0;
	}
	site = *at;
	if (hits[site] >= want || !armed)
		return 0;
	armed--;
	hits[site]++;
	if (!act())
		nulls[site]++;
	return 0;
}

/* Nothing is interrupted now: what was kept goes back. */
SEC("syscall")
int nmi_rest(void *ctx)
{
	__u32 i;

	for (i = 0; i < 4; i++) {
		give_back(box[i]);
		box[i] = 0;
	}
	return 0;
}

/* ---- Below ---- */

__u64 held[NMI_MOST], kept[16];
__u64 work_nulls;
__u64 work_vec; /* room for NMI_BULK pointers */

__u32 once; /* per turn, not per call */

static void arm(void)
{
	if (once)
		return;
	*(volatile __u32 *)&armed = 2;
}

/* Inlined hit or its call, in one place each, so that every store of theirs is there once. */
__weak __u64 get(__u64 size, __u32 called)
{
	__u64 p;

	arn_name_arena();
	arm();
	p = called ? arn__malloc(size) : (__u64)arn_malloc(size);
	if (!p)
		__sync_fetch_and_add(&work_nulls, 1);
	else if (size <= ARN_MAX_CLASSED)
		hold(p, size);
	return p;
}

__weak int put(__u64 p, __u32 called)
{
	arn_name_arena();
	arm();
	if (!called) {
		give_back(p);
	} else if (p) {
		let_go(p);
		if (arn__free(p))
			__sync_fetch_and_add(&wrong.refused, 1);
	}
	return 0;
}

/* How many lie near is only known roughly: none, or more than may, so that the depot's own stacks serve. */
static void misjudge(__u32 cls, __u64 seed)
{
	struct arn_cache __arena *c = arn_cache(ARN_HERE, bpf_get_smp_processor_id(), cls);

	c->near_n = seed & 16 ? 255 : 0;
	c->near_empty_n = seed & 32 ? 255 : 0;
}

__weak int burst(__u32 n, __u64 size, __u32 called)
{
	int i;

	arn_name_arena();
	bpf_for(i, 0, NMI_MOST) {
		if ((__u32)i >= n || wrong.twice)
			break;
		held[i] = get(size, called);
	}
	bpf_for(i, 0, NMI_MOST) {
		if ((__u32)i >= n || wrong.twice)
			break;
		put(held[i], called);
	}
	return 0;
}

/* A magazine of the depot's is parked, as one whose push gave up: the next exchange unparks it. */
__weak int park(__u32 cls, __u32 full)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_cache __arena *c = arn_cache(ARN_HERE, bpf_get_smp_processor_id(), cls);
	__u32 top, m;

	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return 0;
	top = arn_claim(c);
	if (top == ARN_CACHE_BUSY)
		return 0;
	if (!c->parked) {
		m = full ? arn_depot_pop(ARN_HERE, &r->depot[cls].full) : arn_depot_pop(ARN_HERE, &r->depot[cls].empty);
		if (m)
			c->parked = arn_top(m, full ? arn_mag_count(ARN_HERE, m) : 0);
	}
	arn_unclaim(c, top);
	return 0;
}

__weak int in_bulk(__u32 n, __u32 parked)
{
	__u32 got;
	int i;

	arm();
	got = arn_malloc_bulk(NMI_SIZE, n, work_vec);
	if (got != n)
		__sync_fetch_and_add(&work_nulls, 1);
	bpf_for(i, 0, NMI_BULK) {
		if ((__u32)i >= got)
			break;
		hold(word(work_vec + i * 8), NMI_SIZE);
	}
	bpf_for(i, 0, NMI_BULK) {
		if ((__u32)i >= got)
			break;
		let_go(word(work_vec + i * 8));
	}
	if (parked)
		park(arn_class_of(arn_root(ARN_HERE), NMI_SIZE), parked & 1);
	arm();
	if (got && arn_free_bulk(work_vec, got) != (int)got)
		__sync_fetch_and_add(&wrong.bulk_short, 1);
	return 0;
}

/* What cache and depot have of the class goes to the slabs. */
__weak int to_slabs(__u32 cls)
{
	__u64 at;

	arn_name_arena();
	arm();
	arn__drain(cls);
	for (at = arn__depot_take(cls, 0); (__u32)at && arn_may_loop; at = arn__depot_take(cls, at >> 32)) {
		arm();
		if (!arn__mag_empty(cls, at))
			break;
	}
	arm();
	return arn__settle();
}

/* One magazine is kept back, so that its page cannot go. */
__weak int to_runs(__u32 cls, __u32 keep_one)
{
	__u32 m;

	to_slabs(cls);
	arm();
	arn__retire(cls);
	m = keep_one ? arn__empty_mag(cls) : 0;
	arm();
	arn__retire_mags(cls);
	if (m)
		arn__share(cls, m, 0);
	arm();
	return arn__settle();
}

/* Some stay from turn to turn, so that not every slab is empty. */
__weak int keep(__u64 seed)
{
	__u32 k = seed & 15, i;

	arn_name_arena();
	for (i = 0; i < 3; i++, k = (k + 5) & 15) {
		put(kept[k], k & 1);
		kept[k] = seed >> (8 + i) & 1 ? get(NMI_SIZE, k & 1) : 0;
	}
	return 0;
}

/* A few sizes, so that the same pages are first and last of runs again and again; one is aligned. */
__weak int large(__u64 seed)
{
	int i;

	arn_name_arena();
	bpf_for(i, 0, 8)
		held[i] = get(i == 5 ? 65536 : 36000 + (seed >> i & 1) * 12288, 1);
	bpf_for(i, 0, 8) {
		__u32 k = (i * 3 + (seed >> 8)) & 7;

		arm();
		if (held[k] && arn__free(held[k]))
			__sync_fetch_and_add(&wrong.refused, 1);
	}
	return 0;
}

/* The cache is in use: by this program itself, which stands for one that was interrupted. */
__weak int bypass(__u32 cls, __u32 bulk)
{
	struct arn_cache __arena *c = arn_cache(ARN_HERE, bpf_get_smp_processor_id(), cls);
	__u32 top;

	arn_name_arena();
	top = arn_claim(c);
	if (bulk)
		in_bulk(12, 0);
	else
		burst(12, NMI_SIZE, 1);
	arn_unclaim(c, top);
	return 0;
}

/* Likewise the lock; the reserve is whole at first, and the last step has it filled up again. */
__weak int below(__u32 cls)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 me = bpf_get_smp_processor_id() + 1;

	arn_name_arena();
	once = 1;
	to_slabs(cls);
	burst(1, NMI_SIZE, 1);
	to_slabs(cls);
	once = 0;
	if (arn_cas32_full(&r->lock, 0, me)) {
		__sync_fetch_and_add(&work_nulls, 1);
		return 0;
	}
	arm();
	once = 1;
	burst(3, NMI_SIZE, 1);
	*(volatile __u32 *)&armed = 0;
	arn_xchg32_full(&r->lock, 0);
	to_slabs(cls);
	once = 0;
	return burst(1, NMI_SIZE, 1);
}

/* Objects from the slabs for a reserve that is full meanwhile. */
__weak int overstock(__u32 cls)
{
	int i;

	arn_name_arena();
	arm();
	if (cls < ARN_CLASSES && !arn_root(ARN_HERE)->depot[cls].partial)
		arn__more_slabs(cls);
	bpf_for(i, 0, 16) {
		arm();
		held[i] = arn__fill(cls, 0);
	}
	bpf_for(i, 0, 16) {
		arm();
		if (held[i])
			arn__emergency_put(held[i]);
	}
	return 0;
}

/* The reserve goes: into slabs that are spent, or that have some. */
__weak int release(__u32 cls, __u32 spent)
{
	int i;

	arn_name_arena();
	if (!spent) {
		overstock(cls);
		overstock(arn_class_of(arn_root(ARN_HERE), NMI_SMALL));
		to_slabs(cls);
		arm();
		arn__emergency_release(cls);
		return burst(12, NMI_SIZE, 1);
	}
	bpf_for(i, 0, 40)
		held[i] = get(NMI_SIZE, 1);
	arm();
	arn__emergency_release(cls);
	bpf_for(i, 0, 40)
		put(held[i], 1);
	return 0;
}

__weak int turn(__u32 work, __u64 seed)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 cls;

	arn_name_arena();
	cls = arn_class_of(r, NMI_SIZE);
	if (work <= NMI_BYPASS || work == NMI_PARK)
		misjudge(cls, seed);
	fickle = work == NMI_PARK;
	if (fickle)
		park(cls, seed & 64);
	switch (work) {
	case NMI_PARK:
		in_bulk(seed & 1 ? NMI_BULK : 24, seed >> 7 & 3);
		return burst(40, NMI_SIZE, 1);
	case NMI_PAIRS:
		return burst(seed & 1 ? 20 : NMI_MOST, NMI_SIZE, seed & 2);
	case NMI_IN_BULK:
		return in_bulk(seed & 1 ? NMI_BULK : 5 + (seed >> 1 & 15), 0);
	case NMI_BYPASS:
		return bypass(cls, seed & 1);
	case NMI_REFILL:
		to_slabs(cls);
		keep(seed);
		return burst(20, NMI_SIZE, 1);
	case NMI_RECLAIM:
		to_runs(cls, seed & 64);
		keep(seed);
		return burst(seed & 1 ? 20 : 40, NMI_SIZE, 1);
	case NMI_RECLAIM_ALIGNED:
		to_runs(arn_class_of(r, NMI_ALIGNED), 0);
		return burst(seed & 1 ? 5 : 20, NMI_ALIGNED, 1);
	case NMI_LARGE:
		return large(seed);
	case NMI_BELOW:
		return below(cls);
	default:
		return release(cls, seed & 1);
	}
}

SEC("syscall")
int nmi_work(struct nmi_job *j)
{
	__u64 until = bpf_ktime_get_ns() + j->ns, seed = j->seed, done = arn_opaque(0ull);
	__u32 work = j->work;
	int i;

	bpf_for(i, 0, 1 << 20) {
		turn(work, next(&seed));
		done++;
		if (bpf_ktime_get_ns() > until || wrong.twice)
			break;
	}
	armed = 0;
	fickle = 0;
	j->seed = seed;
	j->done += done;
	return 0;
}

/* In the end nothing is kept. */
SEC("syscall")
int nmi_drop(void *ctx)
{
	int i;

	bpf_for(i, 0, 16) {
		give_back(kept[i]);
		kept[i] = 0;
	}
	return 0;
}
