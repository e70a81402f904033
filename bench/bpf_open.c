// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * bpf_open.c - the heap, the objects and the memory of a BPF benchmark.
 *
 * Three objects: malloc.bpf.c in the heap under test, base.bpf.c and kobj.bpf.c in arenas of their
 * own.  Everything is mapped before the first cell, so nothing measured grows memory.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arenite/arenite.h>
#include "bpf_internal.h"
#include "crew.h"

#define MIB (1ULL << 20)

static int add(struct bench_bpf *b, struct bench_set *set, struct bench_obj *obj, const char *name, const char *prog,
	       enum bench_role role, bool bulk)
{
	struct impl_ctx *x = &b->impl[b->nimpls++];
	struct bench_impl *impl = bench_add(set, name, role, bulk);

	if (!impl)
		return bench_fail(-E2BIG, "%s: too many rows", name);
	x->b = b;
	x->obj = obj;
	x->run_fd = bench_prog(obj, "run_", prog);
	x->drop_fd = bench_prog(obj, "drop_", prog);
	x->floor = !strncmp(name, "floor", 5);
	if (x->run_fd < 0 || x->drop_fd < 0)
		return bench_fail(-ENOENT, "object '%s': no programs for %s: rebuild", obj->name, prog);
	impl->run = bench_bpf_cell;
	impl->ctx = x;
	return 0;
}

/* Lanes and pointer arrays, which every object has at the same place. */
static int map_lanes(struct bench_bpf *b, struct bench_obj *obj)
{
	int err = bench_map(obj, BENCH_LANES, BENCH_MAX_PRODUCERS * sizeof(struct bench_lane));

	return err ? err : bench_map(obj, BENCH_BUFS, 2ULL * b->producers * b->stride);
}

static int open_arenite(struct bench_bpf *b, const struct bench_options *o, struct bench_set *set)
{
	__u64 live = 2ULL * b->producers * b->objs * b->size; /* xfree holds two rounds */
	__u64 reserve = live + live / 2 + 16 * MIB;
	struct arn_options opts = { .sz = sizeof(opts), .bytes = 2 * reserve + 64 * MIB, .name = "arn_bench" };
	int err;

	if (opts.bytes < 256 * MIB)
		opts.bytes = 256 * MIB;
	if (opts.bytes > 4096 * MIB)
		return bench_fail(
			-E2BIG,
			"%s: two rounds of %u x %u objects of %u bytes do not fit in an arena: smaller -p, -n or -s",
			o->bench, b->producers, b->objs, b->size);
	b->heap = arn_create(&opts);
	if (!b->heap)
		return bench_fail(-errno, "%s", arn_last_error());
	err = bench_open(&b->arenite, BENCH_OBJ_MALLOC);
	if (!err && arn_attach(b->heap, b->arenite.obj))
		err = bench_fail(-EINVAL, "%s", arn_last_error());
	if (!err)
		err = bench_load(&b->arenite);
	if (!err && arn_reserve(b->heap, reserve))
		err = bench_fail(-ENOMEM, "%s", arn_last_error());
	if (!err)
		err = map_lanes(b, &b->arenite);
	if (!err)
		err = add(b, set, &b->arenite, "arenite", "arenite", BENCH_ROW, false);
	if (!err && o->limits)
		err = add(b, set, &b->arenite, "arenite-call", "arenite_call", BENCH_ROW, false);
	if (!err && o->bulk)
		err = add(b, set, &b->arenite, "arenite", "arenite_bulk", BENCH_ROW, true);
	return err;
}

static int open_floor(struct bench_bpf *b, const struct bench_options *o, struct bench_set *set)
{
	int cpu, cpus = libbpf_num_possible_cpus(), err = 0;
	__u64 bytes;

	/* All producers may be on one CPU, with two rounds each. */
	b->floor = (struct bench_setup){
		.off = BENCH_READY, .size = b->size, .objs = 2 * b->producers * b->objs + 64, .cpus = (unsigned int)cpus
	};
	bytes = (__u64)b->floor.objs * b->size * b->floor.cpus;
	if (bytes > BENCH_READY_MAX || cpus > BENCH_FLOOR_CPUS)
		return bench_fail(-E2BIG,
				  "%s: two rounds of %u x %u objects of %u bytes do not fit: smaller -p, -n or -s",
				  o->bench, b->producers, b->objs, b->size);
	for (cpu = 0; !err && cpu < cpus; cpu++)
		err = bench_map(&b->base, BENCH_FLOOR + (__u64)cpu * BENCH_FLOOR_SIZE, 64 + b->floor.objs * 8ULL);
	if (!err)
		err = bench_map(&b->base, BENCH_READY, bytes);
	if (!err)
		err = add(b, set, &b->base, "floor", "floor", BENCH_ROW, false);
	if (!err && o->limits)
		err = add(b, set, &b->base, "floor-claim", "floor_claim", BENCH_ROW, false);
	if (!err && o->limits)
		err = add(b, set, &b->base, "floor-inline", "floor_inline", BENCH_ROW, false);
	return err;
}

