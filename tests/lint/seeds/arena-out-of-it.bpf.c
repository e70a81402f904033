/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sparse: cast removes address space */
#include <linux/bpf.h>
#include "arenite.bpf.h"

/* clang accepts the cast, and the verifier gets a pointer that it takes for a scalar. */
__u32 seed(__u32 pg);
__u32 seed(__u32 pg)
{
	struct arn_page *d = (struct arn_page *)arn_desc(ARN_HERE, arn_root(ARN_HERE), pg);

	return d->npages;
}
