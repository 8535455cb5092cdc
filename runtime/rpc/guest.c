/* guest.c: greeting, waiting for a place, the session.
 * SPDX-License-Identifier: Apache-2.0 */
#if defined(__linux__)
#define _GNU_SOURCE /* sched_setaffinity */
#endif
#include "guest.h"

#include "files.h"
#include "session.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static bool tell(const rpc_guest *g, int32_t kind, int32_t value)
{
    const rpc_note n = {kind, value};
    return write(g->control, &n, sizeof n) == (ssize_t)sizeof n;
}

/* --- the greeting --- */

static bool answer_code(const rpc_link *l, uint32_t code, const char *key)
{
    rpc_buffer b = {0};
    rpc_put_u32(&b, code);
    if (key) {
        rpc_put_u32(&b, (uint32_t)strlen("server:") + (uint32_t)strlen(key));
        rpc_put_bytes(&b, "server:", strlen("server:"));
        rpc_put_bytes(&b, key, strlen(key));
    }
    bool ok = !b.full && rpc_link_write(l, b.data, b.size) == RPC_IO_DONE;
    rpc_buffer_free(&b);
    return ok;
}

/* "client:KEY", then words: -timeout=SECONDS, -token=TOKEN; others are ignored, as stock servers do. */
static bool check_key(const rpc_guest *g, char *text, int32_t *out_lease_ms)
{
    char *rest = NULL, *word = strtok_r(text, " ", &rest);
    bool trusted = g->token == NULL;
    *out_lease_ms = 0;
    if (!word || strncmp(word, "client:", 7) != 0 || !rpc_same_secret(word + 7, g->key))
        return false;
    while ((word = strtok_r(NULL, " ", &rest)) != NULL) {
        double seconds = strncmp(word, "-timeout=", 9) == 0 ? strtod(word + 9, NULL) : 0;
        if (seconds > 0)
            *out_lease_ms = seconds < 2e6 ? (int32_t)(seconds * 1e3) + 1 : 2000000000;
        if (g->token && strncmp(word, "-token=", 7) == 0)
            trusted |= rpc_same_secret(word + 7, g->token);
    }
    return trusted;
}

static bool greet(const rpc_guest *g, const rpc_link *l, int32_t *out_lease_ms)
{
    uint8_t head[4];
    uint32_t magic = 0, n = 0;
    char key[RPC_KEY_MAX + 1];
    const int64_t deadline = rpc_now() + (int64_t)g->limits.handshake_seconds * 1000;
    if (rpc_link_read_by(l, head, sizeof head, deadline) != RPC_IO_DONE)
        return false;
    (void)rpc_read_u32(&(rpc_reader){head, sizeof head, 0}, &magic);
    if (magic != RPC_MAGIC || rpc_link_read_by(l, head, sizeof head, deadline) != RPC_IO_DONE)
        return false; /* at once: who speaks otherwise may wait for an answer to these bytes */
    (void)rpc_read_u32(&(rpc_reader){head, sizeof head, 0}, &n);
    if (n > RPC_KEY_MAX || rpc_link_read_by(l, key, n, deadline) != RPC_IO_DONE)
        return false;
    key[n] = '\0';
    if (strlen(key) == n && check_key(g, key, out_lease_ms))
        return true;
    (void)answer_code(l, RPC_MISMATCH, NULL);
    rpc_say(&g->log, "a client with another key or token was turned away");
    return false;
}

/* --- a place --- */

/* Until the server grants a place, or the client or the server goes. -1: neither it nor ever. */
static int32_t wait_for_place(const rpc_guest *g)
{
    rpc_note n = {0, 0};
    for (;;) {
        char byte;
        struct pollfd p[2] = {{.fd = g->control, .events = POLLIN}, {.fd = g->fd, .events = POLLIN}};
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return -1;
        if (p[0].revents)
            return read(g->control, &n, sizeof n) == (ssize_t)sizeof n && n.kind == RPC_NOTE_GRANTED ? n.value : -1;
        ssize_t got = p[1].revents ? recv(g->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) : 1;
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
            return -1;
        if (p[1].revents) /* a client that cannot wait for the answer */
            (void)poll(p, 1, 50);
    }
}

