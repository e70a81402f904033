/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * heap.c - heaps made, opened, shared and closed.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "shared.h"
#include "../core/root.h"

#define DEFAULT_BYTES (256ULL << 20)
#define DEFAULT_SLOTS 64u
#define MAX_SLOTS     4096u

static __u32 sys_page_shift(void)
{
	return (__u32)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
}

/* Options as given, with defaults filled in.  0 or -EINVAL. */
static int read_options(const struct arn_options *opts, struct arn_options *o)
{
	memset(o, 0, sizeof(*o));
	if (opts) {
		if (opts->sz < sizeof(size_t) || opts->sz > 4096)
			return arn_error(EINVAL, "arn_options: sz is %zu: set it to sizeof(struct arn_options)",
					 opts->sz);
		memcpy(o, opts, opts->sz < sizeof(*o) ? opts->sz : sizeof(*o));
	}
	if (!o->bytes)
		o->bytes = DEFAULT_BYTES;
	if (!o->user_slots)
		o->user_slots = DEFAULT_SLOTS;
	if (o->flags & ~(ARN_NATIVE | ARN_CHECKED))
		return arn_error(EINVAL, "arn_options: flags 0x%x are unknown to this version", o->flags);
	if (o->bytes < ARN_MIN_ARENA || o->bytes > ARN_MAX_ARENA)
		return arn_error(EINVAL, "arena of %llu bytes: must be 24 MiB to 4 GiB", (unsigned long long)o->bytes);
	if (o->user_slots > MAX_SLOTS)
		return arn_error(EINVAL, "%u user slots: at most %u", o->user_slots, MAX_SLOTS);
	o->bytes = ARN_ROUND_UP(o->bytes, ARN_CHUNK_SIZE);
	if (!o->percpu_max)
		o->percpu_max = ARN_PERCPU_MAX;
	if (!o->percpu_cpus)
		o->percpu_cpus = arn_percpu_possible();
	if (!o->percpu_budget)
		o->percpu_budget = ARN_PERCPU_BUDGET;
	if (o->percpu_max < ARN_PERCPU_MAX || o->percpu_max > ARN_PERCPU_MAX_LIMIT)
		return arn_error(EINVAL, "arn_options: percpu_max is %u: must be %u to %u bytes", o->percpu_max,
				 ARN_PERCPU_MAX, ARN_PERCPU_MAX_LIMIT);
	if (o->percpu_cpus > ARN_MAX_SLOTS)
		return arn_error(EINVAL, "arn_options: percpu_cpus is %u: at most %u", o->percpu_cpus, ARN_MAX_SLOTS);
	if (o->flags & ARN_NATIVE && (o->low_watermark || o->high_watermark))
		return arn_error(EINVAL, "native heap: it grows by itself: watermarks are for shared heaps");
	return arn_check_marks(o->low_watermark, o->high_watermark, o->bytes);
}

static struct arn_heap *heap_new(void)
{
	struct arn_heap *h = calloc(1, sizeof(*h));

	if (h)
		h->map_fd = h->thread_fd = h->bell_fd = -1;
	else
		arn_error(ENOMEM, "heap: no memory for its handle");
	return h;
}

static void heap_drop(struct arn_heap *h)
{
	int err = errno;

	if (h->bell_fd >= 0)
		close(h->bell_fd);
	if (h->sys)
		arn_sys_close(h);
	if (h->base && !h->lent)
		munmap(h->base, h->bytes);
	if (h->map_fd >= 0)
		close(h->map_fd);
	arn_shared_close(h);
	free(h);
	errno = err;
}

/*
 * Whether what lies at the arena's address is this arena: BPF writes a mark, which must be seen there.
 * 0; -ENOENT: the root has no pages to write to; -EEXIST: it is something else.
 */
