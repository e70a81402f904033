// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * torture.c - everybody at once on one heap: BPF programs on both CPUs, an interrupt on top of each, threads of
 * two processes and signal handlers on top of those.  Objects are made here and freed there: whoever makes
 * one puts it in a box at random and frees what was in it (churn.bpf.c, and the same here).
 *
 * All of it is built with ARN_TEST_LINGER, which now and then waits at the marked points of the core (arn_linger):
 * with a cache claimed, between the read of a head and its swap, between an intent and its swap.
 *
 * Linux 6.12 refuses some of the waits (calls of global functions with preemption off); there torture-plain runs,
 * the same without any.
 *
 * A bitmap sees an object handed out twice; at the end each live object must be in a box, and each box must
 * hold a live one.  Then processes are killed wherever they are, while BPF goes on.
 *
 * 30 seconds and 50 kills; 60 and none where TEST_SCALE is set (the guests of make vmtest), 300 and 1,000 with
 * ARN_TORTURE (make torture).  ARN_TORTURE_SECONDS and ARN_TORTURE_KILLS say otherwise.
 *
 * Cannot show: what preemption does to BPF programs, on kernels that do not preempt.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include "rig.h"
#include "churn.h"
#ifdef TORTURE_PLAIN
#include "churn.skel.h"
#define churn_slow_bpf		churn_bpf
#define churn_slow_bpf__open	churn_bpf__open
#define churn_slow_bpf__destroy churn_bpf__destroy
#else
#include "churn_slow.skel.h"
#endif

#define PROCESSES 2
#define THREADS	  2 /* a process */
#define TICK_NS	  100000
#define PATIENCE  200u /* s */
#define HANDS	  (2 * CHURN_BULK) /* objects that a thread has in its hands at most */

static struct rig *t;
static struct churn_slow_bpf *churn;
static unsigned int seconds, kills;

/* Of all processes. */
static struct shared {
	bool stop;
	__u64 made, nulls, ticks, delays;
	struct hold_wrong wrong;
} *all;

#define add(what, n) __atomic_fetch_add(&(what), n, __ATOMIC_RELAXED)

static __u64 next(__u64 *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * 0x2545f4914f6cdd1dULL >> 16;
}

/* What arn_linger() is in this program's library. */
void arn_torture_linger(void);
void arn_torture_linger(void)
{
	static __thread __u64 seed;
	__u64 i, n;

	if (!seed)
		seed = (__u64)syscall(SYS_gettid) * 0x9e3779b97f4a7c15ULL;
	n = next(&seed);
	if (n & 0x1ff)
		return;
	all->delays++;
	if (n & 0x200)
		sched_yield();
	for (i = 0; i < (n >> 10 & 0xfff); i++)
		__asm__ volatile("");
}

/* ---- A user thread, as churn.bpf.c has it ---- */

#define KEY	 0x9e3779b97f4a7c15ULL
#define word(at) (*(volatile __u64 *)(at))

static __u64 size_of(__u64 *seed)
{
	__u64 r = next(seed), octave = (r >> 10) % 10;

	if (r % 512 == 0)
		return 100000;
	return (16ULL << octave) + (r >> 20) % (16ULL << octave);
}

static void hold(__u64 p, __u64 size)
{
	__u64 bit = 1ULL << ((p >> 4) & 63);

	if (__atomic_fetch_or(&churn->bss->bits[(__u32)p >> 10 & (HOLD_WORDS - 1)], bit, __ATOMIC_SEQ_CST) & bit)
		add(all->wrong.twice, 1);
	size &= ~7ULL;
	word(p) = p ^ KEY;
	word(p + 8) = size;
	if (size > 16)
		word(p + size - 8) = p + KEY;
}

