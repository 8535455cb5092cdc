/* sim_compute.c: GEMM and ALU. An instruction is checked as a whole, then its inner loops run without checks. When a
 * check fails, the operations before the one at fault run one by one, in program order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

/* An instruction, its numbers in the types that loops want. */
typedef struct compute {
    uint32_t begin, n, outer, inner; /* micro-ops [begin, begin + n) */
    uint32_t dst_outer, dst_inner, src_outer, src_inner, wgt_outer, wgt_inner;
    uint64_t operations;
    bool gemm;
} compute;

/* One operation of an instruction. */
typedef struct operation {
    uint32_t y, x, u;
    uint64_t dst, src, wgt;
} operation;

static compute read_compute(const vta_fields *f)
{
    compute c = {.begin = (uint32_t)f->uop_bgn,
                 .n = f->uop_end > f->uop_bgn ? (uint32_t)(f->uop_end - f->uop_bgn) : 0,
                 .outer = (uint32_t)f->iter_out,
                 .inner = (uint32_t)f->iter_in,
                 .dst_outer = (uint32_t)f->dst_factor_out,
                 .dst_inner = (uint32_t)f->dst_factor_in,
                 .src_outer = (uint32_t)f->src_factor_out,
                 .src_inner = (uint32_t)f->src_factor_in,
                 .wgt_outer = (uint32_t)f->wgt_factor_out,
                 .wgt_inner = (uint32_t)f->wgt_factor_in,
                 .gemm = f->opcode == VTA_GEMM};
    c.operations = (uint64_t)c.outer * c.inner * c.n;
    return c;
}

static operation operation_at(const vta_sim *s, const compute *c, uint64_t i)
{
    operation o = {
        .u = (uint32_t)(i % c->n), .x = (uint32_t)(i / c->n % c->inner), .y = (uint32_t)(i / c->n / c->inner)};
    const sim_uop *u = &s->uops[c->begin + o.u];
    o.dst = u->dst + (uint64_t)o.y * c->dst_outer + (uint64_t)o.x * c->dst_inner;
    o.src = u->src + (uint64_t)o.y * c->src_outer + (uint64_t)o.x * c->src_inner;
    o.wgt = u->wgt + (uint64_t)o.y * c->wgt_outer + (uint64_t)o.x * c->wgt_inner;
    return o;
}

/* --- inner loops on one operation or all --- */

static void run_gemm(vta_sim *s, const compute *c, const operation *one)
{
    const sim_uop u = one ? (sim_uop){(uint16_t)one->dst, (uint16_t)one->src, (uint16_t)one->wgt} : (sim_uop){0, 0, 0};
    const sim_gemm w = {.acc = s->acc,
                        .inp = s->inp,
                        .wgt = s->wgt,
                        .uops = one ? &u : s->uops + c->begin,
                        .n_uops = one ? 1 : c->n,
                        .outer = one ? 1 : c->outer,
                        .inner = one ? 1 : c->inner,
                        .dst_outer = c->dst_outer,
                        .dst_inner = c->dst_inner,
                        .src_outer = c->src_outer,
                        .src_inner = c->src_inner,
                        .wgt_outer = c->wgt_outer,
                        .wgt_inner = c->wgt_inner,
                        .batch = s->g.batch,
                        .block = s->g.block_out,
                        .quads = s->quads,
                        .wide = s->wide_wgt};
    s->kernels->gemm(&w);
}

static void run_alu(vta_sim *s, const sim_at *at, const compute *c, const operation *one)
{
    const sim_uop u = one ? (sim_uop){(uint16_t)one->dst, (uint16_t)one->src, 0} : (sim_uop){0, 0, 0};
    const sim_alu w = {.acc = s->acc,
                       .uops = one ? &u : s->uops + c->begin,
                       .n_uops = one ? 1 : c->n,
                       .outer = one ? 1 : c->outer,
                       .inner = one ? 1 : c->inner,
                       .dst_outer = c->dst_outer,
                       .dst_inner = c->dst_inner,
                       .src_outer = c->src_outer,
                       .src_inner = c->src_inner,
                       .lanes = s->acc_lanes,
                       .width = s->g.width[VTA_MEM_ACC],
                       .op = (enum vta_alu_opcode)at->f->alu_opcode,
                       .use_imm = at->f->use_imm != 0,
                       .imm = (int32_t)at->f->imm};
    s->kernels->alu(&w);
}

