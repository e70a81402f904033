/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tidy: bugprone-implicit-widening-of-multiplication-result */
#include "arenite.h"

/* 4 GiB and more come out as less. */
__u64 seed(const struct arn_root *r);
__u64 seed(const struct arn_root *r)
{
	return r->npages * ARN_PAGE_SIZE;
}
