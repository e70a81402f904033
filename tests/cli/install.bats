#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# install.bats - scripts/install-deps.sh: which apt source it derives bookworm-backports from, in every
# form that apt's sources have.  Nothing is installed: apt is pointed at folders made here.  That it
# installs, and does nothing twice, is what 'make freshtest' shows.

load helper

install=$top/scripts/install-deps.sh

setup() {
	command -v apt-get >/dev/null || skip "apt is not installed"
	etc=$BATS_TEST_TMPDIR/apt
	mkdir -p "$etc/sources.list.d" "$etc/apt.conf.d" "$etc/preferences.d"
	: >"$etc/sources.list"
	echo "Dir::Etc \"$etc\";" >"$etc/test.conf"
	export APT_CONFIG=$etc/test.conf
}

# The entry that would be added is stdin, whole.
derives() {
	cat >"$BATS_TEST_TMPDIR/want"
	try "$install" --source bookworm-backports
	exits 0
	no_err
	diff -u "$BATS_TEST_TMPDIR/want" "$out" || fail "another entry"
}

refuses() {
	try "$install" --source bookworm-backports
	exits 1
	no_out
	err_has "bookworm"
}

@test "one line" {
	echo "deb http://mirror.invalid/debian bookworm main contrib" >"$etc/sources.list"
	derives <<-'END'
		deb http://mirror.invalid/debian bookworm-backports main
	END
}

@test "one line with options: they stay" {
	echo "deb [ arch=amd64 signed-by=/etc/apt/keyrings/x.gpg ] http://mirror.invalid/debian/ bookworm main" \
		>"$etc/sources.list.d/x.list"
	derives <<-'END'
		deb [ arch=amd64 signed-by=/etc/apt/keyrings/x.gpg ] http://mirror.invalid/debian/ bookworm-backports main
	END
}

@test "one line among others: sources, updates, security, comments and a disc are passed over" {
	cat >"$etc/sources.list" <<-'END'
		# deb http://comment.invalid/debian bookworm main
		deb cdrom:[Debian GNU/Linux 12.0.0 _Bookworm_ - Official amd64 DVD]/ bookworm main
		deb-src http://src.invalid/debian bookworm main
		deb http://security.invalid/debian-security bookworm-security main
		deb http://updates.invalid/debian bookworm-updates main
		deb [trusted=yes] http://right.invalid/debian bookworm main non-free-firmware
	END
	derives <<-'END'
		deb [trusted=yes] http://right.invalid/debian bookworm-backports main
	END
}

@test "a deb822 file with several suites and a key's path" {
	cat >"$etc/sources.list.d/debian.sources" <<-'END'
		Types: deb deb-src
		# a comment
		URIs: http://mirror.invalid/debian
		Suites: bookworm bookworm-updates
		Components: main contrib
		Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

		Types: deb
		URIs: http://security.invalid/debian-security
		Suites: bookworm-security
		Components: main
	END
	derives <<-'END'
		Types: deb
		URIs: http://mirror.invalid/debian
		Suites: bookworm-backports
		Components: main
		Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
	END
}

@test "a deb822 stanza that is not the first, with a key inside and continued lines" {
	cat >"$etc/sources.list.d/debian.sources" <<-'END'
		Types: deb
		URIs: http://security.invalid/debian-security
		Suites: bookworm-security
		Components: main

		types: deb
		uris: http://mirror.invalid/debian
		suites:
		 bookworm-updates
		 bookworm
		components: main
		 contrib
		Trusted: yes
		Signed-By:
		 -----BEGIN PGP PUBLIC KEY BLOCK-----
		 .
		 mDMEYCQjIxYJKwYBBAHaRw8BAQdA
		 -----END PGP PUBLIC KEY BLOCK-----
	END
	derives <<-'END'
		Types: deb
		uris: http://mirror.invalid/debian
		Suites: bookworm-backports
		Components: main
		Trusted: yes
		Signed-By:
		 -----BEGIN PGP PUBLIC KEY BLOCK-----
		 .
		 mDMEYCQjIxYJKwYBBAHaRw8BAQdA
		 -----END PGP PUBLIC KEY BLOCK-----
	END
}

@test "a disabled deb822 stanza is passed over" {
	cat >"$etc/sources.list.d/debian.sources" <<-'END'
		Enabled: no
		Types: deb
		URIs: http://off.invalid/debian
		Suites: bookworm
		Components: main

		Types: deb
		URIs: http://on.invalid/debian
		Suites: bookworm
		Components: main
	END
	derives <<-'END'
		Types: deb
		URIs: http://on.invalid/debian
		Suites: bookworm-backports
		Components: main
	END
}

@test "no source of bookworm: said, and nothing derived" {
	echo "deb http://security.invalid/debian-security bookworm-security main" >"$etc/sources.list"
	refuses
	: >"$etc/sources.list"
	refuses
	echo "deb cdrom:[Debian GNU/Linux 12]/ bookworm main" >"$etc/sources.list"
	refuses
}

@test "here everything is installed: silent, exit 0, needs no root" {
	unset APT_CONFIG
	if [ "$(id -u)" -eq 0 ]; then
		try env HOME=/ setpriv --reuid=65534 --regid=65534 --clear-groups /bin/bash -c "$(cat "$install")"
	else
		try "$install"
	fi
	exits 0
	no_out
	no_err
}

@test "--list names packages, an unknown option is refused with exit 2" {
	try "$install" --list
	exits 0
	out_has "^libbpf-dev$"
	out_has "^clang-19$"
	try "$install" --brew
	exits 2
	err_has "'--brew'"
}

@test "lint and cross are sets of their own, and CONTRIBUTING names their packages and no others" {
	local set
	for set in lint cross; do
		want=$("$install" $set --list | sort)
		have=$(sed -n "s/^    make $set //p" "$top/CONTRIBUTING.md" | tr -s ' ' '\n' | grep . | sort)
		[ -n "$want" ] && [ "$have" = "$want" ] || fail "$(diff <(echo "$want") <(echo "$have"))"
		# None of them is needed by 'make check'.
		[ -z "$(comm -12 <(echo "$want") <("$install" --list | sort))" ] || fail "$set: also in the build's set"
	done
}

@test "the README names the packages that the script installs, and no others" {
	local want have
	want=$("$install" --list | sort)
	have=$(sed -n '/^To build:/,/^`make deps`/p' "$top/README.md" | grep '^    ' | tr -s ' ' '\n' | grep . | sort)
	[ "$have" = "$want" ] || fail "$(diff <(echo "$want") <(echo "$have"))"
}
