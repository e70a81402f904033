// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * runner.c - repeats, their order, medians and per-repeat ratios.
 *
 * Memory: every row holds one sample a repeat; rows are made for hidden implementations (loop, swap)
 * too and used up by settle(), which fills .loop_ns and .net_ns.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "args.h"
#include "runner.h"
#include "out.h"

static char last_error[512] = "no error";

int bench_fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, ap);
	va_end(ap);
	return err;
}

const char *bench_last_error(void)
{
	return last_error;
}

struct bench_impl *bench_add(struct bench_set *set, const char *name, enum bench_role role, bool bulk)
{
	struct bench_impl *impl = &set->impl[set->nimpls];

	if (set->nimpls == BENCH_MAX_IMPLS)
		return NULL;
	set->nimpls++;
	memset(impl, 0, sizeof(*impl));
	impl->name = name;
	impl->role = role;
	impl->bulk = bulk;
	return impl;
}

void bench_note(struct bench_set *set, const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if (set->nnotes == sizeof(set->note) / sizeof(*set->note)) {
		free(text);
		return;
	}
	set->note[set->nnotes++] = text;
}

void bench_clear(struct bench_set *set)
{
	size_t i;

	for (i = 0; i < set->nrows; i++) {
		free(set->row[i].alloc_ns);
		free(set->row[i].free_ns);
		free(set->row[i].loop_ns);
		free(set->row[i].net_ns);
	}
	for (i = 0; i < set->nnotes; i++)
		free((void *)set->note[i]);
	free(set->row);
	memset(set, 0, sizeof(*set));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct bench_stat bench_stat(const double *v, size_t n)
{
	struct bench_stat s = { NAN, NAN, NAN };
	double *sorted = n ? malloc(n * sizeof(*v)) : NULL;

	if (!sorted)
		return s;
	memcpy(sorted, v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*v), by_value);
	s.median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
	s.min = sorted[0];
	s.max = sorted[n - 1];
	free(sorted);
	return s;
}

double bench_net(const struct bench_row *row, unsigned int repeats)
{
	return bench_stat(row->alloc_ns, repeats).median + bench_stat(row->free_ns, repeats).median -
	       2 * bench_stat(row->loop_ns, repeats).median;
}

struct bench_stat bench_ratio(const struct bench_row *a, const struct bench_row *b, unsigned int repeats)
{
	struct bench_stat s = { NAN, NAN, NAN };
	double *r = malloc(repeats * sizeof(*r));
	unsigned int k;

	if (!r)
		return s;
	for (k = 0; k < repeats; k++)
		r[k] = a->net_ns[k] / b->net_ns[k];
	s = bench_stat(r, repeats);
	free(r);
	return s;
}

static const struct bench_row *find_role(const struct bench_set *set, enum bench_role role, struct bench_cell cell,
					 bool bulk)
{
	size_t i;

	for (i = 0; i < set->nrows; i++) {
		const struct bench_row *r = &set->row[i];

		if (r->impl->role == role && r->impl->bulk == bulk && r->cell.producers == cell.producers &&
		    r->cell.allocs == cell.allocs)
			return r;
	}
	return NULL;
}

const struct bench_row *bench_find(const struct bench_set *set, const char *impl, struct bench_cell cell, bool bulk)
{
	size_t i;

	for (i = 0; i < set->nrows; i++) {
		const struct bench_row *r = &set->row[i];

		if (r->impl->role == BENCH_ROW && r->impl->bulk == bulk && !strcmp(r->impl->name, impl) &&
		    r->cell.producers == cell.producers && r->cell.allocs == cell.allocs)
			return r;
	}
	return NULL;
}

