/* session.h: one client's packets, from the first one behind the handshake to the last.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_SESSION_H
#define LATHE_RPC_SESSION_H
#include "link.h"

/* LATHE_OK when the client ended it; else why it ended. */
int32_t rpc_session_run(const rpc_link *link, const char *folder, const lathe_rpc_limits *limits,
                        const lathe_options *vm, lathe_error *error);
/* The limits with their defaults. */
lathe_rpc_limits rpc_limits_of(const lathe_rpc_limits *given);
#endif
