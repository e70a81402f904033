// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * user.c - threads of one process on a shared heap: what they allocate and BPF frees, the other way round,
 * slots, growth, signal handlers, mistakes.
 *
 * Several processes are in procs.c, kills in kill.c, everybody at once in torture.c.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include "rig.h"
#include "ops.skel.h"

#define ARENA (128 * MiB)
#define SMALL (64 * MiB) /* that a test can fill */

static struct rig *t;

static int setup(void **state)
{
	t = rig_new(ARENA, 0);
	return 0;
}

static int setup_small(void **state)
{
	t = rig_new(SMALL, 0);
	return 0;
}

static int teardown(void **state)
{
	rig_end(t);
	return 0;
}

static void *take(size_t size)
{
	char *p = arn_malloc(t->heap, size);

	if (!p)
		fail_msg("malloc of %zu: %s: %s", size, strerror(errno), arn_last_error());
	assert_int_equal((uintptr_t)p & 15, 0);
	memset(p, (int)(size * 7 + 1), size);
	return p;
}

static bool whole(const char *p, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (p[i] != (char)(size * 7 + 1))
			return false;
	return true;
}

static __u64 random_of(__u64 *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Of every class, and larger ones; the heap begins without memory and grows. */
static void each_frees_what_the_other_allocated(void **state)
{
	size_t size;
	char *p;

	for (size = 1; size < 3 * MiB; size += 1 + size / 7) {
		p = take(size);
		assert_true(arn_usable_size(t->heap, p) >= size);
		assert_int_equal(bpf_usable(t, p), arn_usable_size(t->heap, p));
		assert_true(whole(p, size));
		assert_int_equal(bpf_free(t, p), 0);
		assert_int_equal(arn_free(t->heap, p), -EINVAL);

		p = bpf_malloc(t, size);
		assert_non_null(p);
		memset(p, 3, size);
		assert_int_equal(arn_free(t->heap, p), 0);
		assert_int_equal(bpf_free(t, p), -EINVAL);
	}
	assert_int_equal(rig_live(t->heap), 0);
}

/* Many at a time: through every exchange, refill and spill, and back. */
static void many(void **state)
{
	enum { N = 30000 };
	static char *p[N];
	static size_t size[N];
	__u64 seed = 5;
	int i, k, turn;

	for (turn = 0; turn < 3; turn++) {
		for (i = 0; i < N; i++) {
			size[i] = turn == 1 ? 64 : 1 + random_of(&seed) % (i % 50 ? 400 : 9000);
			p[i] = take(size[i]);
		}
		rig_sound(t->heap);
		assert_int_equal(rig_live(t->heap), N);
		for (i = N - 1; i > 0; i--) {
			char *swap = p[k = (int)(random_of(&seed) % (__u64)(i + 1))];
			size_t n = size[k];

			p[k] = p[i], size[k] = size[i];
			p[i] = swap, size[i] = n;
		}
		for (i = 0; i < N; i++) {
			assert_true(whole(p[i], size[i]));
			assert_int_equal(turn == 2 && i % 2 ? bpf_free(t, p[i]) : arn_free(t->heap, p[i]), 0);
		}
		assert_int_equal(rig_live(t->heap), 0);
		rig_sound(t->heap);
	}
	assert_true(arn_trim(t->heap) >= (long long)(8 * MiB));
	assert_int_equal(rig_stats(t->heap).pages_mapped, 0);
}

static void in_bulk(void **state)
{
	static void *p[5000];
	static const size_t sizes[] = { 16, 64, 500, 5000, 100000 };
	size_t i, k, n;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		n = sizes[i] > 1000 ? 150 : 5000;
		assert_int_equal(arn_malloc_bulk(t->heap, sizes[i], n, p), n);
		for (k = 0; k < n; k++)
			memset(p[k], (int)k, sizes[i]);
		assert_int_equal(rig_live(t->heap), n);
		/* BPF frees some of them first: the rest is freed all the same. */
		for (k = 0; k < n; k += 100)
			assert_int_equal(bpf_free(t, p[k]), 0);
		assert_int_equal(arn_free_bulk(t->heap, p, n), n - n / 100 - !!(n % 100));
		assert_int_equal(rig_live(t->heap), 0);
	}
	assert_int_equal(arn_free_bulk(t->heap, p, 5), -EINVAL);
	memset(p, 0, 5 * sizeof(*p));
	assert_int_equal(arn_free_bulk(t->heap, p, 5), 5);
}

