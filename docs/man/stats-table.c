// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * stats-table.c - fills a manual page's tables from the lists in stats.h and feature.h.
 *
 * stdin to stdout; a line "@HEAP@", "@CLASS@", "@FAIL@", "@GROWTH@" or "@FEATURES@" becomes that list, one paragraph an entry.
 */
#include <stdio.h>
#include <string.h>

#include "feature.h"
#include "stats.h"

static void escaped(const char *text)
{
	for (; *text; text++)
		*text == '-' ? printf("\\-") : putchar(*text);
}

static void feature(const char *name, const char *kind, const char *what, const char *older, const char *since,
		    int needed, const char *without)
{
	printf(".TP\n.B ");
	escaped(name);
	printf("%s\n%s ", needed ? " \\fR(needed)" : "", kind);
	escaped(what);
	if (*older) {
		printf(", before that ");
		escaped(older);
	}
	printf("; Linux %s.\nWithout it: ", since);
	escaped(without);
	printf(".\n");
}

static void counter(const char *name, const char *unit, const char *text)
{
	printf(".TP\n.B ");
	escaped(name);
	printf("%s%s%s\n", *unit ? " \\fR(" : "", unit, *unit ? ")" : "");
	escaped(text);
	printf(".\n");
}

int main(void)
{
	char line[1024];

	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "@HEAP@\n")) {
#define X(name, unit, text) counter(#name, unit, text);
			ARN_HEAP_STATS(X)
		} else if (!strcmp(line, "@CLASS@\n")) {
			ARN_CLASS_STATS(X)
#undef X
		} else if (!strcmp(line, "@FAIL@\n")) {
#define X(suffix, name, text) counter(#name, "", text);
			ARN_FAIL_STATS(X)
		} else if (!strcmp(line, "@GROWTH@\n")) {
			ARN_GROWTH_STATS(X)
#undef X
		} else if (!strcmp(line, "@FEATURES@\n")) {
#define X(name, kind, what, older, since, needed, without) feature(name, kind, what, older, since, needed, without);
			ARN_FEATURES(X)
#undef X
		} else {
			fputs(line, stdout);
		}
	}
	return ferror(stdin) || fflush(stdout) ? 1 : 0;
}
