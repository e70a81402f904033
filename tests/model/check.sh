#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# check.sh MODEL.pml DIR - has spin go through every state of the variants that the model's own comment names:
# "holds: FLAGS  why" must end without an error, "fails: FLAGS  why" must find one.  Works in DIR, which it makes.
set -u
model=$(realpath "$1")
command -v spin >/dev/null || {
	echo "spin is not installed: make deps"
	exit 77
}
rm -rf "$2"
mkdir -p "$2" && cd "$2" || exit 1
rc=0

# search OPTIMISE FLAGS: what pan has to say.  (Its exit status tells nothing of errors it found.)
search() {
	# shellcheck disable=SC2086
	spin $2 -a "$model" && ${CC:-gcc} "$1" -w -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m10000
}

while read -r want flags; do
	flags=${flags%%  *}
	# A search that finds something is short: compiling well would take longer.
	optimise=-O0
	[ "$want" = fails: ] || optimise=-O1
	out=$(search $optimise "$flags" 2>&1)
	errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' <<<"$out")
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' <<<"$out")
	# A search that was cut short has shown nothing.
	if [ -z "$errors" ] || grep -qE 'max search depth too small|out of memory' <<<"$out"; then
		echo "FAILED: $flags: the search was not completed"
		tail -n 5 <<<"$out"
		rc=1
	elif [ "$want" = holds: ] && [ "$errors" != 0 ]; then
		echo "FAILED: $flags: $(grep -m 1 '^pan:1' <<<"$out")"
		rc=1
	elif [ "$want" = fails: ] && [ "$errors" = 0 ]; then
		echo "FAILED: $flags: no error in $states states, where there must be one"
		rc=1
	else
		echo "ok: $flags ${want%:} ($states states)"
	fi
done < <(sed -n 's/^ \*  *\(holds:\|fails:\) */\1 /p' "$model")
exit $rc
