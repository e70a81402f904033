// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * chunk_test.c - chunks grown and given back over a page source that refuses what it is told to.
 *
 * Shows that nothing is lost at any refused call, and which refusals mark a chunk as taken.  That the
 * kernel's page calls behave like this one is for the BPF tests.
 */
#include <pthread.h>
#include <sched.h>
#include "harness.h"

static __u32 first_chunk; /* of the heap under test */
static __u32 refuse_from, refuse_count; /* chunk refusals: calls, or a chunk */

static struct core *chunks(__u64 mib)
{
	struct core *c = core_new(mib * MIB);

	first_chunk = arn_first_chunk(c->r);
	return c;
}

/* As arn_native_grow and the BPF side do it. */
static int grow(struct core *c)
{
	struct arn_grow g;
	int err, i;

	arn_grow_start(c->r, &g);
	for (i = 0; i < (int)ARN_GROW_TURNS; i++) {
		err = g.chunk < arn_end_chunk(c->r) ? arn_chunk_add(c->b, c->r, g.chunk, g.from) : -ARN_EEXIST;
		if (!err) {
			arn_grow_done(c->b, c->r, &g);
			return 0;
		}
		err = arn_grow_next(c->b, c->r, &g, err);
		if (err)
			return err;
	}
	return -ARN_EAGAIN;
}

static __u32 dir(struct core *c, __u32 chunk)
{
	return *arn_dir(c->b, first_chunk + chunk);
}

static __u32 shrink(struct core *c)
{
	__u32 pages;

	settle(c);
	pages = arn_shrink_chunk(c->b, c->r, 0);
	settle(c);
	return pages;
}

/* A chunk brings its pages, state bytes and descriptors; statistics say so. */
static void a_chunk_is_added(void **state)
{
	struct core *c = chunks(32);
	__u64 meta = stats(&c->heap).meta_bytes;
	struct arn_stats s;

	assert_int_equal(arn_chunk_add(c->b, c->r, first_chunk, ARN_CHUNK_NONE), 0);
	s = stats(&c->heap);
	assert_int_equal(s.pages_mapped, 256);
	assert_int_equal(s.pages_pending, 256);
	sound(&c->heap);
	settle(c);
	s = stats(&c->heap);
	assert_int_equal(s.pages_free, 256);
	assert_int_equal(s.meta_bytes - meta, ARN_CHUNK_STATE_BYTES + ARN_CHUNK_DESC_BYTES);
	assert_int_equal(port_pages(), 256 + (ARN_CHUNK_STATE_BYTES + ARN_CHUNK_DESC_BYTES) / 4096);
	core_end(c);
}

/* Only a chunk in state NONE can be added. */
static void others_chunks_are_not_touched(void **state)
{
	struct core *c = chunks(32);
	__u32 st;

	for (st = ARN_CHUNK_BUSY; st <= ARN_CHUNK_REFUSED; st++) {
		*arn_dir(c->b, first_chunk) = st;
		assert_int_equal(arn_chunk_add(c->b, c->r, first_chunk, ARN_CHUNK_NONE), -ARN_EEXIST);
		assert_int_equal(dir(c, 0), st);
	}
	assert_int_equal(port.calls, 0);
	*arn_dir(c->b, first_chunk) = ARN_CHUNK_NONE;
	core_end(c);
}

static bool refuse_calls(__u32 off, __u32 bytes, __u32 call)
{
	return call >= refuse_from && call < refuse_from + refuse_count;
}

/* Whichever of a chunk's page calls is refused, the others are undone, counted, and a later try works. */
static void a_refused_call_loses_nothing(void **state)
{
	struct core *c = chunks(32);
	__u64 meta = stats(&c->heap).meta_bytes;

	refuse_count = 1;
	port.refuse = refuse_calls;
	for (refuse_from = 0; refuse_from < 3; refuse_from++) {
		port.calls = 0;
		assert_int_equal(arn_chunk_add(c->b, c->r, first_chunk, ARN_CHUNK_NONE), -ARN_ENOMEM);
		assert_int_equal(dir(c, 0), ARN_CHUNK_NONE);
		assert_int_equal(port_pages(), 0);
		assert_int_equal(c->r->fail[ARN_FAIL_MAP], refuse_from + 1);
		assert_int_equal(stats(&c->heap).meta_bytes, meta);
		assert_int_equal(c->r->pages_mapped, 0);
		sound(&c->heap);
	}
	port.calls = 0;
	refuse_from = 3;
	assert_int_equal(arn_chunk_add(c->b, c->r, first_chunk, ARN_CHUNK_NONE), 0);
	settle(c);
	assert_int_equal(c->r->pages_free, 256);
	core_end(c);
}

