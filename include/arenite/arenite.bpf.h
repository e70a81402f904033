/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * arenite.bpf.h - the BPF side.  Include it after vmlinux.h or after linux/bpf.h; that is all:
 * the functions come with it, __weak, so that several units of one object may include it (bpftool
 * before 7.6 cannot link two units that declare the same kernel function: one of them then has the
 * functions).  With ARN_LINKED defined it only declares them, for an object that is linked with such a
 * unit or with arenite.bpf.o (bpftool gen object).
 *
 * The object's arena is the heap: arn_attach() (user side, before load) makes it one, or
 * arn_open_fd(fd, ARN_INIT) after load.  Before that every allocation is NULL, and counted in
 * arn_calls_without_heap.
 *
 * Contexts: any program type that may use an arena, unless a declaration says "sleepable".  On
 * kernels before 6.13 not with preemption disabled by the caller, on none under a spin lock (both
 * refuse global functions).  Stack: at most 3 frames and 160 bytes below the caller
 * (176 with ARN_PAGES_ANY_CONTEXT).
 *
 * Pointers are valid in user space as they are: base | offset.
 *
 * Progress: malloc and free are wait-free on the slot's cache, lock-free on the depot; a refill from
 * the slabs waits for a lock at most about a millisecond, then gives up and counts.  On top of the lock's
 * holder (an interrupt, an NMI) free never fails, and malloc up to 32 KiB gets what the depot or the class's
 * emergency reserve has: NULL when both are empty, and for a class's first object.
 */
#ifndef ARENITE_BPF_H
#define ARENITE_BPF_H

#include <bpf/bpf_helpers.h>
#include "layout.h"

/*
 * The arena, under one fixed name and without a size (which is set between open and load), so that
 * units and prebuilt objects link.  To use a map of your own, define it before this include and
 * define ARN_MAP to its name.
 */
#define ARN_ARENA                                                                                                      \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_ARENA);                                                                      \
		__uint(map_flags, ARN_MAP_FLAGS);                                                                      \
	} arn_arena __weak SEC(".maps")

#ifndef ARN_MAP
#define ARN_MAP arn_arena
ARN_ARENA;
#endif

/*
 * ARN_PAGES_ANY_CONTEXT, defined before the include: for kernels that give an arena's pages to every program (7.0; the
 * user side's arn_has("pages-any-context") tells).  An allocation that finds no mapped memory maps some itself, at
 * most 64 MiB (10 ms) a call: for objects above 16 MiB reserve ahead.  NULL then means that the arena or the machine
 * is full.  arn_reserve and arn_trim may be called where nobody may sleep, but arn_trim unmaps nothing there.  Other
 * kernels refuse such an object, however it guards its calls: build it a second time without, and load the one that
 * fits.  All units of an object are built alike.
 */
#ifdef ARN_PAGES_ANY_CONTEXT
__u32 arn_pages_any_context __weak; /* arn_attach looks for its name */
#endif

/* Calls made while the arena had no heap in it. */
extern __u64 arn_calls_without_heap;

/* The functions behind the typed calls: scalars in, scalars out. */
__u64 arn__malloc(__u64 size);
__u64 arn__aligned_alloc(__u64 align, __u64 size);
__u32 arn__malloc_bulk(__u64 size, __u32 n, __u64 out);
int arn__free(__u64 ptr);
__u64 arn__usable_size(__u64 ptr);
__u64 arn__zero(__u64 ptr, __u64 bytes);
__u64 arn__copy(__u64 to, __u64 from, __u64 bytes);
int arn__ring_init(__u64 ring, __u32 size, __u32 kind);
int arn__ring_put_spsc(__u64 ring, __u64 obj);
int arn__ring_put_mpsc(__u64 ring, __u64 obj);
__u64 arn__ring_get_spsc(__u64 ring);
__u64 arn__ring_get_mpsc(__u64 ring);
int arn__ring_put_bulk_spsc(__u64 ring, __u64 ptrs, __u32 least, __u32 n);
int arn__ring_put_bulk_mpsc(__u64 ring, __u64 ptrs, __u32 least, __u32 n);
int arn__ring_get_bulk_spsc(__u64 ring, __u64 out, __u32 least, __u32 n);
int arn__ring_get_bulk_mpsc(__u64 ring, __u64 out, __u32 least, __u32 n);
int arn__ring_skip(__u64 ring);
__u64 arn__percpu_alloc(__u64 size);
__u32 arn__percpu_alloc_bulk(__u64 size, __u32 n, __u64 out);
int arn__percpu_free(__u64 ptr);
__u64 arn__percpu_sum(__u64 ptr);

