/* kernel_log.c: the log of micro-ops, and which part of it is in micro-op memory. The files that end a run use it:
 * queue.c and dump.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "context.h"

void vta_kernel_evict_all(vta_context *c)
{
    vta_kernels *k = &c->kernels;
    uint32_t depth = c->geometry->depth[VTA_MEM_UOP];
    k->sram_start = k->sram_next = (k->sram_next + depth - 1) / depth * depth;
}

void vta_kernel_clear_log(vta_context *c)
{
    c->kernels.log_start = c->kernels.log_next;
}

uint32_t vta_kernel_logged(const vta_context *c)
{
    return (uint32_t)(c->kernels.log_next - c->kernels.log_start);
}
