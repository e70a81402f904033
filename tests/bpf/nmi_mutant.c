// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* nmi_mutant.c - nmi.c sees it if a cache is not claimed. */
#define NMI_MUTANT
#include "nmi.c"
