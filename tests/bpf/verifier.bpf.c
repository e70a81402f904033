// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * verifier.bpf.c - what the verifier is measured on: a program for each function of the library, which
 * calls it (and so has everything verified that it calls), and one with every public call once.
 *
 * Built a second time with ARN_PAGES_ANY_CONTEXT, for what is another function then: allocations, and what maps.
 */
#include <linux/bpf.h>
#include <arenite/arenite.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct args {
	__u64 a, b, c, ret;
};

#define ANY(fn, ...)                                                                                                   \
	SEC("syscall") int ver_##fn(struct args *x)                                                                    \
	{                                                                                                              \
		x->ret = (__u64)fn(__VA_ARGS__);                                                                       \
		return 0;                                                                                              \
	}

#ifdef ARN_PAGES_ANY_CONTEXT
#define VER(fn, ...)
#else
#define VER ANY
#endif

ANY(arn_malloc, x->a)
ANY(arn_calloc, x->a, x->b)
ANY(arn_aligned_alloc, x->a, x->b)
ANY(arn_realloc, (void __arena *)x->a, x->b)
VER(arn_usable_size, (void __arena *)x->a)
VER(arn_free, (void __arena *)x->a)
ANY(arn_malloc_bulk, x->a, x->b, x->c)
VER(arn_free_bulk, x->a, x->b)
VER(arn_set_tag, x->a)
ANY(arn_reserve, x->a)
ANY(arn_trim)

#define RING ((struct arn_ring __arena *)x->a)

ANY(arn_ring_create_spsc, x->a)
ANY(arn_ring_create_mpsc, x->a)
VER(arn_ring_enqueue_spsc, RING, (void __arena *)x->b)
VER(arn_ring_enqueue_mpsc, RING, (void __arena *)x->b)
VER(arn_ring_dequeue_spsc, RING)
VER(arn_ring_dequeue_mpsc, RING)
VER(arn_ring_enqueue_bulk_spsc, RING, x->b, 1, x->c)
VER(arn_ring_enqueue_bulk_mpsc, RING, x->b, 1, x->c)
VER(arn_ring_dequeue_bulk_spsc, RING, x->b, 1, x->c)
VER(arn_ring_dequeue_bulk_mpsc, RING, x->b, 1, x->c)
VER(arn_ring_skip, RING)
VER(arn_ring_destroy, RING)

VER(arn_percpu_alloc, x->a)
VER(arn_percpu_free, (void __arena *)x->a)
VER(arn_percpu_alloc_bulk, x->a, x->b, x->c)
VER(arn_percpu_free_bulk, x->a, x->b)
VER(arn_percpu_sum, (__u64 __arena *)x->a)
VER(arn_percpu_cpus)
VER(arn_percpu_prepare, x->a, x->b)

