/* sim_insn.c: one instruction in the functional simulator: decoded, checked, handed to the file that does its work.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

bool vta_sim_decode(const vta_sim *s, const vta_insn *insn, vta_fields *f)
{
    const uint32_t op = (uint32_t)(insn->word[0] & 7u);
    memset(f, 0, sizeof *f);
    f->opcode = op;
    if (op > VTA_ALU)
        return false;
    for (uint32_t i = 0; i < s->n_layout[op]; i++)
        vta_field_get(&s->layout[op][i], insn->word, f);
    return true;
}

/* Neighbors that a stage does not have. */
static vta_status check_tokens(const sim_at *at)
{
    const vta_fields *f = at->f;
    enum vta_stage stage = vta_stage_of(f);
    if (stage == VTA_STAGE_LOAD && (f->pop_prev_dep || f->push_prev_dep))
        return vta_sim_fault(at, VTA_FAULT, "the load stage has no previous stage");
    if (stage == VTA_STAGE_STORE && (f->pop_next_dep || f->push_next_dep))
        return vta_sim_fault(at, VTA_FAULT, "the store stage has no next stage");
    return VTA_OK;
}

/* No hardware is faster: an operation a cycle, 64 bytes of DRAM a cycle, a cycle for each instruction. */
static uint64_t least_cycles(const vta_sim *s, const vta_fields *f)
{
    switch ((enum vta_opcode)f->opcode) {
    case VTA_LOAD:
    case VTA_STORE:
        if (f->memory_type >= VTA_MEM_COUNT)
            break;
        return 1 + (uint64_t)f->y_size * (uint64_t)f->x_size * s->g.elem_bytes[f->memory_type] / 64;
    case VTA_GEMM:
    case VTA_ALU:
        if (f->uop_end > f->uop_bgn)
            return 1 + (uint64_t)f->iter_out * (uint64_t)f->iter_in * (uint64_t)(f->uop_end - f->uop_bgn);
        break;
    case VTA_FINISH: break;
    }
    return 1;
}

/* A run that could not end in time ends before the instruction that would take it too far. */
static vta_status charge(vta_sim *s, const sim_at *at)
{
    uint64_t *work = &s->work[vta_stage_of(at->f)];
    *work += least_cycles(s, at->f);
    if (*work <= s->most_work)
        return VTA_OK;
    return vta_sim_fault(at, VTA_TIMEOUT, "its stage has come to %llu cycles at least, %llu were allowed",
                         (unsigned long long)*work, (unsigned long long)s->most_work);
}

vta_status vta_sim_execute(vta_sim *s, const vta_insn *insn, uint32_t index, vta_error *e)
{
    vta_fields f;
    sim_at at = {index, &f, e};
    if (!vta_sim_decode(s, insn, &f))
        return vta_sim_fault(&at, VTA_FAULT, "there is no operation code %d", (int)f.opcode);
    vta_status status = check_tokens(&at);
    if (status == VTA_OK)
        status = charge(s, &at);
    if (status != VTA_OK)
        return status;
    s->counters.insn_counter++;
    switch ((enum vta_opcode)f.opcode) {
    case VTA_LOAD:
    case VTA_STORE: return vta_sim_transfer(s, &at);
    case VTA_GEMM:
    case VTA_ALU: return vta_sim_compute(s, &at, insn);
    case VTA_FINISH: return VTA_OK;
    }
    return VTA_OK;
}
