#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# amalgamate.sh FILE - pastes FILE with every quoted include in its place, each once.
set -eu

awk -v top="$1" -v port="src/bpf" '
function paste(file,    line, name, dir) {
	if (file in done) return
	done[file] = 1
	dir = file; sub(/\/[^\/]*$/, "", dir)
	while ((getline line < file) > 0) {
		if (line ~ /^#include "/) {
			name = line; sub(/^#include "/, "", name); sub(/".*/, "", name)
			if (name == "port_user.h") continue
			paste(find(dir, name))
			continue
		}
		if (line ~ /^\/\* SPDX-License-Identifier/ && file != top) continue
		print line
	}
	close(file)
}
# As the compiler looks: beside the file, then in the include path of the BPF build.
function find(dir, name,    try, i, n, list) {
	n = split(dir " include/arenite src/core src/bpf", list, " ")
	for (i = 1; i <= n; i++) {
		try = list[i] "/" name
		while (sub(/[^\/]+\/\.\.\//, "", try)) ;
		if ((getline line < try) > 0) { close(try); return try }
	}
	print "amalgamate: " name ": not found" > "/dev/stderr"
	exit 1
}
BEGIN { paste(top) }'
