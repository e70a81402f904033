/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pin.h - the heap behind a path, for the commands that take one. */
#ifndef TOOL_PIN_H
#define TOOL_PIN_H

#include <argp.h>
#include <arenite/arenite.h>

/* Parser of a command whose only argument is a pin; input is a const char *. */
error_t pin_parse(int key, char *arg, struct argp_state *state);

/* NULL: *status is for main() to return, and why has been said. */
struct arn_heap *pin_open(const char *pin, int *status);

#endif
