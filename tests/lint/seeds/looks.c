/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* format: clang-format-violations */
int seed( int n ) { return n; }
