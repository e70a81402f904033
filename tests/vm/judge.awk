# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# judge.awk - what a guest's console says of it: a line "RESULT MILLISECONDS TEST REASON..." for each test it was
# to run, and one for "guest".  It passes if its kernel had no panic, WARN or BUG, it came to its GUEST_RC line, and
# that agrees with its tests.
#
# -v names="TEST..."  what it was to run
# -v end=HOW          off: QEMU ended; stuck: the console fell silent; late: there was no time left (tests that were
#                     not reached are skipped)
# -v bad=PATTERN      what a kernel says when it complains (before init it is none of ours)
# -v unbooted=RESULT  of a guest that never came to its init (FAIL if not given)
/^GUEST [0-9]/ { booted = 1 }
/^(pass|skip|FAIL) +[0-9]+ ms  / {
	test = $4; sub(/:$/, "", test); sub(/^build\//, "", test)
	why = $0; sub(/^[^ ]+ +[0-9]+ ms  [^ ]+ ?/, "", why)
	done[test] = 1
	print $1, $2, test, why
	if ($1 == "FAIL") failed = 1
}
/^GUEST_RC=/ { rc = substr($0, 10) }
/^GUEST_UP / { up = $2 }
booted && $0 ~ bad && !wrong { wrong = $0; sub(/^GUEST_LOG /, "", wrong) }
NF { last = $0 }
END {
	ms = int(up * 1000)
	rest = "FAIL"; reason = "not reached"
	if (!booted && end != "late") {
		rest = unbooted ? unbooted : "FAIL"; reason = "the guest did not boot"
		print rest, ms, "guest", "it did not boot, twice; its last words: " last
	} else if (wrong)
		print "FAIL", ms, "guest", wrong
	else if (rc == "" && end == "late") {
		rest = "skip"; reason = "not reached in time"
		print rest, ms, "guest", reason
	} else if (rc == "")
		print "FAIL", ms, "guest", "it " (end == "stuck" ? "hangs" : "died") " after: " last
	else if (rc != "0" && !failed)
		print "FAIL", ms, "guest", "GUEST_RC=" rc
	else
		print "pass", ms, "guest"
	n = split(names, want, " ")
	for (i = 1; i <= n; i++) {
		sub(/^build\//, "", want[i])
		if (!done[want[i]]) print rest, 0, want[i], reason
	}
}
