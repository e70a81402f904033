#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# demo.bats - 'arenite demo': the table of this kernel, and of a native heap where BPF is refused.  Each
# run is a real one, so there are only two.

load helper

@test "where BPF is refused: one line says what is missing, then the native table; exit 0" {
	local begin=$SECONDS
	refused demo
	exits 0
	no_escapes
	[ "$(cat "$out" "$err" | grep -ci 'no heap in this kernel.*BPF arenas')" -eq 1 ] || fail "not one line that says what is missing"
	for word in arenite glibc " ns"; do
		out_has "$word"
	done
	out_lacks buddy-lock
	[ $((SECONDS - begin)) -lt 120 ] || fail "it took $((SECONDS - begin)) s"
}

@test "in this kernel: the table beside its baselines, in under two minutes" {
	local begin=$SECONDS lacks
	lacks=$(bpf_lacks)
	[ -z "$lacks" ] || skip "$lacks"
	arn demo --json
	exits 0
	no_escapes
	is schema 1
	[ $((SECONDS - begin)) -lt 120 ] || fail "it took $((SECONDS - begin)) s"
	for impl in arenite floor buddy-lock kernel; do
		grep -q "\"$impl\"" "$out" || fail "no row of $impl"
	done
}
