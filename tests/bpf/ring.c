// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * ring.c - rings with BPF at one end, at the other, or at both: the calls' answers, hand-overs on two CPUs, and
 * words overwritten by a process.
 *
 * The algorithm itself is shown by tests/unit/ring*_test.c, what interrupts by ring_top.c, processes that are
 * killed by ring_kill.c.  Preempted tasks are not shown on kernels that do not preempt.
 */
#include "ring_rig.h"
#include "ops.skel.h"

/* ---- answers ---- */

/* Full, empty, in order, in both kinds and at every size; user space opens each. */
static void each_call_answers(void **state)
{
	enum ring_kind kind;
	__u32 size, i;

	for (kind = RING_SPSC; kind <= RING_MPSC; kind++) {
		for (size = 1; size <= 65536; size *= 4) {
			__u64 q = create(kind, size);
			struct arn_ring_handle *h = arn_ring_open(t->heap, (struct arn_ring *)q);
			__u32 n = size < 20 ? size : 20;

			assert_true(q && h);
			assert_int_equal(arn_ring_size(h), size);
			assert_int_equal(get(kind, q), 0);
			for (i = 0; i < n; i++)
				assert_int_equal(put(kind, q, nth(i)), 1);
			assert_int_equal(count(q), n);
			if (n == size)
				assert_int_equal(put(kind, q, nth(0)), 0);
			for (i = 0; i < n; i++)
				assert_int_equal(get(kind, q), nth(i));
			assert_int_equal(get(kind, q), 0);
			assert_int_equal(count(q), 0);
			arn_ring_close(h);
			assert_int_equal(destroy(q), 0);
		}
		assert_int_equal(create(kind, 0), 0);
		assert_int_equal(create(kind, 48), 0);
		assert_int_equal(create(kind, 131072), 0);
	}
}

/* Many at once: at least, at most, or none; whole rings of all sizes. */
static void bulk_answers(void **state)
{
	__u64 *p = bpf_malloc(t, 65536 * 2 * 8), *out = bpf_malloc(t, 65536 * 8);
	enum ring_kind kind;
	__u32 size, i;

	for (kind = RING_SPSC; kind <= RING_MPSC; kind++) {
		for (size = 16; size <= 65536; size *= 16) {
			__u64 q = create(kind, size);

			for (i = 0; i < 2 * size; i++)
				p[i] = nth(i);
			assert_int_equal(bulk(RING_GET_BULK, kind, q, out, 1, size), 0);
			assert_int_equal(bulk(RING_PUT_BULK, kind, q, p, size + 1, size + 1), 0);
			assert_int_equal(bulk(RING_PUT_BULK, kind, q, p, 5, 5), 5);
			assert_int_equal(bulk(RING_PUT_BULK, kind, q, p, size, size), 0);
			assert_int_equal(bulk(RING_PUT_BULK, kind, q, p + 5, 1, size), size - 5);
			assert_int_equal(count(q), size);
			assert_int_equal(bulk(RING_GET_BULK, kind, q, out, size + 1, size + 1), 0);
			assert_int_equal(bulk(RING_GET_BULK, kind, q, out, 3, 3), 3);
			assert_int_equal(bulk(RING_GET_BULK, kind, q, out + 3, size - 3, size), size - 3);
			for (i = 0; i < size; i++)
				assert_int_equal(out[i], nth(i));
			assert_int_equal(destroy(q), 0);
		}
	}
	assert_int_equal(bpf_free(t, p), 0);
	assert_int_equal(bpf_free(t, out), 0);
}

