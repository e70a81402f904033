// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * kobj.bpf.c - the kernel baseline's object.  Its arena holds only the producers' lanes.
 *
 * On its own because a kernel without bpf_obj_new refuses it: then the other rows still run.
 */
#include <linux/bpf.h>
#include <stddef.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <arenite/layout.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, ARN_MAP_FLAGS);
} bench_arena SEC(".maps");

#define ARN_MAP bench_arena
#include "port.h"

#include "round.bpf.h"
#include "kobj.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

BENCH_KOBJ(16)
BENCH_KOBJ(32)
BENCH_KOBJ(64)
BENCH_KOBJ(128)
BENCH_KOBJ(256)
BENCH_KOBJ(512)
BENCH_KOBJ(1024)
BENCH_KOBJ(2048)
BENCH_KOBJ(4080)
