// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * arenite.c - arenite as a peer: one native heap (arenite-user.c: a shared one).
 */
#include <errno.h>
#include <arenite/arenite.h>

#include "../peer.h"

#ifndef PEER_NAME
#define PEER_NAME  "arenite"
#define PEER_FLAGS ARN_NATIVE
#endif

static struct arn_heap *heap;

static int peer_init(size_t objs, size_t size)
{
	struct arn_options opts = { .sz = sizeof(opts), .flags = PEER_FLAGS };

	opts.bytes = 3ULL * objs * size + (256ULL << 20);
	if (opts.bytes > 4096ULL << 20)
		opts.bytes = 4096ULL << 20;
	heap = arn_create(&opts);
	return heap ? 0 : -errno;
}

static void *peer_alloc(size_t size)
{
	return arn_malloc(heap, size);
}

static void peer_free(void *ptr)
{
	arn_free(heap, ptr);
}

static size_t peer_alloc_bulk(size_t size, size_t n, void **out)
{
	return arn_malloc_bulk(heap, size, n, out);
}

static size_t peer_free_bulk(void **ptrs, size_t n)
{
	return (size_t)arn_free_bulk(heap, ptrs, n);
}

static int peer_check(const char **why)
{
	struct arn_stats st;
	int err = arn_check(heap);

	*why = arn_last_error();
	if (err || arn_get_stats(heap, &st, sizeof(st)))
		return err;
	if (st.fail[ARN_FAIL_FOREIGN] || st.fail[ARN_FAIL_MISALIGNED] || st.fail[ARN_FAIL_INTERIOR] ||
	    st.fail[ARN_FAIL_DOUBLE]) {
		*why = "it refused frees of objects that it had handed out";
		return -EINVAL;
	}
	return 0;
}

static const char *peer_library(void)
{
	return bench_peer_library((const void *)peer_alloc, "peer-" PEER_NAME, arn_version());
}

const struct bench_peer bench_peer = {
	.name = PEER_NAME,
	.library = peer_library,
	.init = peer_init,
	.alloc = peer_alloc,
	.free = peer_free,
	.alloc_bulk = peer_alloc_bulk,
	.free_bulk = peer_free_bulk,
	.check = peer_check,
};