/* Their parts. */
ANY(arn__malloc, x->a)
ANY(arn__aligned_alloc, x->a, x->b)
ANY(arn__malloc_bulk, x->a, x->b, x->c)
VER(arn__free, x->a)
VER(arn__usable_size, x->a)
VER(arn__zero, x->a, x->b)
VER(arn__copy, x->a, x->b, x->c)
ANY(arn__alloc_rest, x->a, x->b)
VER(arn__pop, x->a)
VER(arn__bypass, x->a)
VER(arn__empty_mag, x->a)
VER(arn__fill, x->a, x->b)
VER(arn__share, x->a, x->b, x->c)
VER(arn__more_slabs, x->a)
VER(arn__more_mags, x->a)
VER(arn__large, x->a, x->b)
VER(arn__settle_one)
VER(arn__push, x->a, x->b)
VER(arn__put, x->a)
VER(arn__free_slow, x->a, x->b)
VER(arn__free_large, x->a)
VER(arn__drain, x->a)
VER(arn__depot_take, x->a, x->b)
VER(arn__mag_empty, x->a, x->b)
VER(arn__retire, x->a)
VER(arn__retire_mags, x->a)
VER(arn__emergency, x->a)
VER(arn__emergency_hole)
VER(arn__emergency_put, x->a)
VER(arn__emergency_release, x->a)
VER(arn__bulk_pop, x->a, x->b, x->c)
VER(arn__bulk_push, x->a, x->b)
VER(arn__dress, x->a, x->b, x->c)
VER(arn__undress, x->a)
VER(arn__checked_free, x->a, x->b)
VER(arn__release)
VER(arn__chunk_add, x->a, x->b)
VER(arn__settle_one_quietly)
VER(arn__settle_quietly)
VER(arn__ask)
VER(arn__grow_asked)
#ifndef ARN_PAGES_ANY_CONTEXT
VER(arn__shrink, x->a, x->b)
VER(arn__chunk_drop)
#endif
ANY(arn__grow)
#ifdef ARN_PAGES_ANY_CONTEXT
ANY(arn__make_room, x->a, x->b)
#endif
VER(arn__ring_init, x->a, x->b, x->c)
VER(arn__ring_put_spsc, x->a, x->b)
VER(arn__ring_get_spsc, x->a)
VER(arn__ring_put_mpsc, x->a, x->b)
VER(arn__ring_get_mpsc, x->a)
VER(arn__ring_put_bulk_spsc, x->a, x->b, 1, x->c)
VER(arn__ring_get_bulk_spsc, x->a, x->b, 1, x->c)
VER(arn__ring_put_bulk_mpsc, x->a, x->b, 1, x->c)
VER(arn__ring_get_bulk_mpsc, x->a, x->b, 1, x->c)
VER(arn__ring_abandon, x->a, x->b, x->c)
VER(arn__ring_skip, x->a)
VER(arn__percpu_alloc, x->a)
VER(arn__percpu_free, x->a)
VER(arn__percpu_zero, x->a, x->b, x->c)
VER(arn__percpu_pop, x->a, x->b, x->c)
VER(arn__percpu_alloc_bulk, x->a, x->b, x->c)
VER(arn__percpu_push, x->a, x->b)
VER(arn__percpu_sum, x->a)

static __always_inline void rings(struct args *x)
{
	struct arn_ring __arena *s = arn_ring_create_spsc(x->a), *m = arn_ring_create_mpsc(x->a);

	x->ret = arn_ring_enqueue_spsc(s, (void __arena *)x->b);
	x->ret += arn_ring_enqueue_mpsc(m, (void __arena *)x->b);
	x->ret += arn_ring_enqueue_bulk_spsc(s, x->c, 1, x->a);
	x->ret += arn_ring_enqueue_bulk_mpsc(m, x->c, 1, x->a);
	x->ret += arn_ring_count(s) + arn_ring_skip(m);
	x->ret += arn_ring_dequeue_spsc(s) != 0;
	x->ret += arn_ring_dequeue_mpsc(m) != 0;
	x->ret += arn_ring_dequeue_bulk_spsc(s, x->c, 1, x->a);
	x->ret += arn_ring_dequeue_bulk_mpsc(m, x->c, 1, x->a);
	x->ret += arn_ring_destroy(s) + arn_ring_destroy(m);
}

static __always_inline void percpu(struct args *x)
{
	void __arena *p = arn_percpu_alloc(x->a);
	int cpu;

	x->b = (__u64)arn_this_cpu_ptr(p) + (__u64)arn_per_cpu_ptr(p, x->a) + arn_percpu_sum(p);
	arn_for_each_cpu(cpu) x->b += *(__u64 __arena *)arn_per_cpu_ptr(p, cpu);
	x->ret += arn_percpu_free(p);
	x->b = arn_percpu_alloc_bulk(x->a, x->b, x->c);
	x->ret += arn_percpu_free_bulk(x->c, x->b);
	x->ret += arn_percpu_prepare(x->a, x->b) + arn_percpu_cpus();
}

SEC("syscall")
int ver_all(struct args *x)
{
	void __arena *p = arn_malloc(x->a), *q = arn_calloc(x->b, x->a), *s = arn_aligned_alloc(x->c, x->a);

	q = arn_realloc(q, x->a * 2);
	x->a = arn_usable_size(q);
	x->b = arn_malloc_bulk(x->a, x->b, x->c);
	x->ret = arn_free_bulk(x->c, x->b);
	x->ret += arn_free(p) + arn_free(q) + arn_free(s);
	x->ret += arn_set_tag(x->b);
	x->ret += arn_reserve(x->a);
	x->ret += arn_trim();
	rings(x);
	percpu(x);
	return 0;
}
