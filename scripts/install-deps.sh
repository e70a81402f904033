#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# install-deps.sh - brings a fresh Debian 12 or 13 to where arenite builds, tests and measures.
#
# install-deps.sh [SET]           install what is missing (needs root only then)
# install-deps.sh [SET] --list    the packages, one a line
# install-deps.sh [SET] --apt     the same as apt-get takes them here: NAME or NAME/SUITE
# install-deps.sh --source SUITE  print the apt source of another Debian suite, as the mirror that this
#                                 machine uses would serve it (Debian 12 gets bookworm-backports), change nothing
#
# SET is build (without it), lint (make lint), or cross (make cross): each on top of build.
#
# Idempotent: dpkg is asked first, and when all is there nothing else runs.  Debian 12's own libbpf
# (1.1), bpftool (7.1) and UAPI headers (6.1) predate BPF arenas, and its qemu-user (7.2) keeps a record
# of every page that was ever mapped (7 GB for one test), so those come from bookworm-backports: the
# apt entry that serves bookworm is copied with the suite changed, so mirror, signing key and other
# options stay what this machine already trusts.  Anywhere but on Debian 12 and 13 nothing is
# installed: what is missing is named, and if nothing is, that is success.
set -eu
export LC_ALL=C

# Package, lowest version ('-': any), and how to see on a system without dpkg that it is there:
# a command, a header, or a library that the compiler finds.
needs() {
	"needs_$set"
}
needs_build() {
	cat <<-'END'
		gcc                    -         cmd:gcc
		libc6-dev              -         hdr:stdio.h
		clang-19               -         cmd:clang-19
		libclang-rt-19-dev     -         rt:libclang_rt.fuzzer
		linux-libc-dev         6.12      sym:linux/bpf.h:BPF_MAP_TYPE_ARENA
		libbpf-dev             1:1.4.6   sym:bpf/libbpf.h:bpf_program__attach_raw_tracepoint_opts
		bpftool                7.4       cmd:bpftool
		libelf-dev             -         hdr:libelf.h
		zlib1g-dev             -         hdr:zlib.h
		libjansson-dev         -         hdr:jansson.h
		libsmartcols-dev       -         hdr:libsmartcols/libsmartcols.h
		libcmocka-dev          -         lib:libcmocka.so
		bats                   -         cmd:bats
		spin                   -         cmd:spin
		pkg-config             -         cmd:pkg-config
		groff-base             -         cmd:groff
		libmimalloc-dev        -         lib:libmimalloc.so
		libjemalloc-dev        -         lib:libjemalloc.so
		libgoogle-perftools-dev -        lib:libtcmalloc_minimal.so
	END
}
needs_lint() {
	cat <<-'END'
		clang-format-19        -         cmd:clang-format-19
		clang-tidy-19          -         cmd:clang-tidy-19
		cppcheck               -         cmd:cppcheck
		sparse                 -         cmd:sparse
		shellcheck             -         cmd:shellcheck
		git                    -         cmd:git
	END
}
needs_cross() {
	cat <<-'END'
		gcc-aarch64-linux-gnu  -         cmd:aarch64-linux-gnu-gcc
		qemu-user              1:8.0     cmd:qemu-aarch64
	END
}
backported="linux-libc-dev libbpf-dev bpftool qemu-user"

say() { echo "install-deps: $*" >&2; }
die() {
	say "$@"
	exit 1
}

debian() {
	local id='' version=''
	# shellcheck disable=SC1091
	[ ! -r /etc/os-release ] || { id=$(. /etc/os-release && echo "$ID") && version=$(. /etc/os-release && echo "${VERSION_ID:-}"); }
	[ "$id" = debian ] && command -v dpkg-query >/dev/null && [ "$version" = "$1" ]
}

