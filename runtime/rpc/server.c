/* server.c: the server's process: it listens, starts a process for each client, grants places, ends leases, clears
 * away, and keeps the tracker informed. It never reads what a client sends: its processes may end in any way.
 * SPDX-License-Identifier: Apache-2.0 */
#if defined(__linux__)
#define _GNU_SOURCE /* POLLRDHUP */
#endif
#include "announce.h"
#include "files.h"
#include "guest.h"
#include "session.h"
#include "stop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GROUPS_MAX = 16, LOOK_MS = 200, GONE_MS = 5000 };
#if !defined(POLLRDHUP)
#define POLLRDHUP 0 /* there, a session notices when it answers */
#endif

typedef struct child {
    pid_t pid;
    int control, conn;
    uint32_t number, generation; /* of the key that it compares with */
    bool matched, granted;
    int32_t place;
    int64_t lease_ms; /* what it asks for, then what it has; 0: no limit */
    int64_t deadline; /* of the lease; 0: none */
    int64_t gone;     /* when its client closed the connection; 0: it has not */
    pid_t groups[GROUPS_MAX];
    char peer[64];
} child;

typedef struct server {
    const lathe_rpc_server_options *o;
    rpc_log log;
    uint32_t sessions, waiting, granted, numbers;
    int fd;
    uint16_t port;
    bool *places; /* taken */
    child *children;
    struct pollfd *polled;
    uint32_t count;
    rpc_announce announce;
} server;

/* false: the path is too long. */
static bool folder_of(const server *s, uint32_t number, char out[RPC_PATH_MAX])
{
    return snprintf(out, RPC_PATH_MAX, "%s/session-%u", s->o->folder, number) < RPC_PATH_MAX;
}

/* --- a child's life --- */

static void run_child(const server *s, const child *c, int control)
{
    char folder[RPC_PATH_MAX], shown[RPC_KEY_MAX];
    const char *key = s->o->key ? s->o->key : "";
    (void)close(s->fd);
    rpc_announce_close(&(rpc_announce){.fd = s->announce.fd});
    for (uint32_t i = 0; i < s->count; i++) {
        (void)close(s->children[i].control);
        (void)close(s->children[i].conn);
    }
    rpc_stop_reset();
    (void)setsid(); /* its processes are told by that, and a terminal's signals are the server's */
    if (!folder_of(s, c->number, folder))
        _exit(3);
    (void)snprintf(shown, sizeof shown, "%s", key);
    const rpc_guest g = {.fd = c->conn,
                         .control = control,
                         .key = s->o->tracker_host ? s->announce.match : key,
                         .shown = shown,
                         .token = s->o->tracker_host ? NULL : s->o->token,
                         .folder = folder,
                         .cores = s->o->cores,
                         .limits = s->o->limits,
                         .vm = s->o->vm,
                         .log = s->log};
    _exit(rpc_guest_run(&g));
}

static void start_child(server *s, int conn)
{
    int ends[2];
    child c = {.conn = conn, .number = s->numbers++, .generation = s->announce.generation, .place = -1};
    rpc_set_options(conn);
    rpc_peer_name(conn, c.peer, sizeof c.peer);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        rpc_say(&s->log, "a client was turned away: %s", strerror(errno));
        (void)close(conn);
        return;
    }
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    c.control = ends[0];
    (void)fflush(NULL); /* or it would be said twice */
    c.pid = fork();
    if (c.pid == 0) {
        (void)close(ends[0]);
        run_child(s, &c, ends[1]);
    }
    (void)close(ends[1]);
    if (c.pid < 0) {
        rpc_say(&s->log, "a client was turned away: %s", strerror(errno));
        (void)close(ends[0]);
        (void)close(conn);
        return;
    }
    s->children[s->count++] = c;
}

/* What a session that is dead, and not waited for yet, has started and not told of. */
static void kill_descendants(pid_t session)
{
#if defined(__linux__)
    DIR *d = opendir("/proc");
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
        const pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
        if (pid > 1 && pid != session && getsid(pid) == session)
            (void)kill(pid, SIGKILL);
    }
    if (d)
        (void)closedir(d);
#else
    (void)session;
#endif
}

static void kill_groups(child *c)
{
    for (int i = 0; i < GROUPS_MAX; i++)
        if (c->groups[i] > 1)
            (void)kill(-c->groups[i], SIGKILL);
}

