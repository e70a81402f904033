/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * stats.h - every counter, described once.  Tables, JSON and the manual come from these lists.
 *
 * They balance: pages_mapped = pages_free + pages_slab + pages_large + pages_mags +
 * pages_percpu + pages_pending, and for each class (cls[] has those of plain objects, then those of
 * per-CPU objects, whose sizes and counts are those of one copy)
 * objects = live + in_slots + in_depot + in_slabs + in_emergency + quarantined.  Read from a heap in use, a sum may be off by what
 * moved meanwhile.
 */
#ifndef ARENITE_STATS_H
#define ARENITE_STATS_H

#include "layout.h"

/* X(name, unit, what it counts) */
#define ARN_HEAP_STATS(X)                                                                                              \
	X(arena_bytes, "B", "size of the arena")                                                                       \
	X(pages_mapped, "pages", "heap pages (4 KiB) mapped, in chunks")                                               \
	X(pages_free, "pages", "heap pages in free runs")                                                              \
	X(pages_slab, "pages", "heap pages in slabs")                                                                  \
	X(pages_percpu, "pages", "heap pages in slabs of per-CPU objects, all copies")                                 \
	X(pages_large, "pages", "heap pages in large objects")                                                         \
	X(pages_mags, "pages", "heap pages that hold magazines")                                                       \
	X(pages_pending, "pages", "heap pages given up, not yet merged into the free runs")                            \
	X(meta_bytes, "B", "mapped for root, directory, slots, state bytes, descriptors")                              \
	X(large, "objects", "allocated objects above 32 KiB")                                                          \
	X(slots, "slots", "slots: possible CPUs and places for user threads")                                          \
	X(slots_cpu, "slots", "slots that are CPUs'")                                                                  \
	X(slots_claimed, "slots", "slots that a user thread owns")                                                     \
	X(percpu_cpus, "CPUs", "copies of a per-CPU object")                                                           \
	X(percpu_max, "B", "largest per-CPU object")                                                                   \
	X(percpu_bytes, "B", "memory of per-CPU slabs a CPU")                                                          \
	X(low_watermark, "B", "below this much in free runs growth is asked for; 0: never")                            \
	X(high_watermark, "B", "above this much a keeper gives memory back; 0: never")                                 \
	X(keeper, "pid", "process (init namespace) that holds the keeper's lease; 0: none does")

/* X(name, unit, what it counts), per class */
#define ARN_CLASS_STATS(X)                                                                                             \
	X(size, "B", "size of the class")                                                                              \
	X(slabs, "slabs", "slabs carved")                                                                              \
	X(objects, "objects", "objects in those slabs")                                                                \
	X(live, "objects", "allocated")                                                                                \
	X(in_slots, "objects", "free, cached by a slot: its magazines and its near stacks")                            \
	X(in_depot, "objects", "free, cached in the depot's magazines")                                                \
	X(in_slabs, "objects", "free, in their slab")                                                                  \
	X(in_emergency, "objects", "free, in the emergency reserve")                                                   \
	X(quarantined, "objects", "free, held back for a while (checked heaps)")                                       \
	X(magazines, "mags", "magazines made")

/* X(enum arn_fail suffix, name, what it counts) */
#define ARN_FAIL_STATS(X)                                                                                                    \
	X(NOMEM, nomem, "allocations refused: no mapped memory left; arn_reserve maps more")                                 \
	X(LOCK, lock, "waits for the slab lock given up: another way was taken, or NULL returned")                           \
	X(SIZE, size,                                                                                                        \
	  "allocations refused: larger than half the arena, or an impossible alignment; per-CPU ones: a size out of bounds") \
	X(FOREIGN, foreign,                                                                                                  \
	  "frees refused: not a pointer into the heap's objects, or a per-CPU one taken for a plain one")                    \
	X(MISALIGNED, misaligned, "frees refused: not a multiple of 16")                                                     \
	X(INTERIOR, interior, "frees refused: inside an object, not at its start")                                           \
	X(DOUBLE, double_free, "frees refused: free already")                                                                \
	X(CORRUPT, corrupt, "contradictions met in the heap's own structures")                                               \
	X(PUSH, push_gave_up, "pushes to the depot given up; the magazine was parked")                                       \
	X(POP, pop_gave_up, "pops from the depot given up; the slabs served")                                                \
	X(BYPASS, bypass, "calls that found their slot's cache busy and went past it")                                       \
	X(RECLAIM, reclaim, "times cached memory was turned back into page runs")                                            \
	X(MAP, map, "page calls that the kernel refused")                                                                    \
	X(OVERRUN, overrun, "checked heaps: frees of an object that was written past its end")                               \
	X(AFTER_FREE, after_free, "checked heaps: objects written to after they were freed")                                 \
	X(EMERGENCY, emergency, "allocations served by an emergency reserve: nothing cached, and the lock was held")         \
	X(NESTED, nested,                                                                                                    \
	  "allocations refused on top of the lock's holder: nothing cached, and the emergency reserve empty")

/* X(enum arn_count suffix, name, what it counts) */
#define ARN_GROWTH_STATS(X)                                                                                            \
	X(ASKED, asked, "times an allocation found free pages below the low mark and asked for growth")                \
	X(QUEUED, queued, "of those, a work queue was started")                                                        \
	X(RUNG, rung, "of those, a keeper's doorbell was rung")                                                        \
	X(DEFERRED, deferred, "times a task was given growth to do on its way to user space")                          \
	X(GROWN, grown, "chunks (1 MiB) mapped because of the low mark")                                               \
	X(GROW_FAILED, grow_failed,                                                                                    \
	  "times growth did not reach the low mark: no pages from the kernel, or the arena is full")                   \
	X(TRIMMED, trimmed, "chunks (1 MiB) that keepers gave back because of the high mark")                          \
	X(DRAINED, drained, "times keepers emptied the caches for that")                                               \
	X(REAPED, reaped, "slots of killed processes that keepers gave back")                                          \
	X(KEPT, kept, "times keepers woke up")

struct arn_class_stats {
#define X(name, unit, text) __u64 name;
	ARN_CLASS_STATS(X)
#undef X
};

struct arn_stats {
#define X(name, unit, text) __u64 name;
	ARN_HEAP_STATS(X)
#undef X
	__u64 fail[ARN_FAIL_COUNT];
	__u64 bad_ptr; /* the last pointer that was refused, or found damaged in a checked heap */
	struct arn_class_stats cls[ARN_CLASSES];
	__u64 count[ARN_COUNT_COUNT];
};

#endif
