#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck: SC2086
rm -rf $1/tmp