static __u32 taken_chunk;

static bool refuse_chunk(__u32 off, __u32 bytes, __u32 call)
{
	return off >> ARN_CHUNK_SHIFT == first_chunk + taken_chunk;
}

/* A chunk that stays refused while the next one is granted is not asked for while there are others. */
static void a_taken_range_is_passed_over(void **state)
{
	struct core *c = chunks(32);
	__u32 calls;

	taken_chunk = 1;
	port.refuse = refuse_chunk;
	assert_int_equal(grow(c), 0);
	assert_int_equal(grow(c), 0);
	settle(c);
	assert_int_equal(dir(c, 0), ARN_CHUNK_MAPPED);
	assert_int_equal(dir(c, 1), ARN_CHUNK_REFUSED);
	assert_int_equal(dir(c, 2), ARN_CHUNK_MAPPED);
	assert_int_equal(c->r->pages_free, 512);
	sound(&c->heap);
	/* it is not asked for again */
	calls = port.calls;
	assert_int_equal(grow(c), 0);
	assert_int_equal(port.calls, calls + 3);
	/* nor given back */
	while (shrink(c))
		;
	assert_int_equal(dir(c, 1), ARN_CHUNK_REFUSED);
	assert_int_equal(port_pages(), 0);
	core_end(c);
}

/* ... and asked for again when there are none: it may have been memory after all. */
static void a_refused_range_is_tried_at_the_end(void **state)
{
	struct core *c = chunks(24);
	__u32 n = 0, chunks_all = arn_end_chunk(c->r) - first_chunk;

	taken_chunk = 1;
	port.refuse = refuse_chunk;
	while (!grow(c))
		n++;
	assert_int_equal(n, chunks_all - 1);
	assert_int_equal(grow(c), -ARN_E2BIG);
	assert_int_equal(dir(c, 1), ARN_CHUNK_REFUSED);
	port.refuse = NULL;
	assert_int_equal(grow(c), 0);
	assert_int_equal(dir(c, 1), ARN_CHUNK_MAPPED);
	assert_int_equal(grow(c), -ARN_E2BIG);
	settle(c);
	assert_int_equal(c->r->pages_free, c->r->npages);
	core_end(c);
}

/* Refusals at random: in the end the whole arena is there, and all of it goes back. */
static bool refuse_often(__u32 off, __u32 bytes, __u32 call)
{
	return call * 2654435761u >> 30;
}

static void random_refusals_lose_nothing(void **state)
{
	struct core *c = chunks(64);
	__u64 meta = stats(&c->heap).meta_bytes;
	__u32 turn, i, chunks_all = arn_end_chunk(c->r) - first_chunk;

	for (turn = 0; turn < 3; turn++) {
		port.refuse = refuse_often;
		for (i = 0; i < 20; i++)
			while (!grow(c))
				;
		port.refuse = NULL;
		while (!grow(c))
			;
		settle(c);
		sound(&c->heap);
		assert_int_equal(c->r->pages_free, c->r->npages);
		for (i = 0; i < chunks_all; i++)
			assert_int_equal(shrink(c), ARN_CHUNK_PAGES);
		assert_int_equal(port_pages(), 0);
		assert_int_equal(stats(&c->heap).meta_bytes, meta);
	}
	core_end(c);
}

/* A taken range at the very end of the arena: the heap ends before it. */
static void a_taken_tail_ends_the_heap(void **state)
{
	struct core *c = chunks(24);
	__u32 n = 0, chunks_all = arn_end_chunk(c->r) - first_chunk;

	taken_chunk = chunks_all - 1;
	port.refuse = refuse_chunk;
	while (!grow(c))
		n++;
	assert_int_equal(n, chunks_all - 1);
	assert_int_equal(grow(c), -ARN_ENOMEM);
	settle(c);
	core_end(c);
}

