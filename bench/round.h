/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * round.h - what a malloc benchmark program and the thread that runs it say to each other.
 *
 * One round: read the clock, allocate n objects one after another (store each pointer in an array,
 * write the object's first word), read the clock, free n objects, read the clock.  One run of the
 * program is at most .rounds rounds.  struct bench_round is the program's context, both ways.
 *
 * The arena of a benchmark object, below 16 MiB (where a heap's root would lie):
 *
 *   BENCH_LANES   one struct bench_lane a producer
 *   BENCH_BUFS    two arrays of 64-bit pointers a producer: round k fills array k & 1
 *
 * xfree: in round k worker w frees what its peer allocated in round k - 1, and fills the array that
 * the one before it emptied in round k - 1: it begins round k only when both have finished that round
 * (lane.done).  Then two arrays are enough: nobody gets two rounds ahead of a neighbour.
 * Without xfree, several producers keep step from run to run (BENCH_STEP): on a machine with other
 * work they would else often be measured one at a time, without the contention that is the point.
 */
#ifndef BENCH_ROUND_H
#define BENCH_ROUND_H

#include <linux/types.h>

#define BENCH_MAX_PRODUCERS 64
#define BENCH_MAX_OBJS	    65536
#define BENCH_BULK	    64 /* objects a bulk call */

#define BENCH_LANES 0x100000u /* 1 MiB: page 0 belongs to nobody */
#define BENCH_BUFS  0x110000u
#define BENCH_END   0x1000000u

/* The baselines' arena above that: fixed places in 4 GiB of address space, mapped as needed. */
#define BENCH_FLOOR	  0x02000000u /* floor: an array of pointers a CPU, 2 MiB each */
#define BENCH_FLOOR_SHIFT 21
#define BENCH_FLOOR_SIZE  (1u << BENCH_FLOOR_SHIFT)
#define BENCH_FLOOR_CPUS  256
#define BENCH_BUDDY_HEAD  0x2ff00000u /* buddy-lock: lock and lists */
#define BENCH_BUDDY_META  0x30000000u /*   one state byte a 16-byte unit */
#define BENCH_BUDDY	  0x40000000u /*   what it manages: 1 GiB at most */
#define BENCH_BUDDY_MAX	  0x40000000u
#define BENCH_READY	  0x80000000u /* ready-made objects for loop and floor */
#define BENCH_READY_MAX	  0x7f000000u

enum bench_flags {
	BENCH_XFREE = 1, /* free the peer's previous round, not one's own */
	BENCH_CHECK = 2, /* after allocating, untimed: does every object still hold its own mark? */
	BENCH_STEP = 4, /* begin each run only when the neighbours are as far */
};

struct bench_lane {
	__u64 done; /* rounds finished: written by the lane's producer, read by its neighbours */
	__u64 pad0[7];
	__u32 held[2]; /* objects in each array; 0 once freed */
	__u32 pad1[14];
};

struct bench_round {
	__u32 producer, peer, before; /* ring: frees peer's objects; before frees this one's */
	__u32 n, size;
	__u32 rounds; /* at most, in this run */
	__u32 flags;
	__u32 stride; /* bytes from array to array */
	__u32 aux; /* arena offset of ready-made objects (loop) */
	__u32 pad;
	__u64 round; /* in: number of the first round; out: of the next */
	/* out, added up: */
	__u64 alloc_ns, free_ns;
	__u64 allocs, frees;
	__u64 fails; /* NULLs and failed frees */
	__u64 dups; /* BENCH_CHECK: objects that did not hold their mark */
	__u64 broken; /* a bounded loop ended early: the figures mean nothing */
};

/* Context of the setup programs. */
struct bench_setup {
	__u64 off; /* map: first byte (page aligned) */
	__u64 pages;
	__u32 size;
	__u32 objs;
	__u32 cpus;
	__u32 page_size;
	__s64 err;
};

#ifdef __bpf__
_Static_assert(sizeof(struct bench_lane) == 128, "producers on lines of their own");
#endif

#endif
