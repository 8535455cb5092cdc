/* link.h: sockets with limits: bytes that come and go within a time, addresses, listening.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_LINK_H
#define LATHE_RPC_LINK_H
#include "wire.h"

#include <sys/socket.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* there, rpc_set_options has turned the signal off */
#endif

enum rpc_io {
    RPC_IO_DONE,
    RPC_IO_ENDED, /* the other side closed, or who started this process did */
    RPC_IO_LATE,
    RPC_IO_FAILED
};

typedef struct rpc_link {
    int fd;
    int control;  /* its end ends the link; -1: none */
    int stall_ms; /* what has begun goes on within this time; -1: waits for ever */
} rpc_link;

/* All n bytes. first_ms: how long the first may take (-1: for ever); later ones have stall_ms each. */
enum rpc_io rpc_link_read(const rpc_link *l, void *to, size_t n, int first_ms);
enum rpc_io rpc_link_write(const rpc_link *l, const void *from, size_t n);
/* The same within a time in all, in milliseconds of rpc_now. */
enum rpc_io rpc_link_read_by(const rpc_link *l, void *to, size_t n, int64_t deadline);
/* Does something come, or the end, within ms? */
bool rpc_link_ready(const rpc_link *l, int ms);
/* Has who started this process ended? */
bool rpc_link_over(const rpc_link *l);
/* Milliseconds of a clock that only goes on. */
int64_t rpc_now(void);

/* A listening socket on the first free port of [port, port_end]; LATHE_E_FILE. */
int32_t rpc_listen(const char *host, uint16_t port, uint16_t port_end, int *out_fd, uint16_t *out_port,
                   lathe_error *error);
/* A connected socket that notices a peer that went away without a word. LATHE_E_FILE. */
int32_t rpc_dial(const char *host, uint16_t port, int64_t deadline, int *out_fd, lathe_error *error);
void rpc_set_options(int fd); /* of a connection: no delay, keep alive, not for children */
bool rpc_set_blocking(int fd, bool on);
/* "127.0.0.1" of the other side. */
void rpc_peer_name(int fd, char *out, size_t size);
/* n bytes that nobody can guess; false: the system has none. */
bool rpc_random(void *to, size_t n);
/* Are the texts equal? Takes as long for each wrong one. */
bool rpc_same_secret(const char *a, const char *b);
#endif
