/* SPDX-License-Identifier: Apache-2.0 */
/* Remote devices in C: what the client takes of a server, whom a session's process turns away, a session's files, and
 * the tracker's queues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "files.h"
#include "guest.h"
#include "queues.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void make_folder(char path[64])
{
    (void)snprintf(path, 64, "/tmp/lathe_test_rpc_XXXXXX");
    assert_non_null(mkdtemp(path));
}

/* The port of a server goes to a pipe. */
static void tell_port(void *user, const char *host, uint16_t port)
{
    (void)host;
    (void)!write(*(const int *)user, &port, sizeof port);
}

static pid_t server; /* of the test at hand; 0: none */

static int end_server(void **state)
{
    int how = 0;
    (void)state;
    if (server == 0)
        return 0;
    (void)kill(server, SIGTERM);
    bool ended = waitpid(server, &how, 0) == server && WIFEXITED(how) && WEXITSTATUS(how) == 0;
    server = 0;
    return ended ? 0 : -1;
}

static void serve(const char *folder, uint32_t handles, uint16_t *out_port)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    server = fork();
    if (server == 0) {
        const lathe_rpc_server_options o = {.size = sizeof o,
                                            .folder = folder,
                                            .limits = {.handles = handles},
                                            .ready = tell_port,
                                            .user = &ends[1]};
        lathe_error e;
        _exit(lathe_rpc_serve(&o, &e) == LATHE_OK ? 0 : 1);
    }
    assert_true(server > 0);
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], out_port, sizeof *out_port), (ssize_t)sizeof *out_port);
    (void)close(ends[0]);
}

/* A session holds 8 handles: a call by name takes one for the name, once. */
static void calls_by_name_take_one_handle(void **state)
{
    char folder[64];
    uint16_t port = 0;
    lathe_rpc *r = NULL;
    lathe_error e = {0};
    lathe_rpc_value result;
    (void)state;
    make_folder(folder);
    serve(folder, 8, &port);
    const lathe_rpc_client_options o = {.size = sizeof o, .host = "127.0.0.1", .port = port};
    assert_int_equal(lathe_rpc_connect(&o, &r, &e), LATHE_OK);
    for (int i = 0; i < 50; i++)
        if (lathe_rpc_call_named(r, "tvm.rpc.server.GetCRTMaxPacketSize", NULL, 0, &result, &e) != LATHE_OK)
            fail_msg("call %d: %s", i, e.message);
    assert_int_equal(result.type, LATHE_INT);
    assert_int_equal(lathe_rpc_call_named(r, "no.such.function", NULL, 0, &result, &e), LATHE_E_NAME);
    lathe_rpc_close(r);
    assert_int_equal(end_server(state), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* A chain of folders, each in the one before, a file of 3 bytes in the last one. */
static void make_chain(const char *folder, int depth)
{
    int at = open(folder, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < depth; i++) {
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY);
        (void)close(at);
        at = next;
    }
    int file = openat(at, "f", O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(file, "abc", 3), 3);
    (void)close(file);
    (void)close(at);
}

static void removes_deep_folders(void **state)
{
    char folder[64], shut[80];
    (void)state;
    make_folder(folder);
    make_chain(folder, 300);
    (void)snprintf(shut, sizeof shut, "%s/shut", folder);
    assert_int_equal(mkdir(shut, 0700), 0);
    make_chain(shut, 2);
    assert_int_equal(chmod(shut, 0), 0);
    assert_true(rpc_files_remove_tree(folder));
    assert_int_not_equal(access(folder, F_OK), 0);
}

static void counts_files_in_folders(void **state)
{
    char folder[64];
    lathe_error e;
    (void)state;
    make_folder(folder);
    make_chain(folder, 3);
    const rpc_files f = {folder, 10};
    assert_int_equal(rpc_files_room(&f, 7, &e), LATHE_OK);
    assert_int_equal(rpc_files_room(&f, 8, &e), LATHE_E_REFUSED);
    assert_true(rpc_files_remove_tree(folder));
}

/* --- the process of a session --- */

/* What a client says first, what the server answers to its process where the key is right, what the client then reads
 * (0: nothing), and how the process ends. */
static void answer_greeting(uint32_t magic, const char *words, int32_t note, uint32_t want, int status)
{
    char folder[64], session[80], key[512] = "";
    int client[2], control[2], how = 0;
    uint32_t head[2] = {magic, (uint32_t)strlen(words)}, got = 0;
    rpc_note n = {0, 0};
    make_folder(folder);
    (void)snprintf(session, sizeof session, "%s/1", folder);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, client), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, control), 0);
    const rpc_guest g = {.fd = client[1], .control = control[1], .key = "k", .shown = "k", .token = "t",
                         .folder = session, .limits = {.handshake_seconds = 1000, .stall_seconds = 1000}};
    const pid_t pid = fork();
    if (pid == 0)
        _exit(rpc_guest_run(&g));
    (void)close(client[1]);
    (void)close(control[1]);
    assert_int_equal(send(client[0], head, sizeof head, MSG_NOSIGNAL), (ssize_t)sizeof head);
    (void)send(client[0], words, strlen(words), MSG_NOSIGNAL);
    if (note) {
        assert_int_equal(read(control[0], &n, sizeof n), (ssize_t)sizeof n);
        assert_int_equal(n.kind, RPC_NOTE_MATCHED);
        assert_int_equal(n.value, strstr(words, "-timeout=2.5 ") ? 2501 : 0);
        n = (rpc_note){note, 0};
        assert_int_equal(write(control[0], &n, sizeof n), (ssize_t)sizeof n);
    }
    (void)shutdown(client[0], SHUT_WR); /* the session's end, if there is one */
    const ssize_t n_got = read(client[0], &got, sizeof got); /* where words were left unread, the wire is reset */
    assert_true(want ? n_got == (ssize_t)sizeof got && got == want : n_got <= 0);
    if (want == RPC_MAGIC)
        assert_int_equal(read(client[0], key, sizeof key), 4 + (ssize_t)strlen("server:k"));
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), status);
    if (!note) /* nor was the server told of it */
        assert_int_equal(read(control[0], &n, sizeof n), 0);
    (void)close(client[0]);
    (void)close(control[0]);
    assert_int_equal(rmdir(folder), 0);
}

