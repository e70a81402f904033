// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* crowd.c - see crowd.h. */
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include "crowd.h"

#define PATIENCE_MS 60000

struct rig *t;
struct churn_bpf *churn;

int crowd_setup(__u32 flags)
{
	t = rig_new_flags(CHURN_ARENA, RIG_ALL, flags);
	churn = churn_bpf__open();
	assert_non_null(churn);
	bpf_program__set_autoload(churn->progs.churn_tick, false);
	bpf_program__set_autoload(churn->progs.churn_nmi, false);
	bpf_program__set_autoload(churn->progs.churn_middle, false);
	assert_int_equal(rig_load(t->heap, churn->skeleton), 0);
	return 0;
}

int crowd_teardown(void **state)
{
	churn_bpf__destroy(churn);
	rig_end(t);
	return 0;
}

__u64 crowd_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * 1000 + (__u64)ts.tv_nsec / 1000000;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &w->arg, .ctx_size_in = sizeof(w->arg));
	struct sched_param first = { .sched_priority = 1 };
	struct rusage used;
	__u64 now;

	rig_pin_cpu(w->cpu);
	if (w->wakes_us && sched_setscheduler(0, SCHED_FIFO, &first)) {
		w->err = errno;
		return NULL;
	}
	do {
		if (w->wakes_us)
			usleep((useconds_t)w->wakes_us);
		w->err = bpf_prog_test_run_opts(bpf_program__fd(w->prog), &opts);
		now = crowd_now_ms();
	} while (!w->err &&
		 (now < w->deadline || (w->arg.made + w->arg.freed < w->least && now < w->deadline + PATIENCE_MS)));
	if (!getrusage(RUSAGE_THREAD, &used))
		w->preempted = (__u64)used.ru_nivcsw;
	return NULL;
}

void crowd_run(struct worker *w, int n, int ms)
{
	int i;

	for (i = 0; i < n; i++) {
		w[i].deadline = crowd_now_ms() + (__u64)ms;
		if (w[i].prog == churn->progs.churn_bulk)
			w[i].arg.vec = (__u64)bpf_malloc(t, 2 * CHURN_BULK * 8);
	}
	for (i = 0; i < n; i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	for (i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
	for (i = 0; i < n; i++) {
		assert_int_equal(w[i].err, 0);
		if (w[i].arg.vec)
			assert_int_equal(bpf_free(t, (void *)w[i].arg.vec), 0);
	}
}

__u64 crowd_boxed(void)
{
	__u64 boxed = 0;
	int k;

	for (k = 0; k < CHURN_BOXES; k++)
		boxed += churn->bss->box[k] != 0;
	return boxed;
}

static void nothing_wrong(void)
{
	struct hold_wrong *w = &churn->bss->wrong;

	if (w->twice)
		fail_msg("%llu objects handed out while somebody held them", w->twice);
	if (w->lost_mark)
		fail_msg("%llu objects freed that nobody held", w->lost_mark);
	if (w->torn)
		fail_msg("%llu objects overwritten", w->torn);
	if (w->refused)
		fail_msg("%llu frees refused", w->refused);
	if (w->bulk_short)
		fail_msg("%llu bulk frees freed too few", w->bulk_short);
}

void crowd_sound(const struct worker *w, int n)
{
	__u64 made = 0, freed = 0, boxed, p;
	int i, k;

	nothing_wrong();
	rig_sound(t->heap);
	boxed = crowd_boxed();
	assert_int_equal(rig_live(t->heap), boxed);
	for (i = 0; i < n; i++) {
		made += w[i].arg.made;
		freed += w[i].arg.freed;
	}
	assert_int_equal(made, freed + boxed);
	for (k = 0; k < CHURN_BOXES; k++) {
		p = churn->bss->box[k];
		churn->bss->bits[(__u32)p >> 10] &= ~(p ? 1ULL << (p >> 4 & 63) : 0);
		churn->bss->box[k] = 0;
		assert_int_equal(bpf_free(t, (void *)p), 0);
	}
	for (k = 0; k < (int)HOLD_WORDS; k++)
		assert_int_equal(churn->bss->bits[k], 0);
	assert_int_equal(rig_live(t->heap), 0);
	rig_sound(t->heap);
}
