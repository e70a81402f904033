/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sparse: cast adds address space */
#include <linux/bpf.h>
#include "arenite.bpf.h"

__u64 counter;
__u64 seed(void);
__u64 seed(void)
{
	return *(__u64 __arena *)&counter;
}
