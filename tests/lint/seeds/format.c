/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cppcheck: invalidPrintfArgType_uint */
#include <stdio.h>

void seed(int n);
void seed(int n)
{
    printf("%u\n", n);
}
