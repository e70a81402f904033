# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# tool.mk - the command build/arenite: tool/ and bench/, linked statically with libarenite.

TOOL_SRC	:= main args bench check demo features keeper out pin reap stats
TOOL_OBJ	:= $(TOOL_SRC:%=$(B)/tool/%.o)

$(B)/tool/%.o: tool/%.c $(BENCH_HEADERS) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(BENCH_INC) -c $< -o $@
$(B)/arenite: $(TOOL_OBJ) $(BENCH_OBJ) $(B)/libarenite.a
	$(CC) -o $@ $^ -ljansson -lsmartcols $(LIBS) -lm

.PHONY: tool
tool: $(B)/arenite $(NATIVE)
all: tool