# Names of the packages that are absent or too old.
missing_packages() {
	local name min rest have
	# One dpkg call for all; it complains about names it never heard of, which is an answer too.
	# shellcheck disable=SC2046
	have=$(dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' $(needs | awk '{ print $1 }') 2>/dev/null |
		awk '$1 == "installed" { print $2, $3 }') || true
	needs | while read -r name min rest; do
		version=$(awk -v n="$name" '$1 == n { print $2; exit }' <<<"$have")
		if [ -z "$version" ] || { [ "$min" != - ] && ! dpkg --compare-versions "$version" ge "$min"; }; then
			echo "$name"
		fi
	done
}

# The same by looking for what the packages hold.
missing_things() {
	local name min probe what text
	needs | while read -r name min probe; do
		what=${probe#*:}
		case "$probe" in
		cmd:*) PATH=$PATH:/usr/sbin:/sbin command -v "$what" >/dev/null ;;
		hdr:*) echo "#include <$what>" | gcc -E -x c - >/dev/null 2>&1 ;;
		lib:*) [ "$(gcc -print-file-name="$what" 2>/dev/null)" != "$what" ] ;;
		rt:*) find "$(clang-19 -print-resource-dir 2>/dev/null || echo /nonexistent)/lib" -name "$what*.a" 2>/dev/null | grep -q . ;;
		sym:*)
			text=$(echo "#include <${what%:*}>" | gcc -E -x c - 2>/dev/null) && grep -qw "${what#*:}" <<<"$text"
			;;
		esac || echo "$name"
	done
}

# apt's own list of what it reads: "suite component file" of every enabled entry.
apt_entries() {
	# shellcheck disable=SC2016
	apt-get indextargets -o APT::Get::IndexTargets::ReleaseInfo=false \
		--format '$(RELEASE) $(COMPONENT) $(SOURCESENTRY)' 'Created-By: Packages' 2>/dev/null |
		sed 's/:[0-9]*$//'
}

# The entry of file $1 that serves one of the suites in $2, with suite $3, component main, binary
# packages only, and every other option as it was.
copy_entry() {
	case "$1" in
	*.sources)
		awk -v from=" $2 " -v to="$3" '
			function has(list, n, i, w) {
				n = split(list, w, /[ \t]+/)
				for (i = 1; i <= n; i++)
					if (w[i] != "" && index(from, " " w[i] " ")) return 1
				return 0
			}
			function end() {
				if (!done && suites && binary && !off) { printf "%s", text; done = 1 }
				text = key = ""; suites = binary = off = 0
			}
			/^#/ { next }
			/^[ \t]*$/ { end(); next }
			/^[^ \t]/ { key = tolower($0); sub(/:.*/, "", key); value = $0; sub(/^[^:]*:[ \t]*/, "", value) }
			/^[ \t]/ { value = $0 }
			key == "suites" { suites = suites || has(value); if ($0 !~ /^[ \t]/) text = text "Suites: " to "\n"; next }
			key == "types" { binary = binary || (" " value " ") ~ /[ \t]deb[ \t]/; if ($0 !~ /^[ \t]/) text = text "Types: deb\n"; next }
			key == "components" { if ($0 !~ /^[ \t]/) text = text "Components: main\n"; next }
			key == "enabled" && tolower(value) ~ /^(no|false|without|off|disable|0)/ { off = 1 }
			{ text = text $0 "\n" }
			END { end() }' "$1"
		;;
	*)
		awk -v from=" $2 " -v to="$3" '
			$1 != "deb" || /cdrom:/ { next }
			{
				i = 2
				if ($2 ~ /^\[/) { while (i < NF && $i !~ /\]$/) i++; i++ }
				if (!index(from, " " $(i + 1) " ")) next
				line = "deb"
				for (j = 2; j <= i; j++) line = line " " $j
				print line, to, "main"
				exit
			}' "$1"
		;;
	esac
}

