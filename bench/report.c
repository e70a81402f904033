// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * report.c - the results: net pairs side by side, ratios with their spread, and the whole as JSON.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "out.h"
#include "report.h"

/* Names of the rows, in the order of the set. */
static size_t row_names(const struct bench_set *set, bool bulk, const char **names)
{
	size_t i, n = 0;

	for (i = 0; i < set->nimpls; i++)
		if (set->impl[i].role == BENCH_ROW && set->impl[i].bulk == bulk)
			names[n++] = set->impl[i].name;
	return n;
}

/* Another of our rows that has a ratio: how much more it costs. */
static bool is_user(const char *name)
{
	return !strcmp(name, "arenite-user");
}

static bool ours(const char *name)
{
	return !strncmp(name, "arenite", 7) && !is_user(name);
}

/* A limit: the ratio is how far above it arenite is.  Else: how far below. */
static bool below(const char *name)
{
	return !strncmp(name, "floor", 5);
}

static void ratio_cell(struct out_table *t, const struct bench_row *a, const struct bench_row *b, unsigned int repeats)
{
	struct bench_stat s;

	if (!a || !b) {
		out_cell(t, "-");
		return;
	}
	s = bench_ratio(a, b, repeats);
	out_cell(t, "%.2fx (%.2f-%.2f)", s.median, s.min, s.max);
}

static void net_cell(struct out_table *t, const struct bench_row *r, unsigned int repeats)
{
	if (r)
		out_cell(t, "%.1f ns", bench_net(r, repeats));
	else
		out_cell(t, "-");
}

static void cell_begin(struct out_table *t, struct bench_cell c)
{
	out_row(t);
	out_cell(t, "%u", c.producers);
	out_cell(t, "%u", c.allocs);
}

/* One line a cell: every row's net pair. */
static void pair_table(const struct bench_set *set, const struct bench_options *o)
{
	const char *names[BENCH_MAX_IMPLS];
	size_t i, n = row_names(set, false, names);
	struct out_table *t;
	char title[160];
	unsigned int p, a;

	snprintf(title, sizeof(title), "%s (%s, %u bytes): an alloc and a free, less the loop; medians of %u", o->bench,
		 o->native ? "native" : "BPF", o->size, o->repeats);
	t = out_table(title);
	out_col(t, "producers", true);
	out_col(t, "objects", true);
	for (i = 0; i < n; i++)
		out_col(t, names[i], true);
	for (p = 0; p < o->nproducers; p++)
		for (a = 0; a < o->nallocs; a++) {
			struct bench_cell c = { o->producers[p], o->allocs[a] };

			cell_begin(t, c);
			for (i = 0; i < n; i++)
				net_cell(t, bench_find(set, names[i], c, false), o->repeats);
		}
	out_table_end(t);
}

/* The same as ratios, each repeat's own. */
static void ratio_table(const struct bench_set *set, const struct bench_options *o)
{
	struct out_table *t = out_table("ratios: median (range) of each repeat's own");
	const char *names[BENCH_MAX_IMPLS];
	size_t i, n = row_names(set, false, names);
	unsigned int p, a;
	char head[64];

	out_col(t, "producers", true);
	out_col(t, "objects", true);
	for (i = 1; i < n; i++) {
		if (ours(names[i]))
			continue;
		if (is_user(names[i]))
			snprintf(head, sizeof(head), "%s / arenite", names[i]);
		else if (below(names[i]))
			snprintf(head, sizeof(head), "arenite / %s", names[i]);
		else
			snprintf(head, sizeof(head), "%s / arenite", names[i]);
		out_col(t, head, true);
	}
	for (p = 0; p < o->nproducers; p++)
		for (a = 0; a < o->nallocs; a++) {
			struct bench_cell c = { o->producers[p], o->allocs[a] };
			const struct bench_row *us = bench_find(set, "arenite", c, false), *r;

			cell_begin(t, c);
			for (i = 1; i < n; i++) {
				if (ours(names[i]))
					continue;
				r = bench_find(set, names[i], c, false);
				if (below(names[i]))
					ratio_cell(t, us, r, o->repeats);
				else
					ratio_cell(t, r, us, o->repeats);
			}
		}
	out_table_end(t);
}

static void bulk_table(const struct bench_set *set, const struct bench_options *o)
{
	struct out_table *t = out_table("bulk calls of up to 64 objects, beside one by one");
	unsigned int p, a;

	out_col(t, "producers", true);
	out_col(t, "objects", true);
	out_col(t, "arenite", true);
	out_col(t, "arenite bulk", true);
	out_col(t, "bulk / one by one", true);
	for (p = 0; p < o->nproducers; p++)
		for (a = 0; a < o->nallocs; a++) {
			struct bench_cell c = { o->producers[p], o->allocs[a] };
			const struct bench_row *one = bench_find(set, "arenite", c, false);
			const struct bench_row *bulk = bench_find(set, "arenite", c, true);

			cell_begin(t, c);
			net_cell(t, one, o->repeats);
			net_cell(t, bulk, o->repeats);
			ratio_cell(t, bulk, one, o->repeats);
		}
	out_table_end(t);
}

static void stat_cell(struct out_table *t, const double *v, unsigned int repeats)
{
	struct bench_stat s = bench_stat(v, repeats);

	out_cell(t, "%.1f ns (%.1f-%.1f)", s.median, s.min, s.max);
}

