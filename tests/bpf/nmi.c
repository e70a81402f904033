// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * nmi.c - an NMI right after each store that the library makes in arena memory, twenty times each (by
 * make torture a thousand times), in which a perf_event program allocates and frees objects of the class that the interrupted one is at.
 *
 * The stores are those of nmi_work's machine code (sites.c).  Watchpoints stand on each word of the heap's
 * structures in turn, four at a time, as long as stores come by that were not interrupted often enough.  No
 * allocation may fail on top of any, no free either, no object may be handed out twice, and the walkers find
 * everything in one place.  A store that is never reached fails the test, by name.
 *
 * Not looked at: counters (one atomic addition each), repairs of a corrupt heap, checked heaps, growth.
 */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include "rig.h"
#include "ops.skel.h"
#include "sites.h"
#include "nmi.h"
#ifdef NMI_MUTANT
#include "nmi_mutant.skel.h"
#define nmi_bpf		 nmi_mutant_bpf
#define nmi_bpf__open	 nmi_mutant_bpf__open
#define nmi_bpf__destroy nmi_mutant_bpf__destroy
#else
#include "nmi.skel.h"
#endif

#define WATCHES	  4 /* that a CPU has */
#define MAX_WORDS 2048
#define LOOK_US	  2000 /* of work between two looks at what came of it */
#define PASSES	  600
#define PATIENCE  (120 * 1000) /* ms of this process's own, all in all; ten times that by make torture */

static struct rig *t;
static struct nmi_bpf *nmi;
static struct site *places; /* that are looked at */
static unsigned int nplaces, copies[NMI_SITES]; /* instructions of each */
static __u32 word_off[MAX_WORDS];
static unsigned int nwords;
static __u64 seed = 0x5eed;
static const char *lacks;

static const char *const works[] = { "pairs",		"bulk",	 "bypass", "refill",  "reclaim",
				     "reclaim aligned", "large", "below",  "release", "park" };

static __u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (__u64)ts.tv_sec * 1000 + (__u64)ts.tv_nsec / 1000000;
}

/* ---- Watchpoints ---- */

/* Made once: a closed one goes later, and a CPU has only so many. */
static int watch_fd[WATCHES] = { -1, -1, -1, -1 };
static struct bpf_link *watched[WATCHES];
static int nwatches; /* others may have some */

/* Watchpoint i is on the 8 bytes at an offset of the arena, as the kernel addresses them.  0, or why not. */
static int watch(int i, __u32 off)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = nmi->bss->kern_base + off,
		.bp_len = HW_BREAKPOINT_LEN_8,
		.sample_period = 1,
		.exclude_user = 1,
	};
	LIBBPF_OPTS(bpf_perf_event_opts, opts);

	if (watch_fd[i] >= 0)
		return ioctl(watch_fd[i], PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr) ? -errno : 0;
	watch_fd[i] = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (watch_fd[i] < 0)
		return -errno;
	opts.bpf_cookie = (__u64)i;
	watched[i] = bpf_program__attach_perf_event_opts(nmi->progs.nmi_hit, watch_fd[i], &opts);
	return watched[i] ? 0 : -errno;
}

static void unwatch(void)
{
	int i;

	for (i = 0; i < nwatches; i++)
		ioctl(watch_fd[i], PERF_EVENT_IOC_DISABLE, 0);
}

/* On at most as many words as there are watchpoints. */
static void watch_words(const __u32 *off, unsigned int n)
{
	int i, err;

	unwatch();
	for (i = 0; i < nwatches && (unsigned int)i < n; i++) {
		err = watch(i, off[i]);
		if (err)
			fail_msg("watchpoint %d: %s", i, strerror(-err));
	}
}

/* ---- What is watched ---- */

static void add_word(__u64 off)
{
	unsigned int i;

	off &= ~7ULL;
	for (i = 0; i < nwords; i++)
		if (word_off[i] == off)
			return;
	assert_true(nwords < MAX_WORDS);
	word_off[nwords++] = (__u32)off;
}

