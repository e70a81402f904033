// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * percpu.bpf.c - arenite's per-CPU objects in the rounds of round.bpf.h.
 */
#include <linux/bpf.h>
#include <arenite/arenite.bpf.h>

#include "round.bpf.h"
#include "percpu.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PERCPU_ALLOC(i) ((__u64)arn_percpu_alloc(size))
#define PERCPU_FREE(p)	arn_percpu_free((void __arena *)(p))
BENCH_IMPL(percpu, PERCPU_ALLOC, PERCPU_FREE)
BENCH_HOLD(percpu)
