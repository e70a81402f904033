/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * bulk.h - whole stretches between a slot's cache and an array of pointers.
 *
 * arn_vec is where the array lies: in arena memory for BPF, anywhere for the host.  The port
 * defines the type arn_vec and arn_vec_get(v, i), arn_vec_set(v, i, p).
 */
#ifndef ARN_BULK_H
#define ARN_BULK_H

#include "heap.h"

typedef __u64 __attribute__((may_alias)) arn_vec_word; /* the host's are pointers */
#ifdef __bpf__
typedef __u64 arn_vec;
#define arn_vec_at(v, i) arn_ptr(ARN_HERE, arn_vec_word, (v) + (__u64)(i) * 8)
#else
typedef void **arn_vec;
#define arn_vec_at(v, i) ((arn_vec_word *)(v) + (i))
#endif
#define arn_vec_get(v, i)    (*arn_vec_at(v, i))
#define arn_vec_set(v, i, p) (*arn_vec_at(v, i) = (p))

/*
 * Objects a turn of the inner loops.  A may_goto keeps its count in memory, which costs as much as
 * moving an object does.
 */
#define ARN_BULK_STEP	   8u
#define ARN_BULK_OBJ(m, n) ((m) + (__u32) __builtin_offsetof(struct arn_mag, obj) + (n) * 4)
#ifdef __clang__
#define arn_unroll _Pragma("unroll")
#else
#define arn_unroll _Pragma("GCC unroll 8")
#endif

/* Moves at most want objects of the loaded magazine to out.  0: the cache is busy or spent. */
static arn_inline __u32 arn_bulk_pop(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 cls, __u32 want,
				     arn_vec out)
{
	struct arn_cache __arena *c = arn_cache(b, slot, cls);
	__u32 top, n, i, k, off, got, state = r->state_bias, mag;
	__u64 base = r->base;

	top = arn_claim(c);
	if (arn_unlikely(top == ARN_CACHE_BUSY))
		return 0;
	if (!arn_top_has(top))
		top = arn_cache_load(b, r, c, cls, top);
	n = arn_opaque(arn_top_count(top));
	got = n < want ? n : want;
	mag = arn_top_mag(top);
	for (i = arn_opaque(0u); i + ARN_BULK_STEP <= got && arn_may_loop; i += ARN_BULK_STEP) {
		__u32 __arena *from = arn_ptr(b, __u32, ARN_BULK_OBJ(mag, n - ARN_BULK_STEP));
		arn_vec_word __arena *to = arn_vec_at(out, i);

		arn_unroll for (k = 0; k < ARN_BULK_STEP; k++)
		{
			off = arn_load_relaxed(&from[ARN_BULK_STEP - 1 - k]);
			to[k] = base | off;
			arn_store_relaxed(arn_ptr(b, __u8, state + (off >> ARN_GRANULE_SHIFT)), cls + 1);
		}
		n -= ARN_BULK_STEP;
	}
	for (; i < got && arn_may_loop; i++) {
		n--;
		off = arn_load_relaxed(&arn_mag(b, mag)->obj[n & 127]);
		arn_vec_set(out, i, base | off);
		arn_store_relaxed(arn_ptr(b, __u8, state + (off >> ARN_GRANULE_SHIFT)), cls + 1);
	}
	arn_unclaim(c, top - i * 4);
	return i;
}

/*
 * Is this an object of the class?  Then it is freed.  in: its distance from the first granule; rotated, a
 * misaligned pointer is a granule beyond any heap, as one from elsewhere is: one comparison says all.
 */
static arn_inline _Bool arn_bulk_give(arn_base b, __u64 in, __u64 granules, __u32 state, __u32 cls)
{
	__u8 __arena *s;

	in = in >> ARN_GRANULE_SHIFT | in << (64 - ARN_GRANULE_SHIFT);
	if (arn_unlikely(in >= granules))
		return 0;
	s = arn_ptr(b, __u8, state + (__u32)in);
	if (arn_unlikely(arn_load_relaxed(s) != cls + 1))
		return 0;
	arn_store_relaxed(s, 0);
	return 1;
}

/*
 * Frees a stretch of v: objects of one class of the n_cls from first_cls on, as many as the slot's loaded
 * magazine takes.  0: the first is no such object, or the cache is busy or wants a magazine.
 */
static arn_inline __u32 arn_bulk_push(arn_base b, struct arn_root __arena *r, __u32 slot, __u32 first_cls, __u32 n_cls,
				      arn_vec v, __u32 want)
{
	struct arn_cache __arena *c;
	__u32 top, was, n, i, k, cls, st, why, mag, cap, state = r->state_bias + r->first_granule;
	__u64 first = r->base + ((__u64)r->first_granule << ARN_GRANULE_SHIFT), granules = r->ngranules;

	arn_object(b, r, arn_vec_get(v, 0), &st, &why);
	cls = st - 1;
	if (cls - first_cls >= n_cls)
		return 0;
	c = arn_cache(b, slot, cls);
	was = top = arn_claim(c);
	if (arn_unlikely(top == ARN_CACHE_BUSY))
		return 0;
	if (!arn_top_room(top, c->room)) {
		top = arn_cache_unload(b, r, c, cls, top);
		if (top == was) {
			arn_unclaim(c, top);
			return 0;
		}
	}
	n = arn_opaque(arn_top_count(top));
	cap = c->room >> 2;
	mag = arn_top_mag(top);
	for (i = arn_opaque(0u); i + ARN_BULK_STEP <= want && n + ARN_BULK_STEP <= cap && arn_may_loop;
	     i += ARN_BULK_STEP) {
		__u32 __arena *to = arn_ptr(b, __u32, ARN_BULK_OBJ(mag, n));
		arn_vec_word __arena *from = arn_vec_at(v, i);

		arn_unroll for (k = 0; k < ARN_BULK_STEP; k++)
		{
			__u64 p = from[k];

			if (arn_unlikely(!arn_bulk_give(b, p - first, granules, state, cls)))
				break;
			arn_store_relaxed(&to[k], (__u32)p);
		}
		n += k;
		if (k < ARN_BULK_STEP) {
			i += k;
			goto out;
		}
	}
	for (; i < want && n < cap && arn_may_loop; i++) {
		__u64 p = arn_vec_get(v, i);

		if (!arn_bulk_give(b, p - first, granules, state, cls))
			break;
		arn_store_relaxed(arn_ptr(b, __u32, ARN_BULK_OBJ(mag, n)), (__u32)p);
		n++;
	}
out:
	arn_unclaim(c, top + i * 4);
	return i;
}

#endif
