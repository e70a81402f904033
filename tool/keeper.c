// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * keeper.c - arenite keeper PIN: keeps a pinned heap in the foreground until SIGINT, SIGTERM or SIGHUP.
 *
 * The work is libarenite's (arn_keeper_start).  What is printed are differences of the heap's counters,
 * so what programs and other growers did meanwhile is in them too.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <arenite/arenite.h>
#include "args.h"
#include "out.h"
#include "pin.h"
#include "tool.h"

#define MOST_BYTES (4ULL << 30)
#define KEY_LOW	   0x101
#define KEY_HIGH   0x102

struct input {
	const char *pin;
	unsigned long long low, high;
	bool verbose;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;

	switch (key) {
	case ARGS_KEY_JSON:
		return 0;
	case KEY_LOW:
		return args_bytes(arg, MOST_BYTES, &in->low)
			       ? 0
			       : args_bad(state, "--low-watermark '%s': not a number of bytes up to 4G, such as 8M",
					  arg);
	case KEY_HIGH:
		return args_bytes(arg, MOST_BYTES, &in->high)
			       ? 0
			       : args_bad(state, "--high-watermark '%s': not a number of bytes up to 4G, such as 64M",
					  arg);
	case 'v':
		in->verbose = true;
		return 0;
	case ARGP_KEY_ARG:
		if (in->pin)
			return args_bad(state, "'%s': only one heap at a time", arg);
		in->pin = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		return args_bad(state, "no heap given: the path of its pinned arena map");
	}
	return ARGP_ERR_UNKNOWN;
}

static double seconds(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double mib(unsigned long long pages)
{
	return (double)pages / 256;
}

static unsigned long long since(const struct arn_stats *now, const struct arn_stats *then, enum arn_count what)
{
	return now->count[what] - then->count[what];
}

/* What has happened since the last line; nothing if nothing has. */
static void tell(double at, const struct arn_stats *now, const struct arn_stats *then)
{
	int i;

	for (i = 0; i < ARN_COUNT_COUNT; i++)
		if (i != ARN_COUNT_KEPT && now->count[i] != then->count[i])
			break;
	if (i == ARN_COUNT_COUNT)
		return;
	out_note(
		"%.1f s: %.1f MiB mapped, %.1f MiB free; asked %llu times, grown %llu MiB, failed %llu times, given back %llu MiB",
		at, mib(now->pages_mapped), mib(now->pages_free), since(now, then, ARN_COUNT_ASKED),
		since(now, then, ARN_COUNT_GROWN), since(now, then, ARN_COUNT_GROW_FAILED),
		since(now, then, ARN_COUNT_TRIMMED));
}

static int summary(const char *pin, double wall, double cpu, const struct arn_stats *now, const struct arn_stats *then)
{
	json_t *growth = json_object();

#define X(suffix, name, text)                                                                                          \
	json_object_set_new(growth, #name, json_integer((json_int_t)since(now, then, ARN_COUNT_##suffix)));
	ARN_GROWTH_STATS(X)
#undef X
	out_line(
		"kept %s for %.1f s with %.4f s of a CPU: asked %llu times, grown %llu MiB, failed %llu times, given back %llu MiB, woken %llu times\n",
		pin, wall, cpu, since(now, then, ARN_COUNT_ASKED), since(now, then, ARN_COUNT_GROWN),
		since(now, then, ARN_COUNT_GROW_FAILED), since(now, then, ARN_COUNT_TRIMMED),
		since(now, then, ARN_COUNT_KEPT));
	return out_json(json_pack("{s:i, s:s, s:f, s:f, s:I, s:I, s:o}", "schema", OUT_SCHEMA, "pin", pin, "seconds",
				  wall, "cpu_seconds", cpu, "pages_mapped", (json_int_t)now->pages_mapped, "pages_free",
				  (json_int_t)now->pages_free, "growth", growth))
		       ? 1
		       : 0;
}

/* Until a signal says so.  0, or a negative errno of the library's. */
static int keep(struct arn_heap *heap, const struct input *in, const sigset_t *ends)
{
	struct timespec interval = { .tv_sec = 1 };
	double from = seconds(CLOCK_MONOTONIC), cpu;
	struct arn_stats first, now, before;
	int err;

	err = arn_get_stats(heap, &first, sizeof(first));
	if (err)
		return err;
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	out_line("keeping %s: low watermark %.1f MiB, high watermark %.1f MiB", in->pin,
		 (double)first.low_watermark / (1 << 20), (double)first.high_watermark / (1 << 20));
	fflush(stdout);
	before = now = first;
	while (sigtimedwait(ends, NULL, in->verbose ? &interval : NULL) < 0) {
		if (errno == EINTR || !in->verbose)
			continue;
		err = arn_get_stats(heap, &now, sizeof(now));
		if (err)
			return err;
		tell(seconds(CLOCK_MONOTONIC) - from, &now, &before);
		before = now;
	}
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	arn_keeper_stop(heap);
	err = arn_get_stats(heap, &now, sizeof(now));
	return err ? err : summary(in->pin, seconds(CLOCK_MONOTONIC) - from, cpu, &now, &first);
}

int tool_keeper(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "low-watermark", KEY_LOW, "BYTES", 0, "map memory when less than this lies free (K, M, G)", 0 },
		{ "high-watermark", KEY_HIGH, "BYTES", 0, "give memory back when more than this lies free or cached",
		  0 },
		{ "verbose", 'v', NULL, 0, "say on stderr what happens, each second in which something does", 0 },
		ARGS_JSON,
		{ 0 },
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "PIN",
		.doc = "Keeps the heap whose arena map is pinned at PIN, until SIGINT, SIGTERM or SIGHUP: maps memory "
		       "when less than its low watermark is free, gives memory back above the high one, and frees what "
		       "killed processes had cached.\vWatermarks given here are the heap's from now on; without them "
		       "it has those it was created with.",
	};
	struct arn_keeper_options o = { .sz = sizeof(o) };
	struct input in = { 0 };
	struct arn_heap *heap;
	sigset_t ends;
	int err;

	args_parse(&argp, argc, argv, &in);
	/* Before there is a thread: they are for sigtimedwait alone. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	heap = pin_open(in.pin, &err);
	if (!heap)
		return err;
	o.low_watermark = in.low;
	o.high_watermark = in.high;
	err = arn_keeper_start(heap, &o);
	if (!err)
		err = keep(heap, &in, &ends);
	if (err < 0)
		err = out_error(out_status(err), "%s", arn_last_error());
	arn_close(heap);
	return err;
}