static void add_range(__u64 off, __u64 bytes)
{
	__u64 at;

	for (at = off & ~7ULL; at < off + bytes; at += 8)
		add_word(at);
}

static __u64 off_of(const volatile void *p)
{
	return (__u64)((const volatile char *)p - t->base);
}

static struct arn_page *desc(__u32 pg)
{
	return (struct arn_page *)(t->base + (__u32)(t->root->page_bias + pg * (__u32)sizeof(struct arn_page)));
}

static void run(enum nmi_work work, __u64 us)
{
	struct nmi_job j = { .work = work, .ns = us * 1000, .seed = seed };

	rig_run(nmi->progs.nmi_work, &j, sizeof(j));
	seed = j.seed;
}

static void add_page(__u32 pg)
{
	if (pg - t->root->first_page < t->root->npages)
		add_range(off_of(desc(pg)), 64);
}

/* A magazine, and where its objects are described. */
static void add_magazine(__u32 m)
{
	struct arn_mag *mag = (struct arn_mag *)(t->base + m);
	int i;

	if (!m)
		return;
	add_range(m, 64);
	for (i = 0; i < 8; i++) {
		if (!mag->obj[i])
			continue;
		add_word((__u32)(t->root->state_bias + (mag->obj[i] >> ARN_GRANULE_SHIFT)));
		add_page(mag->obj[i] >> ARN_PAGE_SHIFT);
	}
}

static __u32 first_of(__u64 stack)
{
	return (__u32)(stack & ARN_STACK_IDX_MASK) << ARN_MAG_SHIFT;
}

static void add_slab(__u32 pg)
{
	int i;

	for (i = 0; i < 3; i++) {
		add_page(pg + i);
		add_word((__u32)(t->root->state_bias + ((pg + i) << 8)));
	}
}

/* The page runs that large objects were, and what lies before and behind. */
static void add_larges(void)
{
	int i;

	for (i = 0; i < 8; i++) {
		__u32 pg = (__u32)nmi->bss->held[i] >> ARN_PAGE_SHIFT;

		add_page(pg - 1);
		add_page(pg);
		add_page(pg + 8);
		add_page(pg + 11);
		add_page(pg + 12);
		add_word((__u32)(t->root->state_bias + (pg << 8)));
	}
}

static bool is_mapped(__u32 pg)
{
	return *(__u32 *)(t->base + ARN_DIR_OFF + (pg >> 8) * 4) == ARN_CHUNK_MAPPED;
}

static bool is_mags(__u32 pg, __u32 cls)
{
	return is_mapped(pg) && desc(pg)->kind == ARN_PG_MAGS && desc(pg)->cls == cls;
}

