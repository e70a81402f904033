#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# keeper.bats - 'arenite keeper PIN': one at a time, until a signal.  What a keeper does for programs is in
# tests/bpf/keeper.c and growth.c.

load helper

setup_file() { mount_bpffs; }
teardown_file() { umount_bpffs; }

# A heap of its own for each test.
setup() {
	[ -z "$LACKS" ] || skip "$LACKS"
	heap=$FS/$BATS_TEST_NUMBER
	"$top/build/cli/pinheap" "$heap" 0
	kept=
}

teardown() {
	[ -z "${kept:-}" ] || kill -KILL "$kept" 2>/dev/null || true
	[ -z "${heap:-}" ] || rm -f "$heap"
}

# begin OPTION...: a keeper in the background, at work; its output is in keeper.out and keeper.err.
begin() {
	local i
	"$arenite" keeper "$@" "$heap" >"$BATS_TEST_TMPDIR/keeper.out" 2>"$BATS_TEST_TMPDIR/keeper.err" </dev/null 3>&- &
	kept=$!
	for ((i = 0; i < 300; i++)); do
		[ "$(stat_of keeper)" != 0 ] && return 0
		sleep 0.05
	done
	fail "no keeper after 15 s: $(cat "$BATS_TEST_TMPDIR/keeper.err")"
}

stat_of() { "$arenite" stats "$heap" --json >"$BATS_TEST_TMPDIR/stats" && "$jsonpath" "$BATS_TEST_TMPDIR/stats" "heap.$1"; }

# end SIGNAL: it is gone, with its exit status in $status and its output in $out and $err.
end() {
	# shellcheck disable=SC2034 # out_has and err_has look there
	out=$BATS_TEST_TMPDIR/keeper.out err=$BATS_TEST_TMPDIR/keeper.err
	kill "-$1" "$kept"
	status=0
	wait "$kept" || status=$?
	kept=
}

@test "ends by SIGINT, SIGTERM and SIGHUP with status 0, and says what it did" {
	for signal in INT TERM HUP; do
		begin
		end "$signal"
		exits 0
		no_err
		out_has "^keeping $heap: "
		out_has "^kept $heap for .* s"
		[ "$(stat_of keeper)" = 0 ] || fail "the lease was not given back"
	done
}

@test "maps what the low watermark asks for, and leaves the watermarks in the heap" {
	[ "$(stat_of pages_mapped)" = 0 ] || fail "the heap was mapped before"
	begin --low-watermark=6M --high-watermark=16M
	for ((i = 0; i < 100; i++)); do
		[ "$(stat_of pages_free)" -ge 1536 ] && break
		sleep 0.1
	done
	end TERM
	exits 0
	[ "$(stat_of pages_free)" -ge 1536 ] || fail "less than 6 MiB are free"
	[ "$(stat_of low_watermark)" = $((6 << 20)) ] || fail "not the low watermark"
	[ "$(stat_of high_watermark)" = $((16 << 20)) ] || fail "not the high watermark"
}

@test "-v says on stderr what happens" {
	begin -v --low-watermark=6M
	sleep 2.5
	end TERM
	exits 0
	err_has "grown 9 MiB"
}

@test "--json is one document, at the end" {
	begin --json --low-watermark=4M
	sleep 1
	end TERM
	exits 0
	no_err
	is schema 1
	is pin "$heap"
	is growth.grown 6
	is growth.grow_failed 0
	[ "$(json pages_free)" -ge 1024 ] || fail "less than 4 MiB are free"
	json seconds cpu_seconds pages_mapped growth.kept >/dev/null
}

@test "a second keeper exits 1 and names the process" {
	begin
	arn keeper "$heap"
	exits 1
	no_out
	err_has "process $(stat_of keeper) "
	arn keeper --json "$heap"
	json_error "process" 1
	end TERM
	exits 0
}

@test "a killed keeper's heap has a new one at once" {
	begin
	kill -KILL "$kept"
	wait "$kept" || true
	[ "$(stat_of keeper)" != 0 ] || fail "who was killed gave its lease back"
	try timeout -s INT 2 "$arenite" keeper "$heap"
	out_has "^kept $heap"
}

@test "watermarks that cannot be: exit 1, and the message says why" {
	arn keeper --low-watermark=1G "$heap"
	exits 1
	err_has "watermark"
	arn keeper --low-watermark=8M --high-watermark=9M "$heap"
	exits 1
	err_has "watermark"
}

@test "without BPF's capabilities: exit 77" {
	refused keeper "$heap"
	exits 77
	no_out
	err_has "CAP_BPF"
}

@test "idle, it takes less than a thousandth of a CPU" {
	begin --json --low-watermark=4M --high-watermark=32M
	sleep 6
	end TERM
	exits 0
	awk -v cpu="$(json cpu_seconds)" -v wall="$(json seconds)" 'BEGIN { exit !(cpu < wall / 1000) }' ||
		fail "$(json cpu_seconds) s of $(json seconds) s"
}
