// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* pin.c - the heap behind a path, for the commands that take one. */
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "args.h"
#include "out.h"
#include "pin.h"

/*
 * Why the heap at pin was not opened, err being what the library said.  EPERM and EACCES have two
 * meanings there: the path is no pin of ours to open (1), or this process may not ask the kernel at
 * all (77).  The path is looked at to tell them apart.
 */
static int refused(const char *pin, int err)
{
	struct statfs fs;

	if (err != EPERM && err != EACCES)
		return out_error(out_status(-err), "%s", arn_last_error());
	if (statfs(pin, &fs))
		return out_error(EXIT_FAILURE, "pin '%s': %s", pin, strerror(errno));
	if ((unsigned long)fs.f_type != BPF_FS_MAGIC)
		return out_error(EXIT_FAILURE,
				 "pin '%s': not on a BPF file system, so no pin: give the path of a heap's arena map",
				 pin);
	return out_error(err == EACCES ? EXIT_FAILURE : EXIT_LACKS, "%s", arn_last_error());
}

error_t pin_parse(int key, char *arg, struct argp_state *state)
{
	const char **pin = state->input;

	switch (key) {
	case ARGS_KEY_JSON:
		return 0;
	case ARGP_KEY_ARG:
		if (*pin)
			return args_bad(state, "'%s': only one heap at a time", arg);
		*pin = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		return args_bad(state, "no heap given: the path of its pinned arena map");
	}
	return ARGP_ERR_UNKNOWN;
}

struct arn_heap *pin_open(const char *pin, int *status)
{
	struct arn_heap *heap = arn_open(pin);

	*status = heap ? 0 : refused(pin, errno);
	return heap;
}
