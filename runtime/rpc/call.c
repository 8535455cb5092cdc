/* call.c: values from and to the wire.
 * SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <stdlib.h>
#include <string.h>

/* --- arguments --- */

int32_t rpc_item_text(const rpc_item *item, const char *what, char *out, size_t size, lathe_error *error)
{
    out[0] = '\0';
    if (item->type != LATHE_RAW_STRING)
        return rpc_fail(error, LATHE_E_ARGUMENT, "%s: a string is taken", what);
    if (item->size >= size || (item->size > 0 && memchr(item->bytes, 0, item->size)))
        return rpc_fail(error, LATHE_E_ARGUMENT, "%s: a string of %zu bytes, or with a zero in it", what, item->size);
    if (item->size > 0)
        memcpy(out, item->bytes, item->size);
    out[item->size] = '\0';
    return LATHE_OK;
}

static bool is_host(lathe_device d)
{
    return d.type != LATHE_EXT_DEV;
}

static int32_t tensor_argument(rpc_state *s, const rpc_tensor *t, lathe_dltensor *out, lathe_error *error)
{
    uint64_t bytes, offset;
    rpc_block block;
    if (!rpc_tensor_bytes(t->dtype, t->shape, t->ndim, &bytes))
        return rpc_fail(error, LATHE_E_ARGUMENT, "a tensor with more elements than memory can have, or below none");
    int32_t status = rpc_memory_find(&s->memory, t, bytes, &block, &offset, error);
    if (status != LATHE_OK)
        return status;
    /* Kernels of stock modules take no byte offset; what is not memory of this process has no other way. */
    *out = (lathe_dltensor){.data = is_host(block.device) ? (char *)block.real + offset : block.real,
                            .byte_offset = is_host(block.device) ? 0 : offset,
                            .device = t->device,
                            .ndim = t->ndim,
                            .dtype = t->dtype,
                            .shape = (int64_t *)t->shape};
    if (is_host(block.device) != is_host(t->device))
        return rpc_fail(error, LATHE_E_ARGUMENT, "a tensor of device type %d that lies on one of type %d",
                        t->device.type, block.device.type);
    return LATHE_OK;
}

static int32_t object_argument(rpc_state *s, const rpc_item *item, lathe_value *out, lathe_error *error)
{
    const rpc_held *held = rpc_handles_get(&s->handles, item->u.v_handle);
    if (!held)
        return rpc_fail(error, LATHE_E_NAME, "no handle 0x%llx is held", (unsigned long long)item->u.v_handle);
    if (held->value.type < LATHE_OBJECT)
        return rpc_fail(error, LATHE_E_UNSUPPORTED, "a function of the server itself cannot be an argument");
    *out = held->value;
    return LATHE_OK;
}

static int32_t argument(rpc_state *s, const rpc_item *item, lathe_value *out, lathe_dltensor *tensor, char **text,
                        lathe_error *error)
{
    *out = (lathe_value){.type = item->type};
    switch (item->type) {
    case LATHE_NONE: return LATHE_OK;
    case LATHE_INT:
    case LATHE_BOOL:
    case LATHE_FLOAT: out->u.v_int = item->u.v_int; return LATHE_OK;
    case LATHE_DTYPE: out->u.v_dtype = item->u.v_dtype; return LATHE_OK;
    case LATHE_DEVICE: out->u.v_device = item->u.v_device; return LATHE_OK;
    case LATHE_POINTER:
        if (item->u.v_handle == 0)
            return LATHE_OK;
        return rpc_fail(error, LATHE_E_ARGUMENT, "an address of the client means nothing here");
    case LATHE_DLTENSOR: out->u.v_tensor = tensor; return tensor_argument(s, item->tensor, tensor, error);
    case LATHE_RAW_STRING:
        if (item->size > 0)
            memcpy(*text, item->bytes, item->size);
        (*text)[item->size] = '\0';
        if (strlen(*text) != item->size)
            return rpc_fail(error, LATHE_E_ARGUMENT, "a string with a zero in it");
        out->u.v_string = *text;
        *text += item->size + 1;
        return LATHE_OK;
    case RPC_BYTE_ARRAY: return rpc_fail(error, LATHE_E_UNSUPPORTED, "functions of modules take no bytes");
    default: return object_argument(s, item, out, error);
    }
}

int32_t rpc_args_make(rpc_state *s, const rpc_item *items, uint32_t n, rpc_args *out, lathe_error *error)
{
    size_t bytes = 1;
    for (uint32_t i = 0; i < n; i++)
        bytes += items[i].type == LATHE_RAW_STRING ? items[i].size + 1 : 0;
    *out = (rpc_args){.count = n};
    out->values = calloc(n + 1u, sizeof *out->values);
    out->tensors = calloc(n + 1u, sizeof *out->tensors);
    out->text = malloc(bytes);
    char *text = out->text;
    int32_t status = out->values && out->tensors && text
                         ? LATHE_OK
                         : rpc_fail(error, LATHE_E_MEMORY, "no memory for %u arguments", n);
    for (uint32_t i = 0; i < n && status == LATHE_OK; i++)
        status = argument(s, &items[i], &out->values[i], &out->tensors[i], &text, error);
    if (status != LATHE_OK)
        rpc_args_free(out);
    return status;
}

