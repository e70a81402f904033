#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# pack.sh DIR OUT FILE... - makes the guests' initramfs OUT: busybox (from DIR/qemu), tests/vm/init, and each
# FILE of the tree under the path that it has here, because tests have that path compiled in.  Programs come
# without their debug information but with their symbols (uprobes look for those), and with the shared
# libraries that they need.  "NAME.tests" lists become /vm/NAME.tests.
set -eu
export LC_ALL=C

[ $# -ge 3 ] || {
	echo "usage: pack.sh DIR OUT FILE..." >&2
	exit 2
}
dir=$(cd "$1" && pwd) out=$2
shift 2
tree=$(pwd)
root=$(mktemp -d "$dir/initramfs.XXXXXX")
trap 'rm -rf "$root"' EXIT

mkdir -p "$root"/{bin,dev,proc,sys,tmp,run,vm,etc}
cp "$dir/qemu/bin/busybox" "$root/bin/"
cp tests/vm/init "$root/init"
echo "$tree" >"$root/vm/tree"

programs=()
for file; do
	case "$file" in
	*.tests)
		cp "$file" "$root/vm/"
		continue
		;;
	esac
	to=$root$tree/$file
	mkdir -p "${to%/*}"
	cp -L "$file" "$to"
	if [ "$(head -c 4 "$file" | tr -d '\0')" = $'\177ELF' ] && [ -x "$file" ]; then
		strip --strip-debug "$to"
		programs+=("$file")
	fi
done
# "name => path (address)", or "path (address)" for the loader.
[ ${#programs[@]} -eq 0 ] || ldd "${programs[@]}" | grep -oE '/[^ ]+ \(0x' | sed 's/ (0x//' | sort -u |
	while read -r lib; do
		mkdir -p "$root${lib%/*}"
		cp -L "$lib" "$root$lib"
	done
(cd "$root" && find . -print | "$root/bin/busybox" cpio --quiet -o -H newc) >"$out.tmp"
mv "$out.tmp" "$out"
