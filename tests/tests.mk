# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# tests.mk - every suite adds its programs to CHECKS; tests/run.sh runs them: 0 pass, 1 fail, 77 skip.
-include tests/unit/unit.mk
-include tests/fuzz/fuzz.mk
-include tests/bpf/bpf.mk
-include tests/model/model.mk
-include tests/cli/cli.mk
-include tests/fresh/fresh.mk
-include tests/vm/vm.mk

check: deps
	@$(MAKE) --no-print-directory check-built

.PHONY: check-built torture
check-built: all $(CHECK_DEPS)
	@tests/run.sh $(CHECKS)

# The tests that interrupt, kill and scribble, for longer: minutes instead of seconds.
torture: all $(TORTURE)
	@ARN_TORTURE=1 TEST_TIMEOUT=7200 tests/run.sh $(TORTURE)
