/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * stepping.h - a signal between any two instructions, made to happen and not waited for: on x86 the trap flag
 * makes each instruction raise SIGTRAP.  STEPPING is not defined elsewhere, nor under TSan, which delivers
 * signals when it likes.
 */
#ifndef ARN_TEST_STEPPING_H
#define ARN_TEST_STEPPING_H

#include <signal.h>
#include <ucontext.h>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if !__has_feature(thread_sanitizer)
#define STEPPING 1
#endif
#else
#define STEPPING 1
#endif
#endif

#ifdef STEPPING
#define TRAP_FLAG 0x100

/* Nothing may lie in the red zone while flags are pushed. */
#define STEP_ON()                                                                                                      \
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orl $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::        \
				 : "memory", "cc")
#define STEP_OFF()                                                                                                     \
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; andl $~0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::      \
				 : "memory", "cc")
#endif

#endif
