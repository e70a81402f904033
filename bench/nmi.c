// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * nmi.c - the scenario nmi: what a pair costs that an NMI lands in, and what of it is the allocator's.
 *
 * The NMI is a hardware watchpoint's (nmi.h says where).  The same program runs in it in both interrupted rows;
 * in one it only counts, in the other it allocates and frees an object of the same size, past the cache, which is claimed.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <arenite/arenite.h>
#include <arenite/layout.h>
#include "args.h"
#include "load.h"
#include "nmi.h"
#include "out.h"
#include "report.h"
#include "runner.h"
#include "scenario.h"

#define MIB (1ULL << 20)

enum { QUIET, EMPTY, PAIR, NCASES };

static const char *const case_name[NCASES] = { "quiet", "nmi-empty", "nmi-pair" };

struct row {
	double *pair_ns, *on_top_ns; /* one a repeat; the latter: in the program that interrupts, an NMI */
	struct nmi_run sum;
};

struct bench_nmi {
	const struct bench_options *o;
	struct arn_heap *heap;
	struct bench_obj obj;
	struct bpf_link *link;
	int event, pairs_fd, place_fd;
	cpu_set_t cpus; /* that this process was on */
	int cpu;
	struct row row[NCASES];
};

/* ---- The watchpoint ---- */

static struct perf_event_attr watchpoint(__u64 addr, bool on)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(struct perf_event_attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = addr,
		.bp_len = HW_BREAKPOINT_LEN_4,
		.sample_period = 1,
		.disabled = !on,
		.exclude_user = 1,
	};
}

static int no_watchpoint(const struct bench_nmi *b, int err)
{
	const char *why = err == ENOSPC ? "the CPU has none, or all are in use by others" : strerror(err);

	if (err == EPERM || err == EACCES)
		return bench_fail(-EPERM, "%s: no watchpoint on CPU %d (perf_event_open): %s: run as root", b->o->bench,
				  b->cpu, why);
	return bench_fail(-ENOTSUP, "%s: no watchpoint on CPU %d (perf_event_open): %s", b->o->bench, b->cpu, why);
}

static int run(const struct bench_nmi *b, int fd, struct nmi_run *c)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = c, .ctx_size_in = sizeof(*c));

	c->size = b->o->size;
	if (bpf_prog_test_run_opts(fd, &opts))
		return bench_fail(-errno, "%s: a program does not run: %s", b->o->bench, strerror(errno));
	return 0;
}

static int find_place(const struct bench_nmi *b, __u64 *place)
{
	struct nmi_run c = {};
	int err = run(b, b->place_fd, &c);

	if (!err && !c.place)
		err = bench_fail(-ENOMEM, "%s: no object of %u bytes comes to lie in the cache: more memory is needed",
				 b->o->bench, b->o->size);
	*place = c.place;
	return err;
}

static int open_watchpoint(struct bench_nmi *b)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(b->obj.obj, "nmi_hit");
	struct perf_event_attr attr;
	__u64 place;
	int err = find_place(b, &place);

	if (err)
		return err;
	attr = watchpoint(place, false);
	b->event = (int)syscall(SYS_perf_event_open, &attr, -1, b->cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (b->event < 0)
		return no_watchpoint(b, errno);
	b->link = bpf_program__attach_perf_event(prog, b->event);
	if (!b->link)
		return bench_fail(-errno, "%s: no program can be attached to a watchpoint: %s", b->o->bench,
				  strerror(errno));
	/* (libbpf has switched it on.) */
	return ioctl(b->event, PERF_EVENT_IOC_DISABLE, 0) ? no_watchpoint(b, errno) : 0;
}

/* Puts it where the next free writes, or off. */
static int watch(const struct bench_nmi *b, bool on)
{
	struct perf_event_attr attr;
	__u64 place;
	int err = find_place(b, &place);

	if (err)
		return err;
	attr = watchpoint(place, on);
	return ioctl(b->event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr) ? no_watchpoint(b, errno) : 0;
}

/* ---- A measurement ---- */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run_for(const struct bench_nmi *b, double secs, struct nmi_run *c)
{
	double end = seconds() + secs;
	__u64 before;
	int err;

	do {
		before = c->pairs;
		err = run(b, b->pairs_fd, c);
		if (!err && c->pairs - before != NMI_PAIRS)
			err = bench_fail(-ETIME, "%s: the program was cut off: this machine is too slow", b->o->bench);
	} while (!err && seconds() < end);
	return err;
}

