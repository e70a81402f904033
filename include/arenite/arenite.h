/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * arenite.h - libarenite, the user side: heaps made, opened, grown, measured and allocated from.
 *
 * A heap is native (host memory of this process: no root, no BPF) or shared (a BPF arena that BPF
 * programs and threads of any number of processes allocate from; each frees what the other allocated).
 * Calls are the same on both where both have them.
 *
 * Errors: calls that return a pointer return NULL and set errno; calls that return int return 0 (or
 * a count) or -errno.  arn_last_error() then says in a line what object, why, and what helps.
 *
 * Threads: all calls may be made from any thread at once, except arn_close against any other call
 * on the same heap.  A forked child must reopen: there every call on the parent's handle fails with
 * -EOWNERDEAD.
 *
 * A process that is killed at any instruction leaves a shared heap whole: nobody waits for it, and what its
 * threads had cached comes back by arn_reap.  Lost are its objects, and the one a call was about to return.
 */
#ifndef ARENITE_H
#define ARENITE_H

#include <stddef.h>
#include <linux/types.h>
#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef ARN_SHARED_LIBRARY
#define ARN_API __attribute__((visibility("default")))
#else
#define ARN_API
#endif

struct arn_heap;
struct bpf_map;
struct bpf_object;

#define ARN_NATIVE  1u /* arn_create: host memory, no BPF */
#define ARN_CHECKED 2u /* arn_create, arn_open_fd: canaries, poison, quarantine (slower) */
#define ARN_INIT    4u /* arn_open_fd: make a root in an arena that has none */

struct arn_options {
	size_t sz; /* sizeof(struct arn_options): the struct grows */
	__u64 bytes; /* size of the arena, 24 MiB to 4 GiB; 0: 256 MiB */
	__u32 flags; /* ARN_NATIVE, ARN_CHECKED */
	__u32 user_slots; /* places for user threads' caches; 0: 64 */
	const char *name; /* of the arena map, at most 15 characters; NULL: "arenite" */
	__u32 percpu_max; /* largest per-CPU object, 512 to 4096; 0: 512.  Raised: coarser classes above 128 */
	__u32 percpu_cpus; /* copies of a per-CPU object; 0: possible CPUs (a shared heap has no fewer) */
	__u64 percpu_budget; /* what all slots may keep of one class of per-CPU objects; 0: 16 MiB */
	__u64 low_watermark; /* shared heaps: bytes, see Watermarks below; 0: none */
	__u64 high_watermark;
};

/* ---- What this machine has ---- */

/* 0 if shared heaps work here, else -errno; arn_last_error() names what is missing. */
ARN_API int arn_supported(void);

/* The last failure of this thread: object, cause, remedy.  Never NULL. */
ARN_API const char *arn_last_error(void);

ARN_API const char *arn_version(void);

/* Something of the kernel's that heaps use, or would. */
struct arn_feature {
	const char *name; /* ours: "pages-any-context" */
	const char *kind; /* "kfunc", "helper", "program type", "map flag", ... */
	const char *what; /* the kernel's name for it, or what was tried */
	const char *older; /* its name on earlier kernels, or "" */
	const char *since; /* Linux version, for messages only: nothing is decided by it */
	const char *without; /* what follows where it is missing */
	const char *as; /* of the kernel's names the one found, NULL: none, or it has no name */
	int needed; /* shared heaps need it: without it arn_supported() says so */
	int found; /* 1, 0, or -EPERM: this process has not the rights to ask (other negatives likewise) */
};

/*
 * The i-th line of the table of what the running kernel has (feature.h), from 0; NULL: there are no more.
 * Filled by the first call of these two, of arn_supported, arn_create or arn_attach in a process, which takes some 20
 * ms; what could not be asked is asked again.  The structs grow at their end.
 */
ARN_API const struct arn_feature *arn_feature(unsigned int i);

/* One of them by our name: its found; -ENOENT: no such line. */
ARN_API int arn_has(const char *name);

/* ---- Heaps begin and end ---- */

/*
 * A new heap.  opts may be NULL.  Shared heaps need CAP_BPF and CAP_PERFMON (EPERM) and a kernel
 * with arenas (ENOTSUP).  Mapped for objects is what the low watermark asks for, without one nothing:
 * arn_reserve grows it.
 */
ARN_API struct arn_heap *arn_create(const struct arn_options *opts);

/* The heap whose arena map is pinned at path, or behind a map fd (which is duplicated). */
ARN_API struct arn_heap *arn_open(const char *path);
ARN_API struct arn_heap *arn_open_fd(int fd, __u32 flags, const struct arn_options *opts);

