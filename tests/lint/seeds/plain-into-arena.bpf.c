/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sparse: different address spaces */
#include <linux/bpf.h>
#include "arenite.bpf.h"

/* The root on the stack: the core would take its address for an offset. */
int seed(void);
int seed(void)
{
	struct arn_root r = { 0 };

	return (int)arn_bin_of(&r, 1);
}
