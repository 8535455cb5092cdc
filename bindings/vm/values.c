/* SPDX-License-Identifier: Apache-2.0 */
/* Values across the border: see the header. */
#include "values.h"

#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(TVMFFIAny) == sizeof(lathe_value), "the layout of tvm-ffi's C ABI 0.1");
_Static_assert((int)LATHE_STRING == (int)kTVMFFIStr && (int)LATHE_TENSOR == (int)kTVMFFITensor, "its type numbers");

/* --- errors --- */

static const char *kind_of(int32_t code)
{
    switch (code) {
    case LATHE_E_ARGUMENT: return "TypeError";
    case LATHE_E_MEMORY: return "MemoryError";
    case LATHE_E_FORMAT:
    case LATHE_E_SHAPE: return "ValueError";
    case LATHE_E_NAME: return "AttributeError";
    default: return "RuntimeError";
    }
}

static int raise(const char *kind, const char *message)
{
    if (tvm_ffi())
        tvm_ffi()->TVMFFIErrorSetRaisedFromCStr(kind, message);
    return -1;
}

int values_raise(const lathe_error *error)
{
    return raise(kind_of(error->code), error->message);
}

static int no_memory(void)
{
    return raise("MemoryError", "no memory");
}

/* --- modules: an object with the machine's value behind its header --- */

typedef struct module_object {
    uint64_t reserved[2]; /* in front of every object: tvm-ffi may use it */
    TVMFFIObject head;
    lathe_value value;
} module_object;

static void delete_module(void *self, int flags)
{
    module_object *m = (module_object *)(void *)((char *)self - offsetof(module_object, head));
    if (flags & kTVMFFIObjectDeleterFlagBitMaskStrong)
        lathe_release(&m->value);
    if (flags & kTVMFFIObjectDeleterFlagBitMaskWeak)
        free(m);
}

static int32_t module_type; /* its number in this process; written while the library is loaded */

int values_register(void)
{
    static const char key[] = "lathe.Module";
    const TVMFFIByteArray name = {key, sizeof key - 1};
    const TVMFFITypeMetadata about = {.total_size = sizeof(TVMFFIObject) + sizeof(lathe_value)};
    module_type = tvm_ffi()->TVMFFITypeGetOrAllocIndex(&name, -1, 1, 0, 1, kTVMFFIObject);
    const TVMFFITypeInfo *info = tvm_ffi()->TVMFFIGetTypeInfo(module_type);
    return info && !info->metadata ? tvm_ffi()->TVMFFITypeRegisterMetadata(module_type, &about) : 0;
}

static int module_out(lathe_value *v, TVMFFIAny *result)
{
    module_object *m = calloc(1, sizeof *m);
    if (!m)
        return no_memory();
    m->head.combined_ref_count = (UINT64_C(1) << 32) | 1;
    m->head.type_index = module_type;
    m->head.deleter = delete_module;
    m->value = *v;
    *v = (lathe_value){0};
    result->type_index = m->head.type_index;
    result->v_obj = &m->head;
    return 0;
}

const lathe_value *values_module(const TVMFFIObject *object)
{
    return object && object->type_index == module_type ? tvm_ffi_cell(object) : NULL;
}

/* --- in --- */

static int array_in(const TVMFFIAny *arg, int32_t i, lathe_value *out);

/* A tensor inside of an array, which may outlive the call: it keeps the object that it is a view of. */
static int element_in(const TVMFFIAny *arg, int32_t i, lathe_value *out)
{
    lathe_error error;
    vm_tensor *wrapped;
    bool owned;
    if (arg->type_index == kTVMFFIArray)
        return array_in(arg, i, out);
    if (arg->type_index != kTVMFFITensor) {
        if (values_in(arg, i, out, &owned) != 0)
            return -1;
        *out = lathe_retain(out);
        return 0;
    }
    const lathe_dltensor *t = tvm_ffi_cell(arg->v_obj);
    if (!vm_tensor_is_dense(t))
        return raise("ValueError", "a tensor in a tuple has gaps between its elements: copy it first");
    if (vm_tensor_new(t->data, t->device, t->dtype, t->shape, (size_t)t->ndim, (lathe_object *)(void *)arg->v_obj,
                      &wrapped, &error) != LATHE_OK)
        return values_raise(&error);
    wrapped->t.byte_offset = t->byte_offset;
    wrapped->borrowed = true;
    *out = vm_value_of(wrapped);
    return 0;
}

