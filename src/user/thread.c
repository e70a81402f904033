/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * thread.c - threads and their slots.
 *
 * A thread claims a slot of a heap at its first call and gives it back, drained, when it exits.  A
 * claim is good while the heap's id is: ids are never used twice, so a claim on a closed heap is
 * dead weight and nothing more.  Threads beyond the slots work without a cache.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "internal.h"
#include "../core/heap.h"

#define CLAIMS 16 /* heaps in which one thread may hold a slot */

__thread struct arn_claim arn_claimed __attribute__((tls_model("initial-exec")));
static __thread struct arn_claim claims[CLAIMS] __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* heaps, next_id */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static struct arn_heap *heaps;
static __u64 next_id = 1;

void arn_relax(__u32 i)
{
	if (i & 63) {
#if defined(__x86_64__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ volatile("yield");
#endif
	} else {
		sched_yield(); /* the holder may be waiting for this CPU */
	}
}

static void drain(struct arn_heap *heap, __u32 slot)
{
	__u32 cls;

	for (cls = 0; cls < ARN_CLASSES; cls++) {
		arn_cache_drain(heap->base, arn_root(heap->base), slot, cls);
		arn_near_release(heap->base, arn_root(heap->base), slot, cls);
	}
}

static void thread_exit(void *unused)
{
	struct arn_heap *h;
	int i;

	(void)unused;
	pthread_mutex_lock(&lock);
	for (h = heaps; h; h = h->next) {
		for (i = 0; i < CLAIMS; i++) {
			if (!claims[i].id || claims[i].id != h->id || claims[i].slot == ARN_NO_SLOT)
				continue;
			drain(h, claims[i].slot);
			arn_xchg64_full(&arn_slot(h->base, claims[i].slot)->owner, 0);
		}
	}
	for (i = 0; i < CLAIMS; i++)
		claims[i].id = 0;
	arn_claimed.id = 0;
	pthread_mutex_unlock(&lock);
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* The child has no mapping: every handle is dead there. */
static void in_child(void)
{
	struct arn_heap *h;
	int i;

	for (h = heaps; h; h = h->next) {
		h->gone = true;
		h->id = next_id++;
	}
	for (i = 0; i < CLAIMS; i++)
		claims[i].id = 0;
	arn_claimed.id = 0;
	pthread_mutex_unlock(&lock);
}

static void init(void)
{
	pthread_key_create(&key, thread_exit);
	pthread_atfork(before_fork, after_fork, in_child);
}

void arn_heap_register(struct arn_heap *heap)
{
	pthread_once(&once, init);
	pthread_mutex_lock(&lock);
	heap->id = next_id++;
	heap->next = heaps;
	heaps = heap;
	pthread_mutex_unlock(&lock);
}

void arn_heap_unregister(struct arn_heap *heap)
{
	struct arn_heap **at;

	pthread_mutex_lock(&lock);
	for (at = &heaps; *at; at = &(*at)->next) {
		if (*at == heap) {
			*at = heap->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

/* Makes room among this thread's claims.  Returns a free place, or -1. */
static int forget_closed(void)
{
	struct arn_heap *h;
	int i, at = -1;

	if (pthread_mutex_trylock(&lock)) /* this may be a signal handler */
		return -1;
	for (i = 0; i < CLAIMS; i++) {
		for (h = heaps; h && h->id != claims[i].id; h = h->next)
			;
		if (!h) {
			claims[i].id = 0;
			at = i;
		}
	}
	pthread_mutex_unlock(&lock);
	return at;
}

__u32 arn_claim_slot(struct arn_heap *heap)
{
	struct arn_root *r = arn_root(heap->base);
	__u64 me = (__u64)getpid() << 32 | (__u32)syscall(SYS_gettid);
	__u32 slot, used;
	int i, at = -1;

	for (i = 0; i < CLAIMS; i++) {
		if (claims[i].id == heap->id) {
			arn_claimed = claims[i];
			return claims[i].slot;
		}
		if (!claims[i].id)
			at = i;
	}
	if (at < 0)
		at = forget_closed();
	if (at < 0)
		return ARN_NO_SLOT;
	for (slot = r->ncpus; slot < r->nslots; slot++) {
		if (arn_load_relaxed(&arn_slot(heap->base, slot)->owner) == 0 &&
		    arn_cas64_full(&arn_slot(heap->base, slot)->owner, 0, me) == 0)
			break;
	}
	if (slot >= r->nslots)
		return ARN_NO_SLOT; /* asked again next time: somebody may have left */
	/* Only a hint how far to look, raised before anything lies near the slot. */
	do {
		used = arn_load_relaxed(&r->slots_used);
	} while (used <= slot && arn_cas32_full(&r->slots_used, used, slot + 1) != used);
	claims[at] = (struct arn_claim){ .id = heap->id, .slot = slot, .cache = arn_slot(heap->base, slot)->cache };
	arn_claimed = claims[at];
	pthread_setspecific(key, claims);
	return slot;
}

/* Slots that nobody owns keep nothing; this is for those whose owner was killed by its process. */
void arn_drain_idle(struct arn_heap *heap)
{
	struct arn_root *r = arn_root(heap->base);
	__u64 me = ~0ULL;
	__u32 slot;

	for (slot = r->ncpus; slot < r->nslots; slot++) {
		if (arn_cas64_full(&arn_slot(heap->base, slot)->owner, 0, me) != 0)
			continue;
		drain(heap, slot);
		arn_xchg64_full(&arn_slot(heap->base, slot)->owner, 0);
	}
}
