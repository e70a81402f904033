// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * scribble.c - whatever a process writes into a heap's structures, no BPF program, no call of a user
 * thread and no walk hangs or crashes.
 *
 * Each 64-bit word of the root, the directory, the slots in use and a ring is overwritten in turn by a value
 * that may lead somewhere; then everything is called; then the heap is put back as it was.  This runs in
 * a child, whose death is the failure; the kernel's complaints are the runner's.  Shows nothing about what
 * the calls return: a heap so damaged may lose its contents.
 *
 * Of the directory only every 16th word that is not about this small heap's chunks is tried, unless
 * ARN_TORTURE is set (make torture), which also tries three values a word.  TEST_SCALE: one word of so many.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include "rig.h"
#include "ops.skel.h"

#define ARENA	 (32 * MiB)
#define PATIENCE 240 /* s until a word counts as a hang, on a machine that has much else to do */
#define OBJECTS	 400
#define REGIONS	 128

static struct rig *t;
static struct arn_ring_handle *ring;
static void *object[OBJECTS];
static __u64 seed;
static unsigned int scale = 1;

static struct region {
	__u32 off, len;
	char *copy;
} region[REGIONS];
static int regions;

/* Of the child, for the parent. */
static struct shared {
	__u32 off; /* of the word */
	__u64 value;
	__u32 words, rebuilt;
	__u64 slowest_ms, slowest_off;
} *now;

static __u64 random_word(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * 0x2545f4914f6cdd1dULL;
}

static __u64 ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * 1000 + (__u64)ts.tv_nsec / 1000000;
}

/* ---- The heap, and how it was ---- */

static void keep(__u32 off, __u32 len)
{
	struct region *r = &region[regions++];

	*r = (struct region){ off, len, malloc(len) };
	memcpy(r->copy, t->base + off, len);
}

static bool readable(__u32 off)
{
	struct iovec here = { (char[1]){ 0 }, 1 }, there = { t->base + off, 1 };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

static __u32 first_chunk, end_chunk; /* of those that have memory */

static void build(void)
{
	struct arn_root *r;
	__u32 chunk;
	int i;

	t = rig_new(ARENA, 2 * MiB);
	r = t->root;
	ring = arn_ring_create_mpsc(t->heap, 64);
	assert_non_null(ring);
	for (i = 0; i < OBJECTS; i++) {
		object[i] = i % 2 ? bpf_malloc(t, 16 + (__u64)i * 5) : arn_malloc(t->heap, 16 + (size_t)i * 5);
		assert_non_null(object[i]);
	}
	for (i = 0; i < OBJECTS; i += 3) {
		assert_int_equal(i % 4 ? bpf_free(t, object[i]) : arn_free(t->heap, object[i]), 0);
		object[i] = NULL;
	}
	for (i = 0; i < 20; i++)
		arn_ring_enqueue_mpsc(ring, object[1]);
	rig_sound(t->heap);
	first_chunk = r->first_page >> 8;
	for (end_chunk = first_chunk; readable(end_chunk << ARN_CHUNK_SHIFT); end_chunk++)
		;
	regions = 0;
	keep(ARN_ROOT_OFF, r->meta_pages << r->sys_page_shift);
	keep(ARN_SLOTS_OFF + (r->ncpus << ARN_SLOT_SHIFT), ARN_SLOT_SIZE);
	for (chunk = first_chunk; chunk < end_chunk; chunk++) {
		keep(r->state_bias + (chunk << 16), 1 << 16);
		keep(r->page_bias + (chunk << 14), 1 << 14);
		keep(chunk << ARN_CHUNK_SHIFT, ARN_CHUNK_SIZE);
	}
}

static void tear_down(void)
{
	while (regions)
		free(region[--regions].copy);
	arn_ring_close(ring);
	ops_bpf__destroy(t->ops);
	arn_close(t->heap);
	free(t);
}

/* As it was; a heap that has grown or shrunk is made anew. */
static void put_back(void)
{
	__u32 chunk;
	int i;

	for (chunk = first_chunk; chunk < ARENA >> ARN_CHUNK_SHIFT; chunk++) {
		if (readable(chunk << ARN_CHUNK_SHIFT) == (chunk < end_chunk))
			continue;
		tear_down();
		build();
		now->rebuilt++;
		return;
	}
	for (i = 0; i < regions; i++)
		memcpy(t->base + region[i].off, region[i].copy, region[i].len);
}

/* ---- Everything is called ---- */

static int visit(const struct arn_object *o, void *arg)
{
	return 0;
}

static void call_bpf(void)
{
	static const __u64 sizes[] = { 16, 64, 700, 5000, 100000 };
	size_t i;
	void *p;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		p = bpf_malloc(t, sizes[i]);
		bpf_usable(t, p);
		bpf_free(t, p);
		bpf_free(t, object[i * 7 + 1]);
	}
	rig_op(t, OP_FREE, (__u64)t->base + 0x1234560, 0, 0);
	rig_op(t, OP_ALIGNED, 4096, 100, 0);
}

