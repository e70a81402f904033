// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * thread_test.c - many threads on one native heap: objects that change hands, slots that run out, trims
 * and statistics beside it all.
 *
 * Every object carries the mark of whoever holds it, so an object in two hands is seen; TSan looks at
 * the order.  Scheduling is the machine's: a pass says that nothing was seen, not that nothing can be.
 */
#include <pthread.h>
#include <sched.h>
#include "unit.h"

/*
 * A pop may read the link of a magazine whose page was given back meanwhile and is a user's object now:
 * the swap then fails on the tag (magazine.h).  TSan would call that read a race with the user's write.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:arn_depot_pop\n";
}

#define THREADS 4
#define BOXES	512

static struct arn_heap *h;
static __u64 *box[BOXES]; /* objects on their way from one thread to another */
static __u32 stop;

struct worker {
	pthread_t th;
	__u64 seed;
	__u32 turns, fails;
	size_t max; /* of an object */
	bool bulk;
};

/* An object's first words: its size and a mark made of that and its address. */
static void stamp(__u64 *p, size_t size)
{
	p[0] = size;
	p[1] = size ^ (__u64)(unsigned long)p ^ 0x5bd1e995;
}

static void unstamp(__u64 *p)
{
	insist(p[1] == (p[0] ^ (__u64)(unsigned long)p ^ 0x5bd1e995));
	insist(painted(p + 2, p[0] - 16, p[0] - 16, p[0]));
	p[0] = p[1] = 0;
}

/* Allocates, puts the object into a box, frees what was there: mostly somebody else's. */
static void *exchange(void *arg)
{
	struct worker *w = arg;
	__u64 *p, *was;
	size_t size;
	__u32 i;

	for (i = 0; i < w->turns; i++) {
		size = 16 + rnd(&w->seed) % (rnd(&w->seed) % 64 ? w->max / 64 + 1 : w->max);
		p = arn_malloc(h, size);
		if (p) {
			paint(p + 2, size - 16, size);
			stamp(p, size);
		}
		w->fails += !p;
		was = __atomic_exchange_n(&box[rnd(&w->seed) % BOXES], p, __ATOMIC_ACQ_REL);
		if (was) {
			unstamp(was);
			insist(arn_free(h, was) == 0);
		}
	}
	return NULL;
}

static struct arn_heap *heap_slots(__u64 bytes, __u32 slots)
{
	struct arn_options o = { .sz = sizeof(o), .bytes = bytes, .flags = ARN_NATIVE, .user_slots = slots };
	struct arn_heap *heap = arn_create(&o);

	assert_non_null(heap);
	return heap;
}

static void run(void *(*fn)(void *), struct worker *w, int n, __u32 turns, size_t max)
{
	int i;

	for (i = 0; i < n; i++) {
		w[i] = (struct worker){ .seed = i + 1, .turns = turns / ARN_TEST_SCALE, .max = max };
		assert_int_equal(pthread_create(&w[i].th, NULL, fn, &w[i]), 0);
	}
}

static void join(struct worker *w, int n)
{
	while (n--)
		pthread_join(w[n].th, NULL);
}

/* What is left in the boxes is what is alive; then it is freed, and everything is at its place. */
static void empty_boxes(void)
{
	__u64 n = 0;
	int i;

	for (i = 0; i < BOXES; i++)
		n += box[i] != NULL;
	sound(h);
	assert_int_equal(live(h), n);
	for (i = 0; i < BOXES; i++) {
		if (!box[i])
			continue;
		unstamp(box[i]);
		assert_int_equal(arn_free(h, box[i]), 0);
		box[i] = NULL;
	}
	assert_int_equal(live(h), 0);
	arn_trim(h);
	assert_int_equal(stats(h).pages_mapped, 0);
	heap_end(h);
}

