// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * verifier.c [--update] - what the library costs a user's program: instructions that the verifier
 * processes, frames, and bytes of stack below the caller.
 *
 * Instructions differ from kernel to kernel, so they are compared with verifier.golden by release;
 * --update writes this kernel's figures there.  Calls come from the loaded program, stack depths
 * from the verifier's own words (in the order of its functions), so inlining is seen as it is.
 */
#include <bpf/btf.h>
#include <sys/utsname.h>
#include "rig.h"
#include "verifier.skel.h"

#define MOST_INSNS  60000
#define MOST_FRAMES 3
#define MOST_STACK  160
#define MAX_FUNCS   128
#define GOLDEN	    TEST_SRC "/verifier.golden"

struct func {
	char name[64];
	unsigned int start; /* first instruction */
	int stack; /* as counted against the limit of 512: in whole 16 bytes */
};

struct loaded {
	unsigned int insns;
	int n;
	struct func func[MAX_FUNCS];
	bool calls[MAX_FUNCS][MAX_FUNCS];
};

static bool update;
static char release[32];
static char verifier_log[1 << 16];

static void read_stacks(struct loaded *l)
{
	char *at = strstr(verifier_log, "stack depth ");
	int i;

	assert_non_null(at);
	at += strlen("stack depth ");
	for (i = 0; i < l->n; i++) {
		l->func[i].stack = ((int)strtol(at, &at, 10) + 15) / 16 * 16;
		assert_true(*at == (i + 1 < l->n ? '+' : '\n'));
		at++;
	}
}

static void read_calls(struct loaded *l, int fd)
{
	struct bpf_prog_info info = {};
	struct bpf_func_info *fi;
	struct bpf_insn *insn;
	__u32 len = sizeof(info), btf_id, bytes, recs, i;
	struct btf *btf;
	int f = 0, k;

	assert_int_equal(bpf_prog_get_info_by_fd(fd, &info, &len), 0);
	l->insns = info.verified_insns;
	btf_id = info.btf_id;
	bytes = info.xlated_prog_len;
	recs = info.nr_func_info;
	assert_in_range(recs, 1, MAX_FUNCS);
	assert_int_equal(info.func_info_rec_size, sizeof(*fi));
	fi = calloc(recs, sizeof(*fi));
	insn = malloc(bytes);
	memset(&info, 0, sizeof(info));
	info.nr_func_info = recs;
	info.func_info_rec_size = sizeof(*fi);
	info.func_info = (__u64)fi;
	info.xlated_prog_len = bytes;
	info.xlated_prog_insns = (__u64)insn;
	len = sizeof(info);
	assert_int_equal(bpf_prog_get_info_by_fd(fd, &info, &len), 0);
	assert_int_equal(info.xlated_prog_len, bytes);

	btf = btf__load_from_kernel_by_id(btf_id);
	assert_non_null(btf);
	l->n = (int)recs;
	for (i = 0; i < recs; i++) {
		const struct btf_type *type = btf__type_by_id(btf, fi[i].type_id);

		snprintf(l->func[i].name, sizeof(l->func[i].name), "%s", btf__name_by_offset(btf, type->name_off));
		l->func[i].start = fi[i].insn_off;
	}
	for (i = 0; i < bytes / sizeof(*insn); i++) {
		while (f + 1 < l->n && l->func[f + 1].start <= i)
			f++;
		if (insn[i].code != (BPF_JMP | BPF_CALL) || insn[i].src_reg != BPF_PSEUDO_CALL)
			continue;
		for (k = 0; k < l->n; k++)
			if (l->func[k].start == i + 1 + insn[i].off)
				break;
		assert_true(k < l->n);
		l->calls[f][k] = true;
	}
	btf__free(btf);
	free(fi);
	free(insn);
}

static struct loaded *load(const char *name)
{
	struct arn_heap *heap = arn_create(NULL);
	struct verifier_bpf *v = verifier_bpf__open();
	struct bpf_program *p, *it;
	struct loaded *l = calloc(1, sizeof(*l));

	assert_true(heap && v && l);
	bpf_object__for_each_program(it, v->obj)
		bpf_program__set_autoload(it, false);
	p = bpf_object__find_program_by_name(v->obj, name);
	bpf_program__set_autoload(p, true);
	bpf_program__set_log_level(p, 4);
	bpf_program__set_log_buf(p, verifier_log, sizeof(verifier_log));
	assert_int_equal(rig_load(heap, v->skeleton), 0);
	read_calls(l, bpf_program__fd(p));
	read_stacks(l);
	verifier_bpf__destroy(v);
	arn_close(heap);
	return l;
}

/* ---- Instructions ---- */

static void every_function_once_within_the_budget(void **state)
{
	struct loaded *l = load("ver_all");

	print_message("%u instructions processed, at most %u\n", l->insns, MOST_INSNS);
	assert_in_range(l->insns, 1, MOST_INSNS);
	free(l);
}

