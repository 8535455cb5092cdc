/* SPDX-License-Identifier: Apache-2.0 */
/* lathe_rpc.h: remote devices: the server, the tracker and the client of Apache TVM's RPC protocol (0.22 and later;
 * docs/how-to/rpc.md). POSIX systems. Statuses and errors are those of lathe_vm.h; there is no global state. */
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
 * own. The socket stays open. For programs that make connections themselves, and for tests. One at a time in a process:
 * the VTA's default device is the process's. */
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

/* --- client --- */
typedef struct lathe_rpc lathe_rpc;

typedef struct lathe_rpc_client_options {
    size_t size;              /* sizeof(lathe_rpc_client_options) */
    const char *host;         /* of the server, or of the tracker */
    uint16_t port;
    int32_t by_tracker;       /* not 0: host and port are the tracker's, which is asked for a server */
    const char *key;          /* NULL: "" */
    const char *token;        /* NULL: none */
    int32_t priority;         /* of the request at the tracker; higher ones come first */
    uint32_t connect_seconds; /* 0: 60; of a tracker: also until a server is free */
    uint32_t session_seconds; /* the lease that is asked for; 0: none */
    void (*waiting)(void *user, const char *line); /* says what is waited for, where it is not there; NULL: nobody */
    void *user;
} lathe_rpc_client_options;

int32_t lathe_rpc_connect(const lathe_rpc_client_options *options, lathe_rpc **out, lathe_error *error);
/* Ends the session; handles that are still held go with it. May be NULL. */
void lathe_rpc_close(lathe_rpc *r);

/* What a remote function gives and takes. Remote objects are handles: lathe_rpc_free gives them back. */
typedef struct lathe_rpc_tensor {
    uint64_t data, byte_offset; /* of the server's memory */
    lathe_device device;
    lathe_dtype dtype;
    int32_t ndim;
    const int64_t *shape;
} lathe_rpc_tensor;

typedef struct lathe_rpc_value {
    int32_t type; /* enum lathe_type; LATHE_RPC_BYTES; of results also other types of objects */
    union {
        int64_t v_int;
        double v_float;
        uint64_t v_handle; /* LATHE_MODULE, LATHE_FUNCTION, LATHE_TENSOR and other objects */
        lathe_dtype v_dtype;
        lathe_device v_device;
    } u;
    const void *bytes; /* of strings and bytes; valid until the next call */
    size_t size;
    lathe_rpc_tensor tensor; /* of LATHE_DLTENSOR and LATHE_TENSOR; its shape is valid until the next call */
} lathe_rpc_value;
enum lathe_rpc_sizes { LATHE_RPC_BYTES = 66 };

/* The handle of a global function; LATHE_E_NAME. */
int32_t lathe_rpc_get(lathe_rpc *r, const char *name, uint64_t *out, lathe_error *error);
int32_t lathe_rpc_call(lathe_rpc *r, uint64_t function, const lathe_rpc_value *args, uint32_t n,
                       lathe_rpc_value *result, lathe_error *error);
int32_t lathe_rpc_call_named(lathe_rpc *r, const char *name, const lathe_rpc_value *args, uint32_t n,
                             lathe_rpc_value *result, lathe_error *error);
/* A function of a remote module; LATHE_E_NAME. */
int32_t lathe_rpc_module_get(lathe_rpc *r, uint64_t module, const char *name, uint64_t *out, lathe_error *error);
int32_t lathe_rpc_free(lathe_rpc *r, uint64_t handle, lathe_error *error);
int32_t lathe_rpc_alloc(lathe_rpc *r, lathe_device device, lathe_dtype dtype, const int64_t *shape, int32_t ndim,
                        uint64_t *out, lathe_error *error);
int32_t lathe_rpc_free_data(lathe_rpc *r, lathe_device device, uint64_t data, lathe_error *error);
int32_t lathe_rpc_write(lathe_rpc *r, const lathe_rpc_tensor *to, const void *from, size_t bytes, lathe_error *error);
int32_t lathe_rpc_read(lathe_rpc *r, const lathe_rpc_tensor *from, void *to, size_t bytes, lathe_error *error);
int32_t lathe_rpc_sync(lathe_rpc *r, lathe_device device, lathe_error *error);
int32_t lathe_rpc_upload(lathe_rpc *r, const char *name, const void *bytes, size_t size, lathe_error *error);
/* Calls of `function` of a module, timed where they run: seconds of one call, the mean of each of `repeat` rounds of
 * `number` calls, behind one that is not timed. */
int32_t lathe_rpc_time(lathe_rpc *r, uint64_t module, const char *function, lathe_device device, int64_t number,
                       int64_t repeat, const lathe_rpc_value *args, uint32_t n, double *out_seconds,
                       lathe_error *error);
/* What the server says that it is: "server:KEY". */
const char *lathe_rpc_server_key(const lathe_rpc *r);

#ifdef __cplusplus
}
#endif
#endif
