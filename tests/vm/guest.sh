#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# guest.sh DIR NAME KERNEL CPUS TESTS DEADLINE [COMMAND-LINE...] - boots one guest of vmtest.sh and judges it.
#
# Its console is in DIR/log/NAME.log; lines of tests come to standard output as they are said.  Then
# DIR/log/NAME.result has what judge.awk says of it, for the tests in DIR/TESTS.tests; what was not reached at
# DEADLINE (seconds since 1970) is skipped.  DIR/log/NAME.figures has the verifier's figures.
#
# A guest that never comes to its init is booted once more: no test was run, so nothing can be hidden by that.
set -eu
export LC_ALL=C

TEST_SECONDS=${TEST_SECONDS:-8} # each of the four tests of preemption and parallel use
TEST_TIMEOUT=${TEST_TIMEOUT:-400} # no test takes longer
BOOT=240 # nor does a boot take longer, which says nothing
STUCK=460 # no line of the console is later than that: the guest hangs

dir=$1 name=$2 kernel=$3 cpus=$4 tests=$5 deadline=$6
shift 6
here=$(cd "$(dirname "$0")" && pwd)
log=$dir/log/$name.log qemu=$dir/qemu
complaints='Kernel panic|WARNING:|BUG:|Oops|KASAN|rcu:.*(stall|detected)|soft lockup|hung task|blocked for more than'
# On a busy host the guest's CPUs stand still, then its clock leaps: 72 s were seen.  RCU calls that a stall.  Who
# really holds a CPU is seen by the watchdog (at twice its threshold) and by the test's own time.
patient='watchdog_thresh=60 rcupdate.rcu_cpu_stall_suppress=1'
# Emulated, "rep stos" takes a turn of a loop a byte, and these kernels clear with it whatever is allocated: without
# it, and without what else is slow here and tests nothing of ours, the tests take little more than half the time.
cpu=max,-erms,-fsrm,-la57,-smap,-smep
quick='mitigations=off init_on_alloc=0 clearcpuid=rep_good,erms,fsrm apparmor=0 audit=0 kfence.sample_interval=0'
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

# One boot, to its end.  Writes to $end how that came: off, stuck or late.
boot() {
	local left=$((deadline - EPOCHSECONDS)) limit=$BOOT patience line
	end=late
	: >"$log"
	[ "$left" -gt 0 ] || return 0
	end=
	exec 3< <(
		export LD_LIBRARY_PATH=$qemu/usr/lib/x86_64-linux-gnu:$qemu/lib/x86_64-linux-gnu
		exec timeout -k 10 $((left + 10)) "$qemu/usr/bin/qemu-system-x86_64" \
			-L "$qemu/usr/share/qemu" -L "$qemu/usr/share/seabios" \
			-nodefaults -no-reboot -display none -monitor none -serial stdio -nic none \
			-accel tcg,thread=multi -cpu $cpu -smp "$cpus" -m 1G \
			-kernel "$dir/linux-$kernel/vmlinuz" -initrd "$dir/initramfs" -append \
			"console=ttyS0 quiet panic=-1 $quick $patient VM_SET=$tests TEST_SECONDS=$TEST_SECONDS TEST_TIMEOUT=$TEST_TIMEOUT $*" </dev/null 2>&1
	)
	pid=$!
	while [ -z "$end" ]; do
		left=$((deadline - EPOCHSECONDS))
		[ "$left" -gt 0 ] || {
			end=late
			break
		}
		patience=$((left < limit ? left : limit))
		if IFS= read -r -t $patience -u 3 line; then
			line=${line%$'\r'}
			printf '%s\n' "$line" >>"$log"
			case "$line" in
			"GUEST "*) limit=$STUCK ;;
			pass\ * | skip\ * | FAIL\ *) printf '%-10s %s\n' "$name" "${line/build\//}" ;;
			"      | "*) printf '%-10s %s\n' "$name" "$line" ;;
			esac
		elif [ $? -le 128 ]; then
			end=off
		elif [ $patience -eq $limit ]; then
			end=stuck
		fi
	done
	kill "$pid" 2>/dev/null || true
	pid=
	exec 3<&-
}

boot "$@"
if [ "$end" != late ] && ! grep -q '^GUEST [0-9]' "$log"; then
	echo "vmtest: $name: it did not boot; once more"
	boot "$@"
fi
awk -v end="$end" -v bad="$complaints" -v unbooted="${VM_UNBOOTED:-}" -v names="$(cat "$dir/$tests.tests")" \
	-f "$here/judge.awk" "$log" >"$dir/log/$name.result"
sed -n 's/^GUEST_FIGURE //p' "$log" >"$dir/log/$name.figures"
