/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * map.c - where heaps lie in the address space.
 *
 * At a free 4 GiB slot from 0x7e8000000000 up: clear of the shadows of ASan and TSan, and a process
 * may hold many.  Never fork into a child: it could unmap pages under the kernel's feet.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "internal.h"

#define ADDR_SLOTS ((ARN_ADDR_END - ARN_ADDR_FIRST) / ARN_ADDR_STEP)

static void *try_map(int fd, __u64 addr, __u64 bytes, int prot)
{
	int flags = MAP_FIXED_NOREPLACE | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED);
	void *p = mmap((void *)(unsigned long)addr, bytes, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		return NULL;
	if ((unsigned long)p != addr) { /* a kernel that takes the address for a hint */
		munmap(p, bytes);
		errno = EEXIST;
		return NULL;
	}
	return p;
}

/*
 * Each slot in turn: one that is named now and mapped later (arn_prepare_map; libbpf maps it over
 * whatever lies there) is not handed out again meanwhile.
 */
static __u64 next_addr(void)
{
	static __u64 turn;

	return ARN_ADDR_FIRST + arn_add64_full(&turn, 1) % ADDR_SLOTS * ARN_ADDR_STEP;
}

arn_base arn_map_anywhere(int fd, __u64 bytes)
{
	__u64 i;
	void *p;

	for (i = 0; i < ADDR_SLOTS; i++) {
		p = try_map(fd, next_addr(), bytes, PROT_READ | PROT_WRITE);
		if (p) {
			madvise(p, bytes, MADV_DONTFORK);
			return p;
		}
		if (errno != EEXIST)
			return NULL;
	}
	errno = ENOMEM;
	return NULL;
}

__u64 arn_addr_free(void)
{
	__u64 addr, i;
	void *p;

	for (i = 0; i < ADDR_SLOTS; i++) {
		addr = next_addr();
		p = try_map(-1, addr, ARN_ADDR_STEP, PROT_NONE);
		if (p) {
			munmap(p, ARN_ADDR_STEP);
			return addr;
		}
	}
	return 0;
}

bool arn_peek(const void *at, __u64 *word)
{
	int fds[2], err = errno;
	bool ok;

	if (pipe2(fds, O_CLOEXEC))
		return false;
	ok = write(fds[1], at, sizeof(*word)) == sizeof(*word) && read(fds[0], word, sizeof(*word)) == sizeof(*word);
	close(fds[0]);
	close(fds[1]);
	errno = err;
	return ok;
}

int arn_map_at(int fd, __u64 addr, __u64 bytes)
{
	void *p = try_map(fd, addr, bytes, PROT_READ | PROT_WRITE);

	if (!p)
		return -errno;
	madvise(p, bytes, MADV_DONTFORK);
	return 0;
}
