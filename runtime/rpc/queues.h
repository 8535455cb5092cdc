/* queues.h: the tracker's places and requests, by key. The work for one message of a client grows with the logarithm of
 * the number of waiting requests.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_QUEUES_H
#define LATHE_RPC_QUEUES_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rpc_key rpc_key;

/* A place that a server offers, or a client's request for one. */
typedef struct rpc_entry {
    struct rpc_entry *next, *before; /* of the same owner, in the order in which they came */
    struct rpc_owner *owner;
    rpc_key *key;
    bool request;
    json_t *value; /* of a place: [address, port, match key] */
    int64_t priority;
    uint64_t number; /* who came first has a smaller one */
    size_t at;       /* in its queue */
} rpc_entry;

/* A connection. */
typedef struct rpc_owner {
    rpc_entry *first, *last;
    rpc_key *offers; /* the key of its latest place, which is told of as long as it is connected; NULL: none */
} rpc_owner;

typedef struct rpc_queues {
    json_t *index; /* name -> its rpc_key; jansson's hash has a seed that clients do not know */
    uint32_t entries, most;
    uint64_t numbers;
} rpc_queues;

bool rpc_queues_init(rpc_queues *q, uint32_t most);
void rpc_queues_free(rpc_queues *q);
/* The key with a new entry at its place; `value` is released. It is held until rpc_queues_release. NULL: no room. */
rpc_key *rpc_queues_add(rpc_queues *q, rpc_owner *owner, const char *name, size_t size, bool request, json_t *value,
                        int64_t priority);
/* The place that came first, and the request with the highest priority that came first; false: there are not both. */
bool rpc_queues_pair(const rpc_key *k, rpc_entry **out_place, rpc_entry **out_request);
const char *rpc_queues_name(const rpc_key *k);
/* A key that nobody holds, offers or waits for is gone. */
void rpc_queues_release(rpc_queues *q, rpc_key *k);
void rpc_queues_drop(rpc_queues *q, rpc_entry *e);
void rpc_queues_leave(rpc_queues *q, rpc_owner *owner); /* all entries of the owner */
json_t *rpc_queues_tell(const rpc_queues *q); /* {key: {"free": places, "pending": requests}} */
#endif
