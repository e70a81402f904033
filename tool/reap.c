// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * reap.c - arenite reap PIN: what threads had cached that are gone goes back to the heap.
 */
#include <arenite/arenite.h>
#include "args.h"
#include "out.h"
#include "pin.h"
#include "tool.h"

int tool_reap(int argc, char **argv)
{
	static const struct argp_option options[] = { ARGS_JSON, { 0 } };
	static const struct argp argp = {
		.options = options,
		.parser = pin_parse,
		.args_doc = "PIN",
		.doc = "Gives back what threads had cached in the heap whose arena map is pinned at PIN, and that are gone: "
		       "their process was killed, or executed another program.",
	};
	const char *pin = NULL;
	struct arn_heap *heap;
	int err;
	long n;

	args_parse(&argp, argc, argv, &pin);
	heap = pin_open(pin, &err);
	if (!heap)
		return err;
	n = arn_reap(heap);
	arn_close(heap);
	if (n < 0)
		return out_error(out_status((int)n), "%s", arn_last_error());
	out_line("%s: %ld slots of threads that are gone", pin, n);
	return out_json(json_pack("{s:i, s:s, s:I}", "schema", OUT_SCHEMA, "pin", pin, "reaped", (json_int_t)n)) ? 1
														 : 0;
}