static void the_other_calls(void **state)
{
	__u32 tag_of_a_checked_heap_only = 3;
	size_t align, i;
	char *p, *q;

	for (align = 16; align <= MiB; align *= 2) {
		p = arn_aligned_alloc(t->heap, align, align / 2 + 1);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p & (align - 1), 0);
		assert_int_equal(bpf_free(t, p), 0);
	}
	assert_null(arn_aligned_alloc(t->heap, 48, 10));
	assert_int_equal(errno, EINVAL);
	p = take(3 * MiB);
	assert_int_equal(arn_free(t->heap, p), 0);
	p = arn_calloc(t->heap, 3, MiB);
	for (i = 0; i < 3 * MiB; i++)
		assert_int_equal(p[i], 0);
	p = arn_realloc(t->heap, p, 40);
	p = arn_realloc(t->heap, p, 5 * MiB);
	for (i = 0; i < 40; i++)
		assert_int_equal(p[i], 0);
	assert_null(arn_malloc(t->heap, ARENA / 2 + 1));
	assert_int_equal(errno, E2BIG);
	assert_null(arn_calloc(t->heap, 1ULL << 40, 1ULL << 40));
	assert_int_equal(errno, E2BIG);
	q = arn_malloc(t->heap, 0);
	assert_non_null(q);
	assert_int_equal(arn_free(t->heap, q), 0);
	assert_int_equal(arn_free(t->heap, NULL), 0);
	assert_null(arn_realloc(t->heap, q, 10));
	assert_int_equal(arn_set_tag(t->heap, tag_of_a_checked_heap_only), 0);
	assert_int_equal(arn_free(t->heap, p), 0);
}

/* ---- Mistakes ---- */

static void refused(const void *p, const char *why, enum arn_fail counter)
{
	__u64 before = rig_fail(t, counter);

	assert_int_equal(arn_free(t->heap, (void *)p), -EINVAL);
	if (!strstr(arn_last_error(), why))
		fail_msg("'%s' does not say '%s'", arn_last_error(), why);
	assert_int_equal(rig_fail(t, counter), before + 1);
	assert_int_equal(arn_usable_size(t->heap, p), 0);
}

static void what_is_no_object_is_refused(void **state)
{
	char *p = take(64), *big = take(MiB), on_the_stack[64];

	refused(on_the_stack, "not a pointer into", ARN_FAIL_FOREIGN);
	refused((void *)16, "not a pointer into", ARN_FAIL_FOREIGN);
	refused(t->base, "not a pointer into", ARN_FAIL_FOREIGN);
	refused(t->base - 64, "not a pointer into", ARN_FAIL_FOREIGN);
	refused(t->base + ARENA - MiB, "not a pointer into", ARN_FAIL_FOREIGN); /* no memory there */
	refused(t->base + (4ULL << 30) + (p - t->base), "not a pointer into", ARN_FAIL_FOREIGN);
	refused(p + 1, "not a multiple", ARN_FAIL_MISALIGNED);
	refused(p + 16, "inside", ARN_FAIL_INTERIOR);
	refused(big + 4096, "inside", ARN_FAIL_INTERIOR);
	refused(big + 16, "inside", ARN_FAIL_INTERIOR);
	/* The offset alone is a pointer too, as in BPF. */
	assert_int_equal(arn_free(t->heap, (void *)(p - t->base)), 0);
	refused(p, "free already", ARN_FAIL_DOUBLE);
	assert_int_equal(arn_free(t->heap, big), 0);
	refused(big, "free already", ARN_FAIL_DOUBLE);
	/* Its memory is gone. */
	assert_true(arn_trim(t->heap) > 0);
	assert_int_equal(rig_stats(t->heap).pages_mapped, 0);
	refused(p, "not a pointer into", ARN_FAIL_FOREIGN);
	refused(big, "not a pointer into", ARN_FAIL_FOREIGN);
}

