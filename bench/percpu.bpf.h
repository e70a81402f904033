/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* percpu.bpf.h - a round that keeps what it allocated (drop_x frees it), for measuring memory. */
#ifndef BENCH_PERCPU_BPF_H
#define BENCH_PERCPU_BPF_H

#define BENCH_HOLD(x)                                                                                                  \
	SEC("syscall") int hold_##x(struct bench_round *c)                                                             \
	{                                                                                                              \
		__u32 a;                                                                                               \
                                                                                                                       \
		arn_name_arena();                                                                                      \
		a = x##_fill(bench_buf(c, c->producer, 0), c->n, c->size, bench_mark(c->producer), 0);                 \
		bench_lane(c->producer)->held[0] = c->n;                                                               \
		c->broken += a >> 31; /* (Branches would choose between places in the context, which is refused.) */   \
		c->fails += a & ~BENCH_BROKEN;                                                                         \
		return 0;                                                                                              \
	}

#endif
