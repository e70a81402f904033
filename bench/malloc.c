// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * malloc.c - the scenarios malloc-free and malloc-xfree: options, set-up, run, check, report.
 */
#include <errno.h>
#include <string.h>

#include "args.h"
#include "bpf.h"
#include "crew.h"
#include "native.h"
#include "out.h"
#include "report.h"
#include "round.h"
#include "runner.h"
#include "scenario.h"

static int malloc_main(const struct bench_scenario *s, int argc, char **argv);

const struct bench_scenario bench_malloc_free = {
	"malloc-free", "allocate n objects one after another, then free them, on one CPU each", malloc_main
};
const struct bench_scenario bench_malloc_xfree = {
	"malloc-xfree", "the same, but each worker frees what another worker's previous round allocated", malloc_main
};

enum { KEY_BULK = 0x200, KEY_LIMITS, KEY_NATIVE, KEY_USER };

static const struct argp_option options[] = {
	{ "producers", 'p', "LIST", 0, "worker threads: each number is measured (default 1,2; 1 on one CPU)", 0 },
	{ "affinity", 'a', NULL, 0, "pin worker i to CPU i", 0 },
	{ "objects", 'n', "LIST", 0, "objects a round (default 1,4,16,64,256,4096)", 0 },
	{ "size", 's', "BYTES", 0, "of an object (default 64)", 0 },
	{ "warm-up", 'w', "SECONDS", 0, "before each measurement (default 0.02)", 0 },
	{ "duration", 'd', "SECONDS", 0, "measured, each time (default 0.05)", 0 },
	{ "repeats", 'r', "N", 0, "times that every row is measured, interleaved (default 15)", 0 },
	{ "bulk", KEY_BULK, NULL, 0, "also rows for the bulk calls, 64 objects a call", 0 },
	{ "limits", KEY_LIMITS, NULL, 0, "also rows that tell call and guard apart (not with --native)", 0 },
	{ "native", KEY_NATIVE, NULL, 0, "a native heap in user space, beside other allocators", 0 },
	{ "user", KEY_USER, NULL, 0, "with --native: also a row of user threads on a shared heap", 0 },
	{ "verbose", 'v', NULL, 0, "also a table of allocs and frees apart, with their spread", 0 },
	ARGS_JSON,
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct bench_options *o = state->input;

	switch (key) {
	case 'p':
		if (!args_list(arg, 1, BENCH_MAX_PRODUCERS, o->producers, BENCH_MAX_LIST, &o->nproducers))
			return args_bad(state, "-p '%s': not a list like 1,2 of different numbers up to %d", arg,
					BENCH_MAX_PRODUCERS);
		return 0;
	case 'n':
		if (!args_list(arg, 1, BENCH_MAX_OBJS, o->allocs, BENCH_MAX_LIST, &o->nallocs))
			return args_bad(state, "-n '%s': not a list like 1,16,256 of different numbers up to %d", arg,
					BENCH_MAX_OBJS);
		return 0;
	case 's':
		if (!args_uint(arg, 8, 1 << 20, &o->size))
			return args_bad(state, "-s '%s': not a number of bytes from 8 to 1048576", arg);
		return 0;
	case 'a':
		o->pin = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case KEY_BULK:
		o->bulk = true;
		return 0;
	case KEY_LIMITS:
		o->limits = true;
		return 0;
	case KEY_NATIVE:
		o->native = true;
		return 0;
	case KEY_USER:
		o->user = true;
		return 0;
	case ARGP_KEY_END:
		return o->user && !o->native ? args_bad(state, "--user: only beside a native heap: add --native") : 0;
	case ARGS_KEY_JSON:
		return 0;
	case ARGP_KEY_ARG:
		return args_bad(state, "'%s': not an option", arg);
	}
	return bench_parse_times(key, arg, state, o);
}

void bench_malloc_defaults(struct bench_options *o, const struct bench_scenario *s)
{
	static const unsigned int allocs[] = { 1, 4, 16, 64, 256, 4096 };

	memset(o, 0, sizeof(*o));
	o->bench = s->name;
	o->xfree = s == &bench_malloc_xfree;
	o->producers[0] = 1;
	o->producers[1] = 2;
	o->nproducers = crew_cpus() > 1 ? 2 : 1;
	memcpy(o->allocs, allocs, sizeof(allocs));
	o->nallocs = sizeof(allocs) / sizeof(*allocs);
	o->size = 64;
	o->warm = 0.02;
	o->secs = 0.05;
	o->repeats = 15;
}

int bench_malloc(const struct bench_options *o, json_t **doc)
{
	struct bench_native *native = NULL;
	struct bench_bpf *bpf = NULL;
	struct bench_set set = { 0 };
	int err;

	*doc = NULL;
	err = o->native ? bench_native_open(o, &set, &native) : bench_bpf_open(o, &set, &bpf);
	if (!err)
		err = bench_run(&set, o);
	if (!err)
		err = o->native ? bench_native_check(native) : bench_bpf_check(bpf);
	if (!err) {
		bench_tables(&set, o);
		*doc = bench_document(&set, o);
	}
	bench_native_close(native);
	bench_bpf_close(bpf);
	bench_clear(&set);
	return err;
}

static int malloc_main(const struct bench_scenario *s, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Times allocations and frees apart, beside baselines, all in one run.\v"
		       "A round: read the clock, allocate n objects (store each pointer, write each first word), read "
		       "the clock, free n objects, read the clock.  The same loop without calls is measured too; a net "
		       "pair is alloc + free less twice that loop.  Rows: arenite; floor (an array a CPU: the limit); "
		       "buddy-lock (a buddy allocator under one lock); kernel (bpf_obj_new, bpf_obj_drop).  "
		       "arenite's fast path is inlined, floor's is a global function with preemption off.  --limits adds "
		       "arenite-call (arenite through a global function), floor-claim (the floor under arenite's guard), "
		       "floor-inline (that, inlined).  With --native: arenite, floor, glibc, mimalloc, jemalloc, tcmalloc.  --user adds "
		       "arenite-user: the same calls of user threads on a shared heap, which BPF programs may use as well.",
	};
	struct bench_options o;
	json_t *doc;
	int err;

	bench_malloc_defaults(&o, s);
	args_parse(&argp, argc, argv, &o);
	err = bench_malloc(&o, &doc);
	if (err)
		return out_error(out_status(err), "%s", bench_last_error());
	return out_json(doc) ? 1 : 0;
}