/* Between open and load of an object: its ARN_ARENA map becomes this heap.  One object a heap may
 * bring __arena globals of its own (-EBUSY for a second one); -ENOENT: it has no such map; -ENOTSUP: it was
 * built with ARN_PAGES_ANY_CONTEXT, and arn_has("pages-any-context") is 0. */
ARN_API int arn_attach(struct arn_heap *heap, struct bpf_object *obj);

/* Between open and load, for an arena that a skeleton makes itself and arn_open_fd(ARN_INIT) then
 * adopts: sets size, flags and a free 4 GiB-aligned address. */
ARN_API int arn_prepare_map(struct bpf_map *map, __u64 bytes);

/* Pins the arena map: what keeps a heap alive without a process, and how others find it. */
ARN_API int arn_pin(struct arn_heap *heap, const char *path);

ARN_API int arn_map_fd(const struct arn_heap *heap); /* -EINVAL on a native heap */
ARN_API void *arn_base_address(const struct arn_heap *heap);

/* Where the __arena globals of the attached object lie; NULL: no object brought any.  (A skeleton's
 * own pointer to them stays NULL: its arena is this heap's.) */
ARN_API void *arn_globals(const struct arn_heap *heap);

/* Ends this process's use.  A native heap is gone; a shared one lives while pinned or used. */
ARN_API void arn_close(struct arn_heap *heap);

/* ---- Memory ---- */

/* Maps chunks until at least bytes lie in free page runs.  Shared: runs a BPF program. */
ARN_API int arn_reserve(struct arn_heap *heap, __u64 bytes);

/* Gives back what it can: caches (of this thread; shared: of every CPU; native: of no thread), depot,
 * empty slabs, then whole chunks to the kernel, as long as the low watermark stays free.  Returns the
 * bytes unmapped, or -errno. */
ARN_API long long arn_trim(struct arn_heap *heap);

/*
 * ---- Watermarks and the keeper (shared heaps) ----
 *
 * Programs that may not sleep cannot map memory.  An allocation that leaves less than the low
 * watermark in free page runs has somebody map more, up to a quarter and a chunk above it: a work
 * queue (objects attached by arn_attach to a heap with a low watermark, of networking, cgroup, socket
 * and syscall programs only, while this process has the heap open), a keeper, and for tracing programs
 * that call it the task they interrupted (arn_grow_later in arenite.bpf.h).  What is allocated before
 * that has happened comes out of the low watermark: set it to the largest burst.
 */
struct arn_keeper_options {
	size_t sz; /* sizeof(struct arn_keeper_options) */
	__u64 low_watermark; /* for the heap from now on; both 0: as they are */
	__u64 high_watermark;
};

/*
 * Starts a thread that keeps the heap: it maps memory when less than the low watermark is free, and
 * gives chunks back while more than the high watermark lies free or cached (0: never).  It sleeps
 * until it is asked.  opts may be NULL.  One keeper a heap, under a lease in the heap: -EBUSY while
 * another one, of whatever process, holds it; a dead one's is taken over.  -ENOTSUP: a native heap,
 * which grows by itself.  -EINVAL: watermarks beyond the arena, or closer than 2 MiB.
 */
ARN_API int arn_keeper_start(struct arn_heap *heap, const struct arn_keeper_options *opts);

/* Ends it and gives the lease back; arn_close does so too.  -ENOENT: none runs on this handle. */
ARN_API int arn_keeper_stop(struct arn_heap *heap);

/* size is sizeof(*st) of the caller.  On an error *st is all 0. */
ARN_API int arn_get_stats(struct arn_heap *heap, struct arn_stats *st, size_t size);

/*
 * Walks every structure: each object, magazine and page in exactly one place.  For a heap at rest.
 * 0, or -EUCLEAN with arn_last_error() saying where; it ends on any contents.
 */
ARN_API int arn_check(struct arn_heap *heap);

/*
 * The same for a heap in use, in some seconds at most: it walks until the heap holds still, or a walk finds
 * nothing.  0; -EUCLEAN: something contradicts, and that lasts; -EAGAIN: it was changing all the time, and
 * nothing that could be told in spite of that was wrong.
 */
ARN_API int arn_check_live(struct arn_heap *heap);

/* A live object, for arn_live's caller. */
struct arn_object {
	__u64 addr; /* in the opener's address space */
	__u64 size; /* of its class or page run; checked heaps: as asked for */
	__u32 tag; /* checked heaps: arn_set_tag of whoever allocated it */
	__u32 percpu; /* 1: a per-CPU object; addr is CPU 0's copy, size a copy's */
};