/* What a kind of work writes to, as the heap is after some of it. */
static void choose_words(enum nmi_work work)
{
	struct arn_slot *slot = (struct arn_slot *)(t->base + ARN_SLOTS_OFF);
	__u32 cls = rig_class(t, work == NMI_RECLAIM_ALIGNED ? NMI_ALIGNED : NMI_SIZE), pg, i;
	__u32 small = rig_class(t, NMI_SMALL);
	int slabs = 0, smalls = 0, mags = 0, frees = 0;

	nwords = 0;
	if (work == NMI_RECLAIM)
		for (pg = t->root->first_page; pg < t->root->first_page + t->root->npages; pg++)
			for (i = 0; is_mags(pg, cls) && i < ARN_MAG_PER_PAGE; i++)
				add_word((pg << ARN_PAGE_SHIFT) + (i << ARN_MAG_SHIFT)); /* where pushes link */
	add_range(off_of(&slot->cache[cls]), 64);
	add_range(off_of(&t->root->depot[cls]), 128);
	add_range(off_of(&t->root->lock), 48);
	add_range(off_of(&t->root->pending), 16);
	add_range(off_of(t->root->emergency[cls]), t->root->cls[cls].emergency * 4);
	add_range(off_of((void *)nmi->bss->work_vec), NMI_BULK * 8);
	add_magazine(slot->cache[cls].top & ~(ARN_MAG_SIZE - 1));
	add_magazine(slot->cache[cls].prev & ~(ARN_MAG_SIZE - 1));
	add_magazine(first_of(slot->cache[cls].near_full));
	add_magazine(first_of(slot->cache[cls].near_empty));
	add_magazine(first_of(t->root->depot[cls].full));
	add_magazine(first_of(t->root->depot[cls].empty));
	for (pg = t->root->first_page; pg < t->root->first_page + t->root->npages; pg++) {
		if (!is_mapped(pg))
			continue;
		if (desc(pg)->kind == ARN_PG_SLAB && desc(pg)->cls == cls && slabs++ < 3)
			add_slab(pg);
		if (is_mags(pg, cls) && mags++ < 2)
			add_page(pg);
		if (work == NMI_RELEASE && desc(pg)->kind == ARN_PG_SLAB && desc(pg)->cls == small && smalls++ < 2)
			add_page(pg);
		if (desc(pg)->kind == ARN_PG_FREE && frees++ < 8)
			add_page(pg);
	}
	add_range(off_of(t->root->bins), sizeof(t->root->bins));
	if (work == NMI_LARGE)
		add_larges();
}

/* ---- The stores ---- */

#define MAX_LINES 8192

static char part[MAX_LINES][24]; /* of the header that programs include: which it was pasted from */

static void read_parts(void)
{
	FILE *f = fopen(TEST_DIR "/../include/arenite/arenite.bpf.h", "re");
	char text[400], in[16][24] = { "" };
	int at[16] = { 0 }, depth = 0, n = 0;
	unsigned int line = 0;

	assert_non_null(f);
	while (fgets(text, sizeof(text), f) && ++line < MAX_LINES) {
		if (!strncmp(text, "#if", 3)) {
			depth++;
			if (n < 15 && sscanf(text, "#ifndef ARN_%20[A-Z_]", in[n + 1]) == 1 && strstr(text, "_H\n"))
				at[++n] = depth;
		} else if (!strncmp(text, "#endif", 6)) {
			if (n && at[n] == depth)
				n--;
			depth--;
		}
		strcpy(part[line], in[n]);
	}
	fclose(f);
	assert_true(line < MAX_LINES);
}

static const char *part_of(unsigned int line)
{
	return line < MAX_LINES ? part[line] : "";
}

static const struct {
	const char *func, *text, *why;
} left_out[] = {
	{ "", "fail[", "a counter" },
	{ "arn__mag_empty", "while (n && n <=", "a counter that lost its line" },
	{ "arn__emergency_release", "for (i = ", "a counter that lost its line" },
	{ "", "arn_trailer(", "checked heaps" },
	{ "park", "", "the test's own" },
	{ "bypass", "", "the test's own" },
	{ "below", "", "the test's own" },
	{ "arn__zero", "", "writes what the user owns" },
	{ "arn__copy", "", "writes what the user owns" },
	{ "arn__ask", "", "growth, whose tests are growth.c and keeper.c" },
	{ "arn__dress", "", "checked heaps" },
	{ "arn__undress", "", "checked heaps" },
	{ "arn__release", "", "checked heaps" },
	{ "arn__checked_free", "", "checked heaps" },
	{ "arn__free_slow", "", "a free that is refused" },
	{ "arn__settle_one", "arn_xchg64_full(&r->pending, 0);", "a corrupt heap" },
};