/* Another kind, no ring, a wrong address among many: -EINVAL, NULL, and nothing is enqueued. */
static void wrong_uses_are_refused(void **state)
{
	__u64 s = create(RING_SPSC, 16), m = create(RING_MPSC, 16), *p = bpf_malloc(t, 20 * 8);
	__u64 wrong[] = { 0, (__u64)&s, nth(3) + 8, nth(3) - (4 * GiB) };
	__u32 i, k;

	assert_int_equal(put(RING_SPSC, m, nth(1)), -EINVAL);
	assert_int_equal(put(RING_MPSC, s, nth(1)), -EINVAL);
	assert_int_equal(get(RING_SPSC, m), 0);
	assert_int_equal(bulk(RING_PUT_BULK, RING_SPSC, m, p, 1, 1), -EINVAL);
	assert_int_equal(bulk(RING_PUT_BULK, RING_MPSC, s, p, 1, 1), -EINVAL);
	assert_int_equal(bulk(RING_GET_BULK, RING_SPSC, m, p, 1, 1), -EINVAL);
	assert_int_equal(bulk(RING_GET_BULK, RING_MPSC, s, p, 1, 1), -EINVAL);
	assert_int_equal(call((struct ring_op){ .code = RING_SKIP, .ring = s }), -EINVAL);
	assert_int_equal(put(RING_MPSC, (__u64)p, nth(1)), -EINVAL);
	assert_int_equal(put(RING_MPSC, 0, nth(1)), -EINVAL);
	assert_int_equal(destroy((__u64)p), -EINVAL);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(put(RING_SPSC, s, wrong[i]), -EINVAL);
		assert_int_equal(put(RING_MPSC, m, wrong[i]), -EINVAL);
		for (k = 0; k < 10; k++) {
			p[0] = p[1] = p[2] = p[3] = p[4] = p[5] = p[6] = p[7] = p[8] = p[9] = nth(k);
			p[k] = wrong[i];
			assert_int_equal(bulk(RING_PUT_BULK, RING_SPSC, s, p, 1, 10), -EINVAL);
			assert_int_equal(bulk(RING_PUT_BULK, RING_MPSC, m, p, 1, 10), -EINVAL);
		}
	}
	/* an offset is as good as an address */
	assert_int_equal(put(RING_SPSC, s, (__u32)nth(7)), 1);
	assert_int_equal(get(RING_SPSC, s), nth(7));
	assert_int_equal(count(s) + count(m), 0);
	assert_int_equal(destroy(s), 0);
	assert_int_equal(destroy(s), -EINVAL);
	assert_int_equal(destroy(m), 0);
	assert_int_equal(bpf_free(t, p), 0);
}

/* A ring that user space makes on a shared heap is one for BPF, and frees its memory. */
static void user_space_makes_one_too(void **state)
{
	struct arn_ring_handle *h = arn_ring_create_mpsc(t->heap, 32);
	__u64 q;

	if (!h)
		fail_msg("%s", arn_last_error());
	q = (__u64)arn_ring_address(h);
	assert_int_equal(arn_ring_enqueue_mpsc(h, (void *)nth(4)), 1);
	assert_int_equal(get(RING_MPSC, q), nth(4));
	assert_int_equal(put(RING_MPSC, q, nth(5)), 1);
	assert_ptr_equal(arn_ring_dequeue_mpsc(h), (void *)nth(5));
	assert_ok(arn_ring_destroy(h));
	assert_int_equal(put(RING_MPSC, q, nth(5)), -EINVAL);
}

/* ---- hand-overs ---- */

/* Numbered objects from one CPU to the other: all, in order, with what was written to them. */
static void hand_over(bool user_sends, bool user_receives)
{
	static const __u32 most[] = { 1, 8, 64 }, size[] = { 1, 16, 1024 };
	enum ring_kind kind;
	__u32 i, k;

	for (kind = RING_SPSC; kind <= RING_MPSC; kind++)
		for (i = 0; i < 3; i++)
			for (k = 0; k < 3; k++) {
				__u64 n = (size[k] * 200 < 100000 ? size[k] * 200 : 100000) / rig_scale();
				struct arn_ring_handle *h = kind == RING_SPSC ? arn_ring_create_spsc(t->heap, size[k])
									      : arn_ring_create_mpsc(t->heap, size[k]);
				struct end a = end_new(h, user_sends, true, kind, most[i], n);
				struct end b = end_new(h, user_receives, false, kind, most[i], n);

				/* all or none, where all can fit */
				a.s.all = most[i] <= size[k] / 2;
				b.s.all = a.s.all && n % most[i] == 0;
				memset(bpf->bss->next, 0, sizeof(bpf->bss->next));
				assert_int_equal(pthread_create(&a.thread, NULL, run_end, &a), 0);
				assert_int_equal(pthread_create(&b.thread, NULL, run_end, &b), 0);
				pthread_join(a.thread, NULL);
				pthread_join(b.thread, NULL);
				end_over(&a);
				end_over(&b);
				assert_int_equal(arn_ring_count(h), 0);
				assert_ok(arn_ring_destroy(h));
			}
}

static void bpf_to_user(void **state)
{
	hand_over(false, true);
}

static void user_to_bpf(void **state)
{
	hand_over(true, false);
}

static void bpf_to_bpf(void **state)
{
	hand_over(false, false);
}

static void user_to_user(void **state)
{
	hand_over(true, true);
}

