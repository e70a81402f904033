// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* features.bpf.c - programs that load where the kernel has something, and are refused where it has not. */
#include <linux/bpf.h>
#include <arenite/arenite.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__weak int callee(int x)
{
	return x + 1;
}

SEC("raw_tp")
int calls_preempt_off(void *ctx)
{
	int ret;

	bpf_preempt_disable();
	ret = callee(1);
	bpf_preempt_enable();
	return ret;
}

/* A program of this type may not sleep. */
SEC("raw_tp")
int pages_any_context(void *ctx)
{
	void __arena *p = bpf_arena_alloc_pages(&arn_arena, 0, 1, -1, 0);

	if (p)
		bpf_arena_free_pages(&arn_arena, p, 1);
	return !p;
}

SEC("syscall")
int arena_atomics(void *ctx)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return arn_xchg32_full(&r->sys_page_shift, arn_load_relaxed(&r->sys_page_shift)) != r->sys_page_shift;
}
