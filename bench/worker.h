/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * worker.h - what the native runner and its worker executables say to each other, over a pipe each
 * way (the worker's stdin and stdout).  Both are of one build: plain structures, no versions.
 *
 * The worker begins with a struct worker_hello; then each struct worker_cmd is answered by one
 * struct worker_reply.  End of file ends the worker.
 */
#ifndef BENCH_WORKER_H
#define BENCH_WORKER_H

#include <linux/types.h>

enum worker_op {
	WORKER_INIT, /* producers and allocs: most of any command to come */
	WORKER_CELL, /* measure */
	WORKER_LOOP, /* measure the loop without calls */
	WORKER_CHECK, /* is the heap consistent? */
};

struct worker_cmd {
	__u32 op;
	__u32 producers, allocs, size;
	__u32 xfree, pin, bulk;
	__u32 pad;
	double warm, secs;
};

struct worker_hello {
	char library[192]; /* version and file; empty: not the library meant */
	__u32 has_bulk;
};

struct worker_reply {
	__s32 err;
	double alloc_ns, free_ns;
	__u64 fails, dups;
	char why[192];
};

/* rounds.c: 0, or -errno. */
int rounds_init(const struct worker_cmd *c);
int rounds_cell(const struct worker_cmd *c, struct worker_reply *r);

#endif
