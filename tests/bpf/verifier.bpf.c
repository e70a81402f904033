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
int ver_all(struct args *a)
{
	void __arena *p = arn_malloc(a->size), *q = arn_calloc(a->n, a->size),
		     *s = arn_aligned_alloc(a->align, a->size);

	q = arn_realloc(q, a->size * 2);
	a->size = arn_usable_size(q);
	a->n = arn_malloc_bulk(a->size, a->n, a->vec);
	a->ret = arn_free_bulk(a->vec, a->n);
	a->ret += arn_free(p) + arn_free(q) + arn_free(s);
	a->ret += arn_reserve(a->size);
	a->ret += arn_trim();
	return 0;
}