static bool is_left_out(const struct site *s)
{
	size_t i;

	if (strcmp(s->file, "arenite.bpf.h"))
		return true; /* the test's own */
	if (!strcmp(part_of(s->line), "PERCPU_CLASS_H"))
		return true; /* of classes that are not used here: percpu.c */
	for (i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		if ((!*left_out[i].func || !strcmp(s->func, left_out[i].func)) && strstr(s->text, left_out[i].text))
			return true;
	return false;
}

/*
 * A line of the source in one BPF function is one place, however often the compiler has it there; of slabs and
 * page runs, whose few functions are inlined everywhere, a line.
 */
static unsigned int place_of(const struct site *s)
{
	const char *from = part_of(s->line);
	bool shared = !strcmp(from, "PAGES_H") || !strcmp(from, "SLAB_H");
	unsigned int i;

	for (i = 0; i < nplaces; i++)
		if (places[i].line == s->line && (shared || !strcmp(places[i].func, s->func)))
			break;
	assert_true(i < NMI_SITES);
	if (i == nplaces)
		places[nplaces++] = *s;
	copies[i]++;
	return i;
}

static void find_places(void)
{
	unsigned int n, i, at;

	read_parts();
	places = sites_of(bpf_program__fd(nmi->progs.nmi_work), &n, &lacks);
	for (i = 0; places && i < n; i++) {
		struct site s = places[i]; /* place_of() fills the array from its beginning */

		if (is_left_out(&s))
			continue;
		at = place_of(&s);
		assert_int_equal(
			bpf_map__update_elem(nmi->maps.sites, &s.ip, sizeof(s.ip), &at, sizeof(at), BPF_NOEXIST), 0);
	}
	assert_true(lacks || nplaces > 50);
}

#ifndef NMI_MUTANT
static unsigned int unfinished(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < nplaces; i++)
		n += nmi->bss->hits[i] < nmi->bss->want;
	return n;
}
#endif

/* Every word that a kind of work may write to, as long as something comes of it. */
static void interrupt(enum nmi_work work, __u64 end)
{
	unsigned int at;
	__u64 acted;
	int idle;

	run(work, LOOK_US);
	choose_words(work);
	for (at = 0; at < nwords && now_ms() < end && !nmi->bss->wrong.twice; at += (unsigned int)nwatches) {
		watch_words(&word_off[at], nwords - at);
		/* Parking is rare; the cache's own words come first. */
		for (idle = 0; idle < (work == NMI_PARK && at < 8 ? 10
				       : work == NMI_BYPASS	  ? 3
								  : 1) &&
			       now_ms() < end && !nmi->bss->wrong.twice;) {
			acted = nmi->bss->acted;
			run(work, LOOK_US);
			idle = nmi->bss->acted == acted ? idle + 1 : 0;
		}
	}
	unwatch();
	if (!nmi->bss->wrong.twice)
		rig_run(nmi->progs.nmi_rest, NULL, 0);
}

/* ---- Tests ---- */

static int setup(void **state)
{
	t = rig_new(HOLD_ARENA, 4 * MiB);
	nmi = nmi_bpf__open();
	assert_non_null(nmi);
	assert_int_equal(rig_load(t->heap, nmi->skeleton), 0);
	rig_run(nmi->progs.kern_find, NULL, 0);
	nmi->bss->want = getenv("ARN_TORTURE") ? NMI_TORTURE : NMI_HITS;
	nmi->bss->vec = (__u64)bpf_malloc(t, 64);
	nmi->bss->work_vec = (__u64)bpf_malloc(t, NMI_BULK * 8);
	find_places();
	return 0;
}

#ifndef NMI_MUTANT
static int teardown(void **state)
{
	rig_run(nmi->progs.nmi_drop, NULL, 0);
	assert_int_equal(bpf_free(t, (void *)nmi->bss->vec), 0);
	assert_int_equal(bpf_free(t, (void *)nmi->bss->work_vec), 0);
	assert_int_equal(rig_live(t->heap), 0);
	nmi_bpf__destroy(nmi);
	rig_end(t);
	free(places);
	return 0;
}

