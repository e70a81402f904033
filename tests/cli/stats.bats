#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# stats.bats - 'arenite stats PIN': a heap pinned by another process, and pins that are none.

load helper

setup_file() {
	mount_bpffs
	[ -n "$LACKS" ] || "$top/build/cli/pinheap" "$FS/heap" $((3 << 20))
}

teardown_file() { umount_bpffs; }

# For the tests that need a heap.
heap_needed() { [ -z "$LACKS" ] || skip "$LACKS"; }

# The names in a list of stats.h.
names() {
	sed -n "/^#define $1(X)/,/^\$/p" "$top/include/arenite/stats.h" | sed -nE 's/^[ \t]*X\(([^)]*)\).*/\1/p' |
		sed 's/".*//' | cut -d, -f"$2" | tr -d ' '
}

@test "prints every counter of a pinned heap with its unit" {
	heap_needed
	arn stats "$FS/heap"
	exits 0
	no_err
	no_escapes
	for name in $(names ARN_HEAP_STATS 1) $(names ARN_FAIL_STATS 2) $(names ARN_GROWTH_STATS 2); do
		out_has "^$name "
	done
	grep -qE '^arena_bytes +67108864 B' "$out" || fail "not the size it was made with"
}

@test "--json has every counter, and they balance" {
	local sum
	heap_needed
	arn stats "$FS/heap" --json
	exits 0
	no_err
	is schema 1
	is pin "$FS/heap"
	for name in $(names ARN_HEAP_STATS 1); do
		is "heap.$name.@" integer
	done
	for name in $(names ARN_FAIL_STATS 2); do
		is "failures.$name" 0
	done
	for name in $(names ARN_GROWTH_STATS 2); do
		is "growth.$name" 0
	done
	for name in $(names ARN_CLASS_STATS 1); do
		json "classes.*.$name" >/dev/null
	done
	is heap.arena_bytes 67108864
	sum=$(($(json heap.pages_free) + $(json heap.pages_slab) + $(json heap.pages_large) + $(json heap.pages_mags) + $(json heap.pages_percpu) + \
		$(json heap.pages_pending)))
	is heap.pages_mapped $sum
	[ "$(json heap.pages_free)" -ge $((3 << 20 >> 12)) ] || fail "less free than was reserved"
	paste -d' ' <(json 'classes.*.objects') <(json 'classes.*.live') <(json 'classes.*.in_slots') \
		<(json 'classes.*.in_depot') <(json 'classes.*.in_slabs') |
		awk '$1 != $2 + $3 + $4 + $5 { exit 1 }' || fail "a class does not balance"
}

@test "a pin that is missing: exit 1, and the message names it" {
	arn stats "$BATS_TEST_TMPDIR/no-such-heap"
	exits 1
	no_out
	err_has "/no-such-heap'"
	arn stats "$BATS_TEST_TMPDIR/no-such-heap" --json
	json_error "/no-such-heap'" 1
	no_err
}

@test "a file that is no pin: exit 1, and the message names it" {
	echo >"$BATS_TEST_TMPDIR/file"
	arn stats "$BATS_TEST_TMPDIR/file"
	exits 1
	no_out
	err_has "/file'"
}

@test "a pinned map that is no arena: exit 1, and the message says so" {
	heap_needed
	/usr/sbin/bpftool map create "$FS/hash" type hash key 4 value 4 entries 1 name clitest
	arn stats "$FS/hash"
	exits 1
	no_out
	err_has "$FS/hash\|arena"
}

@test "a pinned arena without a heap: exit 1, and the message says so" {
	heap_needed
	/usr/sbin/bpftool map create "$FS/arena" type arena key 0 value 0 entries 8192 name clitest flags 0x20400 2>/dev/null ||
		skip "this bpftool makes no arenas"
	arn stats "$FS/arena"
	exits 1
	no_out
	err_has "'clitest'"
}

@test "a pin that others may not open: not 0, and the message names it" {
	local copy
	heap_needed
	# A copy where everybody can reach it: the folders above this one may be closed.
	copy=$(mktemp)
	cp "$arenite" "$copy"
	chmod 755 "$copy"
	try setpriv --reuid=65534 --regid=65534 --clear-groups "$copy" stats "$FS/heap"
	rm -f "$copy"
	[ "$status" -ne 0 ] || fail "exit status 0"
	no_out
	err_has "$FS/heap"
}

@test "a heap is read without BPF's capabilities: the pin's own rights decide" {
	heap_needed
	refused stats "$FS/heap"
	exits 0
	out_has "^pages_mapped "
}
