/* metadata.c: the file that says what a module's inputs are, {"inputs": [{"name", "shape", "dtype", "device"}]}: read,
 * and compared with what the module's main takes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "metadata.h"

#include "error.h"

#if defined(LATHE_NO_JANSSON)

int32_t vm_metadata_read(lathe_runtime *rt, const lathe_value *vm, const char *path, vm_metadata_take take, void *user,
                         lathe_error *error)
{
    (void)rt, (void)vm, (void)take, (void)user;
    return vm_fail(error, LATHE_E_UNSUPPORTED, "%s: this library was built without jansson, which reads it", path);
}

#else

#include "value.h"

#include "abi/module.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { MOST_RANK = 64 };

/* An input as the file has it. */
struct input {
    const char *name, *dtype;
    json_t *shape;
};

/* Who gets the inputs. */
struct reading {
    vm_metadata_take take;
    void *user;
};

static int32_t bad(lathe_error *error, size_t i, const char *what)
{
    return vm_fail(error, LATHE_E_FORMAT, "input %zu: %s", i, what);
}

static int32_t check_device(const lathe_runtime *rt, const json_t *device, size_t i, lathe_error *error)
{
    int32_t type;
    char name[64] = "";
    const char *text = json_string_value(device);
    if (!device)
        return LATHE_OK;
    if (!text || strlen(text) >= sizeof name)
        return bad(error, i, "\"device\" is not a text");
    memcpy(name, text, strcspn(text, ":")); /* "cpu:0" */
    if (lathe_device_find(rt, name, &type) != LATHE_OK)
        return vm_fail(error, LATHE_E_NAME, "input %zu: there is no device %s", i, name);
    return LATHE_OK;
}

static int32_t read_input(const lathe_runtime *rt, json_t *from, size_t i, struct input *out, lathe_error *error)
{
    if (!json_is_object(from))
        return bad(error, i, "it is not an object");
    out->name = json_string_value(json_object_get(from, "name"));
    out->dtype = json_string_value(json_object_get(from, "dtype"));
    out->shape = json_object_get(from, "shape");
    if (!out->name || !out->dtype)
        return bad(error, i, "\"name\" and \"dtype\" are texts, and both are needed");
    if (!json_is_array(out->shape) || json_array_size(out->shape) > MOST_RANK)
        return bad(error, i, "\"shape\" is a list of numbers, and it is needed");
    for (size_t k = 0; k < json_array_size(out->shape); k++) {
        const json_t *dim = json_array_get(out->shape, k);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return bad(error, i, "a dimension is a number from 0 on");
    }
    return check_device(rt, json_object_get(from, "device"), i, error);
}

