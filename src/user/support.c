/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* support.c - what this machine has, asked of the kernel, not of its version. */
#include <bpf/bpf.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "internal.h"

static int probe(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = ARN_MAP_FLAGS);
	struct utsname u;
	int fd;

	fd = bpf_map_create(BPF_MAP_TYPE_ARENA, "arn_probe", 0, 0, 1, &opts);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	uname(&u);
	if (errno == EPERM || errno == EACCES)
		return arn_error(EPERM, "BPF arenas: not permitted here: needs root, or CAP_BPF and CAP_PERFMON, outside of a container without them");
	if (errno == ENOSYS)
		return arn_error(ENOTSUP, "BPF arenas: this kernel or sandbox has no bpf()");
	return arn_error(ENOTSUP, "BPF arenas: kernel %s has none as arenite needs them: 6.12 or later, with BPF and its JIT", u.release);
}

int arn_supported(void)
{
	return probe();
}
