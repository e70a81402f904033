# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bpf.mk - tests in the running kernel: build/bpftest/X from X.c, rig.c and its BPF objects, which
# include the installed form of the header (build/include).

BT		:= $(B)/bpftest
BT_TESTS	:= verifier basics bulk ring ring_top ring_kill refuse exhaust emergency grow growth shortage keeper \
		   contexts structops share adopt globals interrupt parallel preempt checked features anycontext user percpu
BT_TESTS	+= kill procs walk scribble nmi nmi_mutant
BT_OBJS		:= ops ring pack churn growth contexts globals verifier verifier_any bare features anycontext percpu nmi nmi_mutant
BT_BPF_CFLAGS	:= $(BPF_TARGET) -I$(B)/include -Itests/bpf -Ibench
BT_CFLAGS	= -std=gnu11 -D_GNU_SOURCE $(WARN) -Wshadow -I$(B)/include -I$(B)/include/arenite -Isrc/user -Itests/bpf -I$(BT) $(CFLAGS) \
		  -DTEST_DIR='"$(abspath $(BT))"' -DTEST_SRC='"$(abspath tests/bpf)"'
BT_HEADERS	:= $(wildcard tests/bpf/*.h) bench/kern.bpf.h

CHECKS		+= $(BT_TESTS:%=$(BT)/%) tests/bpf/headers.sh
CHECK_DEPS	+= $(BT_TESTS:%=$(BT)/%) $(BT)/headers-run

$(BT)/%.bpf.o: tests/bpf/%.bpf.c $(BT_HEADERS) $(PUBLIC)
	@mkdir -p $(@D)
	$(CLANG) $(BT_BPF_CFLAGS) -c $< -o $@
$(BT)/verifier_any.bpf.o: tests/bpf/verifier.bpf.c $(BT_HEADERS) $(PUBLIC)
	@mkdir -p $(@D)
	$(CLANG) $(BT_BPF_CFLAGS) -DARN_PAGES_ANY_CONTEXT -c $< -o $@
$(BT)/%.skel.h: $(BT)/%.bpf.o
	$(BPFTOOL) gen skeleton $< name $*_bpf > $@.tmp && mv $@.tmp $@
$(BT)/%.o: tests/bpf/%.c $(BT_HEADERS) $(BT_OBJS:%=$(BT)/%.skel.h) $(PUBLIC)
	@mkdir -p $(@D)
	$(CC) $(BT_CFLAGS) -c $< -o $@
$(BT_TESTS:%=$(BT)/%) $(BT)/headers-run: $(BT)/%: $(BT)/%.o $(BT)/rig.o $(B)/libarenite.a
	$(CC) -o $@ $^ -lcmocka -lm $(LIBS)
$(BT)/growth $(BT)/shortage $(BT)/keeper: $(BT)/growth_rig.o
$(BT)/parallel $(BT)/preempt: $(BT)/crowd.o

# The test of a test: preempt.c, with the claim of a cache compiled out (only in the guests of tests/vm).
$(BT)/noguard.bpf.o: tests/bpf/churn.bpf.c $(BT_HEADERS) $(PUBLIC)
	@mkdir -p $(@D)
	$(CLANG) $(BT_BPF_CFLAGS) -DARN_TEST_NO_GUARD -c $< -o $@
$(BT)/noguard.skel.h: $(BT)/noguard.bpf.o
	$(BPFTOOL) gen skeleton $< name churn_bpf > $@.tmp && mv $@.tmp $@
$(BT)/preempt-noguard: tests/bpf/preempt.c tests/bpf/crowd.c $(BT)/noguard.skel.h $(BT)/rig.o $(B)/libarenite.a
	$(CC) $(BT_CFLAGS) -DTEST_NO_GUARD -o $@ $(filter %.c %.o %.a,$^) -lcmocka -lm $(LIBS)
# Torture: the library and the BPF programs wait at marked points (arn_linger).
BT_SLOW_LIB	:= $(LIB_SRC:src/user/%.c=$(BT)/slow/%.o)
CHECKS		+= $(BT)/torture
CHECK_DEPS	+= $(BT)/torture
TORTURE		+= $(BT)/torture $(BT)/kill $(BT)/scribble $(BT)/nmi $(BT)/interrupt
VM_FILES	+= $(BT)/torture-plain
$(BT)/slow/sys.bpf.o: src/bpf/sys.bpf.c $(HEADERS)
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -DARN_TEST_LINGER -c $< -o $@
$(BT)/slow/arenite_sys.skel.h: $(BT)/slow/sys.bpf.o
	$(BPFTOOL) gen skeleton $< name arn_sys_bpf > $@.tmp && mv $@.tmp $@
$(BT_SLOW_LIB): $(BT)/slow/%.o: src/user/%.c $(HEADERS) $(BT)/slow/arenite_sys.skel.h
	@mkdir -p $(@D)
	$(CC) -I$(BT)/slow $(ALL_CFLAGS) -DARN_TEST_LINGER -c $< -o $@
$(BT)/churn_slow.bpf.o: tests/bpf/churn.bpf.c $(BT_HEADERS) $(PUBLIC)
	@mkdir -p $(@D)
	$(CLANG) $(BT_BPF_CFLAGS) -DARN_TEST_LINGER -c $< -o $@
$(BT)/torture.o: $(BT)/churn_slow.skel.h
$(BT)/torture: $(BT)/torture.o $(BT)/rig.o $(BT_SLOW_LIB) | $(BT)/torture-plain
	$(CC) -o $@ $(filter-out %-plain,$^) -lcmocka -lm $(LIBS)
$(BT)/torture-plain.o: tests/bpf/torture.c $(BT_HEADERS) $(BT_OBJS:%=$(BT)/%.skel.h) $(PUBLIC)
	$(CC) $(BT_CFLAGS) -DTORTURE_PLAIN -c $< -o $@
$(BT)/torture-plain: $(BT)/torture-plain.o $(BT)/rig.o $(B)/libarenite.a
	$(CC) -o $@ $^ -lcmocka -lm $(LIBS)

$(BT)/nmi $(BT)/nmi_mutant: $(BT)/sites.o
$(BT)/structops: | $(BT)/structops.bpf.o

.SECONDARY: $(BT_OBJS:%=$(BT)/%.bpf.o) $(BT_OBJS:%=$(BT)/%.skel.h) $(BT_TESTS:%=$(BT)/%.o) $(BT)/rig.o $(BT)/growth_rig.o $(BT)/torture.o $(BT)/torture-plain.o \
	$(BT)/headers-run.o
