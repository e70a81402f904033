/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * out.h - everything the command prints: tables or JSON to stdout, progress and notes to stderr.
 *
 * With --json (out_set_json) tables and text lines are silent, and errors are JSON too.  Colour only
 * on a terminal, never with NO_COLOR set.
 */
#ifndef TOOL_OUT_H
#define TOOL_OUT_H

#include <stdbool.h>
#include <jansson.h>

#define EXIT_USAGE 2
#define EXIT_LACKS 77 /* the kernel, or this process's rights, lack something: named */
#define OUT_SCHEMA 1

struct out_table;

/*
 * First of all.  From here on a process whose stdout did not take everything says so on stderr and
 * ends with status 1 instead of 0.  0, or a negative errno.
 */
int out_begin(void);

void out_set_json(bool json);
bool out_json_wanted(void);

/* A line of text; nothing with --json. */
void out_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A table: columns, then rows of cells from left to right.  out_table_end() prints and frees it. */
struct out_table *out_table(const char *title);
void out_col(struct out_table *t, const char *name, bool right);
void out_row(struct out_table *t);
void out_cell(struct out_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void out_table_end(struct out_table *t);
void out_table_drop(struct out_table *t); /* frees it unprinted */

/*
 * Prints the document and drops it; nothing without --json.  doc NULL: out of memory.  0, -ENOMEM
 * (said on stderr) or -EIO (said at the end, see out_begin).
 */
int out_json(json_t *doc);

/* To stderr: what is being done now (a terminal shows only the last one).  NULL: done. */
void out_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void out_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Prints "object: cause: remedy" as an error and returns status, for main() to return. */
int out_error(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Exit status for a negative errno. */
int out_status(int err);

#endif
