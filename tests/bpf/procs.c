// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * procs.c - several processes allocate from one heap: they free each other's objects, fork, live in PID
 * namespaces of their own, execute other programs, are killed, and run into a limit on their memory.
 *
 * kill.c has the kills between two instructions; here a process is killed wherever it happens to be, or while
 * it sleeps.
 */
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "rig.h"
#include "ops.skel.h"

#define ARENA (64 * MiB)

static struct rig *t;

static int setup(void **state)
{
	t = rig_new(ARENA, 4 * MiB);
	return 0;
}

static int teardown(void **state)
{
	rig_end(t);
	return 0;
}

/* ---- Children ---- */

struct child {
	pid_t pid;
	int fd; /* a socket to it */
};

/* Fails in a child: the line, modulo 256, is its exit status. */
#define NEED(x)                                                                                                        \
	do {                                                                                                           \
		if (!(x)) {                                                                                            \
			fprintf(stderr, "child, line %d: not true: %s (%s)\n", __LINE__, #x, arn_last_error());        \
			_exit(__LINE__ & 0xff ? __LINE__ & 0xff : 1);                                                  \
		}                                                                                                      \
	} while (0)

static void tell(int fd, __u64 word)
{
	if (write(fd, &word, sizeof(word)) != sizeof(word))
		_exit(99);
}

static __u64 hear(int fd)
{
	__u64 word;

	return read(fd, &word, sizeof(word)) == sizeof(word) ? word : ~0ULL;
}

/* Runs fn(heap, fd) in a process that has opened the heap itself; it ends by 0, a failed NEED or a kill. */
static struct child start(void (*fn)(struct arn_heap *, int), int clone_flags)
{
	struct child c;
	int sp[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sp), 0);
	fflush(stdout);
	if (clone_flags)
		assert_int_equal(unshare(clone_flags), 0);
	c.pid = fork();
	if (!c.pid) {
		int fd = dup(arn_map_fd(t->heap));
		struct arn_heap *h;

		close(sp[0]);
		arn_close(t->heap);
		h = arn_open_fd(fd, 0, NULL);
		NEED(h);
		fn(h, sp[1]);
		arn_close(h);
		_exit(0);
	}
	close(sp[1]);
	c.fd = sp[0];
	return c;
}

static void ends(struct child *c, int expected)
{
	int status;

	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	if (status != expected)
		fail_msg("a child: status 0x%x (of an exit: the line, modulo 256), expected 0x%x", status, expected);
	close(c->fd);
}

static void killed(struct child *c)
{
	assert_int_equal(kill(c->pid, SIGKILL), 0);
	ends(c, SIGKILL);
}

static __u64 claimed(void)
{
	return rig_stats(t->heap).slots_claimed;
}

/* ---- Each other's objects ---- */

#define HANDED 2000

static void frees_and_makes(struct arn_heap *h, int fd)
{
	char *p;
	int i;

	for (i = 0; i < HANDED; i++) {
		p = (char *)hear(fd);
		NEED(*p == (char)i);
		NEED(arn_free(h, p) == 0);
		p = arn_malloc(h, 16 + (size_t)i % 900);
		NEED(p);
		*p = (char)~i;
		tell(fd, (__u64)p);
	}
	NEED(hear(fd) == 1);
}

static void processes_free_each_others_objects(void **state)
{
	struct child c = start(frees_and_makes, 0);
	char *p;
	int i;

	for (i = 0; i < HANDED; i++) {
		p = arn_malloc(t->heap, 40 + (size_t)i % 1500);
		assert_non_null(p);
		*p = (char)i;
		tell(c.fd, (__u64)p);
		p = (char *)hear(c.fd);
		assert_int_equal(*p, (char)~i);
		assert_int_equal(i % 2 ? arn_free(t->heap, p) : bpf_free(t, p), 0);
	}
	assert_int_equal(claimed(), 2);
	tell(c.fd, 1);
	ends(&c, 0);
	assert_int_equal(claimed(), 1);
	assert_int_equal(rig_live(t->heap), 0);
}

/* ---- Killed ---- */

static void *hoard(void *arg)
{
	struct arn_heap *h = arg;
	void *p[300];
	int i;

	for (i = 0; i < 300; i++)
		p[i] = arn_malloc(h, 64);
	for (i = 0; i < 290; i++)
		arn_free(h, p[i]);
	return NULL;
}

static void *hoard_and_sleep(void *arg)
{
	hoard(arg);
	pause();
	return NULL;
}

/* Three threads with caches full, ten objects each. */
static void sleeps(struct arn_heap *h, int fd)
{
	pthread_t th[2];

	hoard(h);
	NEED(!pthread_create(&th[0], NULL, hoard_and_sleep, h) && !pthread_create(&th[1], NULL, hoard_and_sleep, h));
	usleep(50000);
	tell(fd, 1);
	hear(fd);
}

