// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * headers-run.c - headers-run OBJECT: loads it on a heap of its own and runs each of its programs,
 * which return 0.  With no argument: whether arenas are there (77: no).
 */
#include "rig.h"

static int run(struct arn_heap *heap, const char *path)
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_program *prog;
	int n = 0;

	if (!obj || arn_attach(heap, obj) || bpf_object__load(obj)) {
		fprintf(stderr, "%s: not loaded: %s\n", path, arn_last_error());
		return 1;
	}
	bpf_object__for_each_program(prog, obj) {
		LIBBPF_OPTS(bpf_test_run_opts, opts);
		int err = bpf_prog_test_run_opts(bpf_program__fd(prog), &opts);

		if (err || opts.retval) {
			fprintf(stderr, "%s: program '%s': error %d, step %d\n", path, bpf_program__name(prog), err,
				(int)opts.retval);
			return 1;
		}
		n++;
	}
	if (arn_check(heap)) {
		fprintf(stderr, "%s: %s\n", path, arn_last_error());
		return 1;
	}
	return n == 0;
}

int main(int argc, char **argv)
{
	struct arn_heap *heap;

	rig_start();
	if (argc < 2)
		return 0;
	heap = arn_create(NULL);
	return !heap || run(heap, argv[1]);
}
