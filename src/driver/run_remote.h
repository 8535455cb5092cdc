/* SPDX-License-Identifier: Apache-2.0 */
/* A module that runs on a remote device: sent there, called and timed there (docs/how-to/rpc.md). */
#ifndef LATHE_DRIVER_RUN_REMOTE_H
#define LATHE_DRIVER_RUN_REMOTE_H
#include "driver/run.h"

typedef struct run_remote_options {
    const char *host, *key, *token; /* key and token may be NULL */
    uint16_t port;
    bool by_tracker; /* host and port are the tracker's */
    void (*waiting)(void *user, const char *line); /* what is waited for; may be NULL */
    void *user;
} run_remote_options;

/* The module at `path` goes to the server of o->host, or to one that the tracker names; false after a diagnostic. */
bool run_open_remote(compiler *c, const char *path, const run_remote_options *o, run_model *out);
#endif
