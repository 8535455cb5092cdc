/* client.c: the client's side: requests and what comes back. A server is not trusted either: what it sends is read with
 * the same care as what clients send.
 * SPDX-License-Identifier: Apache-2.0 */
#include "json_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STALL_MS = 60000, GREETING_MS = 10000, ATTEMPTS = 3, TIMER_ARGUMENTS = 12 };
static const uint64_t most_answer = UINT64_C(1) << 36;

/* A function that lathe_rpc_call_named has asked for: its handle is kept, so that one name takes one. */
typedef struct named {
    struct named *next;
    uint64_t function;
    char name[];
} named;

struct lathe_rpc {
    rpc_link link;
    named *named;
    rpc_buffer out, in;
    rpc_items items;
    uint64_t chunk; /* largest piece of a tensor; 0: not asked yet */
    char key[RPC_KEY_MAX + 1];
};

/* --- packets --- */

static int32_t io_error(enum rpc_io io, lathe_error *error)
{
    switch (io) {
    case RPC_IO_DONE: return LATHE_OK;
    case RPC_IO_ENDED: return rpc_fail(error, LATHE_E_FILE, "the server closed the connection");
    case RPC_IO_LATE: return rpc_fail(error, LATHE_E_FILE, "the server does not answer");
    case RPC_IO_FAILED: return rpc_fail(error, LATHE_E_FILE, "the connection to the server failed");
    }
    return LATHE_E_FILE;
}

static int32_t send_packet(lathe_rpc *r, const void *behind, size_t n, lathe_error *error)
{
    rpc_packet_end(&r->out, n);
    if (r->out.full)
        return rpc_fail(error, LATHE_E_MEMORY, "no memory for a packet");
    enum rpc_io io = rpc_link_write(&r->link, r->out.data, r->out.size);
    if (io == RPC_IO_DONE && n > 0)
        io = rpc_link_write(&r->link, behind, n);
    return io_error(io, error);
}

static int32_t receive_body(lathe_rpc *r, uint64_t n, lathe_error *error)
{
    r->in.size = 0;
    while (r->in.size < n) {
        size_t step = n - r->in.size < 1 << 20 ? (size_t)(n - r->in.size) : 1 << 20;
        uint8_t *room = rpc_put_room(&r->in, step);
        if (!room)
            return rpc_fail(error, LATHE_E_MEMORY, "no memory for an answer of %llu bytes", (unsigned long long)n);
        enum rpc_io io = rpc_link_read(&r->link, room, step, STALL_MS);
        if (io != RPC_IO_DONE)
            return io_error(io, error);
        r->in.size += step;
    }
    return LATHE_OK;
}

static int32_t exception(lathe_rpc *r, lathe_error *error)
{
    const rpc_item *i = r->items.count == 1 && r->items.data[0].type == LATHE_RAW_STRING ? r->items.data : NULL;
    const int n = i && i->size < 900 ? (int)i->size : 900;
    return rpc_fail(error, LATHE_E_KERNEL, "the server says: %.*s", i ? n : 0, i ? (const char *)i->bytes : "");
}

/* The answer's values in r->items; of a tensor's bytes nothing yet, but their number. */
static int32_t receive(lathe_rpc *r, uint32_t wanted, uint64_t *out_bytes, lathe_error *error)
{
    uint8_t head[RPC_HEADER];
    uint64_t n;
    uint32_t code;
    rpc_items_free(&r->items);
    enum rpc_io io = rpc_link_read(&r->link, head, sizeof head, -1);
    if (io != RPC_IO_DONE)
        return io_error(io, error);
    rpc_reader h = {head, sizeof head, 0};
    (void)rpc_read_u64(&h, &n);
    (void)rpc_read_u32(&h, &code);
    if (n < 4 || n > most_answer || (code != wanted && code != RPC_EXCEPTION))
        return rpc_fail(error, LATHE_E_FORMAT, "the server answers with code %u and %llu bytes", code,
                        (unsigned long long)n);
    if (out_bytes)
        *out_bytes = n - 4;
    if (code == RPC_COPY_ACK)
        return LATHE_OK;
    int32_t status = receive_body(r, n - 4, error);
    rpc_reader body = {r->in.data, r->in.size, 0};
    if (status == LATHE_OK)
        status = rpc_read_items(&body, &r->items, error);
    return status == LATHE_OK && code == RPC_EXCEPTION ? exception(r, error) : status;
}

