// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * structops.c - allocations in struct_ops programs: a TCP congestion control allocates in the network
 * stack while a connection over the loopback is made, used and closed.
 *
 * The object is opened from its file: a skeleton of bpftool 7.5 that has struct_ops does not compile
 * with libbpf 1.4.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include "rig.h"

/* Sends a megabyte over the loopback under the congestion control name: 0, or -errno. */
static int use_tcp(const char *name)
{
	static char buf[65536];
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0), s = -1, i, err = 0;

	assert_true(l >= 0 && c >= 0);
	if (setsockopt(c, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) ||
	    bind(l, (struct sockaddr *)&addr, len) || listen(l, 1) || getsockname(l, (struct sockaddr *)&addr, &len) ||
	    connect(c, (struct sockaddr *)&addr, len) || (s = accept(l, NULL, NULL)) < 0) {
		err = -errno;
	} else {
		for (i = 0; i < 16; i++)
			if (send(c, buf, sizeof(buf), 0) != sizeof(buf) ||
			    recv(s, buf, sizeof(buf), MSG_WAITALL) != sizeof(buf))
				err = -EIO;
	}
	if (s >= 0)
		close(s);
	close(c);
	close(l);
	return err;
}

static void in_a_congestion_control(void **state)
{
	struct rig *t = rig_new(64 * MiB, 2 * MiB);
	struct bpf_object *obj = bpf_object__open_file(TEST_DIR "/structops.bpf.o", NULL);
	struct bpf_link *ca;
	struct {
		__u64 ran, bad;
	} counts;
	int err, key = 0;

	assert_non_null(obj);
	assert_ok(arn_attach(t->heap, obj));
	assert_int_equal(bpf_object__load(obj), 0);
	ca = bpf_map__attach_struct_ops(bpf_object__find_map_by_name(obj, "arn_ca"));
	assert_non_null(ca);
	err = use_tcp("arn_test");
	bpf_link__destroy(ca);
	if (err == -ENETUNREACH)
		print_message("loaded, not run: there is no loopback device here\n");
	else if (err)
		fail_msg("TCP over the loopback: %s", strerror(-err));
	assert_int_equal(bpf_map__lookup_elem(bpf_object__find_map_by_name(obj, ".bss.counts"), &key, sizeof(key),
					      &counts, sizeof(counts), 0),
			 0);
	assert_true(err || counts.ran > 0);
	assert_int_equal(counts.bad, 0);
	bpf_object__close(obj);
	assert_int_equal(rig_live(t->heap), 0);
	rig_end(t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_a_congestion_control),
	};

	rig_start();
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