/* The atomics that BPF uses where the machine does not keep stores and loads in order work here too. */
static void as_on_a_machine_with_weaker_order(void **state)
{
	__u32 flags = t->root->flags;

#ifdef __x86_64__
	assert_true(flags & ARN_F_TSO);
#endif
	t->root->flags = flags & ~ARN_F_TSO;
	hand_over(false, false);
	hand_over(true, false);
	t->root->flags = flags;
}

/* Four producers, two of them BPF's, on two CPUs. */
static void producers_of_both_worlds(void **state)
{
	struct arn_ring_handle *h = arn_ring_create_mpsc(t->heap, 256);
	__u64 n = 50000 / rig_scale();
	struct end p[4], c = end_new(h, true, false, RING_MPSC, 64, 4 * n);
	__u32 i;

	for (i = 0; i < 4; i++) {
		p[i] = end_new(h, i & 1, true, RING_MPSC, i / 2 ? 1 : 16, n);
		p[i].s.id = i;
		p[i].cpu = (int)(i ^ i / 2) % rig_cpus() & 1;
	}
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&p[i].thread, NULL, run_end, &p[i]), 0);
	assert_int_equal(pthread_create(&c.thread, NULL, run_end, &c), 0);
	for (i = 0; i < 4; i++)
		pthread_join(p[i].thread, NULL);
	pthread_join(c.thread, NULL);
	for (i = 0; i < 4; i++)
		end_over(&p[i]);
	end_over(&c);
	assert_ok(arn_ring_destroy(h));
}

/* ---- a process writes anything into a ring ---- */

static __u64 rnd(__u64 *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * 0x2545f4914f6cdd1dULL >> 16;
}

/*
 * Every word in turn, and others at random, while BPF calls: each comes to its end.  (A wrong mask may lead it
 * to other words of the arena, so this has a heap of its own, which is not walked afterwards.)
 */
static void calls_on_a_corrupt_ring_end(void **state)
{
	struct rig *whole = t;
	struct ring_bpf *good = bpf;
	__u64 q, seed = 23, size = 64;
	enum ring_kind kind;
	__u32 i, k, words;

	t = rig_new(64 * MiB, 16 * MiB);
	bpf = ring_bpf__open();
	assert_non_null(bpf);
	assert_int_equal(rig_load(t->heap, bpf->skeleton), 0);
	for (kind = RING_SPSC; kind <= RING_MPSC; kind++) {
		__u64 *p = bpf_malloc(t, 100 * 8);
		struct arn_ring *s;

		q = create(kind, (__u32)size);
		s = (struct arn_ring *)q;
		words = (__u32)(sizeof(*s) / 4 + size);
		for (i = 0; i < 10 * words; i++) {
			((__u32 *)s)[i % words] = (__u32)(rnd(&seed) % 2 ? rnd(&seed) : rnd(&seed) % 200 - 100);
			if (rnd(&seed) % 2)
				((__u32 *)s)[rnd(&seed) % words] = (__u32)rnd(&seed);
			if (rnd(&seed) % 4)
				s->kind = kind == RING_SPSC ? ARN_RING_SPSC : ARN_RING_MPSC;
			if (rnd(&seed) % 4)
				s->mask = (__u32)size - 1;
			for (k = 0; k < 6; k++) {
				static const enum ring_code codes[] = { RING_PUT,      RING_GET,   RING_PUT_BULK,
									RING_GET_BULK, RING_COUNT, RING_SKIP };
				__u32 j, n = rnd(&seed) % 100;

				for (j = 0; j < n; j++)
					p[j] = nth(j);
				call((struct ring_op){ .code = codes[rnd(&seed) % 6],
						       .kind = kind,
						       .least = rnd(&seed) % (n + 1),
						       .n = n,
						       .ring = q,
						       .obj = rnd(&seed) % 2 ? (__u64)p : nth(3) });
			}
		}
	}
	ring_bpf__destroy(bpf);
	ops_bpf__destroy(t->ops);
	arn_close(t->heap);
	free(t);
	t = whole;
	bpf = good;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_answers),
		cmocka_unit_test(bulk_answers),
		cmocka_unit_test(wrong_uses_are_refused),
		cmocka_unit_test(user_space_makes_one_too),
		cmocka_unit_test(bpf_to_user),
		cmocka_unit_test(user_to_bpf),
		cmocka_unit_test(bpf_to_bpf),
		cmocka_unit_test(user_to_user),
		cmocka_unit_test(as_on_a_machine_with_weaker_order),
		cmocka_unit_test(producers_of_both_worlds),
		cmocka_unit_test(calls_on_a_corrupt_ring_end),
	};

	rig_start();
	return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
