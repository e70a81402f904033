/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * layout.h - the shared memory format of a heap, and nothing else.
 *
 * Every BPF object and every process that maps the arena reads these structures, so this file is
 * an ABI: a change that an older reader would misread raises ARN_LAYOUT_VERSION.
 *
 *   offset 0        user's own __arena globals (page 0 belongs to nobody)
 *   16 MiB          struct arn_root
 *   16 MiB + 32 K   directory: one __u32 a chunk
 *   16 MiB + 64 K   slots: one struct arn_slot each, CPUs first, then user threads
 *   (1 MiB aligned) state bytes: one a granule of the heap pages
 *                   page descriptors: one a heap page
 *   heap_start      heap pages, in chunks, to the end of the arena
 *
 * A reference inside the heap is a 32-bit offset from the arena's base, which is 4 GiB-aligned.
 * Regions are address space: kernel pages are mapped into them as chunks are grown.
 *
 * Who writes what (L = under root.lock, G = the slot's owner under its guard, A = atomically by
 * anyone, 1 = once, before magic is set):
 *
 *   root identity, geometry, classes   1        state byte          whoever holds the object
 *   root bins, partial, chunk cursor   L        page descriptor     L, but bits, nfree: A
 *   root depot heads, pending, fails   A        directory           A
 *   root emergency reserves  taken: A, put: L   magazine            whoever holds it
 *   root keeper's lease                L        slot caches         G
 *   root marks, asked_at, doorbell     A
 */
#ifndef ARENITE_LAYOUT_H
#define ARENITE_LAYOUT_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#ifndef __arena
#ifdef __bpf__
#define __arena __attribute__((address_space(1)))
#else
#define __arena
#endif
#endif

#define ARN_MAGIC	   0x3165746974656e61ULL /* read as a tag, not as text */
#define ARN_LAYOUT_VERSION 1

/* BPF_F_MMAPABLE | BPF_F_SEGV_ON_FAULT: a stray user access faults instead of taking a page. */
#define ARN_MAP_FLAGS (1u << 10 | 1u << 17)

#define ARN_GRANULE_SHIFT 4 /* 16 bytes: smallest object, unit of the state bytes */
#define ARN_PAGE_SHIFT	  12 /* heap pages are 4 KiB whatever the kernel's page size */
#define ARN_PAGE_SIZE	  (1u << ARN_PAGE_SHIFT)
#define ARN_CHUNK_SHIFT	  20 /* 1 MiB: what is mapped and given back at a time */
#define ARN_CHUNK_SIZE	  (1u << ARN_CHUNK_SHIFT)
#define ARN_CHUNK_PAGES	  (1u << (ARN_CHUNK_SHIFT - ARN_PAGE_SHIFT))
#define ARN_MAX_CHUNKS	  4096 /* 4 GiB */

#define ARN_ROOT_OFF   (16u << 20)
#define ARN_DIR_OFF    (ARN_ROOT_OFF + (32u << 10))
#define ARN_SLOTS_OFF  (ARN_ROOT_OFF + (64u << 10))
#define ARN_SLOT_SHIFT 12
#define ARN_SLOT_SIZE  (1u << ARN_SLOT_SHIFT)
#define ARN_MAX_SLOTS  (1u << 14) /* CPUs and user threads */

#define ARN_MIN_ARENA (24ULL << 20) /* root, tables and a few chunks of heap */
#define ARN_MAX_ARENA (4ULL << 30)

#define ARN_PLAIN_CLASSES  40 /* 16 to 128 by 16, then four a doubling to 32 KiB */
#define ARN_PERCPU_CLASSES 16 /* of per-CPU objects, after those */
#define ARN_CLASSES	   (ARN_PLAIN_CLASSES + ARN_PERCPU_CLASSES)
#define ARN_MAX_CLASSED	   32768u /* larger objects are page runs of their own */
#define ARN_MAG_OBJS	   120 /* with its header a magazine is 512 bytes */
#define ARN_MAG_SHIFT	   9
#define ARN_MAG_SIZE	   (1u << ARN_MAG_SHIFT)
#define ARN_MAG_PER_PAGE   (1u << (ARN_PAGE_SHIFT - ARN_MAG_SHIFT))
#define ARN_EMERGENCY	   32 /* most objects that a class keeps in its emergency reserve */
#define ARN_BINS	   80 /* free page runs by length: exact to 7, then four a doubling */

