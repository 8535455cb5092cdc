/* test_stress.c: 1000 runs with kernels of random duration give the bytes of a run on one thread, for as many workers
 * as the file is compiled for. Usage: test_stress [RUNS]
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "mesh.h"

static mesh model;
static mesh_instance instance, reference;

/* Compares the whole workspace too: every intermediate value, not only the result. */
static int one_run(int round)
{
    int32_t status;

    behaviour.delay = round % 4 == 0 ? 0 : (uint32_t)(round % 7) * 400 + 1;
    memset(instance.workspace, round & 0xFF, sizeof instance.workspace);
    status = tvmrt_engine_run(&instance.context, &model.schedule);
    if (status == 0 && memcmp(instance.output, reference.output, VALUE) == 0 &&
        memcmp(instance.workspace, reference.workspace, (OPS - 1) * VALUE) == 0)
        return 0;
    printf("run %d with %d workers: status %d or wrong bytes\n", round, TVMRT_NUM_WORKERS, (int)status);
    return 1;
}

int main(int argc, char **argv)
{
    int runs = argc > 1 ? atoi(argv[1]) : 1000, round, bad = 0;

    mesh_make(&model, 2024);
    if (mesh_open(&reference, &model, NULL, 0) != 0 || mesh_open(&instance, &model, NULL, TVMRT_NUM_WORKERS) != 0 ||
        tvmrt_engine_run_single(&reference.context, &model.schedule) != 0 || tvmrt_engine_init(NULL) != 0)
        return 1;
    for (round = 0; round < runs && bad == 0; round++)
        bad = one_run(round);
    if (tvmrt_engine_shutdown(NULL) != 0)
        bad = 1;
    printf("%d runs with %d workers: %s\n", round, TVMRT_NUM_WORKERS, bad ? "FAILED" : "same bytes");
    return bad;
}
