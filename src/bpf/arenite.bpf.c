/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* arenite.bpf.c - the functions as an object of their own, to link with (bpftool gen object). */
#include <linux/bpf.h>
#include "arenite.bpf.h"

char arn_license[] SEC("license") __weak = "Dual BSD/GPL";