/*
 * Per-CPU objects: slabs whose run of pages holds a page a CPU.  An object lies in the first page; its copy
 * of CPU c is c pages further on, so copies of different CPUs share no cache line (and no page).
 */
#define ARN_PERCPU_STRIDE    ARN_PAGE_SIZE
#define ARN_PERCPU_MAX	     512u /* largest object, unless the heap's creator raised it */
#define ARN_PERCPU_MAX_LIMIT ARN_PERCPU_STRIDE

/*
 * State byte: class + 1 where an allocated object starts (per-CPU objects of a checked heap, which has no
 * caches for them: ARN_PERCPU_CLASSES more), ARN_STATE_LARGE for a page run, else 0.
 */
#define ARN_STATE_LARGE 0xff

/* arn_root.flags */
#define ARN_F_NATIVE  1u /* host memory only: grows by itself, no BPF */
#define ARN_F_CHECKED 2u /* canaries, poison, quarantine, tags */
#define ARN_F_TSO     4u /* the machine keeps loads in order, and stores (x86): BPF needs no atomics for that */

/* Directory entry. */
enum arn_chunk_state {
	ARN_CHUNK_NONE = 0, /* no kernel pages */
	ARN_CHUNK_BUSY = 1, /* somebody maps or unmaps it */
	ARN_CHUNK_MAPPED = 2, /* its pages are in the page allocator's hands */
	ARN_CHUNK_TAKEN = 3, /* the range is somebody else's (arena globals) */
	ARN_CHUNK_REFUSED = 4, /* the kernel refused it, but granted its successor */
};

/* What a heap page is.  Interior pages of free and large runs are ARN_PG_NONE. */
enum arn_page_kind {
	ARN_PG_NONE = 0,
	ARN_PG_FREE, /* first and last page of a free run */
	ARN_PG_SLAB, /* first page of a slab */
	ARN_PG_BODY, /* further page of a slab: head says which */
	ARN_PG_LARGE, /* first page of a large object */
	ARN_PG_DEAD, /* first page of a run that was given up: it is in root.pending */
	ARN_PG_MAGS, /* ARN_MAG_PER_PAGE magazines */
};

/*
 * Page descriptor.  bits says, for objects that *start* in this page, which lie free in the slab
 * (one bit a granule); objects in a magazine or allocated have their bit clear.
 */
struct arn_page {
	__u8 kind;
	__u8 cls;
	__u16 pad;
	__u32 npages; /* of the run, at its first page; SLAB: without other CPUs' pages */
	__u32 head; /* first page of the run: at its last page (FREE), at every page (SLAB, BODY) */
	__u32 next, prev; /* page indices: free bin; next also: the class's partial list */
	__u32 listed; /* SLAB: 1 while on its class's partial list.  MAGS: 1 while being retired */
	__u32 pend_next; /* link of root.pending */
	__u32 nfree; /* slab: bits set, less those taken or set a moment ago.  MAGS: those being retired */
	__u64 bits[4];
};

/* A magazine: offsets of free objects of one class.  In the depot, or in one slot. */
struct arn_mag {
	__u32 next; /* magazine index of the next one in the depot's stack */
	__u32 n;
	__u32 cls;
	__u32 tag; /* link of depot.retiring */
	__u64 stamp; /* grace period after which the objects may be used (0: now) */
	__u64 pad;
	__u32 obj[ARN_MAG_OBJS];
};

