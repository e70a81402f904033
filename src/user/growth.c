/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * growth.c - marks, and what an object's programs need to ask for growth: the heap's doorbell, and what
 * kernel and program types allow (ask_bpf.h says what is done with it).
 *
 * The doorbell lives while a program that may ring it is loaded, or a process has the heap with an
 * object attached.  Its id in the root leads others to it, if they may look maps up by id
 * (CAP_SYS_ADMIN); who may not makes another one, and keepers then look by themselves.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"
#include "../core/growth.h"

#define BELL	 "arn_doorbell"
#define WAYS_MAP "arn_growth"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* heap->bell_fd */

/* What growth aims at must not be above the high mark by what it overshoots. */
int arn_check_marks(__u64 low, __u64 high, __u64 bytes)
{
	if (low > bytes || high > bytes)
		return arn_error(EINVAL, "watermarks %llu and %llu: more than the arena's %llu bytes",
				 (unsigned long long)low, (unsigned long long)high, (unsigned long long)bytes);
	if (high && high < low + 2 * ARN_CHUNK_SIZE)
		return arn_error(EINVAL, "high watermark %llu: must be 0, or 2 MiB or more above the low one, %llu",
				 (unsigned long long)high, (unsigned long long)low);
	return 0;
}

void arn_set_marks(struct arn_heap *heap, __u64 low, __u64 high)
{
	struct arn_root *r = arn_root(heap->base);

	arn_store_relaxed(&r->low_pages, (__u32)((low + ARN_PAGE_SIZE - 1) >> ARN_PAGE_SHIFT));
	arn_store_relaxed(&r->high_pages, (__u32)((high + ARN_PAGE_SIZE - 1) >> ARN_PAGE_SHIFT));
}

/* The doorbell that the root names. */
static int bell_by_id(struct arn_heap *heap)
{
	__u32 id = arn_load_relaxed(&arn_root(heap->base)->doorbell_id), len;
	struct bpf_map_info info = {};
	int fd;

	if (!id)
		return -ENOENT;
	fd = bpf_map_get_fd_by_id(id);
	if (fd < 0)
		return -errno;
	len = sizeof(info);
	if (bpf_map_get_info_by_fd(fd, &info, &len) || info.type != BPF_MAP_TYPE_RINGBUF || strcmp(info.name, BELL)) {
		close(fd); /* ids come round, after 2^31 maps */
		return -ENOENT;
	}
	return fd;
}

/* A new one, entered in the root in the place of was.  fd, or -errno. */
static int bell_make(struct arn_heap *heap, __u32 was, bool enter)
{
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, BELL, 0, 0, (__u32)sysconf(_SC_PAGESIZE), NULL);

	if (fd < 0)
		return arn_error(errno, "heap: no doorbell (a ring buffer of a page): %s", strerror(errno));
	if (enter && (bpf_map_get_info_by_fd(fd, &info, &len) ||
		      arn_cas32_full(&arn_root(heap->base)->doorbell_id, was, info.id) != was)) {
		close(fd);
		return -EAGAIN;
	}
	return fd;
}

/* The doorbell for objects that are attached here. */
static int bell(struct arn_heap *heap)
{
	__u32 id;
	int fd;

	pthread_mutex_lock(&lock);
	do {
		fd = heap->bell_fd;
		if (fd >= 0)
			break;
		id = arn_load_relaxed(&arn_root(heap->base)->doorbell_id);
		fd = bell_by_id(heap);
		if (fd < 0)
			fd = bell_make(heap, id, fd == -ENOENT);
	} while (fd == -EAGAIN); /* somebody else entered one */
	if (fd >= 0)
		heap->bell_fd = fd;
	pthread_mutex_unlock(&lock);
	return fd;
}

int arn_bell_open(struct arn_heap *heap)
{
	int fd;

	pthread_mutex_lock(&lock);
	fd = heap->bell_fd >= 0 ? dup(heap->bell_fd) : bell_by_id(heap);
	pthread_mutex_unlock(&lock);
	return fd;
}

/*
 * Whether all programs of an object may start a work queue: its locks, and those of the scheduler, which
 * it wakes a thread with, are never held where these run.
 */
static bool may_queue(const struct bpf_object *obj)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, obj) {
		if (!bpf_program__autoload(p))
			continue;
		switch (bpf_program__type(p)) {
		case BPF_PROG_TYPE_SYSCALL:
		case BPF_PROG_TYPE_XDP:
		case BPF_PROG_TYPE_SCHED_CLS:
		case BPF_PROG_TYPE_SCHED_ACT:
		case BPF_PROG_TYPE_SOCKET_FILTER:
		case BPF_PROG_TYPE_NETFILTER:
		case BPF_PROG_TYPE_CGROUP_SKB:
		case BPF_PROG_TYPE_CGROUP_SOCK:
		case BPF_PROG_TYPE_CGROUP_SOCK_ADDR:
		case BPF_PROG_TYPE_CGROUP_SOCKOPT:
		case BPF_PROG_TYPE_CGROUP_DEVICE:
		case BPF_PROG_TYPE_CGROUP_SYSCTL:
		case BPF_PROG_TYPE_SOCK_OPS:
		case BPF_PROG_TYPE_SK_MSG:
		case BPF_PROG_TYPE_SK_SKB:
		case BPF_PROG_TYPE_SK_LOOKUP:
		case BPF_PROG_TYPE_SK_REUSEPORT:
		case BPF_PROG_TYPE_FLOW_DISSECTOR:
		case BPF_PROG_TYPE_LWT_IN:
		case BPF_PROG_TYPE_LWT_OUT:
		case BPF_PROG_TYPE_LWT_XMIT:
		case BPF_PROG_TYPE_LWT_SEG6LOCAL:
			continue;
		default:
			return false;
		}
	}
	return true;
}

static int attach_ways(struct arn_heap *heap, struct bpf_object *obj)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, WAYS_MAP),
		       *flags = bpf_object__find_map_by_name(obj, ".rodata.arenite");
	__u32 ways = ARN_WAY_TASK | (may_queue(obj) ? ARN_WAY_QUEUE : 0), *word;
	size_t size = 0;
	int fd;

	if (!map || !flags)
		return 0;
	fd = arn_sys_growth_map(heap, &ways);
	if (fd == -EOPNOTSUPP)
		return 0;
	if (fd < 0)
		return fd;
	/* Units that were linked each brought one; one is looked at. */
	word = bpf_map__initial_value(flags, &size);
	for (; word && size >= sizeof(*word); size -= sizeof(*word))
		*word++ = ways;
	return bpf_map__reuse_fd(map, fd);
}

int arn_attach_growth(struct arn_heap *heap, struct bpf_object *obj)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, BELL);
	int fd, err;

	if (!map)
		return 0; /* it allocates by functions that another object brings */
	fd = bell(heap);
	if (fd < 0)
		return fd;
	err = bpf_map__reuse_fd(map, fd);
	/* Where nobody will ask, nothing need be prepared. */
	if (!err && arn_load_relaxed(&arn_root(heap->base)->low_pages))
		err = attach_ways(heap, obj);
	return err ? arn_error(-err, "object '%s': it cannot be prepared to ask for growth: %s", bpf_object__name(obj),
			       strerror(-err))
		   : 0;
}