static void let_go(__u64 p)
{
	__u64 bit = 1ULL << ((p >> 4) & 63), size = word(p + 8);

	if (word(p) != (p ^ KEY) || size > CHURN_ARENA || (size > 16 && word(p + size - 8) != p + KEY))
		add(all->wrong.torn, 1);
	if (!(__atomic_fetch_and(&churn->bss->bits[(__u32)p >> 10 & (HOLD_WORDS - 1)], ~bit, __ATOMIC_SEQ_CST) & bit))
		add(all->wrong.lost_mark, 1);
}

static __u64 into_a_box(__u64 p, __u64 *seed)
{
	return __atomic_exchange_n(&churn->bss->box[next(seed) % CHURN_BOXES], p, __ATOMIC_SEQ_CST);
}

static void turn(struct arn_heap *h, __u64 *seed)
{
	__u64 size = size_of(seed), p = (__u64)arn_malloc(h, size), old;

	if (!p) {
		add(all->nulls, 1);
		return;
	}
	hold(p, size);
	add(all->made, 1);
	old = into_a_box(p, seed);
	if (!old)
		return;
	let_go(old);
	if (arn_free(h, (void *)old))
		add(all->wrong.refused, 1);
}

static void bulk_turn(struct arn_heap *h, __u64 *seed)
{
	__u64 size = size_of(seed) % 4096 + 16, old;
	void *in[CHURN_BULK], *out[CHURN_BULK];
	size_t want = 1 + next(seed) % CHURN_BULK, got = arn_malloc_bulk(h, size, want, in), i, n = 0;

	add(all->nulls, got < want);
	add(all->made, got);
	for (i = 0; i < got; i++) {
		hold((__u64)in[i], size);
		old = into_a_box((__u64)in[i], seed);
		if (!old)
			continue;
		let_go(old);
		out[n++] = (void *)old;
	}
	if (n && arn_free_bulk(h, out, n) != (long)n)
		add(all->wrong.bulk_short, 1);
}

static struct arn_heap *mine; /* this process's handle */

static void *user_thread(void *arg)
{
	__u64 seed = (__u64)syscall(SYS_gettid) * KEY | 1;

	while (!__atomic_load_n(&all->stop, __ATOMIC_RELAXED)) {
		if (next(&seed) % 16)
			turn(mine, &seed);
		else
			bulk_turn(mine, &seed);
	}
	return NULL;
}

static void on_tick(int sig)
{
	int err = errno;
	void *p = arn_malloc(mine, 200);

	if (p && arn_free(mine, p))
		add(all->wrong.refused, 1);
	add(all->ticks, 1);
	errno = err;
}

/* A process of its own, with threads, until stop; or until it is killed. */
static pid_t start_process(bool handler)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	pthread_t th[THREADS];
	cpu_set_t every;
	pid_t pid;
	int i, fd;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&every);
	for (i = 0; i < rig_cpus(); i++)
		CPU_SET(i, &every);
	sched_setaffinity(0, sizeof(every), &every);
	fd = dup(arn_map_fd(t->heap));
	arn_close(t->heap);
	mine = arn_open_fd(fd, 0, NULL);
	if (!mine) {
		fprintf(stderr, "a process: %s\n", arn_last_error());
		_exit(1);
	}
	if (handler) {
		signal(SIGALRM, on_tick);
		setitimer(ITIMER_REAL, &often, NULL);
	}
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&th[i], NULL, user_thread, NULL))
			_exit(2);
	for (i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
	signal(SIGALRM, SIG_IGN);
	arn_close(mine);
	_exit(0);
}

/* ---- BPF ---- */

struct producer {
	int cpu;
	pthread_t thread;
	__u64 vec, made;
	int err;
};

