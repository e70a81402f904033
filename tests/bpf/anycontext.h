/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* anycontext.h - what anycontext.c asks of its programs. */
#ifndef TEST_ANYCONTEXT_H
#define TEST_ANYCONTEXT_H

#define ANY_CPUS 8

struct job {
	__u64 size, mark, chain;
	__u32 turns; /* objects a run */
	__u32 taken, nulls, bad;
	__u64 pad[3];
};

#endif