/* Its slots are the dead's until somebody reaps; everybody else goes on meanwhile. */
static void a_killed_process_is_reaped(void **state)
{
	struct child c = start(sleeps, 0);
	__u64 in_slots;

	assert_int_equal(hear(c.fd), 1);
	assert_int_equal(claimed(), 3);
	assert_int_equal(arn_reap(t->heap), 0);
	assert_int_equal(claimed(), 3);
	killed(&c);
	assert_int_equal(claimed(), 3);
	in_slots = rig_stats(t->heap).cls[rig_class(t, 64)].in_slots;
	assert_true(in_slots >= 3 * 290);
	assert_int_equal(arn_free(t->heap, arn_malloc(t->heap, 64)), 0);
	assert_int_equal(bpf_free(t, bpf_malloc(t, 64)), 0);
	assert_int_equal(arn_reap(t->heap), 3);
	assert_int_equal(arn_reap(t->heap), 0);
	assert_int_equal(claimed(), 1);
	assert_true(rig_stats(t->heap).cls[rig_class(t, 64)].in_slots < in_slots);
	assert_int_equal(rig_live(t->heap), 30);
	rig_sound(t->heap);
}

static int free_it(const struct arn_object *o, void *arg)
{
	return arn_free(t->heap, (void *)o->addr);
}

/* Whoever wants a slot and finds none reaps as well. */
static void dead_slots_are_taken_over(void **state)
{
	struct arn_options o = { .sz = sizeof(o), .bytes = ARENA, .user_slots = 3 };
	struct rig *was = t, small = { .heap = arn_create(&o) };
	struct child c;

	assert_non_null(small.heap);
	t = &small;
	c = start(sleeps, 0);
	assert_int_equal(hear(c.fd), 1);
	assert_int_equal(claimed(), 3);
	killed(&c);
	assert_int_equal(arn_free(t->heap, arn_malloc(t->heap, 64)), 0);
	assert_int_equal(claimed(), 1);
	assert_int_equal(arn_live(t->heap, free_it, NULL), 30);
	rig_sound(t->heap);
	arn_close(t->heap);
	t = was;
}

/* The same process to the kernel, but its mapping and its threads' storage are gone. */
static void executes_another_program(struct arn_heap *h, int fd)
{
	hoard(h);
	tell(fd, 1);
	hear(fd);
	fcntl(fd, F_SETFD, 0);
	dup2(fd, STDIN_FILENO);
	execlp("cat", "cat", (char *)NULL);
	_exit(98);
}

static void a_process_that_executes_another_program_is_reaped(void **state)
{
	struct child c = start(executes_another_program, 0);
	int i;

	assert_int_equal(hear(c.fd), 1);
	assert_int_equal(arn_reap(t->heap), 0);
	tell(c.fd, 2);
	for (i = 0; i < 5000 && !arn_reap(t->heap); i++)
		usleep(1000);
	assert_true(i < 5000);
	assert_int_equal(kill(c.pid, 0), 0);
	assert_int_equal(claimed(), 0);
	assert_int_equal(arn_live(t->heap, free_it, NULL), 10);
	killed(&c);
}

/* ---- PID namespaces ---- */

static void is_alone_in_a_namespace(struct arn_heap *h, int fd)
{
	NEED(getpid() == 1);
	hoard(h);
	tell(fd, 1);
	NEED(hear(fd) == 2);
	/* Its own slot and that of a process that it cannot see: both alive. */
	NEED(arn_reap(h) == 0);
	tell(fd, 3);
	NEED(hear(fd) == 4);
	/* One more it cannot see, which is dead. */
	tell(fd, (__u64)arn_reap(h));
	NEED(hear(fd) == 5);
}

static void namespaces_do_not_hide_the_living(void **state)
{
	struct child inside = start(is_alone_in_a_namespace, CLONE_NEWPID), outside;
	int ns = open("/proc/self/ns/pid", O_RDONLY);

	/* Children after this one are of this namespace again. */
	assert_true(ns >= 0);
	assert_int_equal(setns(ns, CLONE_NEWPID), 0);
	close(ns);
	assert_int_equal(arn_free(t->heap, arn_malloc(t->heap, 64)), 0);
	assert_int_equal(hear(inside.fd), 1);
	assert_int_equal(claimed(), 2);
	assert_int_equal(arn_reap(t->heap), 0);
	tell(inside.fd, 2);
	assert_int_equal(hear(inside.fd), 3);
	assert_int_equal(claimed(), 2);

	outside = start(sleeps, 0);
	assert_int_equal(hear(outside.fd), 1);
	assert_int_equal(claimed(), 5);
	killed(&outside);
	tell(inside.fd, 4);
	assert_int_equal(hear(inside.fd), 3);
	assert_int_equal(claimed(), 2);

	killed(&inside);
	assert_int_equal(arn_reap(t->heap), 1);
	assert_int_equal(claimed(), 1);
	assert_int_equal(arn_live(t->heap, free_it, NULL), 30 + 10);
}