static int make_rows(struct bench_set *set, const struct bench_options *o)
{
	unsigned int p, n;
	size_t i;

	set->repeats = o->repeats;
	set->row = calloc(set->nimpls * o->nproducers * o->nallocs, sizeof(*set->row));
	if (!set->row)
		return bench_fail(-ENOMEM, "%s: no memory for the results", o->bench);
	for (p = 0; p < o->nproducers; p++)
		for (n = 0; n < o->nallocs; n++)
			for (i = 0; i < set->nimpls; i++) {
				struct bench_row *r = &set->row[set->nrows++];

				r->impl = &set->impl[i];
				r->cell.producers = o->producers[p];
				r->cell.allocs = o->allocs[n];
				r->alloc_ns = calloc(o->repeats, sizeof(double));
				r->free_ns = calloc(o->repeats, sizeof(double));
				r->loop_ns = calloc(o->repeats, sizeof(double));
				r->net_ns = calloc(o->repeats, sizeof(double));
				if (!r->alloc_ns || !r->free_ns || !r->loop_ns || !r->net_ns)
					return bench_fail(-ENOMEM, "%s: no memory for the results", o->bench);
			}
	return 0;
}

/* Subtracts what is not the implementation's, repeat by repeat. */
static int settle(struct bench_set *set, const struct bench_options *o)
{
	double swap[BENCH_MAX_REPEATS];
	unsigned int k;
	size_t i;

	for (i = 0; i < set->nrows; i++) {
		struct bench_row *r = &set->row[i];
		const struct bench_row *loop = find_role(set, BENCH_LOOP, r->cell, r->impl->bulk);
		const struct bench_row *sw = find_role(set, BENCH_SWAP, r->cell, r->impl->bulk);

		if (r->impl->role != BENCH_ROW)
			continue;
		if (!loop)
			return bench_fail(-EINVAL, "%s: no loop row to subtract", o->bench);
		for (k = 0; k < o->repeats; k++) {
			r->loop_ns[k] = (loop->alloc_ns[k] + loop->free_ns[k]) / 2;
			if (sw && !strcmp(r->impl->name, "kernel")) {
				r->alloc_ns[k] -= sw->alloc_ns[k] - loop->alloc_ns[k];
				r->free_ns[k] -= sw->free_ns[k] - loop->free_ns[k];
				swap[k] = sw->alloc_ns[k] + sw->free_ns[k] - 2 * r->loop_ns[k];
				r->swap_ns = bench_stat(swap, k + 1).median;
			}
			r->net_ns[k] = r->alloc_ns[k] + r->free_ns[k] - 2 * r->loop_ns[k];
		}
	}
	return 0;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int measure(const struct bench_options *o, struct bench_row *r, unsigned int k)
{
	struct bench_sample s = { 0 };
	int err = r->impl->run(r->impl, o, &r->cell, &s);

	if (err)
		return err;
	if (s.dups)
		return bench_fail(
			-EUCLEAN,
			"%s: %s handed out %llu objects twice (%u producers, %u objects): its results mean nothing",
			o->bench, r->impl->name, s.dups, r->cell.producers, r->cell.allocs);
	r->alloc_ns[k] = s.alloc_ns;
	r->free_ns[k] = s.free_ns;
	r->fails += s.fails;
	return 0;
}

int bench_run(struct bench_set *set, const struct bench_options *o)
{
	double start = seconds(), left;
	unsigned int k;
	size_t i;
	int err;

	err = make_rows(set, o);
	for (k = 0; !err && k < o->repeats; k++) {
		for (i = 0; !err && i < set->nrows; i++)
			err = measure(o, &set->row[(i + k * (set->nimpls + 1)) % set->nrows], k);
		left = (seconds() - start) / (k + 1) * (o->repeats - k - 1);
		out_progress("%s: repeat %u of %u, about %.0f s left", o->bench, k + 1, o->repeats, left);
	}
	out_progress(NULL);
	return err ? err : settle(set, o);
}

error_t bench_parse_times(int key, char *arg, struct argp_state *state, struct bench_options *o)
{
	switch (key) {
	case 'w':
		if (!args_seconds(arg, 3600, &o->warm))
			return args_bad(state, "-w '%s': not seconds from 0.001 to 3600", arg);
		return 0;
	case 'd':
		if (!args_seconds(arg, 3600, &o->secs))
			return args_bad(state, "-d '%s': not seconds from 0.001 to 3600", arg);
		return 0;
	case 'r':
		if (!args_uint(arg, 1, BENCH_MAX_REPEATS, &o->repeats))
			return args_bad(state, "-r '%s': not a number from 1 to %d", arg, BENCH_MAX_REPEATS);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}
