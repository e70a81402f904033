/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * load.h - the benchmark's BPF objects: opened from the executable, loaded, called.
 *
 * Every int result is 0 or -errno after bench_fail(), whose message ends with what libbpf or the
 * verifier said last.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <linux/types.h>
#include "round.h"

struct bpf_object;

struct bench_obj {
	const char *name;
	struct bpf_object *obj;
};

enum bench_obj_id {
	BENCH_OBJ_MALLOC,
	BENCH_OBJ_BASE,
	BENCH_OBJ_KOBJ,
	BENCH_OBJ_NMI,
	BENCH_OBJ_PERCPU,
	BENCH_OBJ_PKOBJ,
	BENCH_OBJ_SHARED
};

int bench_open(struct bench_obj *o, enum bench_obj_id id);
/* Between open and load: an arena of so many bytes of the object's own. */
int bench_own_arena(struct bench_obj *o, __u64 bytes);
/* kobj: keeps the programs and the map of one object size, with so many slots. */
int bench_only_size(struct bench_obj *o, unsigned int size, unsigned int slots);
int bench_load(struct bench_obj *o);
void bench_close(struct bench_obj *o);

/* fd of the program named prefix + name, or -ENOENT. */
int bench_prog(const struct bench_obj *o, const char *prefix, const char *name);
/* Runs a setup program; s->err is an error of this call's. */
int bench_call(const struct bench_obj *o, const char *prog, struct bench_setup *s);
/* Maps whole pages from off to off + bytes. */
int bench_map(const struct bench_obj *o, __u64 off, __u64 bytes);

#endif
