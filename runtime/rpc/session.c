/* session.c: reads packets, does what they ask for, answers. What is wrong with a request is answered by an exception;
 * only what breaks the order of packets ends the session.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include "functions.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20 };

typedef struct session {
    rpc_state state;
    rpc_buffer body, reply;
    uint8_t *chunk;
} session;

lathe_rpc_limits rpc_limits_of(const lathe_rpc_limits *given)
{
    lathe_rpc_limits l = given ? *given : (lathe_rpc_limits){0};
    l.packet_bytes = l.packet_bytes ? l.packet_bytes : UINT64_C(1) << 30;
    l.memory_bytes = l.memory_bytes ? l.memory_bytes : UINT64_C(4) << 30;
    l.file_bytes = l.file_bytes ? l.file_bytes : UINT64_C(4) << 30;
    l.handles = l.handles ? l.handles : 65536;
    l.stall_seconds = l.stall_seconds ? l.stall_seconds : 60;
    l.handshake_seconds = l.handshake_seconds ? l.handshake_seconds : 10;
    return l;
}

/* --- bytes --- */

static int32_t ended(enum rpc_io io, lathe_error *error)
{
    switch (io) {
    case RPC_IO_DONE: return LATHE_OK;
    case RPC_IO_ENDED: return rpc_fail(error, LATHE_E_FILE, "the client closed the connection");
    case RPC_IO_LATE: return rpc_fail(error, LATHE_E_FILE, "the client stopped in the middle of a packet");
    case RPC_IO_FAILED: return rpc_fail(error, LATHE_E_FILE, "the connection failed");
    }
    return LATHE_E_FILE;
}

static int32_t receive(session *s, void *to, size_t n, lathe_error *error)
{
    return ended(rpc_link_read(&s->state.link, to, n, s->state.link.stall_ms), error);
}

static int32_t answer(session *s, lathe_error *error)
{
    if (s->reply.full) {
        rpc_buffer_free(&s->reply);
        rpc_put_exception(&s->reply, "no memory for the answer");
    }
    if (rpc_link_over(&s->state.link)) /* a call that was stopped by that is no answer: the connection ends */
        return LATHE_OK;
    return ended(rpc_link_write(&s->state.link, s->reply.data, s->reply.size), error);
}

/* The body of a packet: memory grows with what has come, not with what is promised. */
static int32_t receive_body(session *s, uint64_t n, lathe_error *error)
{
    s->body.size = 0;
    s->body.full = false;
    while (s->body.size < n) {
        uint64_t left = n - s->body.size;
        size_t step = left < CHUNK ? (size_t)left : CHUNK;
        uint8_t *room = rpc_put_room(&s->body, step);
        if (!room)
            return rpc_fail(error, LATHE_E_MEMORY, "no memory for a packet of %llu bytes", (unsigned long long)n);
        int32_t status = receive(s, room, step, error);
        if (status != LATHE_OK)
            return status;
        s->body.size += step;
    }
    return LATHE_OK;
}

static int32_t drop(session *s, uint64_t n, lathe_error *error)
{
    int32_t status = LATHE_OK;
    while (n > 0 && status == LATHE_OK) {
        size_t step = n < CHUNK ? (size_t)n : CHUNK;
        status = receive(s, s->chunk, step, error);
        n -= step;
    }
    return status;
}

/* Makes an exception of what went wrong with a request. */
static void refuse(session *s, const lathe_error *why)
{
    lathe_error said;
    char text[sizeof why->message + 450];
    size_t n = strlen(why->message);
    memcpy(text, why->message, n + 1);
    if (rpc_vta_check(&s->state.vta, &said) != LATHE_OK && n + strlen(said.message) + 3 < sizeof text) {
        memcpy(text + n, ": ", 2);
        memcpy(text + n + 2, said.message, strlen(said.message) + 1);
    }
    rpc_put_exception(&s->reply, text);
}

/* --- requests without bytes behind them --- */