static void turns_clients_away(void **state)
{
    char endless[2000];
    (void)state;
    memset(endless, 'k', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    answer_greeting(RPC_MAGIC, "client:k -token=t", RPC_NOTE_GRANTED, RPC_MAGIC, 0);
    answer_greeting(RPC_MAGIC, "client:k -timeout=2.5 -other -token=t", RPC_NOTE_GRANTED, RPC_MAGIC, 0);
    answer_greeting(RPC_MAGIC, "client:k -token=t", RPC_NOTE_REFUSED, RPC_MISMATCH, 2); /* somebody came first */
    static const char *const others[] = {"client:k",          "client:k -token=",   "client:k -token=tt", "",
                                         "client: -token=t",  "client:kk -token=t", "server:k -token=t",
                                         "client:k -token=u", " "};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        answer_greeting(RPC_MAGIC, others[i], 0, RPC_MISMATCH, 2);
    answer_greeting(RPC_MAGIC, endless, 0, 0, 2);
    answer_greeting(RPC_MAGIC + 1, "client:k -token=t", 0, 0, 2);
}

/* --- the tracker's queues --- */

/* Allocations of the queues and of jansson: number `fail_at` fails; 0: none does. */
static long count, fail_at;

void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    return fail_at && ++count == fail_at ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fail_at && ++count == fail_at ? NULL : __real_realloc(p, size);
}

static void *counted_malloc(size_t size)
{
    return fail_at && ++count == fail_at ? NULL : malloc(size);
}

enum { OWNERS = 5, KEYS = 3, MOST = 40 };

