/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* percpu.h - arguments of percpu.bpf.c, read by both sides. */
#ifndef TEST_PERCPU_H
#define TEST_PERCPU_H

#define PERCPU_BOXES 1024

enum percpu_code {
	PC_ALLOC, /* a: size -> pointer */
	PC_FREE, /* a: pointer -> error */
	PC_ALLOC_BULK, /* a: size, b: array, n -> count */
	PC_FREE_BULK, /* b: array, n -> count or error */
	PC_PREPARE, /* a: size, n -> error */
	PC_SUM, /* a: pointer -> sum */
	PC_CPUS, /* -> copies */
	PC_THIS, /* a: pointer -> this CPU's copy */
	PC_EACH, /* a: pointer -> CPUs whose copy holds its number + 1 */
	PC_COUNT, /* a: pointer, n: adds 1 to this CPU's copy so many times */
	PC_CHURN, /* a: size (0: any), n: turns -> NULLs */
	PC_MARK, /* a: size, b: array, n -> objects whose copies were not all zero; marks them all */
	PC_LOOK, /* a: size, b: array, n -> objects whose copies lost their mark */
};

struct pc {
	__u32 code;
	__u32 n;
	__u64 a, b;
	__s64 ret;
};

/* What must stay 0. */
struct percpu_wrong {
	__u64 dirty; /* a new object that was not zero on every CPU */
	__u64 torn; /* a copy that somebody else wrote to */
	__u64 refused;
};

#endif
