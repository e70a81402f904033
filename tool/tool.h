/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * tool.h - the subcommands.  Each gets its own argv (argv[0] is "arenite NAME") and returns the
 * process's exit status.
 */
#ifndef TOOL_H
#define TOOL_H

int tool_bench(int argc, char **argv);
int tool_check(int argc, char **argv);
int tool_demo(int argc, char **argv);
int tool_features(int argc, char **argv);
int tool_keeper(int argc, char **argv);
int tool_reap(int argc, char **argv);
int tool_stats(int argc, char **argv);

#endif
