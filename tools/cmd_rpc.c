/* SPDX-License-Identifier: Apache-2.0 */
/* lathe rpc-server and rpc-tracker: the command line of runtime/rpc. */
#include "cli.h"
#include "api/remote.h"

#include "base/file.h"
#include "driver/run.h"
#include "lathe/loops.h"
#include "lathe_rpc.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PORT = 65535, MOST_SESSIONS = 1024, MOST_SECONDS = 2000000 };

static bool failed(ask *x, const lathe_error *e)
{
    diag_code code = e->code == LATHE_E_ARGUMENT ? DIAG_USAGE : DIAG_ENVIRONMENT;
    return diag_error(&x->c->diags, code, src_loc_none(), "%s", e->message);
}

static void log_line(void *user, const char *line)
{
    const ask *x = user;
    fprintf(stderr, "%s: %s\n", ask_verb_name(x->verb), line);
}

/* At once, for who waits for it; so it does not go the way of what verbs print. */
static void ready(void *user, const char *host, uint16_t port)
{
    const ask *x = user;
    printf("%s listens on %s:%u\n", ask_verb_name(x->verb), host, (unsigned)port);
    (void)fflush(stdout);
}

static bool read_token(const ask *x, const char **out)
{
    const char *path = ask_get(x, OPT_TOKEN_FILE, NULL);
    *out = NULL;
    return !path || remote_token(x->c, path, out);
}

static bool ports(const ask *x, long otherwise, uint16_t *first, uint16_t *last)
{
    long a, b;
    if (!ask_number(x, OPT_LISTEN_PORT, 0, MOST_PORT, otherwise, &a) ||
        !ask_number(x, OPT_PORT_END, a, MOST_PORT, a, &b))
        return false;
    *first = (uint16_t)a;
    *last = (uint16_t)b;
    return true;
}

static bool server_limits(const ask *x, lathe_rpc_server_options *o)
{
    long sessions, seconds, cores, packet, memory, files;
    if (!ask_number(x, OPT_SESSIONS, 1, MOST_SESSIONS, 0, &sessions) ||
        !ask_number(x, OPT_SESSION_SECONDS, 1, MOST_SECONDS, 0, &seconds) ||
        !ask_number(x, OPT_CORES, 1, MOST_SESSIONS, 0, &cores) ||
        !ask_number(x, OPT_MAX_PACKET, 4096, INT64_MAX, 0, &packet) ||
        !ask_number(x, OPT_MAX_MEMORY, 4096, INT64_MAX, 0, &memory) ||
        !ask_number(x, OPT_MAX_FILES, 4096, INT64_MAX, 0, &files))
        return false;
    o->sessions = (uint32_t)sessions;
    o->session_seconds = (uint32_t)seconds;
    o->cores = (uint32_t)cores;
    o->limits.packet_bytes = (uint64_t)packet;
    o->limits.memory_bytes = (uint64_t)memory;
    o->limits.file_bytes = (uint64_t)files;
    return true;
}

static bool no_arguments(const ask *x)
{
    return x->args.len == 0 || ask_usage_error(x, NULL, "'%s' takes no argument, and '%.100s' is one",
                                               ask_verb_name(x->verb), x->args.data[0]);
}

/* What is open to more than this machine is open to all who reach it. */
static void warn_of_open_door(const ask *x, const char *host, const char *secret)
{
    static const char *const own[] = {"127.0.0.1", "localhost", "::1"};
    bool closed = secret || !host;
    for (size_t i = 0; i < sizeof own / sizeof *own && !closed; i++)
        closed = strcmp(host, own[i]) == 0;
    if (!closed)
        fprintf(stderr, "%s: without --token-file, anyone who reaches %s may run programs "
                        "here\n", ask_verb_name(x->verb),
                host);
}

static bool serve(ask *x, lathe_rpc_server_options *o)
{
    lathe_error e = {0};
    lathe_loops *loops;
    if (lathe_loops_create(x->c->mem.out_of_memory, x->c->mem.context, &loops, &e) != LATHE_OK)
        return failed(x, &e);
    const lathe_options vm = {.size = sizeof vm,
                              .no_jit = ask_has(x, OPT_NO_JIT),
                              .interpret = lathe_loops_interpret,
                              .interpret_user = loops};
    o->vm = &vm;
    bool ok = lathe_rpc_serve(o, &e) == LATHE_OK || failed(x, &e);
    lathe_loops_destroy(loops);
    return ok;
}

bool cmd_rpc_server(ask *x)
{
    lathe_rpc_server_options o = {.size = sizeof o,
                                  .host = ask_get(x, OPT_LISTEN, NULL),
                                  .key = ask_get(x, OPT_KEY, NULL),
                                  .address = ask_get(x, OPT_ADDRESS, NULL),
                                  .log = ask_has(x, OPT_QUIET) ? NULL : log_line,
                                  .ready = ready,
                                  .user = x};
    const char *tracker = ask_get(x, OPT_TRACKER, NULL);
    if (!no_arguments(x) || !read_token(x, &o.token) || !ports(x, 9090, &o.port, &o.port_end) ||
        !server_limits(x, &o) ||
        (tracker && !remote_address(x, "tracker", tracker, &o.tracker_host, &o.tracker_port)))
        return false;
    warn_of_open_door(x, o.host, o.token);
    o.folder = process_temp_dir(x->c);
    bool ok = o.folder && serve(x, &o);
    if (o.folder)
        compiler_remove_temp_dir(x->c, o.folder);
    return ok;
}

bool cmd_rpc_tracker(ask *x)
{
    lathe_error e = {0};
    lathe_rpc_tracker_options o = {.size = sizeof o,
                                   .host = ask_get(x, OPT_LISTEN, NULL),
                                   .log = ask_has(x, OPT_QUIET) ? NULL : log_line,
                                   .ready = ready,
                                   .user = x};
    if (!no_arguments(x) || !read_token(x, &o.token) || !ports(x, 9190, &o.port, &o.port_end))
        return false;
    warn_of_open_door(x, o.host, o.token);
    return lathe_rpc_track(&o, &e) == LATHE_OK || failed(x, &e);
}
