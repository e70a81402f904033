#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# heap.bats - 'arenite check PIN' and 'arenite reap PIN', on a heap that another process uses, was killed in,
# or has damaged.

load helper

setup_file() { mount_bpffs; }
teardown_file() { umount_bpffs; }

setup() {
	[ -z "$LACKS" ] || skip "$LACKS"
	"$top/build/cli/pinheap" "$FS/heap" $((3 << 20))
	user=
}

teardown() {
	[ -z "$user" ] || kill -9 "$user" 2>/dev/null || true
	rm -f "$FS/heap"
}

# A process that allocates from the heap until it is killed.
begin_use() {
	mkfifo "$BATS_TEST_TMPDIR/said"
	"$top/build/cli/pinheap" use "$FS/heap" >"$BATS_TEST_TMPDIR/said" 2>&1 3>&- </dev/null &
	user=$!
	head -n 1 "$BATS_TEST_TMPDIR/said" | grep -q ready || fail "it does not run"
}

end_use() {
	kill -9 "$user"
	wait "$user" || true
	user=
}

claimed() {
	arn stats --json "$FS/heap"
	json heap.slots_claimed
}

@test "check: a sound heap" {
	arn check "$FS/heap"
	exits 0
	no_err
	out_has "in one place"
	arn check --json "$FS/heap"
	exits 0
	is schema 1
	is pin "$FS/heap"
	is exact true
}

@test "check: a damaged heap is exit 1, and where it is" {
	"$top/build/cli/pinheap" poke "$FS/heap" $(((16 << 20) + (64 << 10) + 256)) 0x12345
	arn check "$FS/heap"
	exits 1
	no_out
	err_has "slot"
	arn check --json "$FS/heap"
	json_error "slot" 1
}

@test "check: a heap in use is not called damaged" {
	begin_use
	arn check --json "$FS/heap"
	exits 0
	is exact.@ boolean
	end_use
}

@test "reap: nothing to do on a heap that nobody died in" {
	arn reap --json "$FS/heap"
	exits 0
	is schema 1
	is pin "$FS/heap"
	is reaped 0
}

@test "reap: what a killed process had cached comes back, a living one's stays" {
	begin_use
	[ "$(claimed)" = 1 ] || fail "no slot"
	arn reap "$FS/heap"
	exits 0
	out_has "^$FS/heap: 0 slots"
	[ "$(claimed)" = 1 ] || fail "reaped alive"
	end_use
	[ "$(claimed)" = 1 ] || fail "given back by itself"
	arn reap --json "$FS/heap"
	exits 0
	is reaped 1
	[ "$(claimed)" = 0 ] || fail "still claimed"
	arn check --json "$FS/heap"
	is exact true
}

@test "what is no pin of a heap" {
	local command
	for command in check reap; do
		arn $command "$FS/nothing"
		exits 1
		err_has "$FS/nothing"
		arn $command
		exits 2
		arn $command "$FS/heap" "$FS/heap"
		exits 2
	done
}

@test "where BPF is refused reap says so and exits 77" {
	refused reap "$FS/heap"
	exits 77
	no_out
	err_has "CAP_BPF"
}
