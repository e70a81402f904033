# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# docs.mk - the manual pages, build/man/*.  docs/man/X.in holds @VERSION@, and the tables of counters
# and features are filled in from stats.h and feature.h.  docs/man/man-test.sh checks them against the code.

MAN_PAGES	:= arenite.1 libarenite.3 arenite.bpf.3 arenite-stats.7
MAN_BUILT	:= $(MAN_PAGES:%=$(B)/man/%)

$(B)/man/stats-table: docs/man/stats-table.c include/arenite/stats.h include/arenite/feature.h include/arenite/layout.h
	@mkdir -p $(@D)
	$(HOSTCC) $(ALL_CFLAGS) $< -o $@
$(B)/man/%: docs/man/%.in $(B)/man/stats-table Makefile
	sed 's/@VERSION@/$(VERSION)/' $< | $(B)/man/stats-table > $@.tmp && mv $@.tmp $@

.PHONY: docs
docs: $(MAN_BUILT)
all: docs

CHECKS		+= docs/man/man-test.sh
CHECK_DEPS	+= $(MAN_BUILT)
