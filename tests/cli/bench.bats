#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.bats - 'arenite bench' on native heaps, which runs anywhere.  The document's form is an
# interface.  Durations here are too short to mean anything: these tests are not measurements.

load helper
load document

short=(-w 0.001 -d 0.001)

@test "bench list names the scenarios" {
	arn bench list
	exits 0
	no_err
	out_has "^malloc-free "
	out_has "^malloc-xfree "
}

@test "bench list --json does too" {
	arn bench list --json
	exits 0
	no_err
	is schema 1
	json "scenarios.*.name" | grep -qx malloc-free
	json "scenarios.*.name" | grep -qx malloc-xfree
	json "scenarios.*.text" >/dev/null
}

@test "--native --json: every field of the schema, one row a cell and allocator" {
	arn bench malloc-free --native --json -p 1,2 -n 1,16 -s 64 -r 3 "${short[@]}"
	exits 0
	document_ok malloc-free native 3
	rows_are arenite false "1 1" "1 16" "2 1" "2 16"
	rows_are floor false "1 1" "1 16" "2 1" "2 16"
	rows_are glibc false "1 1" "1 16" "2 1" "2 16"
	[ "$(json 'rows.*.bulk' | sort -u)" = false ] || fail "bulk rows without --bulk"
	[ "$(json 'rows.*.size' | sort -u)" = 64 ] || fail "another size"
}

@test "--native has a row for each allocator that was built in" {
	local worker
	arn bench malloc-free --native --json -p 1 -n 4 -r 1 "${short[@]}"
	exits 0
	for worker in "$top"/build/bench/native-*; do
		[ -x "$worker" ] || continue
		[ "${worker##*/native-}" != arenite-user ] || continue # with --user only
		rows_are "${worker##*/native-}" false "1 4"
	done
}

@test "--bulk adds rows of the bulk calls" {
	arn bench malloc-free --native --bulk --json -p 1,2 -n 64 -r 2 "${short[@]}"
	exits 0
	document_ok malloc-free native 2
	rows_are arenite true "1 64" "2 64"
	rows_are arenite false "1 64" "2 64"
}

@test "malloc-xfree has the same form" {
	arn bench malloc-xfree --native --bulk --json -p 1,2 -n 1,16 -r 2 "${short[@]}"
	exits 0
	document_ok malloc-xfree native 2
	rows_are arenite false "1 1" "1 16" "2 1" "2 16"
}

@test "-s sets the size of every row, -a is accepted" {
	arn bench malloc-free --native -a --json -p 1 -n 4 -s 200 -r 1 "${short[@]}"
	exits 0
	[ "$(json 'rows.*.size' | sort -u)" = 200 ] || fail "another size"
}

@test "without -r there are 15 repeats" {
	arn bench malloc-free --native --json -p 1 -n 4 "${short[@]}"
	exits 0
	document_ok malloc-free native 15
}

@test "-d is measured time: a run takes as long as its rows, and the numbers are times" {
	local begin ms rows
	begin=$(date +%s%N)
	arn bench malloc-free --native --json -p 1 -n 64 -r 2 -w 0.001 -d 0.1
	exits 0
	ms=$((($(date +%s%N) - begin) / 1000000))
	rows=$(json rows.#)
	[ $ms -ge $((rows * 200)) ] || fail "$rows rows of 2 x 0.1 s took only $ms ms"
	# A pair of calls can take neither no time nor a millisecond.
	awk -v a="$(json rows.0.alloc_ns.median)" 'BEGIN { exit !(a > 0.2 && a < 1e6) }' || fail "that is no time in ns"
}

@test "results go to stdout, progress to stderr" {
	arn bench malloc-free --native -p 1 -n 4 -r 2 "${short[@]}"
	exits 0
	no_escapes
	out_has arenite
	out_has glibc
	out_has " ns"
	err_has "repeat"
	err_lacks " ns"
	out_lacks "repeat 1"
}

@test "with --json stdout is the document and nothing else" {
	arn bench malloc-free --native --json -p 1 -n 4 -r 1 "${short[@]}"
	exits 0
	no_escapes
	# jsonpath refuses a second value behind the first; a table would be one.
	is schema 1
	[ "$(head -c 1 "$out")" = "{" ] || fail "something stands in front of it"
}

@test "a closed stdout is a failure, not a success" {
	[ -e /dev/full ] || skip "/dev/full is missing"
	status=0
	"$arenite" bench list --json >/dev/full 2>/dev/null </dev/null || status=$?
	exits 1
}

@test "percpu --cpus --json: memory grows with the CPUs and goes back" {
	arn bench percpu --json --cpus 2,16 -s 16
	exits 0
	[ "$(json areas.#)" = 6 ] || fail "not six rows"
	paste -d' ' <(json 'areas.*.cpus') <(json 'areas.*.objects') <(json 'areas.*.allocated') <(json 'areas.*.mib_during') \
		<(json 'areas.*.mib_after') | awk '$3 != $2 || $4 <= 0 || $4 * 1048576 > 1.25 * 16 * $1 * $2 + 65536 + 8192 * $1 ||
		$5 * 1048576 > 8192 * $1 { bad = 1 } END { exit bad || NR != 6 }' || fail "$(json 'areas.*.mib_during')"
}

@test "where BPF is refused bench says so in a line and exits 77" {
	refused bench malloc-free -p 1 -n 1 -r 1 "${short[@]}"
	exits 77
	no_out
	[ "$(wc -l <"$err")" -eq 1 ] || fail "not one line"
	err_has "CAP_BPF\|6\.12"
}

@test "with --json that is an error object" {
	refused bench malloc-free --json -p 1 -n 1 -r 1 "${short[@]}"
	json_error "CAP_BPF\|6\.12" 77
}