/* After this nothing of the child is left: no process, no descriptor, no file. */
static void end_child(server *s, uint32_t i, const char *exception)
{
    child *c = &s->children[i];
    char folder[RPC_PATH_MAX];
    int how = 0;
    (void)kill(c->pid, SIGKILL); /* one that has ended is not hurt; one that closed its wire alone must end, too */
    kill_groups(c);
    siginfo_t dead;
    while (waitid(P_PID, (id_t)c->pid, &dead, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        continue;
    if (c->granted)
        kill_descendants(c->pid); /* their number is kept for them as long as it is not waited for */
    while (waitpid(c->pid, &how, 0) < 0 && errno == EINTR)
        continue;
    if (exception) {
        rpc_buffer b = {0};
        rpc_put_exception(&b, exception);
        if (!b.full)
            (void)send(c->conn, b.data, b.size, MSG_DONTWAIT | MSG_NOSIGNAL);
        rpc_buffer_free(&b);
    }
    (void)close(c->conn);
    (void)close(c->control);
    if (c->granted) {
        s->granted--;
        s->places[c->place] = false;
        rpc_say(&s->log, "session %u ended%s", c->number,
            exception ? ": its time is over" : WIFSIGNALED(how) && WTERMSIG(how) != SIGKILL ? " by a signal" : "");
        if (folder_of(s, c->number, folder) && !rpc_files_remove_tree(folder))
            rpc_say(&s->log, "session %u: its folder cannot be removed: %s", c->number, strerror(errno));
    }
    *c = s->children[--s->count];
}

/* --- places --- */

static void tell(const child *c, int32_t kind, int32_t value)
{
    const rpc_note n = {kind, value};
    (void)send(c->control, &n, sizeof n, MSG_DONTWAIT | MSG_NOSIGNAL); /* one that is gone is found by its wire */
}

static void grant(server *s, child *c)
{
    int32_t place = 0;
    while (s->places[place])
        place++;
    s->places[place] = true;
    s->granted++;
    c->granted = true;
    c->place = place;
    int64_t most = (int64_t)s->o->session_seconds * 1000, asked = c->lease_ms;
    int64_t lease = most == 0 || (asked > 0 && asked < most) ? asked : most;
    c->lease_ms = lease;
    c->deadline = lease > 0 ? rpc_now() + lease : 0;
    rpc_say(&s->log, "session %u: %s", c->number, c->peer);
    tell(c, RPC_NOTE_GRANTED, place);
}

/* Of those whose key is right the one that came first. */
static void grant_places(server *s)
{
    while (s->granted < s->sessions) {
        child *first = NULL;
        for (uint32_t i = 0; i < s->count; i++) {
            child *c = &s->children[i];
            if (c->matched && !c->granted && (!first || c->number < first->number))
                first = c;
        }
        if (!first)
            return;
        grant(s, first);
    }
}

static void hear_match(server *s, child *c, int32_t lease_ms)
{
    if (c->matched)
        return;
    if (s->o->tracker_host && !rpc_announce_use(&s->announce, c->generation)) {
        tell(c, RPC_NOTE_REFUSED, 0);
        return;
    }
    c->matched = true;
    c->lease_ms = lease_ms > 0 ? lease_ms : 0;
}

static void hear_group(child *c, pid_t pid, bool there)
{
    for (int i = 0; i < GROUPS_MAX; i++)
        if (c->groups[i] == (there ? 0 : pid)) {
            c->groups[i] = there ? pid : 0;
            return;
        }
}

/* false: the wire has ended. */
static bool hear(server *s, child *c)
{
    rpc_note n;
    ssize_t got = recv(c->control, &n, sizeof n, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return true;
    if (got != (ssize_t)sizeof n)
        return false;
    if (n.kind == RPC_NOTE_MATCHED)
        hear_match(s, c, n.value);
    else if (n.kind == RPC_NOTE_CHILD || n.kind == RPC_NOTE_CHILD_ENDED)
        hear_group(c, (pid_t)n.value, n.kind == RPC_NOTE_CHILD);
    return true;
}

/* --- the loop --- */

static void accept_client(server *s)
{
    int conn = accept(s->fd, NULL, NULL);
    if (conn >= 0)
        start_child(s, conn);
    else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
        (void)poll(NULL, 0, LOOK_MS); /* nothing to be had now: clients wait in the queue of the system */
}

static void end_leases(server *s)
{
    char text[160];
    for (uint32_t i = s->count; i-- > 0;) {
        const child *c = &s->children[i];
        if (c->gone != 0 && rpc_now() - c->gone > GONE_MS) {
            end_child(s, i, NULL); /* it works on what nobody will take */
            continue;
        }
        if (c->deadline == 0 || rpc_now() < c->deadline)
            continue;
        (void)snprintf(text, sizeof text,
                       "RPCSessionTimeoutError: Your %gs session has expired, try to increase the \"session_timeout\" "
                       "value.",
                       (double)c->lease_ms / 1e3);
        end_child(s, i, text);
    }
}

static void look(server *s)
{
    const uint32_t n = s->count;
    s->polled[0] = (struct pollfd){.fd = s->count < s->waiting ? s->fd : -1, .events = POLLIN};
    for (uint32_t i = 0; i < n; i++) {
        const child *c = &s->children[i];
        s->polled[2 * i + 1] = (struct pollfd){.fd = c->control, .events = POLLIN};
        s->polled[2 * i + 2] = (struct pollfd){.fd = c->gone ? -1 : c->conn, .events = POLLRDHUP};
    }
    if (poll(s->polled, 2 * n + 1, LOOK_MS) <= 0)
        return;
    for (uint32_t i = n; i-- > 0;) { /* from the end: the last one takes the place of one that goes */
        if (s->polled[2 * i + 2].revents)
            s->children[i].gone = rpc_now();
        if (s->polled[2 * i + 1].revents && !hear(s, &s->children[i]))
            end_child(s, i, NULL);
    }
    if (s->polled[0].revents)
        accept_client(s);
}

static void announce(server *s)
{
    lathe_error why;
    if (!s->o->tracker_host)
        return;
    if (rpc_announce_step(&s->announce, s->granted < s->sessions, &why) != LATHE_OK)
        rpc_say(&s->log, "tracker: %s", why.message);
}

static int32_t make_room(server *s, lathe_error *error)
{
    s->children = calloc(s->waiting, sizeof *s->children);
    s->polled = calloc(2 * s->waiting + 1u, sizeof *s->polled);
    s->places = calloc(s->sessions, sizeof *s->places);
    return s->children && s->polled && s->places ? LATHE_OK
                                                 : rpc_fail(error, LATHE_E_MEMORY, "no memory for a server");
}

static int32_t check(const server *s, lathe_error *error)
{
    const uint32_t cores = rpc_guest_processors();
    const lathe_rpc_server_options *o = s->o;
    if (!o->folder)
        return rpc_fail(error, LATHE_E_ARGUMENT, "a server needs a folder for its sessions");
    if (o->key && (strlen(o->key) > RPC_KEY_MAX / 2 || strpbrk(o->key, " \t\n")))
        return rpc_fail(error, LATHE_E_ARGUMENT, "a key is one word of at most %d characters", RPC_KEY_MAX / 2);
    if (o->token && (strlen(o->token) > RPC_KEY_MAX / 4 || strpbrk(o->token, " \t\n") || !*o->token))
        return rpc_fail(error, LATHE_E_ARGUMENT, "a token is one word of at most %d characters", RPC_KEY_MAX / 4);
    if (o->tracker_host && (!o->key || !*o->key))
        return rpc_fail(error, LATHE_E_ARGUMENT, "a tracker hands out servers by their key: --key");
    if (o->cores > 0 && cores > 0 && (uint64_t)o->cores * s->sessions > cores)
        return rpc_fail(error, LATHE_E_ARGUMENT, "%u sessions of %u cores each; the server has %u", s->sessions,
                        o->cores, cores);
    return LATHE_OK;
}

int32_t lathe_rpc_serve(const lathe_rpc_server_options *o, lathe_error *error)
{
    server s = {.o = o, .log = {o->log, o->user}, .fd = -1};
    rpc_stop stop;
    s.sessions = o->sessions ? o->sessions : o->tracker_host ? 1 : 16;
    s.waiting = o->waiting ? o->waiting : s.sessions > 128 ? 2 * s.sessions : 256; /* all that may run, and as many */
    const char *host = o->host ? o->host : "127.0.0.1";
    int32_t status = check(&s, error);
    if (status == LATHE_OK)
        status = make_room(&s, error);
    if (status == LATHE_OK)
        status = rpc_listen(host, o->port, o->port_end, &s.fd, &s.port, error);
    if (status == LATHE_OK) {
        (void)rpc_set_blocking(s.fd, false);
        rpc_announce_init(&s.announce, o, s.port);
        rpc_stop_begin(&stop);
        if (o->ready)
            o->ready(o->user, host, s.port);
        while (!rpc_stop_asked(&stop)) {
            announce(&s);
            look(&s);
            end_leases(&s);
            grant_places(&s);
        }
        while (s.count > 0)
            end_child(&s, s.count - 1, NULL);
        rpc_stop_end(&stop);
        rpc_announce_close(&s.announce);
        (void)close(s.fd);
    }
    free(s.children);
    free(s.polled);
    free(s.places);
    return status;
}
