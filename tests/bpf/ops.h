/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ops.h - what a test has the BPF side do, one call a run; read by both sides. */
#ifndef TEST_OPS_H
#define TEST_OPS_H

enum op_code {
	OP_MALLOC, /* a: size -> pointer */
	OP_CALLOC, /* a: n, b: size -> pointer */
	OP_ALIGNED, /* a: align, b: size -> pointer */
	OP_REALLOC, /* a: pointer, b: size -> pointer */
	OP_FREE, /* a: pointer -> error */
	OP_USABLE, /* a: pointer -> bytes */
	OP_MALLOC_BULK, /* a: size, b: array, n -> count */
	OP_FREE_BULK, /* a: array, n -> count or error */
	OP_RESERVE, /* a: bytes -> error */
	OP_TRIM, /* -> pages or error */
	OP_TAG, /* a: tag */
	OP_WRITE, /* a: pointer, b: first value, n: words -> words written */
	OP_SUM, /* a: pointer, n: words -> sum */
	OP_TAKE, /* a: size, n: at most, b: chain -> how many more; b: the new chain */
	OP_DROP, /* b: chain, n: at most -> how many freed; b: what is left; a: refused ones */
};

struct op {
	__u32 code;
	__u32 n;
	__u64 a;
	__u64 b;
	__s64 ret;
};

#endif
