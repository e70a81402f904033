#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# usage.bats - help, version, and what the command says to arguments it can't use.  Exit statuses are an
# interface: 0 done, 1 failed, 2 usage, 77 the kernel lacks something.

load helper

@test "--help goes to stdout and exits 0, at every level" {
	local command
	for command in "" bench "bench list" "bench malloc-free" "bench malloc-xfree" "bench nmi" check demo features keeper reap stats; do
		# shellcheck disable=SC2086
		arn $command --help
		exits 0
		out_has "Usage: arenite"
		no_err
		no_escapes
	done
}

@test "--help names the commands and the exit statuses" {
	arn --help
	for word in bench demo features keeper stats "77"; do
		out_has "$word"
	done
}

@test "bench malloc-free --help names every option" {
	arn bench malloc-free --help
	for option in -p -a -n -s -w -d -r --bulk --native --json; do
		out_has "$option"
	done
}

@test "--version prints name and version" {
	arn --version
	exits 0
	grep -qE '^arenite [0-9]+\.[0-9]+\.[0-9]+' "$out" || fail "no version"
	no_err
}

@test "no command is a usage error" {
	arn
	exits 2
	no_out
	err_has "no command"
}

@test "an unknown command is a usage error that names it" {
	arn brew
	exits 2
	no_out
	err_has "'brew'"
	err_has "arenite --help"
}

@test "an unknown option is a usage error that names it, at every level" {
	local command
	for command in "" bench "bench list" "bench malloc-free" "bench nmi" "check /x" demo features "keeper /x" "reap /x" "stats /x"; do
		# shellcheck disable=SC2086
		arn $command --brew
		exits 2
		no_out
		err_has "--brew"
		err_has "--help"
	done
}

@test "with --json a usage error is a JSON document on stdout" {
	local command
	for command in brew "bench brew" "bench malloc-free --brew" "demo brew" "features brew" "bench list brew"; do
		# shellcheck disable=SC2086
		arn $command --json
		json_error brew 2
		no_err
		# And with the option in front of what is wrong.
		# shellcheck disable=SC2086
		arn --json $command
		json_error brew 2
	done
}

@test "arguments that nobody asked for are usage errors" {
	arn demo more
	exits 2
	err_has "'more'"
	arn bench list more
	exits 2
	err_has "'more'"
	arn bench malloc-free more
	exits 2
	err_has "'more'"
	arn stats /one /two
	exits 2
	err_has "'/two'"
}

@test "stats without a heap is a usage error" {
	arn stats
	exits 2
	no_out
	arn stats --json
	json_error "heap" 2
	arn keeper
	exits 2
	no_out
}

@test "keeper refuses watermarks that are no bytes" {
	local option value
	for option in --low-watermark --high-watermark; do
		for value in "" x -1 1.5M 8MB 5G 99999999999999999999; do
			arn keeper "$option=$value" /x
			exits 2
			no_out
			err_has "$option"
			grep -qF -- "'$value'" "$err" || fail "the message to $option '$value' lacks the value"
		done
	done
}

@test "an unknown scenario is a usage error that says where to find them" {
	arn bench
	exits 2
	err_has "arenite bench list"
	arn bench brew
	exits 2
	no_out
	err_has "'brew'"
	err_has "arenite bench list"
}

# Each option with values it must refuse: nothing is measured, the message has option and value.
refuses() {
	local option=$1 value
	shift
	for value in "$@"; do
		arn bench malloc-free --native "$option" "$value"
		exits 2
		no_out
		err_has "$option"
		grep -qF -- "'$value'" "$err" || fail "the message to $option '$value' lacks the value"
	done
}

@test "-p refuses what is no list of producers" { refuses -p 0 x 1,x 1,,2 1, "" " " -1 1.5 100000 99999999999999999999; }
@test "-n refuses what is no list of object numbers" { refuses -n 0 x 1,x 1,,2 1, "" -1 1.5 4294967297 99999999999999999999; }
@test "-s refuses what is no size" { refuses -s 0 x "" -8 64k 1.5 99999999999999999999; }
@test "-w refuses what are no seconds" { refuses -w x "" -1 1s nan inf; }
@test "-d refuses what are no seconds" { refuses -d 0 x "" -1 1s nan inf; }
@test "-r refuses what is no number of repeats" { refuses -r 0 x "" -1 1.5 99999999999999999999; }

@test "an option without its value is a usage error" {
	local option
	for option in -p -n -s -w -d -r; do
		arn bench malloc-free "$option"
		exits 2
		no_out
		err_has "${option#-}"
	done
}

@test "no colour and no other escape sequence without a terminal" {
	arn bench list
	no_escapes
	TERM=xterm-256color arn bench list
	no_escapes
}

# What a terminal gets, made by script(1).
on_terminal() { try env "$@" TERM=xterm-256color script -qec "'$arenite' bench list" /dev/null; }

@test "colour on a terminal, none there with NO_COLOR" {
	command -v script >/dev/null || skip "script(1) is not installed"
	on_terminal A=b
	exits 0
	grep -q $'\033\[[0-9;]*m' "$out" || fail "no colour on a terminal"
	on_terminal NO_COLOR=1
	exits 0
	out_has malloc-free
	! grep -q $'\033\[[0-9;]*m' "$out" || fail "colour in spite of NO_COLOR"
}
