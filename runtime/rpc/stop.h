/* stop.h: SIGTERM and SIGINT as a state that code asks for, in place of a handler.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_STOP_H
#define LATHE_RPC_STOP_H
#include <signal.h>
#include <stdbool.h>

typedef struct rpc_stop {
    sigset_t before;
} rpc_stop;

/* From here to the end these signals, and SIGHUP, wait. */
void rpc_stop_begin(rpc_stop *s);
bool rpc_stop_asked(rpc_stop *s);
/* As before; what was asked for is over. */
void rpc_stop_end(rpc_stop *s);
/* In a child: the signals end it. */
void rpc_stop_reset(void);
#endif
