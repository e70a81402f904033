// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * stats-table.c - fills a manual page's tables of counters from the lists in stats.h.
 *
 * stdin to stdout; a line "@HEAP@", "@CLASS@" or "@FAIL@" becomes that list, one paragraph a counter.
 */
#include <stdio.h>
#include <string.h>

#include "stats.h"

static void counter(const char *name, const char *unit, const char *text)
{
	printf(".TP\n.B ");
	for (; *name; name++)
		*name == '-' ? printf("\\-") : putchar(*name);
	printf("%s%s%s\n", *unit ? " \\fR(" : "", unit, *unit ? ")" : "");
	for (; *text; text++)
		*text == '-' ? printf("\\-") : putchar(*text);
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
#undef X
		} else {
			fputs(line, stdout);
		}
	}
	return ferror(stdin) || fflush(stdout) ? 1 : 0;
}
