/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * round.bpf.h - the loops of a round, the same code for every implementation.
 *
 * BENCH_IMPL(x, ALLOC, FREE) makes, for an implementation x, the timed loops x_fill and x_drain and
 * the programs run_x and drop_x.  ALLOC(i) yields a 64-bit pointer, FREE(p) an int; everything else
 * in the loops (array store and load, NULL test, first word, bounds, clock reads, the calls of the
 * loops themselves) is the same text for all, so that the loop row, whose ALLOC and FREE are no
 * calls, measures exactly what the others carry besides their calls.
 *
 * Bounds: loops over objects carry may_goto and an unknown start (a known one would be unrolled by
 * the verifier: "The sequence of 8193 jumps is too complex"); a loop that ended early says so in
 * .broken and the figures are thrown away.  A producer waits for its peer at most BENCH_WAIT turns,
 * then returns to user space, which may give the CPU to the peer.
 */
#ifndef BENCH_ROUND_BPF_H
#define BENCH_ROUND_BPF_H

#include "round.h"

#define BENCH_WAIT   20000u
#define BENCH_BROKEN 0x80000000u /* a timed loop's result: it ended early */

static arn_inline struct bench_lane __arena *bench_lane(__u32 producer)
{
	return arn_ptr(ARN_HERE, struct bench_lane, BENCH_LANES + producer * sizeof(struct bench_lane));
}

static arn_inline __u64 bench_buf(const struct bench_round *c, __u32 producer, __u64 round)
{
	return BENCH_BUFS + (producer * 2ULL + (round & 1)) * c->stride;
}

/* What a producer writes into the first word of its i-th object: nobody else writes the same. */
static arn_inline __u64 bench_mark(__u32 producer)
{
	return (__u64)(producer + 1) << 32;
}

/* Is it this producer's turn?  Waits a while for the neighbours' previous round. */
static arn_inline _Bool bench_turn(const struct bench_round *c)
{
	struct bench_lane __arena *peer = bench_lane(c->peer), *before = bench_lane(c->before);
	__u64 round = c->round;
	__u32 i;

	for (i = arn_opaque(0u); i < BENCH_WAIT && arn_may_loop; i++)
		if (arn_load_relaxed(&peer->done) >= round && arn_load_relaxed(&before->done) >= round)
			return 1;
	return 0;
}

/* Untimed: how many of n objects lost their mark, that is, belong to somebody else too? */
__weak __u32 bench_verify(__u64 buf, __u32 n, __u64 mark)
{
	__u32 i, bad = 0;
	__u64 p;

	arn_name_arena();
	for (i = arn_opaque(0u); i < n && arn_may_loop; i++) {
		p = arn_ptr(ARN_HERE, __u64, buf)[i];
		if (p && *arn_ptr(ARN_HERE, __u64, p) != mark + i)
			bad++;
	}
	return bad;
}

/* Maps pages for what lies at fixed offsets. */
SEC("syscall") int bench_map(struct bench_setup *c)
{
	__u64 at = c->off;
	int i;

	arn_name_arena();
	c->err = 0;
	bpf_for(i, 0, 1 << 20) {
		__u64 left = c->pages, n = left < 128 ? left : 128;

		if (!left)
			break;
		if (!bpf_arena_alloc_pages(&ARN_MAP, (void __arena *)at, n, -1, 0)) {
			c->err = -ARN_ENOMEM;
			break;
		}
		at += n * c->page_size;
		c->pages = left - n;
	}
	return 0;
}

/* Between cells: nobody has done a round, nothing is held. */
SEC("syscall") int bench_reset(struct bench_setup *c)
{
	int i;

	arn_name_arena();
	bpf_for(i, 0, BENCH_MAX_PRODUCERS) {
		struct bench_lane __arena *l = bench_lane(i);

		l->done = 0;
		l->held[0] = 0;
		l->held[1] = 0;
	}
	c->err = 0;
	return 0;
}

