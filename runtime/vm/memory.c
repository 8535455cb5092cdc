/* memory.c: memory of devices. A pooled allocator keeps storages that are given back, up to the most that were in use
 * at once, so that a second run of a function asks the system for nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "memory.h"

#include "error.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

/* --- devices --- */

static int32_t host_alloc(void *user, int32_t id, size_t bytes, size_t align, void **out)
{
    (void)user, (void)id;
    *out = bytes > SIZE_MAX - align ? NULL : aligned_alloc(align, (bytes + align - 1) / align * align);
    return *out ? LATHE_OK : LATHE_E_MEMORY;
}

static void host_free(void *user, int32_t id, void *p)
{
    (void)user, (void)id;
    free(p);
}

static int32_t host_copy(void *user, const void *from, size_t from_offset, lathe_device from_device, void *to,
                         size_t to_offset, lathe_device to_device, size_t bytes)
{
    (void)user, (void)from_device, (void)to_device;
    if (bytes > 0)
        memcpy((char *)to + to_offset, (const char *)from + from_offset, bytes);
    return LATHE_OK;
}

void vm_devices_init(vm_devices *d)
{
    lathe_device_api row = {.alloc = host_alloc, .free = host_free, .copy = host_copy};
    memset(d, 0, sizeof *d);
    pthread_mutex_init(&d->lock, NULL);
    row.name = "cpu", row.type = LATHE_CPU;
    d->rows[d->count++] = row;
    row.name = "my_device", row.type = LATHE_MY_DEVICE;
    d->rows[d->count++] = row;
}

void vm_devices_free(vm_devices *d)
{
    for (uint32_t i = 2; i < d->count; i++)
        free((char *)(uintptr_t)d->rows[i].name);
    pthread_mutex_destroy(&d->lock);
}

bool vm_device_is_host(int32_t type)
{
    return type == LATHE_CPU || type == LATHE_MY_DEVICE;
}

int32_t vm_devices_add(vm_devices *d, const lathe_device_api *row, lathe_error *error)
{
    int32_t status = LATHE_OK;
    uint32_t at = 0;
    if (!row || !row->name || !row->alloc || !row->free || !row->copy)
        return vm_fail(error, LATHE_E_ARGUMENT, "a device needs a name and functions that allocate, free and copy");
    if (vm_device_is_host(row->type))
        return vm_fail(error, LATHE_E_ARGUMENT, "device type %d is this process's own memory", row->type);
    char *name = vm_text_copy((vm_bytes){(const uint8_t *)row->name, strlen(row->name)});
    if (!name)
        return vm_no_memory(error, strlen(row->name));
    pthread_mutex_lock(&d->lock);
    while (at < d->count && d->rows[at].type != row->type)
        at++;
    if (at == VM_DEVICES_MAX)
        status = vm_fail(error, LATHE_E_ARGUMENT, "more than %d types of devices", VM_DEVICES_MAX);
    if (status == LATHE_OK) {
        const char *old = at < d->count ? d->rows[at].name : NULL;
        d->count += at == d->count;
        d->rows[at] = *row;
        d->rows[at].name = name;
        name = (char *)(uintptr_t)old;
    }
    pthread_mutex_unlock(&d->lock);
    free(name);
    return status;
}

/* A device that no program has registered: a library of this process may have it, as it has the functions that kernels
 * call. */
static bool find_in_process(int32_t type, lathe_device_api *out)
{
    const lathe_device_api *(*row)(void) = NULL;
    if (type != LATHE_EXT_DEV)
        return false;
    *(void **)&row = dlsym(RTLD_DEFAULT, "lathe_device_api_ext_dev");
    if (!row)
        return false;
    *out = *row();
    return out->type == type && out->alloc && out->free && out->copy;
}

int32_t vm_devices_get(const vm_devices *devices, int32_t type, lathe_device_api *out, lathe_error *error)
{
    vm_devices *d = (vm_devices *)(uintptr_t)devices; /* the lock alone changes */
    bool found = false;
    pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; i < d->count && !found; i++)
        if (d->rows[i].type == type) {
            *out = d->rows[i];
            found = true;
        }
    pthread_mutex_unlock(&d->lock);
    if (found || find_in_process(type, out))
        return LATHE_OK;
    if (type == LATHE_EXT_DEV)
        return vm_fail(error, LATHE_E_UNSUPPORTED, "no device of type %d is registered: ext_dev is the VTA of libvta, "
                       "which is not in this process: link libvta, or open it with RTLD_GLOBAL", type);
    return vm_fail(error, LATHE_E_UNSUPPORTED, "no device of type %d is registered", type);
}

