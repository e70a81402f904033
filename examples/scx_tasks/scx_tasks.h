/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scx_tasks.h - what the scheduler and its user side share. */
#ifndef SCX_TASKS_H
#define SCX_TASKS_H

#define TASK_MARK 0x7363785f7461736bULL /* in each of our objects of the heap */

/* An object of the heap: one a task, from its fork to its end.  Times are nanoseconds. */
struct task_stats {
	__u64 mark;
	__u64 born;
	__u64 runnable; /* since when it waits */
	__u64 started; /* since when it runs */
	__u64 run, wait; /* sums */
	__u32 pid, cpu;
	__u32 runs, moves; /* times it came to a CPU, of them to another one than before */
	char comm[16];
};

/* Counted by the scheduler; read live. */
struct totals {
	__u64 tasks; /* init_task */
	__u64 made, freed; /* their objects */
	__u64 nulls; /* allocations that the heap refused */
	__u64 injected; /* allocations refused by --refuse */
	__u64 no_slot; /* tasks without a place for their pointer */
	__u64 no_pages; /* arn_reserve failed */
	__u64 bad_frees;
	__u64 without; /* times a task ran without an object */
};

#endif
