// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * check_test.c - the walkers: each kind of corruption, one at a time, is found and named.
 *
 * A sound heap with something of everything in it is corrupted in one place, which must be found, and
 * repaired, after which it must be sound again.  scribble_test.c shows that the walkers end on anything.
 */
#include "harness.h"

#define CLS 8u /* 160 bytes: its slab has two pages and a tail */

static struct core *c;
static arn_base b;
static struct arn_root *r;
static struct arn_depot *depot;
static struct arn_cache *cache; /* with loaded, prev, near and parked */
static __u32 slab, body, big, object, free_object, mags, run, full, hole;

static __u32 take(void)
{
	__u32 off;

	if (!arn_depot_has(&depot->empty))
		assert_true(arn_more_mags(b, r, 0, CLS));
	off = arn_refill(b, r, ARN_NO_SLOT, CLS);
	if (!off) {
		assert_true(arn_more_slabs(b, r, 0, CLS));
		off = arn_refill(b, r, ARN_NO_SLOT, CLS);
	}
	assert_int_not_equal(off, 0);
	mark(c, off, CLS);
	return off;
}

/* A slab partly used, magazines full and empty, near and far, in a slot and parked, large objects, two runs. */
static int setup(void **state)
{
	__u32 i, o;

	c = core_new(40 * MIB);
	b = c->b;
	r = c->r;
	r->slots_used = r->nslots;
	depot = &r->depot[CLS];
	cache = arn_cache(b, 1, CLS);
	core_grow(c, 3);
	for (i = 0; i < 6; i++)
		object = take();
	full = idx_of(depot->full);
	cache->room = r->cls[CLS].cap * 4;
	o = arn_depot_pop(b, &depot->full);
	cache->top = arn_top(o, arn_mag_count(b, o));
	o = arn_depot_pop(b, &depot->full);
	cache->prev = arn_top(o, arn_mag_count(b, o));
	o = arn_depot_pop(b, &depot->full);
	cache->parked = arn_top(o, arn_mag_count(b, o));
	o = arn_depot_pop(b, &depot->full);
	arn_depot_push(b, &cache->near_full, o, arn_mag_count(b, o), 1);
	full = idx_of(depot->full);
	/* a slab of which some objects are in it and some out */
	assert_true(arn_more_slabs(b, r, 0, CLS));
	slab = depot->partial;
	body = slab + 1;
	assert_int_equal(arn_desc(b, r, body)->kind, ARN_PG_BODY);
	o = 0;
	assert_int_equal(arn_slab_take(b, r, CLS, slab, 0, 0, 1, &o), 1);
	object = o;
	mark(c, object, CLS);
	free_object = object + r->cls[CLS].size;
	mags = full >> ARN_PAGE_SHIFT;
	big = arn_large_alloc(b, r, 0, 5, 1) >> ARN_PAGE_SHIFT;
	o = arn_large_alloc(b, r, 0, 7, 1);
	arn_large_alloc(b, r, 0, 1, 1);
	unmark(c, o);
	arn_large_free(b, r, o);
	settle(c);
	hole = o >> ARN_PAGE_SHIFT;
	run = r->bins[arn_bin_of(r, 7)];
	assert_int_equal(run, hole);
	sound(&c->heap);
	return 0;
}

static int teardown(void **state)
{
	core_end(c);
	return 0;
}

/* Something was overwritten: the walkers say so, in words with these in them. */
static void found_at(const char *words, int line)
{
	int err = arn_check(&c->heap);

	if (err != -EUCLEAN || !strstr(arn_last_error(), words)) {
		print_error("line %d: %d, '%s' where '%s' was expected\n", line, err, arn_last_error(), words);
		fail();
	}
}

/* Overwrites one place, expects to be found, repairs it, expects to be sound. */
#define corrupt(place, value, words)                                                                                   \
	do {                                                                                                           \
		__typeof__(place) was = place;                                                                         \
                                                                                                                       \
		place = value;                                                                                         \
		found_at(words, __LINE__);                                                                             \
		place = was;                                                                                           \
		sound(&c->heap);                                                                                       \
	} while (0)

