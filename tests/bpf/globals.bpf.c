// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * globals.bpf.c - an object with arena variables of its own, small and large, with values and without.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <arenite/layout.h>

/* libbpf wants to know at open that globals will fit, so the map says a size: replaced on attach. */
struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, ARN_MAP_FLAGS);
	__uint(max_entries, 16);
} arn_arena SEC(".maps");

#define ARN_MAP arn_arena
#include <arenite/arenite.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u32 __arena five = 5;
__u64 __arena table[1000] = { 11, 22, 33, [999] = 99 };
__u64 __arena counter;
char __arena word[16] = "arena";
__u64 __arena kept; /* an object's address */

struct look {
	__u64 five, first, last, counter, letter;
};

SEC("syscall")
int glob_read(struct look *l)
{
	l->five = five;
	l->first = table[0] + table[1] + table[2];
	l->last = table[999];
	l->counter = counter;
	l->letter = (__u8)word[4];
	return 0;
}

SEC("syscall")
int glob_write(struct look *l)
{
	__u64 __arena *p = arn_malloc(64);

	five = l->five;
	counter++;
	if (!p)
		return 1;
	*p = l->first;
	kept = (__u64)p;
	return 0;
}

SEC("syscall")
int glob_drop(void *ctx)
{
	int err = arn_free((void __arena *)kept);

	kept = 0;
	return err != 0;
}
