/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * report.h - results as tables and as JSON.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <jansson.h>
#include "runner.h"

/* CPU, kernel, and what of it decides what a call costs. */
json_t *bench_machine(void);

/* Median, range and each repeat's own, to a hundredth. */
json_t *bench_stat_json(const double *v, unsigned int repeats);

/* library: NULL, or what a row's name is served by. */
json_t *bench_document(const struct bench_set *set, const struct bench_options *o);
void bench_tables(const struct bench_set *set, const struct bench_options *o);

#endif