/* ---- fork() ---- */

static int in_child(struct arn_heap *h, void *p)
{
	void *one;
	char *at;

	if (arn_malloc(h, 64) || errno != EOWNERDEAD || arn_free(h, p) != -EOWNERDEAD || arn_usable_size(h, p))
		return 1;
	if (arn_malloc_bulk(h, 64, 1, &one) || arn_free_bulk(h, &p, 1) != -EOWNERDEAD || arn_reap(h) != -EOWNERDEAD)
		return 2;
	/* No mapping came along that it could hurt. */
	at = (char *)p - (uintptr_t)p % 4096;
	if (munmap(at, 4096) || !mprotect(at, 4096, PROT_NONE) || mremap(at, 4096, 4096, MREMAP_MAYMOVE) != MAP_FAILED)
		return 3;
	h = arn_open_fd(arn_map_fd(t->heap), 0, NULL);
	if (!h || arn_free(h, p) || !(p = arn_malloc(h, 64)) || arn_free(h, p))
		return 4;
	arn_close(h);
	return 0;
}

static void a_fork_harms_neither_side(void **state)
{
	void *p[200];
	int i, status;
	pid_t pid;

	for (i = 0; i < 200; i++)
		assert_non_null(p[i] = arn_malloc(t->heap, 64));
	fflush(stdout);
	for (i = 0; i < 5; i++) {
		pid = fork();
		if (!pid)
			_exit(in_child(t->heap, p[i]));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(arn_reap(t->heap), 0);
		assert_int_equal(claimed(), 1);
	}
	/* The child of one that dies without a word neither. */
	pid = fork();
	if (!pid)
		syscall(SYS_exit_group, 0);
	waitpid(pid, &status, 0);
	for (; i < 200; i++)
		assert_int_equal(arn_free(t->heap, p[i]), 0);
	assert_int_equal(rig_live(t->heap), 0);
}

/* ---- No memory ---- */

/* A memory cgroup, of either version. */
static char cgroup[64];
static const char *limit, *members;

static bool put(const char *dir, const char *file, const char *text)
{
	char path[128];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "w");
	if (!f)
		return false;
	ok = fputs(text, f) >= 0;
	return !fclose(f) && ok;
}

static bool make_cgroup(void)
{
	bool one = !access("/sys/fs/cgroup/memory/memory.limit_in_bytes", R_OK);

	strcpy(cgroup, one ? "/sys/fs/cgroup/memory/arenite-XXXXXX" : "/sys/fs/cgroup/arenite-XXXXXX");
	limit = one ? "memory.limit_in_bytes" : "memory.max";
	members = one ? "tasks" : "cgroup.procs";
	return mkdtemp(cgroup) && put(cgroup, limit, "50331648"); /* 48 MiB */
}

/*
 * Pages are there before a pointer is handed out: at the limit a call says no, and no access fails.  The
 * group of the map's maker pays for them; it leaves the group, which is then full of nothing else.
 */
static void fills_up(struct arn_heap *h)
{
	static char *p[70000];
	int n, i;

	for (n = 0; n < 70000 && (p[n] = arn_malloc(h, 1000)); n++)
		memset(p[n], n, 1000);
	NEED(n > 10000 && n < 48000 && errno == ENOMEM);
	for (i = 0; i < n; i++)
		NEED(p[i][0] == (char)i && p[i][999] == (char)i);
	for (i = 0; i < n; i++)
		NEED(arn_free(h, p[i]) == 0);
	NEED((p[0] = arn_malloc(h, 1000)) && arn_free(h, p[0]) == 0);
	NEED(arn_check(h) == 0);
	NEED(arn_trim(h) > (long long)(8 * MiB));
}

static void at_the_memory_limit_nothing_is_lost(void **state)
{
	struct arn_options o = { .sz = sizeof(o), .bytes = 128 * MiB };
	struct arn_heap *h;
	char self[16];
	int status;
	pid_t pid;

	if (!make_cgroup()) {
		rmdir(cgroup);
		print_message("no cgroup with a memory controller can be made here\n");
		skip();
	}
	fflush(stdout);
	pid = fork();
	if (!pid) {
		snprintf(self, sizeof(self), "%d", getpid());
		NEED(put(cgroup, members, self));
		h = arn_create(&o);
		NEED(h);
		NEED(put(dirname(strdup(cgroup)), members, self));
		fills_up(h);
		arn_close(h);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (status = 0; status < 1000 && rmdir(cgroup); status++)
		usleep(1000);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(processes_free_each_others_objects),	T(a_killed_process_is_reaped),
		T(dead_slots_are_taken_over),		T(a_process_that_executes_another_program_is_reaped),
		T(namespaces_do_not_hide_the_living),	T(a_fork_harms_neither_side),
		T(at_the_memory_limit_nothing_is_lost),
	};

	rig_start();
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
