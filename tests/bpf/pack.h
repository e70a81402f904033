/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pack.h - argument of the program in pack.bpf.c. */
#ifndef TEST_PACK_H
#define TEST_PACK_H

#define PACK_SIZES 32768

struct pack {
	__u64 chain;
	__u64 asked; /* sum of the sizes */
	__u32 objects;
	__u32 pad;
};

#endif
