// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * pinheap.c - what the tests of the command need done to a heap.
 *
 *   pinheap PATH BYTES         a heap of 64 MiB with BYTES reserved, pinned at PATH
 *   pinheap use PATH           says "ready", then allocates and frees until it is killed
 *   pinheap poke PATH OFF N    the 64-bit word at offset OFF becomes N
 *
 * Exit status 0, or 1 with the library's message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arenite/arenite.h>

static int failed(void)
{
	fprintf(stderr, "pinheap: %s\n", arn_last_error());
	return 1;
}

static int use(const char *path)
{
	struct arn_heap *heap = arn_open(path);
	void *p[300];
	int i;

	if (!heap || arn_free(heap, arn_malloc(heap, 64)))
		return failed();
	puts("ready");
	fflush(stdout);
	for (;;) {
		for (i = 0; i < 300; i++)
			p[i] = arn_malloc(heap, 16 + (size_t)i);
		for (i = 0; i < 300; i++)
			if (!p[i] || arn_free(heap, p[i]))
				return failed();
	}
}

static int poke(const char *path, const char *off, const char *word)
{
	struct arn_heap *heap = arn_open(path);

	if (!heap)
		return failed();
	*(__u64 *)((char *)arn_base_address(heap) + strtoull(off, NULL, 0)) = strtoull(word, NULL, 0);
	arn_close(heap);
	return 0;
}

static int make(const char *path, const char *bytes)
{
	struct arn_options opts = { .sz = sizeof(opts), .bytes = 64u << 20, .name = "clitest" };
	struct arn_heap *heap = arn_create(&opts);

	if (!heap || arn_reserve(heap, strtoull(bytes, NULL, 0)) || arn_pin(heap, path))
		return failed();
	arn_close(heap);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "use"))
		return use(argv[2]);
	if (argc == 5 && !strcmp(argv[1], "poke"))
		return poke(argv[2], argv[3], argv[4]);
	return argc == 3 ? make(argv[1], argv[2]) : 2;
}
