/* call.h: the state of a session, and calls in it: arguments from the wire become values of the virtual machine,
 * results become handles, numbers and bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_CALL_H
#define LATHE_RPC_CALL_H
#include "files.h"
#include "handles.h"
#include "link.h"
#include "memory.h"
#include "vta_device.h"

typedef struct rpc_state {
    lathe_rpc_limits limits; /* none is 0 */
    rpc_link link;
    lathe_runtime *rt;
    rpc_handles handles;
    rpc_memory memory;
    rpc_files files;
    rpc_vta vta;
} rpc_state;

/* What a call gives: one of value, bytes and timer, by `type`: RPC_BYTES; LATHE_FUNCTION with a timer; else value. */
typedef struct rpc_result {
    int32_t type;
    lathe_value value;
    rpc_buffer bytes; /* a string when the type is LATHE_STRING */
    struct rpc_timer *timer;
} rpc_result;

struct rpc_function {
    const char *name;
    int32_t (*call)(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error);
};

/* Arguments as the virtual machine takes them; they point into items and handles. */
typedef struct rpc_args {
    lathe_value *values;
    lathe_dltensor *tensors;
    char *text;
    uint32_t count;
} rpc_args;
int32_t rpc_args_make(rpc_state *s, const rpc_item *items, uint32_t n, rpc_args *out, lathe_error *error);
void rpc_args_free(rpc_args *a);

/* A function of the virtual machine is called, and what VTA said meanwhile is heard. */
int32_t rpc_call_value(rpc_state *s, const lathe_value *function, const rpc_args *args, lathe_value *out,
                       lathe_error *error);
/* Objects stay in *out for a handle. */
void rpc_result_set(rpc_result *out, lathe_value v);
/* The packet that answers CallFunc; what *result has goes into handles, or is released. */
int32_t rpc_put_result(rpc_state *s, rpc_result *result, rpc_buffer *out, lathe_error *error);
void rpc_result_release(rpc_result *result);
/* The text of an argument, with a zero behind it; LATHE_E_ARGUMENT. */
int32_t rpc_item_text(const rpc_item *item, const char *what, char *out, size_t size, lathe_error *error);
#endif
