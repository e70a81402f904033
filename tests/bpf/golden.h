/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * golden.h - the table verifier.golden: a row a program, a column a kernel release, '-' for what is not known.
 *
 * Releases are given in three parts: "6.18.15" has the column "6.18", unless there is one of its own (where a
 * stable kernel's verifier differs; such a column is begun by writing it into the head line).  Comments at the
 * head stay; rows keep their order, new ones come last; columns are ordered by version.
 */
#ifndef TEST_GOLDEN_H
#define TEST_GOLDEN_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN_ROWS 256
#define GOLDEN_COLS 16

struct golden {
	char head[2048];
	char col[GOLDEN_COLS][32];
	char row[GOLDEN_ROWS][64];
	unsigned int cell[GOLDEN_ROWS][GOLDEN_COLS]; /* 0: not known */
	int rows, cols;
};

static int golden_find(const char *name, const char *list, size_t size, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (!strcmp(list + (size_t)i * size, name))
			return i;
	return -1;
}

/* The column of a release, -1: there is none; its name would be two. */
static int golden_col(const struct golden *g, const char *release, char two[32])
{
	int c = golden_find(release, g->col[0], sizeof(g->col[0]), g->cols), major = 0, minor = 0;

	sscanf(release, "%d.%d", &major, &minor);
	snprintf(two, 32, "%d.%d", major, minor);
	return c < 0 ? golden_find(two, g->col[0], sizeof(g->col[0]), g->cols) : c;
}

/* The table in a file; an empty one if there is none. */
static struct golden *golden_read(const char *path)
{
	struct golden *g = calloc(1, sizeof(*g));
	FILE *f = fopen(path, "r");
	char line[512], *word, *rest;
	int c;

	if (!g)
		abort();
	while (f && fgets(line, sizeof(line), f)) {
		if (*line == '#') {
			strncat(g->head, line, sizeof(g->head) - strlen(g->head) - 1);
			continue;
		}
		word = strtok_r(line, " \n", &rest);
		if (!word || g->rows == GOLDEN_ROWS)
			continue;
		if (strcmp(word, "program"))
			snprintf(g->row[g->rows++], sizeof(g->row[0]), "%s", word);
		for (c = 0; c < GOLDEN_COLS && (word = strtok_r(NULL, " \n", &rest)); c++) {
			if (g->rows)
				g->cell[g->rows - 1][c] = (unsigned int)strtoul(word, NULL, 10);
			else
				snprintf(g->col[g->cols++], sizeof(g->col[0]), "%s", word);
		}
	}
	if (f)
		fclose(f);
	return g;
}

static unsigned int golden_get(const struct golden *g, const char *release, const char *row)
{
	char two[32];
	int c = golden_col(g, release, two);
	int r = golden_find(row, g->row[0], sizeof(g->row[0]), g->rows);

	return c < 0 || r < 0 ? 0 : g->cell[r][c];
}

static void golden_set(struct golden *g, const char *release, const char *row, unsigned int value)
{
	char col[32];
	int c = golden_col(g, release, col);
	int r = golden_find(row, g->row[0], sizeof(g->row[0]), g->rows);
	int i;

	if ((c < 0 && g->cols == GOLDEN_COLS) || (r < 0 && g->rows == GOLDEN_ROWS))
		abort();
	if (c < 0) {
		for (c = 0; c < g->cols && strverscmp(g->col[c], col) < 0; c++)
			;
		memmove(g->col[c + 1], g->col[c], (size_t)(g->cols - c) * sizeof(g->col[0]));
		for (i = 0; i < GOLDEN_ROWS; i++) {
			memmove(&g->cell[i][c + 1], &g->cell[i][c], (size_t)(g->cols - c) * sizeof(g->cell[0][0]));
			g->cell[i][c] = 0;
		}
		snprintf(g->col[c], sizeof(g->col[0]), "%s", col);
		g->cols++;
	}
	if (r < 0) {
		r = g->rows++;
		snprintf(g->row[r], sizeof(g->row[0]), "%s", row);
	}
	g->cell[r][c] = value;
}

/* Forgets the figures of a release, before new ones are set. */
static void golden_clear(struct golden *g, const char *release)
{
	char two[32];
	int c = golden_col(g, release, two), r;

	for (r = 0; c >= 0 && r < g->rows; r++)
		g->cell[r][c] = 0;
}

static bool golden_empty(const struct golden *g, int row)
{
	int c;

	for (c = 0; c < g->cols; c++)
		if (g->cell[row][c])
			return false;
	return true;
}

/* Without the rows that no kernel has.  0, or -1 with errno. */
static int golden_write(const struct golden *g, const char *path)
{
	FILE *f = fopen(path, "w");
	int r, c;

	if (!f)
		return -1;
	fprintf(f, "%s%-28s", g->head, "program");
	for (c = 0; c < g->cols; c++)
		fprintf(f, " %8s", g->col[c]);
	for (r = 0; r < g->rows; r++) {
		if (golden_empty(g, r))
			continue;
		fprintf(f, "\n%-28s", g->row[r]);
		for (c = 0; c < g->cols; c++)
			if (g->cell[r][c])
				fprintf(f, " %8u", g->cell[r][c]);
			else
				fprintf(f, " %8s", "-");
	}
	fprintf(f, "\n");
	return fclose(f) ? -1 : 0;
}

#endif
