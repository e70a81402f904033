// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * percpu.c - the scenario percpu: per-CPU objects beside the kernel's, in speed and in memory.
 *
 * The rounds, the loop that is subtracted and the crew are those of the malloc scenarios.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arenite/arenite.h>
#include "args.h"
#include "bpf_internal.h"
#include "crew.h"
#include "out.h"
#include "percpu.h"
#include "report.h"
#include "scenario.h"

#define SETTLE_US 300000 /* for what the kernel frees after a grace period */

static int percpu_main(const struct bench_scenario *s, int argc, char **argv);

const struct bench_scenario bench_percpu = { "percpu",
					     "allocate and free per-CPU objects, beside the kernel's; their memory",
					     percpu_main };

struct options {
	struct bench_options b;
	unsigned int ncpus, cpus[BENCH_MAX_LIST];
};

/* Of a row, once per cell, before it is timed. */
struct memory {
	const char *impl;
	struct bench_cell cell;
	double during, after; /* MiB */
	unsigned long long fails;
};

struct percpu {
	struct bench_bpf b;
	struct bench_set set;
	struct memory mem[2 * BENCH_MAX_LIST * BENCH_MAX_LIST];
	unsigned int nmem;
	double before; /* kernel memory before its object was loaded */
	unsigned int ksize;
};

enum { KEY_BATCH = 0x300, KEY_CPUS };

static const struct argp_option options[] = {
	{ "size", 's', "BYTES", 0, "of an object, 8 to 512 (default 64)", 0 },
	{ "producers", 'p', "LIST", 0, "worker threads: each number is measured (default 1,2; 1 on one CPU)", 0 },
	{ "affinity", 'a', NULL, 0, "pin worker i to CPU i", 0 },
	{ "batch", KEY_BATCH, "LIST", 0, "objects allocated, then freed (default 128,32768)", 0 },
	{ "warm-up", 'w', "SECONDS", 0, "before each measurement (default 0.02)", 0 },
	{ "duration", 'd', "SECONDS", 0, "measured, each time (default 0.05)", 0 },
	{ "repeats", 'r', "N", 0, "times that every row is measured, interleaved (default 15)", 0 },
	{ "cpus", KEY_CPUS, "LIST", 0, "instead: memory of native heaps laid out for so many CPUs (2 to 1024)", 0 },
	ARGS_JSON,
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 's':
		if (!args_uint(arg, 8, 512, &o->b.size))
			return args_bad(state, "-s '%s': not a number of bytes from 8 to 512", arg);
		return 0;
	case 'p':
		if (!args_list(arg, 1, BENCH_MAX_PRODUCERS, o->b.producers, BENCH_MAX_LIST, &o->b.nproducers))
			return args_bad(state, "-p '%s': not a list like 1,2 of different numbers up to %d", arg,
					BENCH_MAX_PRODUCERS);
		return 0;
	case KEY_BATCH:
		if (!args_list(arg, 1, BENCH_MAX_OBJS, o->b.allocs, BENCH_MAX_LIST, &o->b.nallocs))
			return args_bad(state, "--batch '%s': not a list like 128,32768 of different numbers up to %d",
					arg, BENCH_MAX_OBJS);
		return 0;
	case KEY_CPUS:
		if (!args_list(arg, 1, 1024, o->cpus, BENCH_MAX_LIST, &o->ncpus))
			return args_bad(state, "--cpus '%s': not a list like 2,128 of different numbers up to 1024",
					arg);
		return 0;
	case 'a':
		o->b.pin = true;
		return 0;
	case ARGS_KEY_JSON:
		return 0;
	case ARGP_KEY_ARG:
		return args_bad(state, "'%s': not an option", arg);
	}
	return bench_parse_times(key, arg, state, &o->b);
}

/* What the kernel's per-CPU objects come out of: meminfo's Percpu, and the slabs of what describes them. */
static double kernel_mib(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long kib;
	char line[128];
	double sum = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Percpu: %lu", &kib) == 1 || sscanf(line, "Slab: %lu", &kib) == 1)
			sum += (double)kib / 1024;
	if (f)
		fclose(f);
	return sum;
}

static int add(struct percpu *x, struct bench_obj *obj, const char *name, const char *prog, enum bench_role role)
{
	struct bench_bpf *b = &x->b;
	struct impl_ctx *i = &b->impl[b->nimpls++];
	struct bench_impl *impl = bench_add(&x->set, name, role, false);

	if (!impl)
		return bench_fail(-E2BIG, "%s: too many rows", name);
	i->b = b;
	i->obj = obj;
	i->run_fd = bench_prog(obj, "run_", prog);
	i->drop_fd = bench_prog(obj, "drop_", prog);
	if (i->run_fd < 0 || i->drop_fd < 0)
		return bench_fail(-ENOENT, "object '%s': no programs for %s: rebuild", obj->name, prog);
	impl->run = bench_bpf_cell;
	impl->ctx = i;
	return 0;
}

