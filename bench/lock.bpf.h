/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * lock.bpf.h - the single lock of the buddy-lock baseline: a lock byte and a pending bit.
 *
 * That is how the kernel's arena spin lock (a queued spin lock) serves two CPUs: the second one sets
 * the pending bit, waits for the byte and is next, before who comes after.  It is the lock that the
 * allocators people copy stand on; a lock that lets its last holder back in first looks cheaper under
 * contention, and starves.  Held with preemption off.  Waiting is bounded (a host may take a virtual
 * CPU away for milliseconds), and who gives up takes its pending bit back.
 */
#ifndef BENCH_LOCK_BPF_H
#define BENCH_LOCK_BPF_H

#define BENCH_LOCK_TURNS (1u << 22)
#define BENCH_LOCKED	 0x1u
#define BENCH_PENDING	 0x100u

/* Holds the pending bit: the next one to get the lock. */
static arn_inline _Bool bench_lock_pending(__u32 __arena *lock)
{
	__u32 i;

	for (i = arn_opaque(0u); i < BENCH_LOCK_TURNS && arn_may_loop; i++)
		if (!(arn_load_relaxed(lock) & BENCH_LOCKED) &&
		    arn_cas32_full(lock, BENCH_PENDING, BENCH_LOCKED) == BENCH_PENDING)
			return 1;
	__sync_fetch_and_and(lock, ~BENCH_PENDING); /* no loop: the patience may be spent */
	return 0;
}

static arn_inline _Bool bench_lock(__u32 __arena *lock)
{
	__u32 i, v;

	bpf_preempt_disable();
	if (arn_likely(!arn_cas32_full(lock, 0, BENCH_LOCKED)))
		return 1;
	for (i = arn_opaque(0u); i < BENCH_LOCK_TURNS && arn_may_loop; i++) {
		v = arn_load_relaxed(lock);
		if (!v && !arn_cas32_full(lock, 0, BENCH_LOCKED))
			return 1;
		if (v && !(v & BENCH_PENDING) && arn_cas32_full(lock, v, v | BENCH_PENDING) == v) {
			if (bench_lock_pending(lock))
				return 1;
			break;
		}
	}
	bpf_preempt_enable();
	return 0;
}

static arn_inline void bench_unlock(__u32 __arena *lock)
{
	/* BPF has no release store; x86's plain store is one.  Others: a full operation. */
#ifdef __TARGET_ARCH_x86
	arn_barrier_compiler();
	arn_store_relaxed((__u8 __arena *)lock, 0);
#else
	arn_add32_full(lock, -BENCH_LOCKED);
#endif
	bpf_preempt_enable();
}

#endif
