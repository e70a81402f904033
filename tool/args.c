// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * args.c - argp with our exit codes, and with usage errors as JSON where JSON is wanted.
 *
 * argp and getopt print usage errors to stderr themselves.  With --json both are silenced
 * (ARGP_NO_ERRS) and the error is printed here.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "out.h"

static char bad[256];

/* The first argument that argp cannot take: the one after the longest beginning that it can. */
static const char *culprit(const struct argp *argp, int argc, char **argv, void *input)
{
	int n;

	for (n = argc - 1; n > 0; n--) {
		bad[0] = 0;
		if (!argp_parse(argp, n, argv, ARGP_NO_ERRS | ARGP_NO_EXIT | ARGP_IN_ORDER, NULL, input) || bad[0])
			break;
	}
	return argv[n > 0 ? n : 0];
}

void args_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	bool json = out_json_wanted(); /* given in front of the command */
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--"); i++)
		json |= !strcmp(argv[i], "--json");
	out_set_json(json);
	argp_err_exit_status = EXIT_USAGE;
	bad[0] = 0;
	if (!argp_parse(argp, argc, argv, json ? ARGP_NO_ERRS : 0, NULL, input))
		return;
	if (bad[0])
		exit(out_error(EXIT_USAGE, "%s", bad));
	exit(out_error(EXIT_USAGE, "'%s': not an option of '%s', or one that lacks its value: '%s --help' lists them",
		       culprit(argp, argc, argv, input), argv[0], argv[0]));
}

int args_bad(struct argp_state *state, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(bad, sizeof(bad), fmt, ap);
	va_end(ap);
	argp_error(state, "%s", bad);
	return EINVAL;
}

bool args_uint(const char *text, unsigned int min, unsigned int max, unsigned int *out)
{
	char *end;
	unsigned long v;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || *end || v < min || v > max)
		return false;
	*out = (unsigned int)v;
	return true;
}

bool args_bytes(const char *text, unsigned long long max, unsigned long long *out)
{
	static const char units[] = "KMG";
	const char *unit;
	unsigned long long v;
	char *end;
	int shift = 0;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit) {
		shift = 10 * (int)(unit - units + 1);
		end++;
	}
	if (errno || *end || v > max >> shift)
		return false;
	*out = v << shift;
	return true;
}

bool args_seconds(const char *text, double max, double *out)
{
	char *end;
	double v;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	v = strtod(text, &end);
	if (end == text || *end || !(v >= 0.001) || v > max)
		return false;
	*out = v;
	return true;
}

bool args_list(const char *text, unsigned int min, unsigned int max, unsigned int *out, size_t max_n, unsigned int *n)
{
	char copy[256], *at = copy, *one;
	unsigned int i;

	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	for (*n = 0; (one = strsep(&at, ",")); (*n)++) {
		if (*n == max_n || !args_uint(one, min, max, &out[*n]))
			return false;
		for (i = 0; i < *n; i++)
			if (out[i] == out[*n])
				return false;
	}
	return *n > 0;
}
