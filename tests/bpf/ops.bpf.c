// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * ops.bpf.c - every public function behind one syscall program, so that a test in user space can say
 * what is to happen and look at the heap between two calls.
 *
 * OP_TAKE and OP_DROP are for many objects a run: the first word of each links it to the one before.
 * Counters start from arn_opaque(0), or the verifier would follow each turn's value.
 */
#include <linux/bpf.h>
#include <arenite/arenite.bpf.h>
#include "ops.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MOST   (8 << 20) /* what bpf_for can count to */
#define RUN_NS 10000000000ULL /* the end of a run on a heap that a bug has broken */

#define word(at) (*(volatile __u64 __arena *)(__u64)(at))

static void op_write(struct op *o)
{
	__u64 at = o->a, value = o->b;
	__u32 n = o->n;
	int i;

	bpf_for(i, 0, MOST) {
		if ((__u32)i >= n)
			break;
		word(at + (__u64)i * 8) = value + i;
	}
	o->ret = n;
}

static void op_sum(struct op *o)
{
	__u64 at = o->a, sum = arn_opaque(0ull);
	__u32 n = o->n;
	int i;

	bpf_for(i, 0, MOST) {
		if ((__u32)i >= n)
			break;
		sum += word(at + (__u64)i * 8);
	}
	o->ret = sum;
}

static void op_take(struct op *o)
{
	__u64 size = o->a, chain = o->b, p;
	__u64 until = bpf_ktime_get_ns() + RUN_NS;
	__u32 n = o->n, done = arn_opaque(0u);
	int i;

	bpf_for(i, 0, MOST) {
		if ((__u32)i >= n || bpf_ktime_get_ns() > until)
			break;
		p = (__u64)arn_malloc(size);
		if (!p)
			break;
		word(p) = chain;
		chain = p;
		done++;
	}
	o->b = chain;
	o->ret = done;
}

static void op_drop(struct op *o)
{
	__u64 chain = o->b, p, refused = arn_opaque(0ull);
	__u64 until = bpf_ktime_get_ns() + RUN_NS;
	__u32 n = o->n, done = arn_opaque(0u);
	int i;

	bpf_for(i, 0, MOST) {
		if (!chain || (__u32)i >= n || bpf_ktime_get_ns() > until)
			break;
		p = chain;
		chain = word(p);
		if (arn_free((void __arena *)p))
			refused++;
		else
			done++;
	}
	o->a = refused;
	o->b = chain;
	o->ret = done;
}

SEC("syscall")
int op_run(struct op *o)
{
	/* Names the arena, or the verifier takes the pointers above for scalars. */
	asm volatile("" : : "r"(&arn_arena));
	switch (o->code) {
	case OP_MALLOC:
		o->ret = (__u64)arn_malloc(o->a);
		break;
	case OP_CALLOC:
		o->ret = (__u64)arn_calloc(o->a, o->b);
		break;
	case OP_ALIGNED:
		o->ret = (__u64)arn_aligned_alloc(o->a, o->b);
		break;
	case OP_REALLOC:
		o->ret = (__u64)arn_realloc((void __arena *)o->a, o->b);
		break;
	case OP_FREE:
		o->ret = arn_free((void __arena *)o->a);
		break;
	case OP_USABLE:
		o->ret = arn_usable_size((void __arena *)o->a);
		break;
	case OP_MALLOC_BULK:
		o->ret = arn_malloc_bulk(o->a, o->n, o->b);
		break;
	case OP_FREE_BULK:
		o->ret = arn_free_bulk(o->a, o->n);
		break;
	case OP_RESERVE:
		o->ret = arn_reserve(o->a);
		break;
	case OP_TRIM:
		o->ret = arn_trim();
		break;
	case OP_TAG:
		o->ret = arn_set_tag(o->a);
		break;
	case OP_WRITE:
		op_write(o);
		break;
	case OP_SUM:
		op_sum(o);
		break;
	case OP_TAKE:
		op_take(o);
		break;
	case OP_DROP:
		op_drop(o);
		break;
	default:
		o->ret = -1;
	}
	return 0;
}
