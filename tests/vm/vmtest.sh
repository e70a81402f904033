#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# vmtest.sh DIR - runs what is packed in DIR/initramfs on other kernels, in QEMU without KVM: one line a test, then
# a matrix of tests and guests, with the reasons for what was skipped.  tests/vm/README.md says more.
#
# A kernel or QEMU that cannot be had is a skip by name, and the run passes.  Exit 0, 1 (something failed), 2.
#
# KERNEL="6.12 7.3"     which kernels; all (the default) are 6.12, 6.16, 6.18 and 7.3
# GUESTS="6.12-full"    which guests, by name, instead
# VM_SECONDS=N          the whole run's time: tests not reached by then are skipped
# VM_JOBS=N             guests at a time; one more than there are CPUs, as some of their time goes by waiting
# VM_PATIENCE=N         seconds for one download
# VM_UNBOOTED=skip      a guest that does not boot, tried twice, is no failure but a skip
# VM_WHOLE=1            every guest runs all its tests; else, where several kernels are run, those that ask a kernel
#                       nothing of its own take turns: each runs on one of them
# UPDATE=1              only measure the verifier, into tests/bpf/verifier.golden
set -eu
export LC_ALL=C

# NAME KERNEL CPUS TESTS COMMAND-LINE, the longest first
guests() {
	cat <<-'END'
		6.12       6.12  2  all
		7.3        7.3   2  all
		6.18       6.18  2  all
		6.16       6.16  2  all
		6.12-full  6.12  2  tasks  preempt=full
		7.3-4cpu   7.3   4  tasks
	END
}

[ $# -eq 1 ] || {
	echo "usage: vmtest.sh DIR (make vmtest)" >&2
	exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(cd "$1" && pwd)
deadline=$((EPOCHSECONDS + ${VM_SECONDS:-1800}))

say() { echo "vmtest: $*"; }

# ---- Which ----

if [ -n "${GUESTS:-}" ]; then
	column=1 want=$GUESTS
else
	column=2 want=${KERNEL:-all}
	[ "$want" != all ] || want="6.12 6.16 6.18 7.3"
fi
for name in $want; do
	guests | awk -v c=$column '{ print $c }' | grep -qxF "$name" || {
		say "'$name': there is none: kernels are 6.12, 6.16, 6.18, 7.3 and all; guests $(guests | awk '{ printf "%s ", $1 }')" >&2
		exit 2
	}
done
plan=$(guests | awk -v c=$column -v want=" $want " 'index(want, " " $c " ")')
[ -z "${UPDATE:-}" ] || plan=$(awk '$4 == "all" { $4 = "figures"; print }' <<<"$plan")

# Whose turn a test is.
lists=()
mapfile -t takers < <(awk '$4 == "all" { print $1 }' <<<"$plan")
if [ ${#takers[@]} -gt 1 ] && [ -z "${VM_WHOLE:-}" ]; then
	for ((turn = 0; turn < ${#takers[@]}; turn++)); do
		list=$dir/turn-${takers[turn]}.tests
		awk -v turn=$turn -v n=${#takers[@]} -v each="$(cat "$dir/each.tests")" '
			BEGIN { split(each, name, " "); for (i in name) on[name[i]] = 1; ORS = " " }
			{ for (i = 1; i <= NF; i++) if ($i in on || others++ % n == turn) print $i }' "$dir/all.tests" >"$list"
		lists+=("$list")
	done
	plan=$(awk '$4 == "all" { $4 = "turn-" $1 } 1' <<<"$plan")
fi

# ---- Run ----

# shellcheck disable=SC2046
"$here/fetch.sh" "$dir" qemu $(awk '!seen[$2]++ { print $2 }' <<<"$plan")
# shellcheck disable=SC2046
[ -e "$dir/qemu.missing" ] || "$here/pack.sh" "$dir" "$dir/initramfs" $(cat "$dir/files") "${lists[@]}"
rm -rf "$dir/log"
mkdir -p "$dir/log"

trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

ran=() absent=
while read -r name kernel cpus tests options; do
	for what in qemu "$kernel"; do
		[ ! -e "$dir/$what.missing" ] || absent+="not run: $name: $(cat "$dir/$what.missing")"$'\n'
		[ ! -e "$dir/$what.missing" ] || continue 2
	done
	while [ "$(jobs -rp | wc -l)" -ge "${VM_JOBS:-$(($(nproc) + 1))}" ]; do wait -n || true; done
	say "$name: Linux $(sed 's/^linux-[a-z]*-//' "$dir/linux-$kernel/package"), $cpus CPUs${options:+, $options}"
	# shellcheck disable=SC2086
	"$here/guest.sh" "$dir" "$name" "$kernel" "$cpus" "$tests" "$deadline" $options &
	ran+=("$name")
done <<<"$plan"
wait

# ---- Say ----

if [ ${#ran[@]} -eq 0 ]; then
	printf '\n%svmtest: no guest was run\n' "$absent"
	exit 0
fi

if [ -n "${UPDATE:-}" ]; then
	for name in "${ran[@]}"; do
		"$dir/../bpftest/verifier" --merge <"$dir/log/$name.figures" || exit 1
	done
	printf '%svmtest: tests/bpf/verifier.golden has the figures of %s\n' "$absent" "${ran[*]}"
	exit 0
fi

absent=$absent awk -v names="$(printf '%s\n' "${ran[@]}" | sort -V | tr '\n' ' ')" -v dir="$dir/log" -f "$here/matrix.awk"
