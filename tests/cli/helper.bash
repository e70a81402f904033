# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
#
# helper.bash - what the bats files share.  A test calls 'arn ARGUMENTS...': the exit status is then in
# $status, stdout in the file $out, stderr in the file $err.

top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
arenite=$top/build/arenite
jsonpath=$top/build/cli/jsonpath
unset NO_COLOR

fail() {
	echo "$@" >&2
	[ ! -e "${out:-}" ] || { echo "stdout:" && head -c 2000 "$out"; } >&2
	[ ! -e "${err:-}" ] || { echo "stderr:" && head -c 2000 "$err"; } >&2
	return 1
}

# Runs any command that way.
try() {
	out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
	status=0
	"$@" >"$out" 2>"$err" </dev/null || status=$?
}

arn() { try timeout 120 "$arenite" "$@"; }

exits() { [ "$status" -eq "$1" ] || fail "exit status $status instead of $1"; }
out_has() { grep -qe "$1" "$out" || fail "stdout lacks '$1'"; }
err_has() { grep -qe "$1" "$err" || fail "stderr lacks '$1'"; }
out_lacks() { ! grep -qe "$1" "$out" || fail "stdout has '$1'"; }
err_lacks() { ! grep -qe "$1" "$err" || fail "stderr has '$1'"; }
no_out() { [ ! -s "$out" ] || fail "stdout is not empty"; }
no_err() { [ ! -s "$err" ] || fail "stderr is not empty"; }
no_escapes() { ! grep -q $'\033' "$out" "$err" || fail "escape sequences without a terminal"; }

# What stands at these paths of the document on stdout.
json() { "$jsonpath" "$out" "$@" || fail "no such JSON: $*"; }
is() { [ "$(json "$1")" = "$2" ] || fail "$1 is '$(json "$1")' instead of '$2'"; }

# An error as JSON: object of the schema, a message that has $1, the exit status $2.
json_error() {
	exits "$2"
	is schema 1
	is error.@ object
	json error.message | grep -qe "$1" || fail "error.message lacks '$1'"
	is error.exit "$2"
}

# Why BPF heaps don't work here, or nothing.
bpf_lacks() {
	local status=0 text
	text=$("$arenite" bench malloc-free -p 1 -n 1 -r 1 -w 0.001 -d 0.001 2>&1 >/dev/null </dev/null) || status=$?
	[ $status -ne 77 ] || tail -n 1 <<<"${text#arenite: }"
}

# Runs the command as somebody to whom BPF is refused: capabilities dropped if this is root.
refused() {
	if [ "$(id -u)" -eq 0 ]; then
		try timeout 300 setpriv --bounding-set=-bpf,-perfmon,-sys_admin "$arenite" "$@"
	else
		try timeout 300 "$arenite" "$@"
	fi
}

# After 'arn bench nmi'.  Whether this machine has a free watchpoint is not known here: the command says it lacks one, by name.
nmi_or_skip() {
	[ "$status" -ne 77 ] || ! grep -q "no watchpoint\|none fires" "$err" "$out" || skip "$(cat "$err" "$out")"
}

# For files whose heaps are pinned: mounts $FS, a BPF file system of the file's own, or says in $LACKS why not.
mount_bpffs() {
	LACKS=
	if [ "$(id -u)" -ne 0 ]; then
		LACKS="mounting a BPF file system needs root"
	else
		LACKS=$(bpf_lacks)
	fi
	export LACKS
	export FS=$BATS_FILE_TMPDIR/bpf
	[ -z "$LACKS" ] || return 0
	mkdir "$FS"
	mount -t bpf bpf "$FS"
}

umount_bpffs() { [ -n "$LACKS" ] || umount "$FS"; }
