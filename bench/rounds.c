// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * rounds.c - the native worker's rounds, through a peer's function pointers.
 *
 * They are those of round.bpf.h: clock, allocate n (store the pointer, write the first word),
 * clock, free n, clock.  fill() and drain() are expanded once for calls, once for bulk calls, and
 * once each without a call for the loop; everything else in them is one text.
 *
 * Workers keep step as in round.h: from round to round in xfree, else from run to run (spinning,
 * then yielding).
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "crew.h"
#include "peer.h"
#include "round.h"
#include "worker.h"

#define RUN_OPS 2048u /* objects between two looks at the stop flag */
#define inlined static inline __attribute__((always_inline))

struct lane {
	atomic_ullong done; /* rounds finished */
	char pad[120];
	void **buf[2];
	size_t held[2];
	char *ready; /* objects for the loop */
	unsigned long long round;
	unsigned long long alloc_ns, free_ns, allocs, frees, fails, dups;
	char pad2[128];
};

static struct lane lanes[BENCH_MAX_PRODUCERS];
static struct crew *crew;
static unsigned int max_objs;

struct job {
	const struct worker_cmd *cmd;
	bool check;
};

inlined unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000000000ULL + (unsigned long long)t.tv_nsec;
}

#define opaque(x) asm volatile("" : "+r"(x) : : "memory")

inlined size_t fill(void **buf, size_t n, size_t size, uint64_t mark, char *ready, bool calls, bool bulk)
{
	size_t i, m, got, fails = 0;
	void *p;

	for (i = 0; i < n; i++) {
		if (bulk && !(i % BENCH_BULK)) {
			got = m = n - i < BENCH_BULK ? n - i : BENCH_BULK;
			if (calls)
				got = bench_peer.alloc_bulk(size, m, buf + i);
			opaque(got);
			if (__builtin_expect(got != m, 0))
				memset(buf + i + got, 0, (m - got) * sizeof(*buf));
		}
		if (bulk) {
			p = buf[i];
		} else {
			p = calls ? bench_peer.alloc(size) : ready + i * size;
			opaque(p);
			buf[i] = p;
		}
		if (__builtin_expect(p != NULL, 1))
			*(volatile uint64_t *)p = mark + i;
		else
			fails++;
	}
	return fails;
}

inlined size_t drain(void **buf, size_t n, bool calls, bool bulk)
{
	size_t i, m, got, fails = 0;
	void *p;

	for (i = 0; i < n; i += bulk ? BENCH_BULK : 1) {
		if (bulk) {
			got = m = n - i < BENCH_BULK ? n - i : BENCH_BULK;
			if (calls)
				got = bench_peer.free_bulk(buf + i, m);
			opaque(got);
			if (__builtin_expect(got != m, 0))
				fails++;
		} else {
			p = buf[i];
			opaque(p);
			if (calls)
				bench_peer.free(p);
		}
	}
	return fails;
}

/* Never inlined, so that every kind of round has the same code around it. */
#define KIND(name, calls, bulk)                                                                                        \
	static __attribute__((noinline)) size_t fill_##name(void **buf, size_t n, size_t size, uint64_t mark,          \
							    char *ready)                                               \
	{                                                                                                              \
		return fill(buf, n, size, mark, ready, calls, bulk);                                                   \
	}                                                                                                              \
	static __attribute__((noinline)) size_t drain_##name(void **buf, size_t n)                                     \
	{                                                                                                              \
		return drain(buf, n, calls, bulk);                                                                     \
	}

KIND(calls, true, false)
KIND(bulk, true, true)
KIND(loop, false, false)
KIND(loop_bulk, false, true)

static const struct {
	size_t (*fill)(void **buf, size_t n, size_t size, uint64_t mark, char *ready);
	size_t (*drain)(void **buf, size_t n);
} kinds[2][2] = {
	{ { fill_calls, drain_calls }, { fill_bulk, drain_bulk } },
	{ { fill_loop, drain_loop }, { fill_loop_bulk, drain_loop_bulk } },
};

static unsigned long long verify(void **buf, size_t n, uint64_t mark)
{
	unsigned long long bad = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (buf[i] && *(volatile uint64_t *)buf[i] != mark + i)
			bad++;
	return bad;
}

static bool my_turn(const struct job *job, unsigned int w, const atomic_bool *stop)
{
	unsigned int i, p = job->cmd->producers;
	struct lane *peer = &lanes[(w + 1) % p], *before = &lanes[(w + p - 1) % p];
	unsigned long long round = lanes[w].round;

	for (i = 1; atomic_load(&peer->done) < round || atomic_load(&before->done) < round; i++) {
		if (i & 0x3ff)
			continue;
		if (atomic_load(stop))
			return false;
		sched_yield();
	}
	return true;
}

