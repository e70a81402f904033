// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * native.c - drives the worker executables: all are started once and live to the end; one works at
 * a time while the others wait for their next command.
 *
 * The loop is measured by the floor's worker: its code is the same in every one.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <arenite/arenite.h>
#include "native.h"
#include "worker.h"

#define PATIENCE 30.0 /* seconds beyond the measured time until a worker counts as hung */

#define USER "arenite-user" /* user threads of a shared heap: only with --user */

static const char *const names[] = { "arenite", "floor", "glibc", "mimalloc", "jemalloc", "tcmalloc", USER };
#define NPEERS (sizeof(names) / sizeof(*names))

struct worker {
	const char *name;
	pid_t pid; /* 0: not there */
	int to, from;
	struct worker_hello hello;
};

struct bench_native {
	struct worker worker[NPEERS];
};

static int receive(struct worker *w, void *buf, size_t n, double seconds)
{
	struct pollfd p = { .fd = w->from, .events = POLLIN };
	size_t have = 0;
	ssize_t got;
	int ready;

	while (have < n) {
		ready = poll(&p, 1, (int)(seconds * 1000));
		if (ready < 0 && errno == EINTR)
			continue;
		if (!ready)
			return bench_fail(-ETIMEDOUT, "worker 'native-%s': no answer for %.0f s: it hangs", w->name,
					  seconds);
		got = read(w->from, (char *)buf + have, n - have);
		if (got <= 0)
			return bench_fail(-EPIPE, "worker 'native-%s': ended by itself: run it by hand to see why",
					  w->name);
		have += (size_t)got;
	}
	return 0;
}

static int ask(struct worker *w, const struct worker_cmd *c, struct worker_reply *r)
{
	int err;

	if (write(w->to, c, sizeof(*c)) != sizeof(*c))
		return bench_fail(-EPIPE, "worker 'native-%s': ended by itself: run it by hand to see why", w->name);
	err = receive(w, r, sizeof(*r), 2 * (c->warm + c->secs) + PATIENCE);
	if (!err && r->err)
		return bench_fail(r->err, "worker 'native-%s': %s", w->name, r->why);
	return err;
}

static int run_cell(const struct bench_impl *impl, const struct bench_options *o, const struct bench_cell *cell,
		    struct bench_sample *out)
{
	struct worker_cmd c = {
		.op = impl->role == BENCH_LOOP ? WORKER_LOOP : WORKER_CELL,
		.producers = cell->producers,
		.allocs = cell->allocs,
		.size = o->size,
		.xfree = o->xfree,
		.pin = o->pin,
		.bulk = impl->bulk,
		.warm = o->warm,
		.secs = o->secs,
	};
	struct worker_reply r = { 0 };
	int err = ask(impl->ctx, &c, &r);

	if (err)
		return err;
	out->alloc_ns = r.alloc_ns;
	out->free_ns = r.free_ns;
	out->fails = r.fails;
	out->dups = r.dups;
	return 0;
}

/* The worker executables lie in bench/ beside this one. */
static int worker_path(const char *name, char *path, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return -errno;
	self[n] = 0;
	return snprintf(path, size, "%s/bench/native-%s", dirname(self), name) < (int)size ? 0 : -ENAMETOOLONG;
}

static int start(struct worker *w, const char *path)
{
	char *argv[] = { (char *)path, NULL };
	posix_spawn_file_actions_t fa;
	int in[2], out[2], err;

	if (pipe2(in, O_CLOEXEC))
		return -errno;
	if (pipe2(out, O_CLOEXEC)) {
		err = -errno;
		close(in[0]);
		close(in[1]);
		return err;
	}
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&fa, out[1], STDOUT_FILENO);
	err = posix_spawn(&w->pid, path, &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	close(in[0]);
	close(out[1]);
	if (err) {
		close(in[1]);
		close(out[0]);
		w->pid = 0;
		return -err;
	}
	w->to = in[1];
	w->from = out[0];
	return 0;
}

