#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# headers.sh [BUILD] - the installed header in every way a program may use it: after linux/bpf.h and
# after vmlinux.h in its several forms, in two units of one object, and as declarations only, linked
# with arenite.bpf.o.  Each compiles without a warning, loads and runs.
#
# Only the clang and bpftool of the build are tried, and vmlinux.h of the running kernel; the forms
# that other versions of bpftool give it are imitated.
set -u

src=$(dirname "$0")
build=${1:-$src/../../build}
clang=${CLANG:-clang-19} bpftool=${BPFTOOL:-$(PATH=/usr/sbin:/usr/local/sbin:$PATH command -v bpftool)}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0

"$build/bpftest/headers-run" || exit $?

# compile OUT FLAGS...
compile() {
	local out=$1
	shift
	"$clang" -O2 -g -target bpf -mcpu=v4 -Wall -Wextra -Werror -Wno-unused-parameter -I"$build/include" \
		-isystem "$tmp" -isystem "/usr/include/$(gcc -dumpmachine)" "$@" -c "$src/header.bpf.c" -o "$tmp/$out"
}

# try NAME COMMAND...: one line a way
try() {
	local name=$1
	shift
	"$@" >"$tmp/log" 2>&1
	case $? in
	0)
		echo "ok: $name"
		;;
	77)
		echo "skipped: $name: $(tail -n 1 "$tmp/log")"
		;;
	*)
		echo "FAILED: $name"
		tail -n 20 "$tmp/log"
		failed=1
		;;
	esac
}

run() {
	"$build/bpftest/headers-run" "$tmp/$1"
}

plain() {
	compile plain.o && run plain.o
}

# libbpf before 1.6 (bpftool 7.6) cannot link two units that declare the same kernel function.
two_units() {
	compile a.o -DHDR_PROG=first && compile b.o -DHDR_PROG=second || return 1
	if ! "$bpftool" gen object "$tmp/two.o" "$tmp/a.o" "$tmp/b.o"; then
		grep -q 'failed to resolve size of underlying type' "$tmp/log" || return 1
		echo "this bpftool cannot link two units that declare the same kernel function: 7.6 can"
		return 77
	fi
	run two.o
}

# What works with any: one unit has the functions, the other declares them.
one_of_two() {
	compile a.o -DHDR_PROG=first && compile b.o -DHDR_PROG=second -DARN_LINKED &&
		"$bpftool" gen object "$tmp/one.o" "$tmp/a.o" "$tmp/b.o" && run one.o
}

declared() {
	compile decl.o -DARN_LINKED && "$bpftool" gen object "$tmp/linked.o" "$tmp/decl.o" "$build/arenite.bpf.o" &&
		run linked.o
}

# The object comes first, and there are two of it.
declared_twice() {
	compile d1.o -DARN_LINKED -DHDR_PROG=first && compile d2.o -DARN_LINKED -DHDR_PROG=second &&
		"$bpftool" gen object "$tmp/linked2.o" "$build/arenite.bpf.o" "$tmp/d1.o" "$tmp/d2.o" && run linked2.o
}

# vmlinux FLAGS... with $tmp/vmlinux.h as it is now
vmlinux() {
	compile vm.o -DHDR_VMLINUX "$@" && run vm.o
}

try "after linux/bpf.h" plain
try "in two units of one object" two_units
try "in one of two units" one_of_two
try "declarations, linked with arenite.bpf.o" declared
try "declarations in two units" declared_twice

if [ -r /sys/kernel/btf/vmlinux ] && "$bpftool" btf dump file /sys/kernel/btf/vmlinux format c >"$tmp/whole.h"; then
	cp "$tmp/whole.h" "$tmp/vmlinux.h"
	try "after vmlinux.h as bpftool writes it" vmlinux
	try "after vmlinux.h with BPF_NO_KFUNC_PROTOTYPES" vmlinux -DBPF_NO_KFUNC_PROTOTYPES
	try "declarations, after vmlinux.h" eval 'compile vd.o -DHDR_VMLINUX -DARN_LINKED &&
		"$bpftool" gen object "$tmp/vl.o" "$tmp/vd.o" "$build/arenite.bpf.o" && run vl.o'
	if grep -q 'bpf_arena_alloc_pages(' "$tmp/whole.h"; then
		sed 's/__attribute__((btf_type_tag("address_space(1)")))/__attribute__((address_space(1)))/g' \
			"$tmp/whole.h" >"$tmp/vmlinux.h"
		try "after vmlinux.h with address spaces (bpftool later than 7.5)" vmlinux
		sed 's/__attribute__((btf_type_tag("address_space(1)")))//g' "$tmp/whole.h" >"$tmp/vmlinux.h"
		try "after vmlinux.h with plain pointers (a kernel before 6.16)" vmlinux
	fi
	sed '/^#ifndef BPF_NO_KFUNC_PROTOTYPES/,/^#endif/d' "$tmp/whole.h" >"$tmp/vmlinux.h"
	try "after vmlinux.h without prototypes, ARN_DECLARE_KFUNCS" vmlinux -DARN_DECLARE_KFUNCS
else
	echo "skipped: vmlinux.h: no /sys/kernel/btf/vmlinux, or bpftool cannot read it"
fi
exit $failed
