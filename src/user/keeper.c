/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * keeper.c - a thread that looks after a shared heap: what has to be done at times, and cannot be done
 * where programs allocate.
 *
 * It sleeps until the doorbell rings or a duty is due.  A duty is a function in the list at the end: it
 * does what there is to do and returns in how many milliseconds it wants to be called again at the
 * latest.  All are called at each turn, so they look first and do nothing mostly.
 *
 * The lease in the root says whose heap it is.  A keeper that was stopped for longer than the lease may
 * find that another one took over: then it only waits for its turn.  Until it has noticed (RENEW_MS), two
 * are at work; duties must bear that.
 */
#include <bpf/libbpf.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "internal.h"
#include "../core/growth.h"

#define TICK_MS	    1000 /* to see whether there is another doorbell, or a lost lease is free */
#define RENEW_MS    3000 /* the lease of 10 s */
#define NO_BELL_MS  250 /* while no object that could ring has been attached */
#define DEAF_MS	    50 /* while somebody rings a doorbell that cannot be heard */
#define WHEN_WOKEN  60000
#define TRIM_SLICE  16 /* chunks, some 1 ms each, before growth is looked after again */
#define LOOK_SHARE  2000 /* looking for cached memory takes at most one in so many of the time */
#define LOOK_MS	    2000 /* ... and not oftener */
#define LOOK_PAUSES 32 /* ... and so much less often when it is of no use */
#define REAP_MS	    3000
#define NS_PER_MS   1000000ULL

struct arn_keeper {
	struct arn_heap *heap;
	pthread_t thread;
	sem_t started;
	int err; /* why it did not start, with the words */
	char why[512];
	int stop; /* eventfd */
	int epoll;
	struct ring_buffer *bell;
	__u32 bell_id; /* root.doorbell_id as it was opened */
	__u64 renew_at;
	__u64 grow_at; /* not before: the kernel had no pages */
	__u64 look_at;
	__u64 reap_at;
	__u32 pauses;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* heap->keeper */

static __u64 clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (__u64)t.tv_sec * 1000000000ULL + (__u64)t.tv_nsec;
}

static int until(__u64 at, __u64 now)
{
	return at > now ? (int)((at - now) / NS_PER_MS) + 1 : 0;
}

/* ---- Duties ---- */

/* Must be the first: -EBUSY ends the turn. */
static int hold_lease(struct arn_keeper *k, __u64 now)
{
	__u64 owner;
	int err;

	if (now < k->renew_at)
		return until(k->renew_at, now);
	err = arn_sys_lease(k->heap, false, &owner);
	if (err)
		return err;
	k->renew_at = now + RENEW_MS * NS_PER_MS;
	return RENEW_MS;
}

static int heard(void *ctx, void *data, size_t size)
{
	return 0;
}

static int hear(struct arn_keeper *k, __u64 now)
{
	struct arn_root *r = arn_root(k->heap->base);
	struct epoll_event ev = { .events = EPOLLIN };
	__u32 id = arn_load_relaxed(&r->doorbell_id);
	int fd;

	if (!k->bell || id != k->bell_id) {
		ring_buffer__free(k->bell);
		k->bell = NULL;
		fd = arn_bell_open(k->heap);
		if (fd >= 0) {
			k->bell = ring_buffer__new(fd, heard, NULL, NULL);
			close(fd);
		}
		k->bell_id = id;
		if (k->bell && epoll_ctl(k->epoll, EPOLL_CTL_ADD, ring_buffer__epoll_fd(k->bell), &ev)) {
			ring_buffer__free(k->bell);
			k->bell = NULL;
		}
	}
	if (k->bell)
		ring_buffer__consume(k->bell);
	if (arn_load_relaxed(&r->unheard))
		return DEAF_MS;
	return k->bell ? TICK_MS : id ? DEAF_MS : NO_BELL_MS;
}

static int grow(struct arn_keeper *k, __u64 now)
{
	struct arn_root *r = arn_root(k->heap->base);

	if (!arn_below_low(r)) {
		k->grow_at = 0;
		return WHEN_WOKEN;
	}
	if (now < k->grow_at)
		return until(k->grow_at, now);
	if (arn_sys_grow_asked(k->heap)) {
		k->grow_at = now + ARN_ASK_RETRY_NS;
		return until(k->grow_at, now);
	}
	return arn_below_low(r) ? 0 : WHEN_WOKEN;
}

