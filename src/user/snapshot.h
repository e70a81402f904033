/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* snapshot.h - a private copy of a heap's structures. */
#ifndef ARN_SNAPSHOT_H
#define ARN_SNAPSHOT_H

#include "internal.h"

struct arn_snapshot {
	arn_base base;
	int mem;
};

/* states: the state bytes too (a sixteenth of the mapped heap).  0, or -errno: EUCLEAN, a root not to be believed. */
int arn_snapshot_take(struct arn_snapshot *s, struct arn_heap *heap, bool states);
/* Do both hold the same? */
bool arn_snapshot_same(const struct arn_snapshot *s, const struct arn_snapshot *t);
void arn_snapshot_drop(struct arn_snapshot *s);

#endif
