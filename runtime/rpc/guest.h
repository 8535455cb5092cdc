/* guest.h: the process of one client: from its greeting to its end, with a wire to the server that started it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_GUEST_H
#define LATHE_RPC_GUEST_H
#include "link.h"

/* Between a session's process and the server: two numbers. */
enum rpc_note_kind {
    RPC_NOTE_MATCHED = 1, /* the key is right; value: the lease that the client asks for, in ms, 0: none */
    RPC_NOTE_GRANTED,     /* from the server: begin; value: the session's place, for its cores */
    RPC_NOTE_REFUSED,     /* from the server: somebody else has that place */
    RPC_NOTE_CHILD,       /* value leads a process group from now on */
    RPC_NOTE_CHILD_ENDED
};
typedef struct rpc_note {
    int32_t kind, value;
} rpc_note;

typedef struct rpc_guest {
    int fd, control;
    const char *key;      /* what the client must say behind "client:" */
    const char *shown;    /* what is answered behind "server:" */
    const char *token;    /* NULL: none is asked for */
    const char *folder;   /* of the session: made here, removed by the server */
    uint32_t cores;
    lathe_rpc_limits limits;
    const lathe_options *vm;
    rpc_log log;
} rpc_guest;

/* Processors that this process may run on; 0: not known. */
uint32_t rpc_guest_processors(void);
/* The exit code of the process. */
int rpc_guest_run(const rpc_guest *g);
#endif
