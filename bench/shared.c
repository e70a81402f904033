// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * shared.c - the scenario shared: objects that BPF allocates and a user thread frees, and the reverse.
 *
 * Each on a CPU of its own, with a ring between them.  Beside it a bare ring: the same loops and the same
 * ring, but the objects are ready-made.  They come at random, as those of a program that has run for a while
 * do; and, in a row of its own, in the order of their addresses, which the processor fetches ahead.
 *
 * shared.h says what a side does; shared_user.c and shared.bpf.c are the sides.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arenite/arenite.h>
#include "args.h"
#include "crew.h"
#include "load.h"
#include "out.h"
#include "report.h"
#include "runner.h"
#include "scenario.h"
#include "shared_user.h"

#define MIB	   (1ULL << 20)
#define MOST_BYTES 16384

enum direction { BPF_TO_USER, USER_TO_BPF, NDIRECTIONS };

static const char *const direction_name[] = { "bpf-to-user", "user-to-bpf" };
static const char *const prog_name[] = { "bulk", "single", "ring" };

enum { ARENITE, SINGLE, RING, IN_ORDER, NIMPLS };

static const struct {
	const char *name;
	enum shared_impl impl;
} impls[] = {
	[ARENITE] = { "arenite", SHARED_BULK },
	[SINGLE] = { "arenite-single", SHARED_SINGLE },
	[RING] = { "ring", SHARED_RINGS },
	[IN_ORDER] = { "ring-in-order", SHARED_RINGS },
};
#define NROWS (NDIRECTIONS * NIMPLS)

struct row {
	enum direction direction;
	int impl; /* of impls */
	double *mobjs; /* one a repeat */
	unsigned long long fails;
};

struct bench_shared {
	const struct bench_options *o;
	struct shared_user user;
	struct bench_obj obj;
	struct crew *crew;
	struct row row[NROWS];
	void **ready[2], *vec[2]; /* ready-made objects at random, and in order */
	/* of the row that is being measured */
	const struct row *now;
	struct shared_side maker, taker;
	double secs; /* that the taker took */
};

/* ---- A measurement ---- */

static int run_bpf(struct bench_shared *b, struct shared_side *s, const char *what)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = s, .ctx_size_in = sizeof(*s));
	int fd = bench_prog(&b->obj, what, prog_name[impls[b->now->impl].impl]);

	return bpf_prog_test_run_opts(fd, &run) ? -errno : (int)s->err;
}

