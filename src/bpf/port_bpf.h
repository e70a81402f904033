/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * port_bpf.h - the seam for BPF programs (clang 19, -mcpu=v4).  port.h says what each name means.
 *
 * Works after vmlinux.h and after linux/bpf.h.  A pointer into the arena has address space 1; an
 * offset cast to one is dereferenced without a base, because the arena lies at a 4 GiB boundary.
 */
#ifndef ARN_PORT_BPF_H
#define ARN_PORT_BPF_H

#ifndef __BPF_FEATURE_ADDR_SPACE_CAST
#error "arenite needs a compiler with BPF arena support: clang 19 or later, -mcpu=v4"
#endif

#define arn_inline inline __attribute__((always_inline))
#define arn_cold   arn_inline /* a call would be a frame more of the user's eight */

/* vmlinux.h of bpftool 7.5 and later brings kfunc prototypes, which these would clash with. */
#if !defined(__VMLINUX_H__) || defined(BPF_NO_KFUNC_PROTOTYPES) || defined(ARN_DECLARE_KFUNCS)
extern void bpf_preempt_disable(void) __weak __ksym;
extern void bpf_preempt_enable(void) __weak __ksym;
extern void __arena *bpf_arena_alloc_pages(void *map, void __arena *addr, __u32 page_cnt, int node_id,
					   __u64 flags) __weak __ksym;
extern void bpf_arena_free_pages(void *map, void __arena *ptr, __u32 page_cnt) __weak __ksym;
#endif

/*
 * An arena address as the kernel's page calls take it.  vmlinux.h declares them with a plain pointer,
 * one with a type tag (bpftool 7.5) or one with an address space (later ones), so ask the prototype.
 */
#define arn_page_addr(at) ((__typeof__(bpf_arena_alloc_pages(0, 0, 0, 0, 0)))(__u64)(at))

/* In BPF a heap has no handle: this only keeps the core's signatures the same. */
typedef __u32 arn_base;

#define ARN_HERE 0

/*
 * The verifier takes arena pointers of a subprogram that never names the arena for scalars
 * ("invalid mem access 'scalar'"), so every global function does so once.
 */
#define arn_name_arena() asm volatile("" : : "r"(&ARN_MAP))

/*
 * 0, but the verifier cannot know: it would walk a loop that counts from a constant turn by turn
 * ("The sequence of 8193 jumps is too complex").
 */
volatile __u32 arn__nought __weak;
#define arn_opaque(x) ((x) + (__typeof__(x))arn__nought)

/*
 * Without the opaque step clang 19 folds a constant offset into a constant expression and drops the
 * address cast that the verifier wants ("invalid mem access 'scalar'").
 */
#define arn_ptr(b, T, o)                                                                                               \
	({                                                                                                             \
		__u64 arn__p = (__u32)(o);                                                                             \
		(void)(b);                                                                                             \
		asm volatile("" : "+r"(arn__p));                                                                       \
		(T __arena *)arn__p;                                                                                   \
	})

#define arn_may_loop                                                                                                   \
	({                                                                                                             \
		__label__ arn__out, arn__on;                                                                           \
		_Bool arn__r = 1;                                                                                      \
		asm volatile goto("may_goto %l[arn__out]" : : : : arn__out);                                           \
		goto arn__on;                                                                                          \
	arn__out:                                                                                                      \
		arn__r = 0;                                                                                            \
	arn__on:                                                                                                       \
		arn__r;                                                                                                \
	})

#ifdef ARN_TEST_LINGER
__weak int arn__linger(void)
{
	__u32 i, n = bpf_get_prandom_u32();

	if (n & 63)
		return 0;
	n = n >> 8 & 2047;
	for (i = arn_opaque(0u); i < n && arn_may_loop; i++)
		asm volatile("");
	return 0;
}
#define arn_linger() ((void)arn__linger())
#else
#define arn_linger() ((void)0)
#endif

/*
 * Claim by exchange, release by a plain store: whoever can see the word runs on the same CPU, in
 * program order.  A plain check and store would let two tasks in that preempt each other between
 * the two; turning preemption off around them costs two calls more (17 ns against 6 on Zen 3 with
 * return thunks).  ARN_TEST_NO_GUARD (that
 * plain form) and ARN_TEST_NO_CLAIM (nothing) are for the tests that show the difference.
 */
static arn_inline __u32 arn_claim(struct arn_cache __arena *c)
{
#ifdef ARN_TEST_NO_CLAIM
	if (1)
		return *(volatile __u32 __arena *)&c->top;
#endif
#ifdef ARN_TEST_NO_GUARD
	__u32 was = *(volatile __u32 __arena *)&c->top;

	if (was != ARN_CACHE_BUSY)
		*(volatile __u32 __arena *)&c->top = ARN_CACHE_BUSY;
	return was;
#else
	return __sync_lock_test_and_set(&c->top, ARN_CACHE_BUSY);
#endif
}

