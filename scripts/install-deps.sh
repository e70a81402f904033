#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# install-deps.sh - bring a fresh Debian 12 or 13 to where arenite builds and tests.
#
# Idempotent: it asks dpkg first and does nothing (and needs no root) when all is there.
# Debian 12's own libbpf (1.1) and UAPI headers (6.1) predate BPF arenas, so three packages come
# from bookworm-backports, over the mirror that apt already uses.
set -eu

# What the build, the tests and the benchmark's peers need.  README names them too.
base_pkgs="gcc libc6-dev clang-19 llvm-19 libclang-rt-19-dev pkg-config libelf-dev zlib1g-dev
	libjansson-dev libsmartcols-dev libcmocka-dev bats kmod"
peer_pkgs="libmimalloc-dev libjemalloc-dev libgoogle-perftools-dev"
backport_pkgs="libbpf-dev bpftool linux-libc-dev"
min_libbpf=1:1.4
min_uapi=6.12

say() { echo "install-deps: $*" >&2; }

. /etc/os-release
case "${VERSION_ID:-}" in
12) suite=bookworm-backports ;;
13) suite= ;;
*)
	say "this is '${PRETTY_NAME:-unknown}', not Debian 12 or 13: trying its own packages"
	suite=
	;;
esac

installed() { dpkg-query -W -f '${Version}\n' "$1" 2>/dev/null | head -n 1; }

missing=
for p in $base_pkgs $peer_pkgs; do
	[ -n "$(installed "$p")" ] || missing="$missing $p"
done
need_backports=
if ! dpkg --compare-versions "$(installed libbpf-dev)" ge $min_libbpf ||
	! dpkg --compare-versions "$(installed linux-libc-dev)" ge $min_uapi ||
	[ -z "$(installed bpftool)" ] ||
	! dpkg --compare-versions "$(installed bpftool)" ge 7.4; then
	need_backports=$backport_pkgs
fi
[ -n "$missing$need_backports" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	say "missing:$missing $need_backports"
	say "run it as root: sudo make deps"
	exit 1
fi

# The mirror that apt already uses for the release's own suite, deb822 or one-line format.
mirror_of_release() {
	awk '
		FILENAME ~ /\.sources$/ {
			if ($1 == "URIs:") uri = $2
			if ($1 == "Suites:" && ($2 == "'"$1"'")) { print uri; exit }
			next
		}
		$1 == "deb" {
			i = 2
			if ($2 ~ /^\[/) { while ($i !~ /\]$/) i++; i++ }
			if ($(i + 1) == "'"$1"'") { print $i; exit }
		}' /etc/apt/sources.list.d/*.sources /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null
}

export DEBIAN_FRONTEND=noninteractive
if [ -n "$suite" ] && [ -n "$need_backports" ] &&
	! grep -rqs "$suite" /etc/apt/sources.list /etc/apt/sources.list.d --include='*.list' --include='*.sources'; then
	mirror=$(mirror_of_release bookworm)
	if [ -z "$mirror" ]; then
		say "no apt source for 'bookworm' found to derive $suite from; add $suite by hand"
		exit 1
	fi
	echo "deb $mirror $suite main" >/etc/apt/sources.list.d/arenite-backports.list
	say "added $suite"
fi

apt-get -q update >&2
# shellcheck disable=SC2086
[ -z "$missing" ] || apt-get -q install -y --no-install-recommends $missing >&2
# shellcheck disable=SC2086
[ -z "$need_backports" ] ||
	apt-get -q install -y --no-install-recommends ${suite:+-t $suite} $need_backports >&2
