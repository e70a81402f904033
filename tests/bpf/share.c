// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * share.c - one heap, several objects and processes: attached twice, pinned, opened by a second
 * process, and what a forked child may do.
 *
 * The second process is this program again, run with the pin's path.  A process that is killed is not
 * shown.
 */
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "rig.h"
#include "ops.skel.h"

#define ARENA (64 * MiB)

static char dir[] = "/tmp/arenite-bpffs-XXXXXX";
static char pin[64];
static const char *self;
static struct rig *t;

static int setup(void **state)
{
	t = rig_new(ARENA, 8 * MiB);
	return 0;
}

static int teardown(void **state)
{
	unlink(pin);
	rig_end(t);
	t = NULL;
	return 0;
}

static __s64 op(struct ops_bpf *ops, enum op_code code, __u64 a, __u64 b)
{
	struct op o = { .code = code, .a = a, .b = b };

	return rig_do(ops, &o);
}

static void two_objects_free_each_others(void **state)
{
	struct ops_bpf *other = rig_ops(t->heap);
	char *p = bpf_malloc(t, 64), *q = (char *)op(other, OP_MALLOC, 200000, 0);

	strcpy(p, "from the first");
	strcpy(q, "from the second");
	assert_int_equal(op(other, OP_USABLE, (__u64)p, 0), 64);
	assert_int_equal(op(other, OP_FREE, (__u64)p, 0), 0);
	assert_int_equal(bpf_free(t, p), -EINVAL);
	assert_string_equal(q, "from the second");
	assert_int_equal(bpf_free(t, q), 0);
	/* One cache a CPU, not one an object: what this one freed that one gets. */
	p = bpf_malloc(t, 64);
	assert_int_equal(bpf_free(t, p), 0);
	assert_ptr_equal(op(other, OP_MALLOC, 64, 0), p);
	assert_int_equal(op(other, OP_FREE, (__u64)p, 0), 0);
	ops_bpf__destroy(other);
	assert_int_equal(rig_live(t->heap), 0);
}

/* The object that allocated is unloaded, the heap is not its. */
static void objects_outlive_the_program_that_made_them(void **state)
{
	struct ops_bpf *other = rig_ops(t->heap);
	__u64 p = (__u64)op(other, OP_MALLOC, 64, 0);

	ops_bpf__destroy(other);
	assert_int_equal(bpf_usable(t, (void *)p), 64);
	assert_int_equal(bpf_free(t, (void *)p), 0);
}

/* ---- Pins ---- */

static void a_pinned_heap_outlives_its_maker(void **state)
{
	struct arn_options opts = { .sz = sizeof(opts), .bytes = ARENA };
	struct arn_heap *h = arn_create(&opts);
	struct ops_bpf *ops;
	void *base;
	__u64 *p;

	assert_non_null(h);
	base = arn_base_address(h);
	assert_ok(arn_reserve(h, MiB));
	ops = rig_ops(h);
	p = (__u64 *)op(ops, OP_MALLOC, 64, 0);
	p[7] = 0x1234567890abcdefULL;
	assert_ok(arn_pin(h, pin));
	ops_bpf__destroy(ops);
	arn_close(h);

	h = arn_open(pin);
	if (!h)
		fail_msg("%s", arn_last_error());
	assert_ptr_equal(arn_base_address(h), base);
	assert_int_equal(p[7], 0x1234567890abcdefULL);
	assert_int_equal(rig_live(h), 1);
	ops = rig_ops(h);
	assert_int_equal(op(ops, OP_FREE, (__u64)p, 0), 0);
	rig_sound(h);
	ops_bpf__destroy(ops);
	arn_close(h);
}

static void a_second_pin_at_the_same_path_is_refused(void **state)
{
	assert_ok(arn_pin(t->heap, pin));
	assert_int_equal(arn_pin(t->heap, pin), -EEXIST);
	assert_non_null(strstr(arn_last_error(), pin));
}

static void no_pin_no_heap(void **state)
{
	assert_null(arn_open("/nowhere/at/all"));
	assert_int_equal(errno, ENOENT);
	assert_non_null(strstr(arn_last_error(), "/nowhere/at/all"));
}

/* The arena's addresses are taken, by the first handle. */
static void a_second_open_in_one_process_is_eexist(void **state)
{
	assert_ok(arn_pin(t->heap, pin));
	assert_null(arn_open(pin));
	assert_int_equal(errno, EEXIST);
	assert_non_null(strstr(arn_last_error(), "has it open already"));
	assert_null(arn_open_fd(arn_map_fd(t->heap), ARN_INIT, NULL));
	assert_int_equal(errno, EEXIST);
	/* The first is as it was. */
	assert_int_equal(bpf_free(t, bpf_malloc(t, 64)), 0);
}

/* ---- The second process ---- */

struct letter {
	__u64 p[4];
	__u64 live;
	__u64 mine;
};

