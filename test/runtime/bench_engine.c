/* bench_engine.c: what a layer costs: 50 layers of one operator, whole or cut into two parts, at several amounts of
 * work. cc -O2 -Iruntime/tvmrt test/runtime/bench_engine.c runtime/tvmrt/tvmrt.c runtime/tvmrt/tvmrt_port_posix.c
 * -lpthread
 *   ./a.out WORKERS
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tvmrt.h"

enum { BENCH_LAYERS = 50, RUNS = 101 };

static uint32_t work;

static int32_t kernel(const void *args, uint32_t part, uint32_t parts)
{
    volatile uint32_t left = work / parts;

    (void)args;
    (void)part;
    while (left > 0)
        left--;
    return 0;
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(uint32_t workers, uint32_t parts)
{
    static const uint16_t ids[] = {0};
    static const tvmrt_op_exec_t exec = {kernel, NULL};
    const tvmrt_op_desc_t desc = {"kernel", TVMRT_BACKEND_CPU, NULL, NULL, 0, 0, parts};
    tvmrt_schedule_layer_t layers[BENCH_LAYERS];
    const tvmrt_schedule_desc_t schedule = {layers, BENCH_LAYERS, NULL, 0};
    tvmrt_model_desc_t model = {TVMRT_ABI_VERSION, "bench", 0, 0, 0, 1, NULL, NULL, NULL, NULL, 0, 1, 0, 1};
    tvmrt_context_t context = {NULL, NULL, NULL, NULL, NULL, NULL, &exec, 0};
    double times[RUNS];
    int i;

    model.op_descs = &desc;
    context.model = &model;
    context.max_workers = workers;
    for (i = 0; i < BENCH_LAYERS; i++) {
        layers[i].op_ids = ids;
        layers[i].num_ops = 1;
        layers[i].num_tasks = parts;
    }
    for (i = 0; i < RUNS; i++) {
        double start = now_us();

        if (tvmrt_engine_run(&context, &schedule) != 0)
            exit(1);
        times[i] = (now_us() - start) / (double)BENCH_LAYERS;
    }
    qsort(times, RUNS, sizeof times[0], by_value);
    printf("work %7u, parts %u: p10 %7.2f, median %7.2f us a layer\n", (unsigned)work, (unsigned)parts,
           times[RUNS / 10], times[RUNS / 2]);
}

int main(int argc, char **argv)
{
    static const uint32_t amounts[] = {0, 2000, 20000, 200000};
    uint32_t workers = argc > 1 ? (uint32_t)atoi(argv[1]) : 2;
    size_t i;

    if (tvmrt_engine_init(NULL) != 0)
        return 1;
    for (i = 0; i < sizeof amounts / sizeof amounts[0]; i++) {
        work = amounts[i];
        measure(workers, 1);
        measure(workers, 2);
    }
    return tvmrt_engine_shutdown(NULL) != 0;
}
