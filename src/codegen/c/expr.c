/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of the loop IR as C text. Scalars become plain C; vectors become calls of small helpers (f32x8_add),
 * which are vector instructions or, without vector extensions, loops over the lanes in the same order. */
#include "codegen/c/family.h"
#include "tir/intrin.h"
#include "tir/build.h"
#include "tir/lane.h"
#include "tir/facts.h"
#include "tir/walk.h"
#include "type/target.h"

#include <math.h>
#include <string.h>

const char *expr_name(const c_emit *e, const void *key)
{
    const c_scope_name *n = names_find(e, key);
    return n ? n->text : "undefined"; /* the verifier has seen to it that this cannot happen */
}

static bool var_is_index(const c_emit *e, const tir_var *v)
{
    const c_scope_name *n = names_find(e, v);
    return n && n->is_index;
}

/* Made of loop variables and constants only: cannot overflow by the IR's contract, so it is written plainly. */
bool expr_is_index(const c_emit *e, tir_expr_ref x)
{
    if (x->kind == TIR_VAR)
        return var_is_index(e, x->u.var);
    if (x->kind != TIR_INT && x->kind != TIR_BINOP && x->kind != TIR_SELECT && x->kind != TIR_NOT &&
        x->kind != TIR_RAMP && x->kind != TIR_BROADCAST && x->kind != TIR_CAST)
        return false;
    if (x->type.dt != DT_I64 && x->type.dt != DT_I32 && x->type.dt != DT_BOOL)
        return false;
    if (x->kind == TIR_CAST && dtype_bits(x->type.dt) < dtype_bits(x->args[0]->type.dt))
        return false;
    for (uint32_t i = 0; i < x->n_args; i++)
        if (!expr_is_index(e, x->args[i]))
            return false;
    return true;
}

static c_text call(c_emit *e, c_need need, const char *fn, const char *args)
{
    needs_add_vector(e->needs, need);
    return (c_text){arena_printf(e->tmp, "%s(%s)", fn, args), PREC_PRIMARY};
}

/* One row-major or strided index out of several. */
tir_expr_ref expr_flat(c_emit *e, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices)
{
    tir_expr_ref at = NULL;
    if (n == 1 && b->rank != 1)
        return indices[0]; /* flattened: counts from the buffer's address, offset included */
    if (b->strides) {
        for (uint32_t i = 0; i < n; i++) {
            tir_expr_ref term = tir_mul(e->c, indices[i], b->strides[i]);
            at = at ? tir_add(e->c, at, term) : term;
        }
    } else {
        for (uint32_t i = 0; i < n; i++)
            at = at ? tir_add(e->c, tir_mul(e->c, at, b->shape[i]), indices[i]) : indices[i];
    }
    if (!at)
        at = tir_i64(e->c, 0);
    return b->offset ? tir_add(e->c, at, b->offset) : at;
}

const char *expr_register(c_emit *e, const tir_buffer *b, tir_expr_ref index)
{
    for (uint32_t i = 0; i < e->registers.len; i++) {
        const c_registers *r = &e->registers.data[i];
        int64_t at = 0;
        if (r->buffer != b || r->lanes == 0)
            continue;
        if (index->kind == TIR_RAMP)
            index = index->args[0];
        if (!tir_is_int(index, &at))
            return NULL;
        return arena_printf(e->tmp, "%s_%lld", expr_name(e, b), (long long)at / r->lanes);
    }
    return NULL;
}

static c_text vector_load(c_emit *e, tir_expr_ref x, tir_expr_ref at)
{
    const tir_buffer *b = x->u.buffer;
    const char *v = c_vector_name(e, b->dt, x->type.lanes), *name = expr_name(e, b);
    c_need need = {.dt = b->dt, .lanes = x->type.lanes};
    if (at->kind == TIR_RAMP) {
        c_text base = expr_text(e, at->args[0]);
        if (tir_is_const(at->args[1], 1)) {
            need.kind = NEED_VLOAD;
            return call(e, need, arena_printf(e->tmp, "%s_load", v), arena_printf(e->tmp, "%s + %s", name, base.s));
        }
        need.kind = NEED_VGATHER;
        return call(e, need, arena_printf(e->tmp, "%s_gather", v),
                    arena_printf(e->tmp, "%s + %s, %s", name, base.s, expr_text(e, at->args[1]).s));
    }
    c_vector_name(e, at->type.dt, at->type.lanes);
    need.kind = NEED_VINDEX;
    need.to = at->type.dt;
    return call(e, need, arena_printf(e->tmp, "%s_index_%s", v, dtype_name(at->type.dt)),
                arena_printf(e->tmp, "%s, %s", name, expr_text(e, at).s));
}

