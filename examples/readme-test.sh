#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# readme-test.sh - the README shows examples/hello as it is (each file without its SPDX line).
set -eu
cd "$(dirname "$0")/.."

readme=$(<README.md)
for file in examples/hello/*.[ch]; do
	if [[ $readme != *$'\n```c\n'"$(tail -n +2 "$file")"$'\n```\n'* ]]; then
		echo "README.md: does not contain $file verbatim: paste it again, without its first line"
		exit 1
	fi
done

for package in $(scripts/install-deps.sh --list); do
	if ! grep -qE "(^|[ ])$package( |$)" <<<"$readme"; then
		echo "README.md: does not name $package, which scripts/install-deps.sh installs"
		exit 1
	fi
done
