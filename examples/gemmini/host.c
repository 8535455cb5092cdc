/* SPDX-License-Identifier: Apache-2.0 */
/* The library behind gemmini.h where there is no Gemmini: each thread has an accelerator, as each core of a chip would.
 * With GEMMINI_COUNTS in the environment, a line on standard error for each fence says what went before it. */
#include "device.h"
#include "gemmini.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local gemmini *device;

static gemmini *own_device(void)
{
    if (!device) {
        device = malloc(sizeof *device);
        if (!device)
            abort();
        gemmini_reset(device);
    }
    return device;
}

void gemmini_issue(uint32_t funct, uint64_t rs1, uint64_t rs2)
{
    (void)gemmini_run(own_device(), funct, rs1, rs2);
}

int32_t gemmini_fence_all(void)
{
    gemmini *g = own_device();
    gemmini_fence(g);
    if (g->fault)
        fprintf(stderr, "gemmini: %s\n", g->fault);
    if (g->instructions && getenv("GEMMINI_COUNTS"))
        fprintf(stderr, "gemmini: instructions %" PRIu64 ", computes %" PRIu64 " in %" PRIu64 " cycles, loads %" PRIu64
                " of %" PRIu64 " bytes, stores %" PRIu64 " of %" PRIu64 " bytes\n", g->instructions, g->computes,
                g->compute_cycles, g->loads, g->bytes_loaded, g->stores, g->bytes_stored);
    g->instructions = g->computes = g->compute_cycles = g->loads = g->bytes_loaded = g->stores = g->bytes_stored = 0;
    return g->fault ? -1 : 0;
}
