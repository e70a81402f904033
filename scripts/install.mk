# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# install.mk - make install: headers, libraries, arenite.pc, arenite.bpf.o, manual pages, the command.
#
#   PREFIX   where it is going to live           (/usr/local)
#   LIBDIR   libraries, below or beside it       ($(PREFIX)/lib)
#   DESTDIR  put in front of every path, for packagers
#
# arenite.pc is written for the PREFIX and LIBDIR of the install, not of the build.

LIBDIR		?= $(PREFIX)/lib
BINDIR		?= $(PREFIX)/bin
INCLUDEDIR	?= $(PREFIX)/include
MANDIR		?= $(PREFIX)/share/man
INSTALL		?= install
SOVERSION	:= 0

install: all
	$(INSTALL) -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(INCLUDEDIR)/arenite $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(LIBDIR)/arenite
	$(INSTALL) -m 755 $(B)/arenite $(DESTDIR)$(BINDIR)
	$(INSTALL) -m 644 $(PUBLIC) $(DESTDIR)$(INCLUDEDIR)/arenite
	$(INSTALL) -m 644 $(B)/libarenite.a $(DESTDIR)$(LIBDIR)
	$(INSTALL) -m 755 $(B)/libarenite.so $(DESTDIR)$(LIBDIR)/libarenite.so.$(VERSION)
	ln -sf libarenite.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libarenite.so.$(SOVERSION)
	ln -sf libarenite.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libarenite.so
	sed -e 's|^prefix=.*|prefix=$(PREFIX)|' -e 's|^libdir=.*|libdir=$(LIBDIR:$(PREFIX)/%=$${prefix}/%)|' \
		-e 's|^includedir=.*|includedir=$(INCLUDEDIR:$(PREFIX)/%=$${prefix}/%)|' \
		$(B)/arenite.pc > $(DESTDIR)$(LIBDIR)/pkgconfig/arenite.pc
	chmod 644 $(DESTDIR)$(LIBDIR)/pkgconfig/arenite.pc
	$(INSTALL) -m 644 $(B)/arenite.bpf.o $(DESTDIR)$(LIBDIR)/arenite
	for s in 1 3 7; do \
		$(INSTALL) -d $(DESTDIR)$(MANDIR)/man$$s && \
		$(INSTALL) -m 644 $(B)/man/*.$$s $(DESTDIR)$(MANDIR)/man$$s || exit 1; \
	done

CHECKS	+= scripts/install-test.sh
