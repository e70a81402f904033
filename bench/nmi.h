/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * nmi.h - what 'arenite bench nmi' and its BPF programs say to each other.
 *
 * nmi_pairs allocates an object, writes its first word and frees it, again and again.  Its object is always the same one,
 * and each free puts it into the same place of the magazine, while it has the cache claimed.  A watchpoint on that place
 * has nmi_hit run there, once a pair.
 */
#ifndef BENCH_NMI_H
#define BENCH_NMI_H

#include <linux/types.h>

#define NMI_PAIRS 512u /* a run of the program */

/* The context of nmi_pairs and nmi_place, both ways. */
struct nmi_run {
	__u32 size;
	__u32 on_top; /* nmi_hit makes a pair too */
	__u64 place; /* out, nmi_place: what the next free writes, as the kernel addresses it; 0: no such place */
	/* out, added to: */
	__u64 ns, pairs;
	__u64 on_top_ns; /* in nmi_hit, between its two readings of the clock */
	__u64 hits; /* NMIs that came */
	__u64 fails; /* NULLs and refused frees, of both */
};

#endif