/* A loop in the kernel has a bound (250 ms): the largest objects take several calls. */
#define ARN_LONG_TURNS 32

/* A hit in this CPU's cache stands in the program itself; ARN_NO_INLINE makes every call a call. */
#include "../../src/bpf/inline_bpf.h"
#include "../../src/bpf/ring_inline_bpf.h"

/*
 * At least size bytes, aligned to 16, a power-of-two size to itself; NULL when the mapped memory is
 * used up (but for what other CPUs cache; see ARN_PAGES_ANY_CONTEXT), the size is above half the arena, or
 * there is no heap.
 */
static inline __attribute__((always_inline)) void __arena *arn_malloc(__u64 size)
{
	return (void __arena *)arn_malloc_inline(size);
}

/* The same, zeroed; NULL also when n * size overflows. */
static inline __attribute__((always_inline)) void __arena *arn_calloc(__u64 n, __u64 size)
{
	__u64 p, at = 0;
	int i;

	if (n >> 32 || size >> 32)
		return (void __arena *)0ULL;
	p = arn__malloc(n * size);
	for (i = 0; p && at < n * size && i < ARN_LONG_TURNS; i++)
		at += arn__zero(p + at, n * size - at);
	return (void __arena *)p;
}

/* align: a power of two up to half the arena, else NULL. */
static inline __attribute__((always_inline)) void __arena *arn_aligned_alloc(__u64 align, __u64 size)
{
	return (void __arena *)arn__aligned_alloc(align, size);
}

/* 0, or -EINVAL for what is not an allocated object (counted; nothing changed).  NULL is nothing. */
static inline __attribute__((always_inline)) int arn_free(void __arena *ptr)
{
	return arn_free_inline((__u64)ptr);
}

/* Bytes usable at ptr; 0 if it is no object. */
static inline __attribute__((always_inline)) __u64 arn_usable_size(void __arena *ptr)
{
	return arn__usable_size((__u64)ptr);
}

/* NULL: as malloc, or ptr is no object; the old object is then untouched. */
static inline __attribute__((always_inline)) void __arena *arn_realloc(void __arena *ptr, __u64 size)
{
	__u64 old = (__u64)ptr, have, p, at = 0;
	int i;

	if (!old)
		return arn_malloc(size);
	have = arn__usable_size(old);
	if (!have)
		return (void __arena *)0ULL;
	if (size <= have && size >= have / 2)
		return ptr;
	p = arn__malloc(size);
	if (!p)
		return (void __arena *)0ULL;
	have = size < have ? size : have;
	for (i = 0; at < have && i < ARN_LONG_TURNS; i++)
		at += arn__copy(p + at, old + at, have - at);
	arn__free(old);
	return (void __arena *)p;
}

/*
 * Bulk: out and ptrs are arrays of __u64 in arena memory (their address as a scalar), any n.
 * arn_malloc_bulk returns how many it stored; arn_free_bulk how many it freed (NULLs count as
 * freed), -EINVAL only when that is none of n > 0.
 */
static inline __attribute__((always_inline)) __u32 arn_malloc_bulk(__u64 size, __u32 n, __u64 out)
{
	n -= arn__malloc_bulk(size, n, out);
	asm volatile("" : "+r"(n)); /* or clang tests what is missing, and the verifier follows that for long */
	return n;
}

int arn_free_bulk(__u64 ptrs, __u32 n);

/* Checked heaps: what this CPU allocates from now on carries tag in leak reports. */
int arn_set_tag(__u32 tag);

/*
 * Sleepable (see ARN_PAGES_ANY_CONTEXT).  Maps chunks until at least bytes lie in free page runs.  0; -ENOMEM: the kernel has
 * no pages (or the memory cgroup is full); -E2BIG: the arena is mapped to its end; -ENOENT: no heap.
 */
int arn_reserve(__u64 bytes);

/*
 * Sleepable (likewise).  Gives back what this CPU caches, the depot, empty slabs, then whole chunks to the
 * kernel.  Other CPUs' caches stay: the user side's arn_trim visits them.  Returns pages (4 KiB)
 * unmapped (0 in an object built with ARN_PAGES_ANY_CONTEXT: the kernel would take them later, under other
 * processes' eyes), -ENOENT: no heap.
 */
