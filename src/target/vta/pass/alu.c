/* SPDX-License-Identifier: Apache-2.0 */
/* InjectALUIntrin: a loop nest under pragma_alu that updates accumulators becomes the recording of a kernel: at most
 * two hardware loops around one micro-op, more loops as micro-ops. The ALU computes dst = dst op src, or dst op
 * immediate: what is not of that form, operands included in the wrong order, is refused. A condition limits the loops;
 * a constant, where a reduction begins, is made by a reset of the GEMM core and a few operations. */
#include "tir/build.h"
#include "target/vta/pass/vta.h"
#include "tir/text.h"
#include "tir/walk.h"

#include <inttypes.h>

#define MAX_LOOPS 8u

typedef struct alu_loop {
    const tir_var *var;
    int64_t extent, dst, src;  /* steps of the two operands: scalars, then accumulator elements */
    tir_expr_ref first, count; /* iterations that compute, where a condition says so; NULL: all */
} alu_loop;

typedef struct alu {
    alu_loop loops[MAX_LOOPS]; /* outermost first */
    uint32_t n;
    const char *stage; /* whose nest it is, for messages: buffers are shared */
    const tir_buffer *b;
    tir_expr_ref cond; /* what depends on none of the loops; NULL: nothing */
    linear dst, src;
    int64_t opcode, use_imm, imm;
    bool is_constant; /* imm is the value */
} alu;

static bool same_element(tir_expr_ref e, tir_stmt *s)
{
    return e->kind == TIR_LOAD && e->u.buffer == s->buffer && e->n_args == 1 &&
           tir_expr_equal(e->args[0], s->indices[0]);
}

static int64_t opcode_of(tir_op op)
{
    switch ((int)op) {
    case TIR_MIN: return VTA_ALU_MIN;
    case TIR_MAX: return VTA_ALU_MAX;
    case TIR_ADD: return VTA_ALU_ADD;
    case TIR_SHR:
    case TIR_SHL: return VTA_ALU_SHR;
    case TIR_MUL: return VTA_ALU_MUL;
    }
    return -1;
}

static bool too_much(vta_pass *p, const alu *k, tir_stmt *s)
{
    writer w;
    writer_init(&w, &p->c->mem);
    tir_print_expr(&w, s->value);
    (void)vta_error(p, "an 'alu' nest has one operation, and the value for '%s' has more: %.200s", k->stage, w.data);
    diag_hint(&p->c->diags, "write a stage for each operation, every one with its pragma \"alu\"");
    return false;
}

/* dst = dst op constant. */
static bool immediate(vta_pass *p, alu *k, tir_stmt *s, tir_op op, tir_expr_ref operand, int64_t imm, bool swapped)
{
    const char *name = k->stage;
    bool shift = op == TIR_SHR || op == TIR_SHL;
    if (swapped && shift)
        return vta_error(p, "the ALU cannot shift the constant %" PRId64
                         " by '%s': the constant has to be on the right",
                         imm, name);
    if (operand->kind == TIR_BINOP)
        return too_much(p, k, s);
    if (!same_element(operand, s))
        return vta_error(p,
                         "the ALU computes in place: '%s' is not computed from its own element and a constant "
                         "(EarlyRewrite gives stages one buffer)",
                         name);
    if (shift && (imm < 0 || imm >= (int64_t)p->g.width[VTA_MEM_ACC]))
        return vta_error(p, "'%s' is shifted by %" PRId64 " of its %u bits", name, imm, p->g.width[VTA_MEM_ACC]);
    k->use_imm = 1;
    k->imm = op == TIR_SHL ? -imm : imm;
    if (k->imm < INT16_MIN || k->imm > INT16_MAX)
        return vta_error(p, "the constant %" PRId64 " for '%s' does not fit the ALU's 16-bit immediate", imm, name);
    return vta_linear(p, s->indices[0], &k->src);
}

/* dst = dst op src; the order of operands counts for shifts. */
static bool two_operands(vta_pass *p, alu *k, tir_stmt *s, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    const char *name = k->stage;
    bool shift = op == TIR_SHR || op == TIR_SHL, left = same_element(a, s), right = same_element(b, s);
    if (op == TIR_SHL)
        return vta_error(p, "the ALU shifts left by constants only ('%s'): a vector of counts shifts right", name);
    if (!left && right && shift)
        return vta_error(p,
                         "the ALU cannot compute '%s' as another value shifted by itself: the shifted value is the "
                         "result's own",
                         name);
    if (a->kind == TIR_BINOP || b->kind == TIR_BINOP)
        return too_much(p, k, s);
    if (!left && !right)
        return vta_error(p, "the ALU computes in place: neither operand of '%s' is its own element", name);
    tir_expr_ref src = left ? b : a;
    if (src->kind != TIR_LOAD || src->u.buffer != s->buffer || src->n_args != 1)
        return vta_error(p,
                         "the ALU's operands lie in one accumulator buffer: '%s' is computed from something else "
                         "(run EarlyRewrite first)",
                         name);
    return vta_linear(p, src->args[0], &k->src);
}

