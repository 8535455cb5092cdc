/* tracker.c: servers offer places under a key, clients ask for one of a key; the highest priority comes first, then who
 * asked first. One process, one thread; nobody is waited for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "json_link.h"
#include "queues.h"
#include "stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 200, OUT_MAX = 4 << 20, OFFERS_MAX = 65536, HOST_MAX = 255 };

typedef struct peer {
    int fd;
    bool greeted, trusted, over;
    int64_t since; /* a message has begun then; 0: none */
    int64_t heard; /* the last bytes came then */
    char address[64];
    json_t *info; /* what a server says of itself */
    rpc_owner own;
    rpc_buffer in, out;
    uint64_t number;
} peer;

typedef struct tracker {
    const lathe_rpc_tracker_options *o;
    rpc_log log;
    int fd;
    uint32_t most, count;
    bool crowded; /* the system has no descriptor for one more */
    int64_t stall_ms;
    uint64_t numbers;
    peer **peers;
    struct pollfd *polled;
    rpc_queues queues;
    rpc_buffer summary; /* the message, until something changes; empty: it has to be made */
} tracker;

/* --- answers --- */

static void reply(peer *p, json_t *message)
{
    if (!message || !rpc_json_put(&p->out, message) || p->out.size > OUT_MAX)
        p->over = true;
}

static void reply_code(peer *p, int code)
{
    reply(p, json_integer(code));
}

