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
	struct arn_ring __arena *s, *m;
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
	s = arn_ring_create_spsc(64);
	m = arn_ring_create_mpsc(64);
	if (!s || !m)
		return 11;
	if (arn_ring_enqueue_spsc(s, p) != 1 || arn_ring_enqueue_mpsc(m, p) != 1 || arn_ring_count(s) != 1 ||
	    arn_ring_dequeue_spsc(s) != p || arn_ring_dequeue_mpsc(m) != p || arn_ring_skip(m))
		return 12;
	v[0] = v[1] = (__u64)p;
	if (arn_ring_enqueue_bulk_spsc(s, (__u64)v, 2, 2) != 2 || arn_ring_enqueue_bulk_mpsc(m, (__u64)v, 1, 2) != 2 ||
	    arn_ring_dequeue_bulk_spsc(s, (__u64)v, 1, 9) != 2 || arn_ring_dequeue_bulk_mpsc(m, (__u64)v, 2, 2) != 2)
		return 13;
	if (arn_ring_destroy(s) || arn_ring_destroy(m))
		return 14;
	if (arn_free(p) || arn_free(q) || arn_free(v) || !arn_free(v))
		return 8;
	if (arn_trim() <= 0)
		return 9;
	return arn_calls_without_heap ? 10 : 0;
}