/* Runs in a process of its own: 0, or the line that failed. */
static int second_process(const char *path, int fd)
{
#define NEED(x)                                                                                                        \
	do {                                                                                                           \
		if (!(x))                                                                                              \
			return __LINE__ & 0xff ? __LINE__ & 0xff : 1;                                                  \
	} while (0)
	struct arn_heap *h = arn_open(path);
	struct ops_bpf *ops = ops_bpf__open();
	struct letter l;
	struct arn_stats st;
	struct op o = {};
	__u64 live = 0;
	int i, c;

	NEED(h && ops);
	NEED(read(fd, &l, sizeof(l)) == sizeof(l));
	NEED(arn_check(h) == 0);
	NEED(arn_get_stats(h, &st, sizeof(st)) == 0);
	for (c = 0; c < ARN_CLASSES; c++)
		live += st.cls[c].live;
	NEED(live + st.large == l.live);
	NEED(arn_attach(h, ops->obj) == 0 && ops_bpf__load(ops) == 0);
	for (i = 0; i < 4; i++) {
		NEED(*(__u64 *)l.p[i] == 1000 + (__u64)i);
		o = (struct op){ .code = OP_FREE, .a = l.p[i] };
		bpf_prog_test_run_opts(bpf_program__fd(ops->progs.op_run),
				       &(struct bpf_test_run_opts){ .sz = sizeof(struct bpf_test_run_opts),
								    .ctx_in = &o,
								    .ctx_size_in = sizeof(o) });
		NEED(o.ret == 0);
	}
	o = (struct op){ .code = OP_MALLOC, .a = 300 };
	bpf_prog_test_run_opts(bpf_program__fd(ops->progs.op_run),
			       &(struct bpf_test_run_opts){ .sz = sizeof(struct bpf_test_run_opts),
							    .ctx_in = &o,
							    .ctx_size_in = sizeof(o) });
	NEED(o.ret);
	l.mine = (__u64)o.ret;
	strcpy((char *)l.mine, "from another process");
	NEED(arn_reserve(h, 12 * MiB) == 0);
	NEED(write(fd, &l, sizeof(l)) == sizeof(l));
	ops_bpf__destroy(ops);
	arn_close(h);
	return 0;
#undef NEED
}

static void a_second_process_opens_the_pin(void **state)
{
	struct letter l = {};
	int sp[2], status, i;
	char fd[16];
	pid_t pid;

	assert_ok(arn_pin(t->heap, pin));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sp), 0);
	for (i = 0; i < 4; i++) {
		l.p[i] = (__u64)bpf_malloc(t, i == 3 ? 100000 : 64);
		*(__u64 *)l.p[i] = 1000 + (__u64)i;
	}
	l.live = 4;
	snprintf(fd, sizeof(fd), "%d", sp[1]);
	pid = fork();
	if (!pid) {
		close(sp[0]);
		execl(self, self, "second", pin, fd, NULL);
		_exit(127);
	}
	close(sp[1]);
	assert_int_equal(write(sp[0], &l, sizeof(l)), sizeof(l));
	i = (int)read(sp[0], &l, sizeof(l));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("the second process: status 0x%x (of an exit: the line, modulo 256)", status);
	assert_int_equal(i, sizeof(l));
	close(sp[0]);

	assert_int_equal(rig_live(t->heap), 1);
	assert_string_equal((char *)l.mine, "from another process");
	assert_true(rig_stats(t->heap).pages_free >= 12 * MiB / 4096);
	for (i = 0; i < 4; i++)
		assert_int_equal(bpf_free(t, (void *)l.p[i]), -EINVAL);
	assert_int_equal(bpf_free(t, (void *)l.mine), 0);
}

/* ---- A forked child ---- */

static int in_child(struct arn_heap *h)
{
	struct arn_stats st;
	struct ops_bpf *ops = ops_bpf__open();

	if (arn_get_stats(h, &st, sizeof(st)) != -EOWNERDEAD || !strstr(arn_last_error(), "open it anew"))
		return 1;
	if (arn_reserve(h, MiB) != -EOWNERDEAD || arn_trim(h) != -EOWNERDEAD || arn_check(h) != -EOWNERDEAD)
		return 2;
	if (arn_attach(h, ops->obj) != -EOWNERDEAD)
		return 3;
	arn_close(h);
	h = arn_open(pin);
	if (!h || arn_check(h))
		return 4;
	arn_close(h);
	return 0;
}

static void a_forked_child_must_reopen(void **state)
{
	int status;
	pid_t pid;

	assert_ok(arn_pin(t->heap, pin));
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(in_child(t->heap));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(bpf_free(t, bpf_malloc(t, 64)), 0);
}

int main(int argc, char **argv)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(two_objects_free_each_others),
		T(objects_outlive_the_program_that_made_them),
		T(a_pinned_heap_outlives_its_maker),
		T(a_second_pin_at_the_same_path_is_refused),
		T(no_pin_no_heap),
		T(a_second_open_in_one_process_is_eexist),
		T(a_second_process_opens_the_pin),
		T(a_forked_child_must_reopen),
	};
	int failed;

	if (argc == 4 && !strcmp(argv[1], "second"))
		return second_process(argv[2], atoi(argv[3]));
	self = argv[0];
	rig_start();
	/* Pins need a bpffs: one of our own, which nobody else sees. */
	if (!mkdtemp(dir) || unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("bpf", dir, "bpf", 0, NULL)) {
		printf("share: no bpffs can be mounted here: %s\n", strerror(errno));
		rmdir(dir);
		return 77;
	}
	snprintf(pin, sizeof(pin), "%s/heap", dir);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	umount(dir);
	rmdir(dir);
	return failed != 0;
}
