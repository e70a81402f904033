// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * header.bpf.c - one program that uses every public function, compiled by headers.sh in each way that
 * the header allows: HDR_VMLINUX (after vmlinux.h, else after linux/bpf.h), HDR_PROG (the program's
 * name, for several units in one object), ARN_LINKED.
 */
#ifdef HDR_VMLINUX
#include "vmlinux.h"
#else
#include <linux/bpf.h>
#endif
#include <arenite/arenite.bpf.h>

char LICENSE[] SEC("license") __weak = "Dual BSD/GPL";

#ifndef HDR_PROG
#define HDR_PROG header
#endif

/* Returns the step that went wrong, or 0. */
SEC("syscall")
int HDR_PROG(void *ctx)
{
	__u64 __arena *p, *q, *v;

	if (arn_reserve(1 << 20))
		return 1;
	p = arn_malloc(100);
	if (!p || arn_usable_size(p) != 112)
		return 2;
	*p = 42;
	p = arn_realloc(p, 5000);
	if (!p || *p != 42)
		return 3;
	q = arn_calloc(10, 10);
	if (!q || *q)
		return 4;
	v = arn_aligned_alloc(4096, 512);
	if (!v || (__u64)v & 4095)
		return 5;
	if (arn_malloc_bulk(64, 64, (__u64)v) != 64)
		return 6;
	if (arn_free_bulk((__u64)v, 64) != 64)
		return 7;
	if (arn_free(p) || arn_free(q) || arn_free(v) || !arn_free(v))
		return 8;
	if (arn_trim() <= 0)
		return 9;
	return arn_calls_without_heap ? 10 : 0;
}
