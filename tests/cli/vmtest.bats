#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# vmtest.bats - the test of a test: tests/vm/vmtest.sh judges guests that are told what to say (a script
# stands where QEMU would), so it is seen to fail where it must.

load helper

setup() {
	cd "$top" || return
	vm=$BATS_TEST_TMPDIR/vm
	mkdir -p "$vm/qemu/usr/bin" "$vm/qemu/bin" "$vm/linux-7.3"
	echo kernel >"$vm/linux-7.3/vmlinuz"
	echo linux-binary-7.3.0-amd64 >"$vm/linux-7.3/package"
	echo build/bpftest/one build/bpftest/two >"$vm/all.tests"
	echo build/bpftest/one >"$vm/tasks.tests"
	echo tests/run.sh "$vm/all.tests" "$vm/tasks.tests" >"$vm/files"
	printf '%s\n' '#!/bin/sh' 'cat >/dev/null' >"$vm/qemu/bin/busybox"
	cat >"$vm/qemu/usr/bin/qemu-system-x86_64" <<-END
		#!/bin/sh
		echo boot >>"$vm/boots"
		exec cat "$vm/boot"
	END
	chmod +x "$vm/qemu/usr/bin/qemu-system-x86_64" "$vm/qemu/bin/busybox"
	{
		echo "GUEST 7.3.0, 2 CPUs, preemption: none"
		echo "pass     120 ms  build/bpftest/one"
		echo "skip      30 ms  build/bpftest/two: kernel: no 'arena'"
		echo "GUEST_UP 12.50"
		echo "GUEST_RC=0"
	} >"$vm/boot"
}

vmtest() { GUESTS=7.3 try tests/vm/vmtest.sh "$vm"; }
boots() { [ "$(wc -l <"$vm/boots")" -eq "$1" ] || fail "booted $(wc -l <"$vm/boots") times instead of $1"; }

@test "a guest whose tests pass or are skipped passes, with the reasons" {
	vmtest
	exits 0
	out_has '^bpftest/two .*skip (1)'
	out_has "^(1) skip bpftest/two: kernel: no 'arena'"
	out_has '^vmtest: 2 passed, 0 failed, 1 skipped on 1 guests$'
	boots 1
}

@test "a guest with a failed test fails" {
	sed -i 's/^pass .*/FAIL     120 ms  build\/bpftest\/one (exit 1)/; s/RC=0/RC=1/' "$vm/boot"
	vmtest
	exits 1
	out_has '^(1) FAIL bpftest/one: (exit 1)'
}

@test "a guest whose kernel panics fails, and so do the tests after that" {
	sed -i '/^skip/,$d' "$vm/boot"
	echo "[   10.1] Kernel panic - not syncing: Fatal exception in interrupt" >>"$vm/boot"
	vmtest
	exits 1
	out_has 'FAIL guest: .*Kernel panic'
	out_has 'FAIL bpftest/two: not reached'
}

@test "a guest whose kernel warns fails, though its tests pass" {
	sed -i 's/^GUEST_UP/GUEST_LOG [   3.1] WARNING: CPU: 1 PID: 77 at kernel\/bpf\/arena.c:1\n&/' "$vm/boot"
	vmtest
	exits 1
	out_has 'FAIL guest: .*WARNING: CPU: 1'
	out_has '^bpftest/one .*pass'
}

@test "a guest that ends without a result fails" {
	sed -i '/^GUEST_RC/d' "$vm/boot"
	vmtest
	exits 1
	out_has 'FAIL guest: it died after: '
}

@test "a guest that says it failed fails, though no test says so" {
	sed -i 's/RC=0/RC=1/' "$vm/boot"
	vmtest
	exits 1
	out_has 'FAIL guest: GUEST_RC=1'
}

@test "a test that was never run fails" {
	sed -i '/^skip/d' "$vm/boot"
	vmtest
	exits 1
	out_has 'FAIL bpftest/two: not reached'
}

@test "a guest that does not come to its init is booted once more" {
	cat >"$vm/qemu/usr/bin/qemu-system-x86_64" <<-END
		#!/bin/sh
		echo boot >>"$vm/boots"
		[ "\$(wc -l <"$vm/boots")" -gt 1 ] || exec echo "qemu: no memory"
		exec cat "$vm/boot"
	END
	vmtest
	exits 0
	boots 2
}

@test "what a kernel complains of before its init is not ours" {
	sed -i '1i [    9.1] WARNING: CPU: 0 PID: 1 at drivers/x.c:1' "$vm/boot"
	vmtest
	exits 0
}

@test "a guest that never boots fails; with VM_UNBOOTED=skip it is a skip that says so" {
	echo "qemu: no memory" >"$vm/boot"
	vmtest
	exits 1
	boots 2
	out_has 'FAIL guest: it did not boot, twice; its last words: qemu: no memory'
	VM_UNBOOTED=skip vmtest
	exits 0
	out_has 'skip guest: it did not boot, twice'
	out_has '^vmtest: 0 passed, 0 failed, 3 skipped on 1 guests$'
}

@test "what is not reached in time is skipped" {
	sed -i '/^skip/,$d' "$vm/boot"
	printf '%s\n' '#!/bin/sh' "cat '$vm/boot'" 'exec sleep 60' >"$vm/qemu/usr/bin/qemu-system-x86_64"
	VM_SECONDS=3 vmtest
	exits 0
	out_has 'skip bpftest/two: not reached in time'
}

@test "a kernel that cannot be had is a skip by name" {
	rm -r "$vm/linux-7.3"
	mkdir "$BATS_TEST_TMPDIR/bin"
	for tool in bash sh dirname mkdir cat awk rm grep sed sort nproc; do
		ln -s "$(command -v $tool)" "$BATS_TEST_TMPDIR/bin/"
	done
	rm -r "$vm/qemu"
	PATH=$BATS_TEST_TMPDIR/bin vmtest
	exits 0
	out_has '^not run: 7.3: no Debian'
	out_has '^vmtest: no guest was run'
}

@test "where several kernels run, tests that ask none anything of its own take turns" {
	cp -r "$vm/linux-7.3" "$vm/linux-6.12"
	echo build/bpftest/one build/bpftest/two build/bpftest/three build/bpftest/four >"$vm/all.tests"
	echo build/bpftest/one >"$vm/each.tests"
	KERNEL="6.12 7.3" try tests/vm/vmtest.sh "$vm"
	[ "$(cat "$vm/turn-6.12.tests")" = "build/bpftest/one build/bpftest/two build/bpftest/four " ]
	[ "$(cat "$vm/turn-7.3.tests")" = "build/bpftest/one build/bpftest/three " ]
	VM_WHOLE=1 KERNEL="6.12 7.3" try tests/vm/vmtest.sh "$vm"
	exits 1
	out_has 'FAIL bpftest/four: not reached'
}

@test "a guest that there is not is a wrong call" {
	GUESTS=9.9 try tests/vm/vmtest.sh "$vm"
	exits 2
	err_has "'9.9': there is none"
}
