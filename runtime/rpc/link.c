/* link.c: reading, writing, connecting, listening.
 * SPDX-License-Identifier: Apache-2.0 */
#if defined(__linux__)
#define _GNU_SOURCE /* TCP_KEEPIDLE and its like */
#endif
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t rpc_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Until fd is ready for `events`. */
static enum rpc_io wait_for(const rpc_link *l, short events, int ms)
{
    struct pollfd p[2] = {{.fd = l->fd, .events = events}, {.fd = l->control, .events = POLLIN}};
    const nfds_t n = l->control >= 0 ? 2 : 1;
    const int64_t deadline = rpc_now() + (ms < 0 ? 0 : ms);
    for (;;) {
        int64_t left = deadline - rpc_now();
        int got = poll(p, n, ms < 0 ? -1 : left > INT32_MAX ? INT32_MAX : left < 0 ? 0 : (int)left);
        if (got < 0 && errno != EINTR)
            return RPC_IO_FAILED;
        if (got > 0 && p[1].revents && n == 2)
            return RPC_IO_ENDED;
        if (got > 0 && p[0].revents)
            return RPC_IO_DONE;
        if (ms >= 0 && rpc_now() >= deadline)
            return RPC_IO_LATE;
    }
}

bool rpc_link_ready(const rpc_link *l, int ms)
{
    return wait_for(l, POLLIN, ms) != RPC_IO_LATE;
}

bool rpc_link_over(const rpc_link *l)
{
    struct pollfd p = {.fd = l->control, .events = POLLIN};
    return l->control >= 0 && poll(&p, 1, 0) > 0;
}

static bool try_again(void)
{
    return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
}

/* What comes within `ms`, at most *n bytes; it may be nothing yet. */
static enum rpc_io read_some(const rpc_link *l, char **at, size_t *n, int ms)
{
    enum rpc_io io = wait_for(l, POLLIN, ms);
    if (io != RPC_IO_DONE)
        return io;
    ssize_t got = recv(l->fd, *at, *n, MSG_DONTWAIT);
    if (got == 0)
        return RPC_IO_ENDED;
    if (got < 0)
        return try_again() ? RPC_IO_DONE : errno == ECONNRESET ? RPC_IO_ENDED : RPC_IO_FAILED;
    *at += got;
    *n -= (size_t)got;
    return RPC_IO_DONE;
}

enum rpc_io rpc_link_read(const rpc_link *l, void *to, size_t n, int first_ms)
{
    char *at = to;
    while (n > 0) {
        enum rpc_io io = read_some(l, &at, &n, at == (char *)to ? first_ms : l->stall_ms);
        if (io != RPC_IO_DONE)
            return io;
    }
    return RPC_IO_DONE;
}

enum rpc_io rpc_link_read_by(const rpc_link *l, void *to, size_t n, int64_t deadline)
{
    char *at = to;
    while (n > 0) {
        const int64_t left = deadline - rpc_now();
        enum rpc_io io = read_some(l, &at, &n, left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left);
        if (io != RPC_IO_DONE)
            return io;
    }
    return RPC_IO_DONE;
}

enum rpc_io rpc_link_write(const rpc_link *l, const void *from, size_t n)
{
    const char *at = from;
    while (n > 0) {
        ssize_t put = send(l->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put < 0 && !try_again())
            return errno == EPIPE || errno == ECONNRESET ? RPC_IO_ENDED : RPC_IO_FAILED;
        if (put > 0) {
            at += put;
            n -= (size_t)put;
            continue;
        }
        enum rpc_io io = wait_for(l, POLLOUT, l->stall_ms);
        if (io != RPC_IO_DONE)
            return io;
    }
    return RPC_IO_DONE;
}

/* --- addresses --- */

static void set_int(int fd, int level, int name, int v)
{
    (void)setsockopt(fd, level, name, &v, sizeof v); /* a hint: where it is not there, nothing is lost but time */
}

void rpc_set_options(int fd)
{
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#if defined(TCP_KEEPIDLE) && defined(TCP_KEEPINTVL) && defined(TCP_KEEPCNT)
    set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
    set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
    set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, 6);
#endif
#if defined(SO_NOSIGPIPE)
    set_int(fd, SOL_SOCKET, SO_NOSIGPIPE, 1);
#endif
}

bool rpc_set_blocking(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, on ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) == 0;
}

static int32_t resolve(const char *host, uint16_t port, int flags, struct addrinfo **out, lathe_error *error)
{
    const struct addrinfo want = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    char service[8];
    (void)snprintf(service, sizeof service, "%u", (unsigned)port);
    int why = getaddrinfo(host, service, &want, out);
    return why == 0 ? LATHE_OK : rpc_fail(error, LATHE_E_FILE, "the address %s: %s", host, gai_strerror(why));
}

