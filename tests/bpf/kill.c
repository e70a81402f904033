// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * kill.c - a process killed at every instruction of malloc, free and bulk on a shared heap.
 *
 * Each kill takes a process: it comes to a state by some calls, then makes one more, and is killed (SIGKILL)
 * before the n-th instruction of the library, n from 0 to the last.  Then its slot is reaped: the walkers must
 * find every page, magazine and object in one place, and what is allocated must be what the process had, give
 * or take what the call was about.
 *
 * One process is stepped through the call, which says where the n-th instruction is and how often it had come
 * by there; the others run up to it (a hardware breakpoint), because stepping each there takes minutes.
 * Of instructions that leave the heap as it was (every byte of its structures is compared), only the first is
 * killed at: the reaper could not tell the others from it.  With ARN_TORTURE set (make torture) all are.
 *
 * The process shares this one's memory (CLONE_VM), which saves loading the BPF programs thousands of times;
 * it is a process of its own to the kernel, and to the heap.  Its thread-local storage is that of the thread
 * that made it, steps it and does nothing else meanwhile.
 *
 * Cannot show: kills between the instructions of the BPF programs, because there are none.
 */
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include "rig.h"
#include "ops.skel.h"
#include "../../src/core/port.h"
#include "../../src/core/intent.h"
#include "../../src/bpf/sys.h"

#ifdef __x86_64__

#define STACK	    (256 * KiB)
#define MOST	    128 /* objects that a victim has */
#define BULK	    20 /* of 4 KiB, of which a magazine holds 8 */
#define ANCHORS	    4
#define NO_KILL	    (~0u)
#define PATIENCE_MS 1000
#define INT3	    0xcc

extern char __executable_start, etext; /* of this program: the library is linked into it */

static struct rig *t;

/*
 * What a victim does, a letter a call: m malloc, f free of the oldest, M and F bulk of 20, L large,
 * l frees it; '|': the next call is the one that is looked at.
 */
struct scene {
	const char *name, *script;
	size_t size;
	__u32 full; /* objects that another thread leaves in the depot's magazines before */
	bool bare; /* the heap begins without memory */
};

static struct {
	const struct scene *scene;
	__u32 kill_at;
	/* written by the victim */
	void *had[MOST], *big;
	__u32 from, to, from_before, to_before; /* of had[]; before the call */
	long failed;
	/* found by the stepper */
	int status;
	bool ended; /* the call was over before the kill */
	long owned; /* it had a slot */
} v;

/* The library's instructions that a call takes: where, and the how-manieth time. */
static struct {
	__u64 rip;
	__u32 turn;
	bool same; /* what the heap holds is what it held one instruction before */
} step[1 << 16];
static __u32 steps;

/* What was seen while stepping: enum arn_intent twice (before and after the swap), calls. */
static __u32 seen_before, seen_after, seen_calls, seen_busy, total;

static long one_call(char what)
{
	size_t size = v.scene->size;
	size_t n;

	switch (what) {
	case 'm':
		v.had[v.to] = arn_malloc(t->heap, size);
		return v.had[v.to] ? (v.to++, 0) : -errno;
	case 'f':
		return arn_free(t->heap, v.had[v.from++]);
	case 'M':
		n = arn_malloc_bulk(t->heap, size, BULK, v.had + v.to);
		v.to += (__u32)n;
		return n == BULK ? 0 : -errno;
	case 'F':
		v.from += BULK;
		return arn_free_bulk(t->heap, v.had + v.from - BULK, BULK) == BULK ? 0 : -EINVAL;
	case 'L':
		v.big = arn_malloc(t->heap, 300000);
		return v.big ? 0 : -errno;
	case 'l':
		return arn_free(t->heap, v.big);
	}
	return -ENOSYS;
}

static int victim(void *unused)
{
	const char *c;

	ptrace(PTRACE_TRACEME, 0, 0, 0);
	syscall(SYS_kill, syscall(SYS_getpid), SIGSTOP); /* (raise asks the thread whose storage this is) */
	for (c = v.scene->script; *c; c++) {
		if (*c != '|') {
			v.failed += one_call(*c) != 0;
			continue;
		}
		v.from_before = v.from;
		v.to_before = v.to;
		__asm__ volatile("int3");
	}
	__asm__ volatile("int3");
	syscall(SYS_exit_group, 0);
	return 0;
}

