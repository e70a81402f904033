/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * port_user.h - the seam for the host (gcc and clang, C11).  port.h says what each name means.
 */
#ifndef ARN_PORT_USER_H
#define ARN_PORT_USER_H

#include <linux/types.h>

#define arn_inline inline __attribute__((always_inline))
#define arn_cold   __attribute__((noinline, cold, unused))

typedef char *arn_base; /* address of offset 0, 4 GiB-aligned */

#define arn_ptr(b, T, o) ((T *)(void *)((b) + (__u32)(o)))
#define arn_may_loop	 1
#define arn_opaque(x)	 (x)

#ifdef ARN_TEST_LINGER
void arn_torture_linger(void); /* the test's */
#define arn_linger() arn_torture_linger()
#else
#define arn_linger() ((void)0)
#endif

#define arn_load_relaxed(p)	__atomic_load_n(p, __ATOMIC_RELAXED)
#define arn_store_relaxed(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

/*
 * A thread has its slot to itself; what nests (signal handlers) finds it busy and is done before.  A
 * handler may run between any two instructions: so the flag is a word of its own, top is read after it
 * is set, and a handler between the look and the store leaves both as it found them.
 */
static arn_inline __u32 arn_claim_idle(struct arn_cache *c)
{
	__atomic_store_n(&c->busy, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&c->top, __ATOMIC_RELAXED);
}

static arn_inline __u32 arn_claim(struct arn_cache *c)
{
	return __atomic_load_n(&c->busy, __ATOMIC_RELAXED) ? ARN_CACHE_BUSY : arn_claim_idle(c);
}

static arn_inline void arn_unclaim(struct arn_cache *c, __u32 top)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&c->top, top, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&c->busy, 0, __ATOMIC_RELAXED);
}

/* How deep this thread is in arn_lock: a signal handler on top of one must not wait for it. */
extern __thread __u32 arn_pins __attribute__((tls_model("initial-exec")));

static arn_inline void arn_pin_enter(void)
{
	arn_store_relaxed(&arn_pins, arn_load_relaxed(&arn_pins) + 1);
}

static arn_inline void arn_pin_leave(void)
{
	arn_store_relaxed(&arn_pins, arn_load_relaxed(&arn_pins) - 1);
}

/* Native heaps take the lock directly: only a handler on top of a call that has it fails, and at once. */
#define ARN_SPIN_MAX (arn_load_relaxed(&arn_pins) > 1 ? 1u : 1u << 30)
void arn_relax(__u32 i);
__u32 arn_clock(void);

#define arn_barrier_compiler() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* What BPF programs on this machine may rely on (a root's flag). */
#if defined(__x86_64__)
#define ARN_TSO_HERE ARN_F_TSO
#else
#define ARN_TSO_HERE 0
#endif

/* More than it says: compilers and TSan know nothing of dependencies. */
#define arn_load_consume32(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)

#define arn_load_acquire32(r, p)     ((void)(r), __atomic_load_n(p, __ATOMIC_ACQUIRE))
#define arn_store_release32(r, p, v) ((void)(r), __atomic_store_n(p, v, __ATOMIC_RELEASE))

static arn_inline __u32 arn_cas32_full(__u32 *p, __u32 old, __u32 new)
{
	__atomic_compare_exchange_n(p, &old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return old;
}

static arn_inline __u64 arn_cas64_full(__u64 *p, __u64 old, __u64 new)
{
	__atomic_compare_exchange_n(p, &old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return old;
}

#define arn_xchg32_full(p, v) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#define arn_xchg64_full(p, v) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#define arn_add32_full(p, v)  __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)
#define arn_add64_full(p, v)  __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)
#define arn_inc64_relaxed(p)  ((void)__atomic_fetch_add(p, 1ULL, __ATOMIC_RELAXED))
#define arn_or64_full(p, v)   ((void)__atomic_fetch_or(p, v, __ATOMIC_SEQ_CST))

static arn_inline void arn_prefetch_write(const void *p, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i += 64)
		__builtin_prefetch((const char *)p + i, 1);
}

static arn_inline __u32 arn_log2(struct arn_root *r, __u64 x)
{
	(void)r;
	return 63 - (__u32)__builtin_clzll(x);
}

static arn_inline __u32 arn_ctz64(struct arn_root *r, __u64 x)
{
	(void)r;
	return (__u32)__builtin_ctzll(x);
}

#endif
