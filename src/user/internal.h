/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* internal.h - what the files of libarenite share. */
#ifndef ARN_INTERNAL_H
#define ARN_INTERNAL_H

#include <errno.h>
#include <stdbool.h>
#include "arenite.h"
#include "../core/sizeclass.h"

struct arn_sys_bpf;
struct arn_call;
struct arn_keeper;

struct arn_heap {
	arn_base base;
	__u64 id; /* never used twice in a process: what a thread's claim is good for */
	/* For the fast paths, out of the root as it was when the heap was opened. */
	__u8 *state; /* of the first granule */
	__u64 first; /* its address */
	__u64 ngranules;
	/* Shared heaps: see shared.h. */
	struct arn_root *k; /* identity, geometry and classes as they were when the heap was opened */
	/* With ARN_CLAIM_SHARED | the offset of a cache: it, and what its owner knows of it (struct arn_shadow). */
	char *caches, *shadow;
	__u8 *state0; /* where the state byte of offset 0 would be */
	__u8 class_small[ARN_SMALL_MAX / 16 + 1];
	bool native;
	bool gone; /* this is a forked child */
	bool lent; /* the mapping is libbpf's, made with its skeleton */
	int map_fd;
	__u64 bytes;
	struct arn_sys_bpf *sys; /* the syscall programs, once loaded, */
	struct arn_sys_bpf *sys_thread; /* and of the same object the one that threads run */
	int thread_fd; /* of that one, -1 */
	int bell_fd; /* the doorbell of objects attached here, -1: none yet */
	struct arn_keeper *keeper;
	struct arn_heap *next; /* in the process's list of open heaps */
	__u32 known[ARN_MAX_CHUNKS]; /* root.unmaps when the chunk was last found mapped */
};

/*
 * A thread's claim on a slot of one heap, in one word, because a signal handler may make or use claims
 * between any two instructions: the heap's id, whose low bits are 0, and there the offset of the slot's
 * caches, and whether it is a shared heap.
 */
#define ARN_CLAIM_SHARED   (1u << 27) /* above 16 MiB and ARN_MAX_SLOTS slots of 4 KiB */
#define ARN_CLAIM_BITS	   28
#define ARN_CLAIM_AT(slot) (ARN_SLOTS_OFF + ((slot) << ARN_SLOT_SHIFT) + (__u32)offsetof(struct arn_slot, cache))
#define ARN_CLAIM_SLOT(at) (((at) - ARN_CLAIM_AT(0)) >> ARN_SLOT_SHIFT)

extern __thread __u64 arn_claimed __attribute__((tls_model("initial-exec")));

/* Is the claim on a slot of this heap, which is of this kind?  At which offset are its caches. */
static arn_inline bool arn_claim_of_kind(__u64 claim, const struct arn_heap *heap, __u32 *at, __u32 kind)
{
	claim ^= heap->id;
	*at = (__u32)claim & (ARN_CLAIM_SHARED - 1);
	return claim >> 27 == kind >> 27;
}

static arn_inline bool arn_claim_of(__u64 claim, const struct arn_heap *heap, __u32 *at)
{
	return arn_likely(arn_claim_of_kind(claim, heap, at, 0));
}

static arn_inline bool arn_claim_of_shared(__u64 claim, const struct arn_heap *heap, __u32 *at)
{
	return arn_claim_of_kind(claim, heap, at, ARN_CLAIM_SHARED);
}

static arn_inline bool arn_claim_of_any(__u64 claim, const struct arn_heap *heap, __u32 *at)
{
	return arn_claim_of_kind(claim, heap, at, heap->native ? 0 : ARN_CLAIM_SHARED);
}

static arn_inline struct arn_cache *arn_claimed_cache(const struct arn_heap *heap, __u32 at, __u32 cls)
{
	return arn_ptr(heap->base, struct arn_cache, at) + cls;
}

/* heap.c: a handle that is good in this process: 0, or -EOWNERDEAD and the message. */
int arn_alive(const struct arn_heap *heap);