#define BENCH_LOOPS(x, ALLOC, FREE)                                                                                    \
	__weak __u32 x##_fill(__u64 buf, __u32 n, __u64 size, __u64 mark, __u64 aux)                                   \
	{                                                                                                              \
		__u32 i, fails = 0;                                                                                    \
		__u64 p;                                                                                               \
                                                                                                                       \
		arn_name_arena();                                                                                      \
		for (i = arn_opaque(0u); i < n && arn_may_loop; i++) {                                                 \
			p = ALLOC(i);                                                                                  \
			arn_ptr(ARN_HERE, __u64, buf)[i] = p;                                                          \
			if (arn_likely(p))                                                                             \
				*arn_ptr(ARN_HERE, __u64, p) = mark + i;                                               \
			else                                                                                           \
				fails++;                                                                               \
		}                                                                                                      \
		return i < n ? BENCH_BROKEN : fails;                                                                   \
	}                                                                                                              \
                                                                                                                       \
	__weak __u32 x##_drain(__u64 buf, __u32 n)                                                                     \
	{                                                                                                              \
		__u32 i, fails = 0;                                                                                    \
		__u64 p;                                                                                               \
                                                                                                                       \
		arn_name_arena();                                                                                      \
		for (i = arn_opaque(0u); i < n && arn_may_loop; i++) {                                                 \
			p = arn_ptr(ARN_HERE, __u64, buf)[i];                                                          \
			if (arn_unlikely(FREE(p)))                                                                     \
				fails++;                                                                               \
		}                                                                                                      \
		return i < n ? BENCH_BROKEN : fails;                                                                   \
	}

#define BENCH_PROGS(x, VERIFY)                                                                                         \
	SEC("syscall") int run_##x(struct bench_round *c)                                                              \
	{                                                                                                              \
		__u64 mark = bench_mark(c->producer), t0, t1, t2, mine, theirs;                                        \
		struct bench_lane __arena *me, *peer;                                                                  \
		__u32 a, f, m, r;                                                                                      \
                                                                                                                       \
		arn_name_arena();                                                                                      \
		for (r = arn_opaque(0u); r < c->rounds && arn_may_loop; r++) {                                         \
			if ((c->flags & BENCH_XFREE || (c->flags & BENCH_STEP && !r)) && !bench_turn(c))               \
				break;                                                                                 \
			mine = theirs = bench_buf(c, c->producer, c->round);                                           \
			m = c->n;                                                                                      \
			if (c->flags & BENCH_XFREE) {                                                                  \
				theirs = bench_buf(c, c->peer, c->round + 1);                                          \
				m = bench_lane(c->peer)->held[(c->round + 1) & 1];                                     \
			}                                                                                              \
			t0 = bpf_ktime_get_ns();                                                                       \
			a = x##_fill(mine, c->n, c->size, mark, c->aux);                                               \
			t1 = bpf_ktime_get_ns();                                                                       \
			c->alloc_ns += t1 - t0;                                                                        \
			if (c->flags & BENCH_CHECK) {                                                                  \
				c->dups += VERIFY(mine, c->n, mark);                                                   \
				t1 = bpf_ktime_get_ns();                                                               \
			}                                                                                              \
			f = x##_drain(theirs, m);                                                                      \
			t2 = bpf_ktime_get_ns();                                                                       \
			c->free_ns += t2 - t1;                                                                         \
			c->allocs += c->n;                                                                             \
			c->frees += m;                                                                                 \
			if ((a | f) & BENCH_BROKEN) {                                                                  \
				c->broken++;                                                                           \
				return 0;                                                                              \
			}                                                                                              \
			c->fails += a + f;                                                                             \
			if (c->flags & BENCH_XFREE) {                                                                  \
				me = bench_lane(c->producer);                                                          \
				peer = bench_lane(c->peer);                                                            \
				peer->held[(c->round + 1) & 1] = 0;                                                    \
				me->held[c->round & 1] = c->n;                                                         \
				arn_xchg64_full(&me->done, c->round + 1);                                              \
			}                                                                                              \
			c->round++;                                                                                    \
		}                                                                                                      \
		if (c->flags & BENCH_STEP)                                                                             \
			arn_xchg64_full(&bench_lane(c->producer)->done, c->round);                                     \
		return 0;                                                                                              \
	}                                                                                                              \
                                                                                                                       \
	/* Frees what the last rounds of an xfree run left in this producer's arrays. */                               \
	SEC("syscall") int drop_##x(struct bench_round *c)                                                             \
	{                                                                                                              \
		struct bench_lane __arena *me = bench_lane(c->producer);                                               \
		__u32 f;                                                                                               \
                                                                                                                       \
		arn_name_arena();                                                                                      \
		f = x##_drain(bench_buf(c, c->producer, 0), me->held[0]);                                              \
		f += x##_drain(bench_buf(c, c->producer, 1), me->held[1]);                                             \
		me->held[0] = 0;                                                                                       \
		me->held[1] = 0;                                                                                       \
		c->fails += f;                                                                                         \
		return 0;                                                                                              \
	}

