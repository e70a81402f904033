// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * sites.c - see sites.h.
 *
 * x86-64: the kernel's compiler keeps the arena's base in r12 and addresses the arena, and nothing else, as
 * register + r12 + displacement.  binutils' objdump reads the instructions; what the kernel says about lines
 * tells where each comes from.
 */
#include <bpf/btf.h>
#include "rig.h"
#include "sites.h"

struct image {
	struct bpf_prog_info info;
	unsigned char *code;
	__u64 *start; /* of each function */
	__u32 *len;
	struct bpf_func_info *func;
	struct bpf_line_info *line;
	__u64 *line_at;
	struct btf *btf;
};

static void *array(__u32 n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	assert_non_null(p);
	return p;
}

static void read_image(struct image *m, int fd)
{
	struct bpf_prog_info i = {};
	__u32 len = sizeof(i);

	assert_int_equal(bpf_prog_get_info_by_fd(fd, &i, &len), 0);
	m->code = array(i.jited_prog_len, 1);
	m->start = array(i.nr_jited_ksyms, sizeof(*m->start));
	m->len = array(i.nr_jited_func_lens, sizeof(*m->len));
	m->func = array(i.nr_func_info, sizeof(*m->func));
	m->line = array(i.nr_line_info, sizeof(*m->line));
	m->line_at = array(i.nr_jited_line_info, sizeof(*m->line_at));
	m->info = (struct bpf_prog_info){
		.jited_prog_len = i.jited_prog_len,
		.jited_prog_insns = (__u64)m->code,
		.nr_jited_ksyms = i.nr_jited_ksyms,
		.jited_ksyms = (__u64)m->start,
		.nr_jited_func_lens = i.nr_jited_func_lens,
		.jited_func_lens = (__u64)m->len,
		.nr_func_info = i.nr_func_info,
		.func_info = (__u64)m->func,
		.func_info_rec_size = sizeof(*m->func),
		.nr_line_info = i.nr_line_info,
		.line_info = (__u64)m->line,
		.line_info_rec_size = sizeof(*m->line),
		.nr_jited_line_info = i.nr_jited_line_info,
		.jited_line_info = (__u64)m->line_at,
		.jited_line_info_rec_size = sizeof(*m->line_at),
	};
	len = sizeof(m->info);
	assert_int_equal(bpf_prog_get_info_by_fd(fd, &m->info, &len), 0);
	m->btf = btf__load_from_kernel_by_id(i.btf_id);
	assert_non_null(m->btf);
	assert_int_equal(m->info.nr_func_info, m->info.nr_jited_ksyms);
	assert_int_equal(m->info.nr_line_info, m->info.nr_jited_line_info);
}

static void drop_image(struct image *m)
{
	btf__free(m->btf);
	free(m->code);
	free(m->start);
	free(m->len);
	free(m->func);
	free(m->line);
	free(m->line_at);
}

/* Where the instruction before s->ip, in function f, comes from. */
static void name_site(struct image *m, __u32 f, struct site *s)
{
	const struct btf_type *t = btf__type_by_id(m->btf, m->func[f].type_id);
	const char *file, *text;
	__u32 i, best = m->info.nr_line_info;

	snprintf(s->func, sizeof(s->func), "%s", btf__name_by_offset(m->btf, t->name_off));
	for (i = 0; i < m->info.nr_line_info; i++)
		if (m->line_at[i] >= m->start[f] && m->line_at[i] < s->ip &&
		    (best == m->info.nr_line_info || m->line_at[i] >= m->line_at[best]))
			best = i;
	if (best == m->info.nr_line_info)
		return;
	file = btf__name_by_offset(m->btf, m->line[best].file_name_off);
	text = btf__name_by_offset(m->btf, m->line[best].line_off);
	snprintf(s->file, sizeof(s->file), "%s", strrchr(file, '/') ? strrchr(file, '/') + 1 : file);
	s->line = BPF_LINE_INFO_LINE_NUM(m->line[best].line_col);
	snprintf(s->text, sizeof(s->text), "%s", text + strspn(text, " \t"));
}

/* A line of objdump: does the instruction write to the arena?  *at: its address. */
static bool is_store(const char *line, __u64 *at)
{
	char *end;
	size_t n = strcspn(line, "\n");

	*at = strtoull(line, &end, 16);
	if (end == line || *end != ':')
		return false;
	while (n && (line[n - 1] == ' ' || line[n - 1] == '\t'))
		n--;
	/* The destination comes last. */
	return n > 8 && !strncmp(line + n - 8, ",%r12,1)", 8) && !strstr(line, "\tcmp") && !strstr(line, "\ttest");
}

static void add(struct image *m, __u32 f, __u64 ip, struct site **s, unsigned int *n)
{
	*s = realloc(*s, (*n + 1) * sizeof(**s));
	assert_non_null(*s);
	memset(*s + *n, 0, sizeof(**s));
	(*s)[*n].ip = ip;
	name_site(m, f, *s + *n);
	++*n;
}

/* Of one function, whose code lies at at. */
static int look_at(struct image *m, __u32 f, const unsigned char *at, struct site **s, unsigned int *n)
{
	char path[] = "/tmp/arenite-code-XXXXXX", cmd[200], line[400];
	int fd = mkstemp(path), any = 0;
	bool store = false;
	__u64 ip;
	FILE *out;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, at, m->len[f]), m->len[f]);
	close(fd);
	snprintf(cmd, sizeof(cmd),
		 "objdump -D -w -b binary -m i386:x86-64 --no-show-raw-insn --adjust-vma=0x%llx %s 2>/dev/null",
		 m->start[f], path);
	out = popen(cmd, "r");
	while (out && fgets(line, sizeof(line), out)) {
		bool now = is_store(line, &ip);

		if (!ip)
			continue;
		any = 1;
		if (store)
			add(m, f, ip, s, n);
		store = now;
	}
	if (out)
		pclose(out);
	unlink(path);
	return any ? 0 : -1;
}

struct site *sites_of(int prog_fd, unsigned int *n, const char **why)
{
	struct image m = {};
	struct site *s = NULL;
	__u32 f, at = 0;

	*n = 0;
	*why = NULL;
#ifndef __x86_64__
	*why = "stores are found in x86-64 code only";
	return NULL;
#endif
	read_image(&m, prog_fd);
	for (f = 0; f < m.info.nr_jited_ksyms && !*why; f++) {
		if (look_at(&m, f, m.code + at, &s, n))
			*why = "objdump is missing (package binutils)";
		at += m.len[f];
	}
	if (!*why && !*n)
		*why = "the kernel's compiler makes code in which no store to the arena is known";
	drop_image(&m);
	if (*why) {
		free(s);
		return NULL;
	}
	return s;
}
