/* runtime.c: runtimes: options, devices, threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void destroy_runtime(void *self)
{
    lathe_runtime *rt = self;
    vm_pool_free(rt->pool);
    vm_devices_free(&rt->devices);
    for (size_t i = 0; i < sizeof rt->texts / sizeof *rt->texts; i++)
        free(rt->texts[i]);
}

/* The caller's structure may be older, and then shorter. */
static int32_t copy_options(const lathe_options *options, lathe_options *out, lathe_error *error)
{
    *out = (lathe_options){.size = sizeof *out};
    if (options && options->size == 0)
        return vm_fail(error, LATHE_E_ARGUMENT, "lathe_options.size must be sizeof(lathe_options)");
    if (options)
        memcpy(out, options, options->size < sizeof *out ? options->size : sizeof *out);
    out->size = sizeof *out;
    if (!out->keep_sources)
        out->keep_sources = getenv("LATHE_KEEP_SOURCES");
    if (out->workers > VM_POOL_MAX)
        return vm_fail(error, LATHE_E_ARGUMENT, "%u workers; at most %d", out->workers, VM_POOL_MAX);
    return LATHE_OK;
}

static bool own_texts(lathe_runtime *rt)
{
    const char **texts[] = {&rt->options.cache_dir, &rt->options.keep_sources, &rt->options.compiler};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!*texts[i])
            continue;
        rt->texts[i] = vm_text_copy((vm_bytes){(const uint8_t *)*texts[i], strlen(*texts[i])});
        if (!rt->texts[i])
            return false;
        *texts[i] = rt->texts[i];
    }
    return true;
}

int32_t lathe_runtime_create(const lathe_options *options, lathe_runtime **out, lathe_error *error)
{
    lathe_options checked;
    *out = NULL;
    int32_t status = copy_options(options, &checked, error);
    if (status != LATHE_OK)
        return status;
    lathe_runtime *rt = vm_object_new(sizeof *rt, LATHE_OBJECT, destroy_runtime);
    if (!rt)
        return vm_no_memory(error, sizeof *rt);
    rt->options = checked;
    vm_devices_init(&rt->devices);
    rt->pool = vm_pool_new(checked.workers);
    if (!rt->pool || !own_texts(rt)) {
        vm_object_release(&rt->head);
        return vm_no_memory(error, sizeof *rt);
    }
    *out = rt;
    return LATHE_OK;
}

void lathe_runtime_destroy(lathe_runtime *rt)
{
    if (rt)
        vm_object_release(&rt->head);
}

int32_t lathe_set_workers(lathe_runtime *rt, uint32_t workers, lathe_error *error)
{
    if (workers > VM_POOL_MAX)
        return vm_fail(error, LATHE_E_ARGUMENT, "%u workers; at most %d", workers, VM_POOL_MAX);
    vm_pool_resize(rt->pool, workers);
    return LATHE_OK;
}

int32_t lathe_device_register(lathe_runtime *rt, const lathe_device_api *device, lathe_error *error)
{
    return vm_devices_add(&rt->devices, device, error);
}

int32_t lathe_device_find(const lathe_runtime *rt, const char *name, int32_t *out_type)
{
    vm_devices *d = (vm_devices *)(uintptr_t)&rt->devices; /* the lock alone changes */
    int32_t status = LATHE_E_NAME;
    pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; i < d->count && status != LATHE_OK; i++)
        if (strcmp(d->rows[i].name, name) == 0) {
            *out_type = d->rows[i].type;
            status = LATHE_OK;
        }
    pthread_mutex_unlock(&d->lock);
    return status;
}

void vm_log_text(const lathe_runtime *rt, const char *line)
{
    if (rt->options.log)
        rt->options.log(rt->options.user, line);
    else
        fprintf(stderr, "%s\n", line);
}

void vm_log(const lathe_runtime *rt, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    vm_log_text(rt, line);
}
