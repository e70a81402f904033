# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# fuzz.mk - libFuzzer programs over the native heap: a short run with a fixed seed among the tests, a long
# one by `make fuzz` (FUZZ_SECONDS for each).  corpus/X holds inputs that found something, see its README.

FUZZ_SECONDS ?= 600
FUZZERS := api scribble ring
FUZZ_CC := $(CLANG) -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer \
	-std=gnu11 -D_GNU_SOURCE -DARN_VERSION='"$(VERSION)"' $(WARN) -Wshadow $(INC)
FUZZ_LIB := $(LIB_SRC:src/user/%.c=$(B)/fuzz/lib/%.o)
FUZZ_RUNS_api := 1000
FUZZ_RUNS_scribble := 900
FUZZ_RUNS_ring := 5000

$(FUZZ_LIB): $(B)/fuzz/lib/%.o: src/user/%.c $(HEADERS) $(B)/arenite_sys.skel.h tests/fuzz/fuzz.mk
	@mkdir -p $(@D)
	$(FUZZ_CC) -fsanitize=fuzzer-no-link -c $< -o $@
$(FUZZERS:%=$(B)/fuzz/%): $(B)/fuzz/%: tests/fuzz/%_fuzz.c $(wildcard tests/fuzz/*.h) $(FUZZ_LIB)
	$(FUZZ_CC) -fsanitize=fuzzer $< $(FUZZ_LIB) -o $@ $(LIBS)

# A test: first the inputs that once found something, then a bounded search from them.  (libFuzzer's own
# exit code for a failure is 77, which is a skip here.)
$(FUZZERS:%=$(B)/fuzz/check-%): $(B)/fuzz/check-%: $(B)/fuzz/% tests/fuzz/fuzz.mk
	@printf '%s\n' '#!/bin/sh' 'rm -rf $(B)/fuzz/new-$* && mkdir -p $(B)/fuzz/new-$* && exec $(B)/fuzz/$* -seed=1 -runs=$(FUZZ_RUNS_$*) -max_total_time=60 \
	-max_len=2048 -len_control=0 -timeout=60 -error_exitcode=1 -artifact_prefix=$(B)/fuzz/$*- -verbosity=0 -print_final_stats=1 \
	$(B)/fuzz/new-$* tests/fuzz/corpus/$*' > $@
	@chmod +x $@

CHECKS += $(FUZZERS:%=$(B)/fuzz/check-%)
CHECK_DEPS += $(FUZZERS:%=$(B)/fuzz/check-%)

.PHONY: fuzz $(FUZZERS:%=fuzz-%)
fuzz: $(FUZZERS:%=fuzz-%)
$(FUZZERS:%=fuzz-%): fuzz-%: $(B)/fuzz/%
	@mkdir -p $(B)/fuzz/found-$*
	$(B)/fuzz/$* -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -len_control=0 -timeout=60 \
		-artifact_prefix=$(B)/fuzz/$*- $(B)/fuzz/found-$* tests/fuzz/corpus/$*
