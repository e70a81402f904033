/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * port.h - the seam: everything src/core takes from the world it is compiled for.
 *
 * src/core includes no libc, libbpf or kernel header, and uses no atomic builtin: only what is
 * named here.  port_bpf.h provides it for BPF programs, port_user.h for the host (a native heap,
 * or a shared arena that this process maps).
 *
 * Each port defines
 *
 *   arn_base          type of a heap's base: empty in BPF (an object has one arena), an address
 *                     on the host
 *   arn_ptr(b, T, o)  pointer to the T at offset o (32 bits; arithmetic on o wraps)
 *   arn_inline        a function that must be inlined; arn_cold: off the fast path, a call where
 *                     calls are cheap
 *   arn_may_loop      a loop's condition: false once the world's patience is at its end.  A loop
 *                     that carries it also carries a bound of its own.
 *   arn_opaque(x)     x, with the compiler unable to tell that it is a constant (the verifier
 *                     would explore a loop over constants turn by turn)
 *
 *   arn_claim(c)      the guard of a slot's cache: its top, and the caller has the cache to
 *   arn_unclaim(c, top)   itself until it puts a top back; or ARN_CACHE_BUSY, at once.  BPF: an
 *                     atomic exchange, because preempted tasks do not nest.  Host: a flag set by
 *                     plain stores, because signal handlers do.
 *   arn_pin_enter/leave   from enter to leave nothing runs here but interrupts, so that a holder of
 *                     the slab lock is not preempted.  Not for sleeping.
 *   arn_linger()      nothing.  Built with ARN_TEST_LINGER: now and then a wait, where it may show what goes
 *                     wrong between two accesses
 *   arn_relax(i)      the i-th turn of a spin loop
 *   ARN_SPIN_MAX      turns before a try-lock gives up
 *
 * Atomics name their order.  "full": ordered against everything before and after (BPF's fetching
 * atomics are, on every machine).  "relaxed": no order but that of the one location; a load feeds
 * addresses in order.  clang 19 cannot select acquire, release or fences for BPF: the only two that lie
 * between are plain accesses where the root says that the machine keeps their order (ARN_F_TSO), and
 * "full" elsewhere.  x86's JIT refuses fetch_and/or/xor on arena memory, hence arn_or64_full without a
 * result.
 *
 *   arn_load_relaxed(p)  arn_store_relaxed(p, v)            8, 16, 32, 64 bits.  Also where nothing
 *                     races but several neighbours become 0: clang 19 makes a memset of plain stores,
 *                     and lowers it without the address cast ("invalid mem access 'scalar'")
 *   arn_load_consume32(p)      -> value; ordered before accesses to what it is the address of
 *   arn_load_acquire32(r, p)   -> value; ordered before everything after it.  r: the root
 *   arn_store_release32(r, p, v)   ordered after everything before it
 *   arn_cas32_full(p, old, new)  arn_cas64_full(...)        -> value found
 *   arn_xchg32_full(p, v)        arn_xchg64_full(p, v)      -> value found
 *   arn_add32_full(p, v)         arn_add64_full(p, v)       -> value before; v != 0 (clang makes an or of
 *                                                             it, see below; compare-and-swap instead)
 *   arn_or64_full(p, v)          arn_inc64_relaxed(p)       -> nothing
 *   arn_barrier_compiler()       orders this slot against what nests on it
 *
 *   arn_prefetch_write(p, n)   the n bytes from p on will be written soon; BPF has no such instruction
 *
 *   arn_ctz64(r, x)  arn_log2(r, x)    x != 0; r: the root, whose table BPF needs
 *   arn_clock()                        monotonic time in units of 2^20 ns, 32 bits of it
 */
#ifndef ARN_PORT_H
#define ARN_PORT_H

#include "layout.h"

#define arn_likely(x)	__builtin_expect(!!(x), 1)
#define arn_unlikely(x) __builtin_expect(!!(x), 0)

#ifdef __bpf__
#include "port_bpf.h"
#else
#include "port_user.h"
#endif

#define ARN_EINVAL     22
#define ARN_ENOMEM     12
#define ARN_E2BIG      7
#define ARN_ENOENT     2
#define ARN_EAGAIN     11
#define ARN_EEXIST     17
#define ARN_EBUSY      16
#define ARN_EOPNOTSUPP 95
#define ARN_EUCLEAN    117

/* Slot of a caller that owns none: it goes past the caches. */
#define ARN_NO_SLOT 0xffffffffu

static arn_inline struct arn_root __arena *arn_root(arn_base b)
{
	return arn_ptr(b, struct arn_root, ARN_ROOT_OFF);
}

#endif