static int array_in(const TVMFFIAny *arg, int32_t i, lathe_value *out)
{
    const TVMFFISeqCell *seq = tvm_ffi_cell(arg->v_obj);
    const TVMFFIAny *from = seq->data;
    lathe_error error;
    lathe_value *elements = calloc((size_t)seq->size + 1, sizeof *elements);
    int rc = elements ? 0 : no_memory();
    for (int64_t k = 0; k < seq->size && rc == 0; k++)
        rc = element_in(&from[k], i, &elements[k]);
    if (rc == 0 && vm_array_new(elements, (size_t)seq->size, out, &error) != LATHE_OK)
        rc = values_raise(&error);
    for (int64_t k = 0; elements && k < seq->size; k++)
        lathe_release(&elements[k]);
    free(elements);
    return rc;
}

int values_in(const TVMFFIAny *arg, int32_t i, lathe_value *out, bool *out_owned)
{
    char message[160];
    const lathe_value *module;
    *out_owned = false;
    memcpy(out, arg, sizeof *out);
    switch (arg->type_index) {
    case kTVMFFINone:
    case kTVMFFIInt:
    case kTVMFFIBool:
    case kTVMFFIFloat:
    case kTVMFFIOpaquePtr:
    case kTVMFFIDataType:
    case kTVMFFIDevice:
    case kTVMFFIDLTensorPtr:
    case kTVMFFIRawStr:
    case kTVMFFISmallStr:
    case kTVMFFIStr:
    case kTVMFFIFunction:
    case kTVMFFIShape: return 0;
    case kTVMFFITensor:
        *out = (lathe_value){.type = LATHE_DLTENSOR};
        out->u.v_pointer = (void *)(uintptr_t)tvm_ffi_cell(arg->v_obj);
        return 0;
    case kTVMFFIArray: *out_owned = true; return array_in(arg, i, out);
    default: break;
    }
    module = arg->type_index >= kTVMFFIStaticObjectBegin ? values_module(arg->v_obj) : NULL;
    if (module) {
        *out = *module;
        return 0;
    }
    (void)snprintf(message, sizeof message, "argument %d is of type %d, which the machine does not take", (int)i,
                   (int)arg->type_index);
    return raise("TypeError", message);
}

/* --- out --- */

/* A result of the machine as DLPack has it. */
typedef struct lent {
    DLManagedTensorVersioned managed;
    lathe_value value;
} lent;

static void give_back(DLManagedTensorVersioned *m)
{
    lent *l = m->manager_ctx;
    lathe_release(&l->value);
    free(l);
}

/* Memory of the CPU is said to be that, under whatever name the machine has its device. */
static int tensor_out(lathe_value *v, TVMFFIAny *result)
{
    TVMFFIObjectHandle handle = NULL;
    lent *l = calloc(1, sizeof *l);
    if (!l)
        return no_memory();
    l->managed.version = (DLPackVersion){1, 0};
    l->managed.manager_ctx = l;
    l->managed.deleter = give_back;
    memcpy(&l->managed.dl_tensor, lathe_tensor_of(v), sizeof l->managed.dl_tensor);
    if (vm_device_is_host((int32_t)l->managed.dl_tensor.device.device_type))
        l->managed.dl_tensor.device = (DLDevice){kDLCPU, 0};
    l->value = *v;
    *v = (lathe_value){0};
    if (tvm_ffi()->TVMFFITensorFromDLPackVersioned(&l->managed, 0, 0, &handle) != 0) {
        give_back(&l->managed);
        return -1;
    }
    result->type_index = kTVMFFITensor;
    result->v_obj = handle;
    return 0;
}

/* The result of one of libtvm_ffi's own functions. */
static int call_global(const char *name, TVMFFIAny *args, int32_t n, TVMFFIAny *result)
{
    TVMFFIByteArray key = {name, strlen(name)};
    TVMFFIObjectHandle f = NULL;
    if (tvm_ffi()->TVMFFIFunctionGetGlobal(&key, &f) != 0)
        return -1;
    if (!f)
        return raise("RuntimeError", "libtvm_ffi lacks a function of its own");
    int rc = tvm_ffi()->TVMFFIFunctionCall(f, args, n, result);
    tvm_ffi()->TVMFFIObjectDecRef(f);
    return rc;
}

static void drop(TVMFFIAny *v)
{
    if (v->type_index >= kTVMFFIStaticObjectBegin)
        tvm_ffi()->TVMFFIObjectDecRef(v->v_obj);
}