/* Short memory (everything is refused) is said to be that; nothing is marked, and later it works. */
static void short_memory_marks_nothing(void **state)
{
	struct core *c = chunks(32);
	__u32 i;

	assert_int_equal(grow(c), 0);
	refuse_from = port.calls;
	refuse_count = ~0u - refuse_from;
	port.refuse = refuse_calls;
	for (i = 0; i < 5; i++) {
		assert_int_equal(grow(c), -ARN_ENOMEM);
		assert_int_equal(dir(c, 1), ARN_CHUNK_NONE);
		assert_int_equal(dir(c, 2), ARN_CHUNK_NONE);
	}
	port.refuse = NULL;
	assert_int_equal(grow(c), 0);
	assert_int_equal(dir(c, 1), ARN_CHUNK_MAPPED);
	settle(c);
	core_end(c);
}

/* A refusal that passes (the kernel's allocator was contended) costs no chunk. */
static void a_passing_refusal_is_tried_again(void **state)
{
	struct core *c = chunks(32);

	refuse_from = 0;
	refuse_count = ARN_MAP_TRIES - 1;
	port.refuse = refuse_calls;
	assert_int_equal(grow(c), 0);
	assert_int_equal(dir(c, 0), ARN_CHUNK_MAPPED);
	settle(c);
	core_end(c);
}

/* Grown to the arena's end, the answer is "full" and not "no memory". */
static void a_full_arena_says_so(void **state)
{
	struct core *c = chunks(24);
	__u32 n = 0;
	int err;

	while (!(err = grow(c)))
		n++;
	assert_int_equal(err, -ARN_E2BIG);
	assert_int_equal(n, arn_end_chunk(c->r) - first_chunk);
	settle(c);
	assert_int_equal(c->r->pages_free, c->r->npages);
	core_end(c);
}

/* Everything grown is given back, pages, state bytes and descriptors, and can be grown again. */
static void growing_and_giving_back_balance(void **state)
{
	struct core *c = chunks(24);
	struct arn_stats before = stats(&c->heap), after;
	__u32 turn;

	for (turn = 0; turn < 3; turn++) {
		while (!grow(c))
			;
		settle(c);
		while (shrink(c))
			;
		after = stats(&c->heap);
		assert_int_equal(after.pages_mapped, 0);
		assert_int_equal(after.meta_bytes, before.meta_bytes);
		assert_int_equal(port_pages(), 0);
		sound(&c->heap);
	}
	core_end(c);
}

/* A chunk with one used page stays; its neighbours go, and come back. */
static void a_chunk_in_use_stays(void **state)
{
	struct core *c = chunks(32);
	__u32 off, n;

	core_grow(c, 3);
	/* a naturally aligned MiB in the middle one, then one page of it */
	off = arn_large_alloc(c->b, c->r, 0, 300, 1);
	assert_int_equal(arn_large_alloc(c->b, c->r, 0, 1, 1) != 0, 1);
	*arn_state(c->b, c->r, off) = 0;
	arn_large_free(c->b, c->r, off);
	for (n = 0; shrink(c); n++)
		;
	assert_int_equal(n, 2);
	assert_int_equal(dir(c, 1), ARN_CHUNK_MAPPED);
	assert_int_equal(dir(c, 0), ARN_CHUNK_NONE);
	sound(&c->heap);
	assert_int_equal(grow(c), 0);
	assert_int_equal(dir(c, 0), ARN_CHUNK_MAPPED);
	settle(c);
	core_end(c);
}

static struct core *shared;

/* In the middle of adding a higher chunk, a lower one is given back. */
static void shrink_below(__u32 off, __u32 bytes, __u32 call)
{
	port.before = NULL;
	insist(shrink(shared) == 256);
}

