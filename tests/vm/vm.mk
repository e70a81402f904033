# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# vm.mk - make vmtest: the BPF tests on other kernels, in QEMU (tests/vm/README.md).
#
# Any fragment may add a test for the guests: VM_TESTS += a program or script (exit 0, 77, else: as for
# tests/run.sh), VM_FILES += what it opens.  VM_EACH are those that ask every kernel something of its own: where
# several are run at once, the others take turns (vmtest.sh).  VM_TASKS also run where tasks preempt each other and
# on four CPUs: what depends on that.

VM		:= $(B)/vm
VM_TASKS	+= $(BT)/preempt $(BT)/preempt-noguard $(BT)/parallel $(BT)/interrupt $(BT)/basics
VM_EACH		+= $(addprefix $(BT)/,torture verifier features anycontext contexts structops bulk growth)
# Not kill and ring_kill: they stop a process at each of its own instructions, which is slow here and asks the kernel
# nothing new.  Nor nmi: it wants a disassembler and a machine's own watchpoints.
VM_TESTS	+= $(filter-out $(addprefix $(BT)/,kill ring_kill nmi nmi_mutant) $(VM_TASKS) $(VM_EACH),$(BT_TESTS:%=$(BT)/%)) $(EX)/hello
VM_FILES	+= tests/run.sh tests/bpf/verifier.golden $(B)/sys.bpf.o $(BT)/structops.bpf.o
VM_LISTS	:= $(VM)/all.tests $(VM)/each.tests $(VM)/tasks.tests $(VM)/figures.tests

.PHONY: vmtest
vmtest: all $(VM_TASKS) $(VM_EACH) $(VM_TESTS) $(VM_FILES)
	@mkdir -p $(VM)
	@echo $(VM_TASKS) $(VM_EACH) $(VM_TESTS) >$(VM)/all.tests
	@echo $(VM_TASKS) $(VM_EACH) >$(VM)/each.tests
	@echo $(VM_TASKS) >$(VM)/tasks.tests
	@echo $(BT)/verifier >$(VM)/figures.tests
	@echo $(sort $(VM_TASKS) $(VM_EACH) $(VM_TESTS) $(VM_FILES)) $(VM_LISTS) >$(VM)/files
	@tests/vm/vmtest.sh $(VM)