/* The golden figure of a function on this kernel, 0: there is none. */
static unsigned int golden(const char *what)
{
	char line[128], rel[32], name[32];
	unsigned int insns, found = 0;
	FILE *f = fopen(GOLDEN, "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%31s %31s %u", rel, name, &insns) == 3 && !strcmp(rel, release) &&
		    !strcmp(name, what))
			found = insns;
	if (f)
		fclose(f);
	return found;
}

/* Replaces a line of the file, or adds it. */
static void write_golden(const char *what, unsigned int insns)
{
	char line[128], rel[32], name[32], *text = NULL;
	FILE *f = fopen(GOLDEN, "r"), *mem;
	size_t size;

	mem = open_memstream(&text, &size);
	assert_non_null(mem);
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%31s %31s", rel, name) != 2 || strcmp(rel, release) || strcmp(name, what))
			fputs(line, mem);
	fprintf(mem, "%s %s %u\n", release, what, insns);
	fclose(mem);
	if (f)
		fclose(f);
	f = fopen(GOLDEN, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	free(text);
}

static void against_golden(const char *prog, const char *what)
{
	struct loaded *l = load(prog);
	unsigned int want = golden(what);

	if (update)
		write_golden(what, l->insns);
	else if (want)
		print_message("%s: %u instructions, golden %u\n", what, l->insns, want);
	if (!update && !want) {
		print_message("skipped: verifier.golden has no figure for kernel %s (%s: %u)\n", release, what,
			      l->insns);
		free(l);
		skip();
	}
	if (want && !update && l->insns > want + want / 10)
		fail_msg(
			"%s: %u instructions processed, %u before: more than a tenth worse; verifier --update if it must be",
			what, l->insns, want);
	free(l);
}

static void malloc_costs_what_it_did(void **state)
{
	against_golden("ver_malloc", "arn_malloc");
}

static void free_costs_what_it_did(void **state)
{
	against_golden("ver_free", "arn_free");
}

static void a_ring_costs_what_it_did(void **state)
{
	against_golden("ver_ring", "arn_ring");
}

/* ---- Stack ---- */

struct chain {
	int frames, stack;
	char text[512];
};

/* Deepest chains that begin with function f, in frames and in bytes. */
static void deepest(struct loaded *l, int f, int depth, struct chain *frames, struct chain *bytes)
{
	struct chain most_f = {}, most_b = {}, cf, cb;
	int k;

	assert_true(depth < 16);
	for (k = 0; k < l->n; k++) {
		if (!l->calls[f][k])
			continue;
		deepest(l, k, depth + 1, &cf, &cb);
		if (cf.frames > most_f.frames)
			most_f = cf;
		if (cb.stack > most_b.stack)
			most_b = cb;
	}
	*frames = most_f;
	frames->frames++;
	snprintf(frames->text, sizeof(frames->text), "%.63s%s%.400s", l->func[f].name, most_f.frames ? " > " : "",
		 most_f.text);
	*bytes = most_b;
	bytes->stack += l->func[f].stack;
	snprintf(bytes->text, sizeof(bytes->text), "%.63s (%d)%s%.400s", l->func[f].name, l->func[f].stack,
		 most_b.stack ? " > " : "", most_b.text);
}

static void at_most_3_frames(void **state)
{
	struct loaded *l = load("ver_all");
	struct chain f, b;
	int k;

	for (k = 1; k < l->n; k++) {
		if (!l->calls[0][k])
			continue;
		deepest(l, k, 0, &f, &b);
		if (f.frames > MOST_FRAMES)
			fail_msg("%d frames: %s", f.frames, f.text);
	}
	free(l);
}

static void at_most_160_bytes_of_the_callers_stack(void **state)
{
	struct loaded *l = load("ver_all");
	struct chain f, b;
	int k, worst = 0;

	for (k = 1; k < l->n; k++) {
		if (!l->calls[0][k])
			continue;
		deepest(l, k, 0, &f, &b);
		print_message("%3d bytes: %s\n", b.stack, b.text);
		worst = b.stack > worst ? b.stack : worst;
	}
	assert_in_range(worst, 1, MOST_STACK);
	free(l);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_function_once_within_the_budget),
		cmocka_unit_test(malloc_costs_what_it_did),
		cmocka_unit_test(free_costs_what_it_did),
		cmocka_unit_test(a_ring_costs_what_it_did),
		cmocka_unit_test(at_most_3_frames),
		cmocka_unit_test(at_most_160_bytes_of_the_callers_stack),
	};
	struct utsname u;
	int major, minor;

	update = argc > 1 && !strcmp(argv[1], "--update");
	rig_start();
	uname(&u);
	if (sscanf(u.release, "%d.%d", &major, &minor) == 2)
		snprintf(release, sizeof(release), "%d.%d", major, minor);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
