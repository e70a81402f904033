/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* churn.h - arguments and bounds of churn.bpf.c, read by both sides. */
#ifndef TEST_CHURN_H
#define TEST_CHURN_H

#include "hold.h"

#define CHURN_ARENA HOLD_ARENA
#define CHURN_BOXES 4096
#define CHURN_BULK  64

enum churn_sizes {
	CHURN_ONE, /* 64 bytes, so that everybody meets in one class */
	CHURN_SMALL, /* 16 to 512 */
	CHURN_MIXED, /* log-uniform to 16 KiB, now and then 100,000 */
	CHURN_HUGE, /* log-uniform to 256 KiB: more than there is */
	CHURN_WHOLE, /* 32 KiB, of which a magazine holds one: an exchange with the depot each time */
};

#define CHURN_ALLOC 1u
#define CHURN_FREE  2u

struct churn {
	__u64 seed;
	__u32 rounds;
	__u32 sizes; /* enum churn_sizes */
	__u32 role; /* CHURN_ALLOC, CHURN_FREE or both */
	__u32 boxes; /* how many are used, a power of two */
	__u64 vec; /* bulk: room for 2 * CHURN_BULK pointers in the arena */
	__u64 made, freed, nulls; /* out, added to */
};

#endif
