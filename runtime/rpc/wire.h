/* wire.h: packets of the RPC protocol as bytes: a reader that trusts nothing, a writer, and sequences of values. All
 * numbers are little-endian and follow each other without gaps. Nothing here knows sockets.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_WIRE_H
#define LATHE_RPC_WIRE_H
#include "lathe_rpc.h"

#include <stdbool.h>

#if defined(__GNUC__)
#define RPC_FORMAT(at, from) __attribute__((format(printf, at, from)))
#else
#define RPC_FORMAT(at, from)
#endif

enum { RPC_MAGIC = 0xff271, RPC_MISMATCH = RPC_MAGIC + 2, RPC_TRACKER_MAGIC = 0x2f271 };
enum { RPC_KEY_MAX = 1024, RPC_ITEMS_MAX = 4096, RPC_RANK_MAX = 32, RPC_HEADER = 12 };
#define RPC_VERSION "0.8.0" /* what every release calls its protocol */

/* X(name, number, text) */
#define RPC_CODES(X)                                          \
    X(RPC_SHUTDOWN, 1, "Shutdown")                            \
    X(RPC_INIT_SERVER, 2, "InitServer")                       \
    X(RPC_CALL_FUNC, 3, "CallFunc")                           \
    X(RPC_RETURN, 4, "Return")                                \
    X(RPC_EXCEPTION, 5, "Exception")                          \
    X(RPC_COPY_FROM_REMOTE, 6, "CopyFromRemote")              \
    X(RPC_COPY_TO_REMOTE, 7, "CopyToRemote")                  \
    X(RPC_COPY_ACK, 8, "CopyAck")                             \
    X(RPC_GET_GLOBAL_FUNC, 9, "GetGlobalFunc")                \
    X(RPC_FREE_HANDLE, 10, "FreeHandle")                      \
    X(RPC_DEV_SET_DEVICE, 11, "DevSetDevice")                 \
    X(RPC_DEV_GET_ATTR, 12, "DevGetAttr")                     \
    X(RPC_DEV_ALLOC, 13, "DevAllocData")                      \
    X(RPC_DEV_FREE, 14, "DevFreeData")                        \
    X(RPC_DEV_SYNC, 15, "DevStreamSync")                      \
    X(RPC_COPY_AMONG_REMOTE, 16, "CopyAmongRemote")           \
    X(RPC_DEV_ALLOC_WITH_SCOPE, 17, "DevAllocDataWithScope")  \
    X(RPC_DEV_CREATE_STREAM, 18, "DevCreateStream")           \
    X(RPC_DEV_FREE_STREAM, 19, "DevFreeStream")               \
    X(RPC_DEV_SET_STREAM, 20, "DevSetStream")                 \
    X(RPC_DEV_GET_STREAM, 21, "DevGetCurrentStream")
enum rpc_code {
#define X(name, number, text) name = number,
    RPC_CODES(X)
#undef X
        RPC_CODE_END
};
const char *rpc_code_name(int32_t code); /* "code" for unknown ones */

/* Types of values that only the wire has. */
enum {
    RPC_BYTE_ARRAY = 9,   /* bytes of a caller */
    RPC_SMALL_BYTES = 12, /* as objects: a tag and the bytes follow */
    RPC_BYTES = 66,
    RPC_OBJECT_REF = 115  /* the tag of a remote object: its handle follows */
};

/* Who is told what happens: NULL: nobody. */
typedef struct rpc_log {
    void (*line)(void *user, const char *text);
    void *user;
} rpc_log;
void rpc_say(const rpc_log *log, const char *format, ...) RPC_FORMAT(2, 3);
int32_t rpc_fail(lathe_error *error, int32_t code, const char *format, ...) RPC_FORMAT(3, 4);

/* --- reading --- */
typedef struct rpc_reader {
    const uint8_t *data;
    size_t size, at;
} rpc_reader;

/* false: the bytes end before. */
bool rpc_read_u32(rpc_reader *r, uint32_t *out);
bool rpc_read_u64(rpc_reader *r, uint64_t *out);
bool rpc_read_bytes(rpc_reader *r, size_t n, const uint8_t **out);

typedef struct rpc_tensor {
    uint64_t data, byte_offset;
    lathe_device device;
    lathe_dtype dtype;
    int32_t ndim;
    int64_t shape[RPC_RANK_MAX];
} rpc_tensor;
/* LATHE_E_FORMAT: cut off, or more dimensions than RPC_RANK_MAX. */
int32_t rpc_read_tensor(rpc_reader *r, rpc_tensor *out, lathe_error *error);
/* Bytes of its elements, which follow each other; false: a dimension below 0, or more than memory can have. */
bool rpc_tensor_bytes(lathe_dtype dtype, const int64_t *shape, int32_t ndim, uint64_t *out);

/* One value of a sequence. */
typedef struct rpc_item {
    int32_t type; /* enum lathe_type or one of those above; objects that were sent as a handle: their own type, or
                   * RPC_OBJECT_REF */
    union {
        int64_t v_int; /* int, bool */
        double v_float;
        uint64_t v_handle; /* pointers, functions, modules, remote objects */
        lathe_dtype v_dtype;
        lathe_device v_device;
    } u;
    const uint8_t *bytes; /* of strings and bytes, in the packet */
    size_t size;
    rpc_tensor *tensor; /* of LATHE_DLTENSOR */
} rpc_item;

typedef struct rpc_items {
    rpc_item *data;
    uint32_t count;
    rpc_tensor *tensors;
} rpc_items;
/* All values of a sequence; strings of any kind come as LATHE_RAW_STRING, bytes as RPC_BYTE_ARRAY. *out points into
 * the reader's bytes, and is freed by rpc_items_free in any case. LATHE_E_FORMAT, LATHE_E_MEMORY. */
int32_t rpc_read_items(rpc_reader *r, rpc_items *out, lathe_error *error);
void rpc_items_free(rpc_items *items);

/* --- writing --- */
typedef struct rpc_buffer {
    uint8_t *data;
    size_t size, capacity;
    bool full; /* memory ended: what was written is not all there */
} rpc_buffer;
void rpc_buffer_free(rpc_buffer *b);
/* Room for n bytes more behind what is there, not written yet; NULL: no memory. */
uint8_t *rpc_put_room(rpc_buffer *b, size_t n);
void rpc_put_u32(rpc_buffer *b, uint32_t v);
void rpc_put_u64(rpc_buffer *b, uint64_t v);
void rpc_put_bytes(rpc_buffer *b, const void *bytes, size_t n);
void rpc_put_tensor(rpc_buffer *b, const rpc_tensor *t);

/* A packet: its length stands in front when it is ended. The buffer holds nothing else. */
void rpc_packet_begin(rpc_buffer *b, int32_t code);
void rpc_packet_end(rpc_buffer *b, uint64_t bytes_behind); /* that many follow which are not in the buffer */

/* Values of a sequence; the caller writes their number first. */
void rpc_put_none(rpc_buffer *b);
void rpc_put_int(rpc_buffer *b, int64_t v);
void rpc_put_64(rpc_buffer *b, int32_t type, uint64_t v); /* int, bool, float, pointers, devices, handles: their bits */
void rpc_put_string(rpc_buffer *b, const void *text, size_t n);
void rpc_put_byte_array(rpc_buffer *b, const void *bytes, size_t n);

/* Packets with one value. */
void rpc_put_return_none(rpc_buffer *b);
void rpc_put_return_64(rpc_buffer *b, int32_t type, uint64_t v);
void rpc_put_exception(rpc_buffer *b, const char *text);
#endif