static int32_t find_global(session *s, const rpc_items *a, lathe_error *error)
{
    uint64_t id = 0;
    if (a->count != 1 || a->data[0].type != LATHE_RAW_STRING)
        return rpc_fail(error, LATHE_E_FORMAT,
                        "GetGlobalFunc takes one string (this server speaks the protocol of TVM 0.22 and later)");
    const rpc_held held = {.global = rpc_function_find(a->data[0].bytes, a->data[0].size)};
    int32_t status = held.global ? rpc_handles_add(&s->state.handles, &held, &id, error) : LATHE_OK;
    rpc_put_return_64(&s->reply, LATHE_POINTER, id);
    return status;
}

static void release(session *s, rpc_held *held)
{
    if (held->shown)
        rpc_memory_hide(&s->state.memory, held->shown);
    lathe_release(&held->value);
    for (int i = 0; i < RPC_IMPORTS_MAX; i++)
        lathe_release(&held->imports[i]);
    rpc_timer_free(held->timer);
}

static int32_t free_handle(session *s, const rpc_items *a, lathe_error *error)
{
    rpc_held held;
    if (a->count < 1 || a->data[0].type == LATHE_DLTENSOR || a->data[0].bytes)
        return rpc_fail(error, LATHE_E_FORMAT, "FreeHandle takes a handle");
    if (!rpc_handles_take(&s->state.handles, a->data[0].u.v_handle, &held))
        return rpc_fail(error, LATHE_E_NAME, "no handle 0x%llx is held", (unsigned long long)a->data[0].u.v_handle);
    release(s, &held);
    rpc_put_return_none(&s->reply);
    return LATHE_OK;
}

/* Are the first arguments a device, and then values of these types? */
static bool are(const rpc_items *a, uint32_t n, int32_t second, int32_t third)
{
    return a->count >= n && a->data[0].type == LATHE_DEVICE && (n < 2 || a->data[1].type == second) &&
           (n < 3 || a->data[2].type == third);
}

static int32_t malformed(int32_t code, lathe_error *error)
{
    return rpc_fail(error, LATHE_E_FORMAT, "%s with the wrong arguments", rpc_code_name(code));
}

static int32_t device_attribute(session *s, const rpc_items *a, lathe_error *error)
{
    const lathe_device_api *api;
    if (!are(a, 2, LATHE_INT, 0))
        return malformed(RPC_DEV_GET_ATTR, error);
    const bool exists = rpc_memory_device(&s->state.memory, a->data[0].u.v_device, &api, NULL) == LATHE_OK;
    if (a->data[1].u.v_int == 0)
        rpc_put_return_64(&s->reply, LATHE_INT, exists);
    else
        rpc_put_return_none(&s->reply);
    return LATHE_OK;
}

static int32_t allocate(session *s, const rpc_items *a, lathe_error *error)
{
    uint64_t base = 0;
    if (!are(a, 3, LATHE_INT, LATHE_INT))
        return malformed(RPC_DEV_ALLOC, error);
    int32_t status = rpc_memory_alloc(&s->state.memory, a->data[0].u.v_device, a->data[1].u.v_handle,
                                      a->data[2].u.v_handle, &base, error);
    rpc_put_return_64(&s->reply, LATHE_POINTER, base);
    return status;
}

static int32_t allocate_tensor(session *s, const rpc_items *a, lathe_error *error)
{
    uint64_t base = 0, bytes;
    if (a->count < 1 || a->data[0].type != LATHE_DLTENSOR)
        return malformed(RPC_DEV_ALLOC_WITH_SCOPE, error);
    const rpc_tensor *t = a->data[0].tensor;
    const rpc_item *scope = a->count > 1 ? &a->data[1] : NULL;
    if (scope && scope->type == LATHE_RAW_STRING && scope->size > 0 &&
        (scope->size != 6 || memcmp(scope->bytes, "global", 6) != 0))
        return rpc_fail(error, LATHE_E_UNSUPPORTED, "memory of the scope '%.*s'",
                        (int)(scope->size < 40 ? scope->size : 40), (const char *)scope->bytes);
    if (!rpc_tensor_bytes(t->dtype, t->shape, t->ndim, &bytes))
        return rpc_fail(error, LATHE_E_ARGUMENT, "a tensor with more elements than memory can have, or below none");
    int32_t status = rpc_memory_alloc(&s->state.memory, t->device, bytes, 0, &base, error);
    rpc_put_return_64(&s->reply, LATHE_POINTER, base);
    return status;
}

