// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * contexts.c - allocations in every program type that this kernel lets use an arena: each loads, and
 * runs where a test can make it run; one that may sleep also reserves.
 *
 * struct_ops are in structops.c.  A type whose control program (which only reads the arena) does not
 * load is skipped by name.  NMIs are not shown.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>
#include "rig.h"
#include "contexts.skel.h"

static struct rig *t;

/* How to make a program run: 0, or why not. */
typedef int (*run_fn)(struct contexts_bpf *s, struct bpf_program *prog);

struct context {
	const char *name;
	run_fn run; /* NULL: loading must do */
	bool sleeps;
	bool skippable; /* attaching may be impossible here */
};

static int test_run(struct bpf_program *prog, void *ctx, size_t ctx_size, bool data)
{
	static __u8 packet[64] = { 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 50 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = ctx, .ctx_size_in = (__u32)ctx_size);

	if (data) {
		opts.data_in = packet;
		opts.data_size_in = sizeof(packet);
		opts.repeat = 1;
	}
	return bpf_prog_test_run_opts(bpf_program__fd(prog), &opts);
}

static int run_plain(struct contexts_bpf *s, struct bpf_program *prog)
{
	return test_run(prog, NULL, 0, false);
}

static int run_packet(struct contexts_bpf *s, struct bpf_program *prog)
{
	return test_run(prog, NULL, 0, true);
}

static int run_lookup(struct contexts_bpf *s, struct bpf_program *prog)
{
	struct bpf_sk_lookup ctx = { .family = AF_INET, .protocol = IPPROTO_TCP };

	return test_run(prog, &ctx, sizeof(ctx), false);
}

/* Until it ran, at most two seconds. */
static int wait_for(struct contexts_bpf *s)
{
	volatile __u64 *ran = &s->bss->ran, spin = 0;
	int ms, i;

	for (ms = 0; ms < 2000 && !*ran; ms++) {
		for (i = 0; i < 100000; i++)
			spin += (__u64)i;
		usleep(1000);
	}
	return *ran ? 0 : -ETIME;
}

static int run_link(struct contexts_bpf *s, struct bpf_link *l)
{
	int err = l ? wait_for(s) : -errno;

	bpf_link__destroy(l);
	return err;
}

static int run_callback(struct contexts_bpf *s, struct bpf_program *prog)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int err = bpf_prog_test_run_opts(bpf_program__fd(prog), &opts);

	return err ? err : opts.retval ? -EINVAL : wait_for(s);
}

static int run_attached(struct contexts_bpf *s, struct bpf_program *prog)
{
	return run_link(s, bpf_program__attach(prog));
}

/* A test run of a tracing program calls the function that it is attached to. */
static int run_traced(struct contexts_bpf *s, struct bpf_program *prog)
{
	struct bpf_link *l = bpf_program__attach(prog);

	if (l)
		test_run(prog, NULL, 0, false);
	return run_link(s, l);
}

/* Attached to file_open. */
static int run_lsm(struct contexts_bpf *s, struct bpf_program *prog)
{
	struct bpf_link *l = bpf_program__attach(prog);

	if (l)
		close(open("/dev/null", O_RDONLY));
	return run_link(s, l);
}

/* Tracepoints are found in tracefs, which a mount namespace of our own has. */
static int run_tracepoint(struct contexts_bpf *s, struct bpf_program *prog)
{
	if (access("/sys/kernel/tracing/events", F_OK) &&
	    (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	     mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL)))
		return -errno;
	return run_attached(s, prog);
}

static int run_perf(struct contexts_bpf *s, struct bpf_program *prog)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : run_link(s, bpf_program__attach_perf_event(prog, fd));
}

__attribute__((noinline)) int probed(int x)
{
	asm volatile("");
	return x + 1;
}

static int run_uprobe(struct contexts_bpf *s, struct bpf_program *prog)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .func_name = "probed",
		    .retprobe = strstr(bpf_program__section_name(prog), "uretprobe") != NULL);
	struct bpf_link *l = bpf_program__attach_uprobe_opts(prog, 0, "/proc/self/exe", 0, &opts);

	if (!l)
		return -errno;
	probed(1);
	return run_link(s, l);
}

static int run_iter(struct contexts_bpf *s, struct bpf_program *prog)
{
	struct bpf_link *l = bpf_program__attach_iter(prog, NULL);
	char buf[256];
	int fd;

	if (!l)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(l));
	while (fd >= 0 && read(fd, buf, sizeof(buf)) > 0)
		;
	if (fd >= 0)
		close(fd);
	return run_link(s, l);
}

/* Loads arn_NAME or ctl_NAME and nothing else.  NULL: errno. */
static struct contexts_bpf *load(const char *kind, const char *name, struct bpf_program **prog)
{
	struct contexts_bpf *s = contexts_bpf__open();
	struct bpf_program *p;
	char full[64];
	int err;