static void root(void **state)
{
	corrupt(r->magic, 1, "magic");
	corrupt(r->version, 99, "version");
	corrupt(r->base, 0, "address");
	corrupt(r->npages, r->npages + 256, "geometry");
	corrupt(r->state_bias, r->state_bias + 16, "geometry");
	corrupt(r->lock, 1, "lock");
	corrupt(r->pages_mapped, 0, "pages_mapped");
	corrupt(r->pages_free, r->pages_free - 1, "pages_free");
}

static void classes(void **state)
{
	corrupt(r->cls[0].size, 0, "class table");
	corrupt(r->cls[CLS].size, 128, "class table");
	corrupt(r->cls[CLS].npages, 1, "class table");
	corrupt(r->cls[CLS].nobj, 1, "class table");
	corrupt(r->cls[CLS].align, 0, "class table");
	corrupt(r->cls[39].align, 3, "class table");
	corrupt(r->cls[CLS].cap, 121, "class table");
	corrupt(r->cls[CLS].emergency, ARN_EMERGENCY + 1, "class table");
	corrupt(r->class_small[3], 9, "class table");
	corrupt(r->class_mid[100], 9, "class table");
	corrupt(r->bit_place[5], 9, "class table");
}

static void emergency(void **state)
{
	corrupt(r->emergency[CLS][0], object, "allocated");
	corrupt(r->emergency[CLS][0], free_object, "in its slab");
	corrupt(r->emergency[CLS][0], arn_mag(b, full)->obj[0], "two magazines");
	corrupt(r->emergency[CLS][0], object + 16, "not the start");
	corrupt(r->emergency[CLS + 1][1], free_object, "another class");
	corrupt(r->emergency[CLS][0], 16, "outside of the heap");
	corrupt(r->emergency[39][2], free_object, "share");
}

static void directory(void **state)
{
	__u32 first = arn_first_chunk(r);

	corrupt(*arn_dir(b, first), ARN_CHUNK_NONE, "pages_mapped");
	corrupt(*arn_dir(b, first + 3), ARN_CHUNK_MAPPED, "pages_mapped");
	corrupt(*arn_dir(b, first + 3), ARN_CHUNK_BUSY, "busy");
}

static void free_runs(void **state)
{
	struct arn_page *d = arn_desc(b, r, run), *e = arn_desc(b, r, run + d->npages - 1);

	corrupt(d->npages, 0, "impossible length");
	corrupt(d->npages, 1u << 20, "impossible length");
	corrupt(d->npages, d->npages - 1, "ends disagree");
	corrupt(d->head, run + 1, "ends disagree");
	corrupt(e->head, run - 1, "ends disagree");
	corrupt(e->kind, ARN_PG_NONE, "ends disagree");
	corrupt(d->kind, ARN_PG_NONE, "nobody's");
	corrupt(d->kind, 77, "nobody's");
	corrupt(d->next, big, "bin");
	corrupt(d->next, run, "bin");
	corrupt(d->prev, 5, "bin");
	corrupt(*arn_state(b, r, run << ARN_PAGE_SHIFT), 1, "free run: a state byte");
	corrupt(*arn_state(b, r, (run << ARN_PAGE_SHIFT) + 3 * 4096 + 160), 1, "free run: a state byte");
}

/* Two free runs beside each other, and a run that reaches where nothing is mapped. */
static void runs_that_touch(void **state)
{
	struct arn_page *d = arn_desc(b, r, run), *e = arn_desc(b, r, run + 3), *f = arn_desc(b, r, run + 2);
	struct arn_page *last = arn_desc(b, r, run + 6), ds = *d, es = *e, fs = *f, ls = *last;

	d->npages = 3;
	f->kind = ARN_PG_FREE;
	f->head = run;
	e->kind = ARN_PG_FREE;
	e->head = last->head = run + 3;
	e->npages = 4;
	found_at("not merged", __LINE__);
	*d = ds;
	*e = es;
	*f = fs;
	*last = ls;
	sound(&c->heap);
}

