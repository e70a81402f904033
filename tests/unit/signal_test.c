// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * signal_test.c - allocation in signal handlers, at every instruction of the call that they interrupt.
 *
 * Without stepping (stepping.h) only the timer test runs.  Cannot show what interrupts do to BPF programs.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include "stepping.h"
#include "unit.h"

/* An object carries its address and owner while somebody holds it, and 0 else: a second owner sees it. */
enum owner { MAIN = 1, HANDLER = 2 };

static __u64 *hold(struct arn_heap *h, size_t size, enum owner who)
{
	__u64 *p = arn_malloc(h, size);

	if (p) {
		insist(*p == 0);
		*p = (__u64)(unsigned long)p ^ who;
	}
	return p;
}

static void let_go(struct arn_heap *h, __u64 *p, enum owner who)
{
	insist(*p == ((__u64)(unsigned long)p ^ who));
	*p = 0;
	insist(arn_free(h, p) == 0);
}

#ifdef STEPPING
static struct {
	struct arn_heap *heap; /* that the handler uses */
	size_t size;
	__u32 at, every; /* acts at these traps */
	__u32 traps;
	int action;
	__u64 *kept[64];
	__u32 nkept, nulls, frees;
} step;

static void act(void)
{
	__u64 *p;

	if (step.action != 1) {
		p = hold(step.heap, step.size, HANDLER);
		step.nulls += !p;
		if (p && step.action == 2) {
			let_go(step.heap, p, HANDLER);
		} else if (p) {
			insist(step.nkept < NELEMS(step.kept));
			step.kept[step.nkept++] = p;
		}
	}
	if ((step.action == 1 || step.nkept == NELEMS(step.kept)) && step.nkept) {
		let_go(step.heap, step.kept[--step.nkept], HANDLER);
		step.frees++;
	}
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	__u32 n = step.traps++;

	if (step.every ? n % step.every == step.at : n == step.at)
		act();
	if (!step.every && n >= step.at) /* the rest may run at full speed */
		uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void step_start(struct arn_heap *h, size_t size, int action, __u32 at, __u32 every)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	step.heap = h;
	step.size = size;
	step.action = action;
	step.at = at;
	step.every = every;
	step.traps = 0;
	sigaction(SIGTRAP, &sa, NULL);
}

static void handler_lets_go(struct arn_heap *h)
{
	while (step.nkept)
		let_go(h, step.kept[--step.nkept], HANDLER);
}

/* One pair of calls, interrupted once, at instruction i.  False: the pair was over before. */
static bool interrupted_pair(struct arn_heap *h, size_t size, struct arn_heap *other, int action, __u32 i)
{
	__u64 *p;

	step_start(other, size, action, i, 0);
	STEP_ON();
	p = arn_malloc(h, size);
	STEP_OFF();
	insist(p && *p == 0);
	*p = (__u64)(unsigned long)p ^ MAIN;
	insist(*p == ((__u64)(unsigned long)p ^ MAIN));
	*p = 0;
	STEP_ON();
	insist(arn_free(h, p) == 0);
	STEP_OFF();
	return step.traps > i;
}

/* All interruptions of a pair: the handler allocates, frees, or both. */
static void every_instruction(struct arn_heap *h, size_t size, struct arn_heap *other)
{
	__u32 i;
	int action;

	for (action = 0; action < 3; action++) {
		for (i = 0; i < 3000; i += ARN_TEST_SCALE > 1 ? 5 : 1) {
			while (action == 1 && step.nkept < 8)
				step.kept[step.nkept++] = hold(other, size, HANDLER);
			if (!interrupted_pair(h, size, other, action, i))
				break;
			if (step.nkept > 40)
				handler_lets_go(other);
		}
		assert_in_range(i, 20, 2999); /* it was over at some point: all was seen */
		handler_lets_go(other);
	}
	sound(h);
	sound(other);
	assert_int_equal(live(h), 0);
	assert_int_equal(live(other), 0);
}

