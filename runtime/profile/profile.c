/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled with a package by `lathe bench --profile`, never part of one: hooks that add up the nanoseconds of every
 * operator by thread, and loops that find what one core of the machine can do. Macros: PROFILE_OPS and PROFILE_WORKERS,
 * how many there are; PROFILE_VECTOR, bytes of a vector. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "tvmrt.h"

/* Read, and set to 0, between runs. Threads beyond the workers share the last row. */
uint64_t lathe_profile_ns[PROFILE_WORKERS][PROFILE_OPS];

static uint32_t g_threads;
static __thread uint32_t g_mine; /* number of this thread, from 1 in the order of the first task */

static const tvmrt_context_t *g_context; /* of the run in progress, or the last one; atomic: workers all set it */
static __thread uint64_t g_begun;        /* the task of this thread; tvmrt's own count ends at 4.29 s */

static uint64_t nanoseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int32_t tvmrt_hook_before(const tvmrt_context_t *context, uint32_t op_id, uint32_t part)
{
    (void)op_id;
    (void)part;
    __atomic_store_n(&g_context, context, __ATOMIC_RELAXED);
    g_begun = nanoseconds();
    return TVMRT_OK;
}

void tvmrt_hook_after(const tvmrt_context_t *context, uint32_t op_id, uint32_t part, int32_t status, uint32_t cycles)
{
    const uint64_t took = nanoseconds() - g_begun;
    uint32_t row;

    (void)context;
    (void)part;
    (void)status;
    (void)cycles;
    if (g_mine == 0)
        g_mine = __atomic_add_fetch(&g_threads, 1, __ATOMIC_RELAXED);
    row = g_mine < PROFILE_WORKERS ? g_mine - 1 : PROFILE_WORKERS - 1;
    __atomic_add_fetch(&lathe_profile_ns[row][op_id], took, __ATOMIC_RELAXED);
}

static double now(void)
{
    return 1e-9 * (double)nanoseconds();
}

/* Seconds of one call of an operator, all its parts on this thread, on the tensors of the last run: mean of `calls`. */
double lathe_profile_time(uint32_t op_id, uint32_t calls)
{
    const tvmrt_op_exec_t *exec = &g_context->op_execs[op_id];
    uint32_t parts = g_context->model->op_descs[op_id].parts, part, k;
    double start = now();

    for (k = 0; k < calls; k++)
        for (part = 0; part < parts; part++)
            (void)exec->func(exec->args, part, parts);
    return (now() - start) / calls;
}

typedef float vec __attribute__((vector_size(PROFILE_VECTOR)));

enum { CHAINS = 10, STEPS = 200000, ROUNDS = 30 }; /* chains: latency times throughput of the widest machines */

/* Floating-point operations of a second: multiply-adds on registers, the best of a few milliseconds. */
double lathe_profile_flops(void)
{
    volatile float one = 1, small = 1e-9f;
    double best = 0;
    int round;
    long k;

    for (round = 0; round < ROUNDS; round++) {
        vec m = (vec){0} + one, a = (vec){0} + small;
        vec s0 = a, s1 = a, s2 = a, s3 = a, s4 = a, s5 = a, s6 = a, s7 = a, s8 = a, s9 = a;
        double start = now(), rate;

        for (k = 0; k < STEPS; k++) {
            s0 = s0 * m + a, s1 = s1 * m + a, s2 = s2 * m + a, s3 = s3 * m + a, s4 = s4 * m + a;
            s5 = s5 * m + a, s6 = s6 * m + a, s7 = s7 * m + a, s8 = s8 * m + a, s9 = s9 * m + a;
        }
        rate = 2.0 * CHAINS * STEPS * (PROFILE_VECTOR / sizeof(float)) / (now() - start);
        s0 += s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9;
        one += s0[0] * 0; /* the sums are used */
        best = rate > best ? rate : best;
    }
    return best;
}

/* Bytes of a second that are read from a buffer of that size again and again; 0: no memory. */
double lathe_profile_bandwidth(int64_t bytes)
{
    vec *b = NULL;
    volatile float keep = 0;
    double best = 0;
    size_t n = (size_t)bytes / sizeof(vec), times = ((size_t)1 << 23) / (size_t)bytes + 1, i, t;
    int round;

    if (posix_memalign((void **)&b, 64, (size_t)bytes) != 0)
        return 0;
    for (i = 0; i < n; i++)
        b[i] = (vec){0} + 1.0f;
    for (round = 0; round < 5; round++) {
        vec s0 = {0}, s1 = s0, s2 = s0, s3 = s0;
        double start = now(), rate;

        for (t = 0; t < times; t++)
            for (i = 0; i + 3 < n; i += 4)
                s0 += b[i], s1 += b[i + 1], s2 += b[i + 2], s3 += b[i + 3];
        rate = (double)bytes * (double)times / (now() - start);
        s0 += s1 + s2 + s3;
        keep += s0[0];
        best = rate > best ? rate : best;
    }
    free(b);
    return best;
}
