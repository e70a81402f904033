/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * growth_rig.h - what the tests of growth share: a heap with watermarks, and on it one of the programs of
 * growth.bpf.c that may not sleep and go on allocating.
 */
#ifndef TEST_GROWTH_RIG_H
#define TEST_GROWTH_RIG_H

#include "rig.h"
#include "growth.h"
#include "growth.skel.h"

extern struct rig *t;
extern struct growth_bpf *gs;

/* A heap with these marks (bytes), and prog loaded on it. */
void begin(__u64 bytes, __u64 low, __u64 high, const char *prog);
/* A teardown: everything is freed, and the heap sound. */
int end(void **state);

void xdp_run(void); /* grow_xdp once */
/* Time from one run of a program to the next. */
__u64 pace_ns(void);
/* Objects that a test allocates: a million, a quarter of that on emulated kernels. */
__u64 a_million(void);
/* prog by an event of this thread's CPU time, at that pace, in batches of 256, until it has asked for n objects. */
void ticks(struct bpf_program *prog, __u64 n);
/* Until nobody grows the heap any more: the walkers want that. */
void rest(void);

/* Skips the test unless the kernel has a line of feature.h. */
void need(const char *feature);

__u64 count(enum arn_count what);
__u64 now_ns(void);
__u64 now_ms(void);

#endif