static int lent_is_ours(struct arn_heap *h)
{
	__u64 mark = (__u64)getpid() << 32 | (__u32)(unsigned long)h, seen;
	int turn, err;

	/* Somebody else may do the same at this moment. */
	for (turn = 0; turn < 3; turn++) {
		err = arn_sys_mark_root(h, ++mark);
		if (err)
			return err;
		if (arn_peek(h->base + ARN_ROOT_OFF + offsetof(struct arn_root, mark), &seen) && seen == mark)
			return 0;
	}
	return arn_error(EEXIST, "arena at %p: this process has something else there", (void *)h->base);
}

static int reserve(struct arn_heap *heap, __u64 bytes)
{
	struct arn_root *r = arn_root(heap->base);
	int err = heap->native ? arn_native_reserve(heap, bytes) : arn_sys_reserve_bytes(heap, bytes);

	if (err == -E2BIG)
		return arn_error(
			E2BIG,
			"reserve of %llu bytes: the arena is mapped to its end (%llu bytes of heap): create a larger one",
			(unsigned long long)bytes, (unsigned long long)r->npages << ARN_PAGE_SHIFT);
	if (err == -ENOMEM)
		return arn_error(ENOMEM, "reserve of %llu bytes: the kernel has no pages for it (memory cgroup full?)",
				 (unsigned long long)bytes);
	return err;
}

/* Makes the root of a mapped arena. */
static int root_make(struct arn_heap *h, const struct arn_options *o)
{
	struct arn_geometry g = { .arena_bytes = h->bytes,
				  .sys_page_shift = sys_page_shift(),
				  .percpu_cpus = o->percpu_cpus,
				  .percpu_max = o->percpu_max,
				  .percpu_budget = o->percpu_budget };
	int cpus = 0, err;

	if (o->flags & ARN_CHECKED)
		g.flags |= ARN_F_CHECKED;
	if (h->native) {
		g.flags |= ARN_F_NATIVE;
	} else {
		cpus = libbpf_num_possible_cpus();
		if (cpus < 0)
			return arn_error(-cpus, "heap: cannot tell the possible CPUs: %s", strerror(-cpus));
	}
	g.ncpus = (__u32)cpus;
	if (g.percpu_cpus < g.ncpus)
		return arn_error(EINVAL, "arn_options: percpu_cpus is %u: this machine may have %u CPUs", g.percpu_cpus,
				 g.ncpus);
	g.nslots = g.ncpus + o->user_slots;
	if (!h->native) {
		err = arn_sys_load(h);
		if (!err && arn_sys_map_root(h, ARN_ROOT_OFF, arn_root_bytes(&g) >> g.sys_page_shift))
			err = arn_error(
				ENOMEM,
				"heap: no kernel pages for its root (or somebody uses offset 16 MiB of the arena)");
		if (!err && h->lent) {
			err = lent_is_ours(h);
			if (err)
				arn_sys_unmap_root(h, ARN_ROOT_OFF, arn_root_bytes(&g) >> g.sys_page_shift);
		}
		if (err)
			return err;
	}
	err = arn_root_init(h->base, &g);
	if (err) {
		if (!h->native)
			arn_sys_unmap_root(h, ARN_ROOT_OFF, arn_root_bytes(&g) >> g.sys_page_shift);
		return arn_error(EINVAL, "arena of %llu bytes: too small for %u slots: create a larger one",
				 (unsigned long long)h->bytes, g.nslots);
	}
	if (o->low_watermark) {
		err = reserve(h, o->low_watermark);
		if (err) {
			arn_sys_trim_pages(h, 0, ARN_MAX_CHUNKS, ARN_RECLAIM_NONE);
			arn_sys_unmap_root(h, ARN_ROOT_OFF, arn_root_bytes(&g) >> g.sys_page_shift);
			return err;
		}
	}
	arn_set_marks(h, o->low_watermark, o->high_watermark);
	return 0;
}

static struct arn_heap *create_native(const struct arn_options *o)
{
	struct arn_heap *h = heap_new();