static void *producer(void *arg)
{
	struct producer *p = arg;
	struct churn a = { .seed = 777 + (__u64)p->cpu, .rounds = 2000, .sizes = CHURN_MIXED, .boxes = CHURN_BOXES };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &a, .ctx_size_in = sizeof(a));
	unsigned int k = 0;

	rig_pin_cpu(p->cpu);
	a.role = CHURN_ALLOC | CHURN_FREE;
	a.vec = p->vec;
	while (!p->err && !__atomic_load_n(&all->stop, __ATOMIC_RELAXED)) {
		bool bulk = ++k % 4 == 0;

		a.sizes = bulk ? CHURN_SMALL : CHURN_MIXED;
		a.rounds = bulk ? 50 : 2000;
		p->err = bpf_prog_test_run_opts(
			bpf_program__fd(bulk ? churn->progs.churn_bulk : churn->progs.churn_run), &opts);
	}
	p->made = a.made;
	return NULL;
}

static struct bpf_link *tick_on(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = TICK_NS,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? NULL : bpf_program__attach_perf_event(churn->progs.churn_tick, fd);
}

static struct producer prod[2];
static struct bpf_link *ticking[2];

static void start_bpf(void)
{
	int i;

	all->stop = false;
	for (i = 0; i < 2; i++) {
		prod[i] = (struct producer){ .cpu = i % rig_cpus() };
		prod[i].vec = (__u64)rig_op(t, OP_MALLOC, 2 * CHURN_BULK * 8, 0, 0);
		assert_true(prod[i].vec);
		ticking[i] = i < rig_cpus() ? tick_on(i) : NULL;
		assert_int_equal(pthread_create(&prod[i].thread, NULL, producer, &prod[i]), 0);
	}
}

static void stop_bpf(void)
{
	int i;

	all->stop = true;
	for (i = 0; i < 2; i++) {
		pthread_join(prod[i].thread, NULL);
		bpf_link__destroy(ticking[i]);
		assert_int_equal(prod[i].err, 0);
		assert_int_equal(bpf_free(t, (void *)prod[i].vec), 0);
		assert_true(prod[i].made > 1000);
	}
}

/* ---- Afterwards ---- */

static void nothing_wrong(const struct hold_wrong *w)
{
	if (w->twice || w->lost_mark || w->torn || w->refused || w->bulk_short)
		fail_msg("%llu handed out twice, %llu freed that nobody held, %llu overwritten, %llu frees refused, "
			 "%llu bulk frees too short",
			 w->twice, w->lost_mark, w->torn, w->refused, w->bulk_short);
}

static bool marked(__u64 p)
{
	return churn->bss->bits[(__u32)p >> 10 & (HOLD_WORDS - 1)] >> (p >> 4 & 63) & 1;
}

static void unmark(__u64 p)
{
	churn->bss->bits[(__u32)p >> 10 & (HOLD_WORDS - 1)] &= ~(1ULL << (p >> 4 & 63));
}

static int free_it(const struct arn_object *o, void *arg)
{
	unmark(o->addr);
	return bpf_free(t, (void *)o->addr);
}

/* Boxes hold live objects, and but for so many that the dead had in their hands all live objects are there. */
static void all_is_there(__u64 in_dead_hands)
{
	__u64 boxed = 0, live, k, p;

	nothing_wrong(&churn->bss->wrong);
	nothing_wrong(&all->wrong);
	rig_sound(t->heap);
	live = rig_live(t->heap);
	for (k = 0; k < CHURN_BOXES; k++) {
		p = churn->bss->box[k];
		churn->bss->box[k] = 0;
		if (!p)
			continue;
		boxed++;
		assert_true(marked(p));
		unmark(p);
		assert_int_equal(bpf_free(t, (void *)p), 0);
	}
	if (live < boxed || live > boxed + in_dead_hands)
		fail_msg("%llu objects live, %llu in boxes, at most %llu in the hands of the dead", live, boxed,
			 in_dead_hands);
	assert_int_equal(rig_live(t->heap), live - boxed);
	assert_int_equal(arn_live(t->heap, free_it, NULL), live - boxed);
	if (!in_dead_hands)
		for (k = 0; k < HOLD_WORDS; k++)
			assert_int_equal(churn->bss->bits[k], 0);
	memset(churn->bss->bits, 0, sizeof(churn->bss->bits));
	assert_int_equal(rig_live(t->heap), 0);
	rig_sound(t->heap);
}

