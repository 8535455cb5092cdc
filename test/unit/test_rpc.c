/* SPDX-License-Identifier: Apache-2.0 */
/* Remote devices in C: what the client takes of a server, and a session's files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "files.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(calls_by_name_take_one_handle, end_server),
        cmocka_unit_test(removes_deep_folders),
        cmocka_unit_test(counts_files_in_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
