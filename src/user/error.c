/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* error.c - the last failure of a thread, in words. */
#include <stdarg.h>
#include <stdio.h>
#include "internal.h"

static __thread char last[512];

int arn_error(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last, sizeof(last), fmt, ap);
	va_end(ap);
	errno = err;
	return -err;
}

const char *arn_last_error(void)
{
	return last[0] ? last : "no error";
}

const char *arn_version(void)
{
	return ARN_VERSION;
}
