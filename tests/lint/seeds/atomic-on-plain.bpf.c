/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sparse: different address spaces */
#include <linux/bpf.h>
#include "arenite.bpf.h"

/* The port's macro casts its argument, so that clang has nothing to say. */
__u64 counter;
void seed(void);
void seed(void)
{
	arn_add64_full(&counter, 1);
}