/* Pages' worth of memory that lies free, cached objects included.  Slow. */
static __u64 idle_pages(struct arn_heap *heap)
{
	struct arn_stats st;
	__u64 bytes = 0;
	__u32 c;

	if (arn_get_stats(heap, &st, sizeof(st)))
		return 0;
	for (c = 0; c < ARN_CLASSES; c++)
		bytes += (st.cls[c].in_slots + st.cls[c].in_depot + st.cls[c].in_slabs) * st.cls[c].size;
	return st.pages_free + (bytes >> ARN_PAGE_SHIFT);
}

static __u64 trim_to(struct arn_keeper *k, __u32 keep, enum arn_reclaim reclaim)
{
	long long pages = arn_sys_trim_pages(k->heap, keep, TRIM_SLICE, reclaim);

	if (pages <= 0)
		return 0;
	arn_add64_full(&arn_root(k->heap->base)->count[ARN_COUNT_TRIMMED], (__u64)pages / ARN_CHUNK_PAGES);
	return (__u64)pages;
}

/*
 * What lies in free runs goes when it is too much.  What is cached is counted only now and then, and the
 * caches are emptied when that promises something: that costs the programs more than it costs us.
 */
static int trim(struct arn_keeper *k, __u64 now)
{
	struct arn_root *r = arn_root(k->heap->base);
	__u32 high = arn_load_relaxed(&r->high_pages), most = high + ARN_CHUNK_PAGES;
	__u64 cost, idle;

	if (!high)
		return WHEN_WOKEN;
	if (arn_load_relaxed(&r->pages_free) >= most && trim_to(k, high, ARN_RECLAIM_NONE))
		return 0;
	if (arn_load_relaxed(&r->pages_mapped) < most)
		return TICK_MS;
	if (now < k->look_at)
		return TICK_MS;
	cost = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	idle = idle_pages(k->heap);
	cost = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cost;
	if (idle < most) {
		k->pauses = 1;
	} else {
		arn_inc64_relaxed(&r->count[ARN_COUNT_DRAINED]);
		if (!arn_sys_drain_cpus(k->heap) && trim_to(k, high, ARN_RECLAIM_CACHED))
			return 0;
		k->pauses = k->pauses * 2 < LOOK_PAUSES ? k->pauses * 2 : LOOK_PAUSES;
	}
	k->look_at = now + LOOK_MS * NS_PER_MS * k->pauses;
	if (k->look_at < now + cost * LOOK_SHARE)
		k->look_at = now + cost * LOOK_SHARE;
	return TICK_MS;
}

/* What killed processes left in their threads' slots. */
static int reap(struct arn_keeper *k, __u64 now)
{
	struct arn_root *r = arn_root(k->heap->base);
	long n;

	if (arn_load_relaxed(&r->slots_used) <= r->ncpus)
		return TICK_MS;
	if (now >= k->reap_at) {
		n = arn_reap(k->heap);
		if (n > 0)
			arn_add64_full(&r->count[ARN_COUNT_REAPED], (__u64)n);
		k->reap_at = now + REAP_MS * NS_PER_MS;
	}
	return until(k->reap_at, now);
}

/* What a keeper does, in this order.  More duties go here. */
static int (*const duties[])(struct arn_keeper *k, __u64 now) = {
	hold_lease, hear, grow, trim, reap,
};

/* Does what is due.  Milliseconds until it must be called again. */
static int turn(struct arn_keeper *k)
{
	int wait = WHEN_WOKEN, ms;
	size_t i;

	arn_inc64_relaxed(&arn_root(k->heap->base)->count[ARN_COUNT_KEPT]);
	for (i = 0; i < sizeof(duties) / sizeof(*duties); i++) {
		ms = duties[i](k, clock_ns(CLOCK_MONOTONIC));
		if (ms < 0)
			return TICK_MS;
		wait = ms < wait ? ms : wait;
	}
	return wait;
}

