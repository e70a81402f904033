// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * glibc.c - the C library's malloc.
 */
#include <gnu/libc-version.h>
#include <stdlib.h>

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
	return bench_peer_library((const void *)malloc, "libc.so", gnu_get_libc_version());
}

const struct bench_peer bench_peer = {
	.name = "glibc",
	.library = peer_library,
	.alloc = peer_alloc,
	.free = peer_free,
};
