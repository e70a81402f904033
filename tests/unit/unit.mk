# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# unit.mk - cmocka tests, one program a file of src/core and one a promise of arenite.h.
#
# Each is built three times, with the library's sources: plain (the C compiler at -O2), asan (clang,
# ASan and UBSan) and tsan (clang).  ARN_TEST_SCALE divides what a test repeats.
UNIT_VARIANTS ?= plain asan tsan

UNIT_CORE := sizeclass root chunk growth pages slab emergency depot magazine heap bulk ring ring_mpsc ring_threads checked check percpu
UNIT_USER := create alloc free capacity stats fork thread signal scribble feature
UNIT_TESTS := $(UNIT_CORE) $(UNIT_USER)

unit_cc_plain := $(CC) -O2 -g -DARN_TEST_SCALE=1
unit_cc_asan := $(CLANG) -O1 -g -DARN_TEST_SCALE=4 -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
unit_cc_tsan := $(CLANG) -O1 -g -DARN_TEST_SCALE=8 -fsanitize=thread
UNIT_CFLAGS := -std=gnu11 -D_GNU_SOURCE -DARN_VERSION='"$(VERSION)"' $(WARN) -Wshadow $(INC) -Itests/unit
UNIT_HEADERS := $(wildcard tests/unit/*.h)

define unit_variant
unit_lib_$(1) := $(LIB_SRC:src/user/%.c=$(B)/unit/$(1)/lib/%.o)
unit_built_$(1) := $(UNIT_TESTS:%=$(B)/unit/$(1)/%_test)
$$(unit_lib_$(1)): $(B)/unit/$(1)/lib/%.o: src/user/%.c $$(HEADERS) $$(B)/arenite_sys.skel.h tests/unit/unit.mk
	@mkdir -p $$(@D)
	$$(unit_cc_$(1)) $$(UNIT_CFLAGS) -c $$< -o $$@
$$(unit_built_$(1)): $(B)/unit/$(1)/%_test: tests/unit/%_test.c $$(HEADERS) $$(UNIT_HEADERS) $$(unit_lib_$(1))
	$$(unit_cc_$(1)) $$(UNIT_CFLAGS) $$< $$(unit_lib_$(1)) -o $$@ -lcmocka $$(LIBS) -lm
UNIT_BUILT += $$(unit_built_$(1))
endef
$(foreach v,$(UNIT_VARIANTS),$(eval $(call unit_variant,$(v))))

# The core by itself, and the library, as another compiler sees them; each header stands alone.
$(B)/unit/clang.ok: $(HEADERS) $(LIB_SRC) $(B)/arenite_sys.skel.h tests/unit/unit.mk
	@mkdir -p $(@D)
	for h in src/core/*.h; do \
		[ $$h = src/core/chunk.h ] || $(CLANG) $(CLANG_TARGET) $(UNIT_CFLAGS) -Wno-unused-function -fsyntax-only -include $$h -xc /dev/null || exit 1; \
	done
	for c in $(LIB_SRC); do $(CLANG) $(CLANG_TARGET) $(UNIT_CFLAGS) -fsyntax-only $$c || exit 1; done
	touch $@

CHECKS += $(UNIT_BUILT)
CHECK_DEPS += $(UNIT_BUILT) $(B)/unit/clang.ok

.PHONY: check-unit
check-unit: $(UNIT_BUILT) $(B)/unit/clang.ok
	@tests/run.sh $(UNIT_BUILT)
