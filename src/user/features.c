/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * features.c - what the running kernel offers, asked of the kernel, not of its version.
 *
 * The table is one a process, made on first need: names from the kernel's BTF, in one pass, and what BTF does
 * not tell by tiny maps and programs that the kernel takes or refuses.  What could not be asked for want of
 * rights is asked again the next time.
 *
 * There is no lock (a child forked meanwhile would find it taken): each thread that finds no table makes one,
 * the first to publish it wins, and what is published never changes.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "internal.h"
#include "feature.h"

#define BTF_FILE "/sys/kernel/btf/vmlinux"

#define X(name, kind, what, older, since, needed, without)                                                             \
	{ name, kind, what, older, since, without, NULL, needed, -EAGAIN },
static const struct arn_feature rows[] = { ARN_FEATURES(X) };
#undef X
#define ROWS (sizeof(rows) / sizeof(*rows))

struct features {
	struct arn_feature row[ROWS];
	__u32 pages, preempt_off, preempt_on; /* BTF's numbers of kfuncs that the probes call; 0: not there */
	bool all; /* every question had an answer */
	struct features *before; /* one without; somebody may still read it */
};

static __u64 current; /* struct features * */

static struct arn_feature *row(struct features *t, const char *name)
{
	unsigned int i;

	for (i = 0; i < ROWS; i++)
		if (!strcmp(t->row[i].name, name))
			return &t->row[i];
	return NULL;
}

/* ---- Names ---- */

/* The kernel has something of a kind under this name. */
static void met(struct features *t, const char *kind, const char *name)
{
	struct arn_feature *f;

	for (f = t->row; f < t->row + ROWS; f++) {
		if (strcmp(f->kind, kind))
			continue;
		if (!strcmp(f->what, name))
			f->as = f->what;
		else if (*name && !strcmp(f->older, name) && !f->as)
			f->as = f->older;
		f->found = f->as != NULL;
	}
}

static void met_function(struct features *t, __u32 id, const char *name)
{
	if (strncmp(name, "bpf_", 4))
		return;
	met(t, "kfunc", name);
	if (!strcmp(name, "bpf_arena_alloc_pages"))
		t->pages = id;
	else if (!strcmp(name, "bpf_preempt_disable"))
		t->preempt_off = id;
	else if (!strcmp(name, "bpf_preempt_enable"))
		t->preempt_on = id;
}

static void met_enumerators(struct features *t, const struct btf *btf, const struct btf_type *type)
{
	const struct btf_enum *e = btf_enum(type);
	const char *name;
	__u32 i;

	for (i = 0; i < btf_vlen(type); i++, e++) {
		name = btf__name_by_offset(btf, e->name_off);
		if (!strncmp(name, "BPF_FUNC_", 9))
			met(t, "helper", name);
		else if (!strncmp(name, "BPF_PROG_TYPE_", 14))
			met(t, "program type", name);
	}
}

static void read_names(struct features *t)
{
	struct btf *btf = btf__parse(BTF_FILE, NULL);
	__u32 id, end = btf ? btf__type_cnt(btf) : 0;
	const struct btf_type *type;
	unsigned int i;

	for (i = 0; i < ROWS; i++)
		t->row[i].found = 0;
	row(t, "btf")->found = btf != NULL;
	for (id = 1; id < end; id++) {
		type = btf__type_by_id(btf, id);
		if (btf_is_func(type))
			met_function(t, id, btf__name_by_offset(btf, type->name_off));
		else if (btf_is_enum(type))
			met_enumerators(t, btf, type);
		else if (btf_is_struct(type))
			met(t, "struct_ops", btf__name_by_offset(btf, type->name_off));
	}
	btf__free(btf);
}

/* ---- Probes: 1, 0, or -errno: it could not be asked ---- */

static int verdict(int fd)
{
	if (fd >= 0)
		return 1;
	return errno == EPERM || errno == ENOSYS || errno == ENOMEM ? -errno : 0;
}

/* With an address, without which no program may use it. */
static int arena(__u32 flags)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = flags, .map_extra = ARN_ADDR_FIRST);

	return bpf_map_create(BPF_MAP_TYPE_ARENA, "arn_probe", 0, 0, 1, &opts);
}

#define INSN(c, d, s, o, i) ((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define SET(reg, value)	    INSN(BPF_ALU64 | BPF_MOV | BPF_K, reg, 0, 0, value)
#define KFUNC(id)	    INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, (int)(id))
#define EXIT		    INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Names the arena, which two instructions do. */
#define ARENA(fd) INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, fd), INSN(0, 0, 0, 0, 0)
/* What is in reg becomes a pointer into the arena. */
#define ARENA_POINTER(reg) INSN(BPF_ALU64 | BPF_MOV | BPF_X, reg, reg, 1 /* BPF_ADDR_SPACE_CAST */, 1)

static int load(const struct bpf_insn *insns, size_t n, struct bpf_prog_load_opts *opts)
{
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "arn_probe", "Dual BSD/GPL", insns, n, opts);
	int found = verdict(fd);

	if (fd >= 0)
		close(fd);
	return found;
}
#define LOAD(insns, opts) load(insns, sizeof(insns) / sizeof(*(insns)), opts)

static int atomics(int fd)
{
	struct bpf_insn insns[] = {
		ARENA(fd),
		SET(2, 64),
		ARENA_POINTER(2),
		SET(3, 0),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 2, 3, 0, BPF_XCHG),
		SET(0, 0),
		EXIT,
	};

	return LOAD(insns, NULL);
}

