// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * machine.c - what a reader of the figures must know of the machine.
 *
 * Mitigations belong there: with return thunks that guard each return (Safe RET, untrained returns,
 * call depth tracking) a call costs several ns more, in every BPF row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "crew.h"
#include "report.h"

static void first_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");

	buf[0] = 0;
	if (f && fgets(buf, (int)size, f))
		buf[strcspn(buf, "\n")] = 0;
	if (f)
		fclose(f);
}

static void cpu_model(char *buf, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256], *at;

	snprintf(buf, size, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		at = strchr(line, ':');
		if (!at || (strncmp(line, "model name", 10) && strncmp(line, "Processor", 9)))
			continue;
		at[strcspn(at, "\n")] = 0;
		snprintf(buf, size, "%s", at[1] ? at + 2 : "");
		break;
	}
	if (f)
		fclose(f);
}

static json_t *mitigations(void)
{
	static const char *const names[] = { "retbleed", "spec_rstack_overflow", "indirect_target_selection",
					     "spectre_v2" };
	json_t *all = json_object();
	char path[96], line[256];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/vulnerabilities/%s", names[i]);
		first_line(path, line, sizeof(line));
		if (line[0])
			json_object_set_new(all, names[i], json_string(line));
	}
	return all;
}

json_t *bench_machine(void)
{
	char cpu[128], clock[64];
	struct utsname u;
	double load = 0;

	getloadavg(&load, 1);
	uname(&u);
	cpu_model(cpu, sizeof(cpu));
	first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", clock, sizeof(clock));
	return json_pack("{s:s, s:s, s:i, s:i, s:s, s:s, s:s, s:f, s:o}", "arch", u.machine, "cpu", cpu, "cpus",
			 (int)sysconf(_SC_NPROCESSORS_ONLN), "cpus_usable", (int)crew_cpus(), "kernel", u.release,
			 "version", u.version, "clocksource", clock, "load_1min", load, "mitigations", mitigations());
}
