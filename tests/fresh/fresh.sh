#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# fresh.sh DIR - proves on Debian 12 and Debian 13, each made from nothing by debootstrap (minbase, git
# and make added) in a folder below DIR, that a clone of this repository needs only the two commands of
# the README: 'make demo' and 'make check'.  One line a release and step, with its time.
#
# Per release: demo (from the bare system; what follows the installs within DEMO_SECONDS), check,
# the installer again (as a user without rights: does nothing), and the demo where BPF is refused:
# on Debian 12 to root (capabilities dropped, as in a container), on Debian 13 to a user without
# rights who clones and builds alone and runs 'make check' too.
#
# It cannot show another kernel than the one that runs: a chroot has the host's.
#
# The first run keeps a tarball of each bare system and the packages fetched in DIR; later runs start
# from those.  Everything is mounted in a mount namespace of its own, which ends with its last process,
# so nothing stays mounted however this ends.
#
# FRESH_RELEASES="bookworm trixie"  which
# FRESH_DIRTY=1                     what the work tree holds, not only HEAD
# FRESH_KEEP=1                      leave the last release's root in place, to look at
# FRESH_REBASE=1                    debootstrap again
# FRESH_MIRROR=URI                  where apt's configuration here names no Debian mirror
set -eu
export LC_ALL=C

DEMO_SECONDS=120
STEP_SECONDS=1500      # no step may take longer
BASE_SECONDS=1800      # nor debootstrap
NEED_MIB=3072          # free space to start with

repo=$(cd "$(dirname "$0")/../.." && pwd)
failed=0

say() { echo "freshtest: $*" >&2; }
die() {
	say "$@"
	exit 1
}

verdict() { # RESULT RELEASE STEP SECONDS NOTE
	[ "$1" = PASS ] || failed=1
	printf '%-4s  %-8s  %-34s %5d s  %s\n' "$@"
}

# ---- The bare system ----

# The Debian mirror that apt uses here.
mirror() {
	local uri='' codename
	if [ -n "${FRESH_MIRROR:-}" ]; then
		echo "$FRESH_MIRROR"
		return
	fi
	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	# shellcheck disable=SC2016
	uri=$(apt-get indextargets -o APT::Get::IndexTargets::ReleaseInfo=false --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' 2>/dev/null |
		awk -v c="$codename" '$3 == "main" && ($2 == c || $2 ~ /^(oldstable|stable|testing|sid)$/) { print $1; exit }') || true
	[ -n "$uri" ] || die "apt: no source here serves Debian's main: name a mirror with FRESH_MIRROR=URI"
	echo "${uri%/}"
}

# How apt here reaches its mirror - proxy, certificates, logins - for apt inside.
copy_apt_access() { # ROOT
	local file
	apt-config dump Acquire::http Acquire::https Acquire::ftp Acquire::Retries Acquire::Check-Valid-Until Acquire::Check-Date |
		grep -v ' "";$' >"$1/etc/apt/apt.conf.d/99host" || true
	for file in /etc/apt/auth.conf /etc/apt/auth.conf.d/. /usr/local/share/ca-certificates/. \
		$(apt-config dump Acquire::https::CaInfo | sed -n 's/.*"\(.*\)";/\1/p'); do
		[ -e "$file" ] || continue
		mkdir -p "$1${file%/*}"
		cp -a "$file" "$1${file%/*}/"
	done
	case "$uri" in
	https:*)
		mkdir -p "$1/etc/ssl/certs"
		cp -L /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"
		;;
	esac
}

