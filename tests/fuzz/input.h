/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* input.h - a fuzzer's input, read as numbers; a failed expectation ends the program. */
#ifndef ARN_FUZZ_INPUT_H
#define ARN_FUZZ_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "arenite.h"
#include "internal.h"

#define MIB (1ull << 20)

struct input {
	const uint8_t *at, *end;
};

static inline __u32 byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static inline __u32 word(struct input *in)
{
	__u32 v = byte(in);

	v |= byte(in) << 8;
	v |= byte(in) << 16;
	return v | byte(in) << 24;
}

#define expect(x)                                                                                                      \
	do {                                                                                                           \
		if (!(x)) {                                                                                            \
			fprintf(stderr, "%s:%d: not true: %s (last error: %s)\n", __FILE__, __LINE__, #x,              \
				arn_last_error());                                                                     \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

#endif
