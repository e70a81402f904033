// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * features.c - the table of what this kernel has says the truth: each answer is asked for in another way.
 *
 * On one kernel only some answers are "no"; those of others show in 'make vmtest'.
 */
#include <bpf/btf.h>
#include "rig.h"
#include "anycontext.h"
#include "anycontext.skel.h"
#include "features.skel.h"

static struct btf *btf;

static const struct arn_feature *feature(const char *name)
{
	const struct arn_feature *f;
	unsigned int i;

	for (i = 0; (f = arn_feature(i)); i++)
		if (!strcmp(f->name, name))
			return f;
	fail_msg("no feature '%s'", name);
	return NULL;
}

static void what_this_kernel_has(void **state)
{
	const struct arn_feature *f;
	unsigned int i;

	for (i = 0; (f = arn_feature(i)); i++) {
		print_message("%-18s %s\n", f->name, f->found > 0 ? "yes" : "no");
		assert_in_range(f->found, 0, 1); /* a test has the rights to ask everything */
		assert_true(f->found || !f->needed);
	}
}

/* By either name, the newer one first. */
static void kernel_functions(void **state)
{
	const struct arn_feature *f;
	bool newer, older;
	unsigned int i;
	int n = 0;

	for (i = 0; (f = arn_feature(i)); i++) {
		if (strcmp(f->kind, "kfunc"))
			continue;
		n++;
		newer = btf__find_by_name_kind(btf, f->what, BTF_KIND_FUNC) > 0;
		older = *f->older && btf__find_by_name_kind(btf, f->older, BTF_KIND_FUNC) > 0;
		assert_int_equal(f->found, newer || older);
		if (f->found)
			assert_string_equal(f->as, newer ? f->what : f->older);
		else
			assert_null(f->as);
	}
	assert_true(n > 4);
}

static void types_of_maps_and_programs_and_helpers(void **state)
{
	assert_int_equal(feature("arena")->found, libbpf_probe_bpf_map_type(BPF_MAP_TYPE_ARENA, NULL));
	assert_int_equal(feature("syscall")->found, libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_SYSCALL, NULL));
	assert_int_equal(feature("ringbuf")->found,
			 libbpf_probe_bpf_helper(BPF_PROG_TYPE_XDP, BPF_FUNC_ringbuf_output, NULL));
	assert_int_equal(feature("sched-ext")->found, !access("/sys/kernel/sched_ext", F_OK));
	assert_int_equal(feature("btf")->found, !access("/sys/kernel/btf/vmlinux", R_OK));
}

/* What the verifier says to a program, out of the compiler, that does the thing in question. */
static void loads_where_found(const char *name)
{
	struct arn_heap *heap = arn_create(NULL);
	struct features_bpf *s = features_bpf__open();
	struct bpf_program *p;
	char prog[32], *c;
	int err;

	assert_true(heap && s);
	snprintf(prog, sizeof(prog), "%s", name);
	for (c = prog; *c; c++)
		if (*c == '-')
			*c = '_';
	bpf_object__for_each_program(p, s->obj)
		bpf_program__set_autoload(p, !strcmp(bpf_program__name(p), prog));
	rig_quiet(true);
	err = rig_load(heap, s->skeleton);
	rig_quiet(false);
	print_message("%s: %s\n", name, err ? strerror(-err) : "loads");
	assert_int_equal(feature(name)->found, !err);
	if (!err) {
		LIBBPF_OPTS(bpf_test_run_opts, opts);

		p = bpf_object__find_program_by_name(s->obj, prog);
		assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(p), &opts), 0);
	}
	features_bpf__destroy(s);
	arn_close(heap);
}

static void global_calls_with_preemption_off(void **state)
{
	loads_where_found("calls-preempt-off");
}

static void pages_in_any_context(void **state)
{
	loads_where_found("pages-any-context");
}

static void atomics_in_an_arena(void **state)
{
	loads_where_found("arena-atomics");
}

/* Where it would not load, and says so before the kernel does. */
static void the_other_build_is_refused_by_name(void **state)
{
	struct arn_heap *heap = arn_create(NULL);
	struct anycontext_bpf *s = anycontext_bpf__open();
	int err;

	assert_true(heap && s);
	err = arn_attach(heap, s->obj);
	if (feature("pages-any-context")->found) {
		assert_ok(err);
	} else {
		assert_int_equal(err, -ENOTSUP);
		assert_non_null(strstr(arn_last_error(), "ARN_PAGES_ANY_CONTEXT"));
		assert_non_null(strstr(arn_last_error(), "anycontext"));
	}
	anycontext_bpf__destroy(s);
	arn_close(heap);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_this_kernel_has),
		cmocka_unit_test(kernel_functions),
		cmocka_unit_test(types_of_maps_and_programs_and_helpers),
		cmocka_unit_test(global_calls_with_preemption_off),
		cmocka_unit_test(pages_in_any_context),
		cmocka_unit_test(atomics_in_an_arena),
		cmocka_unit_test(the_other_build_is_refused_by_name),
	};
	int rc;

	rig_start();
	btf = btf__load_vmlinux_btf();
	rc = cmocka_run_group_tests(tests, NULL, NULL) != 0;
	btf__free(btf);
	return rc;
}