static int32_t free_data(session *s, const rpc_items *a, lathe_error *error)
{
    if (!are(a, 2, LATHE_POINTER, 0))
        return malformed(RPC_DEV_FREE, error);
    rpc_put_return_none(&s->reply);
    return rpc_memory_release(&s->state.memory, a->data[1].u.v_handle, error);
}

static int32_t synchronize(session *s, const rpc_items *a, lathe_error *error)
{
    const lathe_device_api *api;
    if (!are(a, 1, 0, 0))
        return malformed(RPC_DEV_SYNC, error);
    int32_t status = rpc_memory_device(&s->state.memory, a->data[0].u.v_device, &api, error);
    if (status == LATHE_OK && api->sync)
        status = api->sync(api->user, 0) == LATHE_OK ? LATHE_OK
                                                     : rpc_fail(error, LATHE_E_KERNEL, "%s failed", api->name);
    rpc_put_return_none(&s->reply);
    return status;
}

static int32_t copy_among(session *s, const rpc_items *a, lathe_error *error)
{
    rpc_block from, to;
    uint64_t from_offset, to_offset, bytes, others;
    if (a->count < 2 || a->data[0].type != LATHE_DLTENSOR || a->data[1].type != LATHE_DLTENSOR)
        return malformed(RPC_COPY_AMONG_REMOTE, error);
    const rpc_tensor *f = a->data[0].tensor, *t = a->data[1].tensor;
    if (!rpc_tensor_bytes(f->dtype, f->shape, f->ndim, &bytes) ||
        !rpc_tensor_bytes(t->dtype, t->shape, t->ndim, &others) || bytes != others)
        return rpc_fail(error, LATHE_E_ARGUMENT, "the tensors of a copy have different sizes");
    int32_t status = rpc_memory_find(&s->state.memory, f, bytes, &from, &from_offset, error);
    if (status == LATHE_OK)
        status = rpc_memory_find(&s->state.memory, t, bytes, &to, &to_offset, error);
    if (status == LATHE_OK)
        status = rpc_memory_copy(&s->state.memory, &from, from_offset, &to, to_offset, bytes, error);
    rpc_put_return_none(&s->reply);
    return status;
}

/* Devices here have one stream, 0. */
static int32_t one_stream(session *s, int32_t code, const rpc_items *a, lathe_error *error)
{
    const lathe_device_api *api;
    if (!are(a, 1, 0, 0))
        return malformed(code, error);
    if (code == RPC_DEV_CREATE_STREAM || code == RPC_DEV_GET_STREAM)
        rpc_put_return_64(&s->reply, LATHE_POINTER, 0);
    else
        rpc_put_return_none(&s->reply);
    return rpc_memory_device(&s->state.memory, a->data[0].u.v_device, &api, error);
}

static int32_t system_call(session *s, int32_t code, const rpc_items *a, lathe_error *error)
{
    switch (code) {
    case RPC_GET_GLOBAL_FUNC: return find_global(s, a, error);
    case RPC_FREE_HANDLE: return free_handle(s, a, error);
    case RPC_DEV_GET_ATTR: return device_attribute(s, a, error);
    case RPC_DEV_ALLOC: return allocate(s, a, error);
    case RPC_DEV_ALLOC_WITH_SCOPE: return allocate_tensor(s, a, error);
    case RPC_DEV_FREE: return free_data(s, a, error);
    case RPC_DEV_SYNC: return synchronize(s, a, error);
    case RPC_COPY_AMONG_REMOTE: return copy_among(s, a, error);
    case RPC_DEV_SET_DEVICE:
    case RPC_DEV_CREATE_STREAM:
    case RPC_DEV_FREE_STREAM:
    case RPC_DEV_SET_STREAM:
    case RPC_DEV_GET_STREAM: return one_stream(s, code, a, error);
    default: return rpc_fail(error, LATHE_E_UNSUPPORTED, "the packet's code %d is not known", code);
    }
}

