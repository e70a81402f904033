// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * bpf.c - measures a cell: runs the rounds of round.bpf.h in this kernel, from a crew of threads.
 *
 * First a short phase that verifies every object's mark, then the warm-up, then what is measured.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arenite/arenite.h>
#include "bpf_internal.h"
#include "crew.h"

#define RUN_OPS 2048u /* objects a run of the program: a fraction of a millisecond */

struct lane {
	struct bench_round c;
} __attribute__((aligned(128)));

struct job {
	const struct impl_ctx *impl;
	struct lane lane[BENCH_MAX_PRODUCERS];
};

static int work(void *arg, unsigned int producer, const atomic_bool *stop)
{
	struct job *job = arg;
	struct bench_round *c = &job->lane[producer].c;
	unsigned long long before;

	do {
		LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = c, .ctx_size_in = sizeof(*c));

		before = c->allocs;
		if (bpf_prog_test_run_opts(job->impl->run_fd, &run))
			return -errno;
		if (c->broken)
			return -ETIME;
		if (c->allocs == before) /* the peer is late, perhaps for want of this CPU */
			sched_yield();
	} while (!atomic_load_explicit(stop, memory_order_relaxed));
	return 0;
}

/* Forgets the counts, keeps the place in the rounds. */
static void begin(struct job *job, unsigned int producers, unsigned int flags)
{
	unsigned int i;

	for (i = 0; i < producers; i++) {
		struct bench_round *c = &job->lane[i].c;

		c->flags = flags;
		c->alloc_ns = c->free_ns = c->allocs = c->frees = c->fails = c->dups = 0;
	}
}

static int phase(struct bench_bpf *b, struct job *job, const struct bench_options *o, const struct bench_impl *impl,
		 const struct bench_cell *cell, double secs, unsigned int flags)
{
	int err;

	begin(job, cell->producers, flags);
	err = crew_run(b->crew, cell->producers, o->pin, secs, work, job);
	if (err == -ETIME)
		return bench_fail(
			err, "%s: %s's program was cut off after 250 ms with %u objects a round: choose a smaller -n",
			o->bench, impl->name, cell->allocs);
	if (err)
		return bench_fail(err, "%s: running %s's program: %s", o->bench, impl->name, strerror(-err));
	return 0;
}

/* Frees what the last rounds left.  On the CPU of each producer's round, as far as floor cares. */
static int drop(struct job *job, const struct bench_cell *cell, const char *name)
{
	unsigned int i;

	for (i = 0; i < cell->producers; i++) {
		struct bench_round c = job->lane[i].c;
		LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &c, .ctx_size_in = sizeof(c));

		if (bpf_prog_test_run_opts(job->impl->drop_fd, &run))
			return bench_fail(-errno, "%s: cannot free its last round: %s", name, strerror(errno));
	}
	return 0;
}

static void sum_up(const struct job *job, unsigned int producers, struct bench_sample *out)
{
	double alloc_ns = 0, free_ns = 0, allocs = 0, frees = 0;
	unsigned int i;

	for (i = 0; i < producers; i++) {
		const struct bench_round *c = &job->lane[i].c;

		alloc_ns += (double)c->alloc_ns;
		free_ns += (double)c->free_ns;
		allocs += (double)c->allocs;
		frees += (double)c->frees;
		out->fails += c->fails;
	}
	out->alloc_ns = allocs ? alloc_ns / allocs : 0;
	out->free_ns = frees ? free_ns / frees : 0;
}

/*
 * loop_bulk's arrays, which no call of its own fills: what another row left there are pointers that it has
 * freed since, and the loop writes to what it finds.
 */
static int ready_arrays(struct bench_bpf *b)
{
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < 2 * b->producers; i++) {
		struct bench_setup s = {
			.off = BENCH_READY + (i / 2) * b->objs * b->size,
			.size = b->size,
			.objs = b->objs,
			.pages = BENCH_BUFS + (__u64)i * b->stride,
		};

		err = bench_call(&b->base, "loop_ready", &s);
	}
	return err;
}

int bench_bpf_cell(const struct bench_impl *impl, const struct bench_options *o, const struct bench_cell *cell,
		   struct bench_sample *out)
{
	struct impl_ctx *x = impl->ctx;
	struct bench_bpf *b = x->b;
	unsigned int i, p = cell->producers, flags = o->xfree ? BENCH_XFREE : p > 1 ? BENCH_STEP : 0;
	struct bench_setup none = { 0 }, floor = b->floor;
	struct job job = { .impl = x };
	int err;

	for (i = 0; i < p; i++)
		job.lane[i].c = (struct bench_round){
			.producer = i,
			.peer = (i + 1) % p,
			.before = (i + p - 1) % p,
			.n = cell->allocs,
			.size = b->size,
			.rounds = RUN_OPS / cell->allocs + 1,
			.stride = b->stride,
			.aux = BENCH_READY + i * b->objs * b->size,
		};
	err = bench_call(x->obj, "bench_reset", &none);
	if (!err && x->floor)
		err = bench_call(x->obj, "floor_reset", &floor);
	if (!err && impl->role == BENCH_LOOP && impl->bulk)
		err = ready_arrays(b);
	/* The loop's ready-made objects belong to everybody: nothing to verify there. */
	if (!err && impl->role == BENCH_ROW)
		err = phase(b, &job, o, impl, cell, o->warm / 4, flags | BENCH_CHECK);
	for (i = 0; i < p; i++)
		out->dups += job.lane[i].c.dups;
	if (!err)
		err = phase(b, &job, o, impl, cell, o->warm, flags);
	if (!err)
		err = phase(b, &job, o, impl, cell, o->secs, flags);
	if (!err)
		sum_up(&job, p, out);
	if (!err && o->xfree)
		err = drop(&job, cell, impl->name);
	return err;
}

int bench_bpf_check(struct bench_bpf *b)
{
	int err = arn_check(b->heap);

	return err ? bench_fail(err, "heap after the benchmark: %s", arn_last_error()) : 0;
}

void bench_bpf_close(struct bench_bpf *b)
{
	if (!b)
		return;
	crew_free(b->crew);
	bench_close(&b->arenite);
	bench_close(&b->base);
	bench_close(&b->kobj);
	arn_close(b->heap);
	free(b);
}
