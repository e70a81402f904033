// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * verifier.c - what the library costs a user's program: instructions that the verifier processes, frames,
 * and bytes of stack below the caller.
 *
 * verifier                     judges them; also writes the figures to the file $VERIFIER_FIGURES, if that is
 *                              set: a line "RELEASE PROGRAM INSTRUCTIONS MICROSECONDS" each
 * verifier --update            puts this kernel's figures into verifier.golden
 * verifier --merge             puts those of other kernels there, from standard input
 *
 * Instructions differ from kernel to kernel, so they are compared with verifier.golden by release.  Times
 * are the machine's and are not judged.  Calls come from the loaded program, stack depths from the
 * verifier's own words (in the order of its functions), so inlining is seen as it is.
 */
#include <bpf/btf.h>
#include <sys/utsname.h>
#include "rig.h"
#include "golden.h"
#include "verifier.skel.h"
#include "verifier_any.skel.h"

#define MOST_INSNS  60000 /* of the million that a program may take */
#define MOST_OLD    100000 /* before 6.18.44: those see fewer states as equal */
#define MOST_FRAMES 3
#define MOST_STACK  160
#define MOST_ANY    176 /* the same of objects built with ARN_PAGES_ANY_CONTEXT */
#define MAX_FUNCS   128
#define MAX_PROGS   256
#define LOG_BYTES   (1 << 14)
#define GOLDEN	    TEST_SRC "/verifier.golden"

struct func {
	char name[64];
	unsigned int start; /* first instruction */
	int stack; /* as counted against the limit of 512: in whole 16 bytes */
};

struct loaded {
	int n;
	struct func func[MAX_FUNCS];
	bool calls[MAX_FUNCS][MAX_FUNCS];
};

/* A program, by the name of the function that it calls; in an object built with ARN_PAGES_ANY_CONTEXT "any:NAME". */
struct figure {
	char name[64];
	struct bpf_program *prog;
	char *log;
	unsigned int insns;
	long long usec;
};

static struct figure figures[MAX_PROGS];
static int nfigures;
static char release[32];
static bool old_verifier;
static struct arn_heap *heap;
static struct verifier_bpf *ver;
static struct verifier_any_bpf *any; /* the same, built with ARN_PAGES_ANY_CONTEXT; loaded where the kernel can */
static bool any_loaded;
static struct bpf_object *sys;

/* "stack depth 48+16+0" before 7.3, then "subprog 1 (arn__malloc) global insns_self 71 ... stack 16" lines. */
static void read_stacks(struct loaded *l, const char *log)
{
	const char *at = strstr(log, "stack depth ");
	char *end;
	int i;

	assert_non_null(at);
	at += strlen("stack depth ");
	for (i = 0; i < l->n; i++) {
		if (strstr(log, "\nsubprog 0 ")) {
			char key[32];

			snprintf(key, sizeof(key), "\nsubprog %d ", i);
			at = strstr(log, key);
			assert_non_null(at);
			at = strstr(at, " stack ");
			assert_non_null(at);
			l->func[i].stack = (int)strtol(at + strlen(" stack "), &end, 10);
			assert_true(*end == '\n');
		} else {
			l->func[i].stack = (int)strtol(at, &end, 10);
			assert_true(*end == (i + 1 < l->n ? '+' : '\n'));
			at = end + 1;
		}
		l->func[i].stack = (l->func[i].stack + 15) / 16 * 16;
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

static struct loaded *read_all(const char *name)
{
	struct loaded *l = calloc(1, sizeof(*l));
	int i;

	assert_non_null(l);
	for (i = 0; i < nfigures; i++)
		if (!strcmp(figures[i].name, name))
			break;
	assert_true(i < nfigures);
	read_calls(l, bpf_program__fd(figures[i].prog));
	read_stacks(l, figures[i].log);
	return l;
}

/* ---- Loading ---- */

static const char *name_of(const struct bpf_program *p)
{
	const char *name = bpf_program__name(p);

	return name + (strncmp(name, "ver_", 4) ? 0 : 4);
}

static void to_be_measured(struct bpf_object *obj, const char *prefix)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, obj) {
		struct figure *f = &figures[nfigures++];

		assert_true(nfigures <= MAX_PROGS);
		snprintf(f->name, sizeof(f->name), "%s%s", prefix, name_of(p));
		f->prog = p;
		f->log = calloc(1, LOG_BYTES);
		assert_non_null(f->log);
		bpf_program__set_log_level(p, 4);
		bpf_program__set_log_buf(p, f->log, LOG_BYTES);
	}
}