static void wrap_row(vta_sim *s, uint64_t dst)
{
    int32_t *acc = s->acc + (size_t)dst * s->acc_lanes;
    for (uint32_t i = 0; i < s->acc_lanes; i++)
        acc[i] = vta_sim_wrap(acc[i], s->g.width[VTA_MEM_ACC]);
}

/* Hardware's OUT memory takes what an operation wrote. */
static void write_out(vta_sim *s, uint64_t dst)
{
    for (uint32_t i = 0; i < s->acc_lanes; i++)
        s->out[(size_t)dst * s->acc_lanes + i] =
            (int16_t)vta_sim_wrap(s->acc[(size_t)dst * s->acc_lanes + i], s->g.width[VTA_MEM_OUT]);
    s->out_valid[dst] = true;
}

static void reset_row(vta_sim *s, const compute *c, const operation *o)
{
    int32_t *acc = s->acc + (size_t)o->dst * s->acc_lanes;
    if (s->out && s->caps->reset_writes) {
        run_gemm(s, c, o);
        wrap_row(s, o->dst);
        write_out(s, o->dst);
    }
    memset(acc, 0, s->acc_lanes * sizeof *acc);
}

static void run_one(vta_sim *s, const sim_at *at, const compute *c, uint64_t i)
{
    const operation o = operation_at(s, c, i);
    if (c->gemm && at->f->reset_reg) {
        reset_row(s, c, &o);
        return;
    }
    if (c->gemm) {
        run_gemm(s, c, &o);
        wrap_row(s, o.dst);
    } else {
        run_alu(s, at, c, &o);
    }
    if (s->out)
        write_out(s, o.dst);
}

static void run_all(vta_sim *s, const sim_at *at, const compute *c)
{
    if (s->out || (c->gemm && at->f->reset_reg)) {
        for (uint64_t i = 0; i < c->operations; i++)
            run_one(s, at, c, i);
        return;
    }
    if (!c->gemm) {
        run_alu(s, at, c, NULL);
        return;
    }
    run_gemm(s, c, NULL);
    for (uint64_t i = 0; s->g.width[VTA_MEM_ACC] < 32 && i < c->operations; i++)
        wrap_row(s, operation_at(s, c, i).dst);
}

/* --- checks --- */

/* "at operation 17 (outer 0, inner 2, micro-op 3): " and what is wrong there. The operations before it run. */
static vta_status fault_at(vta_sim *s, const sim_at *at, const compute *c, uint64_t i, const char *what, uint64_t value,
                           uint64_t limit)
{
    const operation o = operation_at(s, c, i);
    for (uint64_t k = 0; k < i && !s->o.skip_exec; k++)
        run_one(s, at, c, k);
    return vta_sim_fault(at, VTA_FAULT, "operation %llu (outer %u, inner %u, micro-op %u): %s %llu, %llu allowed",
                         (unsigned long long)i, o.y, o.x, c->begin + o.u, what, (unsigned long long)value,
                         (unsigned long long)limit);
}

static bool uses_src(const vta_sim *s, const sim_at *at, const compute *c)
{
    return !c->gemm || !at->f->reset_reg || (s->out && s->caps->reset_writes);
}

static bool uses_wgt(const vta_sim *s, const sim_at *at, const compute *c)
{
    return c->gemm && (!at->f->reset_reg || (s->out && s->caps->reset_writes));
}

static enum vta_mem src_memory(const compute *c)
{
    return c->gemm ? VTA_MEM_INP : VTA_MEM_ACC;
}