/* Objects of all sizes change hands: none is in two, none is lost, no call fails. */
static void objects_change_hands(void **state)
{
	struct worker w[THREADS];

	h = heap_slots(512 * MIB, 0);
	run(exchange, w, THREADS, 300000, 200000);
	join(w, THREADS);
	assert_int_equal(failed(h, ARN_FAIL_NOMEM), 0);
	assert_int_equal(stats(h).slots_claimed, 0); /* threads that ended gave their slots back */
	empty_boxes();
}

/* One class only, so that its depot is all there is between the threads. */
static void one_class_changes_hands(void **state)
{
	struct worker w[THREADS];

	h = heap_slots(256 * MIB, 0);
	run(exchange, w, THREADS, 600000, 64);
	join(w, THREADS);
	assert_int_equal(failed(h, ARN_FAIL_NOMEM), 0);
	empty_boxes();
}

/* More threads than slots: those without one work past the caches. */
static void more_threads_than_slots(void **state)
{
	struct worker w[8];

	h = heap_slots(256 * MIB, 2);
	run(exchange, w, 8, 60000, 20000);
	join(w, 8);
	assert_int_equal(failed(h, ARN_FAIL_NOMEM), 0);
	empty_boxes();
}

/* Memory is short: calls fail, are counted, and nothing is lost. */
static void threads_at_the_edge(void **state)
{
	struct worker w[THREADS];
	__u64 fails = 0;
	int i;

	h = heap_slots(24 * MIB, 0);
	run(exchange, w, THREADS, 60000, 500000);
	join(w, THREADS);
	for (i = 0; i < THREADS; i++)
		fails += w[i].fails;
	assert_int_equal(failed(h, ARN_FAIL_NOMEM), fails);
	empty_boxes();
}

static void *trimmer(void *arg)
{
	struct arn_stats s;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		insist(arn_trim(h) >= 0);
		insist(arn_reserve(h, 2 * MIB) == 0);
		insist(arn_get_stats(h, &s, sizeof(s)) == 0);
		insist(s.arena_bytes == 256 * MIB);
		sched_yield();
	}
	return NULL;
}

/* Trims, reserves and statistics run beside allocations and frees. */
static void trims_beside_it_all(void **state)
{
	struct worker w[3];
	pthread_t th;

	h = heap_slots(256 * MIB, 0);
	stop = 0;
	assert_int_equal(pthread_create(&th, NULL, trimmer, NULL), 0);
	run(exchange, w, 3, 100000, 100000);
	join(w, 3);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(th, NULL);
	assert_int_equal(failed(h, ARN_FAIL_NOMEM), 0);
	assert_int_equal(failed(h, ARN_FAIL_CORRUPT), 0);
	empty_boxes();
}

static void *bulk_exchange(void *arg)
{
	struct worker *w = arg;
	void *p[300];
	size_t n, i;
	__u32 turn;

	for (turn = 0; turn < w->turns; turn++) {
		n = 1 + rnd(&w->seed) % 300;
		insist(arn_malloc_bulk(h, w->max, n, p) == n);
		for (i = 0; i < n; i++) {
			paint((__u64 *)p[i] + 2, w->max - 16, w->max);
			stamp(p[i], w->max);
			p[i] = __atomic_exchange_n(&box[rnd(&w->seed) % BOXES], p[i], __ATOMIC_ACQ_REL);
			if (p[i])
				unstamp(p[i]);
		}
		insist(arn_free_bulk(h, p, n) == (long)n);
	}
	return NULL;
}

/* The same in bulk. */
static void bulks_change_hands(void **state)
{
	struct worker w[THREADS];

	h = heap_slots(256 * MIB, 3);
	run(bulk_exchange, w, THREADS, 1600, 96);
	join(w, THREADS);
	empty_boxes();
}

static void *one_call(void *arg)
{
	void *p = arn_malloc(h, 64), *q = arn_malloc(h, 3000);

	insist(p && q);
	insist(arn_free(h, p) == 0);
	*(void **)arg = q;
	return NULL;
}

