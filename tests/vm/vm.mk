# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# vm.mk - make vmtest: the BPF tests on other kernels, in QEMU (tests/vm/README.md).
#
# Any fragment may add a test for the guests: VM_TESTS += a program or script (exit 0, 77, else: as for
# tests/run.sh), VM_FILES += what it opens.  VM_TASKS are those that also run where tasks preempt each other and on
# four CPUs: what depends on that.

VM		:= $(B)/vm
VM_TASKS	+= $(BT)/preempt $(BT)/preempt-noguard $(BT)/parallel $(BT)/interrupt $(BT)/basics
# Not kill: it stops a process at each of its own instructions, which is slow here and asks the kernel nothing new.
VM_TESTS	+= $(BT)/verifier $(filter-out $(BT)/verifier $(BT)/kill $(VM_TASKS),$(BT_TESTS:%=$(BT)/%)) $(EX)/hello
VM_FILES	+= tests/run.sh tests/bpf/verifier.golden $(B)/sys.bpf.o $(BT)/structops.bpf.o

.PHONY: vmtest
vmtest: all $(VM_TASKS) $(VM_TESTS) $(VM_FILES)
	@mkdir -p $(VM)
	@echo $(VM_TASKS) $(VM_TESTS) >$(VM)/all.tests
	@echo $(VM_TASKS) >$(VM)/tasks.tests
	@echo $(BT)/verifier >$(VM)/figures.tests
	@echo $(sort $(VM_TASKS) $(VM_TESTS) $(VM_FILES)) $(VM)/all.tests $(VM)/tasks.tests $(VM)/figures.tests >$(VM)/files
	@tests/vm/vmtest.sh $(VM)