static int32_t call_held(session *s, const rpc_held *held, const rpc_items *a, rpc_result *result, lathe_error *error)
{
    rpc_state *state = &s->state;
    if (held->global)
        return held->global->call(state, a->data, a->count, result, error);
    if (held->timer)
        return rpc_timer_run(state, held->timer, a->data, a->count, result, error);
    if (held->value.type != LATHE_FUNCTION)
        return rpc_fail(error, LATHE_E_ARGUMENT, "the handle is not a function");
    rpc_args args;
    lathe_value value = {0};
    const lathe_value function = lathe_retain(&held->value); /* handles may move during the call */
    int32_t status = rpc_args_make(state, a->data, a->count, &args, error);
    if (status == LATHE_OK) {
        status = rpc_call_value(state, &function, &args, &value, error);
        rpc_args_free(&args);
    }
    lathe_value done = function;
    lathe_release(&done);
    if (status == LATHE_OK)
        rpc_result_set(result, value);
    return status;
}

static int32_t call_function(session *s, uint64_t id, const rpc_items *a, lathe_error *error)
{
    rpc_result result = {0};
    const rpc_held *held = rpc_handles_get(&s->state.handles, id);
    if (!held)
        return rpc_fail(error, LATHE_E_NAME, "no function 0x%llx is held", (unsigned long long)id);
    int32_t status = call_held(s, held, a, &result, error);
    if (status != LATHE_OK)
        return status;
    struct rpc_timer *timer = result.timer;
    status = rpc_put_result(&s->state, &result, &s->reply, error);
    if (status != LATHE_OK)
        rpc_timer_free(timer);
    return status;
}

static int32_t init_server(session *s, rpc_reader *r, lathe_error *error)
{
    uint64_t n;
    const uint8_t *version;
    rpc_items a = {NULL, 0, NULL};
    if (!rpc_read_u64(r, &n) || n > r->size || !rpc_read_bytes(r, (size_t)n, &version))
        return malformed(RPC_INIT_SERVER, error);
    if (n != strlen(RPC_VERSION) || memcmp(version, RPC_VERSION, n) != 0)
        return rpc_fail(error, LATHE_E_UNSUPPORTED, "the client's protocol is %.*s, this server's %s",
                        (int)(n < 40 ? n : 40), (const char *)version, RPC_VERSION);
    int32_t status = rpc_read_items(r, &a, error);
    if (status == LATHE_OK && a.count > 0)
        status = rpc_fail(error, LATHE_E_UNSUPPORTED, "this server has no session constructors: sessions are its own");
    rpc_items_free(&a);
    rpc_put_return_none(&s->reply);
    return status;
}

/* A request whose body has come. */
static int32_t request(session *s, int32_t code, lathe_error *error)
{
    rpc_reader r = {s->body.data, s->body.size, 0};
    rpc_items a = {NULL, 0, NULL};
    uint64_t id = 0;
    if (code == RPC_INIT_SERVER)
        return init_server(s, &r, error);
    if (code == RPC_CALL_FUNC && !rpc_read_u64(&r, &id))
        return malformed(code, error);
    int32_t status = rpc_read_items(&r, &a, error);
    if (status == LATHE_OK)
        status = code == RPC_CALL_FUNC ? call_function(s, id, &a, error) : system_call(s, code, &a, error);
    rpc_items_free(&a);
    return status;
}

/* --- tensors' bytes --- */

/* Into the block, through `chunk` where the device has memory of its own. *left is what has not come yet. */
static int32_t receive_tensor(session *s, const rpc_block *to, uint64_t offset, uint64_t *left, lathe_error *error)
{
    while (*left > 0) {
        lathe_error why = {0};
        size_t step = *left < CHUNK ? (size_t)*left : CHUNK;
        int32_t status = receive(s, s->chunk, step, error);
        if (status != LATHE_OK)
            return status;
        *left -= step;
        if (rpc_memory_write(&s->state.memory, to, offset, s->chunk, step, &why) != LATHE_OK) {
            refuse(s, &why);
            return LATHE_OK; /* the rest is dropped */
        }
        offset += step;
    }
    rpc_put_return_none(&s->reply);
    return LATHE_OK;
}

