/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * runner.h - a benchmark as a set of implementations measured side by side in one run.
 *
 * A cell is a point to measure (producers, objects a round).  In repeat k every implementation is
 * measured once in every cell, in an order that rotates with k, so that whatever disturbs the
 * machine for a while falls on all of them: ratios are formed repeat by repeat.
 */
#ifndef BENCH_RUNNER_H
#define BENCH_RUNNER_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#define BENCH_MAX_LIST	  16
#define BENCH_MAX_REPEATS 1000
#define BENCH_MAX_IMPLS	  16

struct bench_options {
	const char *bench;
	bool xfree, pin, bulk, limits, native, user, verbose;
	unsigned int nproducers, producers[BENCH_MAX_LIST];
	unsigned int nallocs, allocs[BENCH_MAX_LIST];
	unsigned int size, repeats;
	double warm, secs;
};

/* -w, -d and -r, which all scenarios have; ARGP_ERR_UNKNOWN for other keys. */
error_t bench_parse_times(int key, char *arg, struct argp_state *state, struct bench_options *o);

struct bench_cell {
	unsigned int producers, allocs;
};

struct bench_sample {
	double alloc_ns, free_ns; /* an operation, loop and clock reads included */
	unsigned long long fails; /* NULLs and refused frees */
	unsigned long long dups; /* objects that somebody else had too: the implementation is wrong */
};

enum bench_role {
	BENCH_ROW, /* is shown */
	BENCH_LOOP, /* what all rows of its bulk-ness carry besides their calls */
	BENCH_SWAP, /* what the kernel's row carries besides, loop included */
};

struct bench_impl {
	const char *name;
	const char *mode; /* NULL: that of the whole set (native or bpf) */
	enum bench_role role;
	bool bulk;
	/* 0, or -errno after bench_fail() */
	int (*run)(const struct bench_impl *impl, const struct bench_options *o, const struct bench_cell *cell,
		   struct bench_sample *out);
	void *ctx;
};

struct bench_row {
	const struct bench_impl *impl;
	struct bench_cell cell;
	unsigned long long fails;
	/* one a repeat: */
	double *alloc_ns, *free_ns;
	double *loop_ns; /* of this cell's loop: half of its alloc and free together */
	double *net_ns; /* alloc + free less twice the loop */
	double swap_ns; /* kernel: median of what was subtracted from the pair */
};

struct bench_set {
	struct bench_impl impl[BENCH_MAX_IMPLS];
	size_t nimpls;
	struct bench_row *row;
	size_t nrows;
	unsigned int repeats;
	const char *note[8]; /* rows left out, and why */
	size_t nnotes;
};

struct bench_stat {
	double median, min, max;
};

struct bench_impl *bench_add(struct bench_set *set, const char *name, enum bench_role role, bool bulk);
void bench_note(struct bench_set *set, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Measures all.  0, or -errno after bench_fail(). */
int bench_run(struct bench_set *set, const struct bench_options *o);
void bench_clear(struct bench_set *set);

struct bench_stat bench_stat(const double *v, size_t n);
/* Alloc median + free median - 2 x loop median. */
double bench_net(const struct bench_row *row, unsigned int repeats);
/* Of the per-repeat ratios of the net pairs. */
struct bench_stat bench_ratio(const struct bench_row *a, const struct bench_row *b, unsigned int repeats);
/* The row, or NULL. */
const struct bench_row *bench_find(const struct bench_set *set, const char *impl, struct bench_cell cell, bool bulk);

/* Keeps a message (object, cause, remedy) and returns err. */
int bench_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *bench_last_error(void);

#endif
