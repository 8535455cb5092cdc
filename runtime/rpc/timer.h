/* timer.h: functions that are called many times and timed, as time_evaluator of the protocol asks for.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_TIMER_H
#define LATHE_RPC_TIMER_H
#include "call.h"

typedef struct rpc_timer rpc_timer;

typedef struct rpc_timer_plan {
    lathe_device device;
    int64_t number, repeat; /* calls in a round, rounds */
    int64_t min_repeat_ms;  /* number grows until a round takes as long */
    int64_t zero_limit;     /* rounds that take no time at all, at most */
    int64_t cooldown_ms, repeats_to_cooldown;
    int64_t flush_bytes; /* of caches, before each round */
    bool flush_arguments; /* out of the caches, but for the first one */
} rpc_timer_plan;

/* Times `value` (retained), or a function of the server. LATHE_E_ARGUMENT. */
int32_t rpc_timer_new(const rpc_timer_plan *plan, const lathe_value *value, const struct rpc_function *global,
                      rpc_timer **out, lathe_error *error);
void rpc_timer_free(rpc_timer *t); /* may be NULL */
/* One call that is not timed, then the rounds; *out gets the mean of each in seconds as a double of this machine. */
int32_t rpc_timer_run(rpc_state *s, const rpc_timer *t, const rpc_item *items, uint32_t n, rpc_result *out,
                      lathe_error *error);
#endif