static int measure(struct bench_nmi *b, int i, unsigned int k)
{
	const struct bench_options *o = b->o;
	struct nmi_run warm = { .on_top = i == PAIR }, c = warm, *sum = &b->row[i].sum;
	int err = watch(b, i != QUIET);

	if (!err)
		err = run_for(b, o->warm, &warm);
	if (!err)
		err = run_for(b, o->secs, &c);
	if (!err)
		err = watch(b, false);
	if (err)
		return err;
	if (i != QUIET && !c.hits)
		return bench_fail(-ENOTSUP, "%s: watchpoints can be set, but none fires on CPU %d: not on this machine",
				  o->bench, b->cpu);
	if (c.hits != (i == QUIET ? 0 : c.pairs))
		return bench_fail(-EIO, "%s: %s: %llu pairs and %llu NMIs: the figures mean nothing", o->bench,
				  case_name[i], c.pairs, c.hits);
	b->row[i].pair_ns[k] = (double)c.ns / (double)c.pairs;
	b->row[i].on_top_ns[k] = c.hits ? (double)c.on_top_ns / (double)c.hits : 0;
	sum->pairs += c.pairs;
	sum->hits += c.hits;
	sum->fails += c.fails;
	return 0;
}

static int measure_all(struct bench_nmi *b)
{
	const struct bench_options *o = b->o;
	unsigned int i, k;
	int err = 0;

	for (k = 0; !err && k < o->repeats; k++) {
		for (i = 0; !err && i < NCASES; i++)
			err = measure(b, (int)((i + k) % NCASES), k);
		out_progress("%s: repeat %u of %u", o->bench, k + 1, o->repeats);
	}
	out_progress(NULL);
	if (!err && arn_check(b->heap))
		err = bench_fail(-EUCLEAN, "heap after the benchmark: %s", arn_last_error());
	return err;
}

/* ---- Set-up ---- */

static int no_heap(void)
{
	return bench_fail(-errno, "%s", arn_last_error());
}

/* The cache, and with it the place that is watched, is a CPU's. */
static int stay(struct bench_nmi *b)
{
	cpu_set_t one;

	b->cpu = sched_getcpu();
	CPU_ZERO(&one);
	if (b->cpu >= 0 && b->cpu < CPU_SETSIZE)
		CPU_SET(b->cpu, &one);
	if (sched_getaffinity(0, sizeof(b->cpus), &b->cpus) || sched_setaffinity(0, sizeof(one), &one))
		return bench_fail(-errno, "%s: cannot stay on CPU %d: %s", b->o->bench, b->cpu, strerror(errno));
	return 0;
}

static int open_all(struct bench_nmi *b)
{
	struct arn_options opts = { .sz = sizeof(opts), .bytes = 64 * MIB, .name = "arn_bench" };
	struct nmi_run none = {};
	int err = arn_supported(), i;

	if (err)
		return bench_fail(err, "%s", arn_last_error());
	for (i = 0; i < NCASES; i++) {
		b->row[i].pair_ns = calloc(b->o->repeats, sizeof(double));
		b->row[i].on_top_ns = calloc(b->o->repeats, sizeof(double));
		if (!b->row[i].pair_ns || !b->row[i].on_top_ns)
			return bench_fail(-ENOMEM, "%s: no memory for the results", b->o->bench);
	}
	b->heap = arn_create(&opts);
	if (!b->heap)
		return no_heap();
	err = bench_open(&b->obj, BENCH_OBJ_NMI);
	if (!err && arn_attach(b->heap, b->obj.obj))
		err = no_heap();
	if (!err)
		err = bench_load(&b->obj);
	if (!err && arn_reserve(b->heap, 16 * MIB))
		err = no_heap();
	if (!err)
		err = stay(b);
	if (err)
		return err;
	b->pairs_fd = bench_prog(&b->obj, "", "nmi_pairs");
	b->place_fd = bench_prog(&b->obj, "", "nmi_place");
	err = run(b, bench_prog(&b->obj, "", "kern_find"), &none);
	return err ? err : open_watchpoint(b);
}

static void close_all(struct bench_nmi *b)
{
	int i;

	bpf_link__destroy(b->link);
	if (!b->link && b->event >= 0)
		close(b->event);
	bench_close(&b->obj);
	if (b->heap)
		arn_close(b->heap);
	if (CPU_COUNT(&b->cpus))
		sched_setaffinity(0, sizeof(b->cpus), &b->cpus); /* bench_machine() counts them */
	for (i = 0; i < NCASES; i++) {
		free(b->row[i].pair_ns);
		free(b->row[i].on_top_ns);
	}
}

/* ---- The results ---- */

/* How much more one thing took than another, repeat by repeat. */
static struct bench_stat more(const struct bench_nmi *b, const double *it, const double *than)
{
	unsigned int k, n = b->o->repeats;
	double v[n];

	for (k = 0; k < n; k++)
		v[k] = it[k] - than[k];
	return bench_stat(v, n);
}

static void stat_cell(struct out_table *t, struct bench_stat s)
{
	out_cell(t, "%.1f ns (%.1f-%.1f)", s.median, s.min, s.max);
}