/* A raw tracepoint's program may not sleep. */
static int pages_any_context(const struct features *t, int fd)
{
	struct bpf_insn insns[] = {
		ARENA(fd), SET(2, 0), SET(3, 1), SET(4, -1), SET(5, 0), KFUNC(t->pages), SET(0, 0), EXIT,
	};

	return t->pages ? LOAD(insns, NULL) : 0;
}

/* Two functions, of which the second is global: only BTF can say so. */
static struct btf *two_functions(struct bpf_func_info info[2])
{
	struct btf *btf = btf__new_empty();
	int type, proto;

	if (!btf)
		return NULL;
	type = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	proto = btf__add_func_proto(btf, type);
	info[0].type_id = (__u32)btf__add_func(btf, "probe", BTF_FUNC_STATIC, proto);
	info[1].type_id = (__u32)btf__add_func(btf, "callee", BTF_FUNC_GLOBAL, proto);
	if (btf__load_into_kernel(btf)) {
		btf__free(btf);
		return NULL;
	}
	return btf;
}

static int calls_preempt_off(const struct features *t)
{
	struct bpf_insn insns[] = {
		KFUNC(t->preempt_off),
		INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 3),
		KFUNC(t->preempt_on),
		SET(0, 0),
		EXIT,
		SET(0, 0),
		EXIT,
	};
	struct bpf_func_info info[2] = { { .insn_off = 0 }, { .insn_off = 5 } };
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .func_info = info, .func_info_cnt = 2,
		    .func_info_rec_size = sizeof(*info));
	struct btf *btf;
	int found;

	if (!t->preempt_off || !t->preempt_on)
		return 0;
	btf = two_functions(info);
	if (!btf)
		return verdict(-1);
	opts.prog_btf_fd = (__u32)btf__fd(btf);
	found = LOAD(insns, &opts);
	btf__free(btf);
	return found;
}

static void ask(struct features *t)
{
	int fd = arena(ARN_MAP_FLAGS), flag = verdict(fd), any, atomic, pages, calls;

	if (fd < 0 && !flag)
		fd = arena(ARN_MAP_FLAGS & ~BPF_F_SEGV_ON_FAULT);
	any = verdict(fd);
	atomic = any > 0 ? atomics(fd) : any;
	pages = any > 0 ? pages_any_context(t, fd) : any;
	calls = any < 0 ? any : calls_preempt_off(t);
	if (fd >= 0)
		close(fd);
	row(t, "arena")->found = any;
	row(t, "segv-on-fault")->found = flag;
	row(t, "arena-atomics")->found = atomic;
	row(t, "pages-any-context")->found = pages;
	row(t, "calls-preempt-off")->found = calls;
	t->all = any >= 0 && flag >= 0 && atomic >= 0 && pages >= 0 && calls >= 0;
}

/* The table, as complete as can be had now.  NULL: no memory for it. */
static struct features *features(void)
{
	struct features *t = (struct features *)(unsigned long)arn_cas64_full(&current, 0, 0), *new;
	__u64 was;

	if (t && t->all)
		return t;
	new = malloc(sizeof(*new));
	if (!new)
		return t;
	if (t) {
		*new = *t;
	} else {
		memset(new, 0, sizeof(*new));
		memcpy(new->row, rows, sizeof(rows));
		read_names(new);
	}
	ask(new);
	if (t && !new->all) {
		free(new);
		return t;
	}
	new->before = t;
	was = arn_cas64_full(&current, (__u64)(unsigned long)t, (__u64)(unsigned long)new);
	if (was == (__u64)(unsigned long)t)
		return new;
	free(new);
	return (struct features *)(unsigned long)was;
}

/* ---- Public calls ---- */

const struct arn_feature *arn_feature(unsigned int i)
{
	struct features *t = i < ROWS ? features() : NULL;

	return t ? &t->row[i] : NULL;
}

int arn_has(const char *name)
{
	struct features *t;
	unsigned int i;
	int found;

	for (i = 0; i < ROWS && strcmp(rows[i].name, name); i++)
		;
	if (i == ROWS)
		return arn_error(ENOENT, "feature '%s': not known to this version: 'arenite features' lists them",
				 name);
	t = features();
	found = t ? t->row[i].found : -ENOMEM;
	return found >= 0
		       ? found
		       : arn_error(-found, "feature '%s': cannot be told here: needs root, or CAP_BPF and CAP_PERFMON",
				   name);
}

/* Why shared heaps lack a line of the table. */
static int lacks(const struct arn_feature *f)
{
	struct utsname u;

	if (f->found == -ENOSYS)
		return arn_error(ENOTSUP, "BPF arenas: this kernel or sandbox has no bpf()");
	if (f->found == -ENOMEM)
		return arn_error(ENOMEM, "BPF arenas: no memory to ask the kernel what it has");
	if (f->found < 0)
		return arn_error(
			EPERM,
			"BPF arenas: not permitted here: needs root, or CAP_BPF and CAP_PERFMON, outside of a container without them");
	uname(&u);
	return arn_error(
		ENOTSUP,
		"BPF arenas: kernel %s lacks '%s' (%s %s, Linux %s): heaps need 6.12 or later, with BPF, its JIT and BTF",
		u.release, f->name, f->kind, f->what, f->since);
}

int arn_supported(void)
{
	struct features *t = features();
	unsigned int i;

	if (!t)
		return arn_error(ENOMEM, "BPF arenas: no memory to ask the kernel what it has");
	for (i = 0; i < ROWS; i++)
		if (t->row[i].needed && t->row[i].found <= 0)
			return lacks(&t->row[i]);
	return 0;
}