# Two forms of apt's sources, both of which machines really have.
write_sources() { # ROOT RELEASE
	rm -f "$1/etc/apt/sources.list" "$1"/etc/apt/sources.list.d/*
	case "$2" in
	bookworm)
		printf '%s\n' '# as in container and cloud images' 'Types: deb' "URIs: $uri" "Suites: $2 $2-updates" \
			'Components: main' 'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg' \
			>"$1/etc/apt/sources.list.d/debian.sources"
		;;
	*)
		printf '%s\n' "deb $uri $2 main" "deb $uri $2-updates main" >"$1/etc/apt/sources.list"
		;;
	esac
}

make_base() { # RELEASE TARBALL
	local tree=$dir/$1.base proxy
	say "$1: making the bare system from $uri (some minutes, once)"
	rm -rf --one-file-system "$tree"
	mkdir -p "$tree"
	proxy=$(apt-config shell P Acquire::http::Proxy)
	proxy=${proxy#*\'} proxy=${proxy%\'*}
	[ -z "$proxy" ] || [ "$proxy" = DIRECT ] || export http_proxy=$proxy
	timeout -k 30 $BASE_SECONDS debootstrap --variant=minbase --include=git,make "$1" "$tree" "$uri" >"$dir/$1.base.log" 2>&1 || {
		tail -n 20 "$dir/$1.base.log" >&2
		rm -rf --one-file-system "$tree"
		die "$1: debootstrap failed: its log is $dir/$1.base.log"
	}
	rm -rf "$tree"/var/cache/apt/archives/*.deb "$tree"/var/lib/apt/lists/*
	tar -C "$tree" -I "gzip -1" -cf "$2.tmp" .
	mv "$2.tmp" "$2"
	rm -rf --one-file-system "$tree"
}

# ---- Inside one system: this part runs in the mount namespace ----

# Runs a command in the root with a fresh machine's environment.  Its output goes to a log with a time in
# front of each line; $seconds is how long it took.
inside() { # LOG PREFIX-COMMAND... -- SHELL-COMMAND
	local log=$dir/$release.$1.log begin rc=0 prefix=()
	shift
	while [ "$1" != -- ]; do
		prefix+=("$1")
		shift
	done
	begin=$(date +%s)
	timeout -k 30 $STEP_SECONDS chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		HOME="${home:-/root}" "${prefix[@]}" /bin/bash -c "$2" </dev/null 2>&1 |
		while IFS= read -r line; do printf '%(%s)T %s\n' -1 "$line"; done >"$log"
	rc=${PIPESTATUS[0]}
	seconds=$(($(date +%s) - begin))
	return "$rc"
}

show_log() { # LOG
	tail -n 40 "$dir/$release.$1.log" | cut -d' ' -f2- | cut -c -160 | sed 's/^/      | /'
}

# A demo passed if it measured: the table names our row and a baseline.
demo_ran() { # LOG bpf|native|either
	local log=$dir/$release.$1.log lacks
	lacks=$(grep -ci 'no heap in this kernel' "$log") || true
	note="native heap"
	if [ "$lacks" -eq 0 ]; then
		note="BPF heap"
	fi
	case "$2" in
	bpf) [ "$lacks" -eq 0 ] || return 1 ;;
	native) [ "$lacks" -eq 1 ] || return 1 ;;
	esac
	grep -qw arenite "$log" || return 1
	if [ "$lacks" -eq 0 ]; then
		grep -qw buddy-lock "$log"
	else
		grep -qw glibc "$log"
	fi
}

step_demo() {
	local done_at end rc=0 after
	inside demo -- 'cd /root/arenite && make demo' || rc=$?
	end=$(date +%s)
	done_at=$(awk '/install-deps: all there/ { t = $1 } END { print t + 0 }' "$dir/$release.demo.log")
	[ "$done_at" -ne 0 ] || done_at=$((end - seconds))
	after=$((end - done_at))
	if [ $rc -eq 0 ] && demo_ran demo either && [ $after -le $DEMO_SECONDS ]; then
		verdict PASS "$release" "make demo" "$seconds" "$note; installs $((seconds - after)) s, then $after s"
	else
		verdict FAIL "$release" "make demo" "$seconds" "exit $rc; $after s after the installs (at most $DEMO_SECONDS)"
		show_log demo
	fi
}

counts() { sed -nE 's/^[0-9]+ ([0-9]+ passed, [0-9]+ failed, [0-9]+ skipped)$/\1/p' "$dir/$release.$1.log" | tail -n 1; }

step_check() { # LOG NAME PREFIX...
	local log=$1 name=$2 rc=0 result
	shift 2
	inside "$log" "$@" -- "cd ${home:-/root}/arenite && make check" || rc=$?
	result=$(counts "$log")
	if [ $rc -eq 0 ] && [[ "$result" =~ ^[1-9][0-9]*\ passed,\ 0\ failed ]]; then
		verdict PASS "$release" "$name" "$seconds" "$result"
	else
		verdict FAIL "$release" "$name" "$seconds" "exit $rc; ${result:-no closing line}"
		show_log "$log"
	fi
}

state_of_packages() { cat "$root/var/lib/dpkg/status" "$root"/etc/apt/sources.list* "$root"/etc/apt/sources.list.d/* 2>/dev/null | sha256sum; }

# Again, by somebody who could not install anything: no output, no change.
step_again() {
	local before rc=0
	before=$(state_of_packages)
	home=/ inside again setpriv --reuid=65534 --regid=65534 --clear-groups -- 'cd / && /tmp/install-deps.sh' || rc=$?
	if [ $rc -eq 0 ] && [ ! -s "$dir/$release.again.log" ] && [ "$before" = "$(state_of_packages)" ]; then
		verdict PASS "$release" "the installer again, without rights" "$seconds" "did nothing"
	else
		verdict FAIL "$release" "the installer again, without rights" "$seconds" "exit $rc; it must be silent and change nothing"
		show_log again
	fi
	# And as root, for whom it could do something.
	rc=0
	inside again-root -- 'cd /root/arenite && make -s deps' || rc=$?
	if [ $rc -eq 0 ] && [ "$before" = "$(state_of_packages)" ] && ! grep -q 'install-deps:' "$dir/$release.again-root.log"; then
		verdict PASS "$release" "make deps again, as root" "$seconds" "changed nothing"
	else
		verdict FAIL "$release" "make deps again, as root" "$seconds" "exit $rc"
		show_log again-root
	fi
}

step_degraded() { # NAME COMMAND PREFIX...
	local name=$1 command=$2 rc=0
	shift 2
	inside degraded "$@" -- "$command" || rc=$?
	if [ $rc -eq 0 ] && demo_ran degraded native; then
		verdict PASS "$release" "$name" "$seconds" \
			"$(sed -nE 's/^[0-9]+ (.*no heap in this kernel.*)/\1/Ip' "$dir/$release.degraded.log")"
	else
		verdict FAIL "$release" "$name" "$seconds" "exit $rc; wanted one line that says what is missing, and the native table"
		show_log degraded
	fi
}

run_inside() {
	# As on a real machine / is a mount point.
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount -t sysfs sysfs "$root/sys"
	# What systemd mounts on a real machine.
	mount -t bpf bpf "$root/sys/fs/bpf" 2>/dev/null || true
	mount -t tracefs tracefs "$root/sys/kernel/tracing" 2>/dev/null || true
	mount --rbind /dev "$root/dev"
	mount --bind "$dir/$release.debs" "$root/var/cache/apt/archives"
	inside clone -- 'git -c advice.detachedHead=false clone -q /tmp/arenite.bundle /root/arenite && cd /root/arenite &&
		if [ -e /tmp/arenite.tar ]; then xargs -r0 rm -f </tmp/arenite.gone; tar -xf /tmp/arenite.tar; fi' || {
		verdict FAIL "$release" "git clone" "$seconds" ""
		show_log clone
		return
	}
	cp "$root/root/arenite/scripts/install-deps.sh" "$root/tmp/"
	step_demo
	step_check check "make check"
	step_again
	case "$release" in
	bookworm)
		step_degraded "make demo, root without BPF" 'cd /root/arenite && make demo' \
			setpriv --bounding-set=-bpf,-perfmon,-sys_admin
		;;
	*)
		chroot "$root" useradd -m tester
		home=/home/tester
		cp -a "$root/root/arenite" "$root$home/arenite"
		rm -rf "$root$home/arenite/build"
		chroot "$root" chown -R tester: $home
		step_degraded "make demo, a user without rights" "cd $home/arenite && make demo" \
			setpriv --reuid=tester --regid=tester --clear-groups
		step_check check-user "make check, a user without rights" setpriv --reuid=tester --regid=tester --clear-groups
		;;
	esac
}

# Processes that a step left behind would keep the namespace, and with it the mounts, alive.
# shellcheck disable=SC2317
end_leftovers() {
	local p
	for p in /proc/[0-9]*; do
		case "$(readlink "$p/root" 2>/dev/null)" in
		"$root" | "$root"/*) kill -9 "${p#/proc/}" 2>/dev/null || true ;;
		esac
	done
}

if [ "${1:-}" = --inside ]; then
	dir=$2 release=$3 root=$2/$3
	trap end_leftovers EXIT
	run_inside
	exit $failed
fi

# ---- From outside ----

[ $# -eq 1 ] || die "usage: fresh.sh DIR (make freshtest)"
if [ "$(id -u)" -ne 0 ]; then
	say "chroot, mount and debootstrap need root: sudo make freshtest"
	exit 77
fi
command -v apt-config >/dev/null || die "apt is missing: freshtest needs a Debian to start from"
if ! command -v debootstrap >/dev/null; then
	say "installing debootstrap"
	apt-get -q update </dev/null >&2 || true
	DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends debootstrap </dev/null >&2 ||
		die "debootstrap could not be installed: its messages above say why"
fi
mkdir -p "$1"
dir=$(cd "$1" && pwd)
free=$(df -Pm "$dir" | awk 'NR == 2 { print $4 }')
[ "$free" -ge $NEED_MIB ] || die "$dir: $free MiB free, $NEED_MIB needed"
uri=$(mirror)

# The repository as it stands: a bundle of HEAD, and what was changed since where that is asked for.
g() { git -c safe.directory='*' -C "$repo" "$@"; }
g bundle create -q "$dir/arenite.bundle" HEAD
rm -f "$dir/arenite.tar" "$dir/arenite.gone"
what="HEAD ($(g rev-parse --short HEAD))"
if [ -n "${FRESH_DIRTY:-}" ]; then
	g ls-files -z --deleted >"$dir/arenite.gone"
	g ls-files -z --modified --others --exclude-standard | sort -zu | comm -z23 - <(sort -z "$dir/arenite.gone") |
		tar -C "$repo" --null -T - -cf "$dir/arenite.tar"
	what="$what with the work tree's changes"
elif [ -n "$(g status --porcelain)" ]; then
	say "the work tree has changes that this run does not see (FRESH_DIRTY=1 takes them along)"
fi
say "testing $what; logs are in $dir"

root=
child=
# shellcheck disable=SC2317
cleanup() {
	[ -z "$child" ] || kill -9 "$child" 2>/dev/null || true
	[ -z "$root" ] || end_leftovers
	[ -z "$root" ] || [ -n "${FRESH_KEEP:-}" ] || rm -rf --one-file-system "$root"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

for release in ${FRESH_RELEASES:-bookworm trixie}; do
	base=$dir/$release-base.tar.gz
	[ -z "${FRESH_REBASE:-}" ] || rm -rf "$base" "$dir/$release.debs"
	[ -s "$base" ] || make_base "$release" "$base"
	[ -z "$root" ] || rm -rf --one-file-system "$root"
	root=$dir/$release
	rm -rf --one-file-system "$root"
	mkdir -p "$root" "$dir/$release.debs/partial"
	tar -C "$root" -xzf "$base"
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
	copy_apt_access "$root"
	write_sources "$root" "$release"
	cp "$dir"/arenite.* "$root/tmp/"
	# In the background, so that a signal ends it at once and not at the end of a step.
	unshare --mount --propagation slave -- "$0" --inside "$dir" "$release" &
	child=$!
	wait "$child" || failed=1
	child=
done
exit $failed