/* A victim's slot: the one whose owner it is. */
static struct arn_slot *slot_of(pid_t pid)
{
	struct arn_slot *s = (struct arn_slot *)(t->base + ARN_SLOTS_OFF) + t->root->ncpus;
	__u32 i, n = t->root->slots_used;

	for (i = t->root->ncpus; i < n; i++, s++)
		if ((__u32)s->owner == (__u32)pid)
			return s;
	return NULL;
}

/* Between two instructions: what is going on? */
static void watch(pid_t pid, const struct user_regs_struct *r)
{
	const union bpf_attr *attr = (void *)r->rsi;
	struct arn_slot *s = slot_of(pid);
	struct arn_cache *c;
	__u32 op;
	__u64 head;

	if (*(__u16 *)r->rip == 0x050f && r->rax == SYS_bpf && r->rdi == BPF_PROG_TEST_RUN)
		seen_calls |= 1u << ((struct arn_call *)attr->test.ctx_in)->op;
	if (!s)
		return;
	for (c = s->cache; c < s->cache + ARN_CLASSES; c++) {
		seen_busy |= c->busy;
		op = (__u32)(c->intent >> ARN_INTENT_OP_SHIFT);
		if (!op)
			continue;
		head = op == ARN_INTENT_PUSH_FULL || op == ARN_INTENT_POP_FULL ? c->near_full : c->near_empty;
		if ((head ^ c->intent) >> ARN_INTENT_TAG_SHIFT & 0xffffffff)
			seen_after |= 1u << op;
		else
			seen_before |= 1u << op;
	}
}

/* A sum over everything in the heap but the contents of objects. */
static __u64 sum_words(__u64 sum, __u32 off, __u32 bytes)
{
	const __u64 *p = (__u64 *)(t->base + off), *end = p + bytes / 8;

	for (; p < end; p++)
		sum = (sum ^ *p) * 0x9e3779b97f4a7c15ULL + (sum >> 29);
	return sum;
}

static __u64 sum_heap(void)
{
	__u32 *dir = (__u32 *)(t->base + ARN_DIR_OFF), chunk, pg, slot;
	struct arn_root *r = t->root;
	__u64 sum = sum_words(0, ARN_ROOT_OFF, ARN_SLOTS_OFF - ARN_ROOT_OFF);
	struct arn_page *d;

	for (slot = 0; slot < r->slots_used; slot++)
		sum = sum_words(sum, ARN_SLOTS_OFF + (slot << ARN_SLOT_SHIFT), ARN_SLOT_SIZE);
	for (chunk = 0; chunk < ARN_MAX_CHUNKS; chunk++) {
		if (dir[chunk] != ARN_CHUNK_MAPPED)
			continue;
		sum = sum_words(sum, r->state_bias + (chunk << 16), 1 << 16);
		sum = sum_words(sum, r->page_bias + (chunk << 14), 1 << 14);
		d = (struct arn_page *)(t->base + (__u32)(r->page_bias + (chunk << 14)));
		for (pg = 0; pg < ARN_CHUNK_PAGES; pg++)
			if (d[pg].kind == ARN_PG_MAGS)
				sum = sum_words(sum, (chunk << ARN_CHUNK_SHIFT) + (pg << ARN_PAGE_SHIFT),
						ARN_PAGE_SIZE);
	}
	return sum;
}

/* Is the next instruction one of the library's, or of the victim's own few? */
static bool counts(__u64 rip)
{
	return rip >= (__u64)&__executable_start && rip < (__u64)&etext;
}

static bool stops(pid_t pid, int *sig)
{
	if (waitpid(pid, &v.status, __WALL) != pid || !WIFSTOPPED(v.status))
		return false;
	*sig = WSTOPSIG(v.status);
	return true;
}

static bool step_through(pid_t pid)
{
	struct user_regs_struct r;
	__u64 sum = 0, was;
	__u32 i;
	int sig;

	for (steps = 0; steps < sizeof(step) / sizeof(*step);) {
		if (ptrace(PTRACE_GETREGS, pid, 0, &r))
			return false;
		watch(pid, &r);
		if (counts(r.rip)) {
			v.ended = *(__u8 *)r.rip == INT3;
			if (v.ended)
				return true;
			step[steps].rip = r.rip;
			step[steps].turn = 0;
			for (i = 0; i < steps; i++)
				step[steps].turn += step[i].rip == r.rip;
			was = sum;
			sum = sum_heap();
			step[steps].same = sum == was;
			steps++;
		}
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) || !stops(pid, &sig) || sig != SIGTRAP)
			return false;
	}
	return false;
}