/* error.c: sets arn_last_error(), returns -err. */
int arn_error(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* map.c */
#define ARN_ADDR_FIRST 0x7e8000000000ULL
#define ARN_ADDR_END   0x7f0000000000ULL
#define ARN_ADDR_STEP  (4ULL << 30)
arn_base arn_map_anywhere(int fd, __u64 bytes); /* NULL and errno; fd -1: anonymous */
__u64 arn_addr_free(void); /* a free 4 GiB slot, 0: none */
int arn_map_at(int fd, __u64 addr, __u64 bytes);
/* Reads a word, without touching a page that is not there (that is a fault).  False: it is not. */
bool arn_peek(const void *at, __u64 *word);

/* thread.c */
__u32 arn_claim_slot(struct arn_heap *heap); /* ARN_NO_SLOT: all taken */
void arn_heap_register(struct arn_heap *heap);
void arn_heap_unregister(struct arn_heap *heap);
bool arn_heap_at(arn_base base); /* whether this process has one open there */
void arn_drain_idle(struct arn_heap *heap);
void arn_leave_all(struct arn_heap *heap); /* the slots of a shared heap that this process has */

/* alloc.c: whether an object can be had at all; says why not. */
bool arn_possible(struct arn_heap *heap, size_t size, size_t align);

/* shared.c: begin and end of what a handle knows, and of a slot's being this thread's. */
int arn_shared_open(struct arn_heap *heap);
void arn_shared_close(struct arn_heap *heap);
void arn_shared_begin(struct arn_heap *heap, __u32 slot);

/* The slot of the calling thread (native heaps). */
static inline __u32 arn_my_slot(struct arn_heap *heap)
{
	__u32 at;

	return arn_claim_of(arn_load_relaxed(&arn_claimed), heap, &at) ? ARN_CLAIM_SLOT(at) : arn_claim_slot(heap);
}

/* sys.c */
int arn_sys_load(struct arn_heap *heap);
void arn_sys_close(struct arn_heap *heap);
int arn_sys_map_root(struct arn_heap *heap, __u32 off, __u32 pages);
void arn_sys_unmap_root(struct arn_heap *heap, __u32 off, __u32 pages);
int arn_sys_mark_root(struct arn_heap *heap, __u64 mark); /* -ENOENT: it has no pages */
int arn_sys_reserve_bytes(struct arn_heap *heap, __u64 bytes);
/* What is given back before chunks are. */
enum arn_reclaim { ARN_RECLAIM_NONE, ARN_RECLAIM_CACHED, ARN_RECLAIM_ALL /* the emergency reserves too */ };
/* Gives back chunks while keep pages stay free, at most so many.  Pages, or -errno. */
long long arn_sys_trim_pages(struct arn_heap *heap, __u32 keep, __u32 chunks, enum arn_reclaim reclaim);
int arn_sys_drain_cpus(struct arn_heap *heap);
/* What a thread asks for: call->ret, or why it could not be asked.  From a signal handler too, but for a
 * process's first call on the heap, which loads the programs. */
long long arn_sys_call(struct arn_heap *heap, struct arn_call *call);
int arn_sys_grow_asked(struct arn_heap *heap); /* to the goal, if free pages are below the low mark */
/* The keeper's lease, for the calling thread.  -EBUSY: *owner has it. */
int arn_sys_lease(struct arn_heap *heap, bool release, __u64 *owner);
/* The map for an object's arn_growth, and which of *ways it is; -EOPNOTSUPP: none is to be had. */
int arn_sys_growth_map(struct arn_heap *heap, __u32 *ways);

/* growth.c */
int arn_check_marks(__u64 low, __u64 high, __u64 bytes); /* -EINVAL */
void arn_set_marks(struct arn_heap *heap, __u64 low, __u64 high);
int arn_bell_open(struct arn_heap *heap); /* an fd of the doorbell; -ENOENT: none yet; -EPERM */
int arn_attach_growth(struct arn_heap *heap, struct bpf_object *obj);

/* alloc.c: everything that slots' caches do not do.  The slot may be ARN_NO_SLOT. */
__u32 arn_alloc_slow(struct arn_heap *heap, __u32 slot, __u32 cls, __u32 pages, __u32 align); /* 0 and errno */
void arn_free_slow(struct arn_heap *heap, __u32 slot, __u32 cls, __u32 off);
int arn_bad_free(struct arn_heap *heap, __u64 ptr, __u32 why); /* ARN_FAIL_COUNT: looks why */

/* percpu.c */
__u32 arn_percpu_possible(void); /* CPUs that this machine may have */

/* native.c */
int arn_native_grow(struct arn_heap *heap);
int arn_native_reserve(struct arn_heap *heap, __u64 bytes);
long long arn_native_trim(struct arn_heap *heap);

#endif
