// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * tcmalloc.c - gperftools' tcmalloc (minimal) by its own names.
 */
#include <gperftools/tcmalloc.h>

#include "../peer.h"

static void *peer_alloc(size_t size)
{
	return tc_malloc(size);
}

static void peer_free(void *ptr)
{
	tc_free(ptr);
}

static const char *peer_library(void)
{
	return bench_peer_library((const void *)tc_malloc, "libtcmalloc", tc_version(NULL, NULL, NULL));
}

const struct bench_peer bench_peer = {
	.name = "tcmalloc",
	.library = peer_library,
	.alloc = peer_alloc,
	.free = peer_free,
};