/* One run of the maker, or of the taker, in whichever world it is. */
static int turn(struct bench_shared *b, bool maker)
{
	bool bpf = maker == (b->now->direction == BPF_TO_USER);
	struct shared_side *s = maker ? &b->maker : &b->taker;

	if (bpf)
		return run_bpf(b, s, maker ? "make_" : "take_");
	if (maker)
		shared_user_make(&b->user, s, impls[b->now->impl].impl);
	else
		shared_user_take(&b->user, s, impls[b->now->impl].impl);
	return (int)s->err;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The crew's first is the maker, its second the taker. */
static int work(void *arg, unsigned int producer, const atomic_bool *stop)
{
	struct bench_shared *b = arg;
	struct shared_side *s = producer ? &b->taker : &b->maker;
	double begin = seconds();
	__u64 before;
	int err;

	do {
		before = s->objs;
		err = turn(b, !producer);
		if (err)
			return err;
		if (s->objs == before) /* the other side is late, perhaps for want of this CPU */
			sched_yield();
	} while (!atomic_load_explicit(stop, memory_order_relaxed));
	if (producer)
		b->secs = seconds() - begin;
	return 0;
}

/* What is on its way when both have stopped. */
static int finish(struct bench_shared *b)
{
	int err = 0;

	for (; !err && b->maker.at < b->maker.held; b->maker.at++)
		if (impls[b->now->impl].impl != SHARED_RINGS &&
		    arn_free(b->user.heap, ((void **)b->maker.vec)[b->maker.at]))
			b->taker.fails++;
	while (!err && arn_ring_count(b->user.ring) > 0)
		err = turn(b, false);
	return err;
}

static int measure(struct bench_shared *b, struct row *r, unsigned int k)
{
	const struct bench_options *o = b->o;
	struct shared_side side = { .ring = (__u64)arn_ring_address(b->user.ring),
				    .ready = (__u64)b->ready[r->impl == IN_ORDER],
				    .size = o->size };
	__u64 objs;
	int err;

	b->now = r;
	b->maker = b->taker = side;
	b->maker.vec = (__u64)b->vec[0];
	b->taker.vec = (__u64)b->vec[1];
	err = crew_run(b->crew, 2, true, o->warm, work, b);
	objs = b->taker.objs;
	if (!err)
		err = crew_run(b->crew, 2, true, o->secs, work, b);
	r->mobjs[k] = (double)(b->taker.objs - objs) / b->secs / 1e6;
	if (!err)
		err = finish(b);
	if (err)
		return bench_fail(err, "%s: %s, %s: %s", o->bench, impls[r->impl].name, direction_name[r->direction],
				  strerror(-err));
	if (b->taker.wrong)
		return bench_fail(-EUCLEAN, "%s: %s, %s: %llu batches held objects that somebody else had too",
				  o->bench, impls[r->impl].name, direction_name[r->direction], b->taker.wrong);
	r->fails += b->maker.fails + b->taker.fails;
	return 0;
}

static int measure_all(struct bench_shared *b)
{
	const struct bench_options *o = b->o;
	size_t i, n = sizeof(b->row) / sizeof(*b->row);
	unsigned int k;
	int err = 0;

	for (k = 0; !err && k < o->repeats; k++) {
		for (i = 0; !err && i < n; i++)
			err = measure(b, &b->row[(i + k) % n], k);
		out_progress("%s: repeat %u of %u", o->bench, k + 1, o->repeats);
	}
	out_progress(NULL);
	if (!err && arn_check(b->user.heap))
		err = bench_fail(-EUCLEAN, "heap after the benchmark: %s", arn_last_error());
	return err;
}

/* ---- Set-up ---- */

static int no_heap(const struct bench_shared *b)
{
	return bench_fail(-errno, "%s: %s", b->o->bench, arn_last_error());
}

static int by_address(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return (x > y) - (x < y);
}

static void shuffle(struct bench_shared *b)
{
	void **v = b->ready[0], *p;
	unsigned int i, k;

	qsort(b->ready[1], SHARED_READY, sizeof(*v), by_address);
	memcpy(v, b->ready[1], SHARED_READY * sizeof(*v));
	srand(1);
	for (i = SHARED_READY - 1; i; i--) {
		k = (unsigned int)rand() % (i + 1);
		p = v[i];
		v[i] = v[k];
		v[k] = p;
	}
}

static int open_all(struct bench_shared *b)
{
	struct arn_options opts = { .sz = sizeof(opts), .bytes = 256 * MIB, .name = "arn_bench" };
	int err = arn_supported(), i;

	if (err)
		return bench_fail(err, "%s", arn_last_error());
	if (crew_cpus() < 2)
		return bench_fail(-ENOTSUP, "%s: two CPUs are needed, and this process may use one", b->o->bench);
	b->crew = crew_new(2);
	if (!b->crew)
		return bench_fail(-errno, "%s: no threads: %s", b->o->bench, strerror(errno));
	b->user.heap = arn_create(&opts);
	if (!b->user.heap)
		return no_heap(b);
	err = bench_open(&b->obj, BENCH_OBJ_SHARED);
	if (!err && arn_attach(b->user.heap, b->obj.obj))
		err = no_heap(b);
	if (!err)
		err = bench_load(&b->obj);
	if (!err && arn_reserve(b->user.heap, 128 * MIB))
		err = no_heap(b);
	if (err)
		return err;
	b->user.ring = arn_ring_create_spsc(b->user.heap, SHARED_RING);
	for (i = 0; i < 2; i++) {
		b->vec[i] = arn_aligned_alloc(b->user.heap, 4096, SHARED_BATCH * sizeof(void *));
		b->ready[i] = arn_malloc(b->user.heap, SHARED_READY * sizeof(void *));
	}
	if (!b->user.ring || !b->vec[0] || !b->vec[1] || !b->ready[0] || !b->ready[1] ||
	    arn_malloc_bulk(b->user.heap, b->o->size, SHARED_READY, b->ready[1]) != SHARED_READY)
		return no_heap(b);
	shuffle(b);
	for (i = 0; i < NROWS; i++) {
		b->row[i].direction = (enum direction)(i / NIMPLS);
		b->row[i].impl = i % NIMPLS;
		b->row[i].mobjs = calloc(b->o->repeats, sizeof(double));
		if (!b->row[i].mobjs)
			return bench_fail(-ENOMEM, "%s: no memory for the results", b->o->bench);
	}
	return 0;
}

static void close_all(struct bench_shared *b)
{
	int i;

	crew_free(b->crew);
	if (b->user.ring)
		arn_ring_close(b->user.ring);
	bench_close(&b->obj);
	if (b->user.heap)
		arn_close(b->user.heap);
	for (i = 0; i < NROWS; i++)
		free(b->row[i].mobjs);
}

/* ---- The results ---- */

static const struct row *row(const struct bench_shared *b, int d, int impl)
{
	return &b->row[d * NIMPLS + impl];
}

/* Its throughput over the ring's, repeat by repeat. */
static void ratio_cell(struct out_table *t, const struct bench_shared *b, int d, int impl)
{
	const double *us = row(b, d, impl)->mobjs, *ring = row(b, d, RING)->mobjs;
	unsigned int k, n = b->o->repeats;
	struct bench_stat s;
	double r[n];

	for (k = 0; k < n; k++)
		r[k] = us[k] / ring[k];
	s = bench_stat(r, n);
	out_cell(t, "%.2fx (%.2f-%.2f)", s.median, s.min, s.max);
}

static void mobjs_cell(struct out_table *t, const struct row *r, unsigned int repeats)
{
	struct bench_stat s = bench_stat(r->mobjs, repeats);

	out_cell(t, "%.1f M/s (%.1f-%.1f)", s.median, s.min, s.max);
}

static void print_table(const struct bench_shared *b)
{
	struct out_table *t;
	char title[160];
	int d, i;

	snprintf(title, sizeof(title), "%s (%u bytes): objects made on one CPU and freed on another; medians of %u",
		 b->o->bench, b->o->size, b->o->repeats);
	t = out_table(title);
	out_col(t, "direction", false);
	for (i = 0; i < NIMPLS; i++)
		out_col(t, impls[i].name, true);
	out_col(t, "arenite / ring", true);
	out_col(t, "single / ring", true);
	for (d = 0; d < NDIRECTIONS; d++) {
		out_row(t);
		out_cell(t, "%s", direction_name[d]);
		for (i = 0; i < NIMPLS; i++)
			mobjs_cell(t, row(b, d, i), b->o->repeats);
		ratio_cell(t, b, d, ARENITE);
		ratio_cell(t, b, d, SINGLE);
	}
	out_table_end(t);
	for (i = 0; i < NROWS; i++)
		if (b->row[i].fails)
			out_line("%s, %s: failed %llu times.", impls[b->row[i].impl].name,
				 direction_name[b->row[i].direction], b->row[i].fails);
}

static json_t *document(const struct bench_shared *b)
{
	const struct bench_options *o = b->o;
	json_t *rows = json_array();
	size_t i;

	for (i = 0; i < sizeof(b->row) / sizeof(*b->row); i++)
		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:i, s:o, s:I}", "impl", impls[b->row[i].impl].name,
						"direction", direction_name[b->row[i].direction], "size", (int)o->size,
						"mobjs_per_s", bench_stat_json(b->row[i].mobjs, o->repeats), "fails",
						(json_int_t)b->row[i].fails));
	return json_pack("{s:i, s:s, s:o, s:{s:i, s:f, s:f, s:i, s:i, s:i}, s:o}", "schema", OUT_SCHEMA, "bench",
			 o->bench, "machine", bench_machine(), "options", "size", (int)o->size, "warm_s", o->warm,
			 "measured_s", o->secs, "repeats", (int)o->repeats, "ring", (int)SHARED_RING, "batch",
			 (int)SHARED_BATCH, "rows", rows);
}

