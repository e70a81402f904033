/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* kern.bpf.h - where the arena lies in the kernel: a watchpoint wants the address that programs write to. */
#ifndef BENCH_KERN_BPF_H
#define BENCH_KERN_BPF_H

struct vm_struct {
	void *addr;
} __attribute__((preserve_access_index));

struct bpf_arena {
	struct vm_struct *kern_vm;
} __attribute__((preserve_access_index));

#define KERN_GUARD 32768 /* half of GUARD_SZ: the arena begins behind it (kernel/bpf/arena.c) */

__u64 kern_base; /* of offset 0 */

SEC("syscall")
int kern_find(void *ctx)
{
	arn_name_arena();
	kern_base = (__u64)((struct bpf_arena *)&arn_arena)->kern_vm->addr + KERN_GUARD;
	return 0;
}

#endif