void rpc_args_free(rpc_args *a)
{
    free(a->values);
    free(a->tensors);
    free(a->text);
    *a = (rpc_args){NULL, NULL, NULL, 0};
}

/* --- calls --- */

int32_t rpc_call_value(rpc_state *s, const lathe_value *function, const rpc_args *args, lathe_value *out,
                       lathe_error *error)
{
    int32_t status = lathe_call(function, args->values, (int32_t)args->count, out, error);
    lathe_error said;
    int32_t also = rpc_vta_check(&s->vta, &said);
    if (also == LATHE_OK)
        return status;
    lathe_release(out);
    if (error)
        *error = said;
    return also;
}

/* --- results --- */

void rpc_result_set(rpc_result *out, lathe_value v)
{
    *out = (rpc_result){.type = v.type, .value = v};
}

void rpc_result_release(rpc_result *result)
{
    lathe_release(&result->value);
    rpc_buffer_free(&result->bytes);
}

static int32_t put_tensor(rpc_state *s, rpc_held *held, rpc_tensor *out, lathe_error *error)
{
    const lathe_dltensor *t = lathe_tensor_of(&held->value);
    uint64_t bytes;
    if (!t || t->ndim > RPC_RANK_MAX || t->ndim < 0 || !rpc_tensor_bytes(t->dtype, t->shape, t->ndim, &bytes))
        return rpc_fail(error, LATHE_E_UNSUPPORTED, "a result of more than %d dimensions", RPC_RANK_MAX);
    *out = (rpc_tensor){.device = t->device, .dtype = t->dtype, .ndim = t->ndim, .byte_offset = t->byte_offset};
    for (int32_t i = 0; i < t->ndim; i++)
        out->shape[i] = t->shape[i];
    int32_t status = rpc_memory_show(&s->memory, t->device, t->data, bytes + t->byte_offset, &out->data, error);
    held->shown = out->data;
    return status;
}

/* A handle for what is held, which is given back when there is none to be had. */
static int32_t put_object(rpc_state *s, int32_t type, rpc_held *held, rpc_buffer *out, lathe_error *error)
{
    rpc_tensor t;
    uint64_t id = 0;
    int32_t status = type == LATHE_TENSOR ? put_tensor(s, held, &t, error) : LATHE_OK;
    if (status == LATHE_OK)
        status = rpc_handles_add(&s->handles, held, &id, error);
    if (status != LATHE_OK) {
        if (held->shown)
            rpc_memory_hide(&s->memory, held->shown);
        lathe_release(&held->value);
        return status;
    }
    rpc_put_u32(out, type == LATHE_TENSOR ? 3 : 2);
    rpc_put_int(out, type);
    if (type == LATHE_TENSOR) {
        rpc_put_u32(out, LATHE_DLTENSOR);
        rpc_put_tensor(out, &t);
    }
    rpc_put_64(out, LATHE_POINTER, id);
    return LATHE_OK;
}

static void put_string(rpc_buffer *out, int32_t type, const void *bytes, size_t n)
{
    rpc_put_u32(out, 2);
    rpc_put_int(out, type);
    if (type == LATHE_STRING)
        rpc_put_string(out, bytes, n);
    else
        rpc_put_byte_array(out, bytes, n);
}

static int32_t put_plain(const lathe_value *v, rpc_buffer *out, lathe_error *error)
{
    uint64_t bits = 0;
    switch (v->type) {
    case LATHE_INT:
    case LATHE_BOOL:
    case LATHE_FLOAT: bits = (uint64_t)v->u.v_int; break;
    case LATHE_DTYPE: memcpy(&bits, &v->u.v_dtype, sizeof v->u.v_dtype); break;
    case LATHE_DEVICE:
        bits = (uint32_t)v->u.v_device.type | (uint64_t)(uint32_t)v->u.v_device.id << 32;
        break;
    case LATHE_NONE: break;
    default: return rpc_fail(error, LATHE_E_UNSUPPORTED, "a result of type %d has no meaning for a client", v->type);
    }
    rpc_put_u32(out, 2);
    rpc_put_int(out, v->type);
    if (v->type == LATHE_NONE)
        rpc_put_none(out);
    else
        rpc_put_64(out, v->type, bits);
    return LATHE_OK;
}

int32_t rpc_put_result(rpc_state *s, rpc_result *result, rpc_buffer *out, lathe_error *error)
{
    const char *text = lathe_string_of(&result->value);
    int32_t status = LATHE_OK;
    rpc_packet_begin(out, RPC_RETURN);
    if (result->timer) {
        rpc_held held = {.timer = result->timer};
        status = put_object(s, LATHE_FUNCTION, &held, out, error);
    } else if (result->bytes.data || result->type == RPC_BYTES) {
        put_string(out, result->type, result->bytes.data, result->bytes.size);
    } else if (text) {
        put_string(out, LATHE_STRING, text, strlen(text));
    } else if (result->type >= LATHE_OBJECT) {
        rpc_held held = {.value = result->value};
        result->value = (lathe_value){0};
        status = put_object(s, result->type, &held, out, error);
    } else {
        status = put_plain(&result->value, out, error);
    }
    rpc_packet_end(out, 0);
    rpc_result_release(result);
    if (status == LATHE_OK && out->full)
        status = rpc_fail(error, LATHE_E_MEMORY, "no memory for the result");
    return status;
}
