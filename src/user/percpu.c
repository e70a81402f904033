// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * percpu.c - per-CPU objects for user threads.
 *
 * Native heaps: the calling thread's cache, as alloc.c's.  Shared heaps: a BPF program (thread_bpf.h), out of
 * the CPUs' caches; reading and writing the copies needs none.
 */
#include <bpf/libbpf.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
#include "shared.h"
#include "../bpf/sys.h"
#include "../core/percpu.h"

__u32 arn_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (__u32)(((__u64)t.tv_sec * 1000000000 + (__u64)t.tv_nsec) >> 20);
}

__u32 arn_percpu_possible(void)
{
	int n = libbpf_num_possible_cpus();

	if (n < 1)
		n = (int)sysconf(_SC_NPROCESSORS_CONF); /* no sysfs here */
	return n < 1 ? 1 : (__u32)n;
}

/* The root, on a shared heap as it was when it was opened. */
static const struct arn_root *known(const struct arn_heap *heap)
{
	return heap->native ? arn_root(heap->base) : heap->k;
}

/* The class of a size, or ARN_CLASSES, errno and the message. */
static __u32 class_of(struct arn_heap *heap, size_t size)
{
	struct arn_root *r = heap->native ? arn_root(heap->base) : heap->k;

	if (arn_likely(size - 1 < r->percpu_max))
		return arn_percpu_class(r, size);
	arn_inc64_relaxed(&arn_root(heap->base)->fail[ARN_FAIL_SIZE]);
	if (!size)
		arn_error(EINVAL, "per-CPU object size (0) is less than 1");
	else
		arn_error(E2BIG, "per-CPU object size (%zu) is greater than %u", size, r->percpu_max);
	return ARN_CLASSES;
}

static bool zeroed(struct arn_heap *heap, __u32 cls, void *p)
{
	struct arn_root *r = arn_root(heap->base);

	return arn_percpu_zero(heap->base, r, (__u32)(unsigned long)p, r->cls[cls].size);
}

/* Everything but a hit. */
static __attribute__((noinline)) void *alloc_rest(struct arn_heap *heap, __u32 cls)
{
	arn_base b = heap->base;
	struct arn_root *r = arn_root(b);
	__u32 slot = arn_my_slot(heap), off = 0;
	_Bool bypass = 0;

	if (slot != ARN_NO_SLOT && arn_has_caches(r, cls)) {
		off = arn_cache_pop(b, r, arn_cache(b, slot, cls), cls, &bypass);
		if (bypass)
			arn_inc64_relaxed(&r->fail[ARN_FAIL_BYPASS]);
	}
	if (!off)
		off = arn_alloc_slow(heap, slot, cls, 0, 1);
	if (!off)
		return NULL;
	arn_store_relaxed(arn_state(b, r, off), arn_state_for(r, cls));
	return b + off;
}

static void *alloc_native(struct arn_heap *heap, __u32 cls)
{
	arn_base b = heap->base;
	__u32 top, off = 0, at;
	struct arn_cache *c;
	void *p;

	if (arn_claim_of(arn_load_relaxed(&arn_claimed), heap, &at) && arn_has_caches(arn_root(b), cls)) {
		c = arn_claimed_cache(heap, at, cls);
		if (!arn_load_relaxed(&c->busy)) {
			top = arn_claim_idle(c);
			if (arn_likely(arn_top_has(top))) {
				off = arn_load_relaxed(arn_ptr(b, __u32, top));
				top -= 4;
			}
			arn_unclaim(c, top);
		}
	}
	if (arn_likely(off))
		arn_store_relaxed(arn_state(b, arn_root(b), off), (__u8)(cls + 1));
	p = off ? b + off : alloc_rest(heap, cls);
	if (p)
		zeroed(heap, cls, p);
	return p;
}

void *arn_percpu_alloc(struct arn_heap *heap, size_t size)
{
	__u32 cls;

	if (arn_alive(heap))
		return NULL;
	cls = class_of(heap, size);
	if (cls >= ARN_CLASSES)
		return NULL;
	return heap->native ? alloc_native(heap, cls) : arn_percpu_past(heap, size);
}

static int free_native(struct arn_heap *heap, __u64 ptr)
{
	__u32 off, why, cls = arn_percpu_object(heap->base, arn_root(heap->base), ptr, &off, &why);
	struct arn_root *r = arn_root(heap->base);
	struct arn_cache *c;
	__u32 top, at;

	if (arn_unlikely(cls >= ARN_CLASSES))
		return arn_bad_free(heap, ptr, why);
	if (arn_claim_of(arn_load_relaxed(&arn_claimed), heap, &at) && arn_has_caches(r, cls)) {
		c = arn_claimed_cache(heap, at, cls);
		if (!arn_load_relaxed(&c->busy)) {
			top = arn_claim_idle(c);
			if (arn_likely(arn_top_room(top, c->room))) {
				arn_store_relaxed(arn_state(heap->base, r, off), 0);
				arn_store_relaxed(arn_ptr(heap->base, __u32, top + 4), off);
				arn_unclaim(c, top + 4);
				return 0;
			}
			arn_unclaim(c, top);
		}
	}
	arn_free_slow(heap, arn_my_slot(heap), cls, off);
	return 0;
}

