/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * crowd.h - threads that churn (churn.bpf.c) on one heap at once, each pinned to its CPU, and what must
 * hold when they are done.
 */
#ifndef TEST_CROWD_H
#define TEST_CROWD_H

#include <pthread.h>
#include "rig.h"
#include "churn.h"
#ifdef TEST_NO_GUARD /* the same object, with the claim of a cache compiled out */
#include "noguard.skel.h"
#else
#include "churn.skel.h"
#endif

struct worker {
	struct bpf_program *prog;
	struct churn arg; /* .made and the like add up */
	int cpu;
	__u64 least; /* made and freed: it goes on until then, though no longer than a minute */
	int wakes_us; /* 0: an ordinary thread; else one of real-time priority that wakes so often for a short run */
	__u64 preempted; /* out: times that it lost its CPU */
	pthread_t thread;
	__u64 deadline;
	int err;
};

extern struct rig *t;
extern struct churn_bpf *churn;

int crowd_setup(__u32 flags);
int crowd_teardown(void **state);

__u64 crowd_now_ms(void);
/* Starts all of them and waits for their end, ms from now. */
void crowd_run(struct worker *w, int n, int ms);
/* Objects that lie in boxes: not freed yet. */
__u64 crowd_boxed(void);
/* The walkers are content, no object was handed out twice, none is lost, and it empties the boxes. */
void crowd_sound(const struct worker *w, int n);

#endif
