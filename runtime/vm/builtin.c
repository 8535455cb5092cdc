/* builtin.c: the machine's own functions by name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "builtin.h"

#include <string.h>

vm_builtin vm_builtin_find(const char *name)
{
    static const struct {
        const char *name;
        vm_builtin function;
    } rows[] = {
#define X(text, function) {text, vm_builtin_##function},
#include "builtins.def"
#undef X
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].function;
    return NULL;
}
