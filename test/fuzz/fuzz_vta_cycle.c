/* fuzz_vta_cycle.c: streams of any words through the cycle model and its timelines: no crash, no hang, and what each
 * stage did adds up. The first eight bytes choose options, then come instructions.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "vta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 8 };

static void check(const vta_cycle_report *r)
{
    for (int i = 0; i < VTA_STAGE_COUNT; i++) {
        const vta_stage_cycles *s = &r->stage[i];
        if (s->busy + s->wait_token + s->wait_dram + s->wait_fetch + s->idle != r->cycles)
            abort();
    }
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const vta_span *s = &r->spans[i];
        if (s->ready > s->start || s->start > s->end || s->end > r->cycles)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD || size > HEAD + 512 * VTA_INSN_BYTES)
        return 0;
    const vta_cycle_options o = {.profile = (vta_cycle_profile)(data[0] & 1),
                                 .bus_bits = data[1] & 7 ? 8u << (data[1] & 7) : 0,
                                 .latency = data[2],
                                 .burst_beats = data[3] & 7 ? 1u << (data[3] & 7) : 0,
                                 .command_cycles = data[4],
                                 .insn_queue = data[5],
                                 .token_queue = data[6],
                                 .gemm_interval = data[7] & 7};
    vta_config c = vta_config_default();
    vta_geometry g;
    vta_error e;
    vta_cycle_report r;
    static vta_insn insns[512];
    static char text[4096];
    uint32_t count = (uint32_t)((size - HEAD) / VTA_INSN_BYTES);
    memcpy(insns, data + HEAD, count * sizeof *insns);
    if (vta_config_check(&c, &g, &e) != VTA_OK)
        abort();
    if (vta_cycle_time(&c, &o, insns, count, &r, &e) != VTA_OK)
        return 0;
    check(&r);
    vta_cycle_chrome_trace(&g, &r, insns, text, sizeof text);
    vta_cycle_svg(&g, &r, insns, text, sizeof text);
    vta_cycle_release(&r);
    return 0;
}
