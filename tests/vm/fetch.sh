#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# fetch.sh DIR WHAT... - brings to DIR what the guests are made of: 'qemu' (with busybox), or a kernel by its
# release: '6.12'.  DIR/qemu is then an unpacked system, DIR/linux-6.12/vmlinuz a kernel; what is there already
# is left alone.  Nothing is installed, and no rights are needed.
#
# Everything is a Debian package, from the mirror that apt uses here, by a private apt configuration:
# kernels from bookworm-backports and trixie-backports, QEMU from bookworm-backports on Debian 12 (its own, 7.2,
# does not boot these kernels) and from the release itself on Debian 13.
#
# What cannot be had is no error: DIR/WHAT.missing then has the reason, in one line.
set -eu
export LC_ALL=C

PATIENCE=${VM_PATIENCE:-150} # seconds for one call of apt-get

[ $# -ge 2 ] || {
	echo "usage: fetch.sh DIR WHAT..." >&2
	exit 2
}
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
deps=$(cd "$(dirname "$0")/../../scripts" && pwd)/install-deps.sh
ready=

say() { echo "vmtest: $*" >&2; }
missing() { # WHAT REASON
	echo "$2" >"$dir/$1.missing"
	say "$1: $2"
}

# apt with a configuration of its own: nothing of this machine but the list of what is installed, less what
# shall come in any case (and so brings what it needs).
apt() {
	local tool=$1 a=$dir/apt
	shift
	timeout -k 10 "$PATIENCE" "$tool" -q -o Dir::State::lists="$a/lists" -o Dir::State::status="$a/status" \
		-o Dir::State::extended_states="$a/extended_states" -o Dir::Cache="$a/cache" \
		-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$a/sources" \
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts="$a/none" -o Dir::Log="$a/log" \
		-o APT::Sandbox::User=root -o Debug::NoLocking=1 -o Acquire::Retries=2 -o Acquire::http::Timeout=20 \
		-o Acquire::Languages=none "$@" </dev/null
}

# The lists of packages, once a run.  Writes the reason to $why if that fails.
apt_ready() {
	local suite n=0
	[ -z "$ready" ] || [ "$ready" = yes ] || return 1
	[ -z "$ready" ] || return 0
	ready=no
	why="no Debian: kernels and QEMU come from its packages"
	command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	case "$codename" in
	bookworm) release=bookworm-backports ;;
	trixie) release=trixie ;;
	*)
		why="this is neither Debian 12 nor 13: its QEMU is not known to boot the guests"
		return 1
		;;
	esac
	why="the guests are x86-64 systems, this machine is none"
	[ "$(dpkg --print-architecture)" = amd64 ] || return 1
	mkdir -p "$dir"/apt/{lists,cache,sources,none,log}
	rm -f "$dir"/apt/sources/*
	for suite in "$codename" bookworm-backports trixie-backports; do
		why="apt: no source here tells which mirror serves Debian $codename"
		n=$((n + 1))
		"$deps" --source "$suite" >"$dir/apt/source" 2>/dev/null || return 1
		if grep -q ^deb "$dir/apt/source"; then
			mv "$dir/apt/source" "$dir/apt/sources/$n.list"
		else
			mv "$dir/apt/source" "$dir/apt/sources/$n.sources"
		fi
	done
	awk 'BEGIN { RS = ""; ORS = "\n\n" } !/^Package: (qemu|busybox)/' /var/lib/dpkg/status >"$dir/apt/status"
	say "reading what $codename, bookworm-backports and trixie-backports have"
	apt apt-get update >"$dir/apt/update.log" 2>&1 || true
	# apt-get says 0 for what it could not fetch if older lists are there.
	why="apt: $(grep -E '^(W|E):' "$dir/apt/update.log" | head -n 1 | cut -c 4-160)"
	[ -n "$(find "$dir/apt/lists" -name '*Packages*' | head -n 1)" ] || return 1
	ready=yes
}

fetch_qemu() {
	local deb
	rm -rf "$dir/apt/cache/archives" "$dir/qemu.new"
	say "fetching QEMU from $release"
	apt apt-get -y --no-install-recommends -t "$release" --download-only install qemu-system-x86 busybox-static \
		>"$dir/apt/qemu.log" 2>&1 || {
		why="apt: $(grep -E '^E:' "$dir/apt/qemu.log" | head -n 1 | cut -c 4-160)"
		return 1
	}
	mkdir "$dir/qemu.new"
	for deb in "$dir"/apt/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -C "$dir/qemu.new" -x --exclude='./usr/share/doc' --exclude='./usr/share/man'
	done
	mv "$dir/qemu.new" "$dir/qemu"
	rm -rf "$dir/apt/cache/archives"
}

# The newest of a release that Debian has, in its smallest build.
fetch_kernel() { # RELEASE
	local names version package deb
	names=$(apt apt-cache search --names-only \
		"^linux-(image|binary)-${1//./\\.}(\\.[0-9]+)*\\+deb[0-9.]+-cloud-amd64\$" | awk '{ print $1 }')
	# shellcheck disable=SC2001
	version=$(sed 's/^linux-[a-z]*-//' <<<"$names" | sort -V | tail -n 1)
	why="Debian's backports have no kernel $1 (any more)"
	[ -n "$version" ] || return 1
	# From 7.x on linux-image is a wrapper.
	package=linux-image-$version
	! grep -qFx "linux-binary-$version" <<<"$names" || package=linux-binary-$version
	say "fetching $package"
	rm -rf "$dir/linux-$1.new"
	mkdir "$dir/linux-$1.new"
	(cd "$dir/linux-$1.new" && apt apt-get download "$package") >"$dir/apt/$1.log" 2>&1 || {
		why="apt: $(grep -E '^E:' "$dir/apt/$1.log" | head -n 1 | cut -c 4-160)"
		return 1
	}
	deb=$(echo "$dir/linux-$1.new"/*.deb)
	dpkg-deb --fsys-tarfile "$deb" | tar -C "$dir/linux-$1.new" -x --wildcards --no-anchored 'vmlinuz*'
	why="$package: there is no vmlinuz in it"
	find "$dir/linux-$1.new" -type f -name 'vmlinuz*' -exec mv {} "$dir/linux-$1.new/vmlinuz" \;
	[ -s "$dir/linux-$1.new/vmlinuz" ] || return 1
	echo "$package" >"$dir/linux-$1.new/package"
	rm -f "$deb"
	rm -rf "$dir/linux-$1" "$dir/linux-$1.new"/{boot,usr,lib}
	mv "$dir/linux-$1.new" "$dir/linux-$1"
}

for what; do
	rm -f "$dir/$what.missing"
	case "$what" in
	qemu)
		[ -x "$dir/qemu/usr/bin/qemu-system-x86_64" ] || { apt_ready && fetch_qemu; } || missing qemu "$why"
		;;
	*)
		[ -s "$dir/linux-$what/vmlinuz" ] || { apt_ready && fetch_kernel "$what"; } || missing "$what" "$why"
		;;
	esac
done
