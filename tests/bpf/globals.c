// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * globals.c - an object's own arena variables beside the heap: their first values, seen from BPF and
 * from user space, changed from both, and the second object that would lie on top of them.
 *
 * Which end of the arena they lie at depends on libbpf (below 1.7: the start); only what is here is
 * tried.
 */
#include "rig.h"
#include "ops.skel.h"
#include "globals.skel.h"

struct look {
	__u64 five, first, last, counter, letter;
};

static struct rig *t;
static struct globals_bpf *g;

static int setup(void **state)
{
	t = rig_new(64 * MiB, 0);
	g = globals_bpf__open();
	assert_non_null(g);
	assert_int_equal(rig_load(t->heap, g->skeleton), 0);
	assert_ok(arn_reserve(t->heap, 2 * MiB));
	return 0;
}

static int teardown(void **state)
{
	globals_bpf__destroy(g);
	rig_end(t);
	return 0;
}

static struct look look(void)
{
	struct look l = {};

	rig_run(g->progs.glob_read, &l, sizeof(l));
	return l;
}

static void first_values_in_bpf(void **state)
{
	struct look l = look();

	assert_int_equal(l.five, 5);
	assert_int_equal(l.first, 66);
	assert_int_equal(l.last, 99);
	assert_int_equal(l.counter, 0);
	assert_int_equal(l.letter, 'a');
}

static void first_values_in_user_space(void **state)
{
	struct globals_bpf__arena *v = arn_globals(t->heap);

	assert_non_null(v);
	assert_int_equal(v->five, 5);
	assert_int_equal(v->table[1], 22);
	assert_int_equal(v->table[999], 99);
	assert_int_equal(v->table[500], 0);
	assert_string_equal(v->word, "arena");
	assert_int_equal(v->counter, 0);
}

static void each_side_sees_the_others_changes(void **state)
{
	struct globals_bpf__arena *v = arn_globals(t->heap);
	struct look l = { .five = 7, .first = 0xabcd };

	rig_run(g->progs.glob_write, &l, sizeof(l));
	assert_int_equal(v->five, 7);
	assert_int_equal(v->counter, 1);
	/* A pointer kept in a global is good in user space. */
	assert_int_equal(*(__u64 *)v->kept, 0xabcd);
	v->table[999] = 1234;
	v->counter = 41;
	assert_int_equal(look().last, 1234);
	rig_run(g->progs.glob_write, &l, sizeof(l));
	assert_int_equal(v->counter, 42);
	rig_run(g->progs.glob_drop, NULL, 0);
	assert_int_equal(v->kept, 0);
}

static void the_heap_stays_clear_of_them(void **state)
{
	struct globals_bpf__arena *v = arn_globals(t->heap);
	__u64 before[1000], chain = 0;
	__u32 n;

	memcpy(before, v->table, sizeof(before));
	n = bpf_take(t, 4096, 100000, &chain);
	assert_true(n > 100);
	for (__u64 p = chain; p; p = *(__u64 *)p)
		memset((void *)(p + 8), 0xff, 4088);
	assert_memory_equal(before, v->table, sizeof(before));
	assert_int_equal(bpf_drop(t, n, &chain), n);
	rig_sound(t->heap);
}

static void a_second_object_with_some_is_refused(void **state)
{
	struct globals_bpf *second = globals_bpf__open();
	struct globals_bpf__arena *v = arn_globals(t->heap);

	assert_non_null(second);
	v->five = 77;
	assert_int_equal(arn_attach(t->heap, second->obj), -EBUSY);
	assert_non_null(strstr(arn_last_error(), "globals_bpf"));
	assert_non_null(strstr(arn_last_error(), "only one object a heap"));
	assert_int_equal(v->five, 77);
	globals_bpf__destroy(second);
}

static void a_second_object_without_any_is_welcome(void **state)
{
	struct ops_bpf *ops = rig_ops(t->heap);
	struct op o = { .code = OP_MALLOC, .a = 64 };

	assert_true(rig_do(ops, &o) != 0);
	assert_int_equal(bpf_free(t, (void *)o.ret), 0);
	ops_bpf__destroy(ops);
}

static void a_free_of_a_global_is_foreign(void **state)
{
	struct globals_bpf__arena *v = arn_globals(t->heap);
	__u64 before = rig_fail(t, ARN_FAIL_FOREIGN);

	assert_int_equal(bpf_free(t, &v->table[2]), -EINVAL);
	assert_int_equal(rig_fail(t, ARN_FAIL_FOREIGN), before + 1);
}

/* The pages they take are part of what the heap says it takes. */
static void they_are_counted(void **state)
{
	struct rig *bare = rig_new(64 * MiB, 2 * MiB);

	assert_null(arn_globals(bare->heap));
	assert_in_range(rig_stats(t->heap).meta_bytes - rig_stats(bare->heap).meta_bytes,
			sizeof(struct globals_bpf__arena), 2 * 65536);
	rig_end(bare);
}

static void who_opens_the_heap_later_finds_them(void **state)
{
	struct arn_options opts = { .sz = sizeof(opts), .bytes = 32 * MiB };
	struct arn_heap *h = arn_create(&opts);
	struct globals_bpf *first = globals_bpf__open(), *second;
	int fd = dup(arn_map_fd(h));

	assert_int_equal(rig_load(h, first->skeleton), 0);
	((struct globals_bpf__arena *)arn_globals(h))->counter = 4711;
	arn_close(h);
	h = arn_open_fd(fd, 0, NULL);
	assert_non_null(h);
	assert_int_equal(((struct globals_bpf__arena *)arn_globals(h))->counter, 4711);
	second = globals_bpf__open();
	assert_int_equal(arn_attach(h, second->obj), -EBUSY);
	globals_bpf__destroy(second);
	globals_bpf__destroy(first);
	rig_sound(h);
	arn_close(h);
	close(fd);
}

/* Adoption of an arena with globals crashes libbpf before 1.7: refused beforehand. */
static void without_attach_they_are_refused(void **state)
{
	struct globals_bpf *own = globals_bpf__open();

	if (libbpf_major_version() > 1 || libbpf_minor_version() >= 7)
		skip();
	assert_int_equal(arn_prepare_map(own->maps.arn_arena, 32 * MiB), -EINVAL);
	assert_non_null(strstr(arn_last_error(), "use arn_create and arn_attach"));
	globals_bpf__destroy(own);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_values_in_bpf),
		cmocka_unit_test(first_values_in_user_space),
		cmocka_unit_test(each_side_sees_the_others_changes),
		cmocka_unit_test(the_heap_stays_clear_of_them),
		cmocka_unit_test(a_second_object_with_some_is_refused),
		cmocka_unit_test(a_second_object_without_any_is_welcome),
		cmocka_unit_test(a_free_of_a_global_is_foreign),
		cmocka_unit_test(they_are_counted),
		cmocka_unit_test(who_opens_the_heap_later_finds_them),
		cmocka_unit_test(without_attach_they_are_refused),
	};

	rig_start();
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
