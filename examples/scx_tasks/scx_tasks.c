// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * scx_tasks.c - runs the scheduler, and shows what it counts for each task.
 *
 * The counters are objects of the heap.  They are found with arn_live and read where they lie, while the scheduler
 * writes them; a task may end meanwhile, so what is read carries a mark and may be a little out of date.
 *
 * --storm is its test: many short tasks, then everything must add up.
 */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <arenite/arenite.h>
#include <bpf/libbpf.h>
#include "scx_tasks.h"
#include "scx_tasks.skel.h"

#define SHOWN	    10
#define PARENTS	    4
#define BATCH	    25 /* children of a parent at a time */
#define UNREG	    64 /* SCX_EXIT_UNREG: user space ended it */
#define FIRST_BYTES (1 << 20) /* for the tasks that are there already */

static struct {
	unsigned int interval, storm, refuse;
} opt = { .interval = 1 };
static volatile sig_atomic_t stop;
static struct arn_heap *heap;
static struct scx_tasks_bpf *skel;
static const volatile struct totals *totals;

static error_t parse(int key, char *arg, struct argp_state *state)
{
	unsigned int *at = key == 'i' ? &opt.interval : key == 's' ? &opt.storm : key == 'r' ? &opt.refuse : NULL;
	char *end;

	if (!at)
		return ARGP_ERR_UNKNOWN;
	*at = (unsigned int)strtoul(arg, &end, 10);
	if (*end || end == arg || !*at || *at > 1000000)
		argp_error(state, "'%s': a number from 1 to 1000000", arg);
	return 0;
}

static const struct argp argp = {
	.options =
		(const struct argp_option[]){
			{ "interval", 'i', "SECONDS", 0, "between tables; the default is 1", 0 },
			{ "refuse", 'r', "N", 0, "refuse every Nth task its object", 0 },
			{ "storm", 's', "N", 0, "start N short tasks, check that all adds up, and end", 0 },
			{ 0 } },
	.parser = parse,
	.doc = "A sched_ext scheduler with an object of a BPF heap for each task.",
};

static void on_signal(int sig)
{
	stop = 1;
}

static bool running(void)
{
	return *(volatile int *)&skel->bss->exit_kind == 0;
}

/* ---- Live counters ---- */

struct top {
	int n, seen;
	const struct task_stats *of[SHOWN];
};

static int busiest(const struct arn_object *o, void *arg)
{
	const struct task_stats *t = (const struct task_stats *)(unsigned long)o->addr;
	struct top *top = arg;
	int i;

	if (o->size < sizeof(*t) || t->mark != TASK_MARK)
		return 0;
	top->seen++;
	for (i = top->n; i > 0 && top->of[i - 1]->run < t->run; i--)
		if (i < SHOWN)
			top->of[i] = top->of[i - 1];
	if (i < SHOWN)
		top->of[i] = t;
	top->n += top->n < SHOWN;
	return 0;
}

static void show(void)
{
	struct top top = {};
	int i;

	if (arn_live(heap, busiest, &top) < 0) {
		puts(arn_last_error());
		return;
	}
	printf("\n%8s %-16s %3s %10s %10s %8s %6s\n", "pid", "task", "cpu", "run ms", "wait ms", "runs", "moves");
	for (i = 0; i < top.n; i++) {
		struct task_stats t = *top.of[i];

		printf("%8u %-16.16s %3u %10.1f %10.1f %8u %6u\n", t.pid, t.comm, t.cpu, (double)t.run / 1e6,
		       (double)t.wait / 1e6, t.runs, t.moves);
	}
	printf("%d tasks; %llu objects made, %llu freed, %llu refused\n", top.seen, totals->made, totals->freed,
	       totals->nulls + totals->injected);
}

/* ---- The storm ---- */

/* A child: a process of its own that shares its parent's memory, or the storm would mostly copy page tables. */
static int short_task(void *arg)
{
	volatile int work;

	for (work = 0; work < 10000; work++)
		;
	return 0;
}

/* A parent: n children, some at a time.  Its exit status: what failed. */
static int parent(unsigned int n)
{
	static char stack[BATCH][8192] __attribute__((aligned(16)));
	unsigned int i, batch;

	for (; n; n -= batch) {
		batch = n < BATCH ? n : BATCH;
		for (i = 0; i < batch; i++)
			if (clone(short_task, stack[i] + sizeof(stack[i]), CLONE_VM | SIGCHLD, NULL) < 0)
				return 2;
		for (i = 0; i < batch; i++)
			if (wait(NULL) < 0)
				return 3;
	}
	return 0;
}

