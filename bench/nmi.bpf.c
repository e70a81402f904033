// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * nmi.bpf.c - the programs of 'arenite bench nmi': one that is interrupted, and the one that interrupts it.
 *
 * Their arena is the heap under test (arn_attach before load).
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <arenite/arenite.bpf.h>

#include "kern.bpf.h"
#include "nmi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Of the run that goes on, on one CPU: what interrupts it is done before it goes on. */
static __u32 size_on_top; /* 0: nothing is allocated there */
static volatile __u64 hits, on_top_ns, fails_on_top;

/* Returns the failures. */
static arn_inline __u32 pair(__u32 size)
{
	__u64 p = (__u64)arn_malloc(size);

	if (arn_unlikely(!p))
		return 1;
	*arn_ptr(ARN_HERE, __u64, p) = p;
	return arn_free((void __arena *)p) != 0;
}

SEC("perf_event")
int nmi_hit(struct bpf_perf_event_data *ctx)
{
	__u64 t0;

	arn_name_arena();
	t0 = bpf_ktime_get_ns();
	hits++;
	if (size_on_top)
		fails_on_top += pair(size_on_top);
	on_top_ns += bpf_ktime_get_ns() - t0;
	return 0;
}

SEC("syscall")
int nmi_pairs(struct nmi_run *c)
{
	__u32 i, size = c->size, fails = arn_opaque(0u);
	__u64 t0;

	arn_name_arena();
	size_on_top = c->on_top ? size : 0;
	hits = 0;
	on_top_ns = 0;
	fails_on_top = 0;
	t0 = bpf_ktime_get_ns();
	for (i = arn_opaque(0u); i < NMI_PAIRS && arn_may_loop; i++)
		fails += pair(size);
	c->ns += bpf_ktime_get_ns() - t0;
	c->pairs += i;
	c->hits += hits;
	c->on_top_ns += on_top_ns;
	c->fails += fails + fails_on_top;
	return 0;
}

/* After a pair the object on top of the magazine is the one that the next pair takes and puts back. */
SEC("syscall")
int nmi_place(struct nmi_run *c)
{
	__u32 size = c->size, top;

	arn_name_arena();
	c->place = 0;
	if (size > ARN_MAX_CLASSED || pair(size))
		return 0;
	top = arn_cache(ARN_HERE, bpf_get_smp_processor_id(), arn_class_of(arn_root(ARN_HERE), size))->top;
	if (arn_top_has(top))
		c->place = kern_base + top;
	return 0;
}
