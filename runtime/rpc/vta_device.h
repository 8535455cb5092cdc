/* vta_device.h: the VTA of a session: a row of the device table over libvta's default device, its configuration, and
 * the errors of the published VTA* functions, which code that a client sends may call.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_VTA_DEVICE_H
#define LATHE_RPC_VTA_DEVICE_H
#include "memory.h"

#include "ext_dev.h"

typedef struct rpc_vta {
    bool failed; /* since rpc_vta_check was asked last */
    vta_error error;
    lathe_ext_dev row; /* its buffers: those of the client and of its machines */
    bool configured;  /* VTA_CONFIG was set here; before, it was: */
    char *before;     /* NULL: not there */
} rpc_vta;

/* `v` stays where it is; errors of VTA* functions go there instead of ending the process. */
lathe_device_api rpc_vta_begin(rpc_vta *v);
/* The device and its buffers go. */
void rpc_vta_end(rpc_vta *v);
/* The error since the last call of this function, LATHE_OK if there was none; what was queued is dropped. */
int32_t rpc_vta_check(rpc_vta *v, lathe_error *error);

/* Another device: from JSON as in vta_config.json, or from the name of a bit stream or target. The file that says it is
 * `path`. LATHE_E_REFUSED while buffers are held. */
int32_t rpc_vta_configure(rpc_vta *v, const char *path, const char *json, size_t size, lathe_error *error);
int32_t rpc_vta_program(rpc_vta *v, const char *path, const char *name, lathe_error *error);
/* Counters of the simulator as JSON; and from 0 again. */
int32_t rpc_vta_counters(char *out, size_t size, lathe_error *error);
int32_t rpc_vta_clear_counters(lathe_error *error);
/* Ends the device: the next use makes a new one. */
int32_t rpc_vta_shutdown(rpc_vta *v, lathe_error *error);
#endif
