# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# cross.mk - make cross: everything that `make` and `make check` build, built for arm64 into build/arm64
# with Debian's cross compiler, BPF objects included; then the unit tests, run by qemu-user.  Fuzzers
# and sanitizers stay out.
#
# The emulator keeps x86's memory order on an x86 machine, so this shows no race of arm64's weaker one.
#
#   CROSS_ROOT   headers and libraries of arm64; not given, Debian's packages are unpacked for it

CROSS_TUPLE	:= aarch64-linux-gnu
CROSS_B		:= $(B)/arm64
ifndef CROSS_ROOT
CROSS_ROOT	:= $(abspath $(B))/arm64-root
CROSS_STAMP	:= $(CROSS_ROOT)/unpacked
endif
CROSS_QEMU	:= qemu-aarch64
# The root's headers go before those of a libc6-dev-arm64-cross, whose linux/bpf.h may be too old.
CROSS_CC	:= $(CROSS_TUPLE)-gcc --sysroot=$(CROSS_ROOT) -isystem $(CROSS_ROOT)/usr/include/$(CROSS_TUPLE) \
		   -isystem $(CROSS_ROOT)/usr/include
CROSS_VARS	:= B=$(CROSS_B) SYSROOT=$(CROSS_ROOT) CC='$(CROSS_CC)' AR=$(CROSS_TUPLE)-ar HOSTCC='$(CC)' \
		   CLANG_TARGET='--target=$(CROSS_TUPLE) --sysroot=$(CROSS_ROOT)' UNIT_VARIANTS=plain FUZZERS=

.PHONY: cross cross-deps cross-built cross-all cross-unit
cross: deps cross-deps
	@$(MAKE) --no-print-directory cross-built
cross-deps:
	@scripts/install-deps.sh cross

cross-built: $(CROSS_STAMP)
	@$(MAKE) --no-print-directory $(CROSS_VARS) cross-all
	@$(MAKE) --no-print-directory $(CROSS_VARS) TEST_EXEC='$(CROSS_QEMU) -L $(CROSS_ROOT)' cross-unit
$(CROSS_ROOT)/unpacked: scripts/cross-root.sh scripts/install-deps.sh
	scripts/cross-root.sh arm64 $(CROSS_ROOT)
	@touch $@

# What follows runs with CROSS_VARS.
cross-all: all bench $(CHECK_DEPS)
cross-unit: export TEST_EXEC := $(TEST_EXEC)
cross-unit:
	@tests/run.sh $(UNIT_BUILT)