/* Whether all indices are in range: those of the last iteration are the greatest. */
static bool in_range(const vta_sim *s, const sim_at *at, const compute *c)
{
    operation most = {0, 0, 0, 0, 0, 0};
    for (uint32_t u = c->begin; u < c->begin + c->n; u++) {
        most.dst = s->uops[u].dst > most.dst ? s->uops[u].dst : most.dst;
        most.src = s->uops[u].src > most.src ? s->uops[u].src : most.src;
        most.wgt = s->uops[u].wgt > most.wgt ? s->uops[u].wgt : most.wgt;
    }
    const uint64_t y = c->outer - 1, x = c->inner - 1;
    return most.dst + y * c->dst_outer + x * c->dst_inner < s->g.depth[VTA_MEM_ACC] &&
           (!uses_src(s, at, c) || most.src + y * c->src_outer + x * c->src_inner < s->g.depth[src_memory(c)]) &&
           (!uses_wgt(s, at, c) || most.wgt + y * c->wgt_outer + x * c->wgt_inner < s->g.depth[VTA_MEM_WGT]);
}

static vta_status check_range(vta_sim *s, const sim_at *at, const compute *c)
{
    if (in_range(s, at, c))
        return VTA_OK;
    for (uint64_t i = 0; i < c->operations; i++) {
        const operation o = operation_at(s, c, i);
        if (o.dst >= s->g.depth[VTA_MEM_ACC])
            return fault_at(s, at, c, i, "accumulator", o.dst, s->g.depth[VTA_MEM_ACC] - 1);
        if (uses_src(s, at, c) && o.src >= s->g.depth[src_memory(c)])
            return fault_at(s, at, c, i, c->gemm ? "input" : "source", o.src, s->g.depth[src_memory(c)] - 1);
        if (uses_wgt(s, at, c) && o.wgt >= s->g.depth[VTA_MEM_WGT])
            return fault_at(s, at, c, i, "weight", o.wgt, s->g.depth[VTA_MEM_WGT] - 1);
    }
    return VTA_OK;
}

/* Walks through an instruction: the least distance at which an accumulator is written again (0: never), and the first
 * operation that does so within s->o.acc_distance. */
static uint32_t walk_distance(vta_sim *s, const compute *c, uint64_t *bad)
{
    const uint64_t base = s->operations;
    uint32_t least = 0;
    for (uint64_t i = 0; i < c->operations && (least != 1 || s->o.acc_distance); i++) {
        const uint64_t dst = operation_at(s, c, i).dst, last = s->last_write[dst];
        if (last > base && (least == 0 || base + i + 1 - last < least))
            least = base + i + 1 - last > UINT32_MAX ? UINT32_MAX : (uint32_t)(base + i + 1 - last);
        if (least && s->o.acc_distance && least <= s->o.acc_distance) {
            *bad = i;
            break;
        }
        s->last_write[dst] = base + i + 1;
    }
    s->operations += c->operations;
    return least;
}

static vta_status check_distance(vta_sim *s, const sim_at *at, const vta_insn *insn, const compute *c)
{
    /* Word 0 without opcode and tokens, the factors of dst: all that the distance follows from, besides micro-ops. */
    const uint64_t word0 = insn->word[0] >> 7, factors = (uint64_t)c->dst_outer << 32 | c->dst_inner;
    sim_distance *memo = &s->distances[(word0 ^ word0 >> 17 ^ word0 >> 31 ^ factors ^ factors >> 32) % SIM_DISTANCES];
    uint64_t bad = UINT64_MAX;
    if (s->least_distance == 1 && !s->o.acc_distance)
        return VTA_OK;
    if (s->o.acc_distance || memo->word0 != word0 || memo->factors != factors ||
        memo->generation != s->uop_generation) {
        uint32_t distance = walk_distance(s, c, &bad);
        *memo = (sim_distance){word0, factors, s->uop_generation, distance};
    }
    if (memo->distance && (s->least_distance == 0 || memo->distance < s->least_distance))
        s->least_distance = memo->distance;
    if (bad == UINT64_MAX)
        return VTA_OK;
    return fault_at(s, at, c, bad, "distance to the last write of this accumulator", memo->distance,
                    (uint64_t)s->o.acc_distance + 1);
}

/* Shift counts out of accumulators, for profiles whose hardware takes few: operation by operation, as each may make the
 * next one's counts. */
