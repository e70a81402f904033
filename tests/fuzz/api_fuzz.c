// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * api_fuzz.c - sequences of API calls on a small native heap, against a model of what lives.
 *
 * The input is a program: each operation a byte and its numbers.  Besides plain calls it changes slots as
 * if other threads ran, and calls as a signal handler would on top of a busy cache or a held lock.
 * Oracles: contents, a map of which granules are taken, statistics, and the walkers.
 * One thread: that calls race is for tests/unit/thread_test.c.
 */
#include "model.h"

static size_t any_size(struct input *in)
{
	__u32 how = byte(in), v;

	if (how < 160)
		return how * 8UL;
	v = word(in);
	if (how < 230)
		return v & 0x7fff;
	if (how < 250)
		return v & 0xfffff;
	return v;
}

static struct object *any(struct input *in)
{
	__u32 v = byte(in) | byte(in) << 8;

	return count ? &object[v % count] : NULL;
}

/* A pointer that is no object: outside, inside, beside, or freed. */
static void *wrong(struct input *in)
{
	struct object *o = any(in);
	__u32 v = word(in);
	void *p;

	switch (v & 3) {
	case 0:
		p = heap->base + v;
		break;
	case 1:
		p = (void *)((__u64)v << 24 | v >> 8);
		break;
	case 2:
		p = o ? o->p + 1 + (v >> 2) % (o->have + 16) : NULL;
		break;
	default:
		p = o ? (void *)((__u64)(unsigned long)o->p ^ 1ULL << (32 + v % 32)) : heap->base;
	}
	return p;
}

static bool is_object(const void *p)
{
	__u64 upper = (__u64)(unsigned long)p >> 32;
	__u32 i;

	for (i = 0; i < count; i++)
		if ((__u32)(unsigned long)object[i].p == (__u32)(unsigned long)p &&
		    (!upper || upper == (__u64)(unsigned long)heap->base >> 32))
			return true;
	return false;
}

static void free_wrong(struct input *in)
{
	void *p = wrong(in);

	if (!p || is_object(p))
		return;
	expect(arn_usable_size(heap, p) == 0);
	expect(arn_free(heap, p) == -EINVAL);
	wrong_frees++;
}

static void allocate(struct input *in, __u32 how)
{
	size_t size = any_size(in), align = 1, n;
	void *p;

	if (count == ROOM)
		return;
	errno = 0;
	switch (how) {
	case 0:
		p = arn_malloc(heap, size);
		break;
	case 1:
		n = byte(in) % 8;
		p = arn_calloc(heap, n, size);
		size *= n;
		if (p)
			for (n = 0; n < size; n += n < 4096 ? 1 : 509)
				expect(((__u8 *)p)[n] == 0);
		break;
	default:
		align = 1ULL << byte(in) % 25;
		p = arn_aligned_alloc(heap, align, size);
		if (!p && align > root->arena_bytes / 2) {
			expect(errno == (size > root->arena_bytes / 2 ? E2BIG : EINVAL));
			return;
		}
	}
	if (p)
		add(p, size, align);
	else
		may_fail(size, align, errno);
}

static void reallocate(struct input *in)
{
	struct object *o = any(in), was;
	size_t size = any_size(in);
	void *p;

	if (!o)
		return;
	look(o, o->size);
	was = *o;
	errno = 0;
	p = arn_realloc(heap, o->p, size);
	if (!p) {
		look(o, o->size);
		may_fail(size, 1, errno);
		return;
	}
	look(&(struct object){ p, was.size, was.have, was.tag }, was.size < size ? was.size : size);
	memset(granules(&was), 0, (was.have + 15) / 16);
	*o = object[--count];
	add(p, size, 0);
}

static void free_one(struct input *in)
{
	struct object *o = any(in);
	void *p;

	if (!o)
		return;
	p = o->p;
	forget(o);
	expect(arn_free(heap, p) == 0);
	if (byte(in) & 1) {
		expect(arn_free(heap, p) == -EINVAL);
		wrong_frees++;
	}
}

static void allocate_bulk(struct input *in)
{
	size_t size = any_size(in), n = byte(in) * 2UL, i, got;
	static void *p[512];

	if (n > ROOM - count)
		n = ROOM - count;
	if (size > 1 << 20)
		n = n > 3 ? 3 : n;
	errno = 0;
	got = arn_malloc_bulk(heap, size, n, p);
	expect(got <= n);
	if (got < n)
		may_fail(size, 1, errno);
	for (i = 0; i < got; i++)
		add(p[i], size, 1);
}