static int open_buddy(struct bench_bpf *b, struct bench_set *set)
{
	struct bench_setup s = { 0 };
	__u64 block = 16, bytes;
	int err;

	while (block < b->size)
		block *= 2;
	bytes = (2 * block * b->producers * b->objs + 2 * MIB) & ~(MIB - 1);
	if (block > MIB || bytes > BENCH_BUDDY_MAX) {
		bench_note(set, "buddy-lock: left out: blocks of up to 1 MiB, 1 GiB in all");
		return 0;
	}
	s.size = (__u32)bytes;
	err = bench_map(&b->base, BENCH_BUDDY_HEAD, 4096);
	if (!err)
		err = bench_map(&b->base, BENCH_BUDDY_META, bytes / 16);
	if (!err)
		err = bench_map(&b->base, BENCH_BUDDY, bytes);
	if (!err)
		err = bench_call(&b->base, "buddy_reset", &s);
	return err ? err : add(b, set, &b->base, "buddy-lock", "buddy", BENCH_ROW, false);
}

static int open_base(struct bench_bpf *b, const struct bench_options *o, struct bench_set *set)
{
	struct bench_obj *obj = &b->base;
	int err = bench_open(obj, BENCH_OBJ_BASE);

	if (!err)
		err = bench_own_arena(obj, 4096 * MIB);
	if (!err)
		err = bench_load(obj);
	if (!err)
		err = map_lanes(b, obj);
	if (!err)
		err = open_floor(b, o, set);
	if (!err)
		err = open_buddy(b, set);
	if (!err)
		err = add(b, set, obj, "loop", "loop", BENCH_LOOP, false);
	if (!err && o->bulk)
		err = add(b, set, obj, "loop", "loop_bulk", BENCH_LOOP, true);
	return err;
}

/* Without it the other rows still stand: whatever fails is a note. */
static int open_kernel(struct bench_bpf *b, struct bench_set *set)
{
	static const unsigned int sizes[] = { 16, 32, 64, 128, 256, 512, 1024, 2048, 4080 };
	char prog[32];
	size_t i;
	int err;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes) && sizes[i] < b->size; i++)
		;
	if (i == sizeof(sizes) / sizeof(*sizes)) {
		bench_note(set, "kernel: left out: bpf_obj_new has no objects of %u bytes (4080 at most)", b->size);
		return 0;
	}
	err = bench_open(&b->kobj, BENCH_OBJ_KOBJ);
	if (!err)
		err = bench_only_size(&b->kobj, sizes[i], 2 * b->producers * (b->stride / 8));
	if (!err)
		err = bench_own_arena(&b->kobj, ARN_MIN_ARENA);
	if (!err)
		err = bench_load(&b->kobj);
	if (!err)
		err = map_lanes(b, &b->kobj);
	if (err) {
		bench_note(set, "kernel: left out: %s", bench_last_error());
		return 0;
	}
	if (sizes[i] != b->size)
		bench_note(set, "kernel: objects of %u bytes, the next size made for it", sizes[i]);
	snprintf(prog, sizeof(prog), "kobj_%u", sizes[i]);
	err = add(b, set, &b->kobj, "kernel", prog, BENCH_ROW, false);
	snprintf(prog, sizeof(prog), "kswap_%u", sizes[i]);
	return err ? err : add(b, set, &b->kobj, "kernel exchange", prog, BENCH_SWAP, false);
}

int bench_bpf_open(const struct bench_options *o, struct bench_set *set, struct bench_bpf **out)
{
	struct bench_bpf *b = calloc(1, sizeof(*b));
	unsigned int i;
	int err;

	if (!b)
		return bench_fail(-ENOMEM, "%s: no memory", o->bench);
	*out = b;
	for (i = 0; i < o->nproducers; i++)
		if (o->producers[i] > b->producers)
			b->producers = o->producers[i];
	for (i = 0; i < o->nallocs; i++)
		if (o->allocs[i] > b->objs)
			b->objs = o->allocs[i];
	b->size = (o->size + 15) & ~15u;
	b->stride = ((b->objs * 8 + 63) & ~63u) + 64; /* arrays of a power of two would share cache sets */
	if (2ULL * b->producers * b->stride > BENCH_END - BENCH_BUFS)
		return bench_fail(-E2BIG,
				  "%s: pointers of %u producers with %u objects do not fit in 14 MiB: smaller -p or -n",
				  o->bench, b->producers, b->objs);
	err = arn_supported();
	if (err)
		return bench_fail(err, "%s", arn_last_error());
	b->crew = crew_new(b->producers);
	if (!b->crew)
		return bench_fail(-errno, "%s: no threads: %s", o->bench, strerror(errno));
	err = open_arenite(b, o, set);
	if (!err)
		err = open_base(b, o, set);
	if (!err)
		err = open_kernel(b, set);
	return err;
}
