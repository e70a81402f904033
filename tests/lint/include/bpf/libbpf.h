/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libbpf.h - the real one, telling clang-tidy who frees a skeleton that could not be opened. */
#include_next <bpf/libbpf.h>
#ifndef ARN_LINT_LIBBPF_H
#define ARN_LINT_LIBBPF_H

void bpf_object__destroy_skeleton(struct bpf_object_skeleton *s) __attribute__((ownership_takes(malloc, 1)));

#endif
