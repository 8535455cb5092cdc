/* json_link.h: the tracker's messages: a length and JSON, from both sides.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_JSON_LINK_H
#define LATHE_RPC_JSON_LINK_H
#include "link.h"

#include <jansson.h>

enum { RPC_MESSAGE_MAX = 1 << 20 };
/* X(name, number) */
#define RPC_TRACKER_CODES(X)          \
    X(RPC_TRACKER_FAIL, -1)           \
    X(RPC_TRACKER_SUCCESS, 0)         \
    X(RPC_TRACKER_PING, 1)            \
    X(RPC_TRACKER_STOP, 2)            \
    X(RPC_TRACKER_PUT, 3)             \
    X(RPC_TRACKER_REQUEST, 4)         \
    X(RPC_TRACKER_UPDATE_INFO, 5)     \
    X(RPC_TRACKER_SUMMARY, 6)         \
    X(RPC_TRACKER_PENDING_KEYS, 7)
enum rpc_tracker_code {
#define X(name, number) name = number,
    RPC_TRACKER_CODES(X)
#undef X
};

/* Behind "KEY" in a text "KEY -token=T": T; NULL: there is none. *out_key is the length of KEY. */
const char *rpc_split_token(const char *text, size_t *out_key);
/* Magic numbers are exchanged with a tracker. */
int32_t rpc_tracker_greet(const rpc_link *l, int64_t deadline, lathe_error *error);
/* `message` is released. false: no memory. */
bool rpc_json_put(rpc_buffer *out, json_t *message);
int32_t rpc_json_send(const rpc_link *l, json_t *message, lathe_error *error);
/* *out is the caller's. Within `ms` in all; -1: waits for ever for it to begin. */
int32_t rpc_json_receive(const rpc_link *l, int ms, json_t **out, lathe_error *error);
#endif
