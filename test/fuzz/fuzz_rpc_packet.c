/* fuzz_rpc_packet.c: the packets of remote devices: a sequence of values and a tensor are read from any bytes, and what
 * was read, written again, is read as the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void write_item(rpc_buffer *b, const rpc_item *i)
{
    uint64_t bits = i->u.v_handle;
    switch (i->type) {
    case LATHE_NONE: rpc_put_none(b); return;
    case LATHE_RAW_STRING: rpc_put_string(b, i->bytes, i->size); return;
    case RPC_BYTE_ARRAY: rpc_put_byte_array(b, i->bytes, i->size); return;
    case LATHE_DLTENSOR: rpc_put_u32(b, LATHE_DLTENSOR); rpc_put_tensor(b, i->tensor); return;
    case LATHE_INT:
    case LATHE_BOOL:
    case LATHE_FLOAT:
    case LATHE_POINTER:
    case LATHE_FUNCTION:
    case LATHE_MODULE: rpc_put_64(b, i->type, bits); return;
    case LATHE_DEVICE:
        rpc_put_64(b, i->type, (uint32_t)i->u.v_device.type | (uint64_t)(uint32_t)i->u.v_device.id << 32);
        return;
    case LATHE_DTYPE:
        bits = 0;
        memcpy(&bits, &i->u.v_dtype, sizeof i->u.v_dtype);
        rpc_put_64(b, i->type, bits);
        return;
    default: /* a remote object */
        rpc_put_u32(b, (uint32_t)i->type);
        rpc_put_64(b, RPC_OBJECT_REF, bits);
        return;
    }
}

static void compare(const rpc_item *a, const rpc_item *b)
{
    require(a->type == b->type && a->size == b->size && !a->tensor == !b->tensor);
    if (a->size > 0)
        require(memcmp(a->bytes, b->bytes, a->size) == 0);
    else if (a->tensor)
        require(memcmp(a->tensor, b->tensor, sizeof *a->tensor) == 0);
    else
        require(a->u.v_handle == b->u.v_handle);
}

static void read_items(const uint8_t *data, size_t size)
{
    rpc_reader r = {data, size, 0};
    rpc_items a, b;
    rpc_buffer w = {0};
    lathe_error e;
    if (rpc_read_items(&r, &a, &e) == LATHE_OK) {
        rpc_put_u32(&w, a.count);
        for (uint32_t i = 0; i < a.count; i++)
            write_item(&w, &a.data[i]);
        rpc_reader again = {w.data, w.size, 0};
        require(!w.full && rpc_read_items(&again, &b, &e) == LATHE_OK && again.at == w.size && a.count == b.count);
        for (uint32_t i = 0; i < a.count; i++)
            compare(&a.data[i], &b.data[i]);
        rpc_items_free(&b);
    }
    rpc_items_free(&a);
    rpc_buffer_free(&w);
}

static void read_tensor(const uint8_t *data, size_t size)
{
    rpc_reader r = {data, size, 0};
    rpc_tensor t;
    lathe_error e;
    uint64_t bytes;
    if (rpc_read_tensor(&r, &t, &e) == LATHE_OK && rpc_tensor_bytes(t.dtype, t.shape, t.ndim, &bytes))
        require(bytes <= INT64_MAX / 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_items(data, size);
    read_tensor(data, size);
    return 0;
}
