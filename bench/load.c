// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * load.c - the benchmark's BPF objects, which the build embeds (bpftool gen skeleton; only the bytes
 * of the skeletons are used).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arenite/arenite.h>
#include "load.h"
#include "runner.h"

#include "base.skel.h"
#include "kobj.skel.h"
#include "malloc.skel.h"
#include "nmi.skel.h"
#include "percpu.skel.h"
#include "pkobj.skel.h"
#include "shared.skel.h"

/* The last line that libbpf had to say: the cause in our messages. */
static char said[200];

static int keep_last(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[400], *end;

	if (getenv("ARENITE_DEBUG"))
		return vfprintf(stderr, fmt, ap);
	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	end = strchr(line, '\n');
	if (end)
		*end = 0;
	if (line[0] && !strstr(line, "failed to load object"))
		snprintf(said, sizeof(said), " (%.180s)", line);
	return 0;
}

int bench_open(struct bench_obj *o, enum bench_obj_id id)
{
	static const struct {
		const char *name;
		const void *(*bytes)(size_t *size);
	} file[] = {
		[BENCH_OBJ_MALLOC] = { "malloc", malloc_bpf__elf_bytes },
		[BENCH_OBJ_BASE] = { "base", base_bpf__elf_bytes },
		[BENCH_OBJ_KOBJ] = { "kobj", kobj_bpf__elf_bytes },
		[BENCH_OBJ_NMI] = { "nmi", nmi_bpf__elf_bytes },
		[BENCH_OBJ_PERCPU] = { "percpu", percpu_bpf__elf_bytes },
		[BENCH_OBJ_PKOBJ] = { "pkobj", pkobj_bpf__elf_bytes },
		[BENCH_OBJ_SHARED] = { "shared", shared_bpf__elf_bytes },
	};
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = file[id].name);
	size_t size;
	const void *bytes = file[id].bytes(&size);

	libbpf_set_print(keep_last);
	said[0] = 0;
	o->name = file[id].name;
	o->obj = bpf_object__open_mem(bytes, size, &opts);
	if (!o->obj)
		return bench_fail(-errno, "object '%s': cannot be opened: %s%s: libbpf 1.4 or later is needed", o->name,
				  strerror(errno), said);
	return 0;
}

int bench_own_arena(struct bench_obj *o, __u64 bytes)
{
	struct bpf_map *map = bpf_object__find_map_by_name(o->obj, "bench_arena");

	if (!map || arn_prepare_map(map, bytes))
		return bench_fail(-ENOMEM, "object '%s': no place for its arena: %s", o->name, arn_last_error());
	return 0;
}

int bench_only_size(struct bench_obj *o, unsigned int size, unsigned int slots)
{
	struct bpf_program *prog;
	char keep[32], end[16];
	struct bpf_map *map;
	const char *at;
	int err = 0;

	snprintf(keep, sizeof(keep), "slots_%u", size);
	snprintf(end, sizeof(end), "_%u", size);
	bpf_object__for_each_map(map, o->obj) {
		if (strncmp(bpf_map__name(map), "slots_", 6))
			continue;
		if (strcmp(bpf_map__name(map), keep))
			err = err ? err : bpf_map__set_autocreate(map, false);
		else
			err = err ? err : bpf_map__set_max_entries(map, slots);
	}
	bpf_object__for_each_program(prog, o->obj) {
		at = strrchr(bpf_program__name(prog), '_');
		if (!strncmp(bpf_program__name(prog), "bench_", 6))
			continue;
		err = err ? err : bpf_program__set_autoload(prog, at && !strcmp(at, end));
	}
	return err ? bench_fail(err, "object '%s': %s", o->name, strerror(-err)) : 0;
}

int bench_load(struct bench_obj *o)
{
	int err;

	said[0] = 0;
	err = bpf_object__load(o->obj);
	if (err)
		return bench_fail(err,
				  "object '%s': the kernel does not load it: %s%s; ARENITE_DEBUG=1 shows all it says",
				  o->name, strerror(-err), said);
	return 0;
}

void bench_close(struct bench_obj *o)
{
	bpf_object__close(o->obj);
	o->obj = NULL;
}

int bench_prog(const struct bench_obj *o, const char *prefix, const char *name)
{
	struct bpf_program *prog;
	char full[64];

	snprintf(full, sizeof(full), "%s%s", prefix, name);
	prog = bpf_object__find_program_by_name(o->obj, full);
	return prog ? bpf_program__fd(prog) : -ENOENT;
}

int bench_call(const struct bench_obj *o, const char *prog, struct bench_setup *s)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = s, .ctx_size_in = sizeof(*s));
	int fd = bench_prog(o, "", prog);

	if (fd < 0)
		return bench_fail(fd, "object '%s': no program '%s': rebuild", o->name, prog);
	if (bpf_prog_test_run_opts(fd, &run))
		return bench_fail(-errno, "object '%s', program '%s': %s", o->name, prog, strerror(errno));
	if (s->err)
		return bench_fail((int)s->err, "object '%s', program '%s': %s: smaller -p, -n or -s, or more memory",
				  o->name, prog, strerror((int)-s->err));
	return 0;
}

int bench_map(const struct bench_obj *o, __u64 off, __u64 bytes)
{
	__u64 page = (__u64)sysconf(_SC_PAGESIZE);
	struct bench_setup s = { .off = off, .pages = (bytes + page - 1) / page, .page_size = (__u32)page };

	return bench_call(o, "bench_map", &s);
}
