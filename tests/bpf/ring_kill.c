// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * ring_kill.c - a process killed at every instruction of a ring's call: single-stepped so far, then SIGKILL.
 *
 * Whatever it was at, the others go on: at most what the call had in its hands is lost, nothing comes twice,
 * and the ring is as good as before.  x86's and arm64's way of stepping (ptrace).  That a killed BPF program
 * leaves anything is not shown, because there is none.
 */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include "rig.h"

#define SIZE 16
#define HAD  8 /* objects in the ring before a consumer's call */
#define MANY 5
#define MOST 20000 /* instructions */

enum call { PUT, PUT_BULK, GET, GET_BULK };

static struct rig *t;

static int setup(void **state)
{
	t = rig_new(64 * MiB, 4 * MiB);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(rig_live(t->heap), 0);
	rig_end(t);
	return 0;
}

static void *nth(__u32 n)
{
	return t->base + 16 + (size_t)n * 16;
}

static int put(struct arn_ring_handle *h, bool mpsc, void *p)
{
	return mpsc ? arn_ring_enqueue_mpsc(h, p) : arn_ring_enqueue_spsc(h, p);
}

static int take(struct arn_ring_handle *h, bool mpsc, void **out)
{
	return mpsc ? arn_ring_dequeue_bulk_mpsc(h, out, 1, SIZE) : arn_ring_dequeue_bulk_spsc(h, out, 1, SIZE);
}

/* The victim: opens the heap anew and makes one call between two stops. */
static void victim(struct arn_ring *ring, bool mpsc, enum call call)
{
	struct arn_heap *heap = arn_open_fd(arn_map_fd(t->heap), 0, NULL);
	struct arn_ring_handle *h = heap ? arn_ring_open(heap, ring) : NULL;
	void *p[MANY];
	int i;

	if (!h || ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	for (i = 0; i < MANY; i++)
		p[i] = nth((__u32)i);
	raise(SIGSTOP);
	switch (call) {
	case PUT:
		put(h, mpsc, p[0]);
		break;
	case PUT_BULK:
		if (mpsc)
			arn_ring_enqueue_bulk_mpsc(h, p, MANY, MANY);
		else
			arn_ring_enqueue_bulk_spsc(h, p, MANY, MANY);
		break;
	case GET:
		if (mpsc)
			arn_ring_dequeue_mpsc(h);
		else
			arn_ring_dequeue_spsc(h);
		break;
	case GET_BULK:
		if (mpsc)
			arn_ring_dequeue_bulk_mpsc(h, p, MANY, MANY);
		else
			arn_ring_dequeue_bulk_spsc(h, p, MANY, MANY);
	}
	raise(SIGUSR1);
	_exit(2);
}

/* Kills it after so many instructions.  False: the call was over before. */
static bool kill_after(struct arn_ring *ring, bool mpsc, enum call call, __u32 steps)
{
	int status;
	pid_t pid;
	__u32 i;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		victim(ring, mpsc, call);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP)
		fail_msg("the process to be killed did not start: status 0x%x", status);
	for (i = 0; i < steps; i++) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSTOPPED(status));
		if (WSTOPSIG(status) == SIGUSR1)
			break;
		assert_int_equal(WSTOPSIG(status), SIGTRAP);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	return i == steps;
}

/* Everything that comes out, in the order it does; places without an object are skipped.  How many of them. */
static int drain(struct arn_ring_handle *h, bool mpsc, void **out, __u32 *n)
{
	int skipped = 0, turn, got;

	*n = 0;
	for (turn = 0; arn_ring_count(h) && turn < 2 * SIZE; turn++) {
		got = take(h, mpsc, out + *n);
		assert_true(got >= 0);
		*n += (__u32)got;
		if (!got && mpsc)
			skipped += arn_ring_skip(h);
	}
	assert_int_equal(arn_ring_count(h), 0);
	return skipped;
}