/*
 * A slot's cache of one class: two magazines (Bonwick 2001), whose counts live here while held.  A "top"
 * is a magazine and its count in one word: the offset of its last object's entry.  A magazine is 512
 * bytes at a multiple of 512, so the low bits say how many there are, the others which magazine it is,
 * and a pop or push needs no second load.  Whoever works on the cache has the loaded magazine's top in
 * its hands: on a CPU's slot ARN_CACHE_BUSY stands here instead, on a thread's .busy is set.
 */
#define ARN_CACHE_BUSY 1u

struct arn_cache {
	union {
		struct {
			__u32 top; /* 0: no magazine */
			__u32 prev; /* the other magazine's top, 0: none */
		};
		__u64 both; /* a thread exchanges the two by one store */
	};
	__u32 room; /* 4 bytes an object that the loaded magazine may hold; without one perhaps 0 */
	__u32 busy; /* threads' slots */
	__u32 parked; /* top of a magazine whose push to the depot gave up */
	__u32 near_n; /* magazines in near_full, as far as the owner knows */
	__u64 near_full; /* the slot's own part of the depot: stacks like the class's */
	__u64 near_empty;
	__u32 near_empty_n;
	__u32 reserved0;
	__u64 intent; /* a thread's exchange with a near stack: operation, tag before, magazine (intent.h) */
	__u64 reserved1;
};

#define ARN_READER_WORDS 8
#define ARN_QUARANTINE	 256

/* arn_slot.owner besides a thread's tgid << 32 | tid */
#define ARN_OWNER_HELD 1ULL /* a BPF program claims or drains the slot, and will end */
#define ARN_OWNER_DEAD 2ULL /* a drain was cut short: to be continued */

struct arn_slot {
	/* line 0: who owns it.  CPU slots are owned by their CPU. */
	__u64 owner; /* 0: nobody; user threads: tgid << 32 | tid, in the initial namespace */
	__u64 owner_start; /* when that thread began, against reused ids */
	__u64 owner_exec; /* how often it had called execve(): its heap does not outlive the next */
	__u32 mapped; /* user threads: 1 once the slot has memory */
	__u32 reserved0[9];
	__u64 reserved3[8];
	/* line 2: readers' epochs.  Reserved. */
	__u64 reader[ARN_READER_WORDS];
	/* line 3: checked heaps */
	__u32 tag; /* of the objects allocated from now on */
	__u32 quarantine_at;
	__u64 reserved1[7];
	union {
		struct arn_cache cache[ARN_CLASSES];
		struct {
			struct arn_cache plain[ARN_PLAIN_CLASSES];
			__u32 quarantine[ARN_QUARANTINE]; /* checked heaps: objects freed of late */
		};
	};
	__u64 reserved2[(ARN_SLOT_SIZE - 256 - ARN_CLASSES * 64) / 8]; /* waiting magazines */
};

/* One class.  Written once, but for the marks of per-CPU ones (core/percpu_class.h). */
struct arn_class {
	__u32 size;
	__u16 cap; /* objects a magazine holds; 0: no caches */
	__u16 npages; /* of a slab, that objects start in */
	__u16 nobj; /* in a slab */
	__u16 align; /* of a slab, in pages */
	__u16 near; /* full magazines that a slot keeps to itself */
	__u16 emergency; /* objects in its emergency reserve */
	__u16 run; /* pages of a slab: npages, or one a CPU */
	__u16 cap_low, cap_high; /* bounds of cap */
	__u16 reserved0;
	__u32 marked; /* when cap was looked at last: arn_clock() */
	__u32 reserved1;
};

/* Head of a lock-free stack of magazines: index (24 bits, offset >> 9) and tag (40 bits). */
#define ARN_STACK_IDX_MASK 0xffffffULL
#define ARN_STACK_TAG_ONE  0x1000000ULL

struct arn_depot {
	__u64 full; /* magazines with at least one object */
	__u64 pad0[7];
	__u64 empty;
	__u64 nmags; /* magazines made for this class, less those given back */
	__u64 nslabs; /* under lock */
	__u32 partial; /* first slab with free objects, under lock */
	__u32 retiring; /* magazines on their way back to the page runs, under lock */
	__u64 pad2[4];
};