/* Everything, one line a row. */
static void row_table(const struct bench_set *set, const struct bench_options *o)
{
	struct out_table *t = out_table("each operation, loop and clock reads included");
	size_t i;

	out_col(t, "producers", true);
	out_col(t, "objects", true);
	out_col(t, "row", false);
	out_col(t, "alloc", true);
	out_col(t, "free", true);
	out_col(t, "loop", true);
	out_col(t, "net pair", true);
	out_col(t, "failed", true);
	for (i = 0; i < set->nrows; i++) {
		const struct bench_row *r = &set->row[i];

		if (r->impl->role != BENCH_ROW)
			continue;
		cell_begin(t, r->cell);
		out_cell(t, "%s%s", r->impl->name, r->impl->bulk ? " bulk" : "");
		stat_cell(t, r->alloc_ns, o->repeats);
		stat_cell(t, r->free_ns, o->repeats);
		stat_cell(t, r->loop_ns, o->repeats);
		net_cell(t, r, o->repeats);
		out_cell(t, "%llu", r->fails);
	}
	out_table_end(t);
}

void bench_tables(const struct bench_set *set, const struct bench_options *o)
{
	size_t i;

	pair_table(set, o);
	ratio_table(set, o);
	if (o->bulk)
		bulk_table(set, o);
	if (o->verbose)
		row_table(set, o);
	for (i = 0; i < set->nrows; i++)
		if (set->row[i].fails && set->row[i].impl->role == BENCH_ROW)
			out_line("%s%s failed %llu times at %u producers, %u objects.", set->row[i].impl->name,
				 set->row[i].impl->bulk ? " bulk" : "", set->row[i].fails, set->row[i].cell.producers,
				 set->row[i].cell.allocs);
	for (i = 0; i < set->nnotes; i++)
		out_line("%s.", set->note[i]);
	if (!o->pin)
		out_line("Threads were not pinned (-a pins them).");
	if (set->nnotes || !o->pin)
		out_line("%s", "");
}

/* To a hundredth of a nanosecond: beyond that there is only noise. */
static json_t *ns(double v)
{
	return json_real(isfinite(v) ? round(v * 100) / 100 : 0);
}

static json_t *samples(const double *v, unsigned int repeats)
{
	json_t *a = json_array();
	unsigned int k;

	for (k = 0; k < repeats; k++)
		json_array_append_new(a, ns(v[k]));
	return a;
}

json_t *bench_stat_json(const double *v, unsigned int repeats)
{
	struct bench_stat s = bench_stat(v, repeats);

	return json_pack("{s:o, s:o, s:o, s:o}", "median", ns(s.median), "min", ns(s.min), "max", ns(s.max), "samples",
			 samples(v, repeats));
}

/* A row of another mode is the same implementation. */
static const char *impl_json(const struct bench_impl *impl)
{
	return is_user(impl->name) ? "arenite" : impl->name;
}

static const char *mode_json(const struct bench_impl *impl, const struct bench_options *o)
{
	if (impl->mode)
		return impl->mode;
	return o->native ? "native" : "bpf";
}

static json_t *row_json(const struct bench_row *r, const struct bench_options *o)
{
	json_t *j =
		json_pack("{s:s, s:s, s:i, s:i, s:i, s:b, s:o, s:o, s:o, s:o, s:o, s:I}", "impl", impl_json(r->impl),
			  "mode", mode_json(r->impl, o), "producers", (int)r->cell.producers, "allocs",
			  (int)r->cell.allocs, "size", (int)o->size, "bulk", r->impl->bulk, "alloc_ns",
			  bench_stat_json(r->alloc_ns, o->repeats), "free_ns", bench_stat_json(r->free_ns, o->repeats),
			  "loop_ns", ns(bench_stat(r->loop_ns, o->repeats).median), "loop_samples",
			  samples(r->loop_ns, o->repeats), "net_pair_ns", ns(bench_net(r, o->repeats)), "fails",
			  (json_int_t)r->fails);

	if (r->swap_ns > 0)
		json_object_set_new(j, "exchange_ns", ns(r->swap_ns));
	return j;
}

static json_t *list_json(const unsigned int *v, unsigned int n)
{
	json_t *a = json_array();
	unsigned int i;

	for (i = 0; i < n; i++)
		json_array_append_new(a, json_integer(v[i]));
	return a;
}

json_t *bench_document(const struct bench_set *set, const struct bench_options *o)
{
	json_t *rows = json_array(), *notes = json_array();
	size_t i;

	for (i = 0; i < set->nrows; i++)
		if (set->row[i].impl->role == BENCH_ROW)
			json_array_append_new(rows, row_json(&set->row[i], o));
	for (i = 0; i < set->nnotes; i++)
		json_array_append_new(notes, json_string(set->note[i]));
	return json_pack("{s:i, s:s, s:o, s:{s:o, s:o, s:i, s:f, s:f, s:i, s:b, s:b, s:b, s:b, s:b}, s:o, s:o}",
			 "schema", OUT_SCHEMA, "bench", o->bench, "machine", bench_machine(), "options", "producers",
			 list_json(o->producers, o->nproducers), "allocs", list_json(o->allocs, o->nallocs), "size",
			 (int)o->size, "warm_s", o->warm, "measured_s", o->secs, "repeats", (int)o->repeats, "pinned",
			 o->pin, "bulk", o->bulk, "limits", o->limits, "native", o->native, "user", o->user, "rows",
			 rows, "notes", notes);
}