static const struct argp_option options[] = {
	{ "size", 's', "BYTES", 0, "of an object, in 64-byte steps (default 64)", 0 },
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
		if (!args_uint(arg, 8, MOST_BYTES, &o->size))
			return args_bad(state, "-s '%s': not a number of bytes from 8 to %d", arg, MOST_BYTES);
		o->size = (o->size + 63) & ~63u;
		return 0;
	case ARGS_KEY_JSON:
		return 0;
	case ARGP_KEY_ARG:
		return args_bad(state, "'%s': not an option", arg);
	}
	return bench_parse_times(key, arg, state, o);
}

static int shared_main(const struct bench_scenario *s, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Objects that one CPU allocates and another frees: a BPF program and a user thread.\v"
		       "The maker allocates objects, fills them, and hands them over by a ring of 1024 places, 32 at a "
		       "time; the taker reads all of them and frees them.  Each is pinned to a CPU.  Rows: arenite "
		       "(bulk calls, one a batch); arenite-single (a call an object); ring (the same loops with "
		       "ready-made objects in random order, which nobody allocates or frees: what is left is the "
		       "allocator); ring-in-order (those by address, which the processor fetches ahead).",
	};
	struct bench_options o = { .bench = s->name, .size = 64, .warm = 0.02, .secs = 0.1, .repeats = 15 };
	struct bench_shared b = { .o = &o };
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

const struct bench_scenario bench_shared = {
	"shared", "a BPF program allocates and a user thread on another CPU frees, and the reverse", shared_main
};