/* A row of two tiles of sums in registers; NULL: it is something else. */
static const char *row_of_tiles(c_emit *e, tir_expr_ref x)
{
    int64_t tile;
    uint32_t row;
    const tir_buffer *b = x->u.buffer;
    if (!tir_constant_row_of_tiles(e->bounds, e->c, x, &tile, &row) ||
        !expr_register(e, b, tir_i64(e->c, tile * TIR_TILE_LANES)))
        return NULL;
    const char *v = c_vector_name(e, b->dt, x->type.lanes), *name = expr_name(e, b);
    needs_add_lanes_kernel(e->needs, "kernel/lanes/tile_rows.inc", b->dt, DT_NONE, x->type.lanes);
    return arena_printf(e->tmp, "%s_row%u(%s_%lld, %s_%lld)", v, row, name, (long long)tile, name,
                        (long long)tile + 1);
}

static c_text load(c_emit *e, tir_expr_ref x)
{
    const tir_buffer *b = x->u.buffer;
    tir_expr_ref at = expr_flat(e, b, x->n_args, x->args);
    const char *reg = expr_register(e, b, at);
    if (!reg && at->type.lanes > 1 && b->scope == SCOPE_REG)
        reg = row_of_tiles(e, x);
    if (reg)
        return (c_text){reg, PREC_PRIMARY};
    if (x->type.lanes > 1)
        return vector_load(e, x, at);
    const char *lvalue = arena_printf(e->tmp, "%s[%s]", expr_name(e, b), expr_text(e, at).s);
    return (c_text){scalar_load(e->tmp, e->needs, b->dt, lvalue), PREC_PRIMARY};
}

static c_text address(c_emit *e, tir_expr_ref x)
{
    const char *name = expr_name(e, x->u.buffer);
    if (x->n_args == 0)
        return (c_text){name, PREC_PRIMARY};
    tir_expr_ref at = expr_flat(e, x->u.buffer, x->n_args, x->args);
    return (c_text){arena_printf(e->tmp, "&%s[%s]", name, expr_text(e, at).s), PREC_LOW};
}

/* floordiv and floormod of numbers that are known not to be negative are C's own. */
static bool plain_division(c_emit *e, tir_expr_ref x, c_text a, c_text b, c_text *out)
{
    if (x->op != TIR_FLOORDIV && x->op != TIR_FLOORMOD && x->op != TIR_DIV && x->op != TIR_MOD)
        return false;
    int64_t divisor = 0;
    if (dtype_is_float(x->type.dt) || !tir_is_int(x->args[1], &divisor) || divisor <= 0)
        return false;
    if (x->op == TIR_FLOORDIV || x->op == TIR_FLOORMOD) {
        tir_range r = {0};
        if (dtype_is_signed(x->type.dt) && expr_is_index(e, x->args[0]))
            r = tir_range_of(e->bounds, x->args[0]);
        if (dtype_is_signed(x->type.dt) && !(r.known_min && r.min >= 0))
            return false;
    }
    const char *sign = x->op == TIR_FLOORDIV || x->op == TIR_DIV ? "/" : "%";
    const char *text =
        arena_printf(e->tmp, "%s %s %s", scalar_at(e->tmp, a, PREC_MUL), sign, scalar_at(e->tmp, b, PREC_PRIMARY));
    *out = (c_text){text, PREC_MUL};
    if (dtype_bits(x->type.dt) < 32)
        *out = (c_text){arena_printf(e->tmp, "(%s)(%s)", scalar_type(x->type.dt), text), PREC_PRIMARY};
    return true;
}

