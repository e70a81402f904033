# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# cli.mk - the command and the scripts as their users meet them (bats): build/cli/X runs X.bats.

CLI_TESTS	:= usage bench bench-bpf heap stats keeper features demo install vmtest
CLI_TOOLS	:= $(B)/cli/jsonpath $(B)/cli/pinheap

$(B)/cli/jsonpath: tests/cli/jsonpath.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(WARN) $(CFLAGS) -o $@ $< -ljansson
$(B)/cli/pinheap: tests/cli/pinheap.c $(B)/libarenite.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $< $(B)/libarenite.a $(LIBS)
$(CLI_TESTS:%=$(B)/cli/%): $(B)/cli/%: tests/cli/%.bats tests/cli/run-bats.sh
	@mkdir -p $(@D)
	@printf '%s\n' '#!/bin/sh' 'exec tests/cli/run-bats.sh tests/cli/$*.bats' >$@ && chmod +x $@

CHECKS		+= $(CLI_TESTS:%=$(B)/cli/%)
CHECK_DEPS	+= $(CLI_TESTS:%=$(B)/cli/%) $(CLI_TOOLS)

.PHONY: check-cli
check-cli: all $(CLI_TESTS:%=$(B)/cli/%) $(CLI_TOOLS)
	@tests/run.sh $(CLI_TESTS:%=$(B)/cli/%)