static int open_worker(struct worker *w, const struct bench_options *o, struct bench_set *set)
{
	struct worker_cmd c = { .op = WORKER_INIT, .size = o->size };
	struct worker_reply r = { 0 };
	char path[PATH_MAX];
	unsigned int i;
	int err;

	err = worker_path(w->name, path, sizeof(path));
	if (!err && access(path, X_OK)) {
		bench_note(set, "%s: left out: its Debian library was not there at build time (make deps, then make)",
			   w->name);
		return 0;
	}
	if (!err)
		err = start(w, path);
	if (err)
		return bench_fail(err, "worker 'native-%s': cannot be started: %s", w->name, strerror(-err));
	err = receive(w, &w->hello, sizeof(w->hello), PATIENCE);
	if (err)
		return err;
	if (!w->hello.library[0])
		return bench_fail(-ENOEXEC,
				  "worker 'native-%s': its malloc is another library's: rebuild (make clean; make)",
				  w->name);
	for (i = 0; i < o->nproducers; i++)
		c.producers = o->producers[i] > c.producers ? o->producers[i] : c.producers;
	for (i = 0; i < o->nallocs; i++)
		c.allocs = o->allocs[i] > c.allocs ? o->allocs[i] : c.allocs;
	return ask(w, &c, &r);
}

static void add(struct bench_set *set, struct worker *w, const char *name, enum bench_role role, bool bulk)
{
	struct bench_impl *impl = bench_add(set, name, role, bulk);

	if (!impl)
		return;
	impl->run = run_cell;
	impl->ctx = w;
	if (!strcmp(name, USER))
		impl->mode = "user";
}

int bench_native_open(const struct bench_options *o, struct bench_set *set, struct bench_native **out)
{
	struct bench_native *b = calloc(1, sizeof(*b));
	size_t i;
	int err;

	if (!b)
		return bench_fail(-ENOMEM, "%s: no memory", o->bench);
	*out = b;
	err = o->user ? arn_supported() : 0;
	if (err)
		return bench_fail(err, "%s", arn_last_error());
	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < NPEERS; i++) {
		struct worker *w = &b->worker[i];

		w->name = names[i];
		if (!o->user && !strcmp(w->name, USER))
			continue;
		err = open_worker(w, o, set);
		if (err)
			return err;
		if (!w->pid)
			continue;
		add(set, w, w->name, BENCH_ROW, false);
		if (o->bulk && w->hello.has_bulk)
			add(set, w, w->name, BENCH_ROW, true);
		if (strcmp(w->name, "floor"))
			continue;
		add(set, w, "loop", BENCH_LOOP, false);
		if (o->bulk)
			add(set, w, "loop", BENCH_LOOP, true);
	}
	if (!b->worker[1].pid)
		return bench_fail(-ENOENT,
				  "worker 'native-floor': not found in bench/ beside the executable: run make");
	return 0;
}

const char *bench_native_library(const struct bench_native *b, const char *name)
{
	size_t i;

	for (i = 0; i < NPEERS; i++)
		if (b->worker[i].pid && !strcmp(b->worker[i].name, name))
			return b->worker[i].hello.library;
	return NULL;
}

int bench_native_check(struct bench_native *b)
{
	struct worker_cmd c = { .op = WORKER_CHECK };
	struct worker_reply r = { 0 };
	size_t i;
	int err = 0;

	for (i = 0; !err && i < NPEERS; i++)
		if (b->worker[i].pid)
			err = ask(&b->worker[i], &c, &r);
	return err;
}

/* End of file ends a worker; one that hangs gets a second. */
static void reap(pid_t pid)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	int i;

	for (i = 0; i < 1000; i++) {
		if (waitpid(pid, NULL, WNOHANG))
			return;
		nanosleep(&ms, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void bench_native_close(struct bench_native *b)
{
	size_t i;

	if (!b)
		return;
	for (i = 0; i < NPEERS; i++)
		if (b->worker[i].pid) {
			close(b->worker[i].to);
			close(b->worker[i].from);
		}
	for (i = 0; i < NPEERS; i++)
		if (b->worker[i].pid)
			reap(b->worker[i].pid);
	free(b);
}