uint32_t rpc_guest_processors(void)
{
#if defined(__linux__)
    cpu_set_t all;
    return sched_getaffinity(0, sizeof all, &all) == 0 ? (uint32_t)CPU_COUNT(&all) : 0;
#else
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 0;
#endif
}

static void pin(const rpc_guest *g, int32_t place)
{
#if defined(__linux__)
    cpu_set_t all, mine;
    uint32_t seen = 0, first = (uint32_t)place * g->cores;
    CPU_ZERO(&mine);
    if (g->cores == 0 || sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET((size_t)i, &all) && seen++ >= first && seen <= first + g->cores)
            CPU_SET((size_t)i, &mine);
    if (CPU_COUNT(&mine) == 0 || sched_setaffinity(0, sizeof mine, &mine) != 0)
        rpc_say(&g->log, "the session cannot be pinned to cores");
#else
    (void)g;
    (void)place;
#endif
}

/* --- the session --- */

/* Compilers that the virtual machine starts must not outlive the session: the server hears of them. */
static void hear_of_children(void *user, const char *path, int32_t pid, int32_t there)
{
    const rpc_guest *g = user;
    if (!path)
        (void)tell(g, there ? RPC_NOTE_CHILD : RPC_NOTE_CHILD_ENDED, pid);
}

static void vm_log(void *user, const char *line)
{
    const rpc_guest *g = user;
    rpc_say(&g->log, "%s", line);
}

static int session(const rpc_guest *g, const rpc_link *l)
{
    char files[RPC_KEY_MAX], temporary[RPC_KEY_MAX];
    lathe_options vm = g->vm ? *g->vm : (lathe_options){.size = sizeof vm};
    lathe_error why = {0};
    vm.outside = hear_of_children;
    vm.log = vm_log;
    vm.user = (void *)(uintptr_t)g;
    int a = snprintf(files, sizeof files, "%s/files", g->folder);
    int b = snprintf(temporary, sizeof temporary, "%s/tmp", g->folder);
    if (a >= (int)sizeof files || b >= (int)sizeof temporary || mkdir(g->folder, 0700) != 0 ||
        mkdir(files, 0700) != 0 || mkdir(temporary, 0700) != 0 || setenv("TMPDIR", temporary, 1) != 0 ||
        chdir(files) != 0) {
        rpc_say(&g->log, "the session's folder cannot be made");
        return 3;
    }
    int32_t status = rpc_session_run(l, files, &g->limits, &vm, &why);
    (void)rpc_files_remove_tree(g->folder); /* the server does it, too, unless it is no more */
    if (status == LATHE_OK)
        return 0;
    rpc_say(&g->log, "%s", why.message);
    return 1;
}

int rpc_guest_run(const rpc_guest *g)
{
    const lathe_rpc_limits limits = rpc_limits_of(&g->limits);
    const rpc_link l = {g->fd, g->control, (int)(limits.stall_seconds < 2000000 ? limits.stall_seconds * 1000
                                                                                 : 2000000000)};
    int32_t lease_ms;
    rpc_guest mine = *g;
    mine.limits = limits;
    if (!greet(&mine, &l, &lease_ms) || !tell(g, RPC_NOTE_MATCHED, lease_ms))
        return 2;
    int32_t place = wait_for_place(g);
    if (place < 0) {
        if (!rpc_link_over(&l)) /* of a server that has ended, the key is not the fault */
            (void)answer_code(&l, RPC_MISMATCH, NULL);
        return 2;
    }
    pin(g, place);
    return answer_code(&l, RPC_MAGIC, g->shown) ? session(&mine, &l) : 2;
}
