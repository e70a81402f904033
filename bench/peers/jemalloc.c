// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * jemalloc.c - jemalloc, which Debian builds under malloc's own names: this executable's malloc is
 * jemalloc's, and peer_library() makes sure of it.
 */
#include <stdlib.h>
#include <jemalloc/jemalloc.h>

#include "../peer.h"

static void *peer_alloc(size_t size)
{
	return malloc(size);
}

static void peer_free(void *ptr)
{
	free(ptr);
}

static const char *peer_library(void)
{
	const char *version;
	size_t size = sizeof(version);

	if (mallctl("version", &version, &size, NULL, 0))
		return NULL;
	return bench_peer_library((const void *)malloc, "libjemalloc", version);
}

const struct bench_peer bench_peer = {
	.name = "jemalloc",
	.library = peer_library,
	.alloc = peer_alloc,
	.free = peer_free,
};
