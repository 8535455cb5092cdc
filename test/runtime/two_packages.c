/* two_packages.c: two packages, each with its static instance and with instances of its own, in one program on one
 * engine, in turn and from two threads. Built by sample.sh, which makes package "other" from package "default".
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>

#include "tvmgen_default.h"
#include "tvmgen_default_instance.h"
#include "tvmgen_other.h"
#include "tvmgen_other_instance.h"

enum { RUNS = 2000 };

static tvmrt_engine_t engine = TVMRT_ENGINE_INIT;
static struct tvmgen_default_instance first, second;
static struct tvmgen_other_instance third;
TVMRT_ALIGNED(64) static uint8_t workspaces[3][64];

struct job {
    struct tvmgen_default_instance *instance;
    float offset;
    int wrong;
};

/* default: 2 x + 3; other: 2 x + 4. */
static void *many_runs(void *arg)
{
    struct job *job = (struct job *)arg;
    int i;

    for (i = 0; i < RUNS; i++) {
        float x = (float)i + job->offset, y = -1.0f;
        struct tvmgen_default_inputs in = {&x};
        struct tvmgen_default_outputs out = {&y};

        if (tvmgen_default_run_instance(job->instance, &in, &out) != 0 || y != 2.0f * x + 3.0f)
            job->wrong++;
    }
    return NULL;
}

static int check(const char *what, int32_t status, float *result, float want)
{
    float got = *result;

    *result = -1.0f;
    if (status == 0 && got == want)
        return 0;
    printf("%s: status %d, %g instead of %g\n", what, (int)status, (double)got, (double)want);
    return 1;
}

static int in_turn(void)
{
    float x = 10.0f, y = -1.0f, z = -1.0f;
    struct tvmgen_default_inputs in = {&x};
    struct tvmgen_default_outputs out = {&y};
    struct tvmgen_other_inputs other_in = {&x};
    struct tvmgen_other_outputs other_out = {&z};
    int bad = 0, i;

    for (i = 0; i < 10; i++) {
        bad += check("default", tvmgen_default_run(&in, &out), &y, 23.0f);
        bad += check("other", tvmgen_other_run(&other_in, &other_out), &z, 24.0f);
        bad += check("default instance", tvmgen_default_run_instance(&second, &in, &out), &y, 23.0f);
        bad += check("other instance", tvmgen_other_run_instance(&third, &other_in, &other_out), &z, 24.0f);
    }
    return bad;
}

static int misuse(void)
{
    static struct tvmgen_default_instance fresh;
    float x = 1.0f, y = 0.0f;
    struct tvmgen_default_inputs in = {&x}, none = {NULL};
    struct tvmgen_default_outputs out = {&y};
    int bad = 0;

    bad += tvmgen_default_run(NULL, &out) != TVMRT_E_NULL;
    bad += tvmgen_default_run(&none, &out) != TVMRT_E_NULL;
    bad += tvmgen_default_run_instance(&fresh, &in, &out) != TVMRT_E_STATE;
    bad += tvmgen_default_instance_init(&fresh, &engine, workspaces[0], 7) != TVMRT_E_WORKSPACE;
    bad += tvmgen_default_instance_init(&fresh, &engine, workspaces[0] + 4, 60) != TVMRT_E_ALIGNMENT;
    bad += tvmgen_default_run_instance(&fresh, &in, &out) != TVMRT_E_STATE;
    if (bad != 0)
        printf("%d misuses were not refused\n", bad);
    return bad;
}

int main(void)
{
    struct job jobs[2] = {{&first, 0.0f, 0}, {&second, 0.5f, 0}};
    pthread_t thread;
    int bad;

    if (tvmgen_default_instance_init(&first, &engine, workspaces[0], 64) != 0 ||
        tvmgen_default_instance_init(&second, &engine, workspaces[1], 64) != 0 ||
        tvmgen_other_instance_init(&third, &engine, workspaces[2], 64) != 0)
        return 1;
    bad = in_turn() + misuse();
    if (pthread_create(&thread, NULL, many_runs, &jobs[0]) != 0)
        return 1;
    many_runs(&jobs[1]);
    pthread_join(thread, NULL);
    bad += jobs[0].wrong + jobs[1].wrong;
    if (tvmrt_engine_shutdown(&engine) != 0 || tvmrt_engine_shutdown(NULL) != 0)
        bad++;
    printf("two packages: %s\n", bad == 0 ? "right" : "FAILED");
    return bad != 0;
}
