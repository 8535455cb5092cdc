/* text.c: see text.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>

void vta_put(vta_text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    size_t room = t->length < t->size ? t->size - t->length : 0;
    int n = vsnprintf(room ? t->out + t->length : NULL, room, fmt, args);
    va_end(args);
    t->length += n > 0 ? (size_t)n : 0;
}