int arn_trim(void);

/*
 * Pointer rings, in memory of the heap; arn_ring_address() and arn_ring_open() are how user space tells and
 * learns where one lies.  _spsc: one producer at a time and one consumer at a time; an interrupt counts.
 * _mpsc: any number of producers in any context, also on top of each other.  Either end may be BPF or user
 * space.  size: a power of two up to 65,536, and as many objects fit.  NULL: another size, or no memory.
 */
static inline __attribute__((always_inline)) struct arn_ring __arena *arn_ring_create_spsc(__u32 size)
{
	return (struct arn_ring __arena *)arn_ring_create_inline(size, ARN_RING_SPSC);
}

static inline __attribute__((always_inline)) struct arn_ring __arena *arn_ring_create_mpsc(__u32 size)
{
	return (struct arn_ring __arena *)arn_ring_create_inline(size, ARN_RING_MPSC);
}

/* Frees the ring, which nobody uses any more; objects still in it are not.  0, or -EINVAL: it is none. */
static inline __attribute__((always_inline)) int arn_ring_destroy(struct arn_ring __arena *ring)
{
	return arn_ring_destroy_inline((__u64)ring);
}

/*
 * 1; 0: full; -EINVAL: no ring of this kind, or obj is not an address in the arena that is aligned to 16.
 * The consumer sees what was written to the object before.  _spsc: wait-free; -EUCLEAN: the ring is corrupt.
 * _mpsc: lock-free; -EAGAIN: 64 times another producer was first, or arn_ring_skip overtook the call.
 */
static inline __attribute__((always_inline)) int arn_ring_enqueue_spsc(struct arn_ring __arena *ring, void __arena *obj)
{
	return arn_ring_put_spsc_inline((__u64)ring, (__u64)obj);
}

static inline __attribute__((always_inline)) int arn_ring_enqueue_mpsc(struct arn_ring __arena *ring, void __arena *obj)
{
	return arn_ring_put_mpsc_inline((__u64)ring, (__u64)obj);
}

/* The oldest object, or NULL: empty (or no ring of this kind; or corrupt).  Wait-free. */
static inline __attribute__((always_inline)) void __arena *arn_ring_dequeue_spsc(struct arn_ring __arena *ring)
{
	return (void __arena *)arn_ring_get_spsc_inline((__u64)ring);
}

static inline __attribute__((always_inline)) void __arena *arn_ring_dequeue_mpsc(struct arn_ring __arena *ring)
{
	return (void __arena *)arn_ring_get_mpsc_inline((__u64)ring);
}

/*
 * Many at once, in order: at most n objects and at least so many, or none.  least = n: all; least = 1: as
 * many as fit, or are there.  ptrs and out are arrays of __u64 in arena memory, as in arn_malloc_bulk.
 * Returns how many, 0, or an error as above and then none: -EINVAL if any is no such address.  _mpsc: others'
 * objects do not come between; fewer than least only if arn_ring_skip overtook the call (the first so many are
 * in the ring then), or, dequeued, if the whole ring is full of skipped places.
 */
static inline __attribute__((always_inline)) int arn_ring_enqueue_bulk_spsc(struct arn_ring __arena *ring, __u64 ptrs,
									    __u32 least, __u32 n)
{
	return arn__ring_put_bulk_spsc((__u64)ring, ptrs, least, n);
}

static inline __attribute__((always_inline)) int arn_ring_enqueue_bulk_mpsc(struct arn_ring __arena *ring, __u64 ptrs,
									    __u32 least, __u32 n)
{
	return arn__ring_put_bulk_mpsc((__u64)ring, ptrs, least, n);
}

static inline __attribute__((always_inline)) int arn_ring_dequeue_bulk_spsc(struct arn_ring __arena *ring, __u64 out,
									    __u32 least, __u32 n)
{
	return arn__ring_get_bulk_spsc((__u64)ring, out, least, n);
}

static inline __attribute__((always_inline)) int arn_ring_dequeue_bulk_mpsc(struct arn_ring __arena *ring, __u64 out,
									    __u32 least, __u32 n)
{
	return arn__ring_get_bulk_mpsc((__u64)ring, out, least, n);
}

/* Objects in the ring, as far as one can tell from outside; _mpsc: with places reserved and not filled. */
static inline __attribute__((always_inline)) __u32 arn_ring_count(struct arn_ring __arena *ring)
{
	return arn_ring_count_inline((__u64)ring);
}

