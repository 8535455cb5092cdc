/* functions.h: the global functions of a server, by name.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_FUNCTIONS_H
#define LATHE_RPC_FUNCTIONS_H
#include "timer.h"

/* NULL: there is none of that name. */
const struct rpc_function *rpc_function_find(const uint8_t *name, size_t size);
#endif
