// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * library.c - proof of identity: which file the function behind a peer's calls was loaded from.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "../peer.h"

const char *bench_peer_library(const void *fn, const char *lib, const char *version)
{
	static char text[256];
	Dl_info info;

	if (!fn || !dladdr(fn, &info) || !info.dli_fname || !strstr(info.dli_fname, lib))
		return NULL;
	snprintf(text, sizeof(text), "%s %s", version, info.dli_fname);
	return text;
}
