// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* structops.bpf.c - allocations in struct_ops programs: a TCP congestion control that has none. */
#include <linux/bpf.h>
#include <arenite/arenite.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct sock;

/* The members set here; libbpf finds them by name in the kernel's own. */
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[16];
};

/* In a map of its own, where user space finds it without a skeleton. */
struct {
	__u64 ran, bad;
} counts SEC(".bss.counts");

static inline __attribute__((always_inline)) void pair(void)
{
	void __arena *p = arn_malloc(64), *q = arn_malloc(100000);

	if (!p || !q)
		__sync_fetch_and_add(&counts.bad, 1);
	if (arn_free(p) || arn_free(q))
		__sync_fetch_and_add(&counts.bad, 1);
	__sync_fetch_and_add(&counts.ran, 1);
}

SEC("struct_ops")
void ca_init(void *ctx)
{
	pair();
}

SEC("struct_ops")
void ca_release(void *ctx)
{
	pair();
}

SEC("struct_ops")
void ca_avoid(void *ctx)
{
	pair();
}

SEC("struct_ops")
__u32 ca_ssthresh(void *ctx)
{
	pair();
	return 10;
}

SEC("struct_ops")
__u32 ca_undo(void *ctx)
{
	pair();
	return 10;
}

SEC(".struct_ops")
struct tcp_congestion_ops arn_ca = {
	.init = (void *)ca_init,
	.release = (void *)ca_release,
	.cong_avoid = (void *)ca_avoid,
	.ssthresh = (void *)ca_ssthresh,
	.undo_cwnd = (void *)ca_undo,
	.name = "arn_test",
};
