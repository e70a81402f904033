#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# run-bats.sh FILE.bats - one bats file as a test program: 0 passed, 1 failed, 77 all its tests were
# skipped; then the last line is the first one's reason.  Skips among passes are listed last.
set -u

if ! command -v bats >/dev/null; then
	echo "bats is not installed: make deps"
	exit 77
fi
out=$(bats --tap "$1" 2>&1 </dev/null)
rc=$?
echo "$out"
[ $rc -eq 0 ] || exit 1
total=$(grep -c '^ok ' <<<"$out")
skips=$(grep -E '^ok [0-9]+ .*# skip' <<<"$out")
[ "$total" -gt 0 ] || {
	echo "$1: ran no test"
	exit 1
}
[ -n "$skips" ] || exit 0
echo "$skips"
if [ "$(wc -l <<<"$skips")" -eq "$total" ]; then
	sed -n '1s/.*# skip *//p' <<<"$skips" | sed 's/^(\(.*\))$/\1/'
	exit 77
fi
