// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * out.c - the only place that prints tables (libsmartcols) or JSON (jansson).
 */
#include <errno.h>
#include <fcntl.h>
#include <libsmartcols/libsmartcols.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "out.h"

struct out_table {
	struct libscols_table *table;
	struct libscols_line *line;
	char *title;
	size_t cell;
};

static bool json_mode;
static bool progress_shown;

/*
 * At the very end, also of argp's own exits: what was printed must have arrived.  Only a success
 * becomes a failure; another status says more than ours.
 */
static void finish(int status, void *unused)
{
	bool lost = ferror(stdout);
	int err = 0;

	if (fclose(stdout)) {
		lost = true;
		err = errno;
	}
	if (!lost)
		return;
	fprintf(stderr, "arenite: stdout: %s: the output is not complete\n", err ? strerror(err) : "a write failed");
	if (!status)
		_exit(EXIT_FAILURE);
}

/*
 * A standard stream that came closed is opened the wrong way round: its writes still fail, and no
 * pipe or map of ours gets its number.
 */
int out_begin(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* cppcheck-suppress leakReturnValNotUsed */
		if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return -EBADF;
	}
	return on_exit(finish, NULL) ? -ENOMEM : 0;
}

void out_set_json(bool json)
{
	json_mode = json;
}

bool out_json_wanted(void)
{
	return json_mode;
}

static bool colour(void)
{
	const char *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(no && *no);
}

void out_line(const char *fmt, ...)
{
	va_list ap;

	if (json_mode)
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

struct out_table *out_table(const char *title)
{
	struct out_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	scols_init_debug(0);
	t->table = scols_new_table();
	if (!t->table || (title && asprintf(&t->title, "%s", title) < 0)) {
		scols_unref_table(t->table);
		free(t);
		return NULL;
	}
	scols_table_set_column_separator(t->table, "  ");
	/* Whole cells, however narrow the terminal: they are also what gets pasted into reports. */
	scols_table_set_termforce(t->table, SCOLS_TERMFORCE_NEVER);
	if (colour())
		scols_table_enable_colors(t->table, 1);
	return t;
}

void out_col(struct out_table *t, const char *name, bool right)
{
	struct libscols_column *c = t ? scols_table_new_column(t->table, name, 0, right ? SCOLS_FL_RIGHT : 0) : NULL;

	if (c && colour())
		scols_cell_set_color(scols_column_get_header(c), "\033[1m");
}

void out_row(struct out_table *t)
{
	if (!t)
		return;
	t->line = scols_table_new_line(t->table, NULL);
	t->cell = 0;
}

void out_cell(struct out_table *t, const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	if (!t || !t->line)
		return;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0 || scols_line_refer_data(t->line, t->cell++, text))
		return;
}

void out_table_drop(struct out_table *t)
{
	if (!t)
		return;
	scols_unref_table(t->table);
	free(t->title);
	free(t);
}

void out_table_end(struct out_table *t)
{
	if (t && !json_mode) {
		if (t->title)
			out_line("%s", t->title);
		scols_print_table(t->table);
		putchar('\n');
	}
	out_table_drop(t);
}

int out_json(json_t *doc)
{
	int err = 0;

	if (!json_mode) {
		json_decref(doc);
		return 0;
	}
	if (!doc || json_dumpf(doc, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(8)))
		err = ferror(stdout) ? -EIO : -ENOMEM;
	else
		putchar('\n');
	if (err == -ENOMEM)
		fputs("arenite: JSON: out of memory\n", stderr);
	json_decref(doc);
	return err;
}

void out_progress(const char *fmt, ...)
{
	bool tty = isatty(STDERR_FILENO);
	va_list ap;

	if (!fmt) {
		if (tty && progress_shown)
			fputs("\r\033[K", stderr);
		progress_shown = false;
		return;
	}
	if (tty)
		fputs("\r\033[K", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	if (!tty)
		fputc('\n', stderr);
	fflush(stderr);
	progress_shown = true;
}

void out_note(const char *fmt, ...)
{
	va_list ap;

	fputs("note: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

int out_error(int status, const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	out_progress(NULL);
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return status;
	if (json_mode)
		out_json(json_pack("{s:i, s:{s:s, s:i}}", "schema", OUT_SCHEMA, "error", "message", text, "exit",
				   status));
	else
		fprintf(stderr, "arenite: %s\n", text);
	free(text);
	return status;
}

int out_status(int err)
{
	return err == -ENOTSUP || err == -EPERM || err == -EACCES || err == -ENOSYS ? EXIT_LACKS : EXIT_FAILURE;
}
