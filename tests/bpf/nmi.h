/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nmi.h - what nmi.bpf.c is asked to do, read by both sides. */
#ifndef TEST_NMI_H
#define TEST_NMI_H

#include "hold.h"

#define NMI_SITES   512
#define NMI_HITS    20 /* interruptions of each store */
#define NMI_TORTURE 1000 /* likewise, by make torture */
#define NMI_SIZE    4096u /* eight objects a magazine, one a page: structures have few words */
#define NMI_ALIGNED 8192u /* of a class whose slabs are aligned */
#define NMI_SMALL   512u /* two objects to a word of bits */
#define NMI_MOST    170 /* more than a slot keeps near */
#define NMI_BULK    32

/* The interrupted: each turn of one leads through other parts of the library. */
enum nmi_work {
	NMI_PAIRS, /* bursts: hits, exchanges with the near stacks and the depot */
	NMI_IN_BULK,
	NMI_BYPASS, /* past a cache that is in use */
	NMI_REFILL, /* the depot is empty: slabs */
	NMI_RECLAIM, /* slabs and magazines come and go */
	NMI_RECLAIM_ALIGNED, /* of aligned ones */
	NMI_LARGE, /* page runs */
	NMI_BELOW, /* on top of the lock's holder: the emergency reserve */
	NMI_RELEASE, /* the reserve is given up and made anew */
	NMI_PARK, /* pushes that lose every race */
	NMI_WORKS
};

struct nmi_job {
	__u32 work; /* enum nmi_work */
	__u32 pad;
	__u64 ns; /* at most, but one turn */
	__u64 seed;
	__u64 done; /* out, added to */
};

#endif
