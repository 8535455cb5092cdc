/* vta_device.c: libvta's default device behind the device table. The simulator is programmed by its configuration; it
 * travels in the environment, as code that calls VTA* functions finds the device by it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "vta_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void keep(rpc_vta *v, const vta_error *e)
{
    if (!v->failed)
        v->error = *e;
    v->failed = true;
}

static void handle(const vta_error *e, void *user)
{
    keep(user, e);
}

static int32_t context(rpc_vta *v, vta_context **out)
{
    vta_error e = {VTA_OK, ""};
    vta_status s = vta_default_context(out, &e);
    if (s != VTA_OK)
        keep(v, &e);
    return lathe_ext_dev_status(s);
}

static void failed(void *user, const vta_error *e)
{
    keep(user, e);
}

lathe_device_api rpc_vta_begin(rpc_vta *v)
{
    *v = (rpc_vta){.row = {.failed = failed, .user = v}};
    vta_set_error_handler(handle, v);
    return lathe_ext_dev_row(&v->row);
}

void rpc_vta_end(rpc_vta *v)
{
    VTARuntimeShutdown();
    if (v->configured && v->before)
        (void)setenv("VTA_CONFIG", v->before, 1);
    else if (v->configured)
        (void)unsetenv("VTA_CONFIG");
    free(v->before);
    v->before = NULL;
    vta_set_error_handler(NULL, NULL);
}

int32_t rpc_vta_check(rpc_vta *v, lathe_error *error)
{
    vta_error e = v->error, more;
    if (!v->failed)
        return LATHE_OK;
    v->failed = false;
    (void)vta_last_error(NULL, &more);
    return rpc_fail(error, lathe_ext_dev_status(e.status), "VTA: %s (%s)", e.text, vta_status_text(e.status));
}

/* --- configuration --- */

static int32_t use(rpc_vta *v, const char *path, const vta_config *c, lathe_error *error)
{
    char text[2048];
    vta_geometry g;
    vta_error e = {VTA_OK, ""};
    vta_context *made;
    if (vta_config_check(c, &g, &e) != VTA_OK)
        return rpc_fail(error, LATHE_E_FORMAT, "VTA: %s", e.text);
    if (v->row.buffers > 0)
        return rpc_fail(error, LATHE_E_REFUSED, "%u tensors are on the VTA: free them before it is configured anew",
                        v->row.buffers);
    size_t n = vta_config_print(c, text, sizeof text);
    FILE *f = n < sizeof text ? fopen(path, "w") : NULL;
    bool ok = f && fwrite(text, 1, n, f) == n;
    if (f)
        ok &= fclose(f) == 0;
    const char *before = getenv("VTA_CONFIG");
    if (!v->configured && before)
        v->before = strdup(before);
    v->configured = true;
    if (!ok || setenv("VTA_CONFIG", path, 1) != 0)
        return rpc_fail(error, LATHE_E_FILE, "the VTA's configuration cannot be written");
    VTARuntimeShutdown();
    int32_t status = context(v, &made);
    return status == LATHE_OK ? status : rpc_vta_check(v, error);
}

int32_t rpc_vta_configure(rpc_vta *v, const char *path, const char *json, size_t size, lathe_error *error)
{
    vta_config c = vta_config_default();
    vta_error e = {VTA_OK, ""};
    vta_status s = vta_config_parse("the configuration", json, size, &c, &e);
    return s == VTA_OK ? use(v, path, &c, error) : rpc_fail(error, lathe_ext_dev_status(s), "VTA: %s", e.text);
}

int32_t rpc_vta_program(rpc_vta *v, const char *path, const char *name, lathe_error *error)
{
    char stem[200];
    vta_config c = vta_config_default();
    vta_error e = {VTA_OK, ""};
    const char *dot = strrchr(name, '.');
    const size_t n = dot && strcmp(dot, ".bit") == 0 ? (size_t)(dot - name) : strlen(name);
    (void)snprintf(stem, sizeof stem, "%.*s", (int)(n < sizeof stem ? n : sizeof stem - 1), name);
    vta_status s = vta_config_preset(stem, &c, &e);
    return s == VTA_OK ? use(v, path, &c, error)
                       : rpc_fail(error, LATHE_E_FORMAT,
                                  "VTA: %s; this server simulates, and takes from a bit stream its name alone, such as "
                                  "1x16_i8w8a32_15_15_18_17.bit",
                                  e.text);
}

int32_t rpc_vta_shutdown(rpc_vta *v, lathe_error *error)
{
    if (v->row.buffers > 0)
        return rpc_fail(error, LATHE_E_REFUSED, "%u tensors are on the VTA: free them first", v->row.buffers);
    VTARuntimeShutdown();
    return LATHE_OK;
}

/* --- counters --- */

static int32_t counted(vta_context **out, lathe_error *error)
{
    vta_error e = {VTA_OK, ""};
    vta_status s = vta_default_context(out, &e);
    return s == VTA_OK ? LATHE_OK : rpc_fail(error, lathe_ext_dev_status(s), "VTA: %s", e.text);
}

int32_t rpc_vta_counters(char *out, size_t size, lathe_error *error)
{
    vta_context *c;
    int32_t status = counted(&c, error);
    if (status != LATHE_OK)
        return status;
    const size_t n = vta_context_counters(c, out, size);
    return n > 0 && n < size ? LATHE_OK
                             : rpc_fail(error, LATHE_E_UNSUPPORTED, "VTA: the device %s has no counters",
                                        vta_context_device(c)->driver->name);
}

int32_t rpc_vta_clear_counters(lathe_error *error)
{
    vta_context *c;
    int32_t status = counted(&c, error);
    if (status == LATHE_OK)
        vta_context_clear_counters(c);
    return status;
}
