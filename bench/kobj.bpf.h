/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * kobj.bpf.h - the kernel's own allocator for BPF: bpf_obj_new and bpf_obj_drop.
 *
 * An object's size is its type's, so there is one set of loops a size; a run uses the smallest that
 * holds what was asked for.  The only place that can keep many objects is a map whose values have a
 * __kptr field, so each operation carries a look-up and an exchange: kobj_N has them with an object
 * in hand, kswap_N has nothing else.  What kernel costs is kobj_N less kswap_N plus the loop.
 *
 * bpf_obj_new's and bpf_obj_drop's calls stand where the others' global function calls stand.
 */
#ifndef BENCH_KOBJ_BPF_H
#define BENCH_KOBJ_BPF_H

#include "round.h"

extern void *bpf_obj_new_impl(__u64 local_type_id, void *meta) __ksym;
extern void bpf_obj_drop_impl(void *obj, void *meta) __ksym;

/* Index of an array's first entry in the slots map: the array's place in the arena, as the others have it. */
#define KOBJ_SLOT(buf) (((__u32)(buf) - BENCH_BUFS) / 8)

#define KOBJ_NO_VERIFY(buf, n, mark) 0

#define BENCH_KOBJ(SIZE)                                                                                               \
	struct obj_##SIZE {                                                                                            \
		__u64 word[SIZE / 8];                                                                                  \
	};                                                                                                             \
	struct slot_##SIZE {                                                                                           \
		struct obj_##SIZE __kptr *obj;                                                                         \
		__u64 word;                                                                                            \
	};                                                                                                             \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                                      \
		__uint(max_entries, 1);                                                                                \
		__type(key, __u32);                                                                                    \
		__type(value, struct slot_##SIZE);                                                                     \
	} slots_##SIZE SEC(".maps");                                                                                   \
                                                                                                                       \
	__weak __u32 kobj_##SIZE##_fill(__u64 buf, __u32 n, __u64 size, __u64 mark, __u64 aux)                         \
	{                                                                                                              \
		__u32 i, key, fails = 0;                                                                               \
		struct slot_##SIZE *s;                                                                                 \
		struct obj_##SIZE *o;                                                                                  \
                                                                                                                       \
		for (i = arn_opaque(0u); i < n && arn_may_loop; i++) {                                                 \
			key = KOBJ_SLOT(buf) + i;                                                                      \
			s = bpf_map_lookup_elem(&slots_##SIZE, &key);                                                  \
			if (!s)                                                                                        \
				return BENCH_BROKEN;                                                                   \
			o = bpf_obj_new_impl(bpf_core_type_id_local(struct obj_##SIZE), 0);                            \
			if (!o) {                                                                                      \
				fails++;                                                                               \
				continue;                                                                              \
			}                                                                                              \
			o->word[0] = mark + i;                                                                         \
			o = bpf_kptr_xchg(&s->obj, o);                                                                 \
			if (arn_unlikely(o)) {                                                                         \
				bpf_obj_drop_impl(o, 0);                                                               \
				fails++;                                                                               \
			}                                                                                              \
		}                                                                                                      \
		return i < n ? BENCH_BROKEN : fails;                                                                   \
	}                                                                                                              \
                                                                                                                       \
	__weak __u32 kobj_##SIZE##_drain(__u64 buf, __u32 n)                                                           \
	{                                                                                                              \
		struct slot_##SIZE *s;                                                                                 \
		struct obj_##SIZE *o;                                                                                  \
		__u32 i, key;                                                                                          \
                                                                                                                       \
		for (i = arn_opaque(0u); i < n && arn_may_loop; i++) {                                                 \
			key = KOBJ_SLOT(buf) + i;                                                                      \
			s = bpf_map_lookup_elem(&slots_##SIZE, &key);                                                  \
			if (!s)                                                                                        \
				return BENCH_BROKEN;                                                                   \
			o = bpf_kptr_xchg(&s->obj, NULL);                                                              \
			if (arn_likely(o))                                                                             \
				bpf_obj_drop_impl(o, 0);                                                               \
		}                                                                                                      \
		return i < n ? BENCH_BROKEN : 0;                                                                       \
	}                                                                                                              \
	BENCH_PROGS(kobj_##SIZE, KOBJ_NO_VERIFY)                                                                       \
                                                                                                                       \
	__weak __u32 kswap_##SIZE##_fill(__u64 buf, __u32 n, __u64 size, __u64 mark, __u64 aux)                        \
	{                                                                                                              \
		__u32 i, key, fails = 0;                                                                               \
		struct slot_##SIZE *s;                                                                                 \
		struct obj_##SIZE *o;                                                                                  \
                                                                                                                       \
		for (i = arn_opaque(0u); i < n && arn_may_loop; i++) {                                                 \
			key = KOBJ_SLOT(buf) + i;                                                                      \
			s = bpf_map_lookup_elem(&slots_##SIZE, &key);                                                  \
			if (!s)                                                                                        \
				return BENCH_BROKEN;                                                                   \
			s->word = mark + i;                                                                            \
			o = bpf_kptr_xchg(&s->obj, NULL);                                                              \
			if (arn_unlikely(o)) {                                                                         \
				bpf_obj_drop_impl(o, 0);                                                               \
				fails++;                                                                               \
			}                                                                                              \
		}                                                                                                      \
		return i < n ? BENCH_BROKEN : fails;                                                                   \
	}                                                                                                              \
                                                                                                                       \
	__weak __u32 kswap_##SIZE##_drain(__u64 buf, __u32 n)                                                          \
	{                                                                                                              \
		__u32 i, key, fails = 0;                                                                               \
		struct slot_##SIZE *s;                                                                                 \
		struct obj_##SIZE *o;                                                                                  \
                                                                                                                       \
		for (i = arn_opaque(0u); i < n && arn_may_loop; i++) {                                                 \
			key = KOBJ_SLOT(buf) + i;                                                                      \
			s = bpf_map_lookup_elem(&slots_##SIZE, &key);                                                  \
			if (!s)                                                                                        \
				return BENCH_BROKEN;                                                                   \
			o = bpf_kptr_xchg(&s->obj, NULL);                                                              \
			if (arn_unlikely(o)) {                                                                         \
				bpf_obj_drop_impl(o, 0);                                                               \
				fails++;                                                                               \
			}                                                                                              \
		}                                                                                                      \
		return i < n ? BENCH_BROKEN : fails;                                                                   \
	}                                                                                                              \
	BENCH_PROGS(kswap_##SIZE, KOBJ_NO_VERIFY)

#endif
