// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * demo.c - arenite demo: the benchmark table in well under two minutes, on whatever there is.
 *
 * With BPF arenas: a heap in the running kernel.  Without: one line says what is missing, and the
 * same runs on a native heap.
 */
#include <stdio.h>
#include <stdlib.h>

#include <arenite/arenite.h>
#include "args.h"
#include "out.h"
#include "crew.h"
#include "runner.h"
#include "scenario.h"
#include "tool.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key == ARGS_KEY_JSON)
		return 0;
	return key == ARGP_KEY_ARG ? args_bad(state, "'%s': demo takes no arguments", arg) : ARGP_ERR_UNKNOWN;
}

int tool_demo(int argc, char **argv)
{
	static const struct argp_option options[] = { ARGS_JSON, { 0 } };
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Creates a heap in the running kernel and measures it beside its baselines.",
	};
	static const struct bench_scenario *const run[] = { &bench_malloc_free, &bench_malloc_xfree };
	json_t *docs = json_array(), *doc;
	struct bench_options o;
	char missing[256];
	size_t i;
	int err;

	args_parse(&argp, argc, argv, NULL);
	err = arn_supported();
	snprintf(missing, sizeof(missing), "%s", err ? arn_last_error() : "");
	if (err)
		out_line("No heap in this kernel (%s): a native heap instead.\n", missing);
	else
		out_line("A heap in a BPF arena of the running kernel, beside its baselines.\n");
	for (i = 0; i < sizeof(run) / sizeof(*run); i++) {
		bench_malloc_defaults(&o, run[i]);
		o.pin = true;
		o.native = err != 0;
		o.repeats = 5;
		o.warm = 0.008;
		o.secs = 0.025;
		o.nproducers = crew_cpus() > 1 ? 2 : 1;
		if (bench_malloc(&o, &doc))
			return out_error(EXIT_FAILURE, "%s", bench_last_error());
		json_array_append_new(docs, doc);
	}
	out_line("%s", "More: 'arenite bench list', 'arenite bench malloc-free --help'.");
	return out_json(json_pack("{s:i, s:b, s:s, s:o}", "schema", OUT_SCHEMA, "native", err != 0, "missing", missing,
				  "benches", docs))
		       ? 1
		       : 0;
}
