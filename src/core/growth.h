/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * growth.h - the marks: when growth is asked for, and how far it goes.
 *
 *           free pages
 *   0 ......... low ......... goal .............. high .........
 *     ask, grow to goal |    nothing to do     | keeper gives chunks back
 *
 * Who finds less than low writes the time to root.asked_at by compare-and-swap, and wakes somebody who
 * may sleep; others that find it written do nothing, so a storm wakes once.  Whoever grows clears it
 * *before* it looks at the free pages.  A request that nobody heard is out of date after a while.
 */
#ifndef ARN_GROWTH_H
#define ARN_GROWTH_H

#include "port.h"

#define ARN_ASK_AGAIN_NS 20000000ULL /* a request that old was not heard: several scheduler ticks */
#define ARN_ASK_RETRY_NS 500000000ULL /* after growth failed: what the kernel refused it refuses for a while */

/* Ways that a BPF object offers by what is in its map arn_growth. */
#define ARN_WAY_QUEUE 1u /* a work queue */
#define ARN_WAY_TASK  2u /* task work, ARN_TASK_ITEMS a CPU */

/*
 * A task that was interrupted in the kernel may go to sleep there, and keep what it was given: after a
 * while another item is given to another one.
 */
#define ARN_TASK_ITEMS 16u
#define ARN_TASK_SHIFT 20 /* ns, about a millisecond */

static arn_inline _Bool arn_below_low(struct arn_root __arena *r)
{
	return arn_load_relaxed(&r->pages_free) < arn_load_relaxed(&r->low_pages);
}

/* Pages to have free after growth: enough above low that the next request is not the next chunk's. */
static arn_inline __u32 arn_growth_goal(struct arn_root __arena *r)
{
	__u32 low = arn_load_relaxed(&r->low_pages), high = arn_load_relaxed(&r->high_pages);
	__u32 goal = low + low / 4 + ARN_CHUNK_PAGES;

	if (high && goal > high)
		goal = high;
	return goal < r->npages ? goal : r->npages;
}

/* Is a request at time was (0: none) still to be heard at time now? */
static arn_inline _Bool arn_asked(__u64 was, __u64 now)
{
	return was && (__s64)(now - was) < (__s64)ARN_ASK_AGAIN_NS;
}

/* Free pages are below low: is it the caller who has to wake somebody? */
static arn_inline _Bool arn_ask_first(struct arn_root __arena *r, __u64 now)
{
	__u64 was = arn_load_relaxed(&r->asked_at);

	return !arn_asked(was, now) && arn_cas64_full(&r->asked_at, was, now) == was;
}

/* Whoever grows says so before it looks at the free pages: later requests are new ones. */
static arn_inline void arn_ask_heard(struct arn_root __arena *r)
{
	arn_xchg64_full(&r->asked_at, 0);
}

/* Growth did not reach low: the next request is heard later. */
static arn_inline void arn_ask_later(struct arn_root __arena *r, __u64 now)
{
	arn_xchg64_full(&r->asked_at, now + ARN_ASK_RETRY_NS);
}

#endif
