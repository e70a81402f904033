// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * crew.c - worker threads that start together.
 *
 * A run is a turn number: the caller raises .turn, the first .producers threads take it up, meet at
 * a spinning gate (arrive together within a microsecond, where a condition variable would wake them
 * one after another), work, and report.  All fields but the gate and the stop flag are under .lock.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "crew.h"

struct member {
	struct crew *crew;
	pthread_t thread;
	unsigned int index;
	int pinned; /* CPU, or -1 */
};

struct crew {
	pthread_mutex_t lock;
	pthread_cond_t wake, done;
	unsigned int max, made;
	unsigned int turn, producers, busy;
	bool quit, pin;
	int err;
	crew_fn fn;
	void *arg;
	atomic_uint gate;
	atomic_bool stop;
	cpu_set_t cpus;
	struct member *member;
};

unsigned int crew_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned int)CPU_COUNT(&set);
}

static int nth_cpu(const cpu_set_t *set, unsigned int n)
{
	int cpu;

	n %= (unsigned int)CPU_COUNT(set);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, set) && !n--)
			return cpu;
	return 0;
}

static int member_place(struct member *m, bool pin)
{
	int cpu = pin ? nth_cpu(&m->crew->cpus, m->index) : -1;
	cpu_set_t one;
	int err;

	if (cpu == m->pinned)
		return 0;
	if (cpu < 0) {
		err = pthread_setaffinity_np(pthread_self(), sizeof(m->crew->cpus), &m->crew->cpus);
	} else {
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		err = pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
	}
	if (!err)
		m->pinned = cpu;
	return -err;
}

static void gate_pass(struct crew *c, unsigned int producers)
{
	unsigned int i;

	atomic_fetch_add(&c->gate, 1);
	for (i = 1; atomic_load(&c->gate) < producers; i++)
		if (!(i & 0xfff))
			sched_yield();
}

static void *member_main(void *arg)
{
	struct member *m = arg;
	struct crew *c = m->crew;
	unsigned int turn = 0, producers;
	int err;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		while (!c->quit && (c->turn == turn || m->index >= c->producers))
			pthread_cond_wait(&c->wake, &c->lock);
		if (c->quit)
			break;
		turn = c->turn;
		producers = c->producers;
		pthread_mutex_unlock(&c->lock);

		err = member_place(m, c->pin);
		gate_pass(c, producers);
		if (!err)
			err = c->fn(c->arg, m->index, &c->stop);

		pthread_mutex_lock(&c->lock);
		if (err && !c->err)
			c->err = err;
		if (err)
			c->stop = true;
		if (!--c->busy)
			pthread_cond_signal(&c->done);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

struct crew *crew_new(unsigned int max)
{
	struct crew *c = calloc(1, sizeof(*c));
	struct member *m;
	int err;

	if (!c)
		return NULL;
	c->member = calloc(max, sizeof(*c->member));
	if (!c->member) {
		free(c);
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	pthread_cond_init(&c->done, NULL);
	sched_getaffinity(0, sizeof(c->cpus), &c->cpus);
	for (c->max = max; c->made < max; c->made++) {
		m = &c->member[c->made];
		m->crew = c;
		m->index = c->made;
		m->pinned = -1;
		err = pthread_create(&m->thread, NULL, member_main, m);
		if (err) {
			crew_free(c);
			errno = err;
			return NULL;
		}
	}
	return c;
}

static void pause_for(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds };

	t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
		;
}

int crew_run(struct crew *c, unsigned int producers, bool pin, double seconds, crew_fn fn, void *arg)
{
	int err;

	if (!producers || producers > c->max)
		return -EINVAL;
	pthread_mutex_lock(&c->lock);
	c->fn = fn;
	c->arg = arg;
	c->pin = pin;
	c->producers = producers;
	c->busy = producers;
	c->err = 0;
	c->stop = false;
	atomic_store(&c->gate, 0);
	c->turn++;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);

	pause_for(seconds);
	c->stop = true;

	pthread_mutex_lock(&c->lock);
	while (c->busy)
		pthread_cond_wait(&c->done, &c->lock);
	err = c->err;
	pthread_mutex_unlock(&c->lock);
	return err;
}

void crew_free(struct crew *c)
{
	unsigned int i;

	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->quit = true;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);
	for (i = 0; i < c->made; i++)
		pthread_join(c->member[i].thread, NULL);
	free(c->member);
	free(c);
}
