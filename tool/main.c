// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * main.c - the arenite command: finds the subcommand and hands it the rest.
 *
 * Exit status: 0 done, 1 failed, 2 usage, 77 the kernel (or this process's rights) lacks something.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arenite/arenite.h>
#include "args.h"
#include "out.h"
#include "tool.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "bench", tool_bench },   { "check", tool_check }, { "demo", tool_demo },   { "features", tool_features },
	{ "keeper", tool_keeper }, { "reap", tool_reap },   { "stats", tool_stats },
};

struct input {
	int at; /* index of the subcommand, 0: none */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;

	switch (key) {
	case ARGS_KEY_JSON:
		return 0;
	case ARGP_KEY_ARG:
		in->at = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		return args_bad(state, "no command given");
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_option options[] = { ARGS_JSON, { 0 } };

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "COMMAND [OPTION...]",
	.doc = "A memory allocator for BPF arenas: its benchmarks and its heaps.\v"
	       "Commands:\n"
	       "  bench     measure allocation beside baselines ('arenite bench list')\n"
	       "  check     walk a pinned heap: everything in exactly one place\n"
	       "  demo      a heap in this kernel and its benchmark, in under 2 minutes\n"
	       "  features  what this kernel has of what heaps use\n"
	       "  keeper    keep a pinned heap: grow and trim it, until a signal\n"
	       "  reap      give back what killed processes had cached in a pinned heap\n"
	       "  stats     the counters of a pinned heap\n\n"
	       "'arenite COMMAND --help' lists a command's options.\n"
	       "Exit status: 0 done, 1 failed, 2 usage, 77 the kernel lacks something (which is named).",
};

static void version(FILE *stream, struct argp_state *state)
{
	fprintf(stream, "arenite %s (heap layout %d)\n", arn_version(), ARN_LAYOUT_VERSION);
}

int main(int argc, char **argv)
{
	struct input in = { 0 };
	char name[64], *command;
	int n = 1;
	size_t i;

	if (out_begin())
		return EXIT_FAILURE;
	argp_program_version_hook = version;
	if (argc > 0)
		argv[0] = (char *)"arenite";
	/* Only up to the command: what follows is the command's. */
	while (n < argc && argv[n][0] == '-')
		n++;
	args_parse(&argp, n < argc ? n + 1 : argc, argv, &in);
	command = argv[in.at];
	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(command, commands[i].name))
			continue;
		snprintf(name, sizeof(name), "arenite %s", command);
		argv[in.at] = name;
		return commands[i].run(argc - in.at, argv + in.at);
	}
	for (i = (size_t)in.at; i < (size_t)argc; i++)
		if (!strcmp(argv[i], "--json"))
			out_set_json(true);
	return out_error(EXIT_USAGE, "'%s': no such command: 'arenite --help' lists them", command);
}
