/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * crew.h - worker threads of a benchmark: made once, started together, stopped by a flag.
 *
 * The threads live as long as the crew, so per-thread caches of what they measure stay warm and no
 * cell pays for a thread's birth.  One caller at a time.
 */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include <stdatomic.h>
#include <stdbool.h>

struct crew;

/* Works until *stop, or an error of its own.  Must look at *stop at least every few milliseconds. */
typedef int (*crew_fn)(void *arg, unsigned int producer, const atomic_bool *stop);

/* NULL: no memory or no threads (errno). */
struct crew *crew_new(unsigned int max);

/*
 * Runs fn on the first producers threads for so many seconds, pinned to the producer-th CPU of this
 * process's set if pin is set.  0, or the first error: fn's, or -errno.
 */
int crew_run(struct crew *c, unsigned int producers, bool pin, double seconds, crew_fn fn, void *arg);

void crew_free(struct crew *c);

/* CPUs that this process may use. */
unsigned int crew_cpus(void);

#endif
