// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * scx_tasks.bpf.c - a sched_ext scheduler that keeps an object of the heap for each task.
 *
 * All tasks wait in one queue, first come first served.  What is of interest here is memory: init_task may sleep,
 * so it maps chunks ahead (arn_reserve) and allocates; exit_task may not, and frees.  A task whose object was
 * refused is scheduled like any other, only nobody counts for it: want of memory never ends the scheduler.
 *
 * Types are the running kernel's: what is named here is looked up in its BTF when the object is loaded.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <arenite/arenite.bpf.h>
#include "scx_tasks.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Of the kernel's types the members used here; libbpf finds them by name. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct {
	int pid;
	char comm[16];
};

enum scx_exit_kind { SCX_EXIT_NONE };

struct scx_exit_info {
	enum scx_exit_kind kind;
	const char *reason, *msg;
};
#pragma clang attribute pop

struct scx_init_task_args;
struct scx_exit_task_args;

struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags);
	void (*enqueue)(struct task_struct *p, __u64 enq_flags);
	void (*dispatch)(__s32 cpu, struct task_struct *prev);
	void (*runnable)(struct task_struct *p, __u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	__s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	char name[128];
};

enum scx_dsq_id_flags { SCX_DSQ_LOCAL = 0x8000000000000002ULL };
enum scx_public_consts { SCX_SLICE_DFL = 20000000 };

#define DSQ_LOCAL bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_LOCAL)
#define SLICE	  bpf_core_enum_value(enum scx_public_consts, SCX_SLICE_DFL)
#define QUEUE	  0 /* ours */

extern __s32 scx_bpf_select_cpu_dfl(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags, bool *is_idle) __ksym;
extern __s32 scx_bpf_create_dsq(__u64 dsq_id, __s32 node) __ksym;
extern void scx_bpf_dsq_insert(struct task_struct *p, __u64 dsq_id, __u64 slice, __u64 enq_flags) __ksym;
extern bool scx_bpf_dsq_move_to_local(__u64 dsq_id) __ksym;

#define HEADROOM (64 << 10) /* bytes that shall lie free, mapped, at each fork: some hundred tasks' */

const volatile __u32 refuse_every; /* 1: every allocation, 3: every third; 0: none */
struct totals totals;
int exit_kind;
char exit_reason[64], exit_msg[128];

/* Where a task's object is. */
struct slot {
	__u64 stats;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct slot);
} slots SEC(".maps");

#define COUNT(what) __sync_fetch_and_add(&totals.what, 1)

/* A task's object, or NULL: it has none. */
static inline struct task_stats __arena *stats_of(struct task_struct *p)
{
	struct slot *slot = bpf_task_storage_get(&slots, p, 0, 0);

	arn_name_arena(); /* or a program that does no more than this has no arena */
	return (struct task_stats __arena *)(slot ? slot->stats : 0);
}

/* ---- Tasks come and go ---- */

SEC("struct_ops.s/init_task")
__s32 BPF_PROG(tasks_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct slot *slot = bpf_task_storage_get(&slots, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct task_stats __arena *t;
	__u64 n = COUNT(tasks);

	if (!slot) {
		COUNT(no_slot);
		return 0;
	}
	if (refuse_every && n % refuse_every == 0) {
		COUNT(injected);
		return 0;
	}
	if (arn_reserve(HEADROOM))
		COUNT(no_pages);
	t = arn_calloc(1, sizeof(*t));
	if (!t) {
		COUNT(nulls);
		return 0;
	}
	t->pid = p->pid;
	t->born = t->runnable = bpf_ktime_get_ns();
	t->mark = TASK_MARK;
	slot->stats = (__u64)t;
	COUNT(made);
	return 0;
}

SEC("struct_ops/exit_task")
void BPF_PROG(tasks_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct slot *slot = bpf_task_storage_get(&slots, p, 0, 0);
	struct task_stats __arena *t;

	if (!slot || !slot->stats)
		return;
	t = (struct task_stats __arena *)slot->stats;
	slot->stats = 0;
	t->mark = 0; /* user space may be reading it */
	if (arn_free(t))
		COUNT(bad_frees);
	else
		COUNT(freed);
}

/* ---- Counting ---- */

SEC("struct_ops/runnable")
void BPF_PROG(tasks_runnable, struct task_struct *p, __u64 enq_flags)
{
	struct task_stats __arena *t = stats_of(p);

	if (t)
		t->runnable = bpf_ktime_get_ns();
}

SEC("struct_ops/running")
void BPF_PROG(tasks_running, struct task_struct *p)
{
	struct task_stats __arena *t = stats_of(p);
	__u32 cpu = bpf_get_smp_processor_id();

	if (!t) {
		COUNT(without);
		return;
	}
	t->started = bpf_ktime_get_ns();
	t->wait += t->started - t->runnable;
	t->moves += t->runs && t->cpu != cpu;
	t->runs++;
	t->cpu = cpu;
}

SEC("struct_ops/stopping")
void BPF_PROG(tasks_stopping, struct task_struct *p, bool runnable)
{
	struct task_stats __arena *t = stats_of(p);
	__u64 now = bpf_ktime_get_ns();
	char comm[16];
	int i;

	if (!t)
		return;
	if (t->started)
		t->run += now - t->started;
	t->started = 0;
	t->runnable = now; /* if it is not, its next wake-up says when */
	bpf_core_read(comm, sizeof(comm), &p->comm);
	for (i = 0; i < 16; i++)
		t->comm[i] = comm[i];
}

/* ---- Scheduling ---- */

SEC("struct_ops/select_cpu")
__s32 BPF_PROG(tasks_select_cpu, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	bool idle = false;
	__s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);

	if (idle)
		scx_bpf_dsq_insert(p, DSQ_LOCAL, SLICE, 0);
	return cpu;
}

SEC("struct_ops/enqueue")
void BPF_PROG(tasks_enqueue, struct task_struct *p, __u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SLICE, enq_flags);
}

SEC("struct_ops/dispatch")
void BPF_PROG(tasks_dispatch, __s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

SEC("struct_ops.s/init")
__s32 BPF_PROG(tasks_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SEC("struct_ops/exit")
void BPF_PROG(tasks_exit, struct scx_exit_info *info)
{
	exit_kind = info->kind;
	bpf_probe_read_kernel_str(exit_reason, sizeof(exit_reason), info->reason);
	bpf_probe_read_kernel_str(exit_msg, sizeof(exit_msg), info->msg);
}

SEC(".struct_ops.link")
struct sched_ext_ops tasks = {
	.select_cpu = (void *)tasks_select_cpu,
	.enqueue = (void *)tasks_enqueue,
	.dispatch = (void *)tasks_dispatch,
	.runnable = (void *)tasks_runnable,
	.running = (void *)tasks_running,
	.stopping = (void *)tasks_stopping,
	.init_task = (void *)tasks_init_task,
	.exit_task = (void *)tasks_exit_task,
	.init = (void *)tasks_init,
	.exit = (void *)tasks_exit,
	.name = "tasks",
};
