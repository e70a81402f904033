// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * features.c - arenite features [NAME...]: what the running kernel has of what heaps use.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <arenite/arenite.h>
#include "args.h"
#include "out.h"
#include "tool.h"

struct input {
	char **names;
	int n; /* 0: all */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;

	switch (key) {
	case ARGS_KEY_JSON:
		return 0;
	case ARGP_KEY_ARG:
		if (arn_has(arg) == -ENOENT)
			return args_bad(state, "'%s': no such feature: 'arenite features' lists them", arg);
		in->names[in->n++] = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static bool wanted(const struct input *in, const struct arn_feature *f)
{
	int i;

	for (i = 0; i < in->n; i++)
		if (!strcmp(in->names[i], f->name))
			return true;
	return !in->n;
}

static const char *found(const struct arn_feature *f)
{
	return f->found > 0 ? "yes" : f->found ? "cannot tell" : "no";
}

static void add_row(struct out_table *t, const struct arn_feature *f)
{
	out_row(t);
	out_cell(t, "%s", f->name);
	out_cell(t, "%s", found(f));
	out_cell(t, "%s", f->kind);
	out_cell(t, "%s", f->as ? f->as : f->what);
	out_cell(t, "%s", f->since);
	out_cell(t, "%s", f->without);
}

static json_t *object(const struct arn_feature *f)
{
	json_t *is = f->found < 0 ? json_null() : json_boolean(f->found > 0);

	return json_pack("{s:s, s:o, s:s, s:s, s:s?, s:s, s:b, s:s}", "name", f->name, "found", is, "kind", f->kind,
			 "what", f->what, "as", f->as, "since", f->since, "needed", f->needed, "without", f->without);
}

int tool_features(int argc, char **argv)
{
	static const struct argp_option options[] = { ARGS_JSON, { 0 } };
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[NAME...]",
		.doc = "Prints what the running kernel has of what heaps in BPF arenas use, and what follows where "
		       "something is missing.  With NAMEs only those, and the exit status is 77 if one is missing.",
	};
	const struct arn_feature *f, *lacks = NULL;
	struct input in = { calloc((size_t)argc + 1, sizeof(char *)), 0 };
	json_t *list = json_array();
	struct out_table *t;
	unsigned int i;
	int status;

	if (!in.names)
		return out_error(EXIT_FAILURE, "features: no memory");
	args_parse(&argp, argc, argv, &in);
	t = out_table(NULL);
	out_col(t, "feature", false);
	out_col(t, "found", false);
	out_col(t, "kind", false);
	out_col(t, "in the kernel", false);
	out_col(t, "since", true);
	out_col(t, "without it", false);
	for (i = 0; (f = arn_feature(i)); i++) {
		if (!wanted(&in, f))
			continue;
		add_row(t, f);
		json_array_append_new(list, object(f));
		if (!lacks && f->found <= 0)
			lacks = f;
	}
	status = in.n && lacks ? EXIT_LACKS : 0;
	free(in.names);
	if (status) {
		out_table_drop(t);
		json_decref(list);
		if (lacks->found < 0)
			return out_error(status,
					 "feature '%s': cannot be told here: needs root, or CAP_BPF and CAP_PERFMON",
					 lacks->name);
		return out_error(status, "feature '%s': this kernel has no %s (%s, Linux %s): %s", lacks->name,
				 lacks->what, lacks->kind, lacks->since, lacks->without);
	}
	out_table_end(t);
	return out_json(json_pack("{s:i, s:o}", "schema", OUT_SCHEMA, "features", list)) ? EXIT_FAILURE : 0;
}
