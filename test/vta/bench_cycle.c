/* bench_cycle.c: how fast the cycle model is, in instructions and in bursts a second: all convolution layers of
 * ResNet-18, and a product of 1 x 16384 by 16384 x 16384 whose instructions move 1024 rows each.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "vta.h"
#include "workloads.h"

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of `rounds` times of the stream. */
static void measure(const char *name, const vta_config *c, const stream *s, int rounds)
{
    double best = 1e9;
    uint64_t cycles = 0;
    for (int i = 0; i < rounds; i++) {
        vta_cycle_report r;
        vta_error e;
        double start = seconds();
        if (vta_cycle_time(c, NULL, s->insns, s->n_insns, &r, &e) != VTA_OK) {
            fprintf(stderr, "%s: %s\n", name, e.text);
            exit(1);
        }
        double took = seconds() - start;
        best = took < best ? took : best;
        cycles = r.cycles;
        vta_cycle_release(&r);
    }
    printf("%-10s %8u instructions, %10llu cycles: %7.3f ms, %6.2f M instructions/s, %8.0f M cycles/s\n", name,
           s->n_insns, (unsigned long long)cycles, 1e3 * best, 1e-6 * s->n_insns / best, 1e-6 * (double)cycles / best);
}

static vta_fields load(enum vta_mem m, int64_t from, int64_t x, int64_t y, int64_t stride)
{
    return (vta_fields){
        .opcode = VTA_LOAD, .memory_type = m, .dram_base = from, .x_size = x, .y_size = y, .x_stride = stride};
}

static void product(stream *s)
{
    const vta_uop_fields zero = {0, 0, 0};
    uint32_t uop = stream_uops(s, &zero, 1);
    vta_fields gemm = {.opcode = VTA_GEMM,
                       .uop_bgn = uop,
                       .uop_end = uop + 1,
                       .iter_out = 1024,
                       .iter_in = 1,
                       .dst_factor_out = 1,
                       .wgt_factor_out = 1};
    for (int64_t k = 0; k < 1024; k++) {
        if (k)
            stream_pop(s, VTA_STAGE_COMPUTE, VTA_STAGE_LOAD);
        vta_fields inp = load(VTA_MEM_INP, k, 1, 1, 1), wgt = load(VTA_MEM_WGT, k, 1, 1024, 1024);
        stream_emit(s, &inp);
        stream_emit(s, &wgt);
        stream_push(s, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE);
        stream_pop(s, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE);
        stream_emit(s, &gemm);
        if (k < 1023)
            stream_push(s, VTA_STAGE_COMPUTE, VTA_STAGE_LOAD);
    }
    stream_finish(s);
}

int main(void)
{
    vta_config c = vta_config_default();
    vta_geometry g;
    vta_error e;
    stream s;
    if (vta_config_check(&c, &g, &e) != VTA_OK)
        return 1;
    stream_init(&s, &g, 0);
    for (int i = 0; i < RESNET18_LAYERS; i++) {
        s.n_uops = 0; /* each layer is a launch of its own */
        conv_emit(&s, &(conv_task){.layer = &resnet18_layers[i],
                                   .epilogue = EPILOGUE_QUANTISED | EPILOGUE_RESIDUAL,
                                   .shift = 8,
                                   .least = -128,
                                   .most = 127});
    }
    stream_finish(&s);
    measure("resnet18", &c, &s, 200);
    stream_release(&s);
    stream_init(&s, &g, 0);
    product(&s);
    measure("product", &c, &s, 10);
    stream_release(&s);
    return 0;
}
