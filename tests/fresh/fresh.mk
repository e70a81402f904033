# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# fresh.mk - make freshtest: 'make demo' and 'make check' on Debian 12 and 13 made from nothing.
# Not part of 'make check': it takes minutes and about 2 GB under build/fresh.

.PHONY: freshtest
freshtest:
	@tests/fresh/fresh.sh $(B)/fresh
