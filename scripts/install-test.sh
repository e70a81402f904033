#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# install-test.sh - make install puts these files there and no others, and examples/hello builds and
# runs with nothing else: headers, arenite.pc, the shared library and the static one.
set -eu
cd "$(dirname "$0")/.."

build=${B:-build} prefix=/opt/arenite
clang=${CLANG:-clang-19} bpftool=${BPFTOOL:-$(PATH=$PATH:/usr/sbin command -v bpftool)}
root=$(realpath -m "$build")/install-test
rm -rf "$root"
mkdir -p "$root/hello"

fail() {
	echo "$@"
	exit 1
}

make -s install DESTDIR="$root" PREFIX=$prefix B="$build" >"$root/log" 2>&1 || { cat "$root/log"; fail "make install: failed"; }

version=$("$root$prefix/bin/arenite" --version | awk '{ print $2 }')
diff -u - <(cd "$root$prefix" && find . ! -type d | sort) <<-END || fail "other files than these were installed"
	./bin/arenite
	./include/arenite/arenite.bpf.h
	./include/arenite/arenite.h
	./include/arenite/feature.h
	./include/arenite/layout.h
	./include/arenite/stats.h
	./lib/arenite/arenite.bpf.o
	./lib/libarenite.a
	./lib/libarenite.so
	./lib/libarenite.so.0
	./lib/libarenite.so.$version
	./lib/pkgconfig/arenite.pc
	./share/man/man1/arenite.1
	./share/man/man3/arenite.bpf.3
	./share/man/man3/libarenite.3
	./share/man/man7/arenite-stats.7
END

export PKG_CONFIG_PATH=$root$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
[ "$(pkg-config --modversion arenite)" = "$version" ] || fail "arenite.pc: another version than $version"
cflags=$(pkg-config --cflags arenite)
(
	cd examples/hello
	# shellcheck disable=SC2086
	"$clang" -O2 -g -target bpf -mcpu=v4 -Wall -Werror $cflags "-I/usr/include/$(gcc -dumpmachine)" \
		-c hello.bpf.c -o "$root/hello/hello.bpf.o"
)
"$bpftool" gen skeleton "$root/hello/hello.bpf.o" name hello_bpf >"$root/hello/hello.skel.h"
cc=(gcc -std=gnu11 -Wall -Werror -I"$root/hello" examples/hello/hello.c)
# shellcheck disable=SC2046,SC2086
"${cc[@]}" $cflags -o "$root/hello/shared" $(pkg-config --libs arenite) -lbpf
# shellcheck disable=SC2046,SC2086
"${cc[@]}" $cflags -o "$root/hello/static" "$root$prefix/lib/libarenite.a" $(pkg-config --static --libs-only-l libbpf) -lpthread
readelf -d "$root/hello/shared" | grep -q 'NEEDED.*libarenite\.so\.0' || fail "not linked with libarenite.so.0"

for how in shared static; do
	rc=0
	LD_LIBRARY_PATH=$root$prefix/lib "$root/hello/$how" >"$root/log" 2>&1 || rc=$?
	[ $rc -eq 0 ] || [ $rc -eq 77 ] || { cat "$root/log"; fail "hello, $how: exit $rc"; }
done
