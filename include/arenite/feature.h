/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * feature.h - what heaps in BPF arenas use of the kernel, each described once.  The table of
 * arn_feature(), of the command and of the manual come from this list.
 */
#ifndef ARENITE_FEATURE_H
#define ARENITE_FEATURE_H

/*
 * X(name, kind, what the kernel calls it, its name before that or "", since Linux, whether shared heaps need it,
 *   what is without it)
 *
 * Of kfuncs, helpers, program types and struct_ops the kernel's BTF tells; the others are tried out.
 */
#define ARN_FEATURES(X)                                                                                                \
	X("arena", "map type", "BPF_MAP_TYPE_ARENA", "", "6.9", 1, "native heaps only")                                \
	X("segv-on-fault", "map flag", "BPF_F_SEGV_ON_FAULT", "", "6.9", 1, "native heaps only")                       \
	X("btf", "file", "/sys/kernel/btf/vmlinux", "", "5.4", 1, "native heaps only")                                 \
	X("pages", "kfunc", "bpf_arena_alloc_pages", "", "6.9", 1, "native heaps only")                                \
	X("preempt-off", "kfunc", "bpf_preempt_disable", "", "6.10", 1, "native heaps only")                           \
	X("bpf-for", "kfunc", "bpf_iter_num_new", "", "6.4", 1, "native heaps only")                                   \
	X("syscall", "program type", "BPF_PROG_TYPE_SYSCALL", "", "5.14", 1, "native heaps only")                      \
	X("arena-atomics", "instruction", "atomic exchange in an arena", "", "6.10", 1, "native heaps only")           \
	X("calls-preempt-off", "verifier", "global functions with preemption disabled", "", "6.13", 0,                 \
	  "no arn_ call between bpf_preempt_disable and bpf_preempt_enable")                                           \
	X("pages-any-context", "verifier", "bpf_arena_alloc_pages where nobody may sleep", "", "7.0", 0,               \
	  "programs that may not sleep get no pages: reserve ahead; ARN_PAGES_ANY_CONTEXT is refused")                 \
	X("wq-callback", "kfunc", "bpf_wq_set_callback", "bpf_wq_set_callback_impl", "6.10", 0,                        \
	  "no growth by work queues: start a keeper; no workqueue callback that may reserve")                          \
	X("task-work", "kfunc", "bpf_task_work_schedule_resume", "bpf_task_work_schedule_resume_impl", "6.18", 0,      \
	  "arn_grow_later does nothing: start a keeper; no task-work callback that may reserve")                       \
	X("ringbuf", "helper", "BPF_FUNC_ringbuf_output", "", "5.8", 0,                                                \
	  "a keeper is not woken, but looks 20 times a second")                                                        \
	X("irq-save", "kfunc", "bpf_local_irq_save", "", "6.14", 0,                                                    \
	  "who interrupts the merging of new memory gets what is cached, else NULL")                                   \
	X("stream-print", "kfunc", "bpf_stream_vprintk", "bpf_stream_vprintk_impl", "6.17", 0,                         \
	  "programs print to the trace pipe only")                                                                     \
	X("sched-ext", "struct_ops", "sched_ext_ops", "", "6.12", 0, "no sched_ext schedulers")

#endif
