#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# man-test.sh - the manual pages name every option that the command has, every function that the
# library exports and every one that arenite.bpf.h declares; the formatter has nothing to say.
set -u
cd "$(dirname "$0")/../.." || exit 1

man=${B:-build}/man
rc=0

# wants PAGE WHAT...: the page names each
wants() {
	local page=$1 text name
	text=$(sed 's/\\-/-/g' "$man/$page")
	shift
	for name in "$@"; do
		grep -qE -- "(^|[^a-z_-])$name($|[^a-z_-])" <<<"$text" || { echo "$page: does not mention $name"; rc=1; }
	done
}

for command in "" bench "bench list" "bench malloc-free" "bench malloc-xfree" "bench nmi" "bench percpu" "bench shared" check demo features keeper reap stats; do
	# shellcheck disable=SC2086,SC2046
	wants arenite.1 $("${B:-build}/arenite" $command --help | grep -oE '^ +(-[a-zA-Z?], )?--[a-z-]+' | grep -oE -- '--[a-z-]+')
done
# shellcheck disable=SC2046
{
	wants arenite.1 $("${B:-build}/arenite" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\{1,\}\)  .*/\1/p')
	wants arenite.1 $("${B:-build}/arenite" bench list | awk 'NR > 1 && NF { print $1 }')
	wants libarenite.3 $(grep -oE 'arn_[a-z_]+' src/user/libarenite.map | sort -u)
	wants arenite.bpf.3 $(grep -E '^[a-z_]' include/arenite/arenite.bpf.h | grep -oE '\barn_[a-z]+(_[a-z]+)*\(' | tr -d '(' | sort -u)
}

if grep -n '@' "$man"/*.[1-8]; then
	echo "placeholders are left"
	rc=1
fi
if command -v groff >/dev/null; then
	for page in "$man"/*.[1-8]; do
		said=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
		[ -z "$said" ] || { echo "$said"; rc=1; }
	done
fi
exit $rc
