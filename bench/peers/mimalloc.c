// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * mimalloc.c - mimalloc by its own names.
 */
#include <mimalloc.h>
#include <stdio.h>

#include "../peer.h"

static void *peer_alloc(size_t size)
{
	return mi_malloc(size);
}

static void peer_free(void *ptr)
{
	mi_free(ptr);
}

static const char *peer_library(void)
{
	static char version[16];
	void *p = mi_malloc(16);
	bool ours = mi_is_in_heap_region(p);
	int v = mi_version();

	mi_free(p);
	if (v < 1000)
		snprintf(version, sizeof(version), "%d.%d.%d", v / 100, v / 10 % 10, v % 10);
	else
		snprintf(version, sizeof(version), "%d", v);
	return ours ? bench_peer_library((const void *)mi_malloc, "libmimalloc", version) : NULL;
}

const struct bench_peer bench_peer = {
	.name = "mimalloc",
	.library = peer_library,
	.alloc = peer_alloc,
	.free = peer_free,
};