static int lanes(struct bench_bpf *b, struct bench_obj *obj)
{
	int err = bench_map(obj, BENCH_LANES, BENCH_MAX_PRODUCERS * sizeof(struct bench_lane));

	return err ? err : bench_map(obj, BENCH_BUFS, 2ULL * b->producers * b->stride);
}

static int open_arenite(struct percpu *x, const struct options *o)
{
	struct bench_bpf *b = &x->b;
	int cpus = libbpf_num_possible_cpus();
	__u64 live = (__u64)b->producers * b->objs * b->size * (unsigned int)cpus, reserve = live + live / 4 + 16 * MIB;
	struct arn_options opts = { .sz = sizeof(opts), .bytes = 2 * reserve + 64 * MIB, .name = "arn_bench" };
	int err;

	if (opts.bytes > ARN_MAX_ARENA)
		return bench_fail(-E2BIG, "percpu: %u x %u objects of %u bytes on %d CPUs do not fit in an arena",
				  b->producers, b->objs, b->size, cpus);
	b->heap = arn_create(&opts);
	if (!b->heap)
		return bench_fail(-errno, "%s", arn_last_error());
	err = bench_open(&b->arenite, BENCH_OBJ_PERCPU);
	if (!err && arn_attach(b->heap, b->arenite.obj))
		err = bench_fail(-EINVAL, "%s", arn_last_error());
	if (!err)
		err = bench_load(&b->arenite);
	if (!err && arn_reserve(b->heap, reserve))
		err = bench_fail(-ENOMEM, "%s", arn_last_error());
	if (!err)
		err = lanes(b, &b->arenite);
	return err ? err : add(x, &b->arenite, "arenite", "percpu", BENCH_ROW);
}

static int open_loop(struct percpu *x)
{
	struct bench_bpf *b = &x->b;
	int err = bench_open(&b->base, BENCH_OBJ_BASE);

	if (!err)
		err = bench_own_arena(&b->base, ARN_MAX_ARENA);
	if (!err)
		err = bench_load(&b->base);
	if (!err)
		err = lanes(b, &b->base);
	if (!err)
		err = bench_map(&b->base, BENCH_READY, (__u64)b->producers * b->objs * b->size);
	return err ? err : add(x, &b->base, "loop", "loop", BENCH_LOOP);
}

/* Without it the other row still stands: whatever fails is a note. */
static int open_kernel(struct percpu *x)
{
	static const unsigned int sizes[] = { 8, 16, 32, 64, 96, 128, 192, 256, 512 };
	struct bench_bpf *b = &x->b;
	char prog[32];
	size_t i;
	int err;

	for (i = 0; sizes[i] < b->size; i++)
		;
	x->before = kernel_mib();
	err = bench_open(&b->kobj, BENCH_OBJ_PKOBJ);
	if (!err)
		err = bench_only_size(&b->kobj, sizes[i], 2 * b->producers * (b->stride / 8));
	if (!err)
		err = bench_own_arena(&b->kobj, ARN_MIN_ARENA);
	if (!err)
		err = bench_load(&b->kobj);
	if (!err)
		err = lanes(b, &b->kobj);
	if (err) {
		bench_note(&x->set, "kernel: left out: %s", bench_last_error());
		return 0;
	}
	x->ksize = sizes[i];
	if (sizes[i] != b->size)
		bench_note(&x->set, "kernel: objects of %u bytes, the next size made for it", sizes[i]);
	snprintf(prog, sizeof(prog), "pkobj_%u", sizes[i]);
	err = add(x, &b->kobj, "kernel", prog, BENCH_ROW);
	snprintf(prog, sizeof(prog), "pswap_%u", sizes[i]);
	return err ? err : add(x, &b->kobj, "kernel exchange", prog, BENCH_SWAP);
}

