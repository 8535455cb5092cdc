/* SPDX-License-Identifier: Apache-2.0 */
/* lathe_rpc.h: remote devices: the server and the tracker of Apache TVM's RPC protocol (0.22 and later;
 * docs/rpc.md). POSIX systems. Statuses and errors are those of lathe_vm.h; there is no global state. */
#ifndef LATHE_RPC_H
#define LATHE_RPC_H

#include "lathe_vm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What one session may take; 0 is the default. */
typedef struct lathe_rpc_limits {
    uint64_t packet_bytes;      /* one packet, and so one uploaded file; 1 GiB */
    uint64_t memory_bytes;      /* all tensors that the client allocates; 4 GiB */
    uint64_t file_bytes;        /* all files in the session's folder; 4 GiB */
    uint32_t handles;           /* modules, functions, results and tensors that are held; 65536 */
    uint32_t stall_seconds;     /* a packet that has begun goes on within this time; 60 */
    uint32_t handshake_seconds; /* from the connection to the key; 10 */
} lathe_rpc_limits;

typedef struct lathe_rpc_server_options {
    size_t size;                 /* sizeof(lathe_rpc_server_options) */
    const char *host;            /* where to listen; NULL: 127.0.0.1 */
    uint16_t port, port_end;     /* the first free one of [port, port_end]; port 0: any; port_end 0: port alone */
    const char *key;             /* what clients ask for; NULL: "" */
    const char *token;           /* clients put " -token=TOKEN" behind the key; NULL: none is asked for */
    const char *tracker_host;    /* NULL: no tracker */
    uint16_t tracker_port;
    const char *address;         /* what the tracker tells clients; NULL: where it sees this server */
    const char *folder;          /* sessions have their folders there; it must exist */
    uint32_t sessions;           /* at a time, others wait; 0: 1 with a tracker, else 16 */
    uint32_t waiting;            /* connections at a time, sessions among them; 0: 256 */
    uint32_t session_seconds;    /* the longest lease; clients may ask for a shorter one; 0: none */
    uint32_t cores;              /* each session is pinned to as many cores of its own; 0: not pinned. Linux. */
    lathe_rpc_limits limits;
    const lathe_options *vm;     /* of each session's runtime; NULL: defaults. `outside` is the server's */
    void (*log)(void *user, const char *line); /* one line; NULL: silent */
    void (*ready)(void *user, const char *host, uint16_t port); /* it listens; NULL: nobody is told */
    void *user;
} lathe_rpc_server_options;

/* Serves until SIGTERM or SIGINT: sessions are ended then, and their folders removed. Each client gets a process. */
int32_t lathe_rpc_serve(const lathe_rpc_server_options *options, lathe_error *error);

/* One session on a connected socket behind the handshake, in this process, until the client ends it; `folder` is its
 * own. The socket stays open. For programs that make connections themselves, and for tests. */
int32_t lathe_rpc_session(int fd, const char *folder, const lathe_rpc_limits *limits, const lathe_options *vm,
                          lathe_error *error);

typedef struct lathe_rpc_tracker_options {
    size_t size;             /* sizeof(lathe_rpc_tracker_options) */
    const char *host;        /* NULL: 127.0.0.1 */
    uint16_t port, port_end; /* as for the server */
    const char *token;       /* servers and clients put " -token=TOKEN" behind the key; NULL: none is asked for */
    uint32_t connections;    /* at a time; 0: 1024 */
    uint32_t stall_seconds;  /* a message that has begun ends within this time; 0: 10 */
    void (*log)(void *user, const char *line);
    void (*ready)(void *user, const char *host, uint16_t port);
    void *user;
} lathe_rpc_tracker_options;

/* Hands servers out until SIGTERM or SIGINT. */
int32_t lathe_rpc_track(const lathe_rpc_tracker_options *options, lathe_error *error);

#ifdef __cplusplus
}
#endif
#endif