/*
 * Calls fn for every allocated object, until it returns non-zero; returns that, or how many there
 * were as a long, or -errno.  What is left when a program should have freed everything leaked.
 */
ARN_API long arn_live(struct arn_heap *heap, int (*fn)(const struct arn_object *, void *), void *arg);

/*
 * Shared heaps: gives back what threads had cached that are gone without arn_close or the end of the thread:
 * their process was killed.  Returns how many slots that were, or -errno.  0 on a native heap.
 */
ARN_API long arn_reap(struct arn_heap *heap);

/* ---- Objects ---- */

/*
 * Memory of at least size bytes, aligned to 16, a power-of-two size up to 4 GiB to itself.
 * arn_malloc(h, 0) gives a minimal object.  ENOMEM: heap full; E2BIG: above half the arena.
 * Shared heaps: EPERM: a BPF program must run for this call, and may not be loaded; EUCLEAN: the heap's
 * structures were overwritten.
 * Lock-free but for a refill of a slab.  May be called from a signal handler.  Native heaps: one on top of
 * a refill gets what caches and depot hold, else ENOMEM.  Shared heaps: not as the first allocation of a
 * process, which loads a program (on top of that: EAGAIN); arn_reap loads it too.
 */
ARN_API void *arn_malloc(struct arn_heap *heap, size_t size);
ARN_API void *arn_calloc(struct arn_heap *heap, size_t n, size_t size);
/* align: a power of two, at most half the arena (EINVAL otherwise). */
ARN_API void *arn_aligned_alloc(struct arn_heap *heap, size_t align, size_t size);
/* As realloc; on failure the old object is untouched. realloc(p, 0) gives a minimal object. */
ARN_API void *arn_realloc(struct arn_heap *heap, void *ptr, size_t size);
/* 0; -EINVAL: not an allocated object of this heap, nothing was changed.  NULL is nothing. */
ARN_API int arn_free(struct arn_heap *heap, void *ptr);
/* Bytes usable at ptr, 0 if it is no object. */
ARN_API size_t arn_usable_size(struct arn_heap *heap, const void *ptr);
/* Checked heaps: what this thread allocates from now on carries tag.  0; -EAGAIN: no slot is free. */
ARN_API int arn_set_tag(struct arn_heap *heap, __u32 tag);
/* Any n; returns how many were stored in out, errno says why fewer. */
ARN_API size_t arn_malloc_bulk(struct arn_heap *heap, size_t size, size_t n, void **out);
/* Returns how many were freed; -EINVAL only when none was and n > 0 (NULLs count as freed). */
ARN_API long arn_free_bulk(struct arn_heap *heap, void **ptrs, size_t n);

/* ---- Pointer rings: objects handed to another thread, process or BPF program ---- */

/*
 * A ring lies in the heap; a handle is this process's hold on it, and its calls may be made from any thread
 * at once as far as the kind allows: _spsc one producer at a time and one consumer at a time, _mpsc any
 * number of producers, one consumer at a time (a signal handler counts).  Either end may be a BPF program,
 * or a thread of another process.
 *
 * size: a power of two up to 65,536 (EINVAL), and as many objects fit.  Other errors are those of
 * arn_aligned_alloc, which the ring's memory comes from.
 */
struct arn_ring_handle;
ARN_API struct arn_ring_handle *arn_ring_create_spsc(struct arn_heap *heap, __u32 size);
ARN_API struct arn_ring_handle *arn_ring_create_mpsc(struct arn_heap *heap, __u32 size);

/* The ring that BPF, another thread or another process made, by its address.  EINVAL: there is none. */
ARN_API struct arn_ring_handle *arn_ring_open(struct arn_heap *heap, struct arn_ring *ring);

/* Its address, good in BPF and in every process that has the heap open. */
ARN_API struct arn_ring *arn_ring_address(const struct arn_ring_handle *ring);
ARN_API __u32 arn_ring_size(const struct arn_ring_handle *ring);

/* Gives back the handle; before arn_close.  destroy also frees the ring, which nobody uses any more; objects
 * still in it are not freed. */
ARN_API void arn_ring_close(struct arn_ring_handle *ring);
ARN_API int arn_ring_destroy(struct arn_ring_handle *ring);