static void a_full_heap_says_so(void **state)
{
	static const size_t sizes[] = { 50000, 2000, 16 };
	enum { N = 20000 };
	static char *p[N];
	int n, turn, got[2];
	size_t i;

	for (turn = 0; turn < 2; turn++) {
		for (n = 0, i = 0; i < 3; i++) {
			for (; n < N && (p[n] = arn_malloc(t->heap, sizes[i])); n++)
				memset(p[n], n, sizes[i]);
			assert_true(n > 500 && n < N);
			assert_int_equal(errno, ENOMEM);
		}
		got[turn] = n;
		while (n--)
			assert_int_equal(arn_free(t->heap, p[n]), 0);
		assert_int_equal(arn_free(t->heap, take(64)), 0);
		assert_int_equal(arn_trim(t->heap) >> 12, t->root->npages);
	}
	assert_true(got[0] - got[1] < 300 && got[1] - got[0] < 300);
}

/* What lies in the caches is memory too: small objects' is given to a large one. */
static void cached_memory_is_reclaimed(void **state)
{
	enum { N = 15000 };
	static char *p[N];
	char *big;
	int i;

	for (i = 0; i < N; i++)
		p[i] = take(1000);
	for (i = 0; i < N; i++)
		assert_int_equal(arn_free(t->heap, p[i]), 0);
	big = arn_malloc(t->heap, SMALL / 2);
	if (!big)
		fail_msg("%s", arn_last_error());
	assert_int_equal(bpf_free(t, big), 0);
}

/* ---- Slots ---- */

static __u64 claimed(void)
{
	return rig_stats(t->heap).slots_claimed;
}

static void *a_thread(void *arg)
{
	pthread_barrier_t *b = arg;
	char *p[500];
	int i;

	for (i = 0; i < 500; i++)
		p[i] = arn_malloc(t->heap, 64);
	pthread_barrier_wait(b);
	pthread_barrier_wait(b);
	for (i = 0; i < 500; i++)
		arn_free(t->heap, p[i]);
	return NULL;
}

static void a_slot_is_claimed_at_the_first_call_and_given_back(void **state)
{
	pthread_barrier_t b;
	pthread_t th[3];
	struct arn_stats st;
	int i;

	assert_int_equal(claimed(), 0);
	assert_int_equal(arn_free(t->heap, take(64)), 0);
	assert_int_equal(claimed(), 1);
	pthread_barrier_init(&b, NULL, 4);
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&th[i], NULL, a_thread, &b), 0);
	pthread_barrier_wait(&b);
	assert_int_equal(claimed(), 4);
	assert_int_equal(rig_live(t->heap), 1500);
	pthread_barrier_wait(&b);
	for (i = 0; i < 3; i++)
		pthread_join(th[i], NULL);
	assert_int_equal(claimed(), 1);
	/* Drained: but for what this thread has, everything is in the depot or the slabs. */
	assert_true(arn_trim(t->heap) >= 0);
	st = rig_stats(t->heap);
	for (i = 0; i < ARN_CLASSES; i++)
		assert_int_equal(st.cls[i].in_slots, 0);
	assert_int_equal(arn_reap(t->heap), 0);
	assert_int_equal(claimed(), 1);
}