/* The head of a tensor: 24 bytes, then dimensions and the offset, then 8 bytes more, read by their lengths. */
static int32_t receive_head(session *s, uint64_t *left, lathe_error *error)
{
    uint64_t n = 24;
    s->body.size = 0; /* what an earlier packet left there is not this one's */
    if (*left < n)
        return LATHE_OK;
    int32_t status = receive_body(s, n, error);
    *left -= n;
    if (status != LATHE_OK)
        return status;
    rpc_reader r = {s->body.data, s->body.size, 16};
    uint32_t ndim;
    (void)rpc_read_u32(&r, &ndim);
    n = ndim <= RPC_RANK_MAX ? 8u * ndim + 16 : 0;
    if (n == 0 || *left < n)
        return LATHE_OK; /* rpc_read_tensor says what is wrong */
    uint8_t *room = rpc_put_room(&s->body, (size_t)n);
    if (!room)
        return rpc_fail(error, LATHE_E_MEMORY, "no memory for a packet");
    status = receive(s, room, (size_t)n, error);
    *left -= n;
    s->body.size += (size_t)n;
    return status;
}

static int32_t find_target(session *s, uint64_t left, rpc_block *to, uint64_t *offset, lathe_error *error)
{
    rpc_reader r = {s->body.data, s->body.size, 0};
    rpc_tensor t;
    uint64_t bytes;
    int32_t status = rpc_read_tensor(&r, &t, error);
    if (status != LATHE_OK)
        return status;
    if (!rpc_read_u64(&r, &bytes) || bytes != left)
        return rpc_fail(error, LATHE_E_FORMAT, "CopyToRemote says %llu bytes, and %llu follow",
                        (unsigned long long)bytes, (unsigned long long)left);
    return rpc_memory_find(&s->state.memory, &t, bytes, to, offset, error);
}

static int32_t copy_to(session *s, uint64_t left, lathe_error *error)
{
    rpc_block to;
    uint64_t offset;
    lathe_error why = {0};
    int32_t status = receive_head(s, &left, error);
    if (status != LATHE_OK)
        return status;
    if (find_target(s, left, &to, &offset, &why) == LATHE_OK)
        status = receive_tensor(s, &to, offset, &left, error);
    else
        refuse(s, &why);
    if (status == LATHE_OK)
        status = drop(s, left, error);
    return status == LATHE_OK ? answer(s, error) : status;
}

/* What stands in the way of the first bytes is answered by an exception; later it ends the session. */
static int32_t send_tensor(session *s, const rpc_block *from, uint64_t offset, uint64_t left, lathe_error *error)
{
    size_t step = left < CHUNK ? (size_t)left : CHUNK;
    int32_t status = rpc_memory_read(&s->state.memory, from, offset, s->chunk, step, error);
    if (status != LATHE_OK) {
        refuse(s, error);
        return answer(s, error);
    }
    rpc_packet_begin(&s->reply, RPC_COPY_ACK);
    rpc_packet_end(&s->reply, left);
    status = answer(s, error);
    while (status == LATHE_OK && left > 0) {
        status = ended(rpc_link_write(&s->state.link, s->chunk, step), error);
        left -= step;
        offset += step;
        step = left < CHUNK ? (size_t)left : CHUNK;
        if (status == LATHE_OK && left > 0)
            status = rpc_memory_read(&s->state.memory, from, offset, s->chunk, step, error);
    }
    return status;
}

static int32_t copy_from(session *s, lathe_error *error)
{
    rpc_reader r = {s->body.data, s->body.size, 0};
    rpc_tensor t;
    rpc_block from;
    uint64_t bytes, offset;
    int32_t status = rpc_read_tensor(&r, &t, error);
    if (status == LATHE_OK && !rpc_read_u64(&r, &bytes))
        status = malformed(RPC_COPY_FROM_REMOTE, error);
    if (status == LATHE_OK)
        status = rpc_memory_find(&s->state.memory, &t, bytes, &from, &offset, error);
    if (status == LATHE_OK)
        return send_tensor(s, &from, offset, bytes, error);
    refuse(s, error);
    return answer(s, error);
}

/* --- the loop --- */

static int32_t too_long(session *s, uint64_t n, lathe_error *error)
{
    (void)rpc_fail(error, LATHE_E_REFUSED, "a packet of %llu bytes; this server takes %llu (--max-packet)",
                   (unsigned long long)n, (unsigned long long)s->state.limits.packet_bytes);
    refuse(s, error);
    lathe_error unheard;
    (void)answer(s, &unheard);
    return error ? error->code : LATHE_E_REFUSED;
}