static vta_status run_tensor_shift(vta_sim *s, const sim_at *at, const compute *c)
{
    for (uint64_t i = 0; i < c->operations; i++) {
        const operation o = operation_at(s, c, i);
        for (uint32_t k = 0; k < s->acc_lanes; k++) {
            int32_t count = s->acc[(size_t)o.src * s->acc_lanes + k];
            if (count < s->caps->tensor_least || count > s->caps->tensor_most)
                return vta_sim_fault(at, VTA_FAULT,
                                     "operation %llu, lane %u: this hardware cannot shift by %d, only by %d to %d",
                                     (unsigned long long)i, k, count, s->caps->tensor_least, s->caps->tensor_most);
        }
        run_one(s, at, c, i);
    }
    return VTA_OK;
}

static vta_status check_caps(const vta_sim *s, const sim_at *at, const compute *c)
{
    const sim_caps *p = s->caps;
    const vta_fields *f = at->f;
    if (!c->gemm && f->alu_opcode > VTA_ALU_MUL)
        return vta_sim_fault(at, VTA_FAULT, "there is no ALU operation %d", (int)f->alu_opcode);
    if (!p->strict)
        return VTA_OK;
    if (c->operations == 0 && !p->empty_range)
        return vta_sim_fault(at, VTA_FAULT, "no operations: this hardware would not stop");
    if (!c->gemm && f->alu_opcode == VTA_ALU_MUL && !p->mul)
        return vta_sim_fault(at, VTA_FAULT, "this hardware does not multiply in its ALU");
    if (!c->gemm && s->g.batch > 1 && !p->alu_batch)
        return vta_sim_fault(at, VTA_FAULT, "this hardware's ALU works on the first of %u rows alone", s->g.batch);
    if (!c->gemm && f->use_imm && vta_sim_wrap(f->imm, s->g.width[VTA_MEM_ACC]) != f->imm)
        return vta_sim_fault(at, VTA_FAULT, "the immediate %d does not fit accumulators of %u bits: hardware wraps it",
                             (int)f->imm, s->g.width[VTA_MEM_ACC]);
    if (!c->gemm && f->alu_opcode == VTA_ALU_SHR && f->use_imm && (f->imm < p->shift_least || f->imm > p->shift_most))
        return vta_sim_fault(at, VTA_FAULT, "this hardware cannot shift by %d, only by %d to %d", (int)f->imm,
                             p->shift_least, p->shift_most);
    return VTA_OK;
}

vta_status vta_sim_compute(vta_sim *s, const sim_at *at, const vta_insn *insn)
{
    const vta_fields *f = at->f;
    const compute c = read_compute(f);
    const uint32_t uops = s->caps->uop_depth && s->caps->uop_depth < s->g.depth[VTA_MEM_UOP] ? s->caps->uop_depth
                                                                                             : s->g.depth[VTA_MEM_UOP];
    vta_status status = check_caps(s, at, &c);
    if (status != VTA_OK)
        return status;
    if (!c.gemm)
        s->counters.alu_counter += c.operations;
    else if (f->reset_reg)
        s->counters.gemm_reset_counter += c.operations;
    else
        s->counters.gemm_counter += c.operations;
    if (c.operations == 0)
        return VTA_OK;
    if (s->o.most_operations && c.operations > s->o.most_operations)
        return vta_sim_fault(at, VTA_TIMEOUT, "%llu operations, %llu allowed", (unsigned long long)c.operations,
                             (unsigned long long)s->o.most_operations);
    if (f->uop_end > uops)
        return vta_sim_fault(at, VTA_FAULT, "micro-ops %u to %lld of a memory of %u", c.begin, (long long)f->uop_end,
                             uops);
    if ((status = check_range(s, at, &c)) != VTA_OK || (status = check_distance(s, at, insn, &c)) != VTA_OK)
        return status;
    if (s->o.skip_exec)
        return VTA_OK;
    if (s->caps->strict && !c.gemm && f->alu_opcode == VTA_ALU_SHR && !f->use_imm)
        return run_tensor_shift(s, at, &c);
    run_all(s, at, &c);
    return VTA_OK;
}