/* Every producer's batch at once, held, measured and freed. */
static int measure_memory(struct percpu *x, const char *impl, struct bench_cell cell)
{
	bool kernel = !strcmp(impl, "kernel");
	struct bench_obj *obj = kernel ? &x->b.kobj : &x->b.arenite;
	struct memory *m = &x->mem[x->nmem++];
	int turn, hold, drop, err = 0;
	char name[32] = "percpu";
	unsigned int i;

	if (kernel)
		snprintf(name, sizeof(name), "pkobj_%u", x->ksize);
	hold = bench_prog(obj, "hold_", name);
	drop = bench_prog(obj, "drop_", name);
	*m = (struct memory){ .impl = impl, .cell = cell };
	for (turn = 0; !err && turn < 2; turn++) {
		for (i = 0; !err && i < cell.producers; i++) {
			struct bench_round c = {
				.producer = i, .n = cell.allocs, .size = x->b.size, .stride = x->b.stride
			};
			LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &c, .ctx_size_in = sizeof(c));

			if (bpf_prog_test_run_opts(turn ? drop : hold, &run))
				err = bench_fail(-errno, "percpu: %s's memory: %s", impl, strerror(errno));
			else if (c.broken)
				err = bench_fail(-ETIME, "percpu: %s's program was cut off: a smaller --batch", impl);
			m->fails += turn ? 0 : c.fails;
		}
		if (turn && !kernel && arn_trim(x->b.heap) < 0)
			err = bench_fail(-EIO, "%s", arn_last_error());
		if (turn && kernel)
			usleep(SETTLE_US);
		*(turn ? &m->after : &m->during) =
			kernel ? fmax(0, kernel_mib() - x->before) : bench_percpu_mib(x->b.heap);
	}
	return err;
}

static int memory(struct percpu *x, const struct options *o)
{
	unsigned int p, n;
	int err = 0;

	for (p = 0; p < o->b.nproducers; p++)
		for (n = 0; n < o->b.nallocs; n++) {
			struct bench_cell cell = { o->b.producers[p], o->b.allocs[n] };
			__u64 live = (__u64)x->b.producers * x->b.objs * x->b.size *
				     (unsigned int)libbpf_num_possible_cpus();

			if (!err)
				err = measure_memory(x, "arenite", cell);
			if (!err && x->ksize)
				err = measure_memory(x, "kernel", cell);
			/* (The trim took it.) */
			if (!err && arn_reserve(x->b.heap, live + live / 4 + 16 * MIB))
				err = bench_fail(-ENOMEM, "%s", arn_last_error());
		}
	return err;
}

/* Million operations a second, the loop and (kernel) the exchange subtracted repeat by repeat. */
static struct bench_stat mops(const struct bench_row *r, const struct bench_row *loop, bool alloc, unsigned int repeats)
{
	double v[repeats], net;
	unsigned int k;

	for (k = 0; k < repeats; k++) {
		net = alloc ? r->alloc_ns[k] - loop->alloc_ns[k] : r->free_ns[k] - loop->free_ns[k];
		v[k] = 1000 / fmax(net, 0.1);
	}
	return bench_stat(v, repeats);
}

static const struct bench_row *row_of(const struct bench_set *set, const char *impl, struct bench_cell cell)
{
	size_t i;

	for (i = 0; i < set->nrows; i++)
		if (!strcmp(set->row[i].impl->name, impl) && set->row[i].cell.producers == cell.producers &&
		    set->row[i].cell.allocs == cell.allocs)
			return &set->row[i];
	return NULL;
}

static json_t *stat_json(struct bench_stat s)
{
	return json_pack("{s:f, s:f, s:f}", "median", s.median, "min", s.min, "max", s.max);
}

static json_t *report(struct percpu *x, const struct options *o)
{
	json_t *rows = json_array(), *notes = json_array();
	struct out_table *t;
	char title[160];
	unsigned int i;
	size_t k;

	snprintf(title, sizeof(title), "percpu (%u bytes, %d CPUs): million operations a second, net; medians of %u",
		 o->b.size, libbpf_num_possible_cpus(), o->b.repeats);
	t = out_table(title);
	out_col(t, "producers", true);
	out_col(t, "batch", true);
	out_col(t, "row", false);
	out_col(t, "alloc", true);
	out_col(t, "free", true);
	out_col(t, "x kernel: alloc", true);
	out_col(t, "free", true);
	out_col(t, "memory", true);
	out_col(t, "after", true);
	out_col(t, "NULL", true);
	for (i = 0; i < x->nmem; i++) {
		const struct memory *m = &x->mem[i];
		const struct bench_row *loop = row_of(&x->set, "loop", m->cell), *r = row_of(&x->set, m->impl, m->cell),
				       *kern = row_of(&x->set, "kernel", m->cell);
		struct bench_stat a, f;

		if (!r || !loop)
			continue;
		a = mops(r, loop, true, o->b.repeats);
		f = mops(r, loop, false, o->b.repeats);
		out_row(t);
		out_cell(t, "%u", m->cell.producers);
		out_cell(t, "%u", m->cell.allocs);
		out_cell(t, "%s", m->impl);
		out_cell(t, "%.2f (%.2f-%.2f)", a.median, a.min, a.max);
		out_cell(t, "%.2f (%.2f-%.2f)", f.median, f.min, f.max);
		if (kern && kern != r) {
			out_cell(t, "%.1f", a.median / mops(kern, loop, true, o->b.repeats).median);
			out_cell(t, "%.1f", f.median / mops(kern, loop, false, o->b.repeats).median);
		} else {
			out_cell(t, "-");
			out_cell(t, "-");
		}
		out_cell(t, "%.3f MiB", m->during);
		out_cell(t, "%.3f MiB", m->after);
		out_cell(t, "%llu", r->fails + m->fails);
		json_array_append_new(rows, json_pack("{s:s, s:i, s:i, s:i, s:o, s:o, s:f, s:f, s:I}", "impl", m->impl,
						      "producers", (int)m->cell.producers, "batch", (int)m->cell.allocs,
						      "size", (int)o->b.size, "alloc_mops", stat_json(a), "free_mops",
						      stat_json(f), "mib_during", m->during, "mib_after", m->after,
						      "fails", (json_int_t)(r->fails + m->fails)));
	}
	out_table_end(t);
	for (k = 0; k < x->set.nnotes; k++) {
		out_line("%s.", x->set.note[k]);
		json_array_append_new(notes, json_string(x->set.note[k]));
	}
	return json_pack("{s:i, s:s, s:o, s:{s:i, s:f, s:f, s:i, s:b}, s:o, s:o}", "schema", OUT_SCHEMA, "bench",
			 "percpu", "machine", bench_machine(), "options", "size", (int)o->b.size, "warm_s", o->b.warm,
			 "measured_s", o->b.secs, "repeats", (int)o->b.repeats, "pinned", o->b.pin, "rows", rows,
			 "notes", notes);
}