/* The type of that name; false: there is none. */
static bool find_dtype(const char *name, lathe_dtype *out)
{
    enum { INT = MODULE_DTYPE_INT, UINT = MODULE_DTYPE_UINT, FLOAT = MODULE_DTYPE_FLOAT };
    static const lathe_dtype all[] = {
        {INT, 8, 1},   {INT, 16, 1},   {INT, 32, 1},   {INT, 64, 1},   {UINT, 8, 1},
        {UINT, 16, 1}, {UINT, 32, 1},  {UINT, 64, 1},  {FLOAT, 16, 1}, {FLOAT, 32, 1},
        {FLOAT, 64, 1}, {MODULE_DTYPE_BFLOAT, 16, 1}, {MODULE_DTYPE_BOOL, 8, 1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(vm_dtype_name(all[i]).text, name) == 0) {
            *out = all[i];
            return true;
        }
    return false;
}

/* What the module takes is -1 where any extent is possible. */
static int32_t compare(const lathe_value *vm, const struct input *in, size_t i, struct reading *r, lathe_error *error)
{
    const char *name;
    lathe_dtype dtype;
    int32_t rank;
    int64_t wanted[MOST_RANK], given[MOST_RANK];
    size_t n = json_array_size(in->shape);
    int32_t status = lathe_function_parameter(vm, "main", (int32_t)i, &name, &dtype, &rank, wanted, MOST_RANK, error);
    if (status != LATHE_OK)
        return status;
    if (name[0] != 0 && strcmp(name, in->name) != 0)
        return vm_fail(error, LATHE_E_NAME, "input %zu is called %.80s, in the module %.80s", i, in->name, name);
    if (dtype.bits != 0 && strcmp(vm_dtype_name(dtype).text, in->dtype) != 0)
        return vm_fail(error, LATHE_E_SHAPE, "input %.80s is of %.40s, in the module of %s", in->name, in->dtype,
                       vm_dtype_name(dtype).text);
    if (dtype.bits == 0 && !find_dtype(in->dtype, &dtype))
        return vm_fail(error, LATHE_E_FORMAT, "input %.80s: there is no type %.40s", in->name, in->dtype);
    bool same = rank < 0 || (size_t)rank == n;
    for (size_t k = 0; k < n; k++) {
        given[k] = json_integer_value(json_array_get(in->shape, k));
        same = same && (rank < 0 || wanted[k] == -1 || wanted[k] == given[k]);
    }
    if (same)
        return r->take ? r->take(r->user, (int32_t)i, dtype, given, n, error) : LATHE_OK;
    return vm_fail(error, LATHE_E_SHAPE, "input %.80s has the shape %s, in the module %s (-1: any)", in->name,
                   vm_dims_name(given, n).text, vm_dims_name(wanted, rank < MOST_RANK ? (size_t)rank : MOST_RANK).text);
}

static int32_t check_inputs(const lathe_runtime *rt, const lathe_value *vm, const json_t *root, struct reading *r,
                            lathe_error *error)
{
    const json_t *inputs = json_object_get(root, "inputs");
    int32_t arity;
    struct input in;
    if (!json_is_array(inputs))
        return vm_fail(error, LATHE_E_FORMAT, "\"inputs\" is a list, and it is needed");
    int32_t status = lathe_function_arity(vm, "main", &arity, error);
    if (status == LATHE_OK && json_array_size(inputs) != (size_t)arity)
        return vm_fail(error, LATHE_E_SHAPE, "it has %zu inputs, the module %d", json_array_size(inputs), arity);
    for (size_t i = 0; i < json_array_size(inputs) && status == LATHE_OK; i++) {
        status = read_input(rt, json_array_get(inputs, i), i, &in, error);
        if (status == LATHE_OK)
            status = compare(vm, &in, i, r, error);
    }
    return status;
}

static int32_t read_json(const char *path, json_t **out, lathe_error *error)
{
    json_error_t e;
    FILE *f = fopen(path, "rb");
    if (!f)
        return vm_fail(error, LATHE_E_FILE, "%s", strerror(errno));
    *out = json_loadf(f, JSON_REJECT_DUPLICATES, &e);
    bool failed = ferror(f);
    (void)fclose(f);
    if (*out)
        return LATHE_OK;
    if (failed)
        return vm_fail(error, LATHE_E_FILE, "it cannot be read");
    if (json_error_code(&e) == json_error_out_of_memory)
        return vm_fail(error, LATHE_E_MEMORY, "no memory");
    return vm_fail(error, LATHE_E_FORMAT, "line %d, column %d: %s", e.line, e.column, e.text);
}

int32_t vm_metadata_read(lathe_runtime *rt, const lathe_value *vm, const char *path, vm_metadata_take take, void *user,
                         lathe_error *error)
{
    json_t *root = NULL;
    int32_t status = read_json(path, &root, error);
    if (status == LATHE_OK)
        status = check_inputs(rt, vm, root, &(struct reading){take, user}, error);
    json_decref(root);
    return status == LATHE_OK ? status : vm_at(error, status, "%s", path);
}

#endif

int32_t lathe_check_metadata(lathe_runtime *rt, const lathe_value *vm, const char *path, lathe_error *error)
{
    return vm_metadata_read(rt, vm, path, NULL, NULL, error);
}
