/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys.h - arguments of the syscall programs, read by both sides. */
#ifndef ARN_SYS_H
#define ARN_SYS_H

struct arn_sys_args {
	__u64 base;
	__u64 bytes;
	__u32 off;
	__u32 pages; /* kernel pages */
	__s64 ret;
};

#endif
