#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# cross-root.sh ARCH DIR - headers and libraries of another Debian architecture (arm64), unpacked in DIR:
# what a compiler takes as --sysroot.
#
# The packages are the libraries of install-deps.sh and what they depend on, from the sources that apt
# uses here.  apt runs on lists of its own below DIR.apt and believes that nothing is installed: the
# machine's apt and dpkg do not learn of the other architecture, and no root is needed.
set -eu
export LC_ALL=C

say() { echo "cross-root: $*" >&2; }
die() {
	say "$@"
	exit 1
}

[ $# -eq 2 ] || die "usage: cross-root.sh ARCH DIR (make cross)"
arch=$1
scripts=$(cd "$(dirname "$0")" && pwd)
for tool in apt-get dpkg-deb; do
	command -v $tool >/dev/null ||
		die "$tool is missing: this takes a Debian; elsewhere say make cross CROSS_ROOT=DIR, a folder with headers and libraries of $arch"
done
mkdir -p "$2"
root=$(cd "$2" && pwd)
apt=$root.apt
rm -rf "$root" "$apt"
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
trap 'rm -rf "$apt"' EXIT
: >"$apt/status"
cat >"$apt/apt.conf" <<-END
	Dir::State "$apt/state";
	Dir::State::status "$apt/status";
	Dir::Cache "$apt/cache";
	APT::Architecture "$arch";
	#clear APT::Architectures;
	APT::Architectures { "$arch"; };
	APT::Sandbox::User "root";
	APT::Install-Recommends "false";
END
export APT_CONFIG=$apt/apt.conf

# Not clang's runtime: it belongs to the compiler, which stays this machine's.
packages=$("$scripts/install-deps.sh" --apt | grep -E '^(lib[^/]*|linux-libc|zlib1g)-dev(/|$)' | grep -v '^libclang')
say "fetching $arch packages"
apt-get -q update </dev/null >"$apt/log" 2>&1 || say "apt-get update: failed for some source: going on with what it has"
# shellcheck disable=SC2086
apt-get -q -y --download-only install $packages </dev/null >>"$apt/log" 2>&1 || {
	tail -n 20 "$apt/log" >&2
	die "apt has not all of these for $arch: its messages above say which; does a source of /etc/apt name other architectures only (arch=, Architectures:)?"
}

# As on a merged system, whichever layout the packages have.
mkdir -p "$root/usr/lib"
ln -s usr/lib "$root/lib"
for deb in "$apt"/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$root"
done
# An absolute link would lead to this machine's own files.
find "$root" -type l -lname '/*' | while IFS= read -r link; do
	ln -sfr "$root$(readlink "$link")" "$link"
done
