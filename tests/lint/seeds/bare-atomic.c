/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* house: an atomic builtin outside of the ports */
int seed(int *n);
int seed(int *n)
{
	return __atomic_fetch_add(n, 1, __ATOMIC_SEQ_CST);
}
