/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bpf_tracing.h - the real one, without the casts from one context array to arguments of every type. */
#include_next <bpf/bpf_tracing.h>
#undef BPF_PROG
#define BPF_PROG(name, args...) name(__u64 *ctx, ##args)