static bool read_value(vta_pass *p, alu *k, tir_stmt *s)
{
    tir_expr_ref e = s->value;
    int64_t imm;
    if (tir_is_int(e, &k->imm)) {
        k->is_constant = true;
        return vta_linear(p, s->indices[0], &k->src);
    }
    if (same_element(e, s)) { /* nothing to compute: a shift by 0 also writes the output scratchpad */
        k->opcode = VTA_ALU_SHR;
        k->use_imm = 1;
        return vta_linear(p, s->indices[0], &k->src);
    }
    k->opcode = e->kind == TIR_BINOP ? opcode_of(e->op) : -1;
    if (k->opcode < 0)
        return vta_error(p,
                         "the ALU has no operation for what is stored to '%s': it has min, max, +, *, >>, and << by a "
                         "constant, one at a time",
                         k->stage);
    tir_expr_ref a = e->args[0], b = e->args[1];
    if (tir_is_int(b, &imm))
        return immediate(p, k, s, e->op, a, imm, false);
    if (tir_is_int(a, &imm))
        return immediate(p, k, s, e->op, b, imm, true);
    return two_operands(p, k, s, e->op, a, b);
}

/* The loops around the store, and the condition that it stands under, as ranges of them. */
static bool read_loops(vta_pass *p, alu *k, tir_stmt **at)
{
    vta_range ranges[MAX_LOOPS];
    tir_stmt *s = *at;
    k->cond = tir_int(p->c, DT_BOOL, 1);
    for (; s->kind == TIR_FOR; s = s->body) {
        alu_loop l = {.var = s->var};
        if (k->n == MAX_LOOPS || !tir_is_int(s->extent, &l.extent) || l.extent < 1 || !tir_is_const(s->min, 0))
            return vta_error(p,
                             "'%s': an 'alu' loop '%s' does not run from 0 to a constant, or there are more than %u "
                             "loops",
                             k->stage, s->var->name, MAX_LOOPS);
        ranges[k->n] = (vta_range){.var = s->var};
        k->loops[k->n++] = l;
    }
    for (; s->kind == TIR_IF && !s->orelse; s = s->body)
        if (!vta_add_condition(p, ranges, k->n, tir_simplify(p->bounds, s->cond), &k->cond))
            return vta_error(p, "'%s': the condition of an 'alu' nest is not a range of each of its loops", k->stage);
    for (uint32_t i = 0; i < k->n; i++) {
        dtype dt = ranges[i].var->type.dt;
        tir_expr_ref zero = tir_int(p->c, dt, 0), last = tir_int(p->c, dt, k->loops[i].extent - 1);
        tir_expr_ref least = ranges[i].least ? tir_max(p->c, ranges[i].least, zero) : zero;
        tir_expr_ref most = ranges[i].most ? tir_min(p->c, ranges[i].most, last) : last;
        tir_expr_ref count = tir_add(p->c, tir_sub(p->c, most, least), tir_int(p->c, dt, 1));
        least = tir_simplify(p->bounds, least);
        count = tir_simplify(p->bounds, count);
        if (tir_is_const(least, 0) && tir_is_const(count, k->loops[i].extent))
            continue;
        k->loops[i].first = least;
        k->loops[i].count = count;
    }
    *at = s;
    return true;
}

static bool read_nest(vta_pass *p, alu *k, tir_stmt *s)
{
    enum vta_mem m;
    if (!read_loops(p, k, &s))
        return false;
    if (s->kind != TIR_STORE || s->n_indices != 1) {
        (void)vta_error(p, "'%s': an 'alu' nest is more than one store with one index (run flatten first)", k->stage);
        if (s->kind == TIR_SEQ)
            diag_hint(&p->c->diags, "in a reduction, put the reduction's loops outside with reorder, and the pragma on "
                                    "the first loop inside of them");
        return false;
    }
    if (!vta_scratchpad(s->buffer, &m) || m != VTA_MEM_ACC || !vta_holds(p, m, s->buffer->dt))
        return vta_error(p, "the ALU computes in %s on int%u, '%s' is something else", vta_scope_name(VTA_MEM_ACC),
                         p->g.width[VTA_MEM_ACC], k->stage);
    k->b = s->buffer;
    if (!read_value(p, k, s))
        return false;
    bool ok = vta_linear(p, s->indices[0], &k->dst);
    for (uint32_t i = 0; ok && i < k->n; i++)
        ok = vta_take_var(&k->dst, k->loops[i].var, &k->loops[i].dst) &&
             vta_take_var(&k->src, k->loops[i].var, &k->loops[i].src);
    return ok || vta_error(p, "'%s': an 'alu' nest has an index that is not linear in its loops", k->stage);
}

