/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring.h - arguments of ring.bpf.c, read by both sides. */
#ifndef TEST_RING_H
#define TEST_RING_H

enum ring_kind { RING_SPSC, RING_MPSC };

enum ring_code { RING_CREATE, RING_DESTROY, RING_PUT, RING_GET, RING_PUT_BULK, RING_GET_BULK, RING_COUNT, RING_SKIP };

/* One call. */
struct ring_op {
	__u32 code, kind;
	__u32 least, n;
	__u64 ring;
	__u64 obj; /* or the array, or the size of a new ring */
	__s64 ret;
};

/* An object that is sent: the n-th of producer id. */
struct ring_cell {
	__u64 n, id;
};

#define RING_CELLS     4096 /* of a producer: more than are in a ring at a time */
#define RING_PRODUCERS 4
#define RING_BATCH     64

/* A producer's or consumer's share of a hand-over; a run does a part of it and says how far it came. */
struct ring_side {
	__u64 ring;
	__u64 cells; /* producer: RING_CELLS of struct ring_cell */
	__u64 vec; /* RING_BATCH pointers */
	__u64 count, done; /* objects in all, and so far */
	__u64 wrong; /* consumer: objects out of order, or without what was written to them */
	__u64 idle; /* calls that found the ring full, or empty */
	__u32 kind, id;
	__u32 most; /* objects a call; 1: single calls */
	__u32 all; /* not fewer */
};

/* What interrupts do. */
enum ring_tick { TICK_NOTHING, TICK_PUT, TICK_GET };

#endif