vm_name vm_device_name(lathe_device device)
{
    vm_name name;
    switch (device.type) {
    case LATHE_CPU: (void)snprintf(name.text, sizeof name.text, "cpu:%d", device.id); break;
    case LATHE_MY_DEVICE: (void)snprintf(name.text, sizeof name.text, "my_device:%d", device.id); break;
    case LATHE_EXT_DEV: (void)snprintf(name.text, sizeof name.text, "ext_dev:%d", device.id); break;
    default: (void)snprintf(name.text, sizeof name.text, "device type %d:%d", device.type, device.id); break;
    }
    return name;
}

/* --- allocators --- */

typedef struct vm_storage {
    lathe_object head;
    void *data;
    size_t bytes; /* that were asked for */
    size_t held;
    struct vm_allocator *allocator;
} vm_storage;

struct block {
    void *data;
    size_t bytes;
};

struct vm_allocator {
    lathe_object head;
    pthread_mutex_t lock; /* of what follows */
    struct block *kept;   /* from small to large */
    size_t count, capacity;
    size_t kept_bytes, used_bytes, most_bytes;
    bool keep;
    lathe_device_api api;
    lathe_device device;
    lathe_object *owner;
};

static void destroy_allocator(void *self)
{
    vm_allocator *a = self;
    vm_allocator_close(a);
    free(a->kept);
    pthread_mutex_destroy(&a->lock);
    vm_object_release(a->owner);
}

vm_allocator *vm_allocator_new(const lathe_device_api *api, lathe_device device, enum vm_allocator_kind kind,
                               lathe_object *owner)
{
    vm_allocator *a = vm_object_new(sizeof *a, LATHE_OBJECT, destroy_allocator);
    if (!a)
        return NULL;
    pthread_mutex_init(&a->lock, NULL);
    a->keep = kind == VM_ALLOCATE_POOLED;
    a->api = *api;
    a->device = device;
    a->owner = owner;
    vm_object_retain(owner);
    return a;
}

lathe_device vm_allocator_device(const vm_allocator *a)
{
    return a->device;
}

static void give_back_kept(vm_allocator *a)
{
    for (size_t i = 0; i < a->count; i++)
        a->api.free(a->api.user, a->device.id, a->kept[i].data);
    a->count = a->kept_bytes = 0;
}

void vm_allocator_close(vm_allocator *a)
{
    pthread_mutex_lock(&a->lock);
    a->keep = false;
    give_back_kept(a);
    pthread_mutex_unlock(&a->lock);
}

