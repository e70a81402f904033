// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* nmi_mutant.bpf.c - nmi.bpf.c with a library that does not claim a cache before it works on it. */
#define ARN_TEST_NO_CLAIM
#include "nmi.bpf.c"
