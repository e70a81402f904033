#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# features.bats - 'arenite features': the table of what this kernel has.  Whether its answers are right is
# asked in tests/bpf/features.c.

load helper

# The names in the list of feature.h.
names() { sed -nE 's/^\tX\("([^"]*)".*/\1/p' "$top/include/arenite/feature.h"; }

# One that the last document says about: has '' NAME..., lacks.
first() { paste -d' ' <(json 'features.*.found') <(json 'features.*.name') | awk -v what="$1" '$1 == what { print $2; exit }'; }

@test "prints every feature, and what is without it" {
	arn features
	exits 0
	no_err
	no_escapes
	for name in $(names); do
		grep -qE "^$name +(yes|no|cannot tell) " "$out" || fail "no line of $name"
	done
	out_has "without it"
}

@test "--json has the same, with the kernel's names" {
	arn features --json
	exits 0
	no_err
	is schema 1
	[ "$(json 'features.*.name')" = "$(names)" ] || fail "other names than in feature.h"
	json 'features.*.kind' 'features.*.what' 'features.*.since' 'features.*.needed' 'features.*.without' >/dev/null
}

@test "names choose lines" {
	arn features arena btf
	exits 0
	[ "$(grep -cE '(yes|no) ' "$out")" -eq 2 ] || [ -n "$(bpf_lacks)" ] || fail "not two lines"
}

@test "a name asks: 0 where this kernel has it, 77 and why where not" {
	local yes no
	arn features --json
	yes=$(first true) no=$(first false)
	if [ -n "$yes" ]; then
		arn features "$yes"
		exits 0
		no_err
	fi
	[ -n "$no" ] || skip "this kernel has everything"
	arn features "$no"
	exits 77
	no_out
	err_has "'$no'"
	arn features "$yes" "$no" --json
	json_error "'$no'" 77
	no_err
}

@test "where BPF is refused the names are still found, and the rest cannot be told" {
	refused features
	exits 0
	grep -qE '^arena +cannot tell ' "$out" || fail "arena can be told"
	grep -qE '^(syscall) +yes ' "$out" || skip "this kernel has no BTF"
	refused features arena
	exits 77
	err_has CAP_BPF
}
