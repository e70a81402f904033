/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <linux/bpf.h>
#include <arenite/arenite.bpf.h>
#include "hello.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
struct packet __arena *latest[LATEST];
__u64 seen;

SEC("xdp") int remember(struct xdp_md *ctx)
{
	struct packet __arena *p = arn_malloc(sizeof(*p));

	if (!p)
		return XDP_PASS; /* no mapped memory left: arn_reserve maps more */
	p->number = __sync_fetch_and_add(&seen, 1);
	p->ns = bpf_ktime_get_ns();
	p->bytes = ctx->data_end - ctx->data;
	/* The packet that was there goes. NULL is nothing to free. */
	arn_free(__sync_lock_test_and_set(&latest[p->number % LATEST], p));
	return XDP_PASS;
}
