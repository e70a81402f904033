// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * adopt.c - arenas that somebody else made: a skeleton's own is adopted after its load; what is no
 * heap, or lies where it cannot be used, is turned away, with words that say why.
 */
#include <sys/mman.h>
#include "rig.h"
#include "ops.skel.h"
#include "bare.skel.h"

static __s64 op(struct ops_bpf *ops, enum op_code code, __u64 a, __u64 b)
{
	struct op o = { .code = code, .a = a, .b = b };

	return rig_do(ops, &o);
}

static void a_map_that_is_no_arena_is_refused(void **state)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "plain", 4, 4, 1, NULL);

	assert_true(fd >= 0);
	assert_null(arn_open_fd(fd, 0, NULL));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(arn_last_error(), "not an arena"));
	close(fd);
	assert_null(arn_open_fd(-1, 0, NULL));
	assert_int_equal(errno, EBADF);
}

static void a_loaded_skeletons_arena_is_adopted(void **state)
{
	struct ops_bpf *ops = ops_bpf__open();
	struct arn_heap *h;
	char *p;

	assert_ok(arn_prepare_map(ops->maps.arn_arena, 32 * MiB));
	assert_int_equal(ops_bpf__load(ops), 0);
	assert_int_equal(op(ops, OP_MALLOC, 64, 0), 0);
	assert_null(arn_open_fd(bpf_map__fd(ops->maps.arn_arena), 0, NULL));
	assert_int_equal(errno, EINVAL);
	h = arn_open_fd(bpf_map__fd(ops->maps.arn_arena), ARN_INIT, NULL);
	if (!h)
		fail_msg("%s", arn_last_error());
	assert_int_equal(op(ops, OP_MALLOC, 64, 0), 0);
	assert_ok(arn_reserve(h, 4 * MiB));
	p = (char *)op(ops, OP_MALLOC, 64, 0);
	assert_non_null(p);
	strcpy(p, "adopted");
	assert_int_equal(rig_live(h), 1);
	assert_int_equal(op(ops, OP_FREE, (__u64)p, 0), 0);
	rig_sound(h);
	arn_close(h);
	/* The skeleton still has its mapping, and the arena its heap. */
	assert_string_equal(p, "adopted");
	h = arn_open_fd(bpf_map__fd(ops->maps.arn_arena), 0, NULL);
	assert_non_null(h);
	rig_sound(h);
	arn_close(h);
	ops_bpf__destroy(ops);
}

/* libbpf maps a prepared arena over whatever lies at its address by then: so nothing of ours does. */
static void an_address_is_promised_once(void **state)
{
	struct arn_options opts = { .sz = sizeof(opts), .bytes = 32 * MiB }, native = opts;
	struct ops_bpf *a = ops_bpf__open(), *b = ops_bpf__open();
	struct arn_heap *h, *n;

	native.flags = ARN_NATIVE;
	assert_ok(arn_prepare_map(a->maps.arn_arena, 32 * MiB));
	assert_ok(arn_prepare_map(b->maps.arn_arena, 32 * MiB));
	h = arn_create(&opts);
	n = arn_create(&native);
	assert_true(h && n);
	assert_int_equal(ops_bpf__load(a), 0);
	assert_int_equal(ops_bpf__load(b), 0);
	assert_int_not_equal(bpf_map__map_extra(a->maps.arn_arena), bpf_map__map_extra(b->maps.arn_arena));
	rig_sound(h);
	rig_sound(n);
	arn_close(h);
	arn_close(n);
	ops_bpf__destroy(a);
	ops_bpf__destroy(b);
}

/* The process has another mapping where a pinned arena belongs. */
static void a_taken_address_is_eexist(void **state)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = ARN_MAP_FLAGS, .map_extra = 0x7efe00000000ULL);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARENA, "bare", 0, 0, (__u32)(32 * MiB / (__u64)getpagesize()), &opts);
	char *other = mmap((void *)0x7efe00000000UL, 64 * MiB, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	assert_true(fd >= 0 && other != MAP_FAILED);
	memset(other, 'o', 64 * MiB);
	assert_null(arn_open_fd(fd, ARN_INIT, NULL));
	assert_int_equal(errno, EEXIST);
	assert_int_equal(other[ARN_ROOT_OFF], 'o');
	munmap(other, 64 * MiB);
	/* Nothing was left behind. */
	struct arn_heap *h = arn_open_fd(fd, ARN_INIT, NULL);

	assert_non_null(h);
	rig_sound(h);
	arn_close(h);
	close(fd);
}

static void an_arena_without_a_heap_is_not_opened(void **state)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = ARN_MAP_FLAGS, .map_extra = 0x7eff00000000ULL);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARENA, "bare", 0, 0, (__u32)(32 * MiB / (__u64)getpagesize()), &opts);
	struct arn_heap *h;

	assert_true(fd >= 0);
	assert_null(arn_open_fd(fd, 0, NULL));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(arn_last_error(), "ARN_INIT"));
	h = arn_open_fd(fd, ARN_INIT, NULL);
	assert_non_null(h);
	arn_close(h);
	/* Now there is one, which ARN_INIT does not make anew. */
	h = arn_open_fd(fd, ARN_INIT, NULL);
	assert_non_null(h);
	assert_ok(arn_reserve(h, MiB));
	arn_close(h);
	h = arn_open_fd(fd, 0, NULL);
	assert_non_null(h);
	assert_int_equal(rig_stats(h).pages_mapped, 256);
	rig_sound(h);
	arn_close(h);
	close(fd);
}

static void an_arena_at_an_odd_address_is_refused(void **state)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = ARN_MAP_FLAGS, .map_extra = 0x7eff00000000ULL + 64 * MiB);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARENA, "odd", 0, 0, (__u32)(32 * MiB / (__u64)getpagesize()), &opts);

	assert_true(fd >= 0);
	assert_null(arn_open_fd(fd, ARN_INIT, NULL));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(arn_last_error(), "4 GiB-aligned"));
	close(fd);
}

static void a_native_heap_attaches_nothing(void **state)
{
	struct ops_bpf *ops = ops_bpf__open();
	struct arn_options native = { .sz = sizeof(native), .flags = ARN_NATIVE };
	struct arn_heap *h = arn_create(&native);

	assert_non_null(ops);
	assert_int_equal(arn_attach(h, ops->obj), -EINVAL);
	assert_non_null(strstr(arn_last_error(), "ARN_NATIVE"));
	arn_close(h);
	ops_bpf__destroy(ops);
}

static void an_object_without_an_arena_is_refused(void **state)
{
	struct bare_bpf *bare = bare_bpf__open();
	struct arn_options opts = { .sz = sizeof(opts), .bytes = 32 * MiB };
	struct arn_heap *h = arn_create(&opts);

	assert_true(bare && h);
	assert_int_equal(arn_attach(h, bare->obj), -ENOENT);
	assert_non_null(strstr(arn_last_error(), "bare_bpf"));
	assert_non_null(strstr(arn_last_error(), "include arenite.bpf.h"));
	arn_close(h);
	bare_bpf__destroy(bare);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_map_that_is_no_arena_is_refused),
		cmocka_unit_test(a_loaded_skeletons_arena_is_adopted),
		cmocka_unit_test(an_address_is_promised_once),
		cmocka_unit_test(a_taken_address_is_eexist),
		cmocka_unit_test(an_arena_without_a_heap_is_not_opened),
		cmocka_unit_test(an_arena_at_an_odd_address_is_refused),
		cmocka_unit_test(a_native_heap_attaches_nothing),
		cmocka_unit_test(an_object_without_an_arena_is_refused),
	};

	rig_start();
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
