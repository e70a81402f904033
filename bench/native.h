/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * native.h - the implementations that run in user space, one worker executable each.
 */
#ifndef BENCH_NATIVE_H
#define BENCH_NATIVE_H

#include "runner.h"

struct bench_native;

/*
 * Starts the workers that were built and adds their rows to the set; what is missing becomes a note.
 * 0, or -errno after bench_fail().
 */
int bench_native_open(const struct bench_options *o, struct bench_set *set, struct bench_native **out);

/* Version and file of the library behind the row of that name, or NULL. */
const char *bench_native_library(const struct bench_native *b, const char *name);

/* Are their heaps still consistent?  0, or -EUCLEAN after bench_fail(). */
int bench_native_check(struct bench_native *b);

void bench_native_close(struct bench_native *b);

#endif
