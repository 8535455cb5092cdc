/* announce.h: how a server keeps one place of its own on offer at a tracker.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_ANNOUNCE_H
#define LATHE_RPC_ANNOUNCE_H
#include "link.h"

typedef struct rpc_announce {
    const lathe_rpc_server_options *o;
    uint16_t port;
    int fd;                    /* -1: not connected */
    int64_t next;              /* when there is something to do */
    int64_t missed;            /* since when the tracker has handed the place out and nobody came; 0: it has not */
    char match[RPC_KEY_MAX];   /* "KEY:RANDOM": who comes with it was sent by the tracker */
    uint32_t generation;       /* of match */
    bool offered;
} rpc_announce;

void rpc_announce_init(rpc_announce *a, const lathe_rpc_server_options *o, uint16_t port);
/* Connects, offers a place when one is free, looks whether it was taken; takes some seconds at most. After an error it
 * tries again later. */
int32_t rpc_announce_step(rpc_announce *a, bool free_place, lathe_error *error);
/* Somebody came with the key of that generation: true once. */
bool rpc_announce_use(rpc_announce *a, uint32_t generation);
void rpc_announce_close(rpc_announce *a);
#endif
