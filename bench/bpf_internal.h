/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * bpf_internal.h - between bpf_open.c (what exists) and bpf.c (how a cell is measured).
 */
#ifndef BENCH_BPF_INTERNAL_H
#define BENCH_BPF_INTERNAL_H

#include "bpf.h"
#include "load.h"
#include "round.h"

struct arn_heap;
struct crew;

struct impl_ctx {
	struct bench_bpf *b;
	struct bench_obj *obj;
	int run_fd, drop_fd;
	bool floor; /* its arrays are filled before each cell */
};

struct bench_bpf {
	struct arn_heap *heap;
	struct crew *crew;
	struct bench_obj arenite, base, kobj;
	struct impl_ctx impl[BENCH_MAX_IMPLS];
	size_t nimpls;
	struct bench_setup floor;
	unsigned int objs; /* most objects a round */
	unsigned int producers; /* most */
	unsigned int stride;
	unsigned int size; /* as asked for, in 16-byte steps */
};

/* bench_impl.run of every BPF row. */
int bench_bpf_cell(const struct bench_impl *impl, const struct bench_options *o, const struct bench_cell *cell,
		   struct bench_sample *out);

#endif