/* One packet behind its length. *out_over: it was the last one. */
static int32_t serve(session *s, uint64_t n, bool *out_over, lathe_error *error)
{
    uint8_t head[4];
    uint32_t code;
    lathe_error why = {0};
    if (n < sizeof head)
        return rpc_fail(error, LATHE_E_FORMAT, "a packet of %llu bytes", (unsigned long long)n);
    int32_t status = receive(s, head, sizeof head, error);
    if (status != LATHE_OK)
        return status;
    rpc_reader r = {head, sizeof head, 0};
    (void)rpc_read_u32(&r, &code);
    n -= sizeof head;
    if (n > s->state.limits.packet_bytes)
        return too_long(s, n, error);
    if (code == RPC_COPY_TO_REMOTE)
        return copy_to(s, n, error);
    status = receive_body(s, n, error);
    if (status != LATHE_OK)
        return status;
    if (code == RPC_SHUTDOWN) {
        *out_over = true;
        return LATHE_OK;
    }
    if (code == RPC_COPY_FROM_REMOTE)
        return copy_from(s, error);
    if (request(s, (int32_t)code, &why) != LATHE_OK)
        refuse(s, &why);
    return answer(s, error);
}

static int32_t loop(session *s, lathe_error *error)
{
    bool over = false;
    int32_t status = LATHE_OK;
    while (!over && status == LATHE_OK) {
        uint8_t head[8];
        uint64_t n;
        enum rpc_io io = rpc_link_read(&s->state.link, head, sizeof head, -1);
        if (io == RPC_IO_ENDED)
            return LATHE_OK;
        status = ended(io, error);
        rpc_reader r = {head, sizeof head, 0};
        (void)rpc_read_u64(&r, &n);
        if (status == LATHE_OK && n > 0)
            status = serve(s, n, &over, error);
    }
    return status;
}

static void give_back(session *s)
{
    rpc_held held;
    while (rpc_handles_take_any(&s->state.handles, &held))
        release(s, &held);
    rpc_handles_free(&s->state.handles);
    rpc_memory_free(&s->state.memory);
    if (s->state.rt)
        lathe_runtime_destroy(s->state.rt);
    rpc_vta_end(&s->state.vta);
    rpc_buffer_free(&s->body);
    rpc_buffer_free(&s->reply);
    free(s->chunk);
}

int32_t rpc_session_run(const rpc_link *link, const char *folder, const lathe_rpc_limits *limits,
                        const lathe_options *vm, lathe_error *error)
{
    session s = {.state = {.limits = rpc_limits_of(limits), .link = *link}};
    rpc_state *state = &s.state;
    lathe_error unheard;
    error = error ? error : &unheard; /* its sentence goes to the client as well */
    rpc_handles_init(&state->handles, state->limits.handles);
    rpc_memory_init(&state->memory, state->limits.memory_bytes, state->limits.handles);
    state->files = (rpc_files){folder, state->limits.file_bytes};
    const lathe_device_api vta = rpc_vta_begin(&state->vta);
    rpc_memory_add_device(&state->memory, &vta);
    s.chunk = calloc(1, CHUNK);
    int32_t status = s.chunk ? LATHE_OK : rpc_fail(error, LATHE_E_MEMORY, "no memory for a session");
    if (status == LATHE_OK)
        status = lathe_runtime_create(vm, &state->rt, error);
    if (status == LATHE_OK)
        status = lathe_device_register(state->rt, &vta, error);
    if (status == LATHE_OK)
        status = loop(&s, error);
    give_back(&s);
    return status;
}

int32_t lathe_rpc_session(int fd, const char *folder, const lathe_rpc_limits *limits, const lathe_options *vm,
                          lathe_error *error)
{
    const lathe_rpc_limits l = rpc_limits_of(limits);
    const rpc_link link = {fd, -1, (int)(l.stall_seconds < 2000000 ? l.stall_seconds * 1000 : 2000000000)};
    return rpc_session_run(&link, folder, &l, vm, error);
}