static c_text vector_op(c_emit *e, tir_expr_ref x, tir_op op)
{
    dtype dt = x->args[0]->type.dt;
    uint32_t lanes = x->type.lanes;
    c_vector_name(e, x->type.dt, lanes);
    const char *v = c_vector_name(e, dt, lanes), *args = "";
    for (uint32_t i = 0; i < x->n_args; i++)
        args = arena_printf(e->tmp, "%s%s%s", args, i ? ", " : "", expr_text(e, x->args[i]).s);
    return call(e, (c_need){.kind = NEED_VOP, .op = op, .dt = dt, .to = x->type.dt, .lanes = lanes},
                arena_printf(e->tmp, "%s_%s", v, needs_op_name(op)), args);
}

/* One of two by how they compare. */
static c_text vector_extreme(c_emit *e, tir_expr_ref x)
{
    const bool bound = x->op == TIR_AT_LEAST || x->op == TIR_AT_MOST;
    const tir_op op = x->op == TIR_ABOVE || x->op == TIR_AT_LEAST ? TIR_MAX : TIR_MIN;
    const char *v = c_vector_name(e, x->type.dt, x->type.lanes);
    if (x->type.dt == DT_F64 && x->args[1]->kind != TIR_BROADCAST) { /* helpers take one bound for all lanes */
        static const tir_op tests[] = {TIR_GT, TIR_LT, TIR_LE, TIR_GE};
        const tir_op test = tests[x->op - TIR_ABOVE];
        const char *p = expr_text(e, x->args[0]).s, *q = expr_text(e, x->args[1]).s;
        return call(e, (c_need){.kind = NEED_VCHOOSE, .op = test, .dt = DT_F64, .lanes = x->type.lanes},
                    arena_printf(e->tmp, "%s_choose_%s", v, needs_op_name(test)),
                    arena_printf(e->tmp, "%s, %s, %s, %s", p, q, bound ? q : p, bound ? p : q));
    }
    c_need need = {.kind = bound ? NEED_VBOUND : NEED_VEXTREME, .op = op, .dt = x->type.dt, .lanes = x->type.lanes};
    const char *b = bound ? expr_text(e, x->args[1]).s : NULL, *a = expr_text(e, x->args[0]).s;
    b = bound ? b : expr_text(e, x->args[1]).s; /* numbers first: the order of helpers follows */
    return call(e, need, arena_printf(e->tmp, "%s_%s", v, tir_op_text(x->op)), arena_printf(e->tmp, "%s, %s", a, b));
}

static c_text binary(c_emit *e, tir_expr_ref x)
{
    c_text out;
    if (x->type.lanes > 1)
        return vector_op(e, x, x->op);
    c_text a = expr_text(e, x->args[0]), b = expr_text(e, x->args[1]);
    if (plain_division(e, x, a, b, &out))
        return out;
    return scalar_binary(e->tmp, e->needs, x->op, x->args[0]->type.dt, a, b, !expr_is_index(e, x));
}

static c_text vector_fixed(c_emit *e, tir_expr_ref x)
{
    const char *v = c_vector_name(e, x->type.dt, x->type.lanes), *name = tir_op_text(x->op);
    needs_add_lanes_kernel(e->needs,
                           x->op == TIR_HIGH      ? "kernel/lanes/high_product.inc"
                           : x->op == TIR_DOUBLED ? "kernel/lanes/doubled_product.inc"
                                                  : "kernel/lanes/rounded_shift.inc",
                           x->type.dt, DT_NONE, x->type.lanes);
    const char *a = expr_text(e, x->args[0]).s, *b = expr_text(e, x->args[1]).s;
    return (c_text){arena_printf(e->tmp, "%s_%s(%s, %s)", v, name, a, b), PREC_PRIMARY};
}

/* Of a vector one number. */
static c_text any_sign(c_emit *e, tir_expr_ref x)
{
    const uint32_t lanes = x->args[0]->type.lanes;
    const char *v = c_vector_name(e, DT_U32, lanes), *a = expr_text(e, x->args[0]).s;
    needs_add_lanes_kernel(e->needs, "kernel/lanes/any_sign.inc", DT_U32, DT_NONE, lanes);
    return (c_text){arena_printf(e->tmp, "%s_any_sign(%s)", v, a), PREC_PRIMARY};
}

