// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * floor.c - the limit: a thread-local array of pointers; one load, one store, one index update.
 *
 * No allocator: the worker balances its calls in each thread, and peer_thread() fills a thread's array
 * before each cell.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../peer.h"

static size_t max_objs, obj_size;
static __thread void **stack __attribute__((tls_model("initial-exec")));

static int peer_init(size_t objs, size_t size)
{
	max_objs = objs;
	obj_size = (size + 15) & ~(size_t)15;
	return 0;
}

static int peer_thread(void)
{
	static __thread void **array;
	static __thread char *objs;
	size_t i;

	if (!array) {
		array = malloc(2 * max_objs * sizeof(*array));
		objs = malloc(max_objs * obj_size);
		if (!array || !objs)
			return -ENOMEM;
		memset(objs, 0, max_objs * obj_size);
	}
	for (i = 0; i < max_objs; i++)
		array[max_objs - 1 - i] = objs + i * obj_size;
	stack = array + max_objs;
	return 0;
}

static void *peer_alloc(size_t size)
{
	void **s = stack - 1;

	stack = s;
	return *s;
}

static void peer_free(void *ptr)
{
	void **s = stack;

	*s = ptr;
	stack = s + 1;
}

static const char *peer_library(void)
{
	return "-";
}

const struct bench_peer bench_peer = {
	.name = "floor",
	.library = peer_library,
	.init = peer_init,
	.thread = peer_thread,
	.alloc = peer_alloc,
	.free = peer_free,
};