/* A handler on the same heap and class, while the interrupted call works on its cache. */
static void fast_path_is_interrupted(void **state)
{
	struct arn_heap *h = heap_new(64 * MIB);

	let_go(h, hold(h, 64, MAIN), MAIN);
	every_instruction(h, 64, h);
	heap_end(h);
}

/* A handler on another heap: the interrupted call goes on with the slot of its own. */
static void a_handler_uses_another_heap(void **state)
{
	struct arn_heap *h = heap_new(64 * MIB), *other = heap_new(64 * MIB);

	let_go(h, hold(h, 64, MAIN), MAIN);
	let_go(other, hold(other, 64, MAIN), MAIN);
	every_instruction(h, 64, other);
	heap_end(other);
	heap_end(h);
}

struct first {
	struct arn_heap *heap;
	__u32 at;
	bool more;
};

static void *first_call(void *arg)
{
	struct first *f = arg;
	__u32 k;

	f->more = interrupted_pair(f->heap, 64, f->heap, 0, f->at);
	for (k = 0; k < 3; k++)
		let_go(f->heap, hold(f->heap, 64, MAIN), MAIN);
	handler_lets_go(f->heap);
	return NULL;
}

/*
 * A thread's very first call on a heap, where it claims its slot, is interrupted by another first call:
 * whatever the two claim is given back when the thread ends.
 */
static void the_first_call_is_interrupted(void **state)
{
	struct first f = { .more = true };
	struct arn_stats s;
	pthread_t th;

	for (f.at = 0; f.more && f.at < 400000; f.at += f.at < 200 / ARN_TEST_SCALE ? 1 : 1 + f.at / 8) {
		f.heap = heap_new(24 * MIB);
		assert_int_equal(pthread_create(&th, NULL, first_call, &f), 0);
		pthread_join(th, NULL);
		sound(f.heap);
		s = stats(f.heap);
		assert_int_equal(s.slots_claimed, 0);
		assert_int_equal(live_objects(&s), 0);
		arn_close(f.heap);
	}
	assert_false(f.more);
}

/* Makes calls on the heap from now on, without a slot: this one has them all. */
static void *occupy(void *arg)
{
	pthread_barrier_t *gate = arg;

	arn_free(step.heap, arn_malloc(step.heap, 16));
	pthread_barrier_wait(gate);
	pthread_barrier_wait(gate);
	return NULL;
}

/*
 * A thread for which no slot is left takes the lock in every call; a handler on top of it is told no, and
 * does not wait for what cannot be let go meanwhile.
 */
static void a_thread_without_a_slot_is_interrupted(void **state)
{
	struct arn_options o = { .sz = sizeof(o), .bytes = 64 * MIB, .flags = ARN_NATIVE, .user_slots = 1 };
	struct arn_heap *h = arn_create(&o);
	pthread_barrier_t gate;
	pthread_t th;
	__u32 i;

	assert_non_null(h);
	pthread_barrier_init(&gate, NULL, 2);
	step.heap = h;
	assert_int_equal(pthread_create(&th, NULL, occupy, &gate), 0);
	pthread_barrier_wait(&gate);
	let_go(h, hold(h, 40000, MAIN), MAIN);
	for (i = 0; i < 20000; i += i < 800 / ARN_TEST_SCALE ? 1 : 1 + i / 20) {
		if (!interrupted_pair(h, 40000, h, i % 3, i)) /* a page run: under the lock */
			break;
		if (step.nkept > 40)
			handler_lets_go(h);
	}
	assert_in_range(i, 100, 19999);
	handler_lets_go(h);
	pthread_barrier_wait(&gate);
	pthread_join(th, NULL);
	assert_int_equal(live(h), 0);
	heap_end(h);
	pthread_barrier_destroy(&gate);
}

/*
 * Long stretches that refill, exchange magazines, cut slabs, take and drop page runs, with a handler at
 * every so-manieth instruction.  Inside of the lock a handler that has used up the emergency reserve gets
 * NULL, counted as such; its frees never fail; and the heap does not grow for a lock that is held.
 */
