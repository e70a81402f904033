/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * later_bpf.h - growth by task work: the interrupted task does it on its way back to user space.
 *
 * The verifier wants the page calls of such a callback in static functions (it checks a global one as
 * if the program itself called it), and refuses to have it scheduled in a global function: so this is
 * for a program to call from itself.
 */
#ifndef ARN_LATER_BPF_H
#define ARN_LATER_BPF_H

struct bpf_task_work___arn {
	__u64 opaque;
};
struct task_struct___arn {
	unsigned int flags;
} __attribute__((preserve_access_index));

#define ARN_NO_USER_TASK (0x00200000u | 0x00004000u) /* PF_KTHREAD, PF_USER_WORKER: never in user space */

typedef int arn_task_work_fn(struct bpf_map___arn *map, void *key, void *value);

/* From 7.0 under its plain name. */
extern int bpf_task_work_schedule_resume_impl___arn(struct task_struct___arn *task, struct bpf_task_work___arn *tw,
						    void *map, arn_task_work_fn *fn, void *aux) __weak __ksym;
extern int bpf_task_work_schedule_resume___arn(struct task_struct___arn *task, struct bpf_task_work___arn *tw,
					       void *map, arn_task_work_fn *fn) __weak __ksym;

/* One chunk; its result through arn_opaque, or the loop around it is walked for each. */
static __attribute__((noinline)) int arn_later_add(__u32 chunk, __u32 from)
{
	return arn_opaque(arn_chunk_add(ARN_HERE, arn_root(ARN_HERE), chunk, from));
}

static int arn_later_grow(struct bpf_map___arn *map, void *key, void *value)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);
	struct arn_grow g;
	int err, i;

	arn_name_arena();
	arn_ask_heard(r);
	arn_grow_start(r, &g);
	bpf_for(i, 0, ARN_GROW_TURNS) {
		arn__settle_quietly();
		if (arn_load_relaxed(&r->pages_free) >= arn_growth_goal(r))
			return 0;
		err = g.chunk < arn_end_chunk(r) ? arn_later_add(g.chunk, g.from) : -ARN_EEXIST;
		if (!err) {
			arn_count(r, ARN_COUNT_GROWN);
			arn_grow_done(ARN_HERE, r, &g);
			arn_grow_start(r, &g);
		} else if (arn_grow_next(ARN_HERE, r, &g, err)) {
			break;
		}
	}
	if (arn_below_low(r))
		arn_growth_failed(r);
	return 0;
}

static arn_inline int arn_schedule_growth(struct arn_root __arena *r)
{
	__u32 turn = bpf_ktime_get_ns() >> ARN_TASK_SHIFT & (ARN_TASK_ITEMS - 1);
	__u32 item = bpf_get_smp_processor_id() * ARN_TASK_ITEMS + turn;
	struct task_struct___arn *task;
	void *work;
	int err;

	if (!(arn__ways & ARN_WAY_TASK))
		return -ARN_EOPNOTSUPP;
	task = (struct task_struct___arn *)bpf_get_current_task_btf();
	work = bpf_map_lookup_elem(&arn_growth, &item);
	if (!work || task->flags & ARN_NO_USER_TASK)
		return -ARN_EOPNOTSUPP;
	if (bpf_ksym_exists(bpf_task_work_schedule_resume___arn))
		err = bpf_task_work_schedule_resume___arn(task, work, &arn_growth, arn_later_grow);
	else if (bpf_ksym_exists(bpf_task_work_schedule_resume_impl___arn))
		err = bpf_task_work_schedule_resume_impl___arn(task, work, &arn_growth, arn_later_grow, 0);
	else
		return -ARN_EOPNOTSUPP;
	if (err == -ARN_EBUSY) /* it is under way */
		return 0;
	if (!err)
		arn_count(r, ARN_COUNT_DEFERRED);
	return err;
}

#endif
