/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * bpf.h - the implementations that run as BPF programs in this kernel.
 */
#ifndef BENCH_BPF_H
#define BENCH_BPF_H

#include "runner.h"

struct bench_bpf;

/*
 * Creates the heap and the baselines' arenas, loads the programs, maps the memory that o asks for,
 * and adds rows to the set.  0, or -errno after bench_fail(); -ENOTSUP or -EPERM: not on this kernel
 * or not with these rights.
 */
int bench_bpf_open(const struct bench_options *o, struct bench_set *set, struct bench_bpf **out);

/* Is the heap still consistent?  0, or -EUCLEAN after bench_fail(). */
int bench_bpf_check(struct bench_bpf *b);

void bench_bpf_close(struct bench_bpf *b);

#endif