static uint32_t rnd(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* The entry of a key that is served first, found by looking at all of them. */
static rpc_entry *first_of(rpc_owner *owners, const rpc_key *k, bool request)
{
    rpc_entry *best = NULL;
    for (int i = 0; i < OWNERS; i++)
        for (rpc_entry *e = owners[i].first; e; e = e->next)
            if (e->key == k && e->request == request &&
                (!best || e->priority > best->priority || (e->priority == best->priority && e->number < best->number)))
                best = e;
    return best;
}

static uint32_t count_entries(const rpc_owner *owners)
{
    uint32_t n = 0;
    for (int i = 0; i < OWNERS; i++)
        for (const rpc_entry *e = owners[i].first; e; e = e->next)
            n++;
    return n;
}

/* Places and requests come and go; each pair is the one that a search finds. */
static void exchange(uint32_t seed, uint32_t steps, uint32_t most)
{
    static const char *const names[KEYS] = {"board", "boards", "b"};
    rpc_owner owners[OWNERS] = {{NULL, NULL, NULL}};
    rpc_queues q;
    if (!rpc_queues_init(&q, most))
        return;
    for (uint32_t i = 0; i < steps; i++) {
        const uint32_t name = rnd(&seed, KEYS), owner = rnd(&seed, OWNERS), before = q.entries;
        const bool request = rnd(&seed, 2);
        rpc_key *k = rpc_queues_add(&q, &owners[owner], names[name], strlen(names[name]), request, json_array(),
                                    request ? rnd(&seed, 3) : 0);
        assert_int_equal(q.entries, before + (k != NULL));
        assert_int_equal(q.entries, count_entries(owners));
        assert_true(fail_at || (k != NULL) == (before < most));
        if (rnd(&seed, 6) == 0 && owners[owner].first)
            rpc_queues_drop(&q, rnd(&seed, 2) ? owners[owner].first : owners[owner].last);
        if (rnd(&seed, 12) == 0)
            rpc_queues_leave(&q, &owners[rnd(&seed, OWNERS)]);
        rpc_entry *place, *asks;
        while (k && rnd(&seed, 2) && rpc_queues_pair(k, &place, &asks)) {
            assert_ptr_equal(place, first_of(owners, k, false));
            assert_ptr_equal(asks, first_of(owners, k, true));
            rpc_queues_drop(&q, place);
            rpc_queues_drop(&q, asks);
        }
        if (k)
            rpc_queues_release(&q, k);
    }
    for (int i = 0; i < OWNERS; i++)
        rpc_queues_leave(&q, &owners[i]);
    assert_int_equal(q.entries, 0);
    assert_int_equal(json_object_size(q.index), 0); /* keys that nobody holds are gone */
    rpc_queues_free(&q);
}

static void queues_serve_in_order(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++)
        exchange(seed, 300, MOST);
}

static void queues_tell(void **state)
{
    rpc_owner owner = {NULL, NULL, NULL};
    rpc_queues q;
    (void)state;
    assert_true(rpc_queues_init(&q, MOST));
    for (int i = 0; i < 5; i++) {
        rpc_key *k = rpc_queues_add(&q, &owner, i < 3 ? "a" : "b", 1, i % 2, NULL, 0);
        assert_string_equal(rpc_queues_name(k), i < 3 ? "a" : "b");
        rpc_queues_release(&q, k);
    }
    json_t *all = rpc_queues_tell(&q);
    char *text = json_dumps(all, JSON_SORT_KEYS | JSON_COMPACT);
    assert_string_equal(text, "{\"a\":{\"free\":2,\"pending\":1},\"b\":{\"free\":1,\"pending\":1}}");
    free(text);
    json_decref(all);
    rpc_queues_leave(&q, &owner);
    rpc_queues_free(&q);
}

/* One that fails leaves the queues as they were, and nothing behind: the leak sanitizer looks at the end. */
static void queues_live_without_memory(void **state)
{
    (void)state;
    json_set_alloc_funcs(counted_malloc, free);
    do {
        fail_at++;
        count = 0;
        exchange(7, 60, MOST);
    } while (count >= fail_at);
    assert_true(fail_at > 60);
    fail_at = 0;
    json_set_alloc_funcs(malloc, free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(calls_by_name_take_one_handle, end_server),
        cmocka_unit_test(removes_deep_folders),
        cmocka_unit_test(counts_files_in_folders),
        cmocka_unit_test(turns_clients_away),
        cmocka_unit_test(queues_serve_in_order),
        cmocka_unit_test(queues_tell),
        cmocka_unit_test(queues_live_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