static void bins(void **state)
{
	__u32 bin = arn_bin_of(r, 7), other = bin + 1;

	corrupt(r->bins[bin], 0, "map of bins");
	corrupt(r->bin_map[bin >> 6], 0, "map of bins");
	corrupt(r->bin_map[1], 1ULL << 60, "map of bins"); /* beyond the last bin */
	assert_int_equal(r->bins[other], 0);
	r->bins[other] = r->bins[bin];
	r->bin_map[other >> 6] |= 1ULL << (other & 63);
	found_at("bin", __LINE__);
	r->bins[other] = 0;
	r->bin_map[other >> 6] &= ~(1ULL << (other & 63));
	/* a run that is in no bin */
	r->bins[bin] = 0;
	r->bin_map[bin >> 6] &= ~(1ULL << (bin & 63));
	found_at("a free run is in none", __LINE__);
	r->bins[bin] = run;
	r->bin_map[bin >> 6] |= 1ULL << (bin & 63);
}

static void slabs(void **state)
{
	struct arn_page *d = arn_desc(b, r, slab), *e = arn_desc(b, r, body);
	__u32 tail = (slab << ARN_PAGE_SHIFT) + r->cls[CLS].nobj * r->cls[CLS].size;

	corrupt(d->cls, 40, "impossible class");
	corrupt(d->cls, CLS + 20, "slab");
	corrupt(d->npages, d->npages + 1, "slab");
	corrupt(d->nfree, d->nfree + 1, "its count");
	corrupt(d->nfree, 0, "its count");
	corrupt(d->listed, 0, "nobody can find");
	corrupt(e->kind, ARN_PG_SLAB, "says something else");
	corrupt(e->head, slab - 1, "says something else");
	corrupt(e->cls, CLS + 1, "says something else");
	corrupt(d->bits[3], d->bits[3] ^ 1, "where no object starts");
	corrupt(*arn_state(b, r, object), 0, "in no place");
	corrupt(*arn_state(b, r, object), CLS + 2, "another class");
	corrupt(*arn_state(b, r, object + 16), CLS + 1, "where no object starts");
	corrupt(*arn_state(b, r, free_object), CLS + 1, "allocated and in its slab");
	if (tail < (slab + r->cls[CLS].npages) << ARN_PAGE_SHIFT)
		corrupt(*arn_state(b, r, tail), CLS + 1, "where no object starts");
}

static void lists_of_slabs(void **state)
{
	struct arn_page *d = arn_desc(b, r, slab);

	corrupt(depot->partial, 0, "partial");
	corrupt(depot->partial, big, "partial");
	corrupt(depot->partial, 1u << 30, "partial");
	corrupt(d->next, slab, "partial");
	corrupt(depot->nslabs, depot->nslabs + 1, "slab count");
	corrupt(r->pending, big + 1, "pending");
	corrupt(r->pending, 1ULL << 40 | slab, "pending");
	corrupt(r->pending, 3, "pending");
}

/* A page that is pending twice, or given up and not there. */
static void pending(void **state)
{
	__u32 off = arn_large_alloc(b, r, 0, 3, 1), pg = off >> ARN_PAGE_SHIFT;

	unmark(c, off);
	arn_large_free(b, r, off);
	sound(&c->heap);
	corrupt(arn_desc(b, r, pg)->pend_next, pg, "twice");
	corrupt(r->pending, 0, "given up and lost");
	settle(c);
}

static void large_objects(void **state)
{
	corrupt(*arn_state(b, r, big << ARN_PAGE_SHIFT), 0, "no state byte");
	corrupt(*arn_state(b, r, big << ARN_PAGE_SHIFT), 3, "no state byte");
	corrupt(*arn_state(b, r, (big << ARN_PAGE_SHIFT) + 8192), 1, "inside");
	corrupt(arn_desc(b, r, big)->npages, 4, "page");
	corrupt(arn_desc(b, r, big)->npages, 6, ":");
	corrupt(arn_desc(b, r, big)->npages, 3 * 256, ":");
}

