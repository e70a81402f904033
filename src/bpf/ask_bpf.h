/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ask_bpf.h - an allocation that leaves too few free pages has somebody who may sleep map more.
 *
 * Ways, by what arn_attach found (arn__ways) and by who is there:
 *
 *   work queue   its callback and its program are libarenite's, so all that stands here is bpf_wq_start.
 *                Not from an NMI, nor in objects with programs that may run under a scheduler's or
 *                work queue's lock (tracing, struct_ops: that would be a deadlock; for some the
 *                kernel refuses the map).
 *   doorbell     a ring buffer whose waking is an irq_work, fit for any context; the keeper sleeps on it.
 *   task work    has a callback of the unit's own: later_bpf.h.
 *
 * Why not all in one: the verifier refuses a global function that schedules a callback which may sleep
 * ("global functions that may sleep are not allowed in non-sleepable context"), and this is one.
 */
#ifndef ARN_ASK_BPF_H
#define ARN_ASK_BPF_H

#include "../core/growth.h"

/* Kernel types and functions under names of our own: whatever vmlinux.h has or lacks does not matter. */
struct bpf_wq___arn {
	__u64 opaque[2];
};
struct bpf_map___arn {
	__u32 id;
} __attribute__((preserve_access_index));

static arn_inline void arn_count(struct arn_root __arena *r, enum arn_count what)
{
	arn_inc64_relaxed(&r->count[what]);
}

#ifdef ARN_GROWS_ITSELF /* libarenite's own programs: whoever runs them maps memory at their end */
static arn_inline void arn__ask(void)
{
}

static arn_inline int arn_schedule_growth(struct arn_root __arena *r)
{
	return -ARN_EOPNOTSUPP;
}
#else
/* Written by arn_attach before load: what is not to be had is dead code to the verifier. */
const volatile __u32 arn__ways __weak SEC(".rodata.arenite") = 0;

/* As made here it cannot grow anything: arn_attach puts one in its place that can. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 16);
} arn_growth __weak SEC(".maps");

/* arn_attach puts the heap's in its place; libbpf rounds the size up to a page. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} arn_doorbell __weak SEC(".maps");

extern int bpf_wq_start___arn(struct bpf_wq___arn *wq, unsigned int flags) __weak __ksym;

static arn_inline void arn_wake_keeper(struct arn_root __arena *r)
{
	__u32 id = ((struct bpf_map___arn *)&arn_doorbell)->id;
	__u64 nothing = 0;

	/* arn_attach entered it, unless the object's arena came to the heap in another way. */
	if (!arn_load_relaxed(&r->doorbell_id))
		arn_cas32_full(&r->doorbell_id, 0, id);
	if (arn_load_relaxed(&r->doorbell_id) != id)
		arn_store_relaxed(&r->unheard, 1);
	if (!bpf_ringbuf_output(&arn_doorbell, &nothing, sizeof(nothing), BPF_RB_FORCE_WAKEUP))
		arn_count(r, ARN_COUNT_RUNG);
}

/* Free pages are below the low mark.  Any context; nothing that the library holds is held. */
__weak int arn__ask(void)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct bpf_wq___arn *wq;
	__u32 key = 0;

	arn_name_arena();
	if (!arn_ask_first(r, bpf_ktime_get_ns()))
		return 0;
	arn_count(r, ARN_COUNT_ASKED);
	if (arn__ways & ARN_WAY_QUEUE && bpf_ksym_exists(bpf_wq_start___arn)) {
		wq = bpf_map_lookup_elem(&arn_growth, &key);
		if (wq && !bpf_wq_start___arn(wq, 0))
			arn_count(r, ARN_COUNT_QUEUED);
	}
	/* As well: the keeper may have a CPU that is less busy. */
	if (arn_load_relaxed(&r->keeper))
		arn_wake_keeper(r);
	return 0;
}
#endif

#endif
