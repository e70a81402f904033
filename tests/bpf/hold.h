/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hold.h - what hold.bpf.h finds, read by both sides. */
#ifndef TEST_HOLD_H
#define TEST_HOLD_H

#define HOLD_ARENA (64u << 20)
#define HOLD_WORDS (HOLD_ARENA / 16 / 64) /* a bit a granule */

/* What must stay 0. */
struct hold_wrong {
	__u64 twice; /* an object handed out that somebody holds */
	__u64 lost_mark; /* an object to be freed that nobody holds */
	__u64 torn; /* an object whose contents somebody else changed */
	__u64 refused; /* a free that was refused */
	__u64 bulk_short; /* a bulk free that freed fewer */
};

#endif
