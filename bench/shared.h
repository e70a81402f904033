/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * shared.h - what 'arenite bench shared' and its BPF programs say to each other.
 *
 * One side makes objects and hands them over by a ring, the other takes them out and frees them, a batch
 * at a time.  The maker fills the object with its number, and the taker reads all of it: objects come in order, so a number that is not the next one is an object in two hands.
 *
 * Ready-made objects are taken in turn and not freed; there are enough that none is written to again
 * before it was read.
 */
#ifndef BENCH_SHARED_H
#define BENCH_SHARED_H

#include <linux/types.h>

#define SHARED_RING    1024u /* places */
#define SHARED_READY   2048u /* ready-made objects: more than the ring and both sides' batches hold */
#define SHARED_BATCH   32u
#define SHARED_LINE    64u
#define SHARED_BATCHES 256u /* a run of a program: a fraction of a millisecond */
#define SHARED_WAIT    20000u /* looks at a ring that is full or empty, until the run ends */

enum shared_impl {
	SHARED_BULK, /* a call of the allocator a batch */
	SHARED_SINGLE, /* an object */
	SHARED_RINGS, /* none: ready-made objects */
	SHARED_IMPLS
};

/* One side; its program's context, both ways. */
struct shared_side {
	__u64 ring, vec; /* in the arena; vec: SHARED_BATCH pointers */
	__u64 ready; /* first of the ready-made objects */
	__u32 size;
	__u32 at, held; /* maker: [at, held) of vec wait for room in the ring */
	__u32 pad;
	__u64 number; /* of the next object */
	/* out, added to: */
	__u64 objs, fails, wrong;
	__s64 err; /* of the ring */
};

#endif
