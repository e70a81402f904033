/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cmocka.h - the real one, telling clang-tidy that a failed assertion does not return. */
#include_next <cmocka.h>
#ifndef ARN_LINT_CMOCKA_H
#define ARN_LINT_CMOCKA_H

void _fail(const char *const file, const int line) __attribute__((noreturn));
void _skip(const char *const file, const int line) __attribute__((noreturn));
#undef assert_true
#undef assert_non_null
#define assert_true(c)	   ((c) ? (void)0 : _fail(__FILE__, __LINE__))
#define assert_non_null(p) assert_true((p) != NULL)

#endif
