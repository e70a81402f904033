// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * pkobj.bpf.c - the kernel's per-CPU objects: bpf_percpu_obj_new and bpf_percpu_obj_drop.
 *
 * As kobj.bpf.h, which says what pkobj_N and pswap_N are; on its own, for a kernel that has only one of
 * the two kinds.  Its arena holds only the producers' lanes.
 */
#include <linux/bpf.h>
#include <stddef.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <arenite/layout.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, ARN_MAP_FLAGS);
} bench_arena SEC(".maps");

#define ARN_MAP bench_arena
#include "port.h"

#include "round.bpf.h"
#include "percpu.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern void *bpf_percpu_obj_new_impl(__u64 local_type_id, void *meta) __ksym;
extern void bpf_percpu_obj_drop_impl(void *obj, void *meta) __ksym;

#define PKOBJ_SLOT(buf)		 (((__u32)(buf) - BENCH_BUFS) / 8)
#define PKOBJ_NO_VERIFY(b, n, m) 0

/* NEW: what the exchange puts in, or NULL in the row that only exchanges. */
#define PKOBJ_FILL(x, SIZE, NEW, FAILED)                                                                               \
	__weak __u32 x##_##SIZE##_fill(__u64 buf, __u32 n, __u64 size, __u64 mark, __u64 a)                            \
	{                                                                                                              \
		__u32 i, key, fails = 0;                                                                               \
		struct pslot_##SIZE *s;                                                                                \
		struct pobj_##SIZE __percpu_kptr *o;                                                                   \
                                                                                                                       \
		for (i = arn_opaque(0u); i < n && arn_may_loop; i++) {                                                 \
			key = PKOBJ_SLOT(buf) + i;                                                                     \
			s = bpf_map_lookup_elem(&slots_##SIZE, &key);                                                  \
			if (!s)                                                                                        \
				return BENCH_BROKEN;                                                                   \
			o = NEW;                                                                                       \
			if (FAILED) {                                                                                  \
				fails++;                                                                               \
				continue;                                                                              \
			}                                                                                              \
			s->word = mark + i;                                                                            \
			o = bpf_kptr_xchg(&s->obj, o);                                                                 \
			if (arn_unlikely(o)) {                                                                         \
				bpf_percpu_obj_drop_impl(o, 0);                                                        \
				fails++;                                                                               \
			}                                                                                              \
		}                                                                                                      \
		return i < n ? BENCH_BROKEN : fails;                                                                   \
	}

#define PKOBJ_DRAIN(x, SIZE)                                                                                           \
	__weak __u32 x##_##SIZE##_drain(__u64 buf, __u32 n)                                                            \
	{                                                                                                              \
		struct pobj_##SIZE __percpu_kptr *o;                                                                   \
		struct pslot_##SIZE *s;                                                                                \
		__u32 i, key;                                                                                          \
                                                                                                                       \
		for (i = arn_opaque(0u); i < n && arn_may_loop; i++) {                                                 \
			key = PKOBJ_SLOT(buf) + i;                                                                     \
			s = bpf_map_lookup_elem(&slots_##SIZE, &key);                                                  \
			if (!s)                                                                                        \
				return BENCH_BROKEN;                                                                   \
			o = bpf_kptr_xchg(&s->obj, NULL);                                                              \
			if (o)                                                                                         \
				bpf_percpu_obj_drop_impl(o, 0);                                                        \
		}                                                                                                      \
		return i < n ? BENCH_BROKEN : 0;                                                                       \
	}

#define BENCH_PKOBJ(SIZE)                                                                                              \
	struct pobj_##SIZE {                                                                                           \
		__u64 word[SIZE / 8];                                                                                  \
	};                                                                                                             \
	struct pslot_##SIZE {                                                                                          \
		struct pobj_##SIZE __percpu_kptr *obj;                                                                 \
		__u64 word;                                                                                            \
	};                                                                                                             \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                                      \
		__uint(max_entries, 1);                                                                                \
		__type(key, __u32);                                                                                    \
		__type(value, struct pslot_##SIZE);                                                                    \
	} slots_##SIZE SEC(".maps");                                                                                   \
                                                                                                                       \
	PKOBJ_FILL(pkobj, SIZE, bpf_percpu_obj_new_impl(bpf_core_type_id_local(struct pobj_##SIZE), 0), !o)            \
	PKOBJ_DRAIN(pkobj, SIZE)                                                                                       \
	BENCH_PROGS(pkobj_##SIZE, PKOBJ_NO_VERIFY)                                                                     \
	BENCH_HOLD(pkobj_##SIZE)                                                                                       \
	PKOBJ_FILL(pswap, SIZE, NULL, 0)                                                                               \
	PKOBJ_DRAIN(pswap, SIZE)                                                                                       \
	BENCH_PROGS(pswap_##SIZE, PKOBJ_NO_VERIFY)

BENCH_PKOBJ(8)
BENCH_PKOBJ(16)
BENCH_PKOBJ(32)
BENCH_PKOBJ(64)
BENCH_PKOBJ(96)
BENCH_PKOBJ(128)
BENCH_PKOBJ(192)
BENCH_PKOBJ(256)
BENCH_PKOBJ(512)
