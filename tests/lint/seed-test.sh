#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# seed-test.sh - each file of tests/lint/seeds holds one mistake, and its second comment says which part
# of make lint finds it, and with which words.  It goes through the same rules as the tree.
set -u
cd "$(dirname "$0")/../.." || exit
failed=0

for seed in tests/lint/seeds/*; do
	read -r tool want < <(sed -nE '2,3s/^(\/\*|#) ([a-z]+): ([^*]*[^* ]).*/\2 \3/p' "$seed")
	case "$tool" in
	sparse | tidy) how=("build/lint/$seed.$tool") ;;
	cppcheck) how=(lint-cppcheck LINT_HOST="$seed") ;;
	shellcheck) how=(lint-shell LINT_SH="$seed" LINT_BATS=) ;;
	format) how=(lint-format LINT_C="$seed" LINT_H=) ;;
	house) how=(lint-house LINT_NO_ATOMICS="$seed") ;;
	*)
		echo "$seed: its second comment names no part of make lint"
		failed=1
		continue
		;;
	esac
	if out=$("${MAKE:-make}" -s --no-print-directory "${how[@]}" 2>&1) || ! grep -qF -e "$want" <<<"$out"; then
		echo "$seed: make ${how[*]} does not find it ('$want')"
		echo "${out//$'\n'/$'\n'      | }"
		failed=1
	fi
done
exit $failed