/* What is in r->out is sent, and the answer read. */
static int32_t ask(lathe_rpc *r, lathe_error *error)
{
    int32_t status = send_packet(r, NULL, 0, error);
    return status == LATHE_OK ? receive(r, RPC_RETURN, NULL, error) : status;
}

static int32_t ask_handle(lathe_rpc *r, uint64_t *out, lathe_error *error)
{
    *out = 0;
    int32_t status = ask(r, error);
    if (status == LATHE_OK && (r->items.count != 1 || r->items.data[0].type != LATHE_POINTER))
        return rpc_fail(error, LATHE_E_FORMAT, "the server answers something else than a handle");
    if (status == LATHE_OK)
        *out = r->items.data[0].u.v_handle;
    return status;
}

/* --- connecting --- */

static int left(int64_t deadline)
{
    int64_t ms = deadline - rpc_now();
    return ms < 0 ? 0 : ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static int32_t other_key(const char *key, lathe_error *error)
{
    if (!*key)
        return rpc_fail(error, LATHE_E_REFUSED, "the server asks for another key or token; no key was given");
    return rpc_fail(error, LATHE_E_REFUSED, "the server has another key than '%s', or asks for another token", key);
}

/* What does not come at once is waited for aloud. */
static void wait_aloud(const rpc_link *l, const lathe_rpc_client_options *o, const char *what, const char *host,
                       uint16_t port)
{
    enum { AT_ONCE_MS = 200 };
    char line[RPC_KEY_MAX + 512];
    if (!o->waiting || rpc_link_ready(l, AT_ONCE_MS))
        return;
    (void)snprintf(line, sizeof line, "waiting for %s at %s:%u", what, host, (unsigned)port);
    o->waiting(o->user, line);
}

/* "client:KEY -token=T -timeout=S" */
static int32_t greet(lathe_rpc *r, const char *host, uint16_t port, const char *key,
                     const lathe_rpc_client_options *o, int64_t deadline, lathe_error *error)
{
    char text[RPC_KEY_MAX], lease[32] = "";
    uint8_t head[4];
    uint32_t code = 0, n = 0;
    const char *token = o->token && !o->by_tracker ? o->token : NULL;
    if (o->session_seconds > 0)
        (void)snprintf(lease, sizeof lease, " -timeout=%u", o->session_seconds);
    int size = snprintf(text, sizeof text, "client:%s%s%s%s", key, token ? " -token=" : "", token ? token : "", lease);
    if (size < 0 || size >= (int)sizeof text)
        return rpc_fail(error, LATHE_E_ARGUMENT, "the key is too long");
    r->out.size = 0;
    rpc_put_u32(&r->out, RPC_MAGIC);
    rpc_put_u32(&r->out, (uint32_t)size);
    rpc_put_bytes(&r->out, text, (size_t)size);
    if (r->out.full || rpc_link_write(&r->link, r->out.data, r->out.size) != RPC_IO_DONE)
        return rpc_fail(error, LATHE_E_FILE, "the server closed the connection");
    wait_aloud(&r->link, o, "a place or the greeting of the server", host, port);
    enum rpc_io io = rpc_link_read_by(&r->link, head, sizeof head, deadline);
    if (io != RPC_IO_DONE)
        return io_error(io, error);
    (void)rpc_read_u32(&(rpc_reader){head, sizeof head, 0}, &code);
    if (code == RPC_MISMATCH)
        return other_key(key, error);
    if (code != RPC_MAGIC || rpc_link_read_by(&r->link, head, sizeof head, deadline) != RPC_IO_DONE)
        return rpc_fail(error, LATHE_E_REFUSED, "the program at %s:%u is not an RPC server", host, (unsigned)port);
    (void)rpc_read_u32(&(rpc_reader){head, sizeof head, 0}, &n);
    if (n > RPC_KEY_MAX || rpc_link_read_by(&r->link, r->key, n, deadline) != RPC_IO_DONE)
        return rpc_fail(error, LATHE_E_REFUSED, "the program at %s:%u is not an RPC server", host, (unsigned)port);
    r->key[n] = '\0';
    return LATHE_OK;
}

static int32_t init_server(lathe_rpc *r, lathe_error *error)
{
    rpc_packet_begin(&r->out, RPC_INIT_SERVER);
    rpc_put_u64(&r->out, strlen(RPC_VERSION));
    rpc_put_bytes(&r->out, RPC_VERSION, strlen(RPC_VERSION));
    rpc_put_u32(&r->out, 0);
    return ask(r, error);
}

/* A place from the tracker; waits until one is free. `l` is an open connection. */
static int32_t request(const rpc_link *l, const lathe_rpc_client_options *o, int64_t deadline, char *host, size_t size,
                       uint16_t *out_port, char key[RPC_KEY_MAX], lathe_error *error)
{
    json_t *answer = NULL;
    char what[RPC_KEY_MAX];
    const char *where, *match;
    int code, port;
    json_t *wanted = o->token ? json_sprintf("%s -token=%s", o->key ? o->key : "", o->token)
                              : json_sprintf("%s", o->key ? o->key : "");
    const int64_t soon = rpc_now() + GREETING_MS; /* a tracker greets before it has a server */
    int32_t status = rpc_tracker_greet(l, soon < deadline ? soon : deadline, error);
    if (status == LATHE_OK)
        status = rpc_json_send(l, json_pack("[i, O, s, i]", RPC_TRACKER_REQUEST, wanted, "", (int)o->priority), error);
    json_decref(wanted);
    (void)snprintf(what, sizeof what, "a server with key '%s'", o->key ? o->key : "");
    if (status == LATHE_OK)
        wait_aloud(l, o, what, o->host, o->port);
    if (status == LATHE_OK)
        status = rpc_json_receive(l, left(deadline), &answer, error);
    if (status == LATHE_OK && (json_unpack(answer, "[i, [s, i, s]]", &code, &where, &port, &match) != 0 ||
                                port < 1 || port > 65535))
        status = rpc_fail(error, LATHE_E_REFUSED, "the tracker gives no server for '%s'", o->key ? o->key : "");
    if (status == LATHE_OK) {
        (void)snprintf(host, size, "%s", where);
        (void)snprintf(key, RPC_KEY_MAX, "%s", match);
        *out_port = (uint16_t)port;
    }
    json_decref(answer);
    return status;
}

static int32_t ask_tracker(const lathe_rpc_client_options *o, int64_t deadline, char *host, size_t size,
                           uint16_t *out_port, char key[RPC_KEY_MAX], lathe_error *error)
{
    rpc_link l = {-1, -1, STALL_MS};
    int32_t status = rpc_dial(o->host, o->port, deadline, &l.fd, error);
    if (status != LATHE_OK)
        return status;
    status = request(&l, o, deadline, host, size, out_port, key, error);
    (void)close(l.fd);
    return status;
}

static int32_t connect_once(lathe_rpc *r, const lathe_rpc_client_options *o, int64_t deadline, lathe_error *error)
{
    char host[256], key[RPC_KEY_MAX];
    uint16_t port = o->port;
    (void)snprintf(host, sizeof host, "%s", o->host);
    (void)snprintf(key, sizeof key, "%s", o->key ? o->key : "");
    int32_t status = o->by_tracker ? ask_tracker(o, deadline, host, sizeof host, &port, key, error) : LATHE_OK;
    if (status == LATHE_OK)
        status = rpc_dial(host, port, deadline, &r->link.fd, error);
    if (status == LATHE_OK)
        status = greet(r, host, port, key, o, deadline, error);
    return status == LATHE_OK ? init_server(r, error) : status;
}

static void hang_up(lathe_rpc *r)
{
    if (r->link.fd >= 0)
        (void)close(r->link.fd);
    r->link.fd = -1;
}

int32_t lathe_rpc_connect(const lathe_rpc_client_options *o, lathe_rpc **out, lathe_error *error)
{
    const int64_t deadline = rpc_now() + 1000 * (int64_t)(o->connect_seconds ? o->connect_seconds : 60);
    lathe_rpc *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return rpc_fail(error, LATHE_E_MEMORY, "no memory for a connection");
    r->link = (rpc_link){-1, -1, STALL_MS};
    int32_t status = LATHE_E_FILE;
    /* A server that the tracker names may have gone meanwhile: it is asked for another one. */
    for (int i = 0; i < (o->by_tracker ? ATTEMPTS : 1) && status == LATHE_E_FILE && rpc_now() < deadline; i++) {
        hang_up(r);
        status = connect_once(r, o, deadline, error);
    }
    if (status == LATHE_OK)
        *out = r;
    else
        lathe_rpc_close(r);
    return status;
}

void lathe_rpc_close(lathe_rpc *r)
{
    if (!r)
        return;
    if (r->link.fd >= 0) {
        rpc_packet_begin(&r->out, RPC_SHUTDOWN);
        (void)send_packet(r, NULL, 0, NULL);
    }
    hang_up(r);
    while (r->named) {
        named *next = r->named->next;
        free(r->named);
        r->named = next;
    }
    rpc_items_free(&r->items);
    rpc_buffer_free(&r->out);
    rpc_buffer_free(&r->in);
    free(r);
}

const char *lathe_rpc_server_key(const lathe_rpc *r)
{
    return r->key;
}

/* --- functions --- */

int32_t lathe_rpc_get(lathe_rpc *r, const char *name, uint64_t *out, lathe_error *error)
{
    rpc_packet_begin(&r->out, RPC_GET_GLOBAL_FUNC);
    rpc_put_u32(&r->out, 1);
    rpc_put_string(&r->out, name, strlen(name));
    int32_t status = ask_handle(r, out, error);
    return status == LATHE_OK && *out == 0 ? rpc_fail(error, LATHE_E_NAME, "the server has no function %s", name)
                                           : status;
}

static void to_wire(const lathe_rpc_tensor *t, rpc_tensor *out)
{
    *out = (rpc_tensor){.data = t->data,
                        .byte_offset = t->byte_offset,
                        .device = t->device,
                        .dtype = t->dtype,
                        .ndim = t->ndim < 0 || t->ndim > RPC_RANK_MAX ? 0 : t->ndim};
    for (int32_t i = 0; i < out->ndim; i++)
        out->shape[i] = t->shape[i];
}

static void put_tensor(rpc_buffer *b, const lathe_rpc_tensor *t)
{
    rpc_tensor wire;
    to_wire(t, &wire);
    rpc_put_tensor(b, &wire);
}

static int32_t put_value(rpc_buffer *b, const lathe_rpc_value *v, lathe_error *error)
{
    uint64_t bits = 0;
    switch (v->type) {
    case LATHE_NONE: rpc_put_none(b); return LATHE_OK;
    case LATHE_INT:
    case LATHE_BOOL:
    case LATHE_FLOAT:
    case LATHE_MODULE:
    case LATHE_FUNCTION: rpc_put_64(b, v->type, v->u.v_handle); return LATHE_OK;
    case LATHE_DTYPE: memcpy(&bits, &v->u.v_dtype, sizeof v->u.v_dtype); rpc_put_64(b, v->type, bits); return LATHE_OK;
    case LATHE_DEVICE:
        rpc_put_64(b, v->type, (uint32_t)v->u.v_device.type | (uint64_t)(uint32_t)v->u.v_device.id << 32);
        return LATHE_OK;
    case LATHE_RAW_STRING: rpc_put_string(b, v->bytes, v->size); return LATHE_OK;
    case LATHE_RPC_BYTES:
        rpc_put_u32(b, RPC_BYTES);
        rpc_put_64(b, RPC_BYTES, v->size);
        rpc_put_bytes(b, v->bytes, v->size);
        return LATHE_OK;
    case LATHE_DLTENSOR:
    case LATHE_TENSOR:
        rpc_put_u32(b, LATHE_DLTENSOR);
        put_tensor(b, &v->tensor);
        return LATHE_OK;
    default: return rpc_fail(error, LATHE_E_ARGUMENT, "a value of type %d cannot be sent", v->type);
    }
}

static void take_tensor(const rpc_item *i, lathe_rpc_value *out)
{
    const rpc_tensor *t = i->tensor;
    out->tensor = (lathe_rpc_tensor){t->data, t->byte_offset, t->device, t->dtype, t->ndim, t->shape};
}

/* What CallFunc gives: its type, then what that type has. */
static int32_t take_result(lathe_rpc *r, lathe_rpc_value *out, lathe_error *error)
{
    const rpc_items *a = &r->items;
    *out = (lathe_rpc_value){.type = LATHE_NONE};
    if (a->count < 2 || a->data[0].type != LATHE_INT)
        return rpc_fail(error, LATHE_E_FORMAT, "the server answers a call with %u values", a->count);
    const rpc_item *v = &a->data[1];
    out->type = (int32_t)a->data[0].u.v_int;
    if (out->type == LATHE_TENSOR && a->count == 3 && v->type == LATHE_DLTENSOR && a->data[2].type == LATHE_POINTER) {
        take_tensor(v, out);
        out->u.v_handle = a->data[2].u.v_handle;
    } else if (v->type == LATHE_RAW_STRING || v->type == RPC_BYTE_ARRAY) {
        out->type = v->type == LATHE_RAW_STRING ? (int)LATHE_RAW_STRING : (int)LATHE_RPC_BYTES;
        out->bytes = v->bytes;
        out->size = v->size;
    } else if (v->type == LATHE_DTYPE) {
        out->u.v_dtype = v->u.v_dtype;
    } else if (v->type == LATHE_DEVICE) {
        out->u.v_device = v->u.v_device;
    } else if (v->type == LATHE_DLTENSOR) {
        return rpc_fail(error, LATHE_E_FORMAT, "the server gives a tensor without a handle");
    } else {
        out->u.v_handle = v->u.v_handle;
    }
    return LATHE_OK;
}

int32_t lathe_rpc_call(lathe_rpc *r, uint64_t function, const lathe_rpc_value *args, uint32_t n,
                       lathe_rpc_value *result, lathe_error *error)
{
    int32_t status = LATHE_OK;
    *result = (lathe_rpc_value){.type = LATHE_NONE};
    rpc_packet_begin(&r->out, RPC_CALL_FUNC);
    rpc_put_u64(&r->out, function);
    rpc_put_u32(&r->out, n);
    for (uint32_t i = 0; i < n && status == LATHE_OK; i++)
        status = put_value(&r->out, &args[i], error);
    if (status == LATHE_OK)
        status = ask(r, error);
    return status == LATHE_OK ? take_result(r, result, error) : status;
}

static int32_t find_named(lathe_rpc *r, const char *name, uint64_t *out, lathe_error *error)
{
    const size_t size = strlen(name) + 1;
    for (const named *n = r->named; n; n = n->next)
        if (strcmp(n->name, name) == 0) {
            *out = n->function;
            return LATHE_OK;
        }
    int32_t status = lathe_rpc_get(r, name, out, error);
    if (status != LATHE_OK)
        return status;
    named *n = malloc(sizeof *n + size);
    if (!n)
        return rpc_fail(error, LATHE_E_MEMORY, "no memory for the name of a function");
    *n = (named){.next = r->named, .function = *out};
    memcpy(n->name, name, size);
    r->named = n;
    return LATHE_OK;
}

int32_t lathe_rpc_call_named(lathe_rpc *r, const char *name, const lathe_rpc_value *args, uint32_t n,
                             lathe_rpc_value *result, lathe_error *error)
{
    uint64_t function;
    *result = (lathe_rpc_value){.type = LATHE_NONE};
    int32_t status = find_named(r, name, &function, error);
    return status == LATHE_OK ? lathe_rpc_call(r, function, args, n, result, error) : status;
}

static lathe_rpc_value text_value(const char *text)
{
    return (lathe_rpc_value){.type = LATHE_RAW_STRING, .bytes = text, .size = strlen(text)};
}

static lathe_rpc_value number_value(int32_t type, int64_t v)
{
    lathe_rpc_value out = {.type = type};
    out.u.v_int = v;
    return out;
}

int32_t lathe_rpc_module_get(lathe_rpc *r, uint64_t module, const char *name, uint64_t *out, lathe_error *error)
{
    const lathe_rpc_value args[] = {number_value(LATHE_MODULE, (int64_t)module), text_value(name),
                                    number_value(LATHE_BOOL, 1)};
    lathe_rpc_value result;
    *out = 0;
    int32_t status = lathe_rpc_call_named(r, "tvm.rpc.server.ModuleGetFunction", args, 3, &result, error);
    if (status != LATHE_OK)
        return status;
    if (result.type != LATHE_FUNCTION)
        return rpc_fail(error, LATHE_E_NAME, "the remote module has no function %s", name);
    *out = result.u.v_handle;
    return LATHE_OK;
}

int32_t lathe_rpc_free(lathe_rpc *r, uint64_t handle, lathe_error *error)
{
    rpc_packet_begin(&r->out, RPC_FREE_HANDLE);
    rpc_put_u32(&r->out, 1);
    rpc_put_64(&r->out, LATHE_POINTER, handle);
    return ask(r, error);
}

int32_t lathe_rpc_upload(lathe_rpc *r, const char *name, const void *bytes, size_t size, lathe_error *error)
{
    const lathe_rpc_value args[] = {text_value(name), {.type = LATHE_RPC_BYTES, .bytes = bytes, .size = size}};
    lathe_rpc_value result;
    return lathe_rpc_call_named(r, "tvm.rpc.server.upload", args, 2, &result, error);
}

int32_t lathe_rpc_time(lathe_rpc *r, uint64_t module, const char *function, lathe_device device, int64_t number,
                       int64_t repeat, const lathe_rpc_value *args, uint32_t n, double *out_seconds,
                       lathe_error *error)
{
    const int64_t numbers[] = {device.type, device.id, number, repeat, 0, 1, 0, 1, 0};
    lathe_rpc_value made[TIMER_ARGUMENTS], timer, times;
    made[0] = number_value(LATHE_MODULE, (int64_t)module);
    made[1] = text_value(function);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        made[i + 2] = number_value(LATHE_INT, numbers[i]);
    made[TIMER_ARGUMENTS - 1] = text_value("");
    int32_t status = lathe_rpc_call_named(r, "runtime.RPCTimeEvaluator", made, TIMER_ARGUMENTS, &timer, error);
    if (status != LATHE_OK)
        return status;
    const uint64_t handle = timer.u.v_handle;
    status = lathe_rpc_call(r, handle, args, n, &times, error);
    if (status == LATHE_OK && times.size != (size_t)repeat * sizeof *out_seconds)
        status = rpc_fail(error, LATHE_E_FORMAT, "the server gives %zu bytes of times", times.size);
    if (status == LATHE_OK)
        memcpy(out_seconds, times.bytes, times.size);
    int32_t freed = lathe_rpc_free(r, handle, status == LATHE_OK ? error : NULL);
    return status == LATHE_OK ? freed : status;
}

/* --- memory --- */

int32_t lathe_rpc_alloc(lathe_rpc *r, lathe_device device, lathe_dtype dtype, const int64_t *shape, int32_t ndim,
                        uint64_t *out, lathe_error *error)
{
    const lathe_rpc_tensor t = {.device = device, .dtype = dtype, .ndim = ndim, .shape = shape};
    *out = 0;
    if (ndim < 0 || ndim > RPC_RANK_MAX)
        return rpc_fail(error, LATHE_E_ARGUMENT, "a tensor of %d dimensions; %d are the most", ndim, RPC_RANK_MAX);
    rpc_packet_begin(&r->out, RPC_DEV_ALLOC_WITH_SCOPE);
    rpc_put_u32(&r->out, 2);
    rpc_put_u32(&r->out, LATHE_DLTENSOR);
    put_tensor(&r->out, &t);
    rpc_put_none(&r->out);
    return ask_handle(r, out, error);
}

static void put_device(rpc_buffer *b, lathe_device d)
{
    rpc_put_64(b, LATHE_DEVICE, (uint32_t)d.type | (uint64_t)(uint32_t)d.id << 32);
}

int32_t lathe_rpc_free_data(lathe_rpc *r, lathe_device device, uint64_t data, lathe_error *error)
{
    rpc_packet_begin(&r->out, RPC_DEV_FREE);
    rpc_put_u32(&r->out, 2);
    put_device(&r->out, device);
    rpc_put_64(&r->out, LATHE_POINTER, data);
    return ask(r, error);
}

int32_t lathe_rpc_sync(lathe_rpc *r, lathe_device device, lathe_error *error)
{
    rpc_packet_begin(&r->out, RPC_DEV_SYNC);
    rpc_put_u32(&r->out, 2);
    put_device(&r->out, device);
    rpc_put_64(&r->out, LATHE_POINTER, 0);
    return ask(r, error);
}

/* What a server takes in one packet, less than its head. */
static int32_t chunk_of(lathe_rpc *r, lathe_error *error)
{
    const uint64_t head = 1024;
    lathe_rpc_value most;
    if (r->chunk)
        return LATHE_OK;
    r->chunk = UINT64_C(1) << 30;
    int32_t status = lathe_rpc_call_named(r, "tvm.rpc.server.GetCRTMaxPacketSize", NULL, 0, &most, error);
    if (status == LATHE_E_NAME)
        return LATHE_OK;
    if (status == LATHE_OK && most.type == LATHE_INT && most.u.v_int > (int64_t)(2 * head))
        r->chunk = (uint64_t)most.u.v_int - head;
    return status;
}

static void begin_copy(lathe_rpc *r, int32_t code, const lathe_rpc_tensor *t, uint64_t at, uint64_t n)
{
    lathe_rpc_tensor part = *t;
    part.byte_offset += at;
    rpc_packet_begin(&r->out, code);
    put_tensor(&r->out, &part);
    rpc_put_u64(&r->out, n);
}

int32_t lathe_rpc_write(lathe_rpc *r, const lathe_rpc_tensor *to, const void *from, size_t bytes, lathe_error *error)
{
    int32_t status = chunk_of(r, error);
    for (size_t at = 0; at < bytes && status == LATHE_OK;) {
        const size_t n = bytes - at < r->chunk ? bytes - at : (size_t)r->chunk;
        begin_copy(r, RPC_COPY_TO_REMOTE, to, at, n);
        status = send_packet(r, (const char *)from + at, n, error);
        if (status == LATHE_OK)
            status = receive(r, RPC_RETURN, NULL, error);
        at += n;
    }
    return status;
}

int32_t lathe_rpc_read(lathe_rpc *r, const lathe_rpc_tensor *from, void *to, size_t bytes, lathe_error *error)
{
    int32_t status = chunk_of(r, error);
    for (size_t at = 0; at < bytes && status == LATHE_OK;) {
        const size_t n = bytes - at < r->chunk ? bytes - at : (size_t)r->chunk;
        uint64_t come = 0;
        begin_copy(r, RPC_COPY_FROM_REMOTE, from, at, n);
        status = send_packet(r, NULL, 0, error);
        if (status == LATHE_OK)
            status = receive(r, RPC_COPY_ACK, &come, error);
        if (status == LATHE_OK && come != n)
            status = rpc_fail(error, LATHE_E_FORMAT, "the server sends %llu bytes where %zu are asked for",
                              (unsigned long long)come, n);
        if (status == LATHE_OK)
            status = io_error(rpc_link_read(&r->link, (char *)to + at, n, STALL_MS), error);
        at += n;
    }
    return status;
}
