/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rig.h - what the BPF tests share: a heap in the running kernel, the object with every call in it
 * (ops.bpf.c), and the questions one asks of a heap afterwards.
 *
 * A failure of the rig itself fails the test that runs.  Include after nothing: it brings cmocka.
 */
#ifndef TEST_RIG_H
#define TEST_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <arenite/arenite.h>
#include "ops.h"

#define KiB (1ULL << 10)
#define MiB (1ULL << 20)
#define GiB (1ULL << 30)

struct ops_bpf;

struct rig {
	struct arn_heap *heap;
	struct ops_bpf *ops;
	char *base;
	struct arn_root *root;
};

/* First in main: exits 77 with a line saying what is missing, pins the process to CPU 0. */
void rig_start(void);
/* A heap of bytes, of which reserve are mapped, and the ops object on it. */
#define RIG_ALL (~0ULL)
struct rig *rig_new(__u64 bytes, __u64 reserve);
struct rig *rig_new_flags(__u64 bytes, __u64 reserve, __u32 flags);
struct rig *rig_new_marks(__u64 bytes, __u64 low, __u64 high);
/* The walkers find nothing, then it is closed. */
void rig_end(struct rig *t);

/* Attaches a skeleton to a heap and loads it: 0, or -errno.  (Its pointers to globals move.) */
int rig_load(struct arn_heap *heap, struct bpf_object_skeleton *s);
struct ops_bpf *rig_ops(struct arn_heap *heap);
/* Runs a syscall program with its argument, which it may change. */
void rig_run(struct bpf_program *prog, void *ctx, size_t size);
void rig_pin_cpu(int cpu);
int rig_cpus(void); /* online ones */
unsigned int rig_scale(void); /* $TEST_SCALE: by what to divide the long loops on a slow machine; 1 */
bool rig_quiet(bool on); /* libbpf's messages; returns what was */

/* One call in BPF. */
__s64 rig_do(struct ops_bpf *ops, struct op *o);
__s64 rig_op(struct rig *t, enum op_code code, __u64 a, __u64 b, __u32 n);

static inline void *bpf_malloc(struct rig *t, __u64 size)
{
	return (void *)rig_op(t, OP_MALLOC, size, 0, 0);
}

static inline int bpf_free(struct rig *t, void *p)
{
	return (int)rig_op(t, OP_FREE, (__u64)p, 0, 0);
}

static inline __u64 bpf_usable(struct rig *t, void *p)
{
	return (__u64)rig_op(t, OP_USABLE, (__u64)p, 0, 0);
}

/* n objects more on a chain; how many there were. */
static inline __u32 bpf_take(struct rig *t, __u64 size, __u32 n, __u64 *chain)
{
	struct op o = { .code = OP_TAKE, .a = size, .b = *chain, .n = n };

	rig_do(t->ops, &o);
	*chain = o.b;
	return (__u32)o.ret;
}

/* Frees at most n of a chain; none may be refused. */
static inline __u32 bpf_drop(struct rig *t, __u32 n, __u64 *chain)
{
	struct op o = { .code = OP_DROP, .b = *chain, .n = n };

	rig_do(t->ops, &o);
	assert_int_equal(o.a, 0);
	*chain = o.b;
	return (__u32)o.ret;
}

/* The walkers find every page and object in one place, and the statistics balance. */
void rig_sound(struct arn_heap *heap);
struct arn_stats rig_stats(struct arn_heap *heap);
__u64 rig_fail(struct rig *t, enum arn_fail why);
/* Objects allocated, all classes and large ones. */
__u64 rig_live(struct arn_heap *heap);
/* Class that serves a size, from the heap's own table. */
__u32 rig_class(struct rig *t, __u64 size);

/* Fails the running test with arn_last_error() unless expr is 0. */
#define assert_ok(expr)                                                                                                \
	do {                                                                                                           \
		long long err__ = (expr);                                                                              \
		if (err__)                                                                                             \
			fail_msg("%s: %lld: %s", #expr, err__, arn_last_error());                                      \
	} while (0)

#endif