/* Threads of a process just started have made some: loading its programs takes long where others want the CPU. */
static void wait_for_threads(__u64 before)
{
	unsigned int i;

	for (i = 0; i < 1000 * PATIENCE && __atomic_load_n(&all->made, __ATOMIC_RELAXED) < before + 500; i++)
		usleep(1000);
	if (i == 1000 * PATIENCE)
		fail_msg("a process has allocated nothing for %u s", PATIENCE);
}

static void everybody_at_once(void **state)
{
	pid_t pid[PROCESSES];
	int i, status;

	/* They first: loading their programs beside BPF producers takes much longer. */
	for (i = 0; i < PROCESSES; i++) {
		assert_true((pid[i] = start_process(true)) > 0);
		wait_for_threads(all->made);
	}
	start_bpf();
	sleep(seconds);
	stop_bpf();
	for (i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		if (status)
			fail_msg("a process: status 0x%x", status);
	}
	print_message("%u s: BPF made %llu, threads %llu; %llu interrupts, %llu signals, %llu waits at marks in user "
		      "space; %llu NULLs\n",
		      seconds, prod[0].made + prod[1].made, all->made, churn->bss->ticks, all->ticks, all->delays,
		      all->nulls);
	assert_true(all->made > 1000);
#ifndef TORTURE_PLAIN
	assert_true(all->delays > 0);
#endif
	assert_true(churn->bss->ticks > 100);
	assert_int_equal(rig_stats(t->heap).slots_claimed, 0);
	all_is_there(0);
}

/* Wherever it is; its slots are reaped while everybody else goes on. */
static void killed_at_any_time(void **state)
{
	__u64 before, reaped = 0, seed = (__u64)time(NULL) | 1;
	unsigned int k;
	long long got;
	int status;
	pid_t pid;

	if (!kills)
		skip();
	start_bpf();
	for (k = 0; k < kills; k++) {
		before = all->made;
		pid = start_process(next(&seed) % 2);
		assert_true(pid > 0);
		wait_for_threads(before);
		usleep((useconds_t)(next(&seed) % 3000));
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		got = arn_reap(t->heap);
		assert_true(got >= 1 && got <= THREADS + 1);
		reaped += (__u64)got;
		assert_int_equal(rig_stats(t->heap).slots_claimed, 0);
		if (k % 100 == 99 || k == kills - 1) {
			stop_bpf();
			all_is_there((k % 100 + 1) * THREADS * HANDS);
			if (k < kills - 1)
				start_bpf();
		}
	}
	print_message("%u kills, %llu slots reaped\n", kills, reaped);
}

static int setup(void **state)
{
	t = rig_new(CHURN_ARENA, RIG_ALL);
	churn = churn_slow_bpf__open();
	assert_non_null(churn);
	assert_int_equal(rig_load(t->heap, churn->skeleton), 0);
	churn->bss->tick_sizes = CHURN_MIXED;
	memset(all, 0, sizeof(*all));
	return 0;
}

static int teardown(void **state)
{
	churn_slow_bpf__destroy(churn);
	rig_end(t);
	return 0;
}

static unsigned int number(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned int)strtoul(text, NULL, 10) : otherwise;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(everybody_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(killed_at_any_time, setup, teardown),
	};

	rig_start();
#ifndef TORTURE_PLAIN
	if (arn_has("calls-preempt-off") == 0) {
		puts("note: no waits at marked points on this kernel");
		execl(TEST_DIR "/torture-plain", "torture-plain", NULL);
		return 1;
	}
#endif
	seconds = number("ARN_TORTURE_SECONDS", getenv("ARN_TORTURE") ? 300 : getenv("TEST_SCALE") ? 60 : 30);
	kills = number("ARN_TORTURE_KILLS", getenv("ARN_TORTURE") ? 1000 : getenv("TEST_SCALE") ? 0 : 50);
	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return all == MAP_FAILED || cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
