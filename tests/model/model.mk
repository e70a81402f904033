# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# model.mk - models for spin: build/model/X runs every variant of X.pml.

MODELS		:= ring exchange claim depot

$(MODELS:%=$(B)/model/%): $(B)/model/%: tests/model/%.pml tests/model/check.sh tests/model/model.mk
	@mkdir -p $(@D)
	@printf '%s\n' '#!/bin/sh' 'exec tests/model/check.sh $< $@.d' >$@ && chmod +x $@

CHECKS		+= $(MODELS:%=$(B)/model/%)
CHECK_DEPS	+= $(MODELS:%=$(B)/model/%)