static void slow_paths_are_interrupted(void **state)
{
	static const struct {
		size_t size;
		__u32 n; /* enough for an exchange with the depot and several slabs */
	} runs[] = { { 64, 130 }, { 1024, 40 }, { 32768, 12 }, { 100000, 6 } };
	static const __u32 strides[] = { 1, 3, 7, 23 };
	__u32 i, k, s, every, n;
	struct arn_heap *h;
	__u64 *p[130];
	size_t size;

	for (k = 0; k < NELEMS(runs); k++) {
		for (s = ARN_TEST_SCALE > 1 ? 2 : 0; s < NELEMS(strides); s++) {
			every = strides[s];
			size = runs[k].size;
			n = runs[k].n;
			h = heap_new(128 * MIB);
			step.nulls = 0;
			for (i = 0; i < n; i++) {
				step_start(h, size, s % 2 ? 2 : 0, every / 2, every);
				STEP_ON();
				p[i] = arn_malloc(h, size);
				STEP_OFF();
				insist(p[i] && *p[i] == 0);
				*p[i] = (__u64)(unsigned long)p[i] ^ MAIN;
			}
			for (i = 0; i < n; i++) {
				insist(*p[i] == ((__u64)(unsigned long)p[i] ^ MAIN));
				*p[i] = 0;
				step_start(h, size, i % 2 ? 2 : 1, every / 2, every);
				STEP_ON();
				insist(arn_free(h, p[i]) == 0);
				STEP_OFF();
			}
			handler_lets_go(h);
			sound(h);
			assert_int_equal(live(h), 0);
			assert_int_equal(step.nulls, failed(h, ARN_FAIL_NESTED));
			/* the handlers kept at most 64 at a time */
			assert_true(stats(h).pages_mapped * ARN_PAGE_SIZE <= 8 * MIB + 2ULL * (n + 64) * size);
			heap_end(h);
		}
	}
}
#endif

/* ---- by the clock ---- */

static struct arn_heap *storm;
static __u32 fired;

static void on_alarm(int sig)
{
	static __u64 *mine[32];
	static __u32 at;
	int err = errno;
	__u32 i, k;

	(void)sig;
	fired++;
	for (i = 0; i < 4; i++) {
		k = at++ % NELEMS(mine);
		if (mine[k])
			let_go(storm, mine[k], HANDLER);
		mine[k] = hold(storm, 16 << (at % 8), HANDLER);
	}
	errno = err;
}

/* A timer's handler allocates and frees while the program does: no object in two hands, all accounted for. */
static void handlers_by_the_clock(void **state)
{
	struct itimerval every = { { 0, 200 }, { 0, 200 } }, off = {};
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	__u64 *p[64] = {}, seed = 5;
	__u32 i, k, mine = 0, turns = 0;

	storm = heap_new(128 * MIB);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (__atomic_load_n(&fired, __ATOMIC_RELAXED) < 3000 / ARN_TEST_SCALE && turns++ < 50000000) {
		k = rnd(&seed) % NELEMS(p);
		if (p[k])
			let_go(storm, p[k], MAIN);
		p[k] = hold(storm, 16 << (rnd(&seed) % 8), MAIN);
		insist(p[k]);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	assert_true(fired > 0);
	for (i = 0; i < NELEMS(p); i++) {
		if (p[i]) {
			mine++;
			insist(*p[i] == ((__u64)(unsigned long)p[i] ^ MAIN));
		}
	}
	sound(storm);
	assert_in_range(live(storm), mine, mine + 32);
	heap_end(storm);
}

#ifdef STEPPING
unit_main(t(fast_path_is_interrupted), t(a_handler_uses_another_heap), t(the_first_call_is_interrupted),
	  t(a_thread_without_a_slot_is_interrupted), t(slow_paths_are_interrupted), t(handlers_by_the_clock))
#else
unit_main(t(handlers_by_the_clock))
#endif