static void one_round(const struct job *job, unsigned int w)
{
	const struct worker_cmd *c = job->cmd;
	bool loop = c->op == WORKER_LOOP;
	struct lane *me = &lanes[w], *peer = &lanes[(w + 1) % c->producers];
	uint64_t mark = (uint64_t)(w + 1) << 32, t0, t1, t2;
	unsigned int mine = me->round & 1, theirs = mine;
	size_t m = c->allocs;
	struct lane *victim = me;

	if (c->xfree) {
		theirs = !mine;
		victim = peer;
		m = peer->held[theirs];
	}
	t0 = now();
	me->fails += kinds[loop][c->bulk].fill(me->buf[mine], c->allocs, c->size, mark, me->ready);
	t1 = now();
	me->alloc_ns += t1 - t0;
	if (job->check) {
		me->dups += verify(me->buf[mine], c->allocs, mark);
		t1 = now();
	}
	me->fails += kinds[loop][c->bulk].drain(victim->buf[theirs], m);
	t2 = now();
	me->free_ns += t2 - t1;
	me->allocs += c->allocs;
	me->frees += m;
	if (c->xfree) {
		peer->held[theirs] = 0;
		me->held[mine] = c->allocs;
	}
	me->round++;
}

static int work(void *arg, unsigned int w, const atomic_bool *stop)
{
	const struct job *job = arg;
	unsigned int i, rounds = RUN_OPS / job->cmd->allocs + 1;
	bool each = job->cmd->xfree;

	do {
		for (i = 0; i < rounds; i++) {
			if ((each || !i) && !my_turn(job, w, stop))
				return 0;
			one_round(job, w);
			if (each)
				atomic_store(&lanes[w].done, lanes[w].round);
		}
		atomic_store(&lanes[w].done, lanes[w].round);
	} while (!atomic_load_explicit(stop, memory_order_relaxed));
	return 0;
}

static int phase(struct job *job, double secs, bool check)
{
	const struct worker_cmd *c = job->cmd;
	unsigned int i;

	for (i = 0; i < c->producers; i++) {
		struct lane *l = &lanes[i];

		l->alloc_ns = l->free_ns = l->allocs = l->frees = l->fails = l->dups = 0;
	}
	job->check = check;
	return crew_run(crew, c->producers, c->pin, secs, work, job);
}

static int begin(void *arg, unsigned int w, const atomic_bool *stop)
{
	const struct worker_cmd *c = ((struct job *)arg)->cmd;
	struct lane *l = &lanes[w];
	unsigned int i, j;

	l->round = 0;
	atomic_store(&l->done, 0);
	if (c->op == WORKER_LOOP && c->bulk)
		for (j = 0; j < 2; j++)
			for (i = 0; i < max_objs; i++)
				l->buf[j][i] = l->ready + (size_t)i * c->size;
	return bench_peer.thread ? bench_peer.thread() : 0;
}

/* Frees what an xfree run left in this producer's arrays. */
static int drop(void *arg, unsigned int w, const atomic_bool *stop)
{
	const struct worker_cmd *c = ((struct job *)arg)->cmd;
	unsigned int j;

	for (j = 0; j < 2; j++) {
		kinds[c->op == WORKER_LOOP][c->bulk].drain(lanes[w].buf[j], lanes[w].held[j]);
		lanes[w].held[j] = 0;
	}
	return 0;
}

int rounds_cell(const struct worker_cmd *c, struct worker_reply *r)
{
	double alloc_ns = 0, free_ns = 0, allocs = 0, frees = 0;
	struct job job = { .cmd = c };
	unsigned int i;
	int err;

	err = crew_run(crew, c->producers, c->pin, 0, begin, &job);
	if (!err && c->op == WORKER_CELL)
		err = phase(&job, c->warm / 4, true);
	for (i = 0; i < c->producers; i++)
		r->dups += lanes[i].dups;
	if (!err)
		err = phase(&job, c->warm, false);
	if (!err)
		err = phase(&job, c->secs, false);
	for (i = 0; i < c->producers; i++) {
		alloc_ns += (double)lanes[i].alloc_ns;
		free_ns += (double)lanes[i].free_ns;
		allocs += (double)lanes[i].allocs;
		frees += (double)lanes[i].frees;
		r->fails += lanes[i].fails;
	}
	r->alloc_ns = allocs ? alloc_ns / allocs : 0;
	r->free_ns = frees ? free_ns / frees : 0;
	if (!err && c->xfree)
		err = crew_run(crew, c->producers, c->pin, 0, drop, &job);
	return err;
}

int rounds_init(const struct worker_cmd *c)
{
	unsigned int i, j;

	max_objs = c->allocs;
	for (i = 0; i < c->producers; i++) {
		for (j = 0; j < 2; j++) {
			lanes[i].buf[j] = aligned_alloc(64, ((size_t)max_objs * 8 + 127) & ~(size_t)63);
			if (!lanes[i].buf[j])
				return -ENOMEM;
			memset(lanes[i].buf[j], 0, (size_t)max_objs * 8);
		}
		lanes[i].ready = aligned_alloc(64, ((size_t)max_objs * c->size + 127) & ~(size_t)63);
		if (!lanes[i].ready)
			return -ENOMEM;
		memset(lanes[i].ready, 0, (size_t)max_objs * c->size);
	}
	crew = crew_new(c->producers);
	if (!crew)
		return -errno;
	/* All producers may free into one thread's hands: two rounds each. */
	return bench_peer.init ? bench_peer.init(2ULL * c->producers * max_objs + 64, c->size) : 0;
}