static bool run_to(pid_t pid, __u32 at)
{
	int sig, how = PTRACE_SINGLESTEP;
	struct user_regs_struct r;
	__u32 turn = 0, i;

	/* Somebody else may have all breakpoints at the moment. */
	for (i = 0; i < PATIENCE_MS; i++) {
		if (!ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[0]), step[at].rip) &&
		    !ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[7]), 1)) {
			how = PTRACE_CONT;
			break;
		}
		usleep(1000);
	}
	for (;;) {
		if (ptrace(PTRACE_GETREGS, pid, 0, &r))
			return false;
		if (r.rip == step[at].rip && turn++ == step[at].turn)
			return true;
		if (ptrace(how, pid, 0, 0) || !stops(pid, &sig) || sig != SIGTRAP)
			return false;
	}
}

static void *stepper(void *unused)
{
	char *stack = malloc(STACK);
	int sig;
	pid_t pid = clone(victim, stack + STACK, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL);
	bool ok = pid > 0 && stops(pid, &sig) && sig == SIGSTOP && !ptrace(PTRACE_CONT, pid, 0, 0) &&
		  stops(pid, &sig) && sig == SIGTRAP &&
		  (v.kill_at == NO_KILL ? step_through(pid) : run_to(pid, v.kill_at));

	if (pid > 0) {
		v.owned = slot_of(pid) != NULL;
		syscall(SYS_kill, pid, SIGKILL);
		if (WIFSTOPPED(v.status))
			waitpid(pid, &v.status, __WALL);
	}
	free(stack);
	return ok ? &v : NULL;
}

/* A thread that allocates and frees so much, and ends: what it had cached is in the depot. */
static void *filler(void *arg)
{
	__u32 i, n = v.scene->full;
	void *p[MOST];

	for (i = 0; i < n; i++)
		p[i] = arn_malloc(t->heap, v.scene->size);
	for (i = 0; i < n; i++)
		arn_free(t->heap, p[i]);
	return NULL;
}

static void *in_a_thread(void *(*fn)(void *))
{
	pthread_t th;
	void *ret;

	assert_int_equal(pthread_create(&th, NULL, fn, NULL), 0);
	pthread_join(th, &ret);
	return ret;
}

/* One in each chunk, or arn_trim would give them back each time, which takes long. */
static void *anchor[ANCHORS];

static int free_it(const struct arn_object *o, void *arg)
{
	__u32 i;

	for (i = 0; i < ANCHORS; i++)
		if ((void *)o->addr == anchor[i])
			return 0;
	return bpf_free(t, (void *)o->addr);
}

/* What each call is to make and to free. */
static void tally(char what, __u32 *made, __u32 *freed)
{
	*made += what == 'm' || what == 'L' ? 1 : what == 'M' ? BULK : 0;
	*freed += what == 'f' || what == 'l' ? 1 : what == 'F' ? BULK : 0;
}

/* One victim; what it leaves is examined. */
static void one_kill(const struct scene *scene, __u32 kill_at)
{
	__u32 made = 0, freed = 0, to_make = 0, to_free = 0, i;
	long live, before;
	const char *c;

	memset(&v, 0, sizeof(v));
	v.scene = scene;
	v.kill_at = kill_at;
	if (scene->full)
		in_a_thread(filler);
	if (!in_a_thread(stepper))
		fail_msg("%s: the victim went its own way (status 0x%x)", scene->name, v.status);
	assert_true(WIFSIGNALED(v.status) && WTERMSIG(v.status) == SIGKILL);
	assert_int_equal(v.failed, 0);
	assert_int_equal(arn_reap(t->heap), v.owned);
	if (arn_check(t->heap))
		fail_msg("%s, killed after %u instructions: %s", scene->name, kill_at, arn_last_error());

	for (c = scene->script; *c != '|'; c++)
		tally(*c, &made, &freed);
	tally(c[1], &to_make, &to_free);
	before = made - freed + (scene->bare ? 0 : ANCHORS);
	/* Those that the call was not about are as they were. */
	for (i = v.from_before + (c[1] == 'l' ? 0 : to_free); i < v.to_before; i++)
		if (!arn_usable_size(t->heap, v.had[i]))
			fail_msg("%s, killed after %u instructions: an object of its is free", scene->name, kill_at);
	live = arn_live(t->heap, free_it, NULL);
	if (live > before + to_make || live + to_free < before)
		fail_msg(
			"%s, killed after %u instructions: %ld objects live, %ld before a call that makes %u and frees %u",
			scene->name, kill_at, live, before, to_make, to_free);
	assert_true(arn_trim(t->heap) >= 0);
}

