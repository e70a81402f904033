/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <stdio.h>
#include <bpf/bpf.h>
#include <arenite/arenite.h>
#include "hello.h"
#include "hello.skel.h"

int main(void)
{
	char frame[64] = "";
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = sizeof(frame), .repeat = 1000);
	int lacks = arn_supported();
	struct arn_heap *heap = lacks ? NULL : arn_create(NULL);
	struct hello_bpf *hello = hello_bpf__open();

	if (!heap || !hello || arn_attach(heap, hello->obj) || hello_bpf__load(hello) || arn_reserve(heap, 4 << 20) ||
	    bpf_prog_test_run_opts(bpf_program__fd(hello->progs.remember), &run)) {
		puts(arn_last_error()); /* what libbpf refuses, it says itself */
		return lacks ? 77 : 1;
	}
	for (int i = 0; i < LATEST; i++) {
		struct packet *p = hello->bss->latest[i];

		printf("packet %llu: %u bytes, at %llu ns\n", p->number, p->bytes, p->ns);
	}
	hello_bpf__destroy(hello);
	printf("given back: %lld KiB\n", arn_trim(heap) >> 10);
	arn_close(heap);
	return 0;
}
