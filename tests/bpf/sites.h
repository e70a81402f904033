/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sites.h - the stores to arena memory in a loaded program, found by disassembling its machine code. */
#ifndef TEST_SITES_H
#define TEST_SITES_H

#include <linux/types.h>

struct site {
	__u64 ip; /* of the instruction after the store: what a watchpoint's exception reports */
	char func[48]; /* the BPF function that it is in */
	char file[48]; /* source, of the innermost inlined function: file's last name, line, its text */
	unsigned int line;
	char text[120];
};

/* NULL: this machine's code cannot be looked at, says why in *why.  To be freed. */
struct site *sites_of(int prog_fd, unsigned int *n, const char **why);

#endif