/* Threads come and go, more than there are slots: each gets one, and leaves nothing cached in it. */
static void threads_come_and_go(void **state)
{
	struct arn_stats s;
	pthread_t th;
	void *p;
	int i, c;

	h = heap_slots(64 * MIB, 2);
	for (i = 0; i < 200; i++) {
		assert_int_equal(pthread_create(&th, NULL, one_call, &p), 0);
		pthread_join(th, NULL);
		assert_int_equal(arn_free(h, p), 0);
	}
	s = stats(h);
	assert_int_equal(s.slots_claimed, 1);
	assert_int_equal(s.pages_mapped, 256);
	assert_int_equal(live_objects(&s), 0);
	for (i = 0, c = 0; c < ARN_CLASSES; c++)
		i += s.cls[c].in_slots > 0;
	assert_true(i <= 1); /* this thread's own */
	heap_end(h);
}

static pthread_barrier_t gate;

/* Caches what two magazines hold, and stays. */
static void *hoard(void *arg)
{
	void *p[240];
	int i;

	for (i = 0; i < 240; i++)
		insist((p[i] = arn_malloc(h, 64)));
	for (i = 0; i < 240; i++)
		insist(arn_free(h, p[i]) == 0);
	pthread_barrier_wait(&gate);
	pthread_barrier_wait(&gate);
	return NULL;
}

/* What fails an allocation beside mapped memory is what other slots cache: bounded, shown, and back at their end. */
static void other_slots_keep_little(void **state)
{
	const __u32 max = 1 << 19;
	__u64 **p = malloc(max * sizeof(*p));
	struct arn_stats s;
	pthread_t th[3];
	__u32 n, i;

	h = heap_slots(24 * MIB, 0);
	pthread_barrier_init(&gate, NULL, 4);
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&th[i], NULL, hoard, NULL), 0);
	pthread_barrier_wait(&gate);
	for (n = 0; n < max && (p[n] = arn_malloc(h, 64)); n++)
		;
	s = stats(h);
	assert_int_equal(s.cls[3].live, n);
	assert_int_equal(s.cls[3].in_depot + s.cls[3].in_slabs, 0);
	assert_true(s.cls[3].in_slots * 64 <= 3 * 2 * 32 * KIB);
	pthread_barrier_wait(&gate);
	for (i = 0; i < 3; i++)
		pthread_join(th[i], NULL);
	assert_int_equal(stats(h).cls[3].in_slots, 0);
	for (i = 0; i < s.cls[3].in_slots; i++)
		assert_non_null(p[n++] = arn_malloc(h, 64));
	while (n--)
		assert_int_equal(arn_free(h, p[n]), 0);
	free(p);
	pthread_barrier_destroy(&gate);
	heap_end(h);
}

static pthread_key_t late_key;

static void late(void *p)
{
	insist(arn_free(h, p) == 0);
	p = arn_malloc(h, 128);
	insist(p);
	insist(arn_free(h, p) == 0);
}

static void *leaves_late(void *arg)
{
	void *p = arn_malloc(h, 128);

	insist(p);
	pthread_setspecific(late_key, p);
	return NULL;
}

/* A thread that allocates in a destructor, after the library's own: its slot is given back all the same. */
static void calls_in_thread_destructors(void **state)
{
	pthread_t th;
	int i;

	h = heap_slots(64 * MIB, 4);
	arn_free(h, arn_malloc(h, 64)); /* the library's key comes first */
	assert_int_equal(pthread_key_create(&late_key, late), 0);
	for (i = 0; i < 20; i++) {
		assert_int_equal(pthread_create(&th, NULL, leaves_late, NULL), 0);
		pthread_join(th, NULL);
	}
	pthread_key_delete(late_key);
	assert_int_equal(stats(h).slots_claimed, 1);
	assert_int_equal(live(h), 0);
	heap_end(h);
}

unit_main(t(objects_change_hands), t(one_class_changes_hands), t(more_threads_than_slots), t(threads_at_the_edge),
	  t(trims_beside_it_all), t(bulks_change_hands), t(threads_come_and_go), t(other_slots_keep_little),
	  t(calls_in_thread_destructors))
