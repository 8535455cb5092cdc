/* test_fork.c: a process that forks while an engine has workers: the child, which has none of them, runs alone, shuts
 * the engine down and starts it again; the parent notices nothing. POSIX only.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mesh.h"

enum { HANG_SECONDS = 120 };

static tvmrt_engine_t engine = TVMRT_ENGINE_INIT;
static mesh model;
static mesh_instance instance;
static uint8_t expected[VALUE];

/* 0, or the number of the step that went wrong. */
static int right(int step)
{
    memset(instance.output, 0xEE, VALUE);
    return tvmrt_engine_run(&instance.context, &model.schedule) != 0 || memcmp(instance.output, expected, VALUE) != 0
               ? step
               : 0;
}

static int restart(int step)
{
    if (tvmrt_engine_shutdown(&engine) != 0 || tvmrt_engine_init(&engine) != 0)
        return step;
    return engine.num_threads == TVMRT_NUM_WORKERS - 1 ? right(step + 1) : step + 2;
}

/* What `child` returns in a new process; a hang ends by SIGALRM. */
static int in_child(int (*child)(void))
{
    int status = -1;
    pid_t id = fork();

    if (id == 0) {
        alarm(HANG_SECONDS);
        _exit(child());
    }
    assert_true(id > 0);
    assert_int_equal(waitpid(id, &status, 0), id);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int runs_and_stops(void)
{
    int bad = right(1);

    return bad != 0 ? bad : tvmrt_engine_shutdown(&engine) != 0 ? 2 : right(3);
}

static int starts_again(void)
{
    int bad = tvmrt_engine_init(&engine) != 0 ? 1 : right(2);

    return bad != 0 ? bad : restart(3);
}

static int stops_at_once(void)
{
    return restart(1);
}

static int forks_again(void)
{
    int bad = tvmrt_engine_init(&engine) != 0 ? 1 : right(2);

    return bad != 0 ? bad : in_child(starts_again) != 0 ? 3 : restart(4);
}

static void child_of_a_process_with_workers(void **state)
{
    (void)state;
    mesh_make(&model, 5);
    assert_int_equal(mesh_open(&instance, &model, &engine, TVMRT_NUM_WORKERS), 0);
    assert_int_equal(tvmrt_engine_run_single(&instance.context, &model.schedule), 0);
    memcpy(expected, instance.output, VALUE);
    assert_int_equal(tvmrt_engine_init(&engine), 0);
    assert_int_equal(right(1), 0);
    assert_int_equal(in_child(runs_and_stops), 0);
    assert_int_equal(in_child(starts_again), 0);
    assert_int_equal(in_child(stops_at_once), 0);
    assert_int_equal(in_child(forks_again), 0);
    assert_int_equal(right(1), 0);
    assert_int_equal(restart(2), 0);
    assert_int_equal(tvmrt_engine_shutdown(&engine), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(child_of_a_process_with_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
