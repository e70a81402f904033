/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* percpu.h - between percpu.c (speed, in this kernel) and percpu_areas.c (memory, laid out for many CPUs). */
#ifndef BENCH_PERCPU_H
#define BENCH_PERCPU_H

#include <jansson.h>
#include "runner.h"

struct arn_heap;

#define MIB (1ULL << 20)

/* Memory of a heap's per-CPU objects: their slabs and magazines, and their share of what describes pages. */
double bench_percpu_mib(struct arn_heap *heap);

/*
 * --cpus: native heaps laid out for each number of CPUs; time and memory of 1, 128 and 32,768 objects.
 * 0 and the table printed and an array, or -errno after bench_fail().
 */
int bench_percpu_areas(const unsigned int *cpus, unsigned int n, unsigned int size, json_t **rows);

#endif
