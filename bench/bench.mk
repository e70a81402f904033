# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.mk - the benchmark: BPF objects, the parts linked into build/arenite (BENCH_OBJ), and one
# native worker executable a library, build/bench/native-X, with its build/bench/peer-X.so.

BB		:= $(B)/bench
BENCH_INC	:= $(INC) -Ibench -Itool -I$(BB)
BENCH_SRC	:= malloc nmi percpu percpu_areas shared shared_user bpf bpf_open crew load machine native report runner
BENCH_OBJ	:= $(BENCH_SRC:%=$(BB)/%.o)
BENCH_SKEL	:= $(BB)/base.skel.h $(BB)/kobj.skel.h $(BB)/malloc.skel.h $(BB)/nmi.skel.h $(BB)/percpu.skel.h \
		   $(BB)/pkobj.skel.h $(BB)/shared.skel.h
BENCH_HEADERS	:= $(wildcard bench/*.h tool/*.h)

$(BB)/%.bpf.o: bench/%.bpf.c $(BENCH_HEADERS) $(HEADERS)
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -Ibench -c $< -o $@
$(BB)/%.skel.h: $(BB)/%.bpf.o
	$(BPFTOOL) gen skeleton $< name $*_bpf > $@.tmp && mv $@.tmp $@
$(BB)/load.o: $(BENCH_SKEL)
$(BB)/%.o: bench/%.c $(BENCH_HEADERS) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(BENCH_INC) -c $< -o $@

# Peers: those whose library this machine has, each in an executable of its own, because some of
# them replace malloc.  The allocator comes first in the link, or glibc's malloc would win.
have_lib	= $(if $(filter /%,$(shell $(CC) -print-file-name=lib$(1).so 2>/dev/null)),$(2))
PEERS		:= arenite arenite-user floor glibc $(call have_lib,mimalloc,mimalloc) $(call have_lib,jemalloc,jemalloc) \
		   $(call have_lib,tcmalloc_minimal,tcmalloc)
PEER_LIB_mimalloc := -lmimalloc
PEER_LIB_jemalloc := -ljemalloc
PEER_LIB_tcmalloc := -ltcmalloc_minimal
PEER_LIB_arenite  := -Wl,--exclude-libs,ALL $(B)/libarenite.a $(LIBS)
PEER_LIB_arenite-user := $(PEER_LIB_arenite)
PEER_RPATH	:= -Wl,-rpath,'$$ORIGIN',-rpath,'$$ORIGIN/..'
NATIVE		:= $(PEERS:%=$(BB)/native-%)

$(BB)/peer-arenite.so $(BB)/peer-arenite-user.so: $(B)/libarenite.a bench/peers/arenite.c
$(BB)/peer-%.so: bench/peers/%.c bench/peers/library.c bench/peer.h
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -fvisibility=default -fPIC -fno-plt -fno-builtin -shared -Wl,-soname,peer-$*.so -o $@ \
		bench/peers/$*.c bench/peers/library.c -Wl,--no-as-needed $(PEER_LIB_$*) $(PEER_RPATH)
$(BB)/native-%: $(BB)/worker.o $(BB)/rounds.o $(BB)/crew.o $(BB)/peer-%.so
	$(CC) -o $@ -Wl,--no-as-needed $(if $(filter arenite%,$*),,$(PEER_LIB_$*)) $(BB)/peer-$*.so $(filter %.o,$^) -lpthread $(PEER_RPATH)

.PRECIOUS: $(BB)/%.bpf.o $(BB)/%.skel.h $(BB)/peer-%.so
.SECONDARY: $(BB)/worker.o $(BB)/rounds.o
.PHONY: bench
bench: $(B)/arenite $(NATIVE)
	@$(foreach p,$(filter-out $(PEERS),mimalloc jemalloc tcmalloc),\
		echo "note: bench --native will have no row '$(p)': its library is not installed (make deps)";)
