# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# lint.mk - make lint: every C file through clang-tidy, the host's through cppcheck, BPF code through
# sparse (address spaces), scripts through shellcheck, everything through clang-format, some rules of
# CONTRIBUTING.md through grep.  New files are covered by where they lie.  tests/lint/seeds holds mistakes
# that must be found.
#
# A file that needs more on its command line has it in $(LINT)/FILE: LINT_FLAGS += ...

LINT		:= $(B)/lint
LINT_INC	:= tests/lint/include
TIDY		?= clang-tidy-19
FORMAT		?= clang-format-19

lint_files	= $(filter-out tests/lint/seeds/%,$(shell git ls-files -co --exclude-standard -- $(1)))
LINT_C		:= $(call lint_files,'*.c')
LINT_H		:= $(call lint_files,'*.h')
LINT_BPF	:= $(filter %.bpf.c,$(LINT_C))
LINT_HOST	:= $(filter-out %.bpf.c,$(LINT_C))
LINT_SH		:= $(call lint_files,'*.sh' '*.bash' .ci/run)
LINT_BATS	:= $(call lint_files,'*.bats')
LINT_DEPS	:= $(LINT_H) tests/lint/lint.mk .clang-tidy $(PUBLIC) $(B)/arenite_sys.skel.h $(BENCH_SKEL) \
		   $(BT_OBJS:%=$(BT)/%.skel.h) $(EXAMPLES:%=$(EX)/%.skel.h)

# What is built as users of the library build it; the rest sees all of the tree.
LINT_OUTSIDE	:= tests/bpf/% examples/%
lint_side	= $(if $(filter $(LINT_OUTSIDE),$(1)),$(2),$(3))
# Generated headers count as the system's: nobody mends them.
lint_system	= $(patsubst -I$(B)%,-isystem $(B)%,$(1)) $(LINT_FLAGS)
LINT_CFLAGS	= $(call lint_side,$(1),$(BT_CFLAGS) -I$(EX),$(ALL_CFLAGS) $(BENCH_INC) -Itests/unit -Itests/fuzz)
LINT_BPF_CFLAGS	= $(call lint_side,$(1),$(BT_BPF_CFLAGS),$(BPF_CFLAGS) -Ibench)

.PHONY: lint lint-deps lint-built lint-tidy lint-cppcheck lint-sparse lint-shell lint-format lint-house lint-seeds format
lint: deps lint-deps
	@$(MAKE) --no-print-directory -k -j$$(nproc) lint-built
lint-deps:
	@scripts/install-deps.sh lint
lint-built: lint-tidy lint-cppcheck lint-sparse lint-shell lint-format lint-house lint-seeds

# Errors go to stdout; stderr only counts what was suppressed.  The analyzer of paths takes half an hour
# for some BPF files, in which all is inlined; the verifier follows their paths.
$(LINT)/%.tidy: % $(LINT_DEPS)
	@mkdir -p $(@D)
	@echo '  tidy    $<'
	@$(TIDY) --quiet $(if $(filter %.bpf.c,$<),--checks=-clang-analyzer-*) $< -- -isystem $(LINT_INC) $(call lint_system,$(if $(filter %.bpf.c,$<),$(call LINT_BPF_CFLAGS,$<),$(call LINT_CFLAGS,$<))) 2>$@.log
	@touch $@
lint-tidy: $(LINT_C:%=$(LINT)/%.tidy)

# -Wcast-to-as: a plain pointer may not be cast into the arena either.  That functions are declared and
# null pointers not written 0 is the compilers' business.
$(LINT)/port/port_bpf.h: src/bpf/port_bpf.h tests/lint/lint.mk
	@mkdir -p $(@D)
	@sed -E '/^#define arn_((load|store)_relaxed|(cas|xchg|add|or|inc)[0-9]+_[a-z]+)\(/{:a; /\\$$/{N; ba}; d}' $< >$@
$(LINT)/%.sparse: % $(LINT)/port/port_bpf.h $(LINT_DEPS)
	@mkdir -p $(@D)
	@echo '  sparse  $<'
	@sparse -Wsparse-error -Wcast-to-as -Wno-decl -Wno-non-pointer-null -include $(LINT_INC)/sparse.h -I$(LINT)/port -I$(LINT_INC) $(INC) \
		$(filter -I% -D%,$(call LINT_BPF_CFLAGS,$<)) $(LINT_FLAGS) $<
	@touch $@
lint-sparse: $(LINT_BPF:%=$(LINT)/%.sparse)

# Left out: looks (variableScope, clarify*, constParameter), what the compiler knows better (shadow*,
# redundantInitialization), padding (unusedStructMember), usleep (usleepCalled), negativeIndex, which
# forgets that st - 1 is unsigned, knownConditionTrueFalse, which forgets that others write too, and
# unreachableCode, which thinks that raise() never returns.
LINT_CPPCHECK	= cppcheck --quiet --std=c11 --enable=warning,style,performance,portability --inline-suppr --error-exitcode=1 \
		  $(addprefix --suppress=,variableScope clarifyCalculation clarifyCondition constParameter shadowVariable \
		  shadowFunction shadowArgument redundantInitialization unusedStructMember usleepCalled negativeIndex \
		  knownConditionTrueFalse unreachableCode) \
		  --template='{file}:{line}: {severity}: {message} [{id}]' \
		  --library=posix,gnu --library=tests/lint/cppcheck.cfg -D__x86_64__ -D__LITTLE_ENDIAN__ -DARN_VERSION='"0"'
lint-cppcheck:
	@mkdir -p $(LINT)/cppcheck
	@echo '  cppcheck'
	@$(LINT_CPPCHECK) -j$$(nproc) --cppcheck-build-dir=$(LINT)/cppcheck $(filter-out -I$(B)%,$(BENCH_INC)) -Itests/unit -Itests/fuzz -Itests/bpf $(LINT_HOST)

# bats loads helpers and sets variables in ways that shellcheck does not follow.
lint-shell:
	@echo '  shellcheck'
	@shellcheck $(LINT_SH)
	@shellcheck -e SC2154 $(LINT_BATS)

lint-format:
	@echo '  format'
	@$(FORMAT) --dry-run -Werror $(LINT_C) $(LINT_H)
format:
	@$(FORMAT) -i $(LINT_C) $(LINT_H)

# Where atomics are taken from the port.
LINT_NO_ATOMICS	:= $(filter-out %/port_bpf.h %/port_user.h,$(filter src/%,$(LINT_C) $(LINT_H)))
lint-house:
	@echo '  house rules'
	@! git ls-files -co --exclude-standard | grep -vE '^(LICENSES|tests/fuzz/corpus)/' | xargs grep -L 'SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only' | \
		sed 's/$$/: no SPDX line/' | grep .
	@! grep -HnE '__(atomic|sync)_[a-z]' $(LINT_NO_ATOMICS) | sed 's/$$/: an atomic builtin outside of the ports/' | grep .

lint-seeds: $(LINT_DEPS)
	@echo '  seeds'
	@tests/lint/seed-test.sh
