/* cycle_sections.c: what the parts of a timed stream take, as the layers of a model: cycles, work and waiting of each
 * stage, bytes of DRAM, and which unit they are bound by.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cycle.h"

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* When all instructions before `limit` have ended. */
static uint64_t end_before(const vta_cycle_report *r, uint32_t limit)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < r->n_spans; i++)
        if (r->spans[i].stage != VTA_STAGE_NONE && r->spans[i].insn < limit)
            end = max64(end, r->spans[i].end);
    return end;
}

static void add_insn(const vta_geometry *g, const vta_insn *insn, vta_section_cycles *out)
{
    vta_fields f;
    vta_decode(g, insn, &f);
    out->insns++;
    const uint64_t uops = f.uop_end > f.uop_bgn ? (uint64_t)(f.uop_end - f.uop_bgn) : 0;
    const uint64_t operations = uops * (uint64_t)f.iter_out * (uint64_t)f.iter_in;
    if (f.opcode == VTA_GEMM && !f.reset_reg)
        out->gemm += operations;
    else if (f.opcode == VTA_ALU)
        out->alu += operations;
    else if ((f.opcode == VTA_LOAD || f.opcode == VTA_STORE) && f.memory_type < VTA_MEM_COUNT)
        out->bytes[f.memory_type] += (uint64_t)f.x_size * (uint64_t)f.y_size * g->elem_bytes[f.memory_type];
}

/* Times in which two stages at least are at work, each having one span at a time. Spans come in order of start. */
typedef struct overlap {
    uint64_t ends[VTA_STAGE_COUNT], counted, sum;
} overlap;

static void add_overlap(overlap *o, const vta_span *s)
{
    for (int i = VTA_STAGE_LOAD; i < VTA_STAGE_COUNT; i++) {
        const uint64_t end = o->ends[i] < s->end ? o->ends[i] : s->end, from = max64(s->start, o->counted);
        if (i == s->stage || end <= from)
            continue;
        o->sum += end - from;
        o->counted = end;
    }
    o->ends[s->stage] = s->end;
}

/* A wait may have begun while what stands before the section still ran: only its part in the section is counted. */
static uint64_t waited_in(const vta_span *s, const vta_section_cycles *in)
{
    const uint64_t from = max64(s->start - s->waited, in->start), to = s->start < in->end ? s->start : in->end;
    return to > from ? to - from : 0;
}

/* Loads of micro-ops and accumulators go through the port of reads, too, on behalf of compute. */
static void find_bound(vta_section_cycles *out)
{
    const uint64_t all[VTA_STAGE_COUNT] = {0, out->busy[VTA_STAGE_LOAD] + out->compute_loads,
                                           out->busy[VTA_STAGE_COMPUTE] - out->compute_loads,
                                           out->busy[VTA_STAGE_STORE]};
    out->bound = VTA_STAGE_COMPUTE;
    for (int i = VTA_STAGE_LOAD; i < VTA_STAGE_COUNT; i++)
        if (all[i] > all[out->bound])
            out->bound = (enum vta_stage)i;
    out->least = all[out->bound];
}

void vta_cycle_section(const vta_geometry *g, const vta_cycle_report *r, const vta_insn *insns, uint32_t section,
                       vta_section_cycles *out)
{
    const bool last = section + 1 >= r->n_sections;
    const uint32_t first = section == 0 ? 0 : r->sections[section].first;
    const uint32_t limit = last ? UINT32_MAX : r->sections[section + 1].first;
    overlap both = {.sum = 0};
    memset(out, 0, sizeof *out);
    out->start = section == 0 ? 0 : end_before(r, first);
    out->end = last ? r->cycles : end_before(r, limit);
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const vta_span *s = &r->spans[i];
        if (s->stage == VTA_STAGE_NONE)
            continue;
        out->wait_token[s->queue] += waited_in(s, out);
        if (s->insn < first || s->insn >= limit)
            continue;
        add_insn(g, &insns[s->insn], out);
        add_overlap(&both, s);
        out->busy[s->stage] += s->work;
        out->wait_port[s->stage] += s->end - s->start - s->work;
        if (s->stage == VTA_STAGE_COMPUTE && s->beats > 0)
            out->compute_loads += s->work;
    }
    out->two = both.sum;
    find_bound(out);
}