/* ---- The thread ---- */

static void *keep(void *arg)
{
	struct arn_keeper *k = arg;
	struct epoll_event ev;
	__u64 owner = 0;
	eventfd_t stopped;

	k->err = arn_sys_lease(k->heap, false, &owner);
	if (k->err == -EBUSY)
		snprintf(k->why, sizeof(k->why),
			 "heap: process %u (as the init namespace counts) keeps it already: end that keeper first",
			 (__u32)(owner >> 32));
	else if (k->err)
		snprintf(k->why, sizeof(k->why), "%s", arn_last_error());
	sem_post(&k->started);
	if (k->err)
		return NULL;
	while (eventfd_read(k->stop, &stopped))
		epoll_wait(k->epoll, &ev, 1, turn(k));
	arn_sys_lease(k->heap, true, &owner);
	return NULL;
}

static void keeper_free(struct arn_keeper *k)
{
	ring_buffer__free(k->bell);
	if (k->epoll >= 0)
		close(k->epoll);
	if (k->stop >= 0)
		close(k->stop);
	sem_destroy(&k->started);
	free(k);
}

/* Runs the thread, without the process's signals.  0: it has the lease. */
static int launch(struct arn_keeper *k)
{
	struct epoll_event ev = { .events = EPOLLIN };
	sigset_t all, old;
	int err;

	if (k->epoll < 0 || k->stop < 0 || epoll_ctl(k->epoll, EPOLL_CTL_ADD, k->stop, &ev))
		return arn_error(errno, "heap: no file descriptors for a keeper: %s", strerror(errno));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&k->thread, NULL, keep, k);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return arn_error(err, "heap: no thread for a keeper: %s", strerror(err));
	pthread_setname_np(k->thread, "arn-keeper");
	while (sem_wait(&k->started))
		;
	if (!k->err)
		return 0;
	pthread_join(k->thread, NULL);
	return arn_error(-k->err, "%s", k->why);
}

int arn_keeper_start(struct arn_heap *heap, const struct arn_keeper_options *opts)
{
	struct arn_keeper_options o = {};
	struct arn_keeper *k;
	int err = arn_alive(heap);

	if (err)
		return err;
	if (heap->native)
		return arn_error(ENOTSUP, "native heap: it grows by itself, and needs no keeper");
	if (opts && (opts->sz < sizeof(size_t) || opts->sz > 4096))
		return arn_error(EINVAL, "arn_keeper_options: sz is %zu: set it to sizeof(struct arn_keeper_options)",
				 opts->sz);
	if (opts)
		memcpy(&o, opts, opts->sz < sizeof(o) ? opts->sz : sizeof(o));
	err = arn_check_marks(o.low_watermark, o.high_watermark, heap->bytes);
	if (!err)
		err = arn_sys_load(heap);
	if (err)
		return err;
	pthread_mutex_lock(&lock);
	k = heap->keeper ? NULL : calloc(1, sizeof(*k));
	if (k) {
		k->heap = heap;
		k->pauses = 1;
		k->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		k->epoll = epoll_create1(EPOLL_CLOEXEC);
		sem_init(&k->started, 0, 0);
		err = launch(k);
		if (err)
			keeper_free(k);
		else
			heap->keeper = k;
	} else if (heap->keeper) {
		err = arn_error(EBUSY, "heap: this process keeps it already");
	} else {
		err = arn_error(ENOMEM, "heap: no memory for a keeper");
	}
	if (!err && (o.low_watermark || o.high_watermark))
		arn_set_marks(heap, o.low_watermark, o.high_watermark);
	pthread_mutex_unlock(&lock);
	return err;
}

int arn_keeper_stop(struct arn_heap *heap)
{
	struct arn_keeper *k;
	int err = arn_alive(heap);

	if (err)
		return err;
	pthread_mutex_lock(&lock);
	k = heap->keeper;
	heap->keeper = NULL;
	pthread_mutex_unlock(&lock);
	if (!k)
		return arn_error(ENOENT, "heap: no keeper runs on this handle");
	eventfd_write(k->stop, 1);
	pthread_join(k->thread, NULL);
	keeper_free(k);
	return 0;
}
