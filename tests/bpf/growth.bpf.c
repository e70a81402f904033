// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * growth.bpf.c - programs that may not sleep and go on allocating: a batch a run, kept on a chain.
 *
 * One program type an object: what growth is asked by depends on all that an object has.  (Only the
 * programs that a test loads count.)
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>
#include "growth.h"

struct growth g;

/* Page calls that the kernel seems to refuse, of 100. */
#define ARN_TEST_MAP_FAILS (g.refuse && bpf_get_prandom_u32() % 100 < g.refuse)
#include <arenite/arenite.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MOST	 65536
#define word(at) (*(volatile __u64 __arena *)(__u64)(at))

/* Only one program runs at a time, and on one CPU. */
static inline __attribute__((always_inline)) void batch(void)
{
	__u64 chain = g.chain, got = arn_opaque(0ull), failed = arn_opaque(0ull), p;
	__u32 n = g.left < g.batch ? g.left : g.batch, size = g.size;
	int i;

	arn_name_arena();
	bpf_for(i, 0, MOST) {
		if ((__u32)i >= n)
			break;
		p = (__u64)arn_malloc(size);
		if (!p) {
			failed++;
			continue;
		}
		word(p) = chain;
		chain = p;
		got++;
	}
	g.chain = chain;
	g.got += got;
	g.failed += failed;
	g.left -= n;
}

SEC("?xdp")
int grow_xdp(struct xdp_md *ctx)
{
	batch();
	return XDP_PASS;
}

SEC("?perf_event")
int grow_perf(struct bpf_perf_event_data *ctx)
{
	if (g.left)
		batch();
	return 0;
}

SEC("?perf_event")
int grow_perf_later(struct bpf_perf_event_data *ctx)
{
	int err;

	if (g.left)
		batch();
	err = arn_grow_later();
	if (err)
		g.later_err = err;
	g.later++;
	return 0;
}

struct task_struct___test {
	unsigned int flags;
} __attribute__((preserve_access_index));

/* The task that goes off the CPU is current: now and then a kernel thread, or the idle one. */
SEC("?tp_btf/sched_switch")
int grow_switch(void *ctx)
{
	struct task_struct___test *task = (void *)bpf_get_current_task_btf();
	int err;

	if (!(task->flags & 0x00200000) && bpf_get_current_pid_tgid()) /* PF_KTHREAD, idle */
		return 0;
	err = arn_grow_later();
	__sync_fetch_and_add(&g.kernel_threads, 1);
	if (!err)
		__sync_fetch_and_add(&g.scheduled_on_one, 1);
	return 0;
}

/* A batch, and then growth by itself. */
SEC("?syscall")
int grow_reserve(void *ctx)
{
	batch();
	g.reserve_err = arn_reserve(g.reserve);
	return 0;
}
