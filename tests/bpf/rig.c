// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* rig.c - see rig.h. */
#include <sched.h>
#include "rig.h"
#include "ops.skel.h"

#define PRINT_LAST 1500 /* characters of one message */

static int print_none(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return 0;
}

/* Of a long one, such as the verifier's log, the end, where the reason is. */
static int print_warnings(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char *text;
	int n;

	if (level != LIBBPF_WARN || vasprintf(&text, fmt, ap) < 0)
		return 0;
	n = (int)strlen(text);
	fprintf(stderr, "%s", n > PRINT_LAST ? text + n - PRINT_LAST : text);
	free(text);
	return n;
}

bool rig_quiet(bool on)
{
	return libbpf_set_print(on ? print_none : print_warnings) == print_none;
}

void rig_pin_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail_msg("cannot run on CPU %d: %s", cpu, strerror(errno));
}

int rig_cpus(void)
{
	return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

unsigned int rig_scale(void)
{
	const char *s = getenv("TEST_SCALE");

	return s && atoi(s) > 1 ? (unsigned int)atoi(s) : 1;
}

void rig_start(void)
{
	setlinebuf(stdout);
	if (arn_supported()) {
		puts(arn_last_error());
		exit(77);
	}
	rig_quiet(false);
	rig_pin_cpu(0);
}

int rig_load(struct arn_heap *heap, struct bpf_object_skeleton *s)
{
	int err = arn_attach(heap, *s->obj);

	if (err) {
		fprintf(stderr, "%s\n", arn_last_error());
		return err;
	}
	return bpf_object__load_skeleton(s);
}

struct ops_bpf *rig_ops(struct arn_heap *heap)
{
	struct ops_bpf *ops = ops_bpf__open();

	assert_non_null(ops);
	assert_int_equal(rig_load(heap, ops->skeleton), 0);
	return ops;
}

struct rig *rig_new(__u64 bytes, __u64 reserve)
{
	return rig_new_flags(bytes, reserve, 0);
}

static struct rig *rig_make(const struct arn_options *opts)
{
	struct rig *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->heap = arn_create(opts);
	if (!t->heap)
		fail_msg("%s", arn_last_error());
	t->base = arn_base_address(t->heap);
	t->root = (struct arn_root *)(t->base + ARN_ROOT_OFF);
	t->ops = rig_ops(t->heap);
	return t;
}

struct rig *rig_new_flags(__u64 bytes, __u64 reserve, __u32 flags)
{
	struct arn_options opts = { .sz = sizeof(opts), .bytes = bytes, .flags = flags, .name = "bpftest" };
	struct rig *t = rig_make(&opts);

	assert_ok(arn_reserve(t->heap, reserve == RIG_ALL ? (__u64)t->root->npages << ARN_PAGE_SHIFT : reserve));
	return t;
}

struct rig *rig_new_marks(__u64 bytes, __u64 low, __u64 high)
{
	struct arn_options opts = {
		.sz = sizeof(opts), .bytes = bytes, .name = "bpftest", .low_watermark = low, .high_watermark = high
	};

	return rig_make(&opts);
}

void rig_end(struct rig *t)
{
	if (!t)
		return;
	rig_sound(t->heap);
	ops_bpf__destroy(t->ops);
	arn_close(t->heap);
	free(t);
}

void rig_run(struct bpf_program *prog, void *ctx, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = ctx, .ctx_size_in = (__u32)size);
	int err = bpf_prog_test_run_opts(bpf_program__fd(prog), &opts);

	if (err)
		fail_msg("running %s: %s", bpf_program__name(prog), strerror(-err));
	assert_int_equal(opts.retval, 0);
}

__s64 rig_do(struct ops_bpf *ops, struct op *o)
{
	rig_run(ops->progs.op_run, o, sizeof(*o));
	return o->ret;
}

__s64 rig_op(struct rig *t, enum op_code code, __u64 a, __u64 b, __u32 n)
{
	struct op o = { .code = code, .n = n, .a = a, .b = b };

	return rig_do(t->ops, &o);
}

struct arn_stats rig_stats(struct arn_heap *heap)
{
	struct arn_stats st;

	assert_ok(arn_get_stats(heap, &st, sizeof(st)));
	return st;
}

void rig_sound(struct arn_heap *heap)
{
	struct arn_stats st;
	__u32 c;

	assert_ok(arn_check(heap));
	st = rig_stats(heap);
	assert_int_equal(st.pages_mapped, st.pages_free + st.pages_slab + st.pages_large + st.pages_mags +
						  st.pages_percpu + st.pages_pending);
	for (c = 0; c < ARN_CLASSES; c++)
		assert_int_equal(st.cls[c].objects, st.cls[c].live + st.cls[c].in_slots + st.cls[c].in_depot +
							    st.cls[c].in_slabs + st.cls[c].in_emergency +
							    st.cls[c].quarantined);
	assert_int_equal(st.fail[ARN_FAIL_CORRUPT], 0);
}

__u64 rig_fail(struct rig *t, enum arn_fail why)
{
	return t->root->fail[why];
}

__u64 rig_live(struct arn_heap *heap)
{
	struct arn_stats st = rig_stats(heap);
	__u64 sum = st.large;
	__u32 c;

	for (c = 0; c < ARN_CLASSES; c++)
		sum += st.cls[c].live;
	return sum;
}

__u32 rig_class(struct rig *t, __u64 size)
{
	__u32 c;

	for (c = 0; c < ARN_CLASSES && t->root->cls[c].size < size; c++)
		;
	return c;
}