static void free_bulk(struct input *in)
{
	__u32 n = byte(in), i, bad = 0;
	static void *p[256];
	struct object *o;
	long freed;

	for (i = 0; i < n; i++) {
		__u32 how = byte(in);

		p[i] = NULL;
		if (how == 255) {
			p[i] = wrong(in);
			if (is_object(p[i])) /* it may be freed by now, or later in this array */
				p[i] = NULL;
			bad += p[i] != NULL;
		} else if (how != 254 && count) {
			o = &object[(how * 8 + i) % count];
			p[i] = o->p;
			forget(o);
		}
	}
	freed = arn_free_bulk(heap, p, n);
	expect(freed == (bad == n && n ? -EINVAL : (long)(n - bad)));
	wrong_frees += bad;
}

/* Another thread's turn. */
static void change_slot(__u32 slot)
{
	if (no_slot)
		return;
	arn_claimed = heap->id | ARN_CLAIM_AT(slot);
}

/* One operation on top of a busy cache of some class, or of the lock: as a signal handler would. */
static void nested(struct input *in)
{
	__u32 slot = arn_my_slot(heap), cls = byte(in) % ARN_PLAIN_CLASSES;
	struct arn_cache *c = slot == ARN_NO_SLOT ? NULL : arn_cache(heap->base, slot, cls);

	if (!c)
		return;
	locked = byte(in) & 1;
	c->busy = 1;
	if (locked)
		root->lock = slot + 1;
	if (byte(in) & 1)
		allocate(in, 0);
	else
		free_one(in);
	if (locked) {
		expect(root->lock == slot + 1);
		root->lock = 0;
	}
	expect(c->busy == 1);
	c->busy = 0;
	locked = false;
}

static void verify(void)
{
	struct arn_stats s;
	__u64 n = 0;
	__u32 i;

	expect(arn_check(heap) == 0);
	expect(arn_get_stats(heap, &s, sizeof(s)) == 0);
	expect(s.pages_mapped ==
	       s.pages_free + s.pages_slab + s.pages_large + s.pages_mags + s.pages_percpu + s.pages_pending);
	for (i = 0; i < ARN_CLASSES; i++)
		n += s.cls[i].live;
	expect(n + s.large == count);
	expect(s.fail[ARN_FAIL_CORRUPT] == 0 && s.fail[ARN_FAIL_OVERRUN] == 0 && s.fail[ARN_FAIL_AFTER_FREE] == 0);
	expect(s.fail[ARN_FAIL_FOREIGN] + s.fail[ARN_FAIL_MISALIGNED] + s.fail[ARN_FAIL_INTERIOR] +
		       s.fail[ARN_FAIL_DOUBLE] ==
	       wrong_frees);
}

static void begin(__u32 how)
{
	struct arn_options o = {
		.sz = sizeof(o), .bytes = (24ULL + how % 4) * MIB, .flags = ARN_NATIVE, .user_slots = SLOTS
	};
	__u32 i;

	checked = how % 16 == 15;
	no_slot = how % 16 == 14;
	o.flags |= checked ? ARN_CHECKED : 0;
	heap = arn_create(&o);
	expect(heap);
	root = arn_root(heap->base);
	if (!taken)
		taken = calloc(1, 28 * MIB / 16 + 4096);
	for (i = 0; i < SLOTS; i++)
		arn_slot(heap->base, i)->owner = 1; /* ours, whichever we act as */
	root->slots_used = SLOTS;
	count = 0;
	wrong_frees = 0;
	change_slot(0);
}

static void end(void)
{
	struct arn_stats s;
	__u32 i;

	verify();
	while (count) {
		void *p = object[count - 1].p;

		forget(&object[count - 1]);
		expect(arn_free(heap, p) == 0);
	}
	for (i = 0; i < SLOTS; i++) {
		change_slot(i);
		expect(arn_trim(heap) >= 0);
	}
	expect(arn_trim(heap) >= 0);
	verify();
	expect(arn_get_stats(heap, &s, sizeof(s)) == 0);
	expect(s.pages_mapped == 0);
	arn_claimed = 0;
	arn_close(heap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, data + size };
	__u32 op;

	begin(byte(&in));
	while (in.at < in.end) {
		op = byte(&in) % 32;
		if (op < 8)
			allocate(&in, 0);
		else if (op < 9)
			allocate(&in, 1);
		else if (op < 11)
			allocate(&in, 2);
		else if (op < 13)
			reallocate(&in);
		else if (op < 18)
			free_one(&in);
		else if (op < 20)
			free_wrong(&in);
		else if (op < 22)
			allocate_bulk(&in);
		else if (op < 24)
			free_bulk(&in);
		else if (op < 26)
			change_slot(byte(&in) % SLOTS);
		else if (op < 28)
			nested(&in);
		else if (op == 28)
			expect(arn_trim(heap) >= 0);
		else if (op == 29)
			arn_reserve(heap, word(&in) % (32 * MIB));
		else if (op == 30 && (byte(&in) & 7) == 0)
			verify();
	}
	end();
	return 0;
}
