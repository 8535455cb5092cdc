/* handles.h: what a client holds by number. A number is never given out twice, and says nothing of this process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_HANDLES_H
#define LATHE_RPC_HANDLES_H
#include "wire.h"

struct rpc_function; /* functions.h */
struct rpc_timer;    /* timer.h */

enum { RPC_IMPORTS_MAX = 4 };

/* One of the first three is set. */
typedef struct rpc_held {
    const struct rpc_function *global;
    lathe_value value;       /* an object of the virtual machine */
    struct rpc_timer *timer; /* what a call of it is timed by; the handle's own */
    uint64_t shown;          /* of a tensor: its block in rpc_memory, 0: none */
    lathe_value imports[RPC_IMPORTS_MAX]; /* of a module: modules that are searched, too */
} rpc_held;

typedef struct rpc_slot {
    uint64_t id; /* 0: free */
    uint32_t next_free;
    rpc_held held;
} rpc_slot;

typedef struct rpc_handles {
    rpc_slot *slots;
    uint32_t count, capacity, most, free, in_use;
    uint64_t serial;
} rpc_handles;

void rpc_handles_init(rpc_handles *h, uint32_t most);
/* LATHE_E_REFUSED, LATHE_E_MEMORY: *held stays the caller's. */
int32_t rpc_handles_add(rpc_handles *h, const rpc_held *held, uint64_t *out, lathe_error *error);
/* NULL: nothing is held by that number. Valid until the next one is added. */
rpc_held *rpc_handles_get(const rpc_handles *h, uint64_t id);
/* Takes it out; what it holds is the caller's then. false: nothing is held by that number. */
bool rpc_handles_take(rpc_handles *h, uint64_t id, rpc_held *out);
/* One that is still held; false: none. */
bool rpc_handles_take_any(rpc_handles *h, rpc_held *out);
void rpc_handles_free(rpc_handles *h);
#endif