static void every_instruction(const struct scene *scene)
{
	bool all = getenv("ARN_TORTURE");
	__u32 k, kills = 0;

	t = rig_new(24 * MiB, scene->bare ? 0 : ANCHORS * MiB);
	for (k = 0; k < ANCHORS; k++) {
		anchor[k] = scene->bare ? NULL : (void *)rig_op(t, OP_ALIGNED, 512 * KiB, 600 * KiB, 0);
		arn_usable_size(t->heap, anchor[k]); /* looks at the chunk, which all calls do the first time */
	}
	assert_int_equal(rig_live(t->heap), scene->bare ? 0 : ANCHORS);
	/* Loads the program that threads run: too many instructions to step through. */
	assert_int_equal(arn_reap(t->heap), 0);
	for (k = 0; k < 2; k++) { /* (something may be done once only, such as the slot's memory) */
		one_kill(scene, NO_KILL);
		assert_true(v.ended);
	}
	assert_true(steps > 20);
	for (k = 0; k < steps; k++) {
		if (step[k].same && !all)
			continue;
		one_kill(scene, k);
		kills++;
	}
	total += kills;
	printf("%-50s %5u kills in %5u instructions\n", scene->name, kills, steps);
	assert_true(kills > 1);
	for (k = 0; k < ANCHORS; k++)
		assert_int_equal(bpf_free(t, anchor[k]), 0);
	rig_end(t);
}

/* 32 KiB: a magazine holds one, so that each call exchanges some.  16 magazines lie near a slot at most. */
#define BIG    32768
#define FOUR   "mmmm"
#define TWENTY "mmmmmmmmmmmmmmmmmmmm"

static const struct scene scenes[] = {
	{ .name = "the first call: slot, chunk, slab, magazines", .script = "|m", .size = 64, .bare = true },
	{ .name = "malloc, a hit", .script = "m|m", .size = 64 },
	{ .name = "free, a hit", .script = "m|f", .size = 64 },
	{ .name = "malloc, from the other magazine",
	  .script = FOUR "fff"
			 "m|m",
	  .size = BIG },
	{ .name = "free, into the other magazine", .script = FOUR "f|f", .size = BIG },
	{ .name = "malloc, from a stack", .script = "m|m", .size = BIG, .full = 8 },
	{ .name = "malloc, an empty magazine for a full one",
	  .script = FOUR "ffff"
			 "mm|m",
	  .size = BIG },
	{ .name = "free, a full magazine for an empty one", .script = FOUR "ff|f", .size = BIG },
	{ .name = "malloc, refill from the slabs", .script = FOUR "|m", .size = BIG },
	{ .name = "malloc, refill, and too many empty ones", .script = "mmmmmmmmmmmmmmmmmm|m", .size = BIG },
	{ .name = "free, spill", .script = FOUR "fff|f", .size = BIG },
	{ .name = "free, spill, and too many full ones", .script = TWENTY TWENTY "ffffffffffffffffff|f", .size = BIG },
	{ .name = "malloc of a large one", .script = "|L", .size = 64 },
	{ .name = "free of a large one", .script = "L|l", .size = 64 },
	{ .name = "malloc in bulk", .script = "m|M", .size = 4096 },
	{ .name = "free in bulk", .script = "M|F", .size = 4096 },
};

static void at_every_instruction(void **state)
{
	size_t i;

	for (i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
		every_instruction(&scenes[i]);
	printf("%u kills\n", total);

#define BIT(x) (1u << (x))
	assert_int_equal(seen_before, BIT(ARN_INTENT_PUSH_FULL) | BIT(ARN_INTENT_PUSH_EMPTY) |
					      BIT(ARN_INTENT_POP_FULL) | BIT(ARN_INTENT_POP_EMPTY));
	assert_int_equal(seen_after, seen_before);
	assert_int_equal(seen_calls, BIT(ARN_OP_CLAIM) | BIT(ARN_OP_REFILL) | BIT(ARN_OP_SPILL) | BIT(ARN_OP_ALLOC) |
					     BIT(ARN_OP_FREE) | BIT(ARN_OP_GROW));
	assert_int_equal(seen_busy, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_every_instruction),
	};

	rig_start();
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

#else
int main(void)
{
	puts("kill: steps x86-64 only");
	return 77;
}
#endif