/*
 * A pointer ring (core/ring.h): an object of the heap, aligned to ARN_RING_ALIGN, of this and after it
 * mask + 1 slots, each a __u32.  Positions count on and wrap; a position's slot is position & mask.  The
 * parts have two cache lines each: some machines fetch lines in pairs.
 */
#define ARN_RING_MAX   65536u /* slots */
#define ARN_RING_ALIGN 128u
#define ARN_RING_SPSC  0x43535053u
#define ARN_RING_MPSC  0x4353504du

struct arn_ring {
	/* Written once, kind last. */
	__u32 kind; /* ARN_RING_SPSC, ARN_RING_MPSC; else there is no ring here any more */
	__u32 mask; /* slots - 1 */
	__u64 pad0[15];
	/* The producers'. */
	__u32 tail; /* position of the next object to come */
	__u32 head_seen; /* head as a producer saw it last */
	__u64 pad1[15];
	/* The consumer's. */
	__u32 head; /* position of the next object to go */
	__u32 tail_seen; /* spsc: tail as the consumer saw it last */
	__u64 pad2[15];
};

#define ARN_DE_BRUIJN 0x03f79d71b4cb0a89ULL

/* Why a call did not do what it was asked.  Described in stats.h, in this order. */
enum arn_fail {
	ARN_FAIL_NOMEM,
	ARN_FAIL_LOCK,
	ARN_FAIL_SIZE,
	ARN_FAIL_FOREIGN,
	ARN_FAIL_MISALIGNED,
	ARN_FAIL_INTERIOR,
	ARN_FAIL_DOUBLE,
	ARN_FAIL_CORRUPT,
	ARN_FAIL_PUSH,
	ARN_FAIL_POP,
	ARN_FAIL_BYPASS,
	ARN_FAIL_RECLAIM,
	ARN_FAIL_MAP,
	ARN_FAIL_OVERRUN,
	ARN_FAIL_AFTER_FREE,
	ARN_FAIL_EMERGENCY,
	ARN_FAIL_NESTED,
	ARN_FAIL_COUNT
};

/* What growth and the keeper did.  Described in stats.h, in this order. */
enum arn_count {
	ARN_COUNT_ASKED,
	ARN_COUNT_QUEUED,
	ARN_COUNT_RUNG,
	ARN_COUNT_DEFERRED,
	ARN_COUNT_GROWN,
	ARN_COUNT_GROW_FAILED,
	ARN_COUNT_TRIMMED,
	ARN_COUNT_DRAINED,
	ARN_COUNT_REAPED,
	ARN_COUNT_KEPT,
	ARN_COUNT_COUNT
};

struct arn_root {
	/* line 0: what the fast paths read */
	__u64 magic;
	__u64 base; /* user-space address of offset 0; 4 GiB-aligned */
	__u32 version;
	__u32 flags;
	__u32 state_bias; /* state byte of offset o: state_bias + (o >> 4) */
	__u32 page_bias; /* descriptor of page p: page_bias + p * sizeof(struct arn_page) */
	__u32 first_page; /* index of the first heap page */
	__u32 npages; /* heap pages that the arena has room for */
	__u32 ncpus; /* slots below this are CPUs' */
	__u32 nslots;
	__u32 first_granule; /* of the first heap page */
	__u32 ngranules;
	__u64 arena_bytes;

	/* line 1: geometry of the mapping */
	__u32 sys_page_shift; /* the kernel's page size */
	__u32 meta_pages; /* kernel pages mapped before the first chunk */
	__u32 doorbell_id; /* map id of the ring buffer on which the keeper sleeps, 0: none yet */
	__u32 globals_bytes; /* of the one object that brought arena globals, 0: none yet */
	__u64 keeper; /* lease: its holder, tgid << 32 | tid in the init namespace; 0: nobody */
	__u64 keeper_until; /* lease: its end, monotonic ns */
	__u64 epoch; /* reserved for grace periods */
	__u64 rcu_seq; /* reserved for grace periods */
	__u32 percpu_cpus; /* copies of a per-CPU object */
	__u32 percpu_max; /* bytes of the largest per-CPU object */
	__u32 globals_off; /* where they lie */
	__u32 slots_used; /* slots below this have been owned */

