/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * scenario.h - what the bench command knows of a scenario.
 */
#ifndef BENCH_SCENARIO_H
#define BENCH_SCENARIO_H

#include <stdbool.h>
#include <jansson.h>

struct bench_options;

struct bench_scenario {
	const char *name, *text;
	/* argv[0] is "arenite bench NAME".  Returns the exit status. */
	int (*main)(const struct bench_scenario *s, int argc, char **argv);
};

extern const struct bench_scenario bench_malloc_free, bench_malloc_xfree, bench_nmi, bench_percpu, bench_shared;

/* -p 1,2 (1 on one CPU), -n 1,4,16,64,256,4096, 64 bytes, 15 repeats. */
void bench_malloc_defaults(struct bench_options *o, const struct bench_scenario *s);

/* Measures, prints the tables, gives the document.  0, or -errno after bench_fail(). */
int bench_malloc(const struct bench_options *o, json_t **doc);

#endif
