// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* pack.bpf.c - objects of the sizes in an array, one after another, until the first NULL. */
#include <linux/bpf.h>
#include <arenite/arenite.bpf.h>
#include "pack.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u32 sizes[PACK_SIZES];

SEC("syscall")
int pack_fill(struct pack *a)
{
	__u64 chain = a->chain, asked = arn_opaque(0ull), p;
	__u32 objects = arn_opaque(0u);
	int i;

	asm volatile("" : : "r"(&arn_arena));
	bpf_for(i, 0, PACK_SIZES) {
		__u32 size = sizes[i & (PACK_SIZES - 1)];

		p = (__u64)arn_malloc(size);
		if (!p)
			break;
		*(volatile __u64 __arena *)p = chain;
		chain = p;
		asked += size;
		objects++;
	}
	a->chain = chain;
	a->asked = asked;
	a->objects = objects;
	return 0;
}
