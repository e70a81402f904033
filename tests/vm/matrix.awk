# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# matrix.awk - what the guests came to, out of their files in the log folder: a matrix of tests and guests, what
# stands behind its cells, and the verifier's figures.  Exit 1: something failed.
#
# -v dir=FOLDER  -v names="GUEST..."; in the environment absent=LINES, what was not run and why
function rest(line) { sub(/^[^ ]+ [^ ]+ [^ ]+ ?/, "", line); return line }
BEGIN {
	n = split(names, guest, " ")
	for (g = 1; g <= n; g++) {
		file = dir "/" guest[g] ".result"
		while ((getline line < file) > 0) {
			split(line, f, " ")
			if (!(f[3] in row)) { row[f[3]] = ++rows; order[rows] = f[3] }
			count[f[1]]++
			if (f[3] == "guest") up[g] = f[2]
			cell[f[3], g] = f[1]
			if (f[1] == "pass") continue
			why = f[1] " " f[3] ": " rest(line)
			if (!(why in note)) { note[why] = ++notes; reason[notes] = why }
			cell[f[3], g] = f[1] " (" note[why] ")"
		}
		# Parts of tests, by the tests that passed without them.
		file = dir "/" guest[g] ".log"
		while ((getline line < file) > 0) {
			if (line ~ /^(pass|skip|FAIL) +[0-9]+ ms/) {
				split(line, f, " ")
				sub(/^build\//, "", f[4])
			} else if (line ~ /^      \| skipped: /) {
				why = f[4] ": " substr(line, 18)
				if (!(why in part)) { parts++; porder[parts] = why }
				part[why] = part[why] " " guest[g]
			}
		}
		file = dir "/" guest[g] ".figures"
		while ((getline line < file) > 0) {
			split(line, f, " ")
			figure[f[2], g] = sprintf("%d/%d ms", f[3], f[4] / 1000)
			figures = 1
		}
	}
	printf "\n%-26s", "test"
	for (g = 1; g <= n; g++) printf "  %-10s", guest[g]
	print ""
	for (r = 1; r <= rows; r++) {
		printf "%-26s", order[r]
		for (g = 1; g <= n; g++) printf "  %-10s", ((order[r], g) in cell) ? cell[order[r], g] : "-"
		print ""
	}
	printf "%-26s", "seconds"
	for (g = 1; g <= n; g++) printf "  %-10d", up[g] / 1000
	print ""
	for (i = 1; i <= notes; i++) print "(" i ") " reason[i]
	if (parts) print "\nparts of tests that were skipped:"
	for (i = 1; i <= parts; i++) print porder[i] " [" substr(part[porder[i]], 2) "]"
	if (figures) {
		printf "\n%-26s\n", "verifier: instructions, and the time of loading (emulated; not judged)"
		k = split("all arn_malloc arn_free arn_reserve", shown, " ")
		for (i = 1; i <= k; i++) {
			printf "%-26s", shown[i]
			for (g = 1; g <= n; g++) printf "  %-15s", ((shown[i], g) in figure) ? figure[shown[i], g] : "-"
			print ""
		}
	}
	printf "\n%s", ENVIRON["absent"]
	printf "vmtest: %d passed, %d failed, %d skipped on %d guests\n", count["pass"], count["FAIL"], count["skip"], n
	exit count["FAIL"] > 0
}
