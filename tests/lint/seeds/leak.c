/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tidy: clang-analyzer-unix.Malloc */
#include <stdlib.h>

int seed(int n);
int seed(int n)
{
	int *p = malloc(sizeof(*p));

	if (!p || n < 0)
		return -1;
	n += *p = n;
	free(p);
	return n;
}
