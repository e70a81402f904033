/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sparse: different type sizes */
#include <linux/bpf.h>
#include "arenite.bpf.h"

/* Right on the host, where the builtin goes by the type; in BPF it would add to the neighbour as well. */
void seed(struct arn_page __arena *d);
void seed(struct arn_page __arena *d)
{
	arn_add64_full(&d->nfree, 1);
}
