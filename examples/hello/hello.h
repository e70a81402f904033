/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hello.h - what both sides read: an object of the heap. */
#define LATEST 8

struct packet {
	__u64 number, ns;
	__u32 bytes;
};
