/* bench_cycle.c: how fast the cycle model is, in instructions and in bursts a second: all convolution layers of
 * ResNet-18, and a product of 1 x 16384 by 16384 x 16384 whose instructions move 1024 rows each.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "vta.h"
#include "workloads.h"

/* Of the processor, so that others on the machine count little. */
static double seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
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
    product_emit(&s, &(product_task){.m = 1024, .n = 1024});
    stream_finish(&s);
    measure("product", &c, &s, 10);
    stream_release(&s);
    return 0;
}
