#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# scx_tasks-test.sh [TASKS] - the scheduler under a storm of short tasks (10000), then with every third object and
# with all of them refused, then as its user runs it.  Each checks by itself that everything adds up.
#
# It replaces the scheduler of the machine meanwhile.  Exit 77: the kernel has no sched_ext, or another such
# scheduler runs.
set -u
cd "$(dirname "$0")/../.." || exit 1
program=${B:-build}/examples/scx_tasks
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

run() {
	echo "scx_tasks $*"
	"$program" "$@" >"$out" 2>&1
	rc=$?
	cat "$out"
	[ $rc -eq 0 ] || exit $rc
	grep -q 'all adds up' "$out" || exit 1
}

run --storm "${1:-10000}"
run --storm 1000 --refuse 3
run --storm 200 --refuse 1

# A table, then the interrupt key.
echo "scx_tasks"
"$program" --interval 1 >"$out" 2>&1 &
pid=$!
turn=0
while ! grep -q 'objects made' "$out" && [ $turn -lt 100 ]; do
	turn=$((turn + 1))
	sleep 1
done
kill -INT $pid
wait $pid
rc=$?
cat "$out"
[ $rc -eq 0 ] || exit 1
grep -qE "^ *$pid scx_tasks" "$out" || { echo "the table lacks the program itself"; exit 1; }
