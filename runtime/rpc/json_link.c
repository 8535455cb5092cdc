/* json_link.c: JSON over a link.
 * SPDX-License-Identifier: Apache-2.0 */
#include "json_link.h"

#include <stdlib.h>
#include <string.h>

const char *rpc_split_token(const char *text, size_t *out_key)
{
    static const char mark[] = " -token=";
    const char *at = strstr(text, mark);
    *out_key = at ? (size_t)(at - text) : strlen(text);
    return at ? at + sizeof mark - 1 : NULL;
}

int32_t rpc_tracker_greet(const rpc_link *l, int64_t deadline, lathe_error *error)
{
    rpc_buffer b = {0};
    uint8_t magic[4] = {0};
    uint32_t v = 0;
    rpc_reader r = {magic, sizeof magic, 0};
    rpc_put_u32(&b, RPC_TRACKER_MAGIC);
    bool ok = !b.full && rpc_link_write(l, b.data, b.size) == RPC_IO_DONE &&
              rpc_link_read_by(l, magic, sizeof magic, deadline) == RPC_IO_DONE && rpc_read_u32(&r, &v);
    rpc_buffer_free(&b);
    return ok && v == RPC_TRACKER_MAGIC ? LATHE_OK
                                        : rpc_fail(error, LATHE_E_REFUSED, "the program there is not a tracker");
}

bool rpc_json_put(rpc_buffer *out, json_t *message)
{
    char *text = json_dumps(message, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(message);
    if (!text)
        return false;
    rpc_put_u32(out, (uint32_t)strlen(text));
    rpc_put_bytes(out, text, strlen(text));
    free(text);
    return !out->full;
}

int32_t rpc_json_send(const rpc_link *l, json_t *message, lathe_error *error)
{
    rpc_buffer b = {0};
    bool ok = rpc_json_put(&b, message) && rpc_link_write(l, b.data, b.size) == RPC_IO_DONE;
    rpc_buffer_free(&b);
    return ok ? LATHE_OK : rpc_fail(error, LATHE_E_FILE, "the tracker is gone");
}

int32_t rpc_json_receive(const rpc_link *l, int ms, json_t **out, lathe_error *error)
{
    uint8_t head[4];
    uint32_t n = 0;
    rpc_reader r = {head, sizeof head, 0};
    int64_t deadline = ms < 0 ? INT64_MAX : rpc_now() + ms;
    *out = NULL;
    enum rpc_io io = rpc_link_read_by(l, head, sizeof head, deadline);
    if (io != RPC_IO_DONE)
        return rpc_fail(error, LATHE_E_FILE, io == RPC_IO_LATE ? "the tracker gave nothing in time"
                                                               : "the tracker closed the connection");
    (void)rpc_read_u32(&r, &n);
    if (n == 0 || n > RPC_MESSAGE_MAX)
        return rpc_fail(error, LATHE_E_FORMAT, "the tracker announced a message of %u bytes", n);
    char *text = malloc(n);
    if (!text)
        return rpc_fail(error, LATHE_E_MEMORY, "no memory for the tracker's message");
    if (ms < 0 && l->stall_ms >= 0)
        deadline = rpc_now() + l->stall_ms;
    io = rpc_link_read_by(l, text, n, deadline);
    *out = io == RPC_IO_DONE ? json_loadb(text, n, JSON_DECODE_ANY, NULL) : NULL;
    free(text);
    return *out ? LATHE_OK : rpc_fail(error, LATHE_E_FORMAT, "the tracker's message is not JSON");
}
