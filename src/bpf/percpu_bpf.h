/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * percpu_bpf.h - per-CPU objects (core/percpu.h), for BPF.
 *
 * The hit of an allocation is not inlined, because the loop that zeroes needs may_goto; that of a free is
 * (arn_percpu_free in arenite.bpf.h).
 */
#ifndef ARN_PERCPU_BPF_H
#define ARN_PERCPU_BPF_H

#include "../core/percpu.h"

/* The class of a size, or ARN_CLASSES, counted.  (Without a heap percpu_max reads as 0.) */
static arn_inline __u32 arn_percpu_class_here(struct arn_root __arena *r, __u64 size)
{
	if (arn_likely(size - 1 < r->percpu_max))
		return arn_percpu_class(r, size);
	if (arn_has_heap(r))
		arn_inc64_relaxed(&r->fail[ARN_FAIL_SIZE]);
	return ARN_CLASSES;
}

/* No hit: everything else, as arn_alloc_more. */
static arn_inline __u64 arn_percpu_rest(struct arn_root __arena *r, __u32 cls)
{
	__u64 p = arn__alloc_rest(cls, ARN_PERCPU);

#ifdef ARN_PAGES_ANY_CONTEXT
	if (!p && arn__make_room((__u64)r->percpu_cpus << ARN_PAGE_SHIFT, 1))
		p = arn__alloc_rest(cls, ARN_PERCPU);
	if (!p)
		arn_inc64_relaxed(&r->fail[ARN_FAIL_NOMEM]);
#else
	(void)r;
#endif
	return p;
}

__weak __u64 arn__percpu_alloc(__u64 size)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 cls;
	__u64 p;

	arn_name_arena();
	cls = arn_percpu_class_here(r, size);
	if (arn_unlikely(cls >= ARN_CLASSES))
		return 0;
	if (arn_unlikely(arn_is_checked(r) || !arn_hit_malloc(r, cls, &p)))
		p = arn_percpu_rest(r, cls);
	if (!p)
		return 0;
	if (arn_likely(arn_percpu_zero(ARN_HERE, r, p, r->cls[cls].size)))
		return p;
	arn__put(p);
	return 0;
}

/* What was no hit: another magazine, the slab; or no per-CPU object. */
__weak int arn__percpu_free(__u64 ptr)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 off, cls, why;

	arn_name_arena();
	if (!ptr)
		return 0;
	cls = arn_percpu_object(ARN_HERE, r, ptr, &off, &why);
	if (cls >= ARN_CLASSES)
		return arn__free_slow(ptr, why);
	return arn_has_caches(r, cls) ? arn_free_rest(r, cls, off) : arn__put(off);
}

/* Zeroes n objects.  How many it came to; the others, because it was cut short, go back to their slabs. */
__weak __u32 arn__percpu_zero(__u32 cls, __u64 vec, __u32 n)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 i, k, off;

	arn_name_arena();
	if (cls >= ARN_CLASSES)
		return 0;
	for (i = arn_opaque(0u); i < n && arn_may_loop; i++)
		if (!arn_percpu_zero(ARN_HERE, r, arn_vec_get(vec, i), r->cls[cls].size))
			break;
	for (k = arn_opaque(i); k < n && k < i + ARN_MAG_OBJS && arn_may_loop; k++) {
		off = arn_vec_get(vec, k);
		arn_store_relaxed(arn_state(ARN_HERE, r, off), 0);
		arn_slab_put(ARN_HERE, r, off);
	}
	return i;
}

/* At most want objects out of this CPU's loaded magazine.  0: it is spent, or busy. */
__weak __u32 arn__percpu_pop(__u32 cls, __u32 want, __u64 out)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	if (cls >= ARN_CLASSES || !arn_has_caches(r, cls))
		return 0;
	return arn_bulk_pop(ARN_HERE, r, bpf_get_smp_processor_id(), cls, want, out);
}

/* Returns how many are missing. */
__weak __u32 arn__percpu_alloc_bulk(__u64 size, __u32 n, __u64 out)
{
	__u32 cls, got, more;

	arn_name_arena();
	cls = arn_percpu_class_here(arn_root(ARN_HERE), size);
	if (cls >= ARN_CLASSES)
		return n;
	for (n = arn_opaque(n);;) {
		more = n; /* as in arn__malloc_bulk */
		asm volatile("" : "+r"(more));
		if (!more || !arn_may_loop)
			break;
		got = arn__percpu_pop(cls, n, out);
		if (!got) {
			arn_vec_set(out, 0, arn_percpu_rest(arn_root(ARN_HERE), cls));
			if (!arn_vec_get(out, 0))
				break;
			got = 1;
		}
		got = arn__percpu_zero(cls, out, got);
		if (!got)
			break;
		out += (__u64)got * 8;
		n -= got;
	}
	return n;
}

__weak __u32 arn__percpu_push(__u64 ptrs, __u32 want)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return arn_bulk_push(ARN_HERE, r, bpf_get_smp_processor_id(), ARN_PLAIN_CLASSES, ARN_PERCPU_CLASSES, ptrs,
			     want);
}

__weak int arn_percpu_free_bulk(__u64 ptrs, __u32 n)
{
	__u32 at, freed, got;

	arn_name_arena();
	at = arn_opaque(0u);
	freed = arn_opaque(0u);
	while (at < n && arn_may_loop) {
		got = arn__percpu_push(ptrs + (__u64)at * 8, n - at);
		at += got;
		freed += got;
		if (got)
			continue;
		if (!arn__percpu_free(arn_vec_get(ptrs, at)))
			freed++;
		at++;
	}
	return freed || !n ? (int)freed : -ARN_EINVAL;
}

__weak __u64 arn__percpu_sum(__u64 ptr)
{
	arn_name_arena();
	return arn_percpu_add_up(ARN_HERE, arn_root(ARN_HERE), ptr);
}

__weak __u32 arn_percpu_cpus(void)
{
	arn_name_arena();
	return arn_root(ARN_HERE)->percpu_cpus;
}

/* Sleepable.  bpf_for, because the kernel's page calls may take longer than may_goto's patience. */
__weak int arn_percpu_prepare(__u64 size, __u32 n)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	__u32 cls, nobj, slabs;
	int i, err;

	arn_name_arena();
	if (!arn_has_heap(r))
		return -ARN_ENOENT;
	cls = arn_percpu_class_here(r, size);
	if (cls >= ARN_CLASSES)
		return -ARN_E2BIG;
	nobj = r->cls[cls].nobj;
	if (!nobj)
		return -ARN_EINVAL;
	slabs = arn_opaque(n / nobj + !!(n % nobj));
	if ((__u64)slabs * r->percpu_cpus > r->npages)
		return -ARN_E2BIG;
	bpf_for(i, 0, 1 << 22) {
		if (!slabs)
			return 0;
		if (arn_load_relaxed(&r->pending))
			arn__settle();
		if (arn__more_slabs(cls)) {
			slabs--;
			continue;
		}
		err = arn__grow();
		if (err)
			return err;
	}
	return -ARN_EAGAIN;
}

#endif
