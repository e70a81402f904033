// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* bare.bpf.c - an object that has nothing to do with arenas. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("syscall")
int bare(void *ctx)
{
	return 0;
}
