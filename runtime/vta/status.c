/* status.c: texts of the statuses, and the one way to report an error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "vta.h"

#include <stdarg.h>
#include <stdio.h>

const char *vta_status_text(vta_status s)
{
    switch (s) {
#define X(id, text) \
    case id: return text;
        VTA_STATUSES(X)
#undef X
    }
    return "unknown status";
}

vta_status vta_fail(vta_error *e, vta_status s, const char *fmt, ...)
{
    if (e) {
        va_list args;
        va_start(args, fmt);
        e->status = s;
        vsnprintf(e->text, sizeof e->text, fmt, args);
        va_end(args);
    }
    return s;
}

void vta_device_destroy(vta_device *d)
{
    if (d && d->driver)
        d->driver->destroy(d->self);
    if (d)
        memset(d, 0, sizeof *d);
}
