// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * root_test.c - root.h and directory.h: geometry made, laid out without overlap, and recognised.
 *
 * Shows the layout for page sizes and slot counts that this machine does not have.
 */
#include <limits.h>
#include "harness.h"

static char *memory; /* where a root of any geometry can be written: nothing else is touched */

static struct arn_root *make(__u64 bytes, __u32 ncpus, __u32 nslots, __u32 shift)
{
	struct arn_geometry g = { .arena_bytes = bytes, .ncpus = ncpus, .nslots = nslots, .sys_page_shift = shift };

	if (!memory)
		memory = mmap(NULL, 4ULL << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			      0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	memset(memory + ARN_ROOT_OFF, 0, sizeof(struct arn_root));
	return arn_root_init(memory, &g) ? NULL : arn_root(memory);
}

/*
 * Slots, state bytes, descriptors, heap follow each other, each large enough for what indexes it, and the
 * heap ends with the arena, but for less than a chunk of rounding.
 */
static void regions_do_not_overlap(void **state)
{
	static const __u32 slots[] = { 1, 64, 66, 128, 640, 1024, 4096, 8192 }, shifts[] = { 12, 14, 16 };
	__u64 mib, slots_end, state_end, heap, bytes;
	struct arn_root *r;
	__u32 i, k, last;

	for (i = 0; i < NELEMS(slots); i++) {
		for (k = 0; k < NELEMS(shifts); k++) {
			for (mib = 24; mib <= 4096; mib += mib < 400 ? 1 : 37) {
				bytes = mib * MIB;
				r = make(bytes, slots[i] / 2, slots[i], shifts[k]);
				if (!r) {
					assert_true(mib < 18 + slots[i] / 256 + 8);
					continue;
				}
				slots_end = ARN_SLOTS_OFF + (__u64)slots[i] * ARN_SLOT_SIZE;
				heap = (__u64)r->first_page << ARN_PAGE_SHIFT;
				last = arn_end_chunk(r) - 1;
				assert_true(arn_chunk_state_off(r, arn_first_chunk(r)) >= slots_end);
				state_end = (__u64)arn_chunk_state_off(r, last) + ARN_CHUNK_STATE_BYTES;
				assert_true(arn_chunk_desc_off(r, arn_first_chunk(r)) >= state_end);
				assert_true((__u64)arn_chunk_desc_off(r, last) + ARN_CHUNK_DESC_BYTES <= heap);
				assert_true(heap + ((__u64)r->npages << ARN_PAGE_SHIFT) <= bytes);
				assert_true(heap + ((__u64)r->npages << ARN_PAGE_SHIFT) + ARN_CHUNK_SIZE >= bytes);
				assert_int_equal(arn_chunk_state_off(r, last) % (1u << shifts[k]), 0);
				assert_null(arn_root_wrong(memory, r, bytes));
			}
		}
	}
}

/* The state byte and the descriptor of the first and last object lie where their chunk's tables do. */
static void tables_are_indexed_from_the_first_heap_page(void **state)
{
	struct arn_root *r = make(4096 * MIB, 2, 66, 12);
	__u32 chunk = arn_first_chunk(r), last = arn_end_chunk(r) - 1;

	assert_int_equal(last, 4095);
	assert_ptr_equal(arn_state(memory, r, chunk << 20), memory + arn_chunk_state_off(r, chunk));
	assert_ptr_equal(arn_state(memory, r, (last << 20) + 0xffff0), memory + arn_chunk_state_off(r, last) + 0xffff);
	assert_ptr_equal(arn_desc(memory, r, chunk << 8), memory + arn_chunk_desc_off(r, chunk));
	assert_ptr_equal(arn_desc(memory, r, (last << 8) + 255),
			 memory + arn_chunk_desc_off(r, last) + 255 * sizeof(struct arn_page));
}

/* Half of an arena that is a power of two can be one naturally aligned object: the heap reaches to the end. */
static void the_upper_half_is_whole(void **state)
{
	struct arn_root *r;
	__u64 mib;

	for (mib = 64; mib <= 4096; mib *= 2) {
		r = make(mib * MIB, 2, 66, 12);
		assert_true((__u64)r->first_page * ARN_PAGE_SIZE <= mib * MIB / 2);
		assert_int_equal(((__u64)r->first_page + r->npages) * ARN_PAGE_SIZE, mib * MIB);
	}
}

/* The smallest arena has room for some heap with the default slots; less is refused. */
static void small_arenas(void **state)
{
	assert_non_null(make(ARN_MIN_ARENA, 2, 66, 12));
	assert_true(arn_root(memory)->npages >= 4 * ARN_CHUNK_PAGES);
	assert_null(make(18 * MIB, 2, 66, 12));
	assert_null(make(ARN_MIN_ARENA, 2, 4096, 12));
}

/* What is mapped before the first chunk is root, directory and the CPUs' slots: no user thread's. */
static void root_costs_a_page_a_cpu(void **state)
{
	struct arn_geometry g = { .arena_bytes = 256 * MIB, .ncpus = 2, .nslots = 66, .sys_page_shift = 12 };

	assert_true(arn_root_bytes(&g) <= 128 * KIB + 4 * KIB * g.ncpus);
	g.ncpus = 1024;
	g.nslots = 1088;
	assert_true(arn_root_bytes(&g) <= 128 * KIB + 4 * KIB * g.ncpus);
	g.sys_page_shift = 16;
	assert_int_equal(arn_root_bytes(&g) % (64 * KIB), 0);
}

/* A root is believed only if each field that something is computed from can be true. */
static void wrong_roots_are_refused(void **state)
{
	__u64 bytes = 256 * MIB;
	struct arn_root *r = make(bytes, 2, 66, 12), good = *r;

#define refused_with(field, value, words)                                                                              \
	do {                                                                                                           \
		const char *why;                                                                                       \
                                                                                                                       \
		r->field = (value);                                                                                    \
		why = arn_root_wrong(memory, r, bytes);                                                                \
		assert_non_null(why);                                                                                  \
		assert_non_null(strstr(why, words));                                                                   \
		*r = good;                                                                                             \
	} while (0)
	assert_null(arn_root_wrong(memory, r, bytes));
	refused_with(magic, 0, "magic");
	refused_with(version, ARN_LAYOUT_VERSION + 1, "version");
	refused_with(base, good.base + (4ULL << 30), "address");
	refused_with(arena_bytes, bytes / 2, "size");
	refused_with(nslots, 1u << 20, "geometry");
	refused_with(nslots, 0, "geometry");
	refused_with(ncpus, 67, "geometry");
	refused_with(first_page, 0, "geometry");
	refused_with(first_page, good.first_page + 1, "geometry");
	refused_with(first_page, 0xffffff00u, "geometry");
	refused_with(first_page, good.first_page - 256, "geometry");
	refused_with(npages, 0xffffff00u, "geometry");
	refused_with(npages, good.npages + 256, "geometry");
	refused_with(npages, good.npages - 1, "geometry");
	refused_with(sys_page_shift, 11, "geometry");
	refused_with(sys_page_shift, 17, "geometry");
	refused_with(state_bias, good.state_bias + (1u << 16), "geometry");
	refused_with(page_bias, good.page_bias + 64, "geometry");
	refused_with(page_bias, ARN_ROOT_OFF - good.first_page * 64u, "geometry");
}

unit_main(t(regions_do_not_overlap), t(tables_are_indexed_from_the_first_heap_page), t(the_upper_half_is_whole),
	  t(small_arenas), t(root_costs_a_page_a_cpu), t(wrong_roots_are_refused))