static void flush(peer *p)
{
    while (p->out.size > 0 && !p->over) {
        ssize_t put = send(p->fd, p->out.data, p->out.size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return;
        if (put <= 0) {
            p->over = true;
            return;
        }
        p->out.size -= (size_t)put;
        memmove(p->out.data, p->out.data + put, p->out.size);
    }
}

/* --- places and requests --- */

static peer *peer_of(rpc_owner *o)
{
    return (peer *)(void *)((uint8_t *)o - offsetof(peer, own));
}

/* What a summary tells is no longer so. */
static void changed(tracker *t)
{
    t->summary.size = 0;
}

static void match(tracker *t, const rpc_key *key)
{
    rpc_entry *place, *request;
    while (rpc_queues_pair(key, &place, &request)) {
        peer *client = peer_of(request->owner);
        reply(client, json_pack("[i, O]", RPC_TRACKER_SUCCESS, place->value));
        flush(client);
        if (client->over)
            rpc_say(&t->log, "%s asked for %s and went away", client->address, rpc_queues_name(key));
        else
            rpc_queues_drop(&t->queues, place);
        rpc_queues_drop(&t->queues, request);
    }
}

static bool add_entry(tracker *t, peer *p, const char *key, size_t size, bool request, json_t *value, int64_t priority)
{
    if (size > RPC_KEY_MAX) {
        json_decref(value);
        return false;
    }
    rpc_key *k = rpc_queues_add(&t->queues, &p->own, key, size, request, value, priority);
    changed(t);
    if (!k)
        return false;
    match(t, k);
    rpc_queues_release(&t->queues, k);
    return true;
}

/* Is the token behind the key the one that is asked for? *out_size is the length of the key alone. */
static bool trust(const tracker *t, peer *p, const char *key, size_t *out_size)
{
    const char *token = rpc_split_token(key, out_size);
    p->trusted |= !t->o->token || (token && rpc_same_secret(token, t->o->token));
    if (!p->trusted)
        rpc_say(&t->log, "%s has another token", p->address);
    return p->trusted;
}

/* --- messages --- */

/* What others are told is a place to connect to. */
static bool is_host(const json_t *v)
{
    return json_is_string(v) && json_string_length(v) <= HOST_MAX;
}

static bool is_port(const json_t *v)
{
    return json_is_integer(v) && json_integer_value(v) > 0 && json_integer_value(v) <= 65535;
}

/* [3, key, [port, match key], address or null] */
static bool put(tracker *t, peer *p, json_t *m)
{
    const char *key, *matching, *address = NULL;
    int code, port;
    size_t size;
    json_t *own = json_array_get(m, 3);
    if (json_unpack(m, "[i, s, [i, s]*]", &code, &key, &port, &matching) != 0 ||
        !is_port(json_array_get(json_array_get(m, 2), 0)) || (json_is_string(own) && !is_host(own)))
        return false;
    address = json_is_string(own) ? json_string_value(own) : p->address;
    if (!trust(t, p, key, &size)) {
        reply_code(p, RPC_TRACKER_FAIL);
        return true;
    }
    reply_code(p, RPC_TRACKER_SUCCESS);
    return add_entry(t, p, key, size, false, json_pack("[s, i, s]", address, port, matching), 0);
}

/* [4, key, user, priority] */
static bool request(tracker *t, peer *p, json_t *m)
{
    const char *key;
    int code;
    size_t size;
    json_t *priority = json_array_get(m, 3);
    if (json_unpack(m, "[i, s*]", &code, &key) != 0 || (priority && !json_is_integer(priority)))
        return false;
    if (!trust(t, p, key, &size)) {
        reply(p, json_pack("[i, s]", RPC_TRACKER_FAIL, "the tracker asks for another token"));
        return true;
    }
    return add_entry(t, p, key, size, true, NULL, json_integer_value(priority));
}

/* [5, {"key": "server:KEY", "addr": [host or null, port]}] */
static bool update(tracker *t, peer *p, json_t *m)
{
    json_t *info = json_array_get(m, 1), *address = json_object_get(info, "addr");
    const char *key = json_string_value(json_object_get(info, "key"));
    size_t size;
    const json_t *host = json_array_get(address, 0);
    if (!json_is_object(info) || json_array_size(address) != 2 || !is_port(json_array_get(address, 1)) ||
        (!json_is_null(host) && !is_host(host)) || !key || strlen(key) > 2 * RPC_KEY_MAX)
        return false;
    if (!trust(t, p, key, &size)) {
        reply_code(p, RPC_TRACKER_FAIL);
        return true;
    }
    if (json_is_null(host))
        (void)json_array_set_new(address, 0, json_string(p->address));
    json_decref(p->info);
    p->info = json_pack("{s: s#, s: O}", "key", key, (int)size, "addr", address);
    changed(t);
    reply_code(p, RPC_TRACKER_SUCCESS);
    return p->info != NULL;
}

/* Made once for all who ask until something changes: it may be long. */
static void summary(tracker *t, peer *p)
{
    if (t->summary.size == 0) {
        json_t *servers = json_array();
        for (uint32_t i = 0; i < t->count; i++)
            if (t->peers[i]->info)
                (void)json_array_append(servers, t->peers[i]->info);
        json_t *m = json_pack("[i, {s: o, s: o}]", RPC_TRACKER_SUCCESS, "queue_info", rpc_queues_tell(&t->queues),
                              "server_info", servers);
        if (!m || !rpc_json_put(&t->summary, m))
            changed(t);
    }
    rpc_put_bytes(&p->out, t->summary.data, t->summary.size);
    if (t->summary.size == 0 || p->out.full || p->out.size > OUT_MAX)
        p->over = true;
}

static void pending(peer *p)
{
    json_t *keys = json_array();
    for (const rpc_entry *e = p->own.first; e; e = e->next)
        if (!e->request)
            (void)json_array_append(keys, json_array_get(e->value, 2));
    reply(p, keys);
}

/* false: the message means nothing; the connection ends. */
static bool hear(tracker *t, peer *p, json_t *m)
{
    const json_t *code = json_array_get(m, 0);
    if (!json_is_integer(code))
        return false;
    switch (json_integer_value(code)) {
    case RPC_TRACKER_PING: reply_code(p, RPC_TRACKER_SUCCESS); return true;
    case RPC_TRACKER_STOP: reply_code(p, RPC_TRACKER_FAIL); return true; /* a signal stops it, not a client */
    case RPC_TRACKER_PUT: return put(t, p, m);
    case RPC_TRACKER_REQUEST: return request(t, p, m);
    case RPC_TRACKER_UPDATE_INFO: return update(t, p, m);
    case RPC_TRACKER_SUMMARY: summary(t, p); return true;
    case RPC_TRACKER_PENDING_KEYS: pending(p); return true;
    default: return false;
    }
}

/* --- bytes --- */

static bool greet(peer *p)
{
    rpc_reader r = {p->in.data, p->in.size, 0};
    uint32_t magic;
    if (!rpc_read_u32(&r, &magic) || magic != RPC_TRACKER_MAGIC)
        return false;
    rpc_put_u32(&p->out, RPC_TRACKER_MAGIC);
    p->greeted = true;
    return true;
}

/* The next message of the bytes that have come; *out_used 0: it is not all there yet. */
static bool take(tracker *t, peer *p, size_t at, size_t *out_used)
{
    rpc_reader r = {p->in.data, p->in.size, at};
    const uint8_t *text;
    uint32_t n;
    *out_used = 0;
    if (p->in.size - at < 4)
        return true;
    if (!p->greeted) {
        *out_used = 4;
        return greet(p);
    }
    (void)rpc_read_u32(&r, &n);
    if (n == 0 || n > RPC_MESSAGE_MAX)
        return false;
    if (!rpc_read_bytes(&r, n, &text))
        return true;
    *out_used = n + 4;
    json_t *m = json_loadb((const char *)text, n, 0, NULL);
    bool ok = m && hear(t, p, m);
    json_decref(m);
    return ok;
}

static void receive(tracker *t, peer *p)
{
    uint8_t *room = rpc_put_room(&p->in, 4096);
    ssize_t got = room ? recv(p->fd, room, 4096, MSG_DONTWAIT) : 0;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (got <= 0) {
        p->over = true;
        return;
    }
    p->in.size += (size_t)got;
    p->heard = rpc_now();
    size_t at = 0, used = 1;
    while (used > 0 && !p->over) {
        if (!take(t, p, at, &used)) {
            rpc_say(&t->log, "%s does not speak a tracker's language", p->address);
            p->over = true;
        }
        at += used;
    }
    memmove(p->in.data, p->in.data + at, p->in.size - at);
    p->in.size -= at;
    p->since = p->in.size > 0 || !p->greeted ? (p->since && at == 0 ? p->since : rpc_now()) : 0;
}

/* --- connections --- */

static void accept_peer(tracker *t)
{
    int fd = accept(t->fd, NULL, NULL);
    if (fd < 0) {
        t->crowded = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
        if (t->crowded)
            (void)poll(NULL, 0, LOOK_MS); /* nothing to be had now: who comes waits in the queue of the system */
        return;
    }
    t->crowded = false;
    peer *p = calloc(1, sizeof *p);
    if (!p) {
        (void)close(fd);
        return;
    }
    rpc_set_options(fd);
    *p = (peer){.fd = fd, .since = rpc_now(), .heard = rpc_now(), .number = t->numbers++};
    rpc_peer_name(fd, p->address, sizeof p->address);
    t->peers[t->count++] = p;
}

static void close_peer(tracker *t, uint32_t i)
{
    peer *p = t->peers[i];
    rpc_queues_leave(&t->queues, &p->own);
    changed(t);
    (void)close(p->fd);
    json_decref(p->info);
    rpc_buffer_free(&p->in);
    rpc_buffer_free(&p->out);
    free(p);
    t->count--;
    memmove(&t->peers[i], &t->peers[i + 1], (t->count - i) * sizeof *t->peers);
}

/* Who offers nothing and waits for nothing, and has been silent for long, makes room where there is none. */
static bool is_in_the_way(const tracker *t, const peer *p)
{
    return (t->count == t->most || t->crowded) && !p->info && !p->own.first && rpc_now() - p->heard > t->stall_ms;
}

static void look(tracker *t)
{
    const uint32_t n = t->count;
    t->polled[0] = (struct pollfd){.fd = n < t->most ? t->fd : -1, .events = POLLIN};
    for (uint32_t i = 0; i < n; i++)
        t->polled[i + 1] = (struct pollfd){.fd = t->peers[i]->fd,
                                           .events = (short)(POLLIN | (t->peers[i]->out.size > 0 ? POLLOUT : 0))};
    bool some = poll(t->polled, n + 1, LOOK_MS) > 0;
    for (uint32_t i = 0; i < n && some; i++)
        if (t->polled[i + 1].revents & (POLLIN | POLLHUP | POLLERR))
            receive(t, t->peers[i]);
    if (some && t->polled[0].revents)
        accept_peer(t);
    for (uint32_t i = t->count; i-- > 0;) {
        peer *p = t->peers[i];
        flush(p);
        if ((p->since && rpc_now() - p->since > t->stall_ms) || is_in_the_way(t, p))
            p->over = true;
        if (p->over)
            close_peer(t, i);
    }
}

int32_t lathe_rpc_track(const lathe_rpc_tracker_options *o, lathe_error *error)
{
    tracker t = {.o = o, .log = {o->log, o->user}, .fd = -1, .most = o->connections ? o->connections : 1024};
    uint16_t port;
    rpc_stop stop;
    const char *host = o->host ? o->host : "127.0.0.1";
    t.stall_ms = 1000 * (int64_t)(o->stall_seconds ? o->stall_seconds : 10);
    t.peers = calloc(t.most, sizeof *t.peers);
    t.polled = calloc(t.most + 1u, sizeof *t.polled);
    const bool made = rpc_queues_init(&t.queues, OFFERS_MAX);
    int32_t status = made && t.peers && t.polled ? LATHE_OK
                                                   : rpc_fail(error, LATHE_E_MEMORY, "no memory for a tracker");
    if (status == LATHE_OK)
        status = rpc_listen(host, o->port, o->port_end, &t.fd, &port, error);
    if (status == LATHE_OK) {
        (void)rpc_set_blocking(t.fd, false);
        rpc_stop_begin(&stop);
        if (o->ready)
            o->ready(o->user, host, port);
        while (!rpc_stop_asked(&stop))
            look(&t);
        while (t.count > 0)
            close_peer(&t, t.count - 1);
        rpc_stop_end(&stop);
        (void)close(t.fd);
    }
    rpc_queues_free(&t.queues);
    rpc_buffer_free(&t.summary);
    free(t.peers);
    free(t.polled);
    return status;
}