	assert_non_null(s);
	snprintf(full, sizeof(full), "%s_%s", kind, name);
	bpf_object__for_each_program(p, s->obj)
		bpf_program__set_autoload(p, false);
	*prog = bpf_object__find_program_by_name(s->obj, full);
	assert_non_null(*prog);
	bpf_map__set_autocreate(s->maps.timers, !strcmp(full, "arn_timer"));
	bpf_map__set_autocreate(s->maps.wqs, !strcmp(full, "arn_wq"));
	bpf_program__set_autoload(*prog, true);
	err = rig_load(t->heap, s->skeleton);
	if (err) {
		contexts_bpf__destroy(s);
		errno = -err;
		return NULL;
	}
	return s;
}

static void in_context(void **state)
{
	const struct context *c = *state;
	struct contexts_bpf *s;
	struct bpf_program *prog;
	int err;

	rig_quiet(true);
	s = load("ctl", c->name, &prog);
	rig_quiet(false);
	if (!s) {
		print_message("skipped: this kernel does not load a program '%s' that reads an arena: %s\n", c->name,
			      strerror(errno));
		skip();
	}
	contexts_bpf__destroy(s);
	s = load("arn", c->name, &prog);
	if (!s)
		fail_msg("'%s' does not load", c->name);
	if (c->run) {
		err = c->run(s, prog);
		if (err && c->skippable) {
			print_message("skipped: '%s' loads, but cannot be attached or run here: %s\n", c->name,
				      strerror(-err));
			contexts_bpf__destroy(s);
			skip();
		}
		if (err)
			fail_msg("'%s' did not run: %s", c->name, strerror(-err));
		assert_true(s->bss->ran > 0);
		assert_int_equal(s->bss->bad, 0);
		if (c->sleeps) {
			assert_true(s->bss->reserved > 0);
			assert_int_equal(s->bss->reserve_err, 0);
		}
	} else {
		print_message("loaded; not run\n");
	}
	assert_int_equal(s->bss->arn_calls_without_heap, 0);
	contexts_bpf__destroy(s);
	/* What was attached may be on its way through once more. */
	usleep(10000);
	rig_sound(t->heap);
	assert_int_equal(rig_live(t->heap), 0);
}

#define RUNS(name, fn)	   { name, fn, false, false }
#define SLEEPS(name, fn)   { name, fn, true, false }
#define ATTACHES(name, fn) { name, fn, false, true } /* if it can here */
#define ONLY_LOADS(name)   { name, NULL, false, false }

static const struct context contexts[] = {
	SLEEPS("syscall", run_plain),	RUNS("socket", run_packet),
	RUNS("tc", run_packet),		RUNS("tcx", run_packet),
	RUNS("xdp", run_packet),	RUNS("cg_skb", run_packet),
	RUNS("lwt_in", run_packet),	RUNS("lwt_out", run_packet),
	RUNS("lwt_xmit", run_packet),	ONLY_LOADS("seg6"),
	RUNS("flow", run_packet),	RUNS("lookup", run_lookup),
	RUNS("netfilter", run_packet),	RUNS("raw_tp", run_plain),
	ONLY_LOADS("raw_tp_w"),		RUNS("tp_btf", run_attached),
	ATTACHES("tp", run_tracepoint), RUNS("perf", run_perf),
	ONLY_LOADS("kprobe"),		RUNS("uprobe", run_uprobe),
	RUNS("uretprobe", run_uprobe),	SLEEPS("uprobe_s", run_uprobe),
	RUNS("iter", run_iter),		SLEEPS("iter_s", run_iter),
	RUNS("iter_map", run_iter),	ATTACHES("fentry", run_traced),
	ATTACHES("fexit", run_traced),	ATTACHES("lsm", run_lsm),
	ATTACHES("lsm_s", run_lsm),	ONLY_LOADS("cg_dev"),
	ONLY_LOADS("cg_sysctl"),	ONLY_LOADS("cg_sock"),
	ONLY_LOADS("cg_addr"),		ONLY_LOADS("cg_opt"),
	ONLY_LOADS("sockops"),		ONLY_LOADS("sk_msg"),
	ONLY_LOADS("sk_skb"),		ONLY_LOADS("reuseport"),
	RUNS("timer", run_callback),	SLEEPS("wq", run_callback),
};

#define N (sizeof(contexts) / sizeof(*contexts))

static int setup(void **state)
{
	t = rig_new(64 * MiB, 4 * MiB);
	return 0;
}

static int teardown(void **state)
{
	rig_end(t);
	return 0;
}

int main(void)
{
	struct CMUnitTest tests[N] = {};
	size_t i;

	rig_start();
	for (i = 0; i < N; i++)
		tests[i] = (struct CMUnitTest){ contexts[i].name, in_context, NULL, NULL, (void *)&contexts[i] };
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