static int measure(struct percpu *x, const struct options *o, json_t **doc)
{
	struct bench_bpf *b = &x->b;
	unsigned int i;
	int err;

	for (i = 0; i < o->b.nproducers; i++)
		b->producers = o->b.producers[i] > b->producers ? o->b.producers[i] : b->producers;
	for (i = 0; i < o->b.nallocs; i++)
		b->objs = o->b.allocs[i] > b->objs ? o->b.allocs[i] : b->objs;
	b->size = (o->b.size + 7) & ~7u;
	b->stride = ((b->objs * 8 + 63) & ~63u) + 64;
	if (2ULL * b->producers * b->stride > BENCH_END - BENCH_BUFS)
		return bench_fail(-E2BIG, "percpu: pointers of %u producers with %u objects do not fit in 14 MiB",
				  b->producers, b->objs);
	err = arn_supported();
	if (err)
		return bench_fail(err, "%s", arn_last_error());
	b->crew = crew_new(b->producers);
	if (!b->crew)
		return bench_fail(-errno, "percpu: no threads: %s", strerror(errno));
	err = open_arenite(x, o);
	if (!err)
		err = open_loop(x);
	if (!err)
		err = open_kernel(x);
	if (!err)
		err = memory(x, o);
	if (!err)
		err = bench_run(&x->set, &o->b);
	if (!err)
		err = bench_bpf_check(b);
	if (!err)
		*doc = report(x, o);
	return err;
}

static int percpu_main(const struct bench_scenario *s, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Times allocations and frees of per-CPU objects, beside the kernel's.\v"
		       "Rounds as in malloc-free: a batch is allocated, then freed; what the loop costs without calls is "
		       "subtracted, from the kernel's row also its look-up and exchange.  An alloc zeroes the copies of "
		       "every CPU.  Memory is that of one batch a producer: arenite's slabs and magazines of per-CPU "
		       "objects and what describes those pages; the kernel's is meminfo's Percpu and Slab, beyond what "
		       "was there before its program was loaded, so other activity shows in it.",
	};
	struct options o = { .b = { .bench = s->name,
				    .producers = { 1, 2 },
				    .nproducers = crew_cpus() > 1 ? 2 : 1,
				    .allocs = { 128, 32768 },
				    .nallocs = 2,
				    .size = 64,
				    .warm = 0.02,
				    .secs = 0.05,
				    .repeats = 15 } };
	struct percpu *x;
	json_t *doc = NULL, *rows;
	int err;

	args_parse(&argp, argc, argv, &o);
	if (o.ncpus) {
		err = bench_percpu_areas(o.cpus, o.ncpus, o.b.size, &rows);
		if (!err)
			doc = json_pack("{s:i, s:s, s:o, s:o}", "schema", OUT_SCHEMA, "bench", "percpu", "machine",
					bench_machine(), "areas", rows);
	} else {
		x = calloc(1, sizeof(*x));
		if (!x)
			return out_error(1, "percpu: no memory");
		err = measure(x, &o, &doc);
		bench_clear(&x->set);
		crew_free(x->b.crew);
		bench_close(&x->b.arenite);
		bench_close(&x->b.base);
		bench_close(&x->b.kobj);
		arn_close(x->b.heap);
		free(x);
	}
	if (err)
		return out_error(out_status(err), "%s", bench_last_error());
	return out_json(doc) ? 1 : 0;
}
