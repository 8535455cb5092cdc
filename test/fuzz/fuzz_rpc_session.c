/* fuzz_rpc_session.c: a session of a server of remote devices, over a pair of sockets: any bytes behind the greeting.
 * The session ends in good order, with nothing left.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lathe_rpc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct client {
    int fd;
    const uint8_t *data;
    size_t size;
};

static void *drain(void *user)
{
    const struct client *c = user;
    char buffer[4096];
    while (read(c->fd, buffer, sizeof buffer) > 0)
        continue;
    return NULL;
}

static void *talk(void *user)
{
    const struct client *c = user;
    for (size_t at = 0; at < c->size;) {
        ssize_t put = send(c->fd, c->data + at, c->size - at, MSG_NOSIGNAL);
        if (put <= 0)
            break;
        at += (size_t)put;
    }
    (void)shutdown(c->fd, SHUT_WR);
    return NULL;
}

static void remove_folder(const char *folder)
{
    char command[300];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        abort();
}

static void quiet(void *user, const char *line)
{
    (void)user;
    (void)line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const lathe_rpc_limits limits = {.packet_bytes = 1 << 20, .memory_bytes = 1 << 22, .file_bytes = 1 << 20,
                                     .handles = 64, .stall_seconds = 20};
    const lathe_options vm = {.size = sizeof vm, .workers = 1, .no_jit = 1, .cache_dir = "", .log = quiet};
    char folder[] = "/tmp/lathe-fuzz-rpc-XXXXXX";
    int ends[2];
    pthread_t writer, reader;
    lathe_error e;
    if (setenv("CC", "false", 1) != 0 || !mkdtemp(folder) || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        abort();
    struct client c = {ends[0], data, size};
    if (pthread_create(&writer, NULL, talk, &c) != 0 || pthread_create(&reader, NULL, drain, &c) != 0)
        abort();
    (void)lathe_rpc_session(ends[1], folder, &limits, &vm, &e);
    (void)close(ends[1]);
    (void)pthread_join(writer, NULL);
    (void)pthread_join(reader, NULL);
    (void)close(ends[0]);
    remove_folder(folder);
    return 0;
}