/* Each call then goes to the kernel, and works. */
static void *one_of_many(void *arg)
{
	int *errors = arg, round, i;
	char *p[64];

	for (round = 0; round < 20; round++) {
		for (i = 0; i < 64; i++) {
			p[i] = arn_malloc(t->heap, 16 + (size_t)i * 30);
			if (!p[i])
				__atomic_fetch_add(errors, 1, __ATOMIC_RELAXED);
			else
				memset(p[i], i, 16 + (size_t)i * 30);
		}
		for (i = 0; i < 64; i++)
			if (p[i] && ((p[i][3] != (char)i) | !!arn_free(t->heap, p[i])))
				__atomic_fetch_add(errors, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void two_hundred_threads_share_sixty_four_slots(void **state)
{
	pthread_t th[200];
	int errors = 0, i;

	for (i = 0; i < 200; i++)
		assert_int_equal(pthread_create(&th[i], NULL, one_of_many, &errors), 0);
	for (i = 0; i < 200; i++)
		pthread_join(th[i], NULL);
	assert_int_equal(errors, 0);
	assert_int_equal(claimed(), 0);
	assert_int_equal(rig_live(t->heap), 0);
}

/* Held while all of them live, so that most of them never have one. */
static void more_threads_than_slots_at_once(void **state)
{
	struct arn_options o = { .sz = sizeof(o), .bytes = ARENA, .user_slots = 2 };
	struct rig *was = t, small = { .heap = arn_create(&o) };
	pthread_barrier_t b;
	pthread_t th[8];
	int i;

	assert_non_null(small.heap);
	t = &small;
	pthread_barrier_init(&b, NULL, 9);
	for (i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&th[i], NULL, a_thread, &b), 0);
	pthread_barrier_wait(&b);
	assert_int_equal(claimed(), 2);
	assert_int_equal(rig_live(t->heap), 8 * 500);
	pthread_barrier_wait(&b);
	for (i = 0; i < 8; i++)
		pthread_join(th[i], NULL);
	assert_int_equal(rig_live(t->heap), 0);
	rig_sound(t->heap);
	arn_close(t->heap);
	t = was;
}

/* ---- Signal handlers ---- */

static volatile sig_atomic_t ticks, handler_failed;

static void on_tick(int sig)
{
	static char *kept[16];
	int err = errno, i = ticks++ % 16;

	if (kept[i] && arn_free(t->heap, kept[i]))
		handler_failed++;
	kept[i] = ticks < 100000000 ? arn_malloc(t->heap, 16 + (size_t)(i % 4) * 200) : NULL;
	if (!kept[i])
		handler_failed++;
	errno = err;
}

static void signal_handlers_allocate(void **state)
{
	const struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction sa = { .sa_handler = on_tick }, old;
	enum { N = 512 };
	static char *p[N];
	__u64 seed = 3;
	time_t until = time(NULL) + 30;
	int i;

	assert_int_equal(arn_free(t->heap, take(16)), 0);
	assert_int_equal(sigaction(SIGALRM, &sa, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (; ticks < 10000 && time(NULL) < until;) {
		i = (int)(random_of(&seed) % N);
		if (p[i] && arn_free(t->heap, p[i]))
			break;
		p[i] = arn_malloc(t->heap, 16 + random_of(&seed) % 700);
		if (!p[i])
			break;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_true(ticks >= 3000); /* (10,000 a second, if this CPU is its own) */
	assert_int_equal(handler_failed, 0);
	for (i = 0; i < N; i++)
		assert_int_equal(arn_free(t->heap, p[i]), 0);
	assert_int_equal(rig_live(t->heap), 16);
	rig_sound(t->heap);
}

/* ---- A checked heap ---- */

static int count_tag(const struct arn_object *o, void *arg)
{
	__u64 *seen = arg;

	seen[o->tag & 7] += o->size;
	return 0;
}

static void a_checked_heap_serves_user_threads(void **state)
{
	struct rig *was = t;
	__u64 seen[8] = { 0 };
	char *p, *q;

	t = rig_new_flags(ARENA, 0, ARN_CHECKED);
	assert_int_equal(arn_set_tag(t->heap, 5), 0);
	p = take(100);
	q = take(300000);
	assert_int_equal(arn_usable_size(t->heap, p), 100);
	assert_int_equal(arn_live(t->heap, count_tag, seen), 2);
	assert_int_equal(seen[5], 300100);
	p[100] = 1;
	assert_int_equal(arn_free(t->heap, p), 0);
	assert_int_equal(rig_fail(t, ARN_FAIL_OVERRUN), 1);
	assert_int_equal(arn_free(t->heap, p), -EINVAL);
	assert_int_equal(bpf_free(t, q), 0);
	p = bpf_malloc(t, 40);
	assert_int_equal(arn_free(t->heap, p), 0);
	assert_int_equal(rig_live(t->heap), 0);
	rig_end(t);
	t = was;
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(each_frees_what_the_other_allocated),
		T(many),
		T(in_bulk),
		T(the_other_calls),
		T(what_is_no_object_is_refused),
		cmocka_unit_test_setup_teardown(a_full_heap_says_so, setup_small, teardown),
		cmocka_unit_test_setup_teardown(cached_memory_is_reclaimed, setup_small, teardown),
		T(a_slot_is_claimed_at_the_first_call_and_given_back),
		T(two_hundred_threads_share_sixty_four_slots),
		T(more_threads_than_slots_at_once),
		T(signal_handlers_allocate),
		T(a_checked_heap_serves_user_threads),
	};

	rig_start();
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