static c_text intrinsic(c_emit *e, tir_expr_ref x)
{
    if (x->op == TIR_ANY_SIGN && x->args[0]->type.lanes > 1)
        return any_sign(e, x);
    if (x->type.lanes > 1 && tir_op_is_fixed(x->op))
        return vector_fixed(e, x);
    if (x->type.lanes > 1 && tir_op_is_extreme(x->op))
        return vector_extreme(e, x);
    if (x->type.lanes > 1)
        return vector_op(e, x, x->op);
    c_text args[3] = {{"", PREC_PRIMARY}, {"", PREC_PRIMARY}, {"", PREC_PRIMARY}};
    for (uint32_t i = 0; i < x->n_args && i < 3; i++)
        args[i] = expr_text(e, x->args[i]);
    return scalar_call(e->tmp, e->needs, x->op, x->args[0]->type.dt, args);
}

static c_text cast(c_emit *e, tir_expr_ref x)
{
    dtype from = x->args[0]->type.dt, to = x->type.dt;
    c_text a = expr_text(e, x->args[0]);
    if (x->type.lanes == 1)
        return scalar_cast(e->tmp, e->needs, from, to, a);
    const char *v = c_vector_name(e, from, x->type.lanes), *into = c_vector_name(e, to, x->type.lanes);
    return call(e, (c_need){.kind = NEED_VCAST, .dt = from, .to = to, .lanes = x->type.lanes},
                arena_printf(e->tmp, "%s_to_%s", v, into), a.s);
}

/* A choice by a comparison of the same type needs no vector of booleans. */
static bool choice_by_comparison(c_emit *e, tir_expr_ref x, c_text a, c_text b, c_text *out)
{
    tir_expr_ref cond = x->args[0];
    dtype dt = x->type.dt;
    uint32_t lanes = x->type.lanes;
    if (lanes == 1 || cond->kind != TIR_BINOP || !tir_op_is_compare(cond->op) || cond->type.lanes != lanes ||
        cond->args[0]->type.dt != dt || (dt != DT_F32 && dt != DT_F64))
        return false;
    const char *v = c_vector_name(e, dt, lanes);
    *out = call(
        e, (c_need){.kind = NEED_VCHOOSE, .op = cond->op, .dt = dt, .lanes = lanes},
        arena_printf(e->tmp, "%s_choose_%s", v, needs_op_name(cond->op)),
        arena_printf(e->tmp, "%s, %s, %s, %s", expr_text(e, cond->args[0]).s, expr_text(e, cond->args[1]).s, a.s, b.s));
    return true;
}

static c_text choice(c_emit *e, tir_expr_ref x)
{
    c_text a = expr_text(e, x->args[1]), b = expr_text(e, x->args[2]), chosen;
    if (choice_by_comparison(e, x, a, b, &chosen))
        return chosen;
    if (x->type.lanes > 1 && x->args[0]->type.lanes > 1) {
        const char *v = c_vector_name(e, x->type.dt, x->type.lanes);
        c_vector_name(e, DT_BOOL, x->type.lanes);
        return call(e, (c_need){.kind = NEED_VSELECT, .dt = x->type.dt, .lanes = x->type.lanes},
                    arena_printf(e->tmp, "%s_select", v),
                    arena_printf(e->tmp, "%s, %s, %s", expr_text(e, x->args[0]).s, a.s, b.s));
    }
    const char *text = arena_printf(e->tmp, "(%s) ? %s : %s", expr_condition(e, x->args[0]),
                                    scalar_at(e->tmp, a, PREC_ADD), scalar_at(e->tmp, b, PREC_ADD));
    if (x->type.lanes == 1 && dtype_bits(x->type.dt) < 32 && !dtype_is_float(x->type.dt) && x->type.dt != DT_BOOL)
        return (c_text){arena_printf(e->tmp, "(%s)(%s)", scalar_type(x->type.dt), text), PREC_PRIMARY};
    return (c_text){text, PREC_LOW};
}

static c_text instr(c_emit *e, tir_expr_ref x)
{
    const c_family *f = e->needs->family;
    c_text out;
    if (f && f->instr(e, x, &out))
        return out;
    return (c_text){instr_text(e, x, expr_operand, NULL), PREC_PRIMARY};
}

