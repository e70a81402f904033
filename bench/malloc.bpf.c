// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * malloc.bpf.c - arenite's object: the same rounds through arn_malloc and arn_free.
 *
 * Its arena is the heap under test (arn_attach before load); the producers' arrays lie below the
 * heap's root, where a user's own things may lie.
 */
#include <linux/bpf.h>
#include <arenite/arenite.bpf.h>

#include "round.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define ARENITE_ALLOC(i) ((__u64)arn_malloc(size))
#define ARENITE_FREE(p)	 arn_free((void __arena *)(p))
BENCH_IMPL(arenite, ARENITE_ALLOC, ARENITE_FREE)

/* The same past the inlined fast path: one global function call an operation. */
#define ARENITE_CALL_ALLOC(i) arn__malloc(size)
BENCH_IMPL(arenite_call, ARENITE_CALL_ALLOC, arn__free)

#define ARENITE_ALLOC_BULK(buf, n) arn_malloc_bulk(size, n, buf)
#define ARENITE_FREE_BULK(buf, n)  arn_free_bulk(buf, n)
BENCH_IMPL_BULK(arenite_bulk, ARENITE_ALLOC_BULK, ARENITE_FREE_BULK)