static int setup(void **state)
{
	struct bpf_prog_info info;
	const char *at;
	__u32 len;
	int i;

	heap = arn_create(NULL);
	ver = verifier_bpf__open();
	sys = bpf_object__open_file(TEST_DIR "/../sys.bpf.o", NULL);
	any = verifier_any_bpf__open();
	any_loaded = arn_has("pages-any-context");
	if (!heap)
		fail_msg("%s", arn_last_error());
	assert_true(ver && sys && any);
	to_be_measured(ver->obj, "");
	to_be_measured(sys, "");
	assert_int_equal(rig_load(heap, ver->skeleton), 0);
	assert_ok(arn_attach(heap, sys));
	assert_int_equal(bpf_object__load(sys), 0);
	if (any_loaded) {
		to_be_measured(any->obj, "any:");
		assert_int_equal(rig_load(heap, any->skeleton), 0);
	}
	for (i = 0; i < nfigures; i++) {
		memset(&info, 0, sizeof(info));
		len = sizeof(info);
		assert_int_equal(bpf_prog_get_info_by_fd(bpf_program__fd(figures[i].prog), &info, &len), 0);
		figures[i].insns = info.verified_insns;
		at = strstr(figures[i].log, "verification time ");
		figures[i].usec = at ? atoll(at + strlen("verification time ")) : 0;
	}
	return 0;
}

static int teardown(void **state)
{
	bpf_object__close(sys);
	verifier_any_bpf__destroy(any);
	verifier_bpf__destroy(ver);
	arn_close(heap);
	while (nfigures)
		free(figures[--nfigures].log);
	return 0;
}

/* ---- Instructions ---- */

static struct golden *golden;

static bool has_program(const struct bpf_object *obj, const char *name)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, obj)
		if (!strcmp(name_of(p), name))
			return true;
	return false;
}

static void every_function_is_measured(void **state)
{
	const struct bpf_object *objs[] = { ver->obj, any->obj };
	const struct btf_type *type;
	const struct btf *btf;
	const char *name;
	__u32 id;
	int i;

	for (i = 0; i < 2; i++) {
		btf = bpf_object__btf(objs[i]);
		for (id = 1; id < btf__type_cnt(btf); id++) {
			type = btf__type_by_id(btf, id);
			name = btf__name_by_offset(btf, type->name_off);
			if (!btf_is_func(type) || btf_vlen(type) != BTF_FUNC_GLOBAL || strncmp(name, "arn_", 4))
				continue;
			if (!has_program(ver->obj, name) && !has_program(objs[i], name))
				fail_msg("%s has no program in verifier.bpf.c: add VER(%s, ...)", name, name);
		}
	}
}

static void every_call_once_within_the_budget(void **state)
{
	unsigned int most = old_verifier ? MOST_OLD : MOST_INSNS;
	int i;

	for (i = 0; i < nfigures; i++) {
		if (strcmp(figures[i].name, "all") && strcmp(figures[i].name, "any:all"))
			continue;
		print_message("%s: %u instructions processed, at most %u\n", figures[i].name, figures[i].insns, most);
		assert_in_range(figures[i].insns, 1, most);
	}
}

