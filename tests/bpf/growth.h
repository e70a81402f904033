/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* growth.h - what growth.bpf.c and keeper tests read on both sides. */
#ifndef TEST_GROWTH_H
#define TEST_GROWTH_H

struct growth {
	__u64 chain; /* every object links to the one before */
	__u64 got, failed; /* allocations */
	__u64 left; /* to allocate; then the programs do nothing */
	__u64 later, later_err; /* arn_grow_later: calls, and its last error */
	__u64 kernel_threads, scheduled_on_one; /* arn_grow_later called on one, and done so */
	__u64 reserve; /* bytes for arn_reserve */
	__s64 reserve_err; /* what it said */
	__u32 refuse; /* page calls refused, of 100 */
	__u32 batch; /* at most so many a run */
	__u32 size;
};

#endif
