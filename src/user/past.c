/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * past.c - what a thread of a shared heap cannot do in its own slot: a BPF program does it (thread_bpf.h).
 */
#include "shared.h"
#include "../core/checked.h"
#include "../bpf/sys.h"

#define GROW_TRIES 8 /* chunks that others may snatch away before a call gives up */

__s64 arn_ask(struct arn_heap *heap, __u32 op, __u32 slot, __u32 cls, __u64 a)
{
	struct arn_call c = { .op = op, .slot = slot, .cls = cls, .a = a };

	return arn_sys_call(heap, &c);
}

/* Asks until there is memory for it: grows the heap by so many pages, at last reclaims what is cached. */
static __s64 ask_with_memory(struct arn_heap *heap, struct arn_call *c, __u64 pages)
{
	__u32 tries = (__u32)(pages / ARN_CHUNK_PAGES) + GROW_TRIES, i;
	bool reclaimed = false;
	__s64 ret;

	for (i = 0;; i++) {
		ret = arn_sys_call(heap, c);
		if (ret != -ENOMEM)
			return ret;
		if (!reclaimed && i < tries && !arn_ask(heap, ARN_OP_GROW, 0, 0, i ? 0 : pages))
			continue;
		if (reclaimed)
			break;
		reclaimed = true;
		arn_ask(heap, ARN_OP_RECLAIM, c->slot, 0, 0);
	}
	arn_inc64_relaxed(&arn_root(heap->base)->fail[ARN_FAIL_NOMEM]);
	errno = ENOMEM;
	return ret;
}

void arn_shared_drain(struct arn_heap *heap)
{
	__u32 at;

	if (arn_claim_of_shared(arn_load_relaxed(&arn_claimed), heap, &at))
		arn_ask(heap, ARN_OP_RECLAIM, ARN_CLAIM_SLOT(at), 0, 0);
}

/* An object past the slot's caches. */
void *arn_alloc_past(struct arn_heap *heap, __u32 slot, size_t size, size_t align)
{
	struct arn_call c = { .op = ARN_OP_ALLOC, .slot = slot, .a = size, .b = align };
	__u64 pages = ARN_SLAB_MAX_PAGES;
	__s64 off;

	if (size > ARN_MAX_CLASSED || align > ARN_MAX_CLASSED)
		pages = arn_large_pages(size + sizeof(struct arn_trailer)) + arn_large_align(size, align);
	off = ask_with_memory(heap, &c, pages);
	if (off < 0) {
		errno = (int)-off;
		return NULL;
	}
	if (off >> 32 || !arn_state_at(heap, (__u32)off)) {
		arn_met_corruption(heap);
		arn_error(EUCLEAN, "heap at %p: an object at 0x%llx, where there is no memory", (void *)heap->base,
			  (unsigned long long)off);
		return NULL;
	}
	return heap->base + (__u32)off;
}

/* op: ARN_OP_FREE or ARN_OP_PERCPU_FREE. */
int arn_free_past(struct arn_heap *heap, __u32 op, __u64 ptr)
{
	static const char *const text[] = {
#define X(id, name, what) [ARN_FAIL_##id] = what,
		ARN_FAIL_STATS(X)
#undef X
	};
	struct arn_call c = { .op = op, .a = ptr };
	__s64 ret = arn_sys_call(heap, &c);

	if (ret != -EINVAL)
		return (int)ret;
	return arn_error(EINVAL, "free of 0x%llx: %s", (unsigned long long)ptr,
			 c.cls < ARN_FAIL_COUNT ? text[c.cls] : "freed by somebody else in this instant");
}

/* Per-CPU objects have no caches in threads' slots. */
void *arn_percpu_past(struct arn_heap *heap, size_t size)
{
	struct arn_call c = { .op = ARN_OP_PERCPU_ALLOC, .slot = ARN_NO_SLOT, .a = size };
	__s64 ret = ask_with_memory(heap, &c, heap->k->percpu_cpus);
	__u32 last = (__u32)ret + (heap->k->percpu_cpus - 1) * ARN_PERCPU_STRIDE;

	if (ret < 0) {
		errno = (int)-ret;
		return NULL;
	}
	if (((__u64)ret ^ (__u64)heap->base) >> 32 || !arn_state_at(heap, (__u32)ret) || !arn_state_at(heap, last)) {
		arn_met_corruption(heap);
		arn_error(EUCLEAN, "heap at %p: an object at 0x%llx, where there is no memory", (void *)heap->base,
			  (unsigned long long)ret);
		return NULL;
	}
	return (void *)ret;
}

int arn_percpu_prepare_past(struct arn_heap *heap, size_t size, __u32 n)
{
	struct arn_call c = { .op = ARN_OP_PERCPU_PREPARE, .a = size, .b = n };

	return (int)arn_sys_call(heap, &c);
}
