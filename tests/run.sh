#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# run.sh TEST... - runs test programs one after another: exit 0 is a pass, 77 a skip whose last
# line says what is missing, anything else a failure.  Of a test that passes, a line "skipped: ..."
# is a part that could not be tested, "note: ..." what a reader wants to see.  New WARNING or BUG lines in the
# kernel log fail the test that was running.  Set TESTS to a pattern to run only what matches, TEST_EXEC to a
# command that runs programs of another machine.
set -u

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0

kernel_complaints() {
	dmesg 2>/dev/null | grep -cE 'WARNING:|BUG:|Oops|rcu:.*stall|soft lockup|KASAN' || true
}

# Milliseconds, by what every shell and busybox can do (tests/vm runs this script in its guests).
now() {
	local up
	read -r up _ </proc/uptime
	echo "${up%.*}${up#*.}0"
}

for t in "$@"; do
	case "$t" in
	*${TESTS:-}*) ;;
	*) continue ;;
	esac
	before=$(kernel_complaints)
	start=$(now)
	# shellcheck disable=SC2086
	timeout -k 10 "${TEST_TIMEOUT:-300}" ${TEST_EXEC:-} "$t" >"$log" 2>&1
	rc=$?
	ms=$(($(now) - start))
	after=$(kernel_complaints)
	if [ "$after" -gt "$before" ]; then
		echo "kernel log: new warnings" >>"$log"
		dmesg | grep -E 'WARNING:|BUG:|Oops|rcu:.*stall|soft lockup|KASAN' | tail -3 >>"$log"
		rc=1
	fi
	case $rc in
	0)
		passed=$((passed + 1))
		printf 'pass  %6d ms  %s\n' "$ms" "$t"
		sed -nE 's/^(skipped|note): /      | &/p' "$log"
		;;
	77)
		skipped=$((skipped + 1))
		printf 'skip  %6d ms  %s: %s\n' "$ms" "$t" "$(tail -n 1 "$log")"
		;;
	*)
		failed=$((failed + 1))
		printf 'FAIL  %6d ms  %s (exit %d)\n' "$ms" "$t" "$rc"
		tail -n 60 "$log" | sed 's/^/      | /'
		;;
	esac
done
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
