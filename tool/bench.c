// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * bench.c - arenite bench SCENARIO, and arenite bench list.
 */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "out.h"
#include "scenario.h"
#include "tool.h"

static const struct bench_scenario *const scenarios[] = { &bench_malloc_free, &bench_malloc_xfree, &bench_nmi,
							  &bench_percpu, &bench_shared };
#define NSCENARIOS (sizeof(scenarios) / sizeof(*scenarios))

static error_t parse_list(int key, char *arg, struct argp_state *state)
{
	if (key == ARGS_KEY_JSON)
		return 0;
	return key == ARGP_KEY_ARG ? args_bad(state, "'%s': list takes no arguments", arg) : ARGP_ERR_UNKNOWN;
}

static const struct argp_option options[] = { ARGS_JSON, { 0 } };

static int list(int argc, char **argv)
{
	static const struct argp argp = { .options = options,
					  .parser = parse_list,
					  .doc = "The benchmark's scenarios." };
	json_t *names = json_array();
	struct out_table *t;
	size_t i;

	args_parse(&argp, argc, argv, NULL);
	t = out_table(NULL);
	out_col(t, "scenario", false);
	out_col(t, "what it measures", false);
	for (i = 0; i < NSCENARIOS; i++) {
		out_row(t);
		out_cell(t, "%s", scenarios[i]->name);
		out_cell(t, "%s", scenarios[i]->text);
		json_array_append_new(names,
				      json_pack("{s:s, s:s}", "name", scenarios[i]->name, "text", scenarios[i]->text));
	}
	out_table_end(t);
	return out_json(json_pack("{s:i, s:o}", "schema", OUT_SCHEMA, "scenarios", names)) ? 1 : 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key == ARGS_KEY_JSON)
		return 0;
	if (key == ARGP_KEY_ARG)
		return args_bad(state, "'%s': no such scenario: 'arenite bench list' names them", arg);
	return key == ARGP_KEY_NO_ARGS ? args_bad(state, "no scenario given: 'arenite bench list' names them")
				       : ARGP_ERR_UNKNOWN;
}

int tool_bench(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "SCENARIO [OPTION...]\nlist",
		.doc = "Measures a scenario.\v'arenite bench list' names the scenarios, "
		       "'arenite bench SCENARIO --help' lists the options of one.",
	};
	char name[64];
	size_t i;

	if (argc > 1) {
		snprintf(name, sizeof(name), "%s %s", argv[0], argv[1]);
		for (i = 0; i < NSCENARIOS; i++)
			if (!strcmp(argv[1], scenarios[i]->name)) {
				argv[1] = name;
				return scenarios[i]->main(scenarios[i], argc - 1, argv + 1);
			}
		if (!strcmp(argv[1], "list")) {
			argv[1] = name;
			return list(argc - 1, argv + 1);
		}
	}
	args_parse(&argp, argc, argv, NULL);
	return EXIT_USAGE;
}
