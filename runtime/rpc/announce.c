/* announce.c: the server's side of the tracker's messages.
 * SPDX-License-Identifier: Apache-2.0 */
#include "announce.h"

#include "json_link.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MS = 5000, DIAL_MS = 2000, AGAIN_MS = 5000, PERIOD_MS = 2000, MISSED_MS = 6000 };

void rpc_announce_init(rpc_announce *a, const lathe_rpc_server_options *o, uint16_t port)
{
    *a = (rpc_announce){.o = o, .port = port, .fd = -1};
}

void rpc_announce_close(rpc_announce *a)
{
    if (a->fd >= 0)
        (void)close(a->fd);
    a->fd = -1;
    a->offered = false;
}

bool rpc_announce_use(rpc_announce *a, uint32_t generation)
{
    if (!a->offered || generation != a->generation)
        return false;
    a->offered = false;
    return true;
}

static int32_t ask(const rpc_announce *a, json_t *message, json_t **out, lathe_error *error)
{
    const rpc_link l = {a->fd, -1, ANSWER_MS};
    int32_t status = rpc_json_send(&l, message, error);
    return status == LATHE_OK ? rpc_json_receive(&l, ANSWER_MS, out, error) : status;
}

/* Asks for what is answered by SUCCESS. */
static int32_t ask_for_success(const rpc_announce *a, json_t *message, lathe_error *error)
{
    json_t *answer = NULL;
    int32_t status = ask(a, message, &answer, error);
    if (status == LATHE_OK && !(json_is_integer(answer) && json_integer_value(answer) == RPC_TRACKER_SUCCESS))
        status = rpc_fail(error, LATHE_E_REFUSED, "it refuses the server%s",
                          a->o->token ? "; is the token its own?" : "; does it ask for a token?");
    json_decref(answer);
    return status;
}

/* "PREFIXkey", with the token behind it. */
static json_t *key_text(const rpc_announce *a, const char *prefix)
{
    return a->o->token ? json_sprintf("%s%s -token=%s", prefix, a->o->key, a->o->token)
                       : json_sprintf("%s%s", prefix, a->o->key);
}

static int32_t dial(rpc_announce *a, lathe_error *error)
{
    int32_t status = rpc_dial(a->o->tracker_host, a->o->tracker_port, rpc_now() + DIAL_MS, &a->fd, error);
    if (status != LATHE_OK)
        return status;
    const rpc_link l = {a->fd, -1, ANSWER_MS};
    status = rpc_tracker_greet(&l, rpc_now() + ANSWER_MS, error);
    if (status != LATHE_OK)
        return status;
    return ask_for_success(a,
                           json_pack("[i, {s: o, s: [s?, i]}]", RPC_TRACKER_UPDATE_INFO, "key",
                                     key_text(a, "server:"), "addr", a->o->address, (int)a->port),
                           error);
}

/* A new key, which nobody can guess. */
static int32_t offer(rpc_announce *a, lathe_error *error)
{
    uint8_t random[16];
    if (!rpc_random(random, sizeof random))
        return rpc_fail(error, LATHE_E_FILE, "the system gives no random numbers");
    int at = snprintf(a->match, sizeof a->match, "%s:0.", a->o->key);
    for (size_t i = 0; i < sizeof random; i++)
        at += snprintf(a->match + at, sizeof a->match - (size_t)at, "%02x", random[i]);
    a->generation++;
    a->missed = 0;
    int32_t status = ask_for_success(a,
                                     json_pack("[i, o, [i, s], s?]", RPC_TRACKER_PUT, key_text(a, ""), (int)a->port,
                                               a->match, a->o->address),
                                     error);
    a->offered = status == LATHE_OK;
    return status;
}

/* Is the place still on offer? When it was handed out and nobody comes, another key is offered. */
static int32_t look(rpc_announce *a, lathe_error *error)
{
    json_t *keys = NULL, *key;
    size_t i;
    bool there = false;
    int32_t status = ask(a, json_pack("[i]", RPC_TRACKER_PENDING_KEYS), &keys, error);
    json_array_foreach(keys, i, key)
        there |= json_is_string(key) && strcmp(json_string_value(key), a->match) == 0;
    json_decref(keys);
    if (status != LATHE_OK || there) {
        a->missed = 0;
        return status;
    }
    if (a->missed == 0)
        a->missed = rpc_now();
    return rpc_now() - a->missed > MISSED_MS ? offer(a, error) : LATHE_OK;
}

int32_t rpc_announce_step(rpc_announce *a, bool free_place, lathe_error *error)
{
    const bool wants = a->fd >= 0 && free_place && !a->offered;
    if (!wants && rpc_now() < a->next)
        return LATHE_OK;
    a->next = rpc_now() + PERIOD_MS;
    int32_t status = a->fd < 0 ? dial(a, error) : LATHE_OK;
    if (status == LATHE_OK && free_place && !a->offered)
        status = offer(a, error);
    else if (status == LATHE_OK && a->offered)
        status = look(a, error);
    if (status != LATHE_OK) {
        rpc_announce_close(a);
        a->next = rpc_now() + AGAIN_MS;
    }
    return status;
}
