/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * thread.c - threads and their slots.
 *
 * A thread claims a slot of a heap at its first call and gives it back, drained, when it exits.  A
 * claim is good while the heap's id is: ids are never used twice, so a claim on a closed heap is
 * dead weight and nothing more.  Threads beyond the slots work without a cache.
 *
 * Slots of a shared heap change hands in the kernel (thread_bpf.h).  What a process leaves behind that did
 * not close its heap, arn_reap gives back.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "internal.h"
#include "../core/checked.h"
#include "../bpf/sys.h"

#define CLAIMS	  16 /* heaps in which one thread may hold a slot */
#define PENDING	  (~0ULL) /* a claim that is being made; no heap has this id */
#define ID_STEP	  (1ULL << ARN_CLAIM_BITS)
#define ASK_EVERY 256 /* calls without a slot of a shared heap until it is asked for again */

__thread __u32 arn_pins __attribute__((tls_model("initial-exec")));
__thread __u64 arn_claimed __attribute__((tls_model("initial-exec")));
static __thread __u64 claims[CLAIMS] __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* heaps, next_id */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static struct arn_heap *heaps;
static __u64 next_id = ID_STEP;

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

static void forget_claims(void)
{
	int i;

	for (i = 0; i < CLAIMS; i++)
		claims[i] = 0;
	arn_claimed = 0;
}

static void drain(struct arn_heap *heap, __u32 slot)
{
	__u32 cls;

	if (arn_is_checked(arn_root(heap->base)))
		arn_quarantine_drain(heap->base, arn_root(heap->base), slot);
	for (cls = 0; cls < ARN_CLASSES; cls++) {
		arn_cache_drain(heap->base, arn_root(heap->base), slot, cls);
		arn_near_release(heap->base, arn_root(heap->base), slot, cls);
	}
}

/* The threads of [slot, end) give their slots back: this one's, or (whole) all of the process. */
static void leave(struct arn_heap *heap, __u32 slot, __u32 end, bool whole)
{
	struct arn_call c = { .op = ARN_OP_LEAVE, .slot = slot, .end = end, .whole = whole };

	arn_sys_call(heap, &c);
}

static void give_back(struct arn_heap *heap, __u32 slot)
{
	if (!heap->native) {
		leave(heap, slot, slot + 1, false);
		return;
	}
	drain(heap, slot);
	arn_xchg64_full(&arn_slot(heap->base, slot)->owner, 0);
}

void arn_leave_all(struct arn_heap *heap)
{
	if (heap->thread_fd >= 0)
		leave(heap, heap->k->ncpus, heap->k->nslots, true);
}

static void thread_exit(void *unused)
{
	struct arn_heap *h;
	__u32 at;
	int i;

	(void)unused;
	pthread_mutex_lock(&lock);
	for (h = heaps; h; h = h->next) {
		for (i = 0; i < CLAIMS; i++) {
			if (arn_claim_of_any(claims[i], h, &at))
				give_back(h, ARN_CLAIM_SLOT(at));
		}
	}
	forget_claims();
	pthread_mutex_unlock(&lock);
}

/* The thread that ends the process: nothing but the other threads' slots is left for arn_reap. */
static __attribute__((destructor)) void process_exit(void)
{
	if (!pthread_mutex_trylock(&lock)) {
		pthread_mutex_unlock(&lock);
		thread_exit(NULL);
	}
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

	for (h = heaps; h; h = h->next) {
		h->gone = true;
		h->id = next_id;
		next_id += ID_STEP;
	}
	forget_claims();
	pthread_mutex_unlock(&lock);
}

static void init(void)
{
	pthread_key_create(&key, thread_exit);
	pthread_atfork(before_fork, after_fork, in_child);
}