/* The innermost loops are the lanes of an element, in both operands; what is left counts elements. */
static bool take_lanes(vta_pass *p, alu *k)
{
    int64_t lanes = p->g.lanes[VTA_MEM_ACC], done = 1;
    while (done < lanes && k->n) {
        alu_loop *l = &k->loops[k->n - 1];
        int64_t left = lanes / done;
        bool whole = l->extent <= left;
        if (l->count || l->dst != done || l->src != done || (whole ? left % l->extent : l->extent % left) != 0)
            break;
        done *= whole ? l->extent : left;
        if (whole) {
            k->n--;
            continue;
        }
        l->extent /= left;
        l->dst = l->src = lanes;
    }
    bool ok = done == lanes && vta_divide(&k->dst, lanes) && vta_divide(&k->src, lanes);
    for (uint32_t i = 0; ok && i < k->n; i++) {
        ok = k->loops[i].dst % lanes == 0 && k->loops[i].src % lanes == 0;
        k->loops[i].dst /= lanes;
        k->loops[i].src /= lanes;
    }
    return ok ||
           vta_error(p, "an 'alu' nest over '%s' does not cover whole elements of %" PRId64 " values", k->stage, lanes);
}

static void merge_loops(alu *k)
{
    for (uint32_t i = k->n; i > 1; i--) {
        alu_loop *outer = &k->loops[i - 2], *inner = &k->loops[i - 1];
        bool limited = outer->count || inner->count;
        if (limited || outer->dst != inner->dst * inner->extent || outer->src != inner->src * inner->extent)
            continue;
        inner->extent *= outer->extent;
        for (uint32_t j = i - 2; j + 1 < k->n; j++)
            k->loops[j] = k->loops[j + 1];
        k->n--;
    }
}

/* &b[(at + steps)*lanes]: LowerDeviceStorageAccessInfo makes an index of it. */
static tir_expr_ref operand(vta_pass *p, const alu *k, linear *at, bool is_dst)
{
    tir_expr_ref e = vta_build(p, at);
    for (uint32_t i = 0; i < k->n; i++) {
        const alu_loop *l = &k->loops[i];
        tir_expr_ref step = vta_int(p, is_dst ? l->dst : l->src);
        if (l->first)
            e = tir_add(p->c, e, tir_mul(p->c, tir_cast(p->c, p->f->index_type, l->first), step));
        if (i >= 2)
            e = tir_add(p->c, e, tir_mul(p->c, tir_cast(p->c, p->f->index_type, tir_varref(p->c, l->var)), step));
    }
    e = tir_simplify(p->bounds, tir_mul(p->c, e, vta_int(p, p->g.lanes[VTA_MEM_ACC])));
    return tir_address(p->c, k->b, 1, &e);
}

static tir_stmt *call(vta_pass *p, const char *name, uint32_t n, tir_expr_ref const *args)
{
    return tir_evaluate(p->c, tir_extern(p->c, name, tir_scalar(DT_I32), n, args));
}

static tir_expr_ref count_of(vta_pass *p, const alu_loop *l)
{
    return l->count ? tir_cast(p->c, p->f->index_type, l->count) : vta_int(p, l->extent);
}

/* One kernel: the accumulators that k names get an operation of the ALU, or are reset. */
static tir_stmt *write_kernel(vta_pass *p, alu *k, bool reset)
{
    uint32_t hardware = k->n < 2 ? k->n : 2, at = 0;
    tir_stmt *all[5];
    tir_expr_ref zero = vta_int(p, 0);
    tir_expr_ref push[VTA_UOP_ARGS] = {[VTA_UOP_MODE] = vta_int(p, reset ? VTA_MODE_GEMM : VTA_MODE_ALU),
                                       [VTA_UOP_RESET] = vta_int(p, reset),
                                       [VTA_UOP_DST] = operand(p, k, &k->dst, true),
                                       [VTA_UOP_SRC] = reset ? zero : operand(p, k, &k->src, false),
                                       [VTA_UOP_WGT] = zero,
                                       [VTA_UOP_OPCODE] = vta_int(p, k->opcode),
                                       [VTA_UOP_USE_IMM] = vta_int(p, k->use_imm),
                                       [VTA_UOP_IMM] = vta_int(p, k->imm)};
    tir_stmt *body = call(p, "tir.vta.uop_push", VTA_UOP_ARGS, push);
    for (uint32_t i = k->n; i > 2; i--) {
        const alu_loop *l = &k->loops[i - 1];
        dtype dt = l->var->type.dt;
        tir_expr_ref count = l->count ? l->count : tir_int(p->c, dt, l->extent);
        body = tir_for(p->c, l->var, tir_int(p->c, dt, 0), count, FOR_SERIAL, body);
    }
    for (uint32_t i = 0; i < hardware; i++) {
        const alu_loop *l = &k->loops[i];
        tir_expr_ref args[] = {count_of(p, l), vta_int(p, l->dst), reset ? zero : vta_int(p, l->src), zero};
        all[at++] = call(p, "VTAUopLoopBegin", 4, args);
    }
    all[at++] = body;
    for (uint32_t i = 0; i < hardware; i++)
        all[at++] = call(p, "VTAUopLoopEnd", 0, NULL);
    return tir_seq(p->c, at, all);
}

