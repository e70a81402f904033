// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * stats.c - arenite stats PIN: every counter of a pinned heap, from the lists in stats.h.
 */
#include <string.h>

#include <arenite/arenite.h>
#include "args.h"
#include "out.h"
#include "pin.h"
#include "tool.h"

static void heap_table(const struct arn_stats *st)
{
	struct out_table *t = out_table("heap");

	out_col(t, "counter", false);
	out_col(t, "value", true);
	out_col(t, "what it counts", false);
#define X(name, unit, text)                                                                                            \
	out_row(t);                                                                                                    \
	out_cell(t, #name);                                                                                            \
	out_cell(t, "%llu " unit, (unsigned long long)st->name);                                                       \
	out_cell(t, "%s", text);
	ARN_HEAP_STATS(X)
#undef X
	out_table_end(t);
}

static void fail_table(const struct arn_stats *st)
{
	struct out_table *t = out_table("failures, by cause");

	out_col(t, "counter", false);
	out_col(t, "value", true);
	out_col(t, "what it counts", false);
#define X(suffix, name, text)                                                                                          \
	out_row(t);                                                                                                    \
	out_cell(t, #name);                                                                                            \
	out_cell(t, "%llu", (unsigned long long)st->fail[ARN_FAIL_##suffix]);                                          \
	out_cell(t, "%s", text);
	ARN_FAIL_STATS(X)
#undef X
	out_table_end(t);
	if (st->bad_ptr)
		out_line("last refused pointer: 0x%llx\n", (unsigned long long)st->bad_ptr);
}

static void growth_table(const struct arn_stats *st)
{
	struct out_table *t = out_table("growth and the keeper");

	out_col(t, "counter", false);
	out_col(t, "value", true);
	out_col(t, "what it counts", false);
#define X(suffix, name, text)                                                                                          \
	out_row(t);                                                                                                    \
	out_cell(t, #name);                                                                                            \
	out_cell(t, "%llu", (unsigned long long)st->count[ARN_COUNT_##suffix]);                                        \
	out_cell(t, "%s", text);
	ARN_GROWTH_STATS(X)
#undef X
	out_table_end(t);
}

static void class_table(const struct arn_stats *st, const char *title, int from, int to)
{
	struct out_table *t = out_table(title);
	int i, used = 0;

#define X(name, unit, text) out_col(t, #name, true);
	ARN_CLASS_STATS(X)
#undef X
	for (i = from; i < to; i++) {
		const struct arn_class_stats *c = &st->cls[i];

		if (!c->slabs && !c->magazines)
			continue;
		used++;
		out_row(t);
#define X(name, unit, text) out_cell(t, "%llu " unit, (unsigned long long)c->name);
		ARN_CLASS_STATS(X)
#undef X
	}
	if (used)
		out_table_end(t);
	else
		out_table_drop(t);
}

static json_t *document(const char *pin, const struct arn_stats *st)
{
	json_t *heap = json_object(), *fail = json_object(), *growth = json_object();
	json_t *classes = json_array(), *percpu = json_array(), *one;
	int i;

#define X(name, unit, text) json_object_set_new(heap, #name, json_integer((json_int_t)st->name));
	ARN_HEAP_STATS(X)
#undef X
#define X(suffix, name, text) json_object_set_new(fail, #name, json_integer((json_int_t)st->fail[ARN_FAIL_##suffix]));
	ARN_FAIL_STATS(X)
#undef X
#define X(suffix, name, text)                                                                                          \
	json_object_set_new(growth, #name, json_integer((json_int_t)st->count[ARN_COUNT_##suffix]));
	ARN_GROWTH_STATS(X)
#undef X
	for (i = 0; i < ARN_CLASSES; i++) {
		one = json_object();
#define X(name, unit, text) json_object_set_new(one, #name, json_integer((json_int_t)st->cls[i].name));
		ARN_CLASS_STATS(X)
#undef X
		json_array_append_new(i < ARN_PLAIN_CLASSES ? classes : percpu, one);
	}
	return json_pack("{s:i, s:s, s:o, s:o, s:I, s:o, s:o, s:o}", "schema", OUT_SCHEMA, "pin", pin, "heap", heap,
			 "failures", fail, "bad_ptr", (json_int_t)st->bad_ptr, "growth", growth, "classes", classes,
			 "percpu_classes", percpu);
}

int tool_stats(int argc, char **argv)
{
	static const struct argp_option options[] = { ARGS_JSON, { 0 } };
	static const struct argp argp = {
		.options = options,
		.parser = pin_parse,
		.args_doc = "PIN",
		.doc = "Prints the counters of the heap whose arena map is pinned at PIN.",
	};
	const char *pin = NULL;
	struct arn_heap *heap;
	struct arn_stats st;
	int err;

	args_parse(&argp, argc, argv, &pin);
	heap = pin_open(pin, &err);
	if (!heap)
		return err;
	err = arn_get_stats(heap, &st, sizeof(st));
	arn_close(heap);
	if (err)
		return out_error(out_status(err), "%s", arn_last_error());
	heap_table(&st);
	fail_table(&st);
	growth_table(&st);
	class_table(&st, "size classes that have slabs or magazines", 0, ARN_PLAIN_CLASSES);
	class_table(&st, "size classes of per-CPU objects (sizes are a copy's)", ARN_PLAIN_CLASSES, ARN_CLASSES);
	return out_json(document(pin, &st)) ? 1 : 0;
}