void arn_heap_register(struct arn_heap *heap)
{
	struct arn_root *r = arn_root(heap->base);

	heap->first = (__u64)heap->base + ((__u64)r->first_granule << ARN_GRANULE_SHIFT);
	heap->state = (__u8 *)heap->base + (__u32)(r->state_bias + r->first_granule);
	heap->ngranules = r->ngranules;
	pthread_once(&once, init);
	pthread_mutex_lock(&lock);
	heap->id = next_id;
	next_id += ID_STEP;
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

bool arn_heap_at(arn_base base)
{
	struct arn_heap *h;

	pthread_mutex_lock(&lock);
	for (h = heaps; h && (h->gone || h->base != base); h = h->next)
		;
	pthread_mutex_unlock(&lock);
	return h != NULL;
}

/* Makes room among this thread's claims.  Is there any? */
static bool forget_closed(void)
{
	struct arn_heap *h;
	bool room = false;
	__u32 off;
	int i;

	if (pthread_mutex_trylock(&lock)) /* this may be a signal handler */
		return false;
	for (i = 0; i < CLAIMS; i++) {
		for (h = heaps; h && !arn_claim_of_any(claims[i], h, &off); h = h->next)
			;
		if (!h && claims[i] != PENDING) {
			arn_store_relaxed(&claims[i], 0);
			room = true;
		}
	}
	pthread_mutex_unlock(&lock);
	return room;
}

static __u64 *find_claim(const struct arn_heap *heap)
{
	__u32 off;
	int i;

	for (i = 0; i < CLAIMS; i++)
		if (arn_claim_of_any(arn_load_relaxed(&claims[i]), heap, &off))
			return &claims[i];
	return NULL;
}

/* A place for a claim, marked so that a handler in between takes another one; NULL: none. */
static __u64 *reserve_claim(void)
{
	int i;

	do {
		for (i = 0; i < CLAIMS; i++)
			if (!arn_load_relaxed(&claims[i]) && !arn_cas64_full(&claims[i], 0, PENDING))
				return &claims[i];
	} while (forget_closed());
	return NULL;
}

/* Likewise of a shared heap.  While there is none, not every call asks. */
static __u32 own_shared_slot(struct arn_heap *heap)
{
	static __thread __u32 asked;
	struct arn_call c = { .op = ARN_OP_CLAIM, .slot = heap->k->ncpus, .end = heap->k->nslots };
	long long slot;

	if (asked++ % ASK_EVERY)
		return ARN_NO_SLOT;
	slot = arn_sys_call(heap, &c);
	if (slot == -EAGAIN && arn_reap(heap) > 0)
		slot = arn_sys_call(heap, &c);
	if (slot < heap->k->ncpus || slot >= heap->k->nslots)
		return ARN_NO_SLOT;
	asked = 0;
	arn_shared_begin(heap, (__u32)slot);
	return (__u32)slot;
}

/* An unowned slot of the heap, now this thread's, or ARN_NO_SLOT. */
static __u32 own_slot(struct arn_heap *heap)
{
	struct arn_root *r = arn_root(heap->base);
	__u64 me;

	if (!heap->native)
		return own_shared_slot(heap);
	me = (__u64)getpid() << 32 | (__u32)syscall(SYS_gettid);
	__u32 slot, used;

	for (slot = r->ncpus; slot < r->nslots; slot++)
		if (arn_load_relaxed(&arn_slot(heap->base, slot)->owner) == 0 &&
		    arn_cas64_full(&arn_slot(heap->base, slot)->owner, 0, me) == 0)
			break;
	if (slot >= r->nslots)
		return ARN_NO_SLOT;
	/* Only a hint how far to look, raised before anything lies near the slot. */
	do {
		used = arn_load_relaxed(&r->slots_used);
	} while (used <= slot && arn_cas32_full(&r->slots_used, used, slot + 1) != used);
	return slot;
}

__u32 arn_claim_slot(struct arn_heap *heap)
{
	__u64 *c = find_claim(heap), *mine;
	__u32 slot, kind = heap->native ? 0 : ARN_CLAIM_SHARED;

	if (!c) {
		mine = reserve_claim();
		if (!mine)
			return ARN_NO_SLOT;
		slot = own_slot(heap);
		/* (A handler that claims one just after this look makes a second claim: both are given back.) */
		c = find_claim(heap);
		if (slot != ARN_NO_SLOT && c) {
			give_back(heap, slot);
			slot = ARN_NO_SLOT;
		}
		arn_store_relaxed(mine, slot == ARN_NO_SLOT ? 0 : heap->id | ARN_CLAIM_AT(slot) | kind);
		if (slot != ARN_NO_SLOT) {
			pthread_setspecific(key, claims);
			c = mine;
		}
		if (!c)
			return ARN_NO_SLOT; /* asked again next time: somebody may have left */
	}
	arn_store_relaxed(&arn_claimed, arn_load_relaxed(c));
	return ARN_CLAIM_SLOT((__u32)(arn_load_relaxed(c) & (ARN_CLAIM_SHARED - 1)));
}

long arn_reap(struct arn_heap *heap)
{
	struct arn_call c = { .op = ARN_OP_REAP };
	int err = arn_alive(heap);

	if (err || heap->native)
		return err;
	c.slot = heap->k->ncpus;
	c.end = heap->k->nslots;
	return (long)arn_sys_call(heap, &c);
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