static bool bind_one(const struct addrinfo *a, int *out_fd)
{
    *out_fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    if (*out_fd < 0)
        return false;
    (void)fcntl(*out_fd, F_SETFD, FD_CLOEXEC);
    set_int(*out_fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(*out_fd, a->ai_addr, a->ai_addrlen) == 0 && listen(*out_fd, 128) == 0)
        return true;
    int why = errno;
    (void)close(*out_fd);
    *out_fd = -1;
    errno = why;
    return false;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t size = sizeof a;
    char service[8] = "0";
    if (getsockname(fd, (struct sockaddr *)&a, &size) != 0 ||
        getnameinfo((struct sockaddr *)&a, size, NULL, 0, service, sizeof service, NI_NUMERICSERV) != 0)
        return 0;
    unsigned port = 0;
    (void)sscanf(service, "%u", &port);
    return (uint16_t)port;
}

int32_t rpc_listen(const char *host, uint16_t port, uint16_t port_end, int *out_fd, uint16_t *out_port,
                   lathe_error *error)
{
    int why = 0;
    *out_fd = -1;
    for (uint32_t p = port; p <= (port_end > port ? port_end : port); p++) {
        struct addrinfo *all;
        int32_t status = resolve(host, (uint16_t)p, AI_PASSIVE, &all, error);
        if (status != LATHE_OK)
            return status;
        bool ok = false;
        for (struct addrinfo *a = all; a && !ok; a = a->ai_next)
            ok = bind_one(a, out_fd);
        why = errno;
        freeaddrinfo(all);
        if (ok) {
            *out_port = port_of(*out_fd);
            return LATHE_OK;
        }
        if (why != EADDRINUSE)
            break;
    }
    return rpc_fail(error, LATHE_E_FILE, "%s, port %u: %s", host, (unsigned)port, strerror(why));
}

static bool dial_one(const struct addrinfo *a, int64_t deadline, int *out_fd)
{
    int why = 0, fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    socklen_t size = sizeof why;
    if (fd < 0)
        return false;
    rpc_set_options(fd);
    bool ok = rpc_set_blocking(fd, false);
    if (ok && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
        const rpc_link l = {fd, -1, -1};
        int64_t left = deadline - rpc_now();
        ok = errno == EINPROGRESS;
        why = errno;
        if (ok && wait_for(&l, POLLOUT, left < 0 ? 0 : (int)(left > INT32_MAX ? INT32_MAX : left)) != RPC_IO_DONE) {
            ok = false;
            why = ETIMEDOUT;
        }
        if (ok)
            ok = getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size) == 0 && why == 0;
    }
    if (ok && rpc_set_blocking(fd, true)) {
        *out_fd = fd;
        return true;
    }
    (void)close(fd);
    errno = why;
    return false;
}

int32_t rpc_dial(const char *host, uint16_t port, int64_t deadline, int *out_fd, lathe_error *error)
{
    struct addrinfo *all;
    *out_fd = -1;
    int32_t status = resolve(host, port, 0, &all, error);
    if (status != LATHE_OK)
        return status;
    bool ok = false;
    for (struct addrinfo *a = all; a && !ok; a = a->ai_next)
        ok = dial_one(a, deadline, out_fd);
    int why = errno;
    freeaddrinfo(all);
    return ok ? LATHE_OK
              : rpc_fail(error, LATHE_E_FILE, "no connection to %s, port %u: %s", host, (unsigned)port, strerror(why));
}

void rpc_peer_name(int fd, char *out, size_t size)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;
    if (getpeername(fd, (struct sockaddr *)&a, &n) != 0 ||
        getnameinfo((struct sockaddr *)&a, n, out, (socklen_t)size, NULL, 0, NI_NUMERICHOST) != 0)
        (void)snprintf(out, size, "unknown");
}

bool rpc_random(void *to, size_t n)
{
    char *at = to;
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && n > 0) {
        ssize_t got = read(fd, at, n);
        if (got <= 0 && errno != EINTR)
            break;
        if (got > 0) {
            at += got;
            n -= (size_t)got;
        }
    }
    if (fd >= 0)
        (void)close(fd);
    return n == 0;
}

bool rpc_same_secret(const char *a, const char *b)
{
    const size_t na = strlen(a), nb = strlen(b);
    unsigned char differ = na != nb;
    for (size_t i = 0; i < na; i++)
        differ |= (unsigned char)(a[i] ^ b[nb ? i % nb : 0]);
    return differ == 0;
}