	if (!h)
		return NULL;
	h->native = true;
	h->bytes = o->bytes;
	h->base = arn_map_anywhere(-1, h->bytes);
	if (!h->base) {
		arn_error(errno, "native heap: no room for %llu bytes at a 4 GiB boundary: %s",
			  (unsigned long long)h->bytes, strerror(errno));
		goto fail;
	}
	if (root_make(h, o))
		goto fail;
	arn_heap_register(h);
	return h;
fail:
	heap_drop(h);
	return NULL;
}

/* Maps the arena behind h->map_fd at the address its info names. */
static int map_arena(struct arn_heap *h)
{
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);
	int err;

	if (bpf_map_get_info_by_fd(h->map_fd, &info, &len))
		return arn_error(errno, "fd %d: not a BPF map: %s", h->map_fd, strerror(errno));
	if (info.type != BPF_MAP_TYPE_ARENA)
		return arn_error(EINVAL, "map '%s': type %u is not an arena", info.name, info.type);
	if ((info.map_flags & ARN_MAP_FLAGS) != ARN_MAP_FLAGS)
		return arn_error(EINVAL, "arena '%s': made without BPF_F_SEGV_ON_FAULT: declare it with ARN_ARENA",
				 info.name);
	h->bytes = (__u64)info.max_entries << sys_page_shift();
	if (!info.map_extra || info.map_extra % ARN_ADDR_STEP)
		return arn_error(
			EINVAL, "arena '%s': its address 0x%llx is not 4 GiB-aligned: call arn_prepare_map before load",
			info.name, (unsigned long long)info.map_extra);
	if (h->bytes < ARN_MIN_ARENA || h->bytes > ARN_MAX_ARENA || h->bytes % ARN_CHUNK_SIZE)
		return arn_error(EINVAL, "arena '%s': %llu bytes: must be 24 MiB to 4 GiB, in whole MiB", info.name,
				 (unsigned long long)h->bytes);
	err = arn_map_at(h->map_fd, info.map_extra, h->bytes);
	if (err == -EEXIST && arn_heap_at((arn_base)(unsigned long)info.map_extra))
		return arn_error(EEXIST,
				 "arena '%s': this process has it open already, or another heap at its address 0x%llx",
				 info.name, (unsigned long long)info.map_extra);
	h->lent = err == -EEXIST; /* libbpf maps the arena of a skeleton that it loads */
	if (err && !h->lent)
		return arn_error(-err, "arena '%s': cannot map it at 0x%llx: %s", info.name,
				 (unsigned long long)info.map_extra, strerror(-err));
	h->base = (arn_base)(unsigned long)info.map_extra;
	return 0;
}

static struct arn_heap *create_shared(const struct arn_options *o)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = ARN_MAP_FLAGS);
	struct arn_heap *h;

	if (arn_supported())
		return NULL;
	opts.map_extra = arn_addr_free();
	if (!opts.map_extra) {
		arn_error(ENOMEM, "arena: no free 4 GiB of addresses from 0x%llx", ARN_ADDR_FIRST);
		return NULL;
	}
	h = heap_new();
	if (!h)
		return NULL;
	h->map_fd = bpf_map_create(BPF_MAP_TYPE_ARENA, o->name ? o->name : "arenite", 0, 0,
				   (__u32)(o->bytes >> sys_page_shift()), &opts);
	if (h->map_fd < 0) {
		arn_error(errno, "arena '%s' of %llu bytes: the kernel refused it: %s", o->name ? o->name : "arenite",
			  (unsigned long long)o->bytes, strerror(errno));
		goto fail;
	}
	if (map_arena(h) || root_make(h, o) || arn_shared_open(h))
		goto fail;
	arn_heap_register(h);
	return h;
fail:
	heap_drop(h);
	return NULL;
}

struct arn_heap *arn_create(const struct arn_options *opts)
{
	struct arn_options o;

	if (read_options(opts, &o))
		return NULL;
	return o.flags & ARN_NATIVE ? create_native(&o) : create_shared(&o);
}

