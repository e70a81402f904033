// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * worker.c - main of the native worker executables: commands in, samples out (worker.h).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"
#include "worker.h"

static void answer(const struct worker_cmd *c, struct worker_reply *r)
{
	const char *why = NULL;

	switch (c->op) {
	case WORKER_INIT:
		r->err = rounds_init(c);
		break;
	case WORKER_CELL:
	case WORKER_LOOP:
		r->err = rounds_cell(c, r);
		break;
	case WORKER_CHECK:
		r->err = bench_peer.check ? bench_peer.check(&why) : 0;
		break;
	default:
		r->err = -EINVAL;
	}
	if (r->err)
		snprintf(r->why, sizeof(r->why), "%s", why ? why : strerror(-r->err));
}

static bool get(void *buf, size_t n)
{
	size_t have = 0;
	ssize_t got;

	for (; have < n; have += (size_t)got) {
		got = read(STDIN_FILENO, (char *)buf + have, n - have);
		if (got <= 0)
			return false;
	}
	return true;
}

int main(void)
{
	struct worker_hello hello = { 0 };
	const char *library = bench_peer.library();
	struct worker_cmd c;

	if (isatty(STDIN_FILENO)) {
		fputs("This is a part of 'arenite bench ... --native', which starts it.\n", stderr);
		return 2;
	}
	if (library)
		snprintf(hello.library, sizeof(hello.library), "%s", library);
	hello.has_bulk = bench_peer.alloc_bulk && bench_peer.free_bulk;
	if (write(STDOUT_FILENO, &hello, sizeof(hello)) != sizeof(hello))
		return 1;
	while (get(&c, sizeof(c))) {
		struct worker_reply r = { 0 };

		answer(&c, &r);
		if (write(STDOUT_FILENO, &r, sizeof(r)) != sizeof(r))
			return 1;
	}
	return 0;
}
