// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* verifier.bpf.c - what the verifier is measured on: every public function once, and two alone. */
#include <linux/bpf.h>
#include <arenite/arenite.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct args {
	__u64 size, align, ptr, vec;
	__u32 n;
	__s32 ret;
};

SEC("syscall")
int ver_malloc(struct args *a)
{
	a->ptr = (__u64)arn_malloc(a->size);
	return 0;
}

SEC("syscall")
int ver_free(struct args *a)
{
	a->ret = arn_free((void __arena *)a->ptr);
	return 0;
}

SEC("syscall")
int ver_ring(struct args *a)
{
	struct arn_ring __arena *q = (struct arn_ring __arena *)a->ptr;

	a->ret = arn_ring_enqueue_mpsc(q, (void __arena *)a->vec);
	a->vec = (__u64)arn_ring_dequeue_mpsc(q);
	return 0;
}

static __always_inline void rings(struct args *a)
{
	struct arn_ring __arena *s = arn_ring_create_spsc(a->n), *m = arn_ring_create_mpsc(a->n);

	a->ret = arn_ring_enqueue_spsc(s, (void __arena *)a->ptr);
	a->ret += arn_ring_enqueue_mpsc(m, (void __arena *)a->ptr);
	a->ret += arn_ring_enqueue_bulk_spsc(s, a->vec, 1, a->n);
	a->ret += arn_ring_enqueue_bulk_mpsc(m, a->vec, 1, a->n);
	a->ret += arn_ring_count(s) + arn_ring_skip(m);
	a->ret += arn_ring_dequeue_spsc(s) != 0;
	a->ret += arn_ring_dequeue_mpsc(m) != 0;
	a->ret += arn_ring_dequeue_bulk_spsc(s, a->vec, 1, a->n);
	a->ret += arn_ring_dequeue_bulk_mpsc(m, a->vec, 1, a->n);
	a->ret += arn_ring_destroy(s) + arn_ring_destroy(m);
}

SEC("syscall")
int ver_all(struct args *a)
{
	void __arena *p = arn_malloc(a->size), *q = arn_calloc(a->n, a->size),
		     *s = arn_aligned_alloc(a->align, a->size);
	int cpu;

	q = arn_realloc(q, a->size * 2);
	a->size = arn_usable_size(q);
	a->n = arn_malloc_bulk(a->size, a->n, a->vec);
	a->ret = arn_free_bulk(a->vec, a->n);
	a->ret += arn_free(p) + arn_free(q) + arn_free(s);
	a->ret += arn_reserve(a->size);
	a->ret += arn_trim();
	rings(a);
	p = arn_percpu_alloc(a->size);
	a->ptr = (__u64)arn_this_cpu_ptr(p) + (__u64)arn_per_cpu_ptr(p, a->n);
	a->align = arn_percpu_sum(p);
	arn_for_each_cpu(cpu) a->align += *(__u64 __arena *)arn_per_cpu_ptr(p, cpu);
	a->ret += arn_percpu_free(p);
	a->n = arn_percpu_alloc_bulk(a->size, a->n, a->vec);
	a->ret += arn_percpu_free_bulk(a->vec, a->n);
	a->ret += arn_percpu_prepare(a->size, a->n);
	a->n = arn_percpu_cpus();
	return 0;
}
