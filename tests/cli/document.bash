# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
#
# document.bash - what every document of 'arenite bench malloc-*' must be, natively and on BPF.

# A number's type may be integer or real.
number() {
	case "$(json "$1.@")" in
	integer | real) ;;
	*) fail "$1 is no number" ;;
	esac
}

# {"median":,"min":,"max":,"samples":[$2 of them]}, and that they are what they are called.
spread_ok() {
	local field
	for field in median min max; do
		number "$1.$field" || return 1
	done
	is "$1.samples.#" "$2" || return 1
	json "$1.samples.*" | sort -g | awk -v median="$(json "$1.median")" -v min="$(json "$1.min")" -v max="$(json "$1.max")" '
		function near(a, b) { return a - b < 0.011 && b - a < 0.011 }
		{ v[NR] = $1 }
		END {
			m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
			exit !(near(v[1], min) && near(v[NR], max) && near(m, median))
		}' || fail "$1: median, min or max is not that of the samples"
}

# document_ok BENCH MODE REPEATS
document_ok() {
	local i rows
	is schema 1 || return 1
	is bench "$1" || return 1
	is machine.@ object || return 1
	is options.@ object || return 1
	is rows.@ array || return 1
	rows=$(json rows.#)
	[ "$rows" -gt 0 ] || fail "no rows" || return 1
	for ((i = 0; i < rows; i++)); do
		is "rows.$i.impl.@" string || return 1
		is "rows.$i.mode" "$2" || return 1
		is "rows.$i.producers.@" integer || return 1
		is "rows.$i.allocs.@" integer || return 1
		is "rows.$i.size.@" integer || return 1
		is "rows.$i.bulk.@" boolean || return 1
		is "rows.$i.fails" 0 || return 1
		number "rows.$i.loop_ns" || return 1
		spread_ok "rows.$i.alloc_ns" "$3" || return 1
		spread_ok "rows.$i.free_ns" "$3" || return 1
	done
}

# rows_are IMPL BULK "PRODUCERS ALLOCS"...: exactly one row for each of these cells.
rows_are() {
	local impl=$1 bulk=$2 have want
	shift 2
	want=$(printf '%s\n' "$@" | sort)
	have=$(paste -d' ' <(json 'rows.*.impl') <(json 'rows.*.bulk') <(json 'rows.*.producers') <(json 'rows.*.allocs') |
		awk -v i="$impl" -v b="$bulk" '$1 == i && $2 == b { print $3, $4 }' | sort)
	[ "$have" = "$want" ] || fail "rows of $impl (bulk $bulk): '$have' instead of '$want'"
}