static arn_inline void arn_unclaim(struct arn_cache __arena *c, __u32 top)
{
	asm volatile("" : : : "memory");
	*(volatile __u32 __arena *)&c->top = top;
}

static arn_inline void arn_pin_enter(void)
{
	bpf_preempt_disable();
}

static arn_inline void arn_pin_leave(void)
{
	bpf_preempt_enable();
}

/*
 * About a hundred microseconds, then the caller falls back.  may_goto (6.15 and later) counts all turns of a
 * function: after 65,535 it begins to look at the clock, and from 250 ms later on it ends every loop there at its
 * next turn, also those under the lock, which would leave a slab half made.  So the spin takes only half of the
 * turns that are granted without a look; nothing done under the lock takes the other half.
 */
#define ARN_SPIN_MAX (1u << 15)

static arn_inline void arn_relax(__u32 i)
{
	(void)i;
}

#define arn_clock() ((__u32)(bpf_ktime_get_ns() >> 20))

#define arn_barrier_compiler() asm volatile("" : : : "memory")

#define arn_load_relaxed(p)	(*(volatile __typeof__(*(p)) *)(p))
#define arn_store_relaxed(p, v) ((void)(*(volatile __typeof__(*(p)) *)(p) = (v)))

#define arn_load_consume32 arn_load_relaxed

#define arn_cas32_full(p, o, n) __sync_val_compare_and_swap((__u32 __arena *)(p), (__u32)(o), (__u32)(n))
#define arn_cas64_full(p, o, n) __sync_val_compare_and_swap((__u64 __arena *)(p), (__u64)(o), (__u64)(n))
#define arn_xchg32_full(p, v)	__sync_lock_test_and_set((__u32 __arena *)(p), (__u32)(v))
#define arn_xchg64_full(p, v)	__sync_lock_test_and_set((__u64 __arena *)(p), (__u64)(v))
#define arn_add32_full(p, v)	__sync_fetch_and_add((__u32 __arena *)(p), (__u32)(v))
#define arn_add64_full(p, v)	__sync_fetch_and_add((__u64 __arena *)(p), (__u64)(v))
#define arn_inc64_relaxed(p)	((void)__sync_fetch_and_add((__u64 __arena *)(p), 1ULL))

/*
 * The bytecode does not know its machine, the root does.  A plain store or load is a release or an acquire
 * on x86 only; elsewhere (arm64) a fetching atomic is, on the same word.
 */
static arn_inline __u32 arn_load_acquire32(struct arn_root __arena *r, __u32 __arena *p)
{
	__u32 v;

	if (arn_unlikely(!(r->flags & ARN_F_TSO)))
		return arn_cas32_full(p, 0, 0);
	v = arn_load_relaxed(p);
	arn_barrier_compiler();
	return v;
}

static arn_inline void arn_store_release32(struct arn_root __arena *r, __u32 __arena *p, __u32 v)
{
	if (arn_unlikely(!(r->flags & ARN_F_TSO))) {
		arn_xchg32_full(p, v);
		return;
	}
	arn_barrier_compiler();
	arn_store_relaxed(p, v);
}

/*
 * An or without a result is unordered on arm64, and with one the x86 JIT refuses it: before it, a
 * compare-and-swap that changes nothing.  (Clang makes an or of an addition of 0.)
 */
#define arn_or64_full(p, v)                                                                                            \
	do {                                                                                                           \
		(void)arn_cas64_full(p, 0ULL, 0ULL);                                                                   \
		(void)__sync_fetch_and_or((__u64 __arena *)(p), (__u64)(v));                                           \
	} while (0)

#define arn_prefetch_write(p, n) ((void)(p), (void)(n))

/*
 * BPF has no bit-counting instructions, and halving by branches is 32 paths to the verifier: a
 * multiplication by a de Bruijn sequence finds the place of a single bit (Leiserson, Prokop, Randall
 * 1998).
 */
static arn_inline __u32 arn_bit_place(struct arn_root __arena *r, __u64 bit)
{
	return r->bit_place[bit * ARN_DE_BRUIJN >> 58];
}

static arn_inline __u32 arn_log2(struct arn_root __arena *r, __u64 x)
{
	x |= x >> 1;
	x |= x >> 2;
	x |= x >> 4;
	x |= x >> 8;
	x |= x >> 16;
	x |= x >> 32;
	return arn_bit_place(r, x - (x >> 1));
}

static arn_inline __u32 arn_ctz64(struct arn_root __arena *r, __u64 x)
{
	return arn_bit_place(r, x & -x);
}

#endif