static int array_out(const lathe_value *v, TVMFFIAny *result)
{
    size_t n = lathe_array_size(v);
    TVMFFIAny *elements = calloc(n + 1, sizeof *elements);
    int rc = elements ? 0 : no_memory();
    for (size_t i = 0; i < n && rc == 0; i++) {
        lathe_value element;
        (void)lathe_array_get(v, i, &element, NULL);
        element = lathe_retain(&element);
        rc = values_out(&element, &elements[i]);
    }
    if (rc == 0)
        rc = call_global("ffi.Array", elements, (int32_t)n, result);
    for (size_t i = 0; elements && i < n; i++)
        drop(&elements[i]);
    free(elements);
    return rc;
}

static int shape_out(const lathe_value *v, TVMFFIAny *result)
{
    const int64_t *dims;
    size_t n;
    (void)vm_value_dims(v, &dims, &n);
    TVMFFIAny *elements = calloc(n + 1, sizeof *elements);
    if (!elements)
        return no_memory();
    for (size_t i = 0; i < n; i++) {
        elements[i].type_index = kTVMFFIInt;
        elements[i].v_int64 = dims[i];
    }
    int rc = call_global("ffi.Shape", elements, (int32_t)n, result);
    free(elements);
    return rc;
}

/* --- functions: closures over the machine's --- */

enum { FEW_ARGS = 16 };

static int call_with(const lathe_value *function, const TVMFFIAny *args, int32_t n, lathe_value *own, bool *owned,
                     TVMFFIAny *result)
{
    lathe_value out = {0};
    lathe_error error;
    int rc = 0;
    int32_t taken = 0;
    while (taken < n && rc == 0) {
        rc = values_in(&args[taken], taken, &own[taken], &owned[taken]);
        taken += rc == 0;
    }
    if (rc == 0)
        rc = lathe_call(function, own, n, &out, &error) == LATHE_OK ? values_out(&out, result) : values_raise(&error);
    for (int32_t i = 0; i < taken; i++)
        if (owned[i])
            lathe_release(&own[i]);
    return rc;
}

static int call_function(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result)
{
    lathe_value few[FEW_ARGS], *own = few;
    bool few_owned[FEW_ARGS], *owned = few_owned;
    if (n > FEW_ARGS) {
        own = calloc((size_t)n, sizeof *own);
        owned = calloc((size_t)n, sizeof *owned);
    }
    int rc = own && owned ? call_with(self, args, n, own, owned, result) : no_memory();
    if (n > FEW_ARGS) {
        free(own);
        free(owned);
    }
    return rc;
}

static void delete_function(void *self)
{
    lathe_release(self);
    free(self);
}

static int function_out(lathe_value *v, TVMFFIAny *result)
{
    TVMFFIObjectHandle handle = NULL;
    lathe_value *own = malloc(sizeof *own);
    if (!own)
        return no_memory();
    *own = *v;
    *v = (lathe_value){0};
    if (tvm_ffi()->TVMFFIFunctionCreate(own, call_function, delete_function, &handle) != 0) {
        delete_function(own);
        return -1;
    }
    result->type_index = kTVMFFIFunction;
    result->v_obj = handle;
    return 0;
}

static int convert_out(lathe_value *v, TVMFFIAny *result)
{
    TVMFFIByteArray text;
    switch (v->type) {
    case LATHE_NONE:
    case LATHE_INT:
    case LATHE_BOOL:
    case LATHE_FLOAT:
    case LATHE_POINTER:
    case LATHE_DTYPE:
    case LATHE_DEVICE:
    case LATHE_SMALL_STRING: memcpy(result, v, sizeof *result); return 0;
    case LATHE_STRING:
        text = (TVMFFIByteArray){(const char *)vm_value_text(v).data, vm_value_text(v).size};
        return tvm_ffi()->TVMFFIStringFromByteArray(&text, result);
    case LATHE_FUNCTION: return function_out(v, result);
    case LATHE_SHAPE: return shape_out(v, result);
    case LATHE_TENSOR: return tensor_out(v, result);
    case LATHE_ARRAY: return array_out(v, result);
    case LATHE_MODULE: return module_out(v, result);
    default: return raise("TypeError", "the machine returned a value of its own, which means nothing outside of it");
    }
}

int values_out(lathe_value *v, TVMFFIAny *result)
{
    *result = (TVMFFIAny){.type_index = kTVMFFINone};
    int rc = convert_out(v, result);
    lathe_release(v);
    return rc;
}