/* It takes as many as ever, and gives them. */
static void as_good_as_before(struct arn_ring_handle *h, bool mpsc)
{
	void *out[SIZE];
	__u32 i, n, lap;

	for (lap = 0; lap < 3; lap++) {
		for (i = 0; i < SIZE; i++)
			assert_int_equal(put(h, mpsc, nth(100 + i)), 1);
		assert_int_equal(put(h, mpsc, nth(100)), 0);
		assert_int_equal(drain(h, mpsc, out, &n), 0);
		assert_int_equal(n, SIZE);
		for (i = 0; i < SIZE; i++)
			assert_ptr_equal(out[i], nth(100 + i));
	}
}

/* A producer: what it enqueued is the beginning of what it had, and another one's object comes behind. */
static int after_a_producer(struct arn_ring_handle *h, bool mpsc, __u32 had, __u32 *came)
{
	void *out[3 * SIZE];
	__u32 i, n;
	int skipped;

	assert_int_equal(put(h, mpsc, nth(50)), 1);
	skipped = drain(h, mpsc, out, &n);
	assert_in_range(n, 1, had + 1);
	*came = n - 1;
	for (i = 0; i < *came; i++)
		assert_ptr_equal(out[i], nth(i));
	assert_ptr_equal(out[*came], nth(50));
	return skipped;
}

/* A consumer: what is left is the end of what there was, and no more is missing than it asked for. */
static void after_a_consumer(struct arn_ring_handle *h, bool mpsc, __u32 asked, __u32 *left)
{
	void *out[3 * SIZE];
	__u32 i;

	assert_int_equal(drain(h, mpsc, out, left), 0);
	assert_in_range(*left, HAD - asked, HAD);
	for (i = 0; i < *left; i++)
		assert_ptr_equal(out[i], nth(HAD - *left + i));
}

static void at_every_instruction(bool mpsc, enum call call)
{
	__u32 many = call == PUT || call == GET ? 1 : MANY, steps, i, whole = 0, nothing = 0, places = 0, n;
	bool puts = call == PUT || call == PUT_BULK, more = true;

	for (steps = 0; more; steps++) {
		struct arn_ring_handle *h =
			mpsc ? arn_ring_create_mpsc(t->heap, SIZE) : arn_ring_create_spsc(t->heap, SIZE);

		assert_non_null(h);
		assert_true(steps < MOST);
		for (i = 0; !puts && i < HAD; i++)
			assert_int_equal(put(h, mpsc, nth(i)), 1);
		more = kill_after(arn_ring_address(h), mpsc, call, steps);
		if (puts) {
			places += after_a_producer(h, mpsc, many, &n) > 0;
			nothing += n == 0;
			whole += n == many;
		} else {
			after_a_consumer(h, mpsc, many, &n);
			nothing += n == HAD;
			whole += n == HAD - many;
		}
		as_good_as_before(h, mpsc);
		assert_ok(arn_ring_destroy(h));
	}
	/* Before and after were seen, and with many producers a place without an object. */
	print_message("killed at %u instructions, %u times before anything had happened, %u times afterwards; "
		      "%u times a place had to be skipped\n",
		      steps - 1, nothing, whole, places);
	assert_true(steps > 20 && nothing && whole && (places || !mpsc || !puts));
}

static void a_producer_among_many(void **state)
{
	at_every_instruction(true, PUT);
}

static void a_producer_of_several_objects_among_many(void **state)
{
	at_every_instruction(true, PUT_BULK);
}

static void the_consumer_of_many(void **state)
{
	at_every_instruction(true, GET);
	at_every_instruction(true, GET_BULK);
}

static void the_only_producer(void **state)
{
	at_every_instruction(false, PUT);
	at_every_instruction(false, PUT_BULK);
}

static void the_only_consumer(void **state)
{
	at_every_instruction(false, GET);
	at_every_instruction(false, GET_BULK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_producer_among_many), cmocka_unit_test(a_producer_of_several_objects_among_many),
		cmocka_unit_test(the_consumer_of_many),	 cmocka_unit_test(the_only_producer),
		cmocka_unit_test(the_only_consumer),
	};

	rig_start();
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