/* The first kept block of at least `bytes`. */
static size_t find_kept(const vm_allocator *a, size_t bytes)
{
    size_t low = 0, high = a->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (a->kept[middle].bytes < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool take_kept(vm_allocator *a, size_t bytes, struct block *out)
{
    for (;;) {
        const size_t i = find_kept(a, bytes);
        if (i == a->count || a->kept[i].bytes - bytes > bytes / 4 + 4096)
            return false;
        *out = a->kept[i];
        memmove(&a->kept[i], &a->kept[i + 1], (a->count - i - 1) * sizeof *a->kept);
        a->count--;
        a->kept_bytes -= out->bytes;
        if (!a->api.alive || a->api.alive(a->api.user, a->device.id, out->data))
            return true;
    }
}

/* False: it is not worth keeping, or there is no room to note it. */
static bool keep_block(vm_allocator *a, struct block b)
{
    if (!a->keep || a->kept_bytes + b.bytes > a->most_bytes)
        return false;
    if (a->count == a->capacity) {
        size_t capacity = a->capacity ? a->capacity * 2 : 16;
        struct block *kept = realloc(a->kept, capacity * sizeof *kept);
        if (!kept)
            return false;
        a->kept = kept;
        a->capacity = capacity;
    }
    size_t i = find_kept(a, b.bytes);
    memmove(&a->kept[i + 1], &a->kept[i], (a->count - i) * sizeof *a->kept);
    a->kept[i] = b;
    a->count++;
    a->kept_bytes += b.bytes;
    return true;
}

/* Where the device has none, what is kept goes first. */
static int32_t get_block(vm_allocator *a, size_t bytes, struct block *out)
{
    int32_t status = LATHE_OK;
    if (take_kept(a, bytes, out))
        return LATHE_OK;
    out->bytes = bytes;
    for (int i = 0; i < 2; i++) {
        out->data = NULL;
        status = a->api.alloc(a->api.user, a->device.id, bytes, VM_ALIGN, &out->data);
        if (status == LATHE_OK && out->data)
            return LATHE_OK;
        give_back_kept(a);
    }
    return status == LATHE_OK ? LATHE_E_MEMORY : status;
}

static void destroy_storage(void *self)
{
    vm_storage *s = self;
    vm_allocator *a = s->allocator;
    pthread_mutex_lock(&a->lock);
    a->used_bytes -= s->held;
    if (!keep_block(a, (struct block){s->data, s->held}))
        a->api.free(a->api.user, a->device.id, s->data);
    pthread_mutex_unlock(&a->lock);
    vm_object_release(&a->head);
}

/* An object that is only half made goes the way of its memory alone. */
static void destroy_nothing(void *self)
{
    vm_storage *s = self;
    if (s->allocator)
        destroy_storage(s);
}

int32_t vm_storage_new(vm_allocator *a, size_t bytes, lathe_value *out, lathe_error *error)
{
    size_t rounded = bytes == 0 ? VM_ALIGN : bytes;
    if (rounded > SIZE_MAX / 2)
        return vm_no_memory(error, bytes);
    rounded = (rounded + VM_ALIGN - 1) / VM_ALIGN * VM_ALIGN;
    vm_storage *s = vm_object_new(sizeof *s, LATHE_OBJECT, destroy_nothing);
    struct block b;
    if (!s)
        return vm_no_memory(error, sizeof *s);
    pthread_mutex_lock(&a->lock);
    int32_t status = get_block(a, rounded, &b);
    if (status == LATHE_OK) {
        a->used_bytes += b.bytes;
        a->most_bytes = a->used_bytes > a->most_bytes ? a->used_bytes : a->most_bytes;
    }
    pthread_mutex_unlock(&a->lock);
    if (status != LATHE_OK) {
        vm_object_release(&s->head);
        return vm_fail(error, status, "%s has no memory for %zu bytes", vm_device_name(a->device).text,
                       bytes);
    }
    s->data = b.data;
    s->bytes = bytes;
    s->held = b.bytes;
    s->allocator = a;
    vm_object_retain(&a->head);
    *out = vm_value_of(s);
    return LATHE_OK;
}

bool vm_value_is_storage(const lathe_value *v)
{
    return v->type == LATHE_OBJECT && vm_object_is(v->u.v_object, destroy_nothing);
}

/* --- tensors --- */

int32_t vm_storage_tensor(const lathe_value *storage, int64_t offset, const int64_t *dims, size_t n,
                          lathe_dtype dtype, lathe_value *out, lathe_error *error)
{
    vm_storage *s = (vm_storage *)(void *)storage->u.v_object;
    size_t bytes;
    vm_tensor *t;
    if (!vm_bytes_of(dtype, dims, n, &bytes))
        return vm_fail(error, LATHE_E_SHAPE, "a tensor of shape %s: a dimension below 0, or more than memory can hold",
                       vm_dims_name(dims, n).text);
    if (offset < 0 || (uint64_t)offset > s->bytes || bytes > s->bytes - (size_t)offset)
        return vm_fail(error, LATHE_E_SHAPE, "a tensor of %zu bytes at %lld does not lie in a storage of %zu bytes",
                       bytes, (long long)offset, s->bytes);
    const bool host = vm_device_is_host(s->allocator->device.type); /* else a handle: only its device can count */
    int32_t status = vm_tensor_new(host ? (char *)s->data + offset : s->data, s->allocator->device, dtype, dims, n,
                                   &s->head, &t, error);
    if (status != LATHE_OK)
        return status;
    t->t.byte_offset = host ? 0 : (uint64_t)offset;
    *out = vm_value_of(t);
    return LATHE_OK;
}

int32_t vm_tensor_alloc(vm_allocator *a, const int64_t *dims, size_t n, lathe_dtype dtype, lathe_value *out,
                        lathe_error *error)
{
    size_t bytes;
    lathe_value storage = {0};
    if (!vm_bytes_of(dtype, dims, n, &bytes))
        return vm_fail(error, LATHE_E_SHAPE, "a tensor of shape %s: a dimension below 0, or more than memory can hold",
                       vm_dims_name(dims, n).text);
    int32_t status = vm_storage_new(a, bytes, &storage, error);
    if (status == LATHE_OK)
        status = vm_storage_tensor(&storage, 0, dims, n, dtype, out, error);
    lathe_release(&storage);
    return status;
}

/* The device that knows both sides of a copy copies: it knows the host and itself. */
static int32_t copy_bytes(const vm_devices *d, const void *from, size_t from_offset, lathe_device from_device,
                          void *to, size_t to_offset, lathe_device to_device, size_t bytes, lathe_error *error)
{
    lathe_device_api api;
    int32_t type = vm_device_is_host(from_device.type) ? to_device.type : from_device.type;
    int32_t status = vm_devices_get(d, type, &api, error);
    if (status != LATHE_OK || bytes == 0)
        return status;
    if (from_device.type != to_device.type && !vm_device_is_host(from_device.type) &&
        !vm_device_is_host(to_device.type))
        return vm_fail(error, LATHE_E_UNSUPPORTED, "nothing copies from %s to %s: go by way of the CPU",
                       vm_device_name(from_device).text, vm_device_name(to_device).text);
    status = api.copy(api.user, from, from_offset, from_device, to, to_offset, to_device, bytes);
    if (status == LATHE_OK && api.sync)
        status = api.sync(api.user, type == to_device.type ? to_device.id : from_device.id);
    if (status != LATHE_OK)
        return vm_fail(error, status, "copying %zu bytes from %s to %s failed", bytes, vm_device_name(from_device).text,
                       vm_device_name(to_device).text);
    return LATHE_OK;
}

int32_t vm_tensor_copy(const vm_devices *d, const lathe_dltensor *from, vm_allocator *a, lathe_value *out,
                       lathe_error *error)
{
    lathe_value v = {0};
    size_t bytes, n = (size_t)from->ndim;
    if (!vm_tensor_is_dense(from))
        return vm_fail(error, LATHE_E_SHAPE, "a tensor whose elements do not lie without gaps cannot be copied");
    int32_t status = vm_tensor_alloc(a, from->shape, n, from->dtype, &v, error);
    if (status == LATHE_OK && vm_bytes_of(from->dtype, from->shape, n, &bytes))
        status = copy_bytes(d, from->data, from->byte_offset, from->device, lathe_tensor_of(&v)->data, 0, a->device,
                            bytes, error);
    if (status == LATHE_OK)
        *out = v;
    else
        lathe_release(&v);
    return status;
}

int32_t vm_tensor_copy_to(const vm_devices *d, const lathe_dltensor *from, const lathe_dltensor *to,
                          lathe_error *error)
{
    size_t has, wants;
    if (!vm_tensor_is_dense(from) || !vm_tensor_is_dense(to))
        return vm_fail(error, LATHE_E_SHAPE, "a tensor whose elements do not lie without gaps cannot be copied");
    if (!vm_bytes_of(from->dtype, from->shape, (size_t)from->ndim, &has) ||
        !vm_bytes_of(to->dtype, to->shape, (size_t)to->ndim, &wants) || has != wants)
        return vm_fail(error, LATHE_E_SHAPE, "a tensor %s%s is copied into one %s%s", vm_dtype_name(from->dtype).text,
                       vm_dims_name(from->shape, (size_t)from->ndim).text, vm_dtype_name(to->dtype).text,
                       vm_dims_name(to->shape, (size_t)to->ndim).text);
    return copy_bytes(d, from->data, from->byte_offset, from->device, to->data, to->byte_offset, to->device, has,
                      error);
}

int32_t vm_tensor_from_bytes(const vm_devices *d, vm_bytes bytes, const int64_t *dims, size_t n, lathe_dtype dtype,
                             vm_allocator *a, lathe_value *out, lathe_error *error)
{
    lathe_dltensor from = {(void *)(uintptr_t)bytes.data, {LATHE_CPU, 0}, (int32_t)n, dtype, (int64_t *)(uintptr_t)dims,
                           NULL, 0};
    return vm_tensor_copy(d, &from, a, out, error);
}

int32_t vm_tensor_read(const vm_devices *d, const lathe_dltensor *from, void *to, size_t bytes, lathe_error *error)
{
    return copy_bytes(d, from->data, from->byte_offset, from->device, to, 0, (lathe_device){LATHE_CPU, 0}, bytes,
                      error);
}