# Prints the entry of this machine's own release with suite $1; its format's file name ending goes to
# descriptor 3.
suite_entry() {
	local files file entry own='bookworm trixie oldstable stable' # some machines name it the latter way
	files=$(apt_entries | awk -v own=" $own " 'index(own, " " $1 " ") && $2 == "main" && !seen[$3]++ { print $3 }')
	for file in $files; do
		entry=$(copy_entry "$file" "$own" "$1")
		[ -n "$entry" ] || continue
		echo "$entry"
		case "$file" in *.sources) echo sources ;; *) echo list ;; esac >&3
		return 0
	done
	return 1
}

add_backports() {
	local entry kind parts file
	apt_entries | grep -q '^bookworm-backports main ' && return 0
	parts=$(apt-config shell P Dir::Etc::sourceparts/d)
	parts=${parts#*\'} parts=${parts%\'*}
	kind=$(suite_entry bookworm-backports 3>&1 >/dev/null) ||
		die "apt: none of its sources serves 'bookworm main' over a network: add that source and bookworm-backports to $parts"
	entry=$(suite_entry bookworm-backports 3>/dev/null)
	file=${parts%/}/arenite-backports.$kind
	echo "$entry" >"$file"
	added=$file
	say "added bookworm-backports from the mirror that serves bookworm: $file"
}

# What to ask apt for.
apt_name() {
	if debian 12 && [[ " $backported " == *" $1 "* ]]; then
		echo "$1/bookworm-backports"
	else
		echo "$1"
	fi
}

apt_update() {
	apt-get -q update </dev/null >&2 || say "apt-get update: failed for some source (above): going on with what apt has"
}

install_missing() {
	local wanted name added=''
	[ "$(id -u)" -eq 0 ] || die "not installed, or too old: $1: installing needs root: sudo make $target"
	if debian 12; then
		for name in $backported; do
			[[ " $1 " != *" $name "* ]] || { add_backports && break; }
		done
	fi
	apt_update
	wanted=
	for name in $1; do
		if [ "$(apt_name "$name")" != "$name" ] && ! apt-cache madison "$name" | grep -q bookworm-backports; then
			[ -z "$added" ] || rm -f "$added"
			die "$name: apt found no bookworm-backports: the mirror may not carry it${added:+ ($added removed again)};" \
				"add a source that does, then run this again"
		fi
		wanted="$wanted $(apt_name "$name")"
	done
	say "installing:$wanted"
	# An apt-daily run of a fresh machine may hold the lock for a while.
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends \
		$wanted </dev/null >&2 || die "apt-get could not install:$wanted: its messages above say why; then run this again"
}

set=build target=deps
case "${1:-}" in
build | lint | cross)
	set=$1
	[ "$set" = build ] || target=$set-deps
	shift
	;;
esac
case "${1:-}" in
'') ;;
--list)
	needs | awk '{ print $1 }'
	exit 0
	;;
--apt)
	for name in $(needs | awk '{ print $1 }'); do
		apt_name "$name"
	done
	exit 0
	;;
--source)
	[ -n "${2:-}" ] || die "--source: names a suite, such as bookworm-backports"
	suite_entry "$2" 3>/dev/null || die "apt: none of its sources serves 'bookworm main' or 'trixie main' over a network"
	exit 0
	;;
*)
	say "'$1': neither a set (build, lint, cross) nor an option (--list, --apt, --source SUITE)"
	exit 2
	;;
esac

if debian 12 || debian 13; then
	missing=$(missing_packages | tr '\n' ' ')
	[ -n "$missing" ] || exit 0
	install_missing "${missing% }"
	missing=$(missing_packages | tr '\n' ' ')
	[ -z "$missing" ] || die "still missing, or too old, after the install: ${missing% }: is a version pinned in /etc/apt/preferences.d?"
	say "all there"
else
	missing=$(missing_things | tr '\n' ' ')
	[ -z "$missing" ] ||
		die "this is neither Debian 12 nor 13, so nothing is installed; still needed, by their Debian names: ${missing% }"
fi
