#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench-bpf.bats - 'arenite bench' on a heap in the running kernel.  As in bench.bats, nothing here is
# a measurement.

load helper
load document

setup_file() {
	LACKS=$(bpf_lacks)
	export LACKS
}

setup() {
	[ -z "$LACKS" ] || skip "$LACKS"
}

short=(-w 0.001 -d 0.002)

@test "malloc-free --json: every field of the schema, one row a cell and implementation" {
	arn bench malloc-free --json -p 1,2 -n 1,16 -s 64 -r 3 "${short[@]}"
	exits 0
	document_ok malloc-free bpf 3
	for impl in arenite floor buddy-lock kernel; do
		rows_are $impl false "1 1" "1 16" "2 1" "2 16"
	done
	[ "$(json 'rows.*.bulk' | sort -u)" = false ] || fail "bulk rows without --bulk"
}

@test "--bulk adds rows of the bulk calls" {
	arn bench malloc-free --bulk --json -p 1,2 -n 64 -r 2 "${short[@]}"
	exits 0
	document_ok malloc-free bpf 2
	rows_are arenite true "1 64" "2 64"
	rows_are arenite false "1 64" "2 64"
}

@test "--native --user: rows of mode user beside those of native" {
	local cell rows
	arn bench malloc-free --native --user --json -p 1,2 -n 1,16 -r 2 "${short[@]}"
	exits 0
	is options.user true
	rows=$(paste -d' ' <(json 'rows.*.impl') <(json 'rows.*.mode') <(json 'rows.*.producers') <(json 'rows.*.allocs'))
	for cell in "1 1" "1 16" "2 1" "2 16"; do
		grep -qx "arenite user $cell" <<<"$rows" || fail "no row of mode user for $cell"
		grep -qx "arenite native $cell" <<<"$rows" || fail "no row of mode native for $cell"
	done
	[ "$(json 'rows.*.fails' | sort -u)" = 0 ] || fail "failures"
}

@test "malloc-xfree has the same form" {
	arn bench malloc-xfree --json -p 1,2 -n 1,16 -r 2 "${short[@]}"
	exits 0
	document_ok malloc-xfree bpf 2
	for impl in arenite floor buddy-lock kernel; do
		rows_are $impl false "1 1" "1 16" "2 1" "2 16"
	done
}