/* A chunk given back while another is being added is found by the next growth: no hole is forgotten. */
static void a_hole_made_meanwhile_is_found(void **state)
{
	struct core *c = chunks(24);
	__u32 n = 2;

	shared = c;
	core_grow(c, 2);
	port.before = shrink_below;
	assert_int_equal(grow(c), 0);
	settle(c);
	while (!grow(c))
		n++;
	assert_int_equal(n + 1, arn_end_chunk(c->r) - first_chunk + 1);
	settle(c);
	assert_int_equal(c->r->pages_free, c->r->npages);
	core_end(c);
}

/* With 64 KiB kernel pages four chunks share a page of descriptors: it is mapped once, and stays. */
static void shared_descriptors(bool again)
{
	struct core *c = core_new_on(32 * MIB, 2, 8, 16);
	__u64 start = stats(&c->heap).meta_bytes, meta;
	__u32 turn;

	port.again = again;
	first_chunk = arn_first_chunk(c->r);
	for (turn = 0; turn < 2; turn++) {
		while (!grow(c))
			;
		settle(c);
		assert_int_equal(c->r->pages_free, c->r->npages);
		sound(&c->heap);
		while (shrink(c))
			;
		if (turn)
			assert_int_equal(stats(&c->heap).meta_bytes, meta);
		meta = stats(&c->heap).meta_bytes;
		assert_int_equal(meta - start, port_pages() * 4096ULL);
	}
	core_end(c);
}

static void large_kernel_pages_share_descriptors(void **state)
{
	shared_descriptors(false);
}

/* Native memory is never refused, however often it is asked for. */
static void large_native_pages_share_descriptors(void **state)
{
	shared_descriptors(true);
}

static bool refuse_descriptors(__u32 off, __u32 bytes, __u32 call)
{
	return off >= arn_chunk_desc_off(shared->r, first_chunk) / (64 * KIB) * (64 * KIB) &&
	       off < first_chunk << ARN_CHUNK_SHIFT && bytes == 64 * KIB &&
	       off >= arn_chunk_state_off(shared->r, arn_end_chunk(shared->r) - 1) + ARN_CHUNK_STATE_BYTES;
}

/* Memory that is short for just that shared page is short memory, not a heap without descriptors. */
static void large_kernel_pages_short_of_memory(void **state)
{
	struct core *c = core_new_on(32 * MIB, 2, 8, 16);

	shared = c;
	first_chunk = arn_first_chunk(c->r);
	port.refuse = refuse_descriptors;
	assert_int_equal(arn_chunk_add(c->b, c->r, first_chunk, ARN_CHUNK_NONE), -ARN_ENOMEM);
	assert_int_equal(port_pages(), 0);
	port.refuse = NULL;
	assert_int_equal(arn_chunk_add(c->b, c->r, first_chunk, ARN_CHUNK_NONE), 0);
	settle(c);
	core_end(c);
}

static void *grower(void *arg)
{
	struct core *c = arg;
	long n = 0;

	while (!grow(c)) {
		n++;
		sched_yield();
	}
	return (void *)n;
}

/* Two threads grow the heap to its end: each chunk is added once. */
static void two_grow_at_once(void **state)
{
	struct core *c = chunks(64);
	pthread_t th[2];
	long n = 0;
	void *ret;
	int i;

	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&th[i], NULL, grower, c), 0);
	for (i = 0; i < 2; i++) {
		pthread_join(th[i], &ret);
		n += (long)ret;
	}
	assert_int_equal(n, arn_end_chunk(c->r) - first_chunk);
	settle(c);
	assert_int_equal(c->r->pages_free, c->r->npages);
	core_end(c);
}

unit_main(t(a_chunk_is_added), t(others_chunks_are_not_touched), t(a_refused_call_loses_nothing),
	  t(a_taken_range_is_passed_over), t(a_refused_range_is_tried_at_the_end), t(random_refusals_lose_nothing),
	  t(a_taken_tail_ends_the_heap), t(short_memory_marks_nothing), t(a_passing_refusal_is_tried_again),
	  t(a_full_arena_says_so), t(growing_and_giving_back_balance), t(a_chunk_in_use_stays),
	  t(a_hole_made_meanwhile_is_found), t(large_kernel_pages_share_descriptors),
	  t(large_native_pages_share_descriptors), t(large_kernel_pages_short_of_memory), t(two_grow_at_once))