/*
 * _mpsc: a producer that is killed (a user process), or sleeps, in the middle of a call leaves a place at which
 * the consumer stops.  This has the consumer pass over such places up to the next object; a producer that
 * wakes up later finds its call failed and still has its object.  Returns how many, or -EINVAL.
 * For who sees arn_ring_count() above 0 and nothing to dequeue for longer than a producer may take.
 */
static inline __attribute__((always_inline)) int arn_ring_skip(struct arn_ring __arena *ring)
{
	return arn__ring_skip((__u64)ring);
}

/*
 * Per-CPU objects: one object, a copy for each possible CPU, a page apart.  What arn_percpu_alloc returns is
 * CPU 0's copy, and the object's name; pointers into it (members) have their counterparts too.
 *
 * 1 to 512 bytes, or what the heap's creator raised that to (arn_options.percpu_max), in classes of 16
 * bytes to 128 and then four a doubling; each class aligns as arn_malloc's does.  Every copy is zero.  NULL:
 * the size is none of those, or as arn_malloc.  Same contexts and progress as arn_malloc; the zeroing takes
 * as long as there are CPUs.
 */
static inline __attribute__((always_inline)) void __arena *arn_percpu_alloc(__u64 size)
{
	return (void __arena *)arn__percpu_alloc(size);
}

/* As arn_free, for per-CPU objects only; arn_free refuses those. */
static inline __attribute__((always_inline)) int arn_percpu_free(void __arena *ptr)
{
#ifndef ARN_NO_INLINE
	arn_name_arena();
	if (arn_likely(arn_hit_free(arn_root(ARN_HERE), (__u64)ptr, ARN_PLAIN_CLASSES, ARN_PERCPU_CLASSES)))
		return 0;
#endif
	return arn__percpu_free((__u64)ptr);
}

/* As arn_malloc_bulk and arn_free_bulk. */
static inline __attribute__((always_inline)) __u32 arn_percpu_alloc_bulk(__u64 size, __u32 n, __u64 out)
{
	n -= arn__percpu_alloc_bulk(size, n, out);
	asm volatile("" : "+r"(n));
	return n;
}

int arn_percpu_free_bulk(__u64 ptrs, __u32 n);

/* Copies that an object has: possible CPUs.  0: no heap. */
__u32 arn_percpu_cpus(void);

/*
 * The copy of this CPU, of cpu; p is not NULL, cpu below arn_percpu_cpus().  Other programs on this CPU
 * (interrupts, tasks that preempt) use the same copy: what they may change at once wants atomics.
 */
#define arn_per_cpu_ptr(p, cpu) ((__typeof__(p))((__u64)(p) + (__u64)(cpu) * ARN_PERCPU_STRIDE))
#define arn_this_cpu_ptr(p)	arn_per_cpu_ptr(p, bpf_get_smp_processor_id())

/* for (cpu ...) over all copies; cpu is an int. */
#define arn_for_each_cpu(cpu) bpf_for(cpu, 0, (int)arn_percpu_cpus())

/* The __u64 at p in a per-CPU object (aligned) and its counterparts, added up; each is read once. */
static inline __attribute__((always_inline)) __u64 arn_percpu_sum(const __u64 __arena *p)
{
	return arn__percpu_sum((__u64)p);
}

/*
 * Sleepable.  Makes slabs for n per-CPU objects of a size, beside those that are there, and maps memory for
 * them as arn_reserve does (same errors; -E2BIG also: an impossible size).  arn_trim takes back what is
 * unused.
 */
int arn_percpu_prepare(__u64 size, __u32 n);

#ifndef ARN_LINKED
#include "../../src/bpf/api_bpf.h"

/*
 * For tracing programs on heaps with a low mark, where nobody keeps the heap (or as well): if less than
 * the low mark is free, the current task maps more on its way back to user space.  To be called by the
 * program itself, not by a global function of yours (the verifier refuses that); costs a load and a
 * comparison when there is nothing to do.  0: nothing to do, or it will be done.  -EOPNOTSUPP: current
 * is a kernel thread, the kernel is older than 6.18, or the object did not come by arn_attach.
 */
static inline __attribute__((always_inline)) int arn_grow_later(void)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	return arn_below_low(r) ? arn_schedule_growth(r) : 0;
}
#endif

#endif