static void magazines(void **state)
{
	struct arn_mag *m = arn_mag(b, full);

	corrupt(arn_desc(b, r, mags)->cls, CLS + 1, "magazine");
	corrupt(arn_desc(b, r, mags)->npages, 2, "magazine page");
	corrupt(*arn_state(b, r, full), 1, "magazine page: a state byte");
	corrupt(m->n, 0, "full magazine without");
	corrupt(m->n, 121, "more than it can");
	corrupt(m->n, m->n - 1, "in no place");
	corrupt(m->next, full >> ARN_MAG_SHIFT, "two places");
	corrupt(m->next, 5, "not one");
	corrupt(m->obj[0], m->obj[1], "twice in one");
	corrupt(m->obj[0], arn_mag(b, arn_top_mag(cache->top))->obj[0], "two magazines");
	corrupt(m->obj[0], object, "allocated and in a magazine");
	corrupt(m->obj[0], free_object, "in its slab and in a magazine");
	corrupt(m->obj[0], m->obj[0] + 16, "start of an object");
	corrupt(m->obj[0], 64, "outside of the heap");
	corrupt(m->obj[0], big << ARN_PAGE_SHIFT, "another class");
	corrupt(depot->nmags, depot->nmags - 8, "magazine is in no place");
	corrupt(depot->full, depot->full & ~ARN_STACK_IDX_MASK, "magazine is in no place");
	corrupt(depot->empty, depot->full, ":");
	corrupt(depot->retiring, full, "two places");
}

static void slots(void **state)
{
	corrupt(cache->top, ARN_CACHE_BUSY, "busy");
	corrupt(cache->busy, 1, "busy");
	corrupt(cache->top, cache->top - 4, "in no place");
	corrupt(cache->top, cache->top - 2, "no entry");
	corrupt(cache->top, arn_top_mag(cache->top) + ARN_TOP_EMPTY - 4, "no entry");
	corrupt(cache->room, cache->room + 4, "room");
	corrupt(cache->room, 0, "room");
	corrupt(cache->top, 0, "in no place");
	corrupt(cache->prev, 0, "in no place");
	corrupt(cache->parked, 0, "in no place");
	corrupt(cache->prev, cache->prev - 2, "no entry");
	corrupt(cache->prev, cache->top, "two places");
	corrupt(cache->parked, arn_top(full, 0), "two places");
	corrupt(cache->top, arn_top(depot->empty ? (__u32)ARN_SLOTS_OFF : 0, 1), "not one");
	corrupt(cache->near_full, 0, "in no place");
	corrupt(cache->near_empty, cache->near_full, "two places");
	corrupt(r->slots_used, 1, "nobody owned");
}

/* The last chunk of 4 GiB, where 32-bit offsets run over, is looked at like any other. */
static void the_end_of_4_gib(void **state)
{
	struct core *end = core_new(4096 * MIB);
	__u32 last = arn_end_chunk(end->r) - 1;

	assert_int_equal(arn_chunk_add(end->b, end->r, last, ARN_CHUNK_NONE), 0);
	settle(end);
	sound(&end->heap);
	*arn_state(end->b, end->r, (last << ARN_CHUNK_SHIFT) + 4096) = 1;
	assert_int_equal(arn_check(&end->heap), -EUCLEAN);
	assert_non_null(strstr(arn_last_error(), "free run: a state byte"));
	*arn_state(end->b, end->r, (last << ARN_CHUNK_SHIFT) + 4096) = 0;
	core_end(end);
}

#define ts(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
unit_main(ts(root), ts(classes), ts(emergency), ts(directory), ts(free_runs), ts(runs_that_touch), ts(bins), ts(slabs),
	  ts(lists_of_slabs), ts(pending), ts(large_objects), ts(magazines), ts(slots), t(the_end_of_4_gib))