/*
 * 1; 0: full; -EINVAL: a ring of the other kind, or obj is not an address in the arena that is aligned to 16.
 * The consumer sees what was written to the object before.  _spsc: wait-free; -EUCLEAN: the ring is corrupt.
 * _mpsc: lock-free; -EAGAIN: 64 times another producer was first, or arn_ring_skip overtook the call.
 */
ARN_API int arn_ring_enqueue_spsc(struct arn_ring_handle *ring, void *obj);
ARN_API int arn_ring_enqueue_mpsc(struct arn_ring_handle *ring, void *obj);

/* The oldest object, or NULL: errno is EAGAIN if the ring is empty, EINVAL or EUCLEAN as above.  Wait-free. */
ARN_API void *arn_ring_dequeue_spsc(struct arn_ring_handle *ring);
ARN_API void *arn_ring_dequeue_mpsc(struct arn_ring_handle *ring);

/*
 * Many at once, in order: at most n objects and at least so many, or none.  least = n: all; least = 1: as
 * many as fit, or are there.  Returns how many, 0, or an error as above and then none: -EINVAL if any is no
 * such address.  _mpsc: others' objects do not come between; fewer than least only if arn_ring_skip overtook
 * the call (the first so many are in the ring then), or, dequeued, if the whole ring is full of skipped places.
 */
ARN_API int arn_ring_enqueue_bulk_spsc(struct arn_ring_handle *ring, void **objs, __u32 least, __u32 n);
ARN_API int arn_ring_enqueue_bulk_mpsc(struct arn_ring_handle *ring, void **objs, __u32 least, __u32 n);
ARN_API int arn_ring_dequeue_bulk_spsc(struct arn_ring_handle *ring, void **out, __u32 least, __u32 n);
ARN_API int arn_ring_dequeue_bulk_mpsc(struct arn_ring_handle *ring, void **out, __u32 least, __u32 n);

/* Objects in the ring, as far as one can tell from outside; _mpsc: with places reserved and not filled. */
ARN_API int arn_ring_count(const struct arn_ring_handle *ring);

/*
 * _mpsc: a producer that is killed, or sleeps, in the middle of a call leaves a place at which the consumer
 * stops.  This has the consumer pass over such places up to the next object; a producer that wakes up later
 * finds its call failed and still has its object.  Returns how many.  For who sees arn_ring_count() above 0
 * and nothing to dequeue for longer than a producer may take; any thread or process may call it at any time.
 */
ARN_API int arn_ring_skip(struct arn_ring_handle *ring);

/* ---- Per-CPU objects (also on shared heaps) ---- */

/*
 * One object, a copy for each possible CPU, a page apart; every copy is zero.  The pointer is CPU 0's copy
 * and the object's name; pointers into it have their counterparts too.  EINVAL: size is 0; E2BIG: above
 * the heap's limit (512 bytes unless created with more); ENOMEM.  On a shared heap each call runs a BPF
 * program (about a microsecond), and EPERM is possible.
 */
ARN_API void *arn_percpu_alloc(struct arn_heap *heap, size_t size);
/* As arn_free, for per-CPU objects only; arn_free refuses those. */
ARN_API int arn_percpu_free(struct arn_heap *heap, void *ptr);
/* As arn_malloc_bulk and arn_free_bulk. */
ARN_API size_t arn_percpu_alloc_bulk(struct arn_heap *heap, size_t size, size_t n, void **out);
ARN_API long arn_percpu_free_bulk(struct arn_heap *heap, void **ptrs, size_t n);

/* Copies that an object has. */
ARN_API __u32 arn_percpu_cpus(const struct arn_heap *heap);
/* The copy of cpu, below arn_percpu_cpus(); of the CPU that this thread runs on at the moment (a later
 * store may be made on another: use atomics).  ptr is not NULL. */
ARN_API void *arn_per_cpu_ptr(const struct arn_heap *heap, void *ptr, __u32 cpu);
ARN_API void *arn_this_cpu_ptr(const struct arn_heap *heap, void *ptr);
#define arn_for_each_cpu(heap, cpu) for ((cpu) = 0; (cpu) < arn_percpu_cpus(heap); (cpu)++)
/* The words at ptr and its counterparts, added up; each is read once while others may write. */
ARN_API __u64 arn_percpu_sum(struct arn_heap *heap, const __u64 *ptr);

/* Makes slabs for n objects of a size, beside those that are there, mapping memory for them (errors as
 * arn_reserve; EINVAL, E2BIG: an impossible size).  arn_trim takes back what is unused. */
ARN_API int arn_percpu_prepare(struct arn_heap *heap, size_t size, __u32 n);

#ifdef __cplusplus
}
#endif

#endif
