// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * arenite-user.c - the same calls on a shared heap: what a user thread pays on memory that BPF programs and
 * other processes allocate from as well.
 */
#define PEER_NAME  "arenite-user"
#define PEER_FLAGS 0
#include "arenite.c" /* NOLINT(bugprone-suspicious-include) */