@test "percpu --json: rows of arenite and the kernel, with memory that goes back" {
	local i rows
	arn bench percpu --json -p 1,2 --batch 16,128 -s 64 -r 3 "${short[@]}"
	exits 0
	is schema 1
	is bench percpu
	rows=$(json rows.#)
	[ "$rows" -ge 4 ] || fail "$rows rows"
	for ((i = 0; i < rows; i++)); do
		for field in alloc_mops free_mops; do
			for stat in median min max; do
				number "rows.$i.$field.$stat"
			done
		done
		number "rows.$i.mib_during"
		number "rows.$i.mib_after"
		is "rows.$i.size" 64
		is "rows.$i.fails.@" integer
		[ "$(json "rows.$i.impl")" != arenite ] || is "rows.$i.fails" 0
	done
	[ "$(json 'rows.*.impl' | grep -c arenite)" = 4 ] || fail "not four rows of arenite"
}

@test "shared --json: both directions, each row's throughput" {
	[ "$(nproc)" -ge 2 ] || skip "needs two CPUs"
	arn bench shared --json -s 64 -r 3 "${short[@]}"
	exits 0
	is schema 1
	is bench shared
	is options.repeats 3
	local impl direction rows
	rows=$(paste -d' ' <(json 'rows.*.impl') <(json 'rows.*.direction'))
	for direction in bpf-to-user user-to-bpf; do
		for impl in arenite arenite-single ring ring-in-order; do
			[ "$(grep -cx "$impl $direction" <<<"$rows")" = 1 ] || fail "not one row of $impl, $direction"
		done
	done
	[ "$(json 'rows.*.fails' | sort -u)" = 0 ] || fail "failures"
	[ "$(json 'rows.*.mobjs_per_s.samples.*' | wc -l)" = 24 ] || fail "not three samples a row"
	paste -d' ' <(json 'rows.*.mobjs_per_s.min') <(json 'rows.*.mobjs_per_s.median') <(json 'rows.*.mobjs_per_s.max') |
		awk '!($1 <= $2 && $2 <= $3) || $3 <= 0 { exit 1 }' || fail "min, median and max are out of order"
}

@test "shared: what is no size, and what it does not take" {
	arn bench shared -s 0
	exits 2
	err_has "not a number of bytes"
	arn bench shared -p 2
	exits 2
}

@test "nmi --json: every pair of the interrupted rows has its NMI, and nothing fails" {
	local i pairs
	arn bench nmi --json -s 100 -r 3 "${short[@]}"
	nmi_or_skip
	exits 0
	is schema 1
	is bench nmi
	is options.size 100
	is options.repeats 3
	[ "$(json 'rows.*.case' | paste -sd' ')" = "quiet nmi-empty nmi-pair" ] || fail "other rows"
	for i in 0 1 2; do
		is "rows.$i.impl" arenite
		is "rows.$i.size" 100
		is "rows.$i.fails" 0
		spread_ok "rows.$i.pair_ns" 3
		pairs=$(json "rows.$i.pairs")
		[ "$pairs" -ge $((3 * 512)) ] || fail "$pairs pairs"
		[ $i -eq 0 ] || is "rows.$i.hits" "$pairs"
		[ $i -eq 0 ] || spread_ok "rows.$i.on_top_ns" 3
	done
	is rows.0.hits 0
	# The one figure that is sure: an exception takes longer than a pair without one.
	awk -v quiet="$(json rows.0.pair_ns.median)" -v nmi="$(json rows.1.pair_ns.median)" \
		'BEGIN { exit !(0 < quiet && quiet < nmi) }' || fail "interrupted pairs cost no more"
}

@test "nmi: each size that has a cache, down to one object a magazine" {
	local size
	for size in 8 4096 32768; do
		arn bench nmi -s $size -r 1 "${short[@]}"
		nmi_or_skip
		exits 0
		out_has "nmi-pair"
	done
}

@test "nmi: what is no size, and what it does not take" {
	local value
	for value in 0 x "" 32769; do
		arn bench nmi -s "$value"
		exits 2
		err_has "not a number of bytes"
	done
	arn bench nmi -p 2
	exits 2
}

@test "nmi without rights says so, and exits 77" {
	refused bench nmi -r 1 "${short[@]}"
	exits 77
	no_out
	err_has "arenite: "
}

@test "results go to stdout, progress to stderr" {
	arn bench malloc-free -p 1 -n 16 -r 2 "${short[@]}"
	exits 0
	no_escapes
	for word in arenite floor buddy-lock kernel " ns"; do
		out_has "$word"
	done
	err_has "repeat"
	err_lacks " ns"
	out_lacks "repeat 1"
}

@test "the largest round asked for by default works: 4096 objects, two producers" {
	arn bench malloc-free --json -a -p 2 -n 4096 -r 1 "${short[@]}"
	exits 0
	document_ok malloc-free bpf 1
	rows_are arenite false "2 4096"
}

@test "nothing stays behind in the kernel: no map or program of ours" {
	command -v /usr/sbin/bpftool >/dev/null || skip "bpftool is not installed"
	local before after
	before=$(/usr/sbin/bpftool -j map list | wc -c)
	arn bench malloc-free --json -p 1 -n 16 -r 1 "${short[@]}"
	exits 0
	# Maps die after a grace period, not at once.
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		after=$(/usr/sbin/bpftool -j map list | wc -c)
		[ "$after" -gt "$before" ] || return 0
		sleep 0.5
	done
	fail "maps are left: $(/usr/sbin/bpftool map list)"
}