/* Whether a root is there: 0, -ENOENT, or why that cannot be told. */
static int root_mapped(struct arn_heap *h)
{
	__u64 word;

	if (h->lent)
		return lent_is_ours(h);
	return arn_peek(h->base + ARN_ROOT_OFF, &word) ? 0 : -ENOENT;
}

struct arn_heap *arn_open_fd(int fd, __u32 flags, const struct arn_options *opts)
{
	struct arn_heap *h;
	struct arn_options o;
	const char *wrong;
	int err;

	if (read_options(opts, &o))
		return NULL;
	h = heap_new();
	if (!h)
		return NULL;
	h->map_fd = dup(fd);
	if (h->map_fd < 0) {
		arn_error(errno, "fd %d: %s", fd, strerror(errno));
		goto fail;
	}
	if (map_arena(h))
		goto fail;
	err = root_mapped(h);
	if (err && err != -ENOENT)
		goto fail;
	wrong = err ? "it holds no heap" : arn_root_wrong(h->base, arn_root(h->base), h->bytes);
	if (err && flags & ARN_INIT) {
		if (root_make(h, &o))
			goto fail;
	} else if (wrong) {
		arn_error(EINVAL, "arena at %p: %s: open a heap's arena, or pass ARN_INIT for a fresh one",
			  (void *)h->base, wrong);
		goto fail;
	}
	if (arn_shared_open(h))
		goto fail;
	if (h->lent)
		madvise(h->base, h->bytes, MADV_DONTFORK);
	arn_heap_register(h);
	return h;
fail:
	heap_drop(h);
	return NULL;
}

struct arn_heap *arn_open(const char *path)
{
	struct arn_heap *h;
	int fd = bpf_obj_get(path);

	if (fd < 0) {
		arn_error(errno, "pin '%s': %s: name a heap pinned with arn_pin, in a mounted bpffs%s", path,
			  strerror(errno), errno == EPERM || errno == EACCES ? ", as root" : "");
		return NULL;
	}
	h = arn_open_fd(fd, 0, NULL);
	close(fd);
	return h;
}

int arn_pin(struct arn_heap *heap, const char *path)
{
	int err = arn_alive(heap);

	if (err)
		return err;
	if (heap->native)
		return arn_error(EINVAL, "native heap: only a shared one can be pinned");
	if (bpf_obj_pin(heap->map_fd, path))
		return arn_error(errno, "pin '%s': %s", path, strerror(errno));
	return 0;
}

int arn_map_fd(const struct arn_heap *heap)
{
	return heap->native ? -EINVAL : heap->map_fd;
}

void *arn_base_address(const struct arn_heap *heap)
{
	return heap->base;
}

void arn_close(struct arn_heap *heap)
{
	if (!heap)
		return;
	if (!heap->gone) {
		if (heap->keeper)
			arn_keeper_stop(heap);
		arn_leave_all(heap);
	}
	arn_heap_unregister(heap);
	if (heap->gone)
		heap->base = NULL; /* the mapping did not come along */
	heap_drop(heap);
}

int arn_alive(const struct arn_heap *heap)
{
	return heap->gone ? arn_error(EOWNERDEAD,
				      "heap: this process is a forked child of the one that opened it: open it anew")
			  : 0;
}

int arn_reserve(struct arn_heap *heap, __u64 bytes)
{
	int err = arn_alive(heap);

	return err ? err : reserve(heap, bytes);
}

long long arn_trim(struct arn_heap *heap)
{
	long long pages;
	int err = arn_alive(heap);

	if (err)
		return err;
	if (heap->native)
		return arn_native_trim(heap);
	err = arn_sys_drain_cpus(heap);
	if (err)
		return err;
	arn_shared_drain(heap);
	pages = arn_sys_trim_pages(heap, arn_load_relaxed(&arn_root(heap->base)->low_pages), ARN_MAX_CHUNKS,
				   ARN_RECLAIM_ALL);
	return pages < 0 ? pages : pages << ARN_PAGE_SHIFT;
}
