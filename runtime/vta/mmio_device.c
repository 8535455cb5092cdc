/* mmio_device.c: memory-mapped hardware whose state is on the heap, for programs that have one.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "vta.h"

/* The state comes first: it is what the driver's functions get. */
typedef struct owned {
    vta_mmio_state state;
    vta_driver driver;
} owned;

static void destroy(void *self)
{
    free(self);
}

vta_status vta_mmio_device(const vta_config *c, const vta_mmio *io, vta_device *out, vta_error *e)
{
    memset(out, 0, sizeof *out);
    owned *o = (owned *)malloc(sizeof *o);
    if (!o)
        return vta_fail(e, VTA_NO_MEMORY, "mmio: no memory");
    vta_status s = vta_mmio_init(&o->state, c, io, out, e);
    if (s == VTA_OK && !io->alloc)
        s = vta_fail(e, VTA_BAD_ARGUMENT, "mmio: alloc and free must be given");
    if (s != VTA_OK) {
        memset(out, 0, sizeof *out);
        free(o);
        return s;
    }
    o->driver = *out->driver;
    o->driver.destroy = destroy;
    out->driver = &o->driver;
    return VTA_OK;
}
