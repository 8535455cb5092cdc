/* SPDX-License-Identifier: Apache-2.0 */
/* External functions that come with the compiler: C that is too long for loops, in the folder kernel/. */
#include "tir/tir.h"

#include <string.h>

const tir_library *tir_library_find(const char *name)
{
    static const tir_library table[] = {
#define X(name, file, stack, args, fn) {name, file, stack},
        TIR_LIBRARY(X)
#undef X
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}
