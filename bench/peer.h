/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * peer.h - what a peer's shared object gives the native worker: function pointers, all of one shape.
 *
 * Every peer's calls are a wrapper in peer-X.so that jumps to its library, itself a shared object:
 * arenite is called exactly as the others are.  The compiler sees none of it from the worker, so it
 * can leave no call out.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stddef.h>

struct bench_peer {
	const char *name;
	/* Version and file of the library that really serves alloc; NULL: not the one meant. */
	const char *(*library)(void);
	/* Before anything else: so many objects of this size may live.  0, or -errno. */
	int (*init)(size_t objs, size_t size);
	/* In every worker thread before a cell, while nothing is held; NULL: need not know.  0, or -errno. */
	int (*thread)(void);
	void *(*alloc)(size_t size);
	void (*free)(void *ptr);
	/* NULL: has none. */
	size_t (*alloc_bulk)(size_t size, size_t n, void **out);
	size_t (*free_bulk)(void **ptrs, size_t n);
	/* At the end; NULL: has none.  0, or -errno with a message in *why. */
	int (*check)(const char **why);
};

extern const struct bench_peer bench_peer;

/* "VERSION FILE" if fn lies in a file whose name contains lib, else NULL. */
const char *bench_peer_library(const void *fn, const char *lib, const char *version);

#endif
