// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * feature_test.c - the table of what the kernel has: complete, the same for all who come at once.
 *
 * Whether its answers are right is asked in tests/bpf; here any answer will do, also that it could not be asked.
 */
#include <pthread.h>
#include "unit.h"

#define THREADS 4
#define ROWS	64

static void every_line_is_complete_and_alone(void **state)
{
	const struct arn_feature *f, *g;
	unsigned int i, k;

	for (i = 0; (f = arn_feature(i)); i++) {
		assert_true(i < ROWS);
		assert_true(*f->name && *f->kind && *f->what && *f->since && *f->without && f->older);
		assert_in_range(f->found + 200, 0, 201);
		assert_true(f->found != -EAGAIN);
		assert_true(!f->as || f->as == f->what || f->as == f->older);
		assert_true(!f->as || f->found == 1);
		for (k = 0; k < i; k++) {
			g = arn_feature(k);
			assert_string_not_equal(f->name, g->name);
		}
	}
	assert_true(i > 5);
	assert_null(arn_feature(i));
	assert_null(arn_feature(~0u));
}

static void found_by_name(void **state)
{
	const struct arn_feature *f;
	unsigned int i;

	for (i = 0; (f = arn_feature(i)); i++)
		assert_int_equal(arn_has(f->name), f->found);
	assert_int_equal(arn_has("no-such-feature"), -ENOENT);
	assert_non_null(strstr(arn_last_error(), "no-such-feature"));
	assert_int_equal(arn_has(""), -ENOENT);
}

/* What heaps need decides, and the message names what is missing. */
static void supported_is_what_is_needed(void **state)
{
	const struct arn_feature *f, *lacks = NULL;
	unsigned int i;
	int err = arn_supported();

	for (i = 0; (f = arn_feature(i)); i++)
		if (!lacks && f->needed && f->found <= 0)
			lacks = f;
	assert_int_equal(err != 0, lacks != NULL);
	if (lacks && !lacks->found) {
		assert_int_equal(err, -ENOTSUP);
		assert_non_null(strstr(arn_last_error(), lacks->name));
	}
}

static void *read_all(void *out)
{
	int *found = out, i;

	for (i = 0; arn_feature((unsigned int)i); i++)
		found[i] = arn_feature((unsigned int)i)->found;
	return NULL;
}

/* First in this process: nobody has asked before. */
static void many_at_once_agree(void **state)
{
	static int found[THREADS][ROWS];
	pthread_t thread[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read_all, found[i]), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	for (i = 1; i < THREADS; i++)
		assert_memory_equal(found[i], found[0], sizeof(found[0]));
}

unit_main(t(many_at_once_agree), t(every_line_is_complete_and_alone), t(found_by_name), t(supported_is_what_is_needed))