/* A constant: 0 by a reset, then what 16 bits hold is added; of larger ones the upper half first, moved up by a shift
 * that every device can make. */
static tir_stmt *write_constant(vta_pass *p, alu *k)
{
    int64_t value = k->imm, low = (int16_t)value, high = (value - low) >> 16, n = 0;
    tir_stmt *all[6];
    struct {
        int64_t opcode, imm;
    } steps[5];
    if (high) {
        if (high > INT16_MAX)
            steps[n].opcode = VTA_ALU_ADD, steps[n++].imm = 1;
        steps[n].opcode = VTA_ALU_ADD, steps[n++].imm = high > INT16_MAX ? INT16_MAX : high;
        steps[n].opcode = VTA_ALU_SHR, steps[n++].imm = -16;
    }
    if (low)
        steps[n].opcode = VTA_ALU_ADD, steps[n++].imm = low;
    k->opcode = k->use_imm = k->imm = 0;
    all[0] = vta_uop_scope(p, VTA_PUSH_GEMM, write_kernel(p, k, true));
    for (int64_t i = 0; i < n; i++) {
        k->opcode = steps[i].opcode;
        k->use_imm = 1;
        k->imm = steps[i].imm;
        all[i + 1] = vta_uop_scope(p, VTA_PUSH_ALU, write_kernel(p, k, false));
    }
    return tir_seq(p->c, (uint32_t)n + 1, all);
}

/* A kernel without iterations is none: what may be empty stands under a condition. */
static tir_expr_ref condition_of(vta_pass *p, const alu *k)
{
    tir_expr_ref cond = k->cond;
    for (uint32_t i = 0; i < k->n; i++) {
        tir_expr_ref n = k->loops[i].count;
        tir_range r = n ? tir_range_of(p->bounds, n) : (tir_range){.known_min = true, .min = 1};
        int64_t min, max;
        if ((r.known_min && r.min > 0) || (vta_exact_range(p, n, &min, &max) && min > 0))
            continue;
        cond = tir_and(p->c, cond, tir_binary(p->c, TIR_GT, n, tir_int(p->c, n->type.dt, 0)));
    }
    return tir_simplify(p->bounds, cond);
}

static bool holds_scope(tir_stmt *s)
{
    for (; s->kind == TIR_IF; s = s->body)
        ;
    return s->kind == TIR_SEQ ? s->n_stmts > 0 && holds_scope(s->stmts[0]) : vta_is_attr(s, VTA_UOP_SCOPE);
}

/* What is one kernel stays inside the scope that AnnotateALUCoProcScope made; several, and those under a condition,
 * have scopes of their own instead. */
static tir_stmt *inject_marked(vta_pass *p, tir_stmt *s)
{
    alu k = {0};
    if (vta_is_attr(s, VTA_UOP_SCOPE) && holds_scope(s->body))
        return s->body;
    if (!vta_is_attr(s, "pragma_alu"))
        return s;
    k.stage = vta_stage_name(s);
    if (!read_nest(p, &k, s->body) || !take_lanes(p, &k))
        return s;
    merge_loops(&k);
    tir_expr_ref cond = condition_of(p, &k);
    bool always = tir_is_const(cond, 1);
    if (k.is_constant)
        s = write_constant(p, &k);
    else if (always)
        return write_kernel(p, &k, false);
    else
        s = vta_uop_scope(p, VTA_PUSH_ALU, write_kernel(p, &k, false));
    return always ? s : tir_if(p->c, cond, s, NULL);
}

bool tir_pass_inject_alu_intrin(compiler *c, tir_func *f)
{
    return vta_pass_run(c, f, inject_marked);
}