int arn_percpu_free(struct arn_heap *heap, void *ptr)
{
	int err = arn_alive(heap);

	if (err || !ptr)
		return err;
	return heap->native ? free_native(heap, (__u64)ptr) : arn_free_past(heap, ARN_OP_PERCPU_FREE, (__u64)ptr);
}

size_t arn_percpu_alloc_bulk(struct arn_heap *heap, size_t size, size_t n, void **out)
{
	size_t done = 0, got, i;
	__u32 cls, slot;

	if (arn_alive(heap))
		return 0;
	cls = class_of(heap, size);
	if (cls >= ARN_CLASSES)
		return 0;
	slot = heap->native && arn_has_caches(arn_root(heap->base), cls) ? arn_my_slot(heap) : ARN_NO_SLOT;
	while (done < n) {
		got = 0;
		if (slot != ARN_NO_SLOT)
			got = arn_bulk_pop(heap->base, arn_root(heap->base), slot, cls,
					   n - done > ~0u ? ~0u : (__u32)(n - done), out + done);
		for (i = 0; i < got; i++)
			zeroed(heap, cls, out[done + i]);
		if (!got) {
			out[done] = heap->native ? alloc_native(heap, cls) : arn_percpu_past(heap, size);
			if (!out[done])
				break;
			got = 1;
		}
		done += got;
	}
	return done;
}

long arn_percpu_free_bulk(struct arn_heap *heap, void **ptrs, size_t n)
{
	size_t at = 0, freed = 0;
	__u32 slot, got;
	int err = arn_alive(heap);

	if (err)
		return err;
	slot = heap->native && !(arn_root(heap->base)->flags & ARN_F_CHECKED) ? arn_my_slot(heap) : ARN_NO_SLOT;
	while (at < n) {
		got = 0;
		if (slot != ARN_NO_SLOT)
			got = arn_bulk_push(heap->base, arn_root(heap->base), slot, ARN_PLAIN_CLASSES,
					    ARN_PERCPU_CLASSES, ptrs + at, n - at > ~0u ? ~0u : (__u32)(n - at));
		freed += got;
		at += got;
		if (!got && !arn_percpu_free(heap, ptrs[at++]))
			freed++;
	}
	return freed || !n ? (long)freed : -EINVAL;
}

__u32 arn_percpu_cpus(const struct arn_heap *heap)
{
	return arn_alive(heap) ? 0 : known(heap)->percpu_cpus;
}

void *arn_per_cpu_ptr(const struct arn_heap *heap, void *ptr, __u32 cpu)
{
	(void)heap;
	return (char *)ptr + (size_t)cpu * ARN_PERCPU_STRIDE;
}

/* (A heap laid out for fewer CPUs than this machine has: some share a copy.) */
void *arn_this_cpu_ptr(const struct arn_heap *heap, void *ptr)
{
	int cpu = sched_getcpu();
	__u32 n = arn_percpu_cpus(heap);

	return arn_per_cpu_ptr(heap, ptr, cpu < 0 || !n ? 0 : (__u32)cpu % n);
}

__u64 arn_percpu_sum(struct arn_heap *heap, const __u64 *ptr)
{
	__u32 cpus = arn_percpu_cpus(heap), cpu;
	__u64 sum = 0;

	if (cpus && !heap->native &&
	    !arn_shared_mapped(heap, ptr, (cpus - 1) * (size_t)ARN_PERCPU_STRIDE + sizeof(*ptr)))
		return 0;
	for (cpu = 0; cpu < cpus; cpu++)
		sum += arn_load_relaxed((const __u64 *)((const char *)ptr + (size_t)cpu * ARN_PERCPU_STRIDE));
	return sum;
}

/* Slabs for n objects; what is not there is grown. */
static int prepare_native(struct arn_heap *heap, __u32 cls, __u32 n)
{
	struct arn_root *r = arn_root(heap->base);
	__u32 slabs = n / r->cls[cls].nobj + !!(n % r->cls[cls].nobj), slot = arn_my_slot(heap);
	int err;

	if ((__u64)slabs * r->percpu_cpus > r->npages)
		return -E2BIG;
	while (slabs) {
		arn_settle_pending(heap->base, r, slot);
		if (arn_more_slabs(heap->base, r, slot, cls)) {
			slabs--;
			continue;
		}
		if (arn_lock_below(r, slot))
			return -EAGAIN;
		err = arn_native_grow(heap);
		if (err)
			return err;
	}
	return 0;
}

int arn_percpu_prepare(struct arn_heap *heap, size_t size, __u32 n)
{
	__u32 cls;
	int err = arn_alive(heap);

	if (err)
		return err;
	cls = class_of(heap, size);
	if (cls >= ARN_CLASSES)
		return -errno;
	err = heap->native ? prepare_native(heap, cls, n) : arn_percpu_prepare_past(heap, size, n);
	if (err == -E2BIG || err == -ENOMEM)
		return arn_error(-err, "per-CPU objects: no room for %u of %zu bytes on %u CPUs: %s", n, size,
				 known(heap)->percpu_cpus,
				 err == -E2BIG ? "create a larger arena"
					       : "the kernel has no pages (memory cgroup full?)");
	return err;
}