static void no_program_costs_a_tenth_more_than_it_did(void **state)
{
	unsigned int want, worse = 0, known = 0;
	int i;

	for (i = 0; i < nfigures; i++) {
		want = golden_get(golden, release, figures[i].name);
		known += want != 0;
		print_message("%-28s %6u instructions, golden %6u; %lld us\n", figures[i].name, figures[i].insns, want,
			      figures[i].usec);
		worse += want && figures[i].insns > want + (want > 100 ? want / 10 : 10);
	}
	if (known < (unsigned int)nfigures)
		print_message("skipped: verifier.golden has no figures of kernel %s for %u of %d programs\n", release,
			      nfigures - known, nfigures);
	if (worse)
		fail_msg("%u of these take over a tenth more than on record: verifier --update if it must be", worse);
	if (!known)
		skip();
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

static void frames_of(const char *name)
{
	struct loaded *l = read_all(name);
	struct chain f, b;
	int k;

	for (k = 1; k < l->n; k++) {
		if (!l->calls[0][k])
			continue;
		deepest(l, k, 0, &f, &b);
		if (f.frames > MOST_FRAMES)
			fail_msg("%s: %d frames: %s", name, f.frames, f.text);
	}
	free(l);
}

static void at_most_3_frames(void **state)
{
	frames_of("all");
	if (any_loaded)
		frames_of("any:all");
}

static void stack_of(const char *name)
{
	struct loaded *l = read_all(name);
	struct chain f, b;
	int k, worst = 0;

	for (k = 1; k < l->n; k++) {
		if (!l->calls[0][k])
			continue;
		deepest(l, k, 0, &f, &b);
		print_message("%s: %3d bytes: %s\n", name, b.stack, b.text);
		worst = b.stack > worst ? b.stack : worst;
	}
	assert_in_range(worst, 1, strncmp(name, "any:", 4) ? MOST_STACK : MOST_ANY);
	free(l);
}

static void at_most_160_bytes_of_the_callers_stack(void **state)
{
	stack_of("all");
	if (any_loaded)
		stack_of("any:all");
}

/* What --update and --merge take in. */
static int figures_out(void **state)
{
	const char *path = getenv("VERIFIER_FIGURES");
	FILE *out = path ? fopen(path, "w") : NULL;
	int i, err = setup(state);

	if (path && !out)
		fail_msg("%s: %s", path, strerror(errno));
	for (i = 0; out && i < nfigures; i++)
		fprintf(out, "%s %s %u %lld\n", release, figures[i].name, figures[i].insns, figures[i].usec);
	if (out)
		fclose(out);
	return err;
}

static void into_golden(void **state)
{
	int i;

	golden_clear(golden, release);
	for (i = 0; i < nfigures; i++)
		golden_set(golden, release, figures[i].name, figures[i].insns);
	assert_int_equal(golden_write(golden, GOLDEN), 0);
}

/* Figures of other kernels, as above, on standard input. */
static int merge(void)
{
	char line[256], rel[32], name[64], last[32] = "";
	unsigned int insns, n = 0;

	while (fgets(line, sizeof(line), stdin))
		if (sscanf(line, "%31s %63s %u", rel, name, &insns) == 3) {
			if (strcmp(rel, last))
				golden_clear(golden, rel);
			snprintf(last, sizeof(last), "%s", rel);
			golden_set(golden, rel, name, insns);
			n++;
		}
	if (!n || golden_write(golden, GOLDEN)) {
		fprintf(stderr, "verifier: %s: %s\n", GOLDEN, n ? strerror(errno) : "standard input has no figures");
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_function_is_measured),
		cmocka_unit_test(every_call_once_within_the_budget),
		cmocka_unit_test(no_program_costs_a_tenth_more_than_it_did),
		cmocka_unit_test(at_most_3_frames),
		cmocka_unit_test(at_most_160_bytes_of_the_callers_stack),
	}, update[] = {
		cmocka_unit_test(into_golden),
	};
	struct utsname u;
	int major = 0, minor = 0, patch = 0;

	golden = golden_read(GOLDEN);
	if (argc > 1 && !strcmp(argv[1], "--merge"))
		return merge();
	rig_start();
	uname(&u);
	if (sscanf(u.release, "%d.%d.%d", &major, &minor, &patch) >= 2)
		snprintf(release, sizeof(release), "%d.%d.%d", major, minor, patch);
	old_verifier = major < 6 || (major == 6 && (minor < 18 || (minor == 18 && patch < 44)));
	if (argc > 1 && !strcmp(argv[1], "--update"))
		return cmocka_run_group_tests(update, setup, teardown) != 0;
	return cmocka_run_group_tests(tests, figures_out, teardown) != 0;
}
