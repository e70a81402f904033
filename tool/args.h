/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * args.h - what all subcommands share in reading their arguments (argp).
 */
#ifndef TOOL_ARGS_H
#define TOOL_ARGS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#define ARGS_KEY_JSON 0x100

/* The option that every command has. */
#define ARGS_JSON { "json", ARGS_KEY_JSON, NULL, 0, "print JSON, errors included", 0 }

/*
 * Parses.  argv[0] is what the usage text shows.  On a usage error it prints what is wrong (as JSON
 * if --json is among the arguments) and ends the process with status 2; --help ends it with 0.
 */
void args_parse(const struct argp *argp, int argc, char **argv, void *input);

/* A usage error from a parser: the text, then EINVAL for it to return. */
int args_bad(struct argp_state *state, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Values; false: not one, or outside of the bounds. */
bool args_uint(const char *text, unsigned int min, unsigned int max, unsigned int *out);
/* "4096", "512K", "8M", "1G": bytes. */
bool args_bytes(const char *text, unsigned long long max, unsigned long long *out);
bool args_seconds(const char *text, double max, double *out);
/* "1,4,16": at most max_n values, each within the bounds, none twice. */
bool args_list(const char *text, unsigned int min, unsigned int max, unsigned int *out, size_t max_n, unsigned int *n);

#endif