static c_text external(c_emit *e, tir_expr_ref x)
{
    const char *args = "";
    const tir_library *own = tir_library_find(x->u.name);
    if (own)
        needs_add_kernel(e->needs, own->file);
    for (uint32_t i = 0; i < x->n_args; i++)
        args = arena_printf(e->tmp, "%s%s%s", args, i ? ", " : "", expr_text(e, x->args[i]).s);
    return (c_text){arena_printf(e->tmp, "%s(%s)", x->u.name, args), PREC_PRIMARY};
}

static c_text negation(c_emit *e, tir_expr_ref x)
{
    if (x->type.lanes == 1)
        return (c_text){arena_printf(e->tmp, "!%s", scalar_at(e->tmp, expr_text(e, x->args[0]), PREC_PRIMARY)),
                        PREC_PRIMARY};
    const char *v = c_vector_name(e, DT_BOOL, x->type.lanes);
    return call(e, (c_need){.kind = NEED_VNOT, .dt = DT_BOOL, .lanes = x->type.lanes},
                arena_printf(e->tmp, "%s_not", v), expr_text(e, x->args[0]).s);
}

static c_text lanes_of(c_emit *e, tir_expr_ref x)
{
    const char *v = c_vector_name(e, x->type.dt, x->type.lanes), *first = expr_text(e, x->args[0]).s;
    c_need need = {.kind = NEED_VSPLAT, .dt = x->type.dt, .lanes = x->type.lanes};
    if (x->kind == TIR_BROADCAST)
        return call(e, need, arena_printf(e->tmp, "%s_splat", v), first);
    need.kind = NEED_VRAMP;
    return call(e, need, arena_printf(e->tmp, "%s_ramp", v),
                arena_printf(e->tmp, "%s, %s", first, expr_text(e, x->args[1]).s));
}

/* A constant or a scalar where the type says vector: constructors may leave the broadcast out. */
static c_text literal(c_emit *e, tir_expr_ref x)
{
    c_text t = x->kind == TIR_INT ? scalar_int(e->tmp, x->type.dt, x->u.i) : scalar_float(e->tmp, x->type.dt, x->u.f);
    if (x->type.lanes == 1)
        return t;
    const char *v = c_vector_name(e, x->type.dt, x->type.lanes);
    return call(e, (c_need){.kind = NEED_VSPLAT, .dt = x->type.dt, .lanes = x->type.lanes},
                arena_printf(e->tmp, "%s_splat", v), t.s);
}

/* Of an instruction. What is read through a pointer is a run of elements in memory, as the verifier knows. */
const char *expr_operand(c_emit *e, tir_expr_ref x, bool pointer)
{
    if (!pointer)
        return expr_text(e, x).s;
    tir_expr_ref at = expr_flat(e, x->u.buffer, x->n_args, x->args);
    const char *first = expr_text(e, at->kind == TIR_RAMP ? at->args[0] : at).s;
    return arena_printf(e->tmp, "%s + %s", expr_name(e, x->u.buffer), first);
}

c_text expr_text(c_emit *e, tir_expr_ref x)
{
    switch (x->kind) {
    case TIR_INT:
    case TIR_FLOAT: return literal(e, x);
    case TIR_VAR: return (c_text){expr_name(e, x->u.var), PREC_PRIMARY};
    case TIR_BINOP: return binary(e, x);
    case TIR_NOT: return negation(e, x);
    case TIR_CAST: return cast(e, x);
    case TIR_SELECT: return choice(e, x);
    case TIR_LOAD: return load(e, x);
    case TIR_ADDRESS: return address(e, x);
    case TIR_CALL: return intrinsic(e, x);
    case TIR_EXTERN: return external(e, x);
    case TIR_INSTR: return instr(e, x);
    case TIR_RAMP:
    case TIR_BROADCAST: return lanes_of(e, x);
    }
    return (c_text){"0", PREC_PRIMARY};
}

const char *expr_condition(c_emit *e, tir_expr_ref x)
{
    c_text t = expr_text(e, x);
    return x->kind == TIR_LOAD || x->kind == TIR_VAR ? arena_printf(e->tmp, "%s != 0", t.s) : t.s;
}
