# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# make            build/arenite, libarenite, the installable headers
# make demo       install what is missing, build, measure (sudo for the running kernel)
# make check      the same set-up, then every test
# make help       the rest

VERSION	:= 0.1.0
B	:= build
CC	?= gcc
CLANG	?= clang-19
BPFTOOL	?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
ARCH	:= $(shell $(CC) -dumpmachine 2>/dev/null)
# HOSTCC builds what runs during the build; SYSROOT holds another machine's headers (scripts/cross.mk).
HOSTCC	?= $(CC)
SYSROOT	?=
INC	:= -Iinclude/arenite -Iinclude -Isrc/core -Isrc/user -Isrc/bpf -I$(B)
WARN	:= -Wall -Wextra -Wno-unused-parameter
CFLAGS	?= -O2 -g
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DARN_VERSION='"$(VERSION)"' $(WARN) -Wshadow -fvisibility=hidden $(INC) $(CFLAGS)
# BPF objects for the machine that CC builds for: its headers, and its name in bpf_tracing.h.
BPF_ARCH := $(patsubst riscv64,riscv,$(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(firstword $(subst -, ,$(ARCH))))))
BPF_TARGET := -O2 -g -target bpf -mcpu=v4 -D__TARGET_ARCH_$(BPF_ARCH) $(SYSROOT:%=--sysroot=%) \
	   -I$(SYSROOT)/usr/include/$(ARCH) $(WARN)
BPF_CFLAGS := $(BPF_TARGET) $(INC)
LIBS	:= -lbpf -lelf -lz -lpthread

HEADERS	:= $(wildcard include/arenite/*.h src/core/*.h src/bpf/*.h src/user/*.h)
LIB_SRC	:= $(wildcard src/user/*.c)
LIB_OBJ	:= $(LIB_SRC:src/user/%.c=$(B)/lib/%.o)
PUBLIC	:= $(addprefix $(B)/include/arenite/,arenite.h arenite.bpf.h feature.h layout.h stats.h)

.PHONY: all lib deps demo check clean help install
all: lib
lib: $(B)/libarenite.a $(B)/libarenite.so $(B)/arenite.pc $(B)/arenite.bpf.o $(PUBLIC)

deps:
	@scripts/install-deps.sh

# BPF objects are built on Debian 12's clang 19; the header tests say what else is tried.
$(B)/%.bpf.o: src/bpf/%.bpf.c $(HEADERS)
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -c $< -o $@
$(B)/arenite_sys.skel.h: $(B)/sys.bpf.o
	$(BPFTOOL) gen skeleton $< name arn_sys_bpf > $@.tmp && mv $@.tmp $@

# One set of objects for both libraries.
$(B)/lib/%.o: src/user/%.c $(HEADERS) $(B)/arenite_sys.skel.h
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -DARN_SHARED_LIBRARY -fPIC -fno-semantic-interposition -c $< -o $@
$(B)/libarenite.a: $(LIB_OBJ)
	rm -f $@ && $(AR) rcs $@ $^
$(B)/libarenite.so: $(LIB_OBJ) src/user/libarenite.map
	$(CC) -shared -Wl,-soname,libarenite.so.0 -Wl,--version-script=src/user/libarenite.map -o $@ $(LIB_OBJ) $(LIBS)
	ln -sf libarenite.so $(B)/libarenite.so.0

# One file for BPF programs: the core and its port pasted into the public header.
$(B)/include/arenite/arenite.bpf.h: $(HEADERS) scripts/amalgamate.sh
	@mkdir -p $(@D)
	scripts/amalgamate.sh include/arenite/arenite.bpf.h > $@.tmp && mv $@.tmp $@
$(B)/include/arenite/%.h: include/arenite/%.h
	@mkdir -p $(@D)
	cp $< $@

PREFIX	?= /usr/local
$(B)/arenite.pc: Makefile
	@mkdir -p $(@D)
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' \
		'Name: arenite' 'Description: memory allocator for BPF arenas' 'Version: $(VERSION)' \
		'Requires.private: libbpf' 'Libs: -L$${libdir} -larenite' 'Libs.private: $(LIBS)' \
		'Cflags: -I$${includedir}' > $@

# The set-up, the build, then the benchmark table on this kernel (or why not, and the native one).
demo: deps
	@$(MAKE) --no-print-directory tool
	@$(B)/arenite demo

clean:
	rm -rf $(B)

help:
	@echo 'make              build/arenite, libarenite, the headers to install'
	@echo 'make demo         install what is missing, build, measure (as root: on the running kernel)'
	@echo 'make check        the same set-up, then every test; TESTS=pattern runs some'
	@echo 'make deps         install what is missing'
	@echo 'make install      PREFIX=, DESTDIR='
	@echo 'make fuzz         the fuzzers for FUZZ_SECONDS'
	@echo 'make vmtest       the BPF tests on Linux 6.12, 6.16, 6.18 and 7.3, in QEMU; KERNEL=6.12 runs one'
	@echo 'make torture      everybody at once, a thousand kills, every instruction and word: half an hour'
	@echo 'make freshtest    make demo and make check on a bare Debian 12 and 13'
	@echo 'make lint         clang-tidy, cppcheck, sparse (address spaces), shellcheck, clang-format; make format'
	@echo 'make cross        everything built for arm64, the unit tests run there by qemu-user'

# Every part adds its test programs here; tests/tests.mk, last, runs them.
CHECKS	   :=
CHECK_DEPS :=
TORTURE	   :=

-include bench/bench.mk
-include tool/tool.mk
-include examples/examples.mk
-include docs/docs.mk
-include scripts/install.mk
include tests/tests.mk
-include tests/lint/lint.mk
-include scripts/cross.mk