	/* line 2: the one lock, for slabs and page runs */
	__u32 lock; /* owner's slot + 1 */
	__u32 grow_chunk; /* where the search for an unmapped chunk starts; upper half: chunks given back */
	__u64 bin_map[2]; /* which bins have a run */
	__u64 pages_free; /* heap pages in free runs */
	__u64 pages_mapped; /* heap pages mapped */
	__u32 low_pages; /* marks for pages_free: below it growth is asked for, 0: never */
	__u32 high_pages; /* above it a keeper gives back, 0: never */
	__u64 asked_at; /* monotonic ns: growth was asked for, and nobody has looked since; 0: not asked */
	__u64 reserved2;

	/* line 3 */
	__u64 pending; /* pages that want the lock holder's attention: page index of the first */
	__u64 emergency_low; /* a bit a class: somebody took from its emergency reserve */
	__u64 reserved3[6];

	/* line 4 to 8: counters that are not on a common path */
	__u64 fail[24];
	__u64 count[16];
	/* line 9 */
	__u64 bad_ptr; /* the last refused pointer */
	__u64 meta_mapped; /* kernel pages of state bytes and descriptors, less desc_mapped */
	__u64 mark; /* who opens the heap writes here in BPF what it looks for in its mapping */
	__u32 unmaps; /* counts before a chunk is unmapped: what a process knows to be mapped is then old */
	__u32 unheard; /* somebody rings a doorbell other than doorbell_id */
	__u64 keeper_start; /* lease: as a slot's owner_start and owner_exec */
	__u64 keeper_exec;
	__u64 reserved4[2];

	__u8 class_small[72]; /* class of ceil(size / 16), size <= 1024 */
	__u8 class_mid[128]; /* class of (size - 1) / 256, size <= 32768 */
	__u8 percpu_of[28]; /* class of a per-CPU object, by the plain class of its size, which is <= 4096 */
	__u8 reserved6[28];
	__u8 bit_place[64]; /* place of a single bit b: bit_place[b * ARN_DE_BRUIJN >> 58] */
	struct arn_class cls[ARN_CLASSES];
	__u32 bins[ARN_BINS];
	__u64 desc_mapped[16]; /* kernel pages above 16 KiB: those of the descriptors that are mapped */
	struct arn_depot depot[ARN_CLASSES];
	__u32 emergency[ARN_CLASSES][ARN_EMERGENCY]; /* emergency.h: objects, 0: a hole */
};

#ifndef __cplusplus
_Static_assert(sizeof(struct arn_page) == 64, "descriptors are indexed by shift");
_Static_assert(sizeof(struct arn_mag) == 512, "a magazine's index is its offset >> 9");
_Static_assert(sizeof(struct arn_cache) == 64, "a cache a line");
_Static_assert(sizeof(struct arn_slot) == ARN_SLOT_SIZE, "slots are indexed by shift");
_Static_assert(ARN_QUARANTINE * 4 == ARN_PERCPU_CLASSES * sizeof(struct arn_cache), "they share a place");
_Static_assert(ARN_CLASSES + ARN_PERCPU_CLASSES < ARN_STATE_LARGE, "state bytes");
_Static_assert(sizeof(struct arn_depot) == 128, "full and empty on lines of their own");
_Static_assert(sizeof(struct arn_ring) == 3UL * ARN_RING_ALIGN, "slots begin on lines of their own");
_Static_assert(sizeof(struct arn_root) <= ARN_DIR_OFF - ARN_ROOT_OFF, "the directory follows");
_Static_assert(ARN_CLASSES <= 64, "root.emergency_low");
_Static_assert(ARN_FAIL_COUNT <= 24, "root.fail");
_Static_assert(ARN_COUNT_COUNT <= 16, "root.count");
#endif

#endif
