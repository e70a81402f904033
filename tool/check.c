// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * check.c - arenite check PIN: the walkers over a pinned heap, which may be in use.
 */
#include <errno.h>

#include <arenite/arenite.h>
#include "args.h"
#include "out.h"
#include "pin.h"
#include "tool.h"

int tool_check(int argc, char **argv)
{
	static const struct argp_option options[] = { ARGS_JSON, { 0 } };
	static const struct argp argp = {
		.options = options,
		.parser = pin_parse,
		.args_doc = "PIN",
		.doc = "Walks the heap whose arena map is pinned at PIN: every page, magazine and object must be in "
		       "exactly one place.\vA heap in use is walked until it holds still, for some seconds at most; of one "
		       "that never does, only what lasts is called wrong.  Exit status 1: something is.",
	};
	const char *pin = NULL;
	struct arn_heap *heap;
	int err;

	args_parse(&argp, argc, argv, &pin);
	heap = pin_open(pin, &err);
	if (!heap)
		return err;
	err = arn_check_live(heap);
	arn_close(heap);
	if (err && err != -EAGAIN)
		return out_error(out_status(err), "%s", arn_last_error());
	if (err)
		out_line("%s", arn_last_error());
	else
		out_line("%s: every page, magazine and object is in one place", pin);
	return out_json(json_pack("{s:i, s:s, s:b}", "schema", OUT_SCHEMA, "pin", pin, "exact", !err)) ? 1 : 0;
}