static void print_table(const struct bench_nmi *b)
{
	const struct bench_options *o = b->o;
	struct bench_stat s = more(b, b->row[PAIR].on_top_ns, b->row[EMPTY].on_top_ns);
	struct out_table *t;
	char title[160];
	int i;

	snprintf(title, sizeof(title), "%s (%u bytes): a pair that an NMI interrupts in the free; medians of %u",
		 o->bench, o->size, o->repeats);
	t = out_table(title);
	out_col(t, "case", false);
	out_col(t, "pair", true);
	out_col(t, "more than above", true);
	out_col(t, "pairs", true);
	out_col(t, "NMIs", true);
	out_col(t, "failed", true);
	for (i = 0; i < NCASES; i++) {
		const struct row *r = &b->row[i];

		out_row(t);
		out_cell(t, "%s", case_name[i]);
		stat_cell(t, bench_stat(r->pair_ns, o->repeats));
		if (i)
			stat_cell(t, more(b, r->pair_ns, r[-1].pair_ns));
		else
			out_cell(t, "-");
		out_cell(t, "%llu", r->sum.pairs);
		out_cell(t, "%llu", r->sum.hits);
		out_cell(t, "%llu", r->sum.fails);
	}
	out_table_end(t);
	out_line("The pair on top, timed in the NMI and less the clock reads: %.1f ns (%.1f-%.1f).", s.median, s.min,
		 s.max);
}

static json_t *row_json(const struct bench_nmi *b, int i)
{
	const struct bench_options *o = b->o;
	const struct row *r = &b->row[i];
	json_t *j =
		json_pack("{s:s, s:s, s:i, s:o, s:I, s:I, s:I}", "impl", "arenite", "case", case_name[i], "size",
			  (int)o->size, "pair_ns", bench_stat_json(r->pair_ns, o->repeats), "pairs",
			  (json_int_t)r->sum.pairs, "hits", (json_int_t)r->sum.hits, "fails", (json_int_t)r->sum.fails);

	if (i != QUIET)
		json_object_set_new(j, "on_top_ns", bench_stat_json(r->on_top_ns, o->repeats));
	return j;
}

static json_t *document(const struct bench_nmi *b)
{
	const struct bench_options *o = b->o;
	json_t *rows = json_array();
	int i;

	for (i = 0; i < NCASES; i++)
		json_array_append_new(rows, row_json(b, i));
	return json_pack("{s:i, s:s, s:o, s:{s:i, s:f, s:f, s:i}, s:o}", "schema", OUT_SCHEMA, "bench", o->bench,
			 "machine", bench_machine(), "options", "size", (int)o->size, "warm_s", o->warm, "measured_s",
			 o->secs, "repeats", (int)o->repeats, "rows", rows);
}

static const struct argp_option options[] = {
	{ "size", 's', "BYTES", 0, "of an object, 8 to 32768 (default 64)", 0 },
	{ "warm-up", 'w', "SECONDS", 0, "before each measurement (default 0.02)", 0 },
	{ "duration", 'd', "SECONDS", 0, "measured, each time (default 0.1)", 0 },
	{ "repeats", 'r', "N", 0, "times that every row is measured, interleaved (default 15)", 0 },
	ARGS_JSON,
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct bench_options *o = state->input;

	switch (key) {
	case 's':
		if (!args_uint(arg, 8, ARN_MAX_CLASSED, &o->size))
			return args_bad(state, "-s '%s': not a number of bytes from 8 to %u", arg, ARN_MAX_CLASSED);
		return 0;
	case ARGS_KEY_JSON:
		return 0;
	case ARGP_KEY_ARG:
		return args_bad(state, "'%s': not an option", arg);
	}
	return bench_parse_times(key, arg, state, o);
}

static int nmi_main(const struct bench_scenario *s, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "The cost of allocating and freeing an object when an NMI lands in it.\v"
		       "A program allocates and frees on one CPU.  Rows: quiet (nothing interrupts it); nmi-empty "
		       "(a hardware watchpoint interrupts each free while it has the cache claimed, and a program "
		       "counts that); nmi-pair (this program also allocates and frees an object of the same size, which goes past "
		       "the cache).  "
		       "Needs a watchpoint of that CPU, and the right to set one (root).",
	};
	struct bench_options o = { .bench = s->name, .size = 64, .warm = 0.02, .secs = 0.1, .repeats = 15 };
	struct bench_nmi b = { .o = &o, .event = -1 };
	json_t *doc = NULL;
	int err;

	args_parse(&argp, argc, argv, &o);
	err = open_all(&b);
	if (!err)
		err = measure_all(&b);
	if (!err) {
		print_table(&b);
		doc = document(&b);
	}
	close_all(&b);
	if (err)
		return out_error(out_status(err), "%s", bench_last_error());
	return out_json(doc) ? 1 : 0;
}

const struct bench_scenario bench_nmi = { "nmi", "a pair that an NMI interrupts, with a pair in the NMI and without",
					  nmi_main };
