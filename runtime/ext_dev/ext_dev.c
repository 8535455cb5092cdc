/* ext_dev.c: libvta's device table, vta_ext_dev_api, in the form of the virtual machine's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ext_dev.h"

#include <stdio.h>

int32_t lathe_ext_dev_status(vta_status s)
{
    switch (s) {
    case VTA_OK: return LATHE_OK;
    case VTA_NO_MEMORY: return LATHE_E_MEMORY;
    case VTA_UNSUPPORTED: return LATHE_E_UNSUPPORTED;
    case VTA_IO: return LATHE_E_FILE;
    case VTA_BAD_CONFIG:
    case VTA_BAD_TEXT: return LATHE_E_FORMAT;
    case VTA_BAD_FIELD:
    case VTA_BAD_ARGUMENT:
    case VTA_BAD_HANDLE:
    case VTA_BAD_STATE: return LATHE_E_ARGUMENT;
    case VTA_FAULT:
    case VTA_DEADLOCK:
    case VTA_TIMEOUT: return LATHE_E_KERNEL;
    }
    return LATHE_E_KERNEL;
}

static int32_t fail(const lathe_ext_dev *d, const vta_error *e)
{
    if (d && d->failed)
        d->failed(d->user, e);
    else
        (void)fprintf(stderr, "VTA: %s (%s)\n", e->text, vta_status_text(e->status));
    return lathe_ext_dev_status(e->status);
}

/* What a call on the context came to. */
static int32_t done(const lathe_ext_dev *d, vta_context *c, vta_status s)
{
    vta_error e = {s, ""};
    if (s == VTA_OK)
        return LATHE_OK;
    if (vta_context_last_error(c, &e) == VTA_OK)
        e = (vta_error){s, ""};
    return fail(d, &e);
}

static int32_t context(const lathe_ext_dev *d, vta_context **out)
{
    vta_error e = {VTA_OK, ""};
    vta_status s = vta_current_context(out, &e); /* that of the kernels */
    return s == VTA_OK ? LATHE_OK : fail(d, &e);
}

static int32_t alloc(void *user, int32_t id, size_t bytes, size_t align, void **out)
{
    lathe_ext_dev *d = user;
    vta_context *c;
    (void)id;
    *out = NULL;
    int32_t status = context(d, &c);
    if (status == LATHE_OK)
        status = done(d, c, vta_ext_dev_api()->alloc(c, bytes ? bytes : 1, align, out));
    if (d)
        d->buffers += status == LATHE_OK;
    return status;
}

/* Machines give memory back when they end; the device may have been replaced by then, and the buffer with it. */
static void release(void *user, int32_t id, void *p)
{
    lathe_ext_dev *d = user;
    vta_context *c = vta_owner_of(p);
    (void)id;
    if (c && done(d, c, vta_ext_dev_api()->free(c, p)) == LATHE_OK && d)
        d->buffers--;
}

static int32_t copy(void *user, const void *from, size_t from_offset, lathe_device from_device, void *to,
                    size_t to_offset, lathe_device to_device, size_t bytes)
{
    const lathe_ext_dev *d = user;
    vta_context *c;
    const vta_side f = from_device.type == LATHE_EXT_DEV ? VTA_SIDE_DEVICE : VTA_SIDE_HOST;
    const vta_side t = to_device.type == LATHE_EXT_DEV ? VTA_SIDE_DEVICE : VTA_SIDE_HOST;
    int32_t status = context(d, &c);
    return status != LATHE_OK
               ? status
               : done(d, c, vta_ext_dev_api()->copy(c, from, from_offset, f, to, to_offset, t, bytes));
}

static int32_t sync(void *user, int32_t id)
{
    vta_context *c;
    (void)id;
    int32_t status = context(user, &c);
    return status != LATHE_OK ? status : done(user, c, vta_ext_dev_api()->sync(c));
}

static int32_t alive(void *user, int32_t id, const void *p)
{
    (void)user;
    (void)id;
    return vta_owner_of(p) != NULL;
}

lathe_device_api lathe_ext_dev_row(lathe_ext_dev *d)
{
    return (lathe_device_api){"ext_dev", LATHE_EXT_DEV, d, alloc, release, copy, sync, alive};
}

const lathe_device_api *lathe_device_api_ext_dev(void)
{
    static const lathe_device_api row = {"ext_dev", LATHE_EXT_DEV, NULL, alloc, release, copy, sync, alive};
    return &row;
}
