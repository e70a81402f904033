// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * anycontext.bpf.c - an object that maps its memory itself, in programs that may not sleep.  It loads where
 * the kernel gives pages in any context.
 */
#define ARN_PAGES_ANY_CONTEXT
#include <linux/bpf.h>
#include <arenite/arenite.bpf.h>
#include "anycontext.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct job job[ANY_CPUS];
__s64 left, done; /* runs of an attached program */
int reserve_err, trimmed;

/* Takes up to turns objects, one after the other, and links them. */
__weak int take(__u32 which)
{
	struct job *j = &job[which % ANY_CPUS];
	__u64 __arena *p;
	__u32 i;

	for (i = arn_opaque(0u); i < j->turns && arn_may_loop; i++) {
		p = arn_malloc(j->size);
		if (!p) {
			j->nulls++;
			break;
		}
		p[0] = j->chain;
		p[1] = j->mark;
		j->chain = (__u64)p;
		j->taken++;
	}
	return 0;
}

__weak int drop(__u32 which)
{
	struct job *j = &job[which % ANY_CPUS];
	__u64 __arena *p;
	__u64 next;

	arn_name_arena();
	while (j->chain && arn_may_loop) {
		p = (__u64 __arena *)j->chain;
		next = p[0];
		if (p[1] != j->mark || arn_free(p))
			j->bad++;
		j->taken--;
		j->chain = next;
	}
	return 0;
}

SEC("raw_tp") int any_raw_tp(void *ctx)
{
	return take(bpf_get_smp_processor_id());
}

SEC("raw_tp") int any_drop(void *ctx)
{
	return drop(bpf_get_smp_processor_id());
}

SEC("xdp") int any_xdp(void *ctx)
{
	take(bpf_get_smp_processor_id());
	return XDP_PASS;
}

SEC("tc") int any_tc(void *ctx)
{
	take(bpf_get_smp_processor_id());
	return 0;
}

SEC("xdp") int any_reserve(void *ctx)
{
	reserve_err = arn_reserve(20 << 20);
	return XDP_PASS;
}

SEC("xdp") int any_trim(void *ctx)
{
	trimmed = arn_trim();
	return XDP_PASS;
}

SEC("xdp") int any_aligned(void *ctx)
{
	struct job *j = &job[0];
	__u64 p = (__u64)arn_aligned_alloc(j->mark, j->size);

	j->nulls += !p;
	j->chain = p;
	return XDP_PASS;
}

/* A whole array at once; the array lies in the heap too. */
SEC("xdp") int any_bulk(void *ctx)
{
	struct job *j = &job[0];
	__u64 out = (__u64)arn_malloc(8UL * j->turns);

	if (!out)
		return XDP_ABORTED;
	j->taken = arn_malloc_bulk(j->size, j->turns, out);
	j->bad = j->taken - arn_free_bulk(out, j->taken) + !!arn_free((void __arena *)out);
	return XDP_PASS;
}

/* Attached, until they have run as often as was asked for. */
static inline __attribute__((always_inline)) void once_more(void)
{
	if (left > 0 && __sync_fetch_and_add(&left, -1) > 0) {
		take(bpf_get_smp_processor_id());
		__sync_fetch_and_add(&done, 1);
	}
}

SEC("tp_btf/sched_switch") int any_tp_btf(void *ctx)
{
	once_more();
	return 0;
}

SEC("perf_event") int any_perf(void *ctx)
{
	once_more();
	return 0;
}

SEC("uprobe") int any_uprobe(void *ctx)
{
	once_more();
	return 0;
}