static void nothing_wrong(const char *where)
{
	struct hold_wrong *w = &nmi->bss->wrong;

	if (w->twice || w->lost_mark || w->torn || w->refused || w->bulk_short)
		fail_msg(
			"%s: %llu objects handed out twice, %llu freed that nobody held, %llu overwritten, %llu frees refused, %llu bulk frees short",
			where, w->twice, w->lost_mark, w->torn, w->refused, w->bulk_short);
	if (nmi->bss->work_nulls)
		fail_msg("%s: %llu allocations failed that were interrupted", where, nmi->bss->work_nulls);
}

static void every_store_is_interrupted(void **state)
{
	__u64 nested = rig_fail(t, ARN_FAIL_NESTED), start = now_ms(),
	      end = start + PATIENCE * (getenv("ARN_TORTURE") ? 10 : 1);
	unsigned int i, missed = 0;
	bool vain[NMI_WORKS] = {};
	int work, pass, err;
	__u64 acted;

	for (err = 0; !lacks && !err && nwatches < WATCHES; nwatches += !err)
		err = watch(nwatches, ARN_ROOT_OFF);
	if (!nwatches && !lacks)
		lacks = strerror(-err);
	if (lacks) {
		print_message("skipped: no watchpoints on this machine's stores: %s\n", lacks);
		skip();
	}
	for (pass = 0; pass < PASSES && unfinished() && now_ms() < end; pass++) {
		for (work = 0; work < NMI_WORKS && unfinished(); work++) {
			if (vain[work] && pass % 4 != work % 4)
				continue; /* not every time */
			acted = nmi->bss->acted;
			interrupt(work, end);
			vain[work] = nmi->bss->acted == acted;
			nothing_wrong(works[work]);
			rig_sound(t->heap);
		}
	}
	for (i = 0; i < nplaces; i++) {
		struct site *s = &places[i];

		if (nmi->bss->hits[i] >= nmi->bss->want && !nmi->bss->nulls[i])
			continue;
		missed++;
		print_error("%s (%s, %s:%u: %s): interrupted %llu times, %llu allocations failed on top of it\n",
			    s->func, part_of(s->line), s->file, s->line, s->text, nmi->bss->hits[i],
			    nmi->bss->nulls[i]);
	}
	print_message("%u stores, each %llu times or more: %llu interruptions in %llu ms of CPU time\n", nplaces,
		      nmi->bss->want, nmi->bss->acted, now_ms() - start);
	assert_int_equal(missed, 0);
	assert_int_equal(rig_fail(t, ARN_FAIL_NESTED), nested);
}

#else /* NMI_MUTANT */
static int teardown_broken(void **state)
{
	nmi_bpf__destroy(nmi);
	ops_bpf__destroy(t->ops);
	arn_close(t->heap);
	free(t);
	free(places);
	return 0;
}

/* The heap is lost then; that it is seen is what counts. */
static void a_cache_that_is_not_claimed_is_seen(void **state)
{
	struct hold_wrong *w = &nmi->bss->wrong;
	__u64 end = now_ms() + 20000;
	int i, err;

	for (err = 0; !lacks && !err && nwatches < WATCHES; nwatches += !err)
		err = watch(nwatches, ARN_ROOT_OFF);
	if (!nwatches) {
		print_message("skipped: no watchpoints on this machine's stores: %s\n", lacks ? lacks : strerror(-err));
		skip();
	}
	for (i = 0; i < 10 && !w->twice && now_ms() < end; i++)
		interrupt(NMI_PAIRS, end);
	print_message("%llu objects handed out twice, %llu freed that nobody held\n", w->twice, w->lost_mark);
	assert_true(w->twice > 0);
}
#endif

int main(void)
{
	static const struct CMUnitTest tests[] = {
#ifdef NMI_MUTANT
		cmocka_unit_test(a_cache_that_is_not_claimed_is_seen),
#else
		cmocka_unit_test(every_store_is_interrupted),
#endif
	};

	rig_start();
#ifdef NMI_MUTANT
	return cmocka_run_group_tests(tests, setup, teardown_broken) != 0;
#else
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
#endif
}