static void call_user(void)
{
	static const size_t sizes[] = { 16, 64, 700, 5000, 100000 };
	void *p, *bulk[40];
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		p = arn_malloc(t->heap, sizes[i]);
		arn_usable_size(t->heap, p);
		arn_free(t->heap, p);
		arn_free(t->heap, p);
		arn_free(t->heap, object[i * 7 + 2]);
		p = arn_calloc(t->heap, 1, sizes[i]);
		p = arn_realloc(t->heap, p, sizes[i] / 3 + 1);
		arn_free(t->heap, p);
	}
	i = arn_malloc_bulk(t->heap, 64, 40, bulk);
	arn_free_bulk(t->heap, bulk, i);
	p = arn_aligned_alloc(t->heap, 8192, 100);
	arn_free(t->heap, p);
	arn_free(t->heap, (char *)p + 5);
	arn_free(t->heap, t->base + ARENA - 4096);
	p = arn_ring_dequeue_mpsc(ring);
	arn_ring_enqueue_mpsc(ring, p ? p : object[1]);
	arn_ring_count(ring);
	arn_ring_skip(ring);
}

static void call_all(bool rarely)
{
	struct arn_stats st;

	call_bpf();
	call_user();
	call_bpf();
	arn_check(t->heap);
	arn_get_stats(t->heap, &st, sizeof(st));
	arn_live(t->heap, visit, NULL);
	arn_reap(t->heap);
	if (!rarely)
		return;
	arn_reserve(t->heap, 64 * KiB);
	arn_trim(t->heap);
	call_user();
}

static __u64 value(__u64 was)
{
	__u64 x = random_word();
	__u32 page = (first_chunk << 8) + (__u32)(x >> 40) % ((end_chunk - first_chunk + 2) << 8);

	switch (random_word() % 10) {
	case 0:
		return 0;
	case 1:
		return ~0ULL;
	case 2:
		return was ^ 1ULL << (x & 63);
	case 3:
		return was + (x & 1 ? 1 : -1ULL);
	case 4:
		return x & 0xff;
	case 5: /* a page, or an offset, in either half */
		return (was & ~0xffffffffULL) | (x & 1 ? page : page << ARN_PAGE_SHIFT);
	case 6:
		return (was & 0xffffffff) | (__u64)(x & 1 ? page : page << ARN_PAGE_SHIFT) << 32;
	case 7: /* a magazine, in a head or as a top */
		return x & 1 ? (was & ~0xffffffULL) | page * 8ULL | (x >> 8 & 7)
			     : (was & ~0xffffffffULL) | (page << ARN_PAGE_SHIFT) | (x >> 8 & 4095);
	case 8:
		return (was & ~0xffULL) | (x & 0xff);
	default:
		return x;
	}
}

static void try_value(__u32 off, __u64 val, bool trim)
{
	__u64 begin = ms(), took;

	now->off = off;
	now->value = val;
	alarm(PATIENCE * scale);
	*(__u64 *)(t->base + off) = val;
	call_all(now->words++ % 16 == 0 || trim);
	put_back();
	alarm(0);
	took = ms() - begin;
	if (took > now->slowest_ms) {
		now->slowest_ms = took;
		now->slowest_off = off;
	}
}

static void try_word(__u32 off, int values)
{
	static unsigned int turn;

	if (turn++ % scale)
		return;
	while (values--)
		try_value(off, value(*(__u64 *)(t->base + off)), false);
}

/* What once took too long: a class whose slabs have 65,535 pages; caches of four billion CPUs. */
static const struct {
	__u32 off;
	__u64 value;
} known[] = {
	{ ARN_ROOT_OFF + offsetof(struct arn_root, cls), ~0ULL },
	{ ARN_ROOT_OFF + offsetof(struct arn_root, ncpus), ~0ULL },
};

static void try_all(bool all)
{
	__u32 off, end = ARN_ROOT_OFF + (sizeof(struct arn_root) + 7) / 8 * 8, ours;
	int values = all ? 3 : 1;
	size_t k;

	build();
	for (k = 0; k < sizeof(known) / sizeof(*known); k++)
		try_value(known[k].off, known[k].value, true);
	for (off = ARN_ROOT_OFF; off < end; off += 8)
		try_word(off, values);
	for (off = ARN_DIR_OFF; off < ARN_SLOTS_OFF - 16384; off += 8) {
		ours = (off - ARN_DIR_OFF) / 4;
		if (all || ours + 1 >= first_chunk - 1 || off % 128 == 0) {
			if (ours > (ARENA >> ARN_CHUNK_SHIFT) + 2 && !all && off % 128)
				continue;
			try_word(off, values);
		}
	}
	for (off = ARN_SLOTS_OFF; off < ARN_SLOTS_OFF + ((t->root->ncpus + 1) << ARN_SLOT_SHIFT); off += 8)
		try_word(off, values);
	off = (__u32)(__u64)arn_ring_address(ring);
	for (end = off + 4096; off < end && arn_usable_size(t->heap, arn_ring_address(ring)); off += 8)
		try_word(off, values);
	tear_down();
}

int main(void)
{
	bool all = getenv("ARN_TORTURE");
	int status;
	pid_t pid;

	rig_start();
	now = mmap(NULL, sizeof(*now), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (now == MAP_FAILED)
		return 1;
	seed = all ? (__u64)time(NULL) : 4711;
	if (getenv("TEST_SCALE"))
		scale = (unsigned int)strtoul(getenv("TEST_SCALE"), NULL, 10);
	scale += !scale;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		try_all(all);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		return 1;
	printf("%u words, %u heaps; the slowest took %llu ms (0x%llx)\n", now->words, now->rebuilt + 1, now->slowest_ms,
	       now->slowest_off);
	if (!status)
		return 0;
	printf("offset 0x%x (root + %d, slots + %d) = 0x%llx: %s (status 0x%x)\n", now->off,
	       (int)(now->off - ARN_ROOT_OFF), (int)(now->off - ARN_SLOTS_OFF), now->value,
	       WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "a hang" : "a crash", status);
	return 1;
}