/* The parents are there before the heap; they begin when the other end of the pipe is closed. */
static int parents(int start[2], pid_t pid[PARENTS])
{
	unsigned int p;
	char c;

	if (pipe(start))
		return -errno;
	for (p = 0; p < PARENTS; p++) {
		pid[p] = fork();
		if (pid[p] < 0)
			return -errno;
		if (pid[p])
			continue;
		close(start[1]);
		_exit(read(start[0], &c, 1) ? 1 : parent(opt.storm / PARENTS + (p < opt.storm % PARENTS)));
	}
	return close(start[0]);
}

static int find_pid(const struct arn_object *o, void *arg)
{
	const struct task_stats *t = (const struct task_stats *)(unsigned long)o->addr, **found = arg;

	if (o->size >= sizeof(*t) && t->mark == TASK_MARK && t->pid == (__u32)getpid())
		*found = t;
	return 0;
}

static int failed(const char *what)
{
	printf("scx_tasks: FAILED: %s\n", what);
	return 1;
}

/* Lets the parents go and waits for them; meanwhile this process watches its own counters. */
static int storm(int start, pid_t pid[PARENTS])
{
	const volatile struct task_stats *self = NULL;
	__u32 runs, more = 0;
	int p, status, left = PARENTS, err = 0;

	arn_live(heap, find_pid, &self);
	if (!self && !opt.refuse)
		err = failed("no counters for this process");
	close(start); /* go */
	while (left && running()) {
		runs = self ? self->runs : 0;
		usleep(50000);
		more += self && self->runs > runs;
		while (waitpid(-1, &status, WNOHANG) > 0) {
			left--;
			if (status)
				err = failed("a fork was refused");
		}
	}
	if (left)
		for (p = 0; p < PARENTS; p++)
			kill(pid[p], SIGKILL);
	if (self && !more)
		err = failed("this process's counters did not move");
	return err;
}

static int count(const struct arn_object *o, void *arg)
{
	return 0;
}

/* The scheduler has ended: whether everything adds up. */
static int verdict(void)
{
	const struct totals t = *(const struct totals *)totals;
	long live = arn_live(heap, count, NULL);
	int err = 0;

	printf("scx_tasks: %llu tasks: %llu objects made, %llu freed, %ld live; %llu refused on purpose, %llu by the heap; %llu without a slot\n",
	       t.tasks, t.made, t.freed, live, t.injected, t.nulls, t.no_slot);
	if (skel->bss->exit_kind != UNREG)
		err = failed("the kernel ended the scheduler");
	if (opt.storm && t.tasks < opt.storm)
		err = failed("the storm was smaller than asked for");
	if (t.nulls || t.no_slot || t.no_pages)
		err = failed("memory was refused that nobody asked to refuse");
	if (opt.refuse && !t.injected)
		err = failed("nothing was refused on purpose");
	if (!opt.refuse && t.injected)
		err = failed("refused on purpose without being asked");
	if (live || t.made != t.freed || t.bad_frees)
		err = failed("objects are left");
	if (arn_check(heap))
		err = failed(arn_last_error());
	return err;
}

int main(int argc, char **argv)
{
	struct arn_options options = { .sz = sizeof(options), .name = "scx_tasks" };
	struct bpf_link *link = NULL;
	pid_t pid[PARENTS];
	int start[2], err;

	setlinebuf(stdout);
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	err = arn_supported();
	if (err || !arn_has("sched-ext")) {
		puts(err ? arn_last_error() : "kernel: no sched_ext: Linux 6.12 or later, with CONFIG_SCHED_CLASS_EXT");
		return 77;
	}
	if (opt.storm && parents(start, pid))
		return failed("no processes for the storm");
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);

	heap = arn_create(&options);
	skel = scx_tasks_bpf__open();
	if (!heap || !skel || arn_attach(heap, skel->obj) || arn_reserve(heap, FIRST_BYTES))
		return failed(arn_last_error());
	skel->rodata->refuse_every = opt.refuse;
	if (scx_tasks_bpf__load(skel))
		return failed("the kernel refused to load it");
	totals = &skel->bss->totals;
	link = bpf_map__attach_struct_ops(skel->maps.tasks);
	if (!link) {
		err = -errno;
		printf("scx_tasks: not attached: %s\n",
		       err == -EBUSY ? "another scheduler is running" : strerror(-err));
		return err == -EBUSY ? 77 : 1;
	}

	err = 0;
	if (opt.storm)
		err = storm(start[1], pid);
	else
		while (!stop && running()) {
			sleep(opt.interval);
			show();
		}
	if (!running())
		printf("scx_tasks: ended by the kernel: %s: %s\n", skel->bss->exit_reason, skel->bss->exit_msg);
	bpf_link__destroy(link);
	err |= verdict();
	scx_tasks_bpf__destroy(skel);
	printf("scx_tasks: given back: %lld KiB%s\n", arn_trim(heap) >> 10, err ? "" : "; all adds up");
	arn_close(heap);
	return err;
}