#define BENCH_IMPL(x, ALLOC, FREE)                                                                                     \
	BENCH_LOOPS(x, ALLOC, FREE)                                                                                    \
	BENCH_PROGS(x, bench_verify)

/* The rest of an array that a bulk call did not fill. */
__weak int bench_clear(__u64 buf, __u32 n)
{
	__u32 i;

	arn_name_arena();
	for (i = arn_opaque(0u); i < n && arn_may_loop; i++)
		arn_ptr(ARN_HERE, __u64, buf)[i] = 0;
	return 0;
}

/*
 * The same for bulk calls of up to BENCH_BULK objects: ALLOC(buf, n) yields how many pointers it
 * stored, FREE(buf, n) how many it freed.
 */
#define BENCH_IMPL_BULK(x, ALLOC, FREE)                                                                                \
	__weak __u32 x##_fill(__u64 buf, __u32 n, __u64 size, __u64 mark, __u64 aux)                                   \
	{                                                                                                              \
		__u32 i, m, got, fails = 0;                                                                            \
		__u64 p;                                                                                               \
                                                                                                                       \
		arn_name_arena();                                                                                      \
		for (i = arn_opaque(0u); i < n && arn_may_loop; i++) {                                                 \
			if (!(i % BENCH_BULK)) {                                                                       \
				m = n - i < BENCH_BULK ? n - i : BENCH_BULK;                                           \
				got = ALLOC(buf + i * 8ULL, m);                                                        \
				if (arn_unlikely(got != m))                                                            \
					bench_clear(buf + (i + got) * 8ULL, m - got);                                  \
			}                                                                                              \
			p = arn_ptr(ARN_HERE, __u64, buf)[i];                                                          \
			if (arn_likely(p))                                                                             \
				*arn_ptr(ARN_HERE, __u64, p) = mark + i;                                               \
			else                                                                                           \
				fails++;                                                                               \
		}                                                                                                      \
		return i < n ? BENCH_BROKEN : fails;                                                                   \
	}                                                                                                              \
                                                                                                                       \
	__weak __u32 x##_drain(__u64 buf, __u32 n)                                                                     \
	{                                                                                                              \
		__u32 i, m, fails = 0;                                                                                 \
                                                                                                                       \
		arn_name_arena();                                                                                      \
		for (i = arn_opaque(0u); i < n && arn_may_loop; i += BENCH_BULK) {                                     \
			m = n - i < BENCH_BULK ? n - i : BENCH_BULK;                                                   \
			if (arn_unlikely((__u32)FREE(buf + i * 8ULL, m) != m))                                         \
				fails++;                                                                               \
		}                                                                                                      \
		return i < n ? BENCH_BROKEN : fails;                                                                   \
	}                                                                                                              \
	BENCH_PROGS(x, bench_verify)

#endif
