# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# examples.mk - examples/X/X.c and X.bpf.c become build/examples/X, built as a user of the installed
# library would build them.  Each runs as a test, by itself or by X/X-test.sh: what the README shows must work.

EX		:= $(B)/examples
EXAMPLES	:= hello scx_tasks
EX_BUILT	:= $(EXAMPLES:%=$(EX)/%)
EX_HEADERS	:= $(wildcard examples/*/*.h)

# bpftool 7.5 makes skeletons of struct_ops that set a member which libbpf 1.4 has not; nobody here needs it.
define example
$(EX)/$(1).bpf.o: examples/$(1)/$(1).bpf.c $(EX_HEADERS) $(PUBLIC)
	@mkdir -p $$(@D)
	$(CLANG) $(BPF_TARGET) -I$(B)/include -c $$< -o $$@
$(EX)/$(1).skel.h: $(EX)/$(1).bpf.o
	$(BPFTOOL) gen skeleton $$< name $(1)_bpf | sed '/^\tmap->link = /d' > $$@.tmp && mv $$@.tmp $$@
$(EX)/$(1): examples/$(1)/$(1).c $(EX_HEADERS) $(EX)/$(1).skel.h $(B)/libarenite.a $(PUBLIC)
	$(CC) -std=gnu11 $(WARN) $(CFLAGS) -I$(B)/include -I$(EX) $$< -o $$@ $(B)/libarenite.a $(LIBS)
endef
$(foreach e,$(EXAMPLES),$(eval $(call example,$(e))))

.SECONDARY: $(EXAMPLES:%=$(EX)/%.bpf.o) $(EXAMPLES:%=$(EX)/%.skel.h)
.PHONY: examples
examples: $(EX_BUILT)

CHECKS		+= examples/readme-test.sh \
		   $(foreach e,$(EXAMPLES),$(or $(wildcard examples/$(e)/$(e)-test.sh),$(EX)/$(e)))
CHECK_DEPS	+= $(EX_BUILT)

# In the guests of tests/vm, whose kernels have sched_ext.
VM_EACH	+= examples/scx_tasks/scx_tasks-test.sh
VM_FILES	+= $(EX)/scx_tasks
