/* error.c: errors as values: a code and one sentence that says what and where.
 * SPDX-License-Identifier: Apache-2.0 */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int32_t vm_fail(lathe_error *error, int32_t code, const char *format, ...)
{
    if (!error)
        return code;
    va_list args;
    va_start(args, format);
    error->code = code;
    (void)vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return code;
}

int32_t vm_no_memory(lathe_error *error, size_t bytes)
{
    return vm_fail(error, LATHE_E_MEMORY, "no memory for %zu bytes", bytes);
}

int32_t vm_at(lathe_error *error, int32_t code, const char *format, ...)
{
    if (!error)
        return code;
    char place[sizeof error->message];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(place, sizeof place - 2, format, args);
    va_end(args);
    size_t n = strlen(place), said = strlen(error->message), room = sizeof error->message - 1;
    memcpy(place + n, ": ", 3);
    n += 2;
    said = said < room - n ? said : room - n;
    memmove(error->message + n, error->message, said);
    memcpy(error->message, place, n);
    error->message[n + said] = 0;
    return code;
}

const char *lathe_status_text(int32_t status)
{
    switch (status) {
#define ROW(name, value, text)                                        \
    case name: return text;
        LATHE_STATUSES(ROW)
#undef ROW
    default: return "not a status of lathe_vm.h";
    }
}
