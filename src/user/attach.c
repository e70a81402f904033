/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * attach.c - BPF objects and the heap's arena.
 *
 * libbpf drops the image of an object's arena globals when the map is reused, and two objects would
 * lay theirs over each other: so the image is placed here, for one object a heap.  libbpf before 1.7
 * relocates globals to the arena's start, later ones to its end.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"
#include "../core/directory.h"

#define MAP_NAME "arn_arena"
#define ANY_NAME "arn_pages_any_context" /* a variable of objects built with ARN_PAGES_ANY_CONTEXT */

static bool globals_last(void)
{
	return libbpf_major_version() > 1 || libbpf_minor_version() >= 7;
}

/* Chunks that the image at the arena's end needs stay out of the heap.  False: the heap has one. */
static bool take_tail(struct arn_heap *heap, __u64 off)
{
	__u32 chunk;

	for (chunk = (__u32)(off >> ARN_CHUNK_SHIFT); chunk < heap->bytes >> ARN_CHUNK_SHIFT; chunk++) {
		__u32 was = arn_cas32_full(arn_dir(heap->base, chunk), ARN_CHUNK_NONE, ARN_CHUNK_TAKEN);

		if (was != ARN_CHUNK_NONE && was != ARN_CHUNK_TAKEN)
			return false;
	}
	return true;
}

static int place_globals(struct arn_heap *heap, const struct bpf_object *obj, const void *image, size_t size)
{
	struct arn_root *r = arn_root(heap->base);
	__u64 page = 1ULL << r->sys_page_shift, bytes = (size + page - 1) & ~(page - 1);
	__u64 off = globals_last() ? heap->bytes - bytes : 0;
	int err;

	if (bytes > ARN_ROOT_OFF)
		return arn_error(E2BIG, "object '%s': %zu bytes of arena globals: at most 16 MiB",
				 bpf_object__name(obj), size);
	err = arn_sys_load(heap);
	if (err)
		return err;
	if (arn_cas32_full(&r->globals_bytes, 0, (__u32)bytes) != 0)
		return arn_error(
			EBUSY,
			"object '%s': another object's arena globals are in this heap: only one object a heap may have some",
			bpf_object__name(obj));
	if ((off && !take_tail(heap, off)) || arn_sys_map_root(heap, (__u32)off, (__u32)(bytes >> r->sys_page_shift))) {
		arn_store_relaxed(&r->globals_bytes, 0);
		return arn_error(ENOMEM, "object '%s': no place for its arena globals: attach it before the heap grows",
				 bpf_object__name(obj));
	}
	r->globals_off = off;
	arn_add64_full(&r->meta_mapped, bytes >> r->sys_page_shift);
	memcpy(heap->base + off, image, size);
	return 0;
}

/* The kernel would say so too, of one of the object's programs and in the verifier's words. */
static int loadable(const struct bpf_object *obj)
{
	const struct btf *btf = bpf_object__btf(obj);
	int has;

	if (!btf || btf__find_by_name_kind(btf, ANY_NAME, BTF_KIND_VAR) < 0)
		return 0;
	has = arn_has("pages-any-context");
	if (!has)
		return arn_error(
			ENOTSUP,
			"object '%s': built with ARN_PAGES_ANY_CONTEXT, but this kernel gives pages to sleepable programs only ('arenite features'): load one built without it",
			bpf_object__name(obj));
	return has < 0 ? has : 0;
}

int arn_attach(struct arn_heap *heap, struct bpf_object *obj)
{
	struct bpf_map *map;
	size_t size = 0;
	void *image;
	int err = arn_alive(heap);

	if (err)
		return err;
	if (heap->native)
		return arn_error(EINVAL, "native heap: BPF cannot reach it: create the heap without ARN_NATIVE");
	map = bpf_object__find_map_by_name(obj, MAP_NAME);
	if (!map || bpf_map__type(map) != BPF_MAP_TYPE_ARENA)
		return arn_error(ENOENT, "object '%s': no arena map '" MAP_NAME "': include arenite.bpf.h",
				 bpf_object__name(obj));
	err = loadable(obj);
	if (err)
		return err;
	image = bpf_map__initial_value(map, &size);
	if (image && size) {
		err = place_globals(heap, obj, image, size);
		if (err)
			return err;
	}
	err = bpf_map__reuse_fd(map, heap->map_fd);
	if (err)
		return arn_error(-err, "object '%s': its arena cannot be this heap's: %s", bpf_object__name(obj),
				 strerror(-err));
	return arn_attach_growth(heap, obj);
}

void *arn_globals(const struct arn_heap *heap)
{
	struct arn_root *r = arn_root(heap->base);

	if (arn_alive(heap))
		return NULL;
	return r->globals_bytes ? heap->base + r->globals_off : NULL;
}

int arn_prepare_map(struct bpf_map *map, __u64 bytes)
{
	__u64 addr = arn_addr_free();
	size_t size;
	int err;

	if (bpf_map__type(map) != BPF_MAP_TYPE_ARENA)
		return arn_error(EINVAL, "map '%s': not an arena", bpf_map__name(map));
	if (bytes < ARN_MIN_ARENA || bytes > ARN_MAX_ARENA || bytes % ARN_CHUNK_SIZE)
		return arn_error(EINVAL, "arena '%s' of %llu bytes: must be 24 MiB to 4 GiB, in whole MiB",
				 bpf_map__name(map), (unsigned long long)bytes);
	if (!addr)
		return arn_error(ENOMEM, "arena '%s': no free 4 GiB of addresses", bpf_map__name(map));
	if (bpf_map__initial_value(map, &size) && size && !globals_last())
		return arn_error(
			EINVAL,
			"arena '%s': libbpf %s crashes loading arena globals with BPF_F_SEGV_ON_FAULT: use arn_create and arn_attach",
			bpf_map__name(map), libbpf_version_string());
	err = bpf_map__set_max_entries(map, (__u32)(bytes / (__u64)sysconf(_SC_PAGESIZE)));
	if (!err)
		err = bpf_map__set_map_flags(map, ARN_MAP_FLAGS);
	if (!err)
		err = bpf_map__set_map_extra(map, addr);
	return err ? arn_error(-err, "arena '%s': %s", bpf_map__name(map), strerror(-err)) : 0;
}
