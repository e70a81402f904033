// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * pinheap.c - pinheap PATH BYTES: a heap of 64 MiB with BYTES reserved, pinned at PATH.
 * Exit status 0, or 1 with the library's message.
 */
#include <stdio.h>
#include <stdlib.h>

#include <arenite/arenite.h>

int main(int argc, char **argv)
{
	struct arn_options opts = { .sz = sizeof(opts), .bytes = 64u << 20, .name = "clitest" };
	struct arn_heap *heap;

	if (argc != 3)
		return 2;
	heap = arn_create(&opts);
	if (!heap || arn_reserve(heap, strtoull(argv[2], NULL, 0)) || arn_pin(heap, argv[1])) {
		fprintf(stderr, "pinheap: %s\n", arn_last_error());
		return 1;
	}
	arn_close(heap);
	return 0;
}
