/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * hold.bpf.h - who holds which object: a bit a granule in a map of the test's own, set and cleared
 * atomically, so an object that is handed out twice is seen at once; and its ends carry its address, so one
 * that overlaps another is seen when it is freed.
 */
#ifndef TEST_HOLD_BPF_H
#define TEST_HOLD_BPF_H

#include "hold.h"

__u64 bits[HOLD_WORDS];
struct hold_wrong wrong;

#define HOLD_KEY 0x9e3779b97f4a7c15ULL
#define word(at) (*(volatile __u64 __arena *)(__u64)(at))

static void hold(__u64 p, __u64 size)
{
	__u64 bit = 1ULL << ((p >> 4) & 63);

	if (__sync_fetch_and_or(&bits[(__u32)p >> 10 & (HOLD_WORDS - 1)], bit) & bit)
		__sync_fetch_and_add(&wrong.twice, 1);
	size &= ~7ULL;
	word(p) = p ^ HOLD_KEY;
	word(p + 8) = size;
	if (size > 16)
		word(p + size - 8) = p + HOLD_KEY;
}

static void let_go(__u64 p)
{
	__u64 bit = 1ULL << ((p >> 4) & 63), size = word(p + 8);

	if (word(p) != (p ^ HOLD_KEY) || size > HOLD_ARENA || (size > 16 && word(p + size - 8) != p + HOLD_KEY))
		__sync_fetch_and_add(&wrong.torn, 1);
	if (!(__sync_fetch_and_and(&bits[(__u32)p >> 10 & (HOLD_WORDS - 1)], ~bit) & bit))
		__sync_fetch_and_add(&wrong.lost_mark, 1);
}

/* Frees an object that is held; that is never refused. */
static void give_back(__u64 p)
{
	if (!p)
		return;
	let_go(p);
	if (arn_free((void __arena *)p))
		__sync_fetch_and_add(&wrong.refused, 1);
}

/* xorshift64*: Marsaglia 2003, Vigna 2016 */
static __u64 next(__u64 *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * 0x2545f4914f6cdd1dULL >> 16;
}

#endif
