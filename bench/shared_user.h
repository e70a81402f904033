/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shared_user.h - the user thread's side of 'arenite bench shared'. */
#ifndef BENCH_SHARED_USER_H
#define BENCH_SHARED_USER_H

#include <stdbool.h>
#include <arenite/arenite.h>
#include "shared.h"

struct shared_user {
	struct arn_heap *heap;
	struct arn_ring_handle *ring;
};

/* One run, as the programs of shared.bpf.c are. */
void shared_user_make(const struct shared_user *u, struct shared_side *s, enum shared_impl impl);
void shared_user_take(const struct shared_user *u, struct shared_side *s, enum shared_impl impl);

#endif
