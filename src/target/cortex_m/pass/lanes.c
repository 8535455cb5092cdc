/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions and stores of four numbers that are Helium's instructions (../lanes.c): compilers take conversions, and
 * what the loop IR says in binary64, apart into lanes. */
#include "target/cortex_m/units.h"
#include "tir/build.h"
#include "tir/pass/rounded.h"

#include <math.h>

#define LANES 4

/* --- by a number, which an instruction has in a register of the other kind --- */

/* The number that all lanes are; minus that, if it is known. NULL: there is none. */
static tir_expr_ref same(compiler *c, tir_expr_ref e, bool negative)
{
    int64_t number;
    if (e->kind != TIR_BROADCAST || e->type.dt != DT_I32)
        return NULL;
    if (tir_is_int(e->args[0], &number))
        return tir_int(c, DT_I32, negative ? -number : number);
    return negative ? NULL : e->args[0];
}

/* Bytes that are read, perhaps less a number. What a rounding made has its scale and zero point in registers of that
 * kind, which the loops around it need, too. */
static bool is_read(tir_expr_ref e)
{
    while (e->kind == TIR_CAST || ((tir_is_binary(e, TIR_ADD) || tir_is_binary(e, TIR_SUB)) &&
                                   e->args[1]->kind == TIR_BROADCAST))
        e = e->args[0];
    return e->kind == TIR_LOAD && dtype_is_byte(e->type.dt);
}

/* Sums of i32 that become floats; e, where no operand is the same in all lanes. Of others compilers add up the numbers
 * of several terms. */
static tir_expr_ref plus(compiler *c, tir_expr_ref e)
{
    for (uint32_t i = 2; (tir_is_binary(e, TIR_ADD) || tir_is_binary(e, TIR_SUB)) && i-- > 0;) {
        tir_expr_ref k = i == 0 && e->op == TIR_SUB ? NULL : same(c, e->args[i], e->op == TIR_SUB);
        if (k && is_read(e->args[1 - i]))
            return tir_select_instr(c, "lanes_plus", 2, (tir_expr_ref[]){e->args[1 - i], k});
    }
    return e;
}

/* Products of f32. */
static tir_expr_ref by_number(compiler *c, tir_expr_ref e)
{
    for (uint32_t i = 2; tir_is_binary(e, TIR_MUL) && i-- > 0;)
        if (e->args[i]->kind == TIR_BROADCAST && is_read(e->args[1 - i]))
            return tir_select_instr(c, "lanes_times", 2, (tir_expr_ref[]){e->args[1 - i], e->args[i]->args[0]});
    return NULL;
}

/* i32 as floats. */
static tir_expr_ref floats_of(compiler *c, tir_expr_ref e)
{
    tir_expr_ref a = plus(c, e);
    return tir_select_instr(c, "lanes_of_i32", 1, &a);
}

/* --- rounded once --- */

/* A number that was made binary64 for an exact product and is the same in all lanes, as binary32; NULL: it is not. */
static tir_expr_ref number_of(compiler *c, tir_expr_ref e)
{
    tir_expr_ref one = e->kind == TIR_BROADCAST ? e->args[0] : e;
    if (one->kind == TIR_FLOAT && (double)(float)one->u.f == one->u.f)
        return tir_float(c, DT_F32, one->u.f);
    return e->kind == TIR_BROADCAST && one->kind == TIR_CAST && one->args[0]->type.dt == DT_F32 ? one->args[0] : NULL;
}

/* The same of lanes. NULL: they may have more bits. */
static tir_expr_ref single(compiler *c, tir_expr_ref e)
{
    tir_expr_ref number = number_of(c, e), from = e->kind == TIR_CAST ? e->args[0] : NULL;
    if (number)
        return tir_broadcast(c, number, LANES);
    if (!from || e->type.lanes != LANES)
        return NULL;
    if (from->type.dt == DT_F32)
        return from;
    return from->type.dt == DT_I32 && tir_is_short(from) ? floats_of(c, from) : NULL;
}

static tir_expr_ref once(compiler *c, tir_expr_ref e)
{
    tir_once o;
    if (!tir_read_once(e, &o) || !o.b)
        return NULL;
    tir_expr_ref k = number_of(c, o.b);
    if (!k && o.s && number_of(c, o.a)) { /* either may be the number */
        k = number_of(c, o.a);
        o = (tir_once){o.b, o.a, o.s};
    }
    tir_expr_ref a = single(c, o.a), b = single(c, o.b), s = o.s ? single(c, o.s) : a;
    if (!a || !b || !s)
        return NULL;
    return tir_select_instr(c, !o.s ? "lanes_product" : k ? "lanes_fma_by" : "lanes_fma", o.s ? 3 : 2,
                            (tir_expr_ref[]){a, o.s && k ? k : b, s});
}

/* --- bytes --- */

/* Where neighbors begin in memory; NULL: they are something else, or in registers. */
static tir_expr_ref run_at(const tir_selector *x, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices)
{
    tir_expr_ref at = tir_select_flat(x, b, n, indices);
    return b->scope != SCOPE_REG && at->kind == TIR_RAMP && tir_is_const(at->args[1], 1)
               ? tir_address(x->c, b, 1, &at->args[0])
               : NULL;
}

/* --- quotients --- */

#define NEAR_ONE 0x1p60 /* far enough from what binary32 does not have */

/* Quotients by a literal, perhaps with a number behind them, that are rounded to bytes: then those that are too small
 * for the steps of the row do not matter. Divisions are instructions of one lane. e, where it is something else. */
static tir_expr_ref quotient(compiler *c, tir_expr_ref e)
{
    if (tir_is_binary(e, TIR_ADD) && e->args[1]->kind == TIR_BROADCAST)
        return tir_add(c, quotient(c, e->args[0]), e->args[1]);
    tir_expr_ref by = tir_is_binary(e, TIR_DIV) && e->args[1]->kind == TIR_BROADCAST ? e->args[1]->args[0] : NULL;
    if (!by || by->kind != TIR_FLOAT || !(fabs(by->u.f) < NEAR_ONE && fabs(by->u.f) > 1 / NEAR_ONE))
        return e;
    const float reciprocal = 1 / (float)by->u.f;
    return tir_select_instr(c, "lanes_quotient", 3,
                            (tir_expr_ref[]){e->args[0], tir_float(c, DT_F32, -by->u.f),
                                             tir_float(c, DT_F32, (double)reciprocal)});
}

/* A rounding's arguments behind `first`, which may be the place of its result, and the name of its row. */
static const char *rounded_args(const tir_selector *x, tir_expr_ref e, const char *form, uint32_t *n,
                                tir_expr_ref *args)
{
    tir_rounded r;
    if (!tir_read_rounded(x, e, &r))
        return NULL;
    args[(*n)++] = r.acc ? r.acc : r.sure ? quotient(x->c, r.v) : r.v;
    if (r.acc)
        args[(*n)++] = r.k;
    args[(*n)++] = r.zero;
    const char *how = r.acc ? "scaled" : r.sure ? "rounded_number" : "rounded";
    return tir_select_row(x->c, arena_printf(&x->c->mem, "%s_%s", form, how), e->type.dt);
}

/* --- fixed point --- */

static bool is_fixed(tir_expr_ref e, tir_op op)
{
    return e->kind == TIR_CALL && e->op == op;
}

/* Minus n, which is a number or what 0 is less by; NULL: it would have to be computed. */
static tir_expr_ref minus(compiler *c, tir_expr_ref n)
{
    int64_t number;
    if (tir_is_int(n, &number))
        return tir_broadcast(c, tir_int(c, DT_I32, -number), LANES);
    return tir_is_binary(n, TIR_SUB) && tir_is_int(n->args[0], &number) && number == 0 ? n->args[1] : NULL;
}

/* Sums by multipliers and shifts, rounded behind both. */
static bool twice_args(const tir_selector *x, tir_expr_ref e, dtype to, tir_expr_ref *args)
{
    tir_expr_ref y = tir_read_within(e, DT_I32, to);
    int64_t zero = 0;
    for (uint32_t i = 0; y && tir_is_binary(y, TIR_ADD) && i < 2; i++) {
        if (!tir_is_int(y->args[i], &zero))
            continue;
        y = y->args[1 - i];
        break;
    }
    if (!y || !is_fixed(y, TIR_SHIFTED) || !is_fixed(y->args[0], TIR_DOUBLED))
        return false;
    args[0] = y->args[0]->args[0];
    args[1] = y->args[0]->args[1];
    args[2] = minus(x->c, y->args[1]);
    args[3] = tir_int(x->c, DT_I32, zero);
    return args[2] != NULL;
}

/* A product by such a number. */
static bool read_weight(compiler *c, tir_expr_ref e, tir_expr_ref *args)
{
    for (uint32_t i = 0; tir_is_binary(e, TIR_MUL) && i < 2; i++) {
        args[0] = e->args[i];
        args[1] = same(c, e->args[1 - i], false);
        if (args[1])
            return true;
    }
    return false;
}

/* Puts the parts of a sum into args, of five: two products by numbers, and a number. */
static bool read_parts(compiler *c, tir_expr_ref e, bool negative, uint32_t *products, tir_expr_ref *args)
{
    tir_expr_ref number = same(c, e, negative);
    if (number && !args[4]) {
        args[4] = number;
        return true;
    }
    if (negative)
        return false;
    if (tir_is_binary(e, TIR_ADD) || tir_is_binary(e, TIR_SUB))
        return read_parts(c, e->args[0], false, products, args) &&
               read_parts(c, e->args[1], e->op == TIR_SUB, products, args);
    return *products < 2 && read_weight(c, e, args + 2 * (*products)++);
}

static tir_expr_ref weighted(compiler *c, tir_expr_ref e)
{
    tir_expr_ref args[5] = {NULL};
    uint32_t products = 0;
    if (!read_parts(c, e, false, &products, args) || products < 2 || !args[4])
        return NULL;
    return tir_select_instr(c, "lanes_weighted", 5, args);
}

/* i32 in fixed point. */
static tir_expr_ref fixed_value(const tir_selector *x, tir_expr_ref e)
{
    static const dtype bytes[] = {DT_I8, DT_U8};
    tir_expr_ref args[4];
    for (uint32_t i = 0; i < 2; i++)
        if (twice_args(x, e, bytes[i], args))
            return tir_select_instr(x->c, tir_select_row(x->c, "lanes_twice", bytes[i]), 4, args);
    return weighted(x->c, e);
}

/* --- bytes as numbers --- */

/* Bytes as i32: read, or rounded. */
static tir_expr_ref numbers_of(const tir_selector *x, tir_expr_ref e)
{
    tir_expr_ref args[4];
    uint32_t n = 0;
    if (e->kind == TIR_LOAD) {
        args[0] = run_at(x, e->u.buffer, e->n_args, e->args);
        return args[0] ? tir_select_instr(x->c, tir_select_row(x->c, "lanes_of", e->type.dt), 1, args) : NULL;
    }
    const char *row = rounded_args(x, e, "lanes", &n, args);
    return row ? tir_select_instr(x->c, row, n, args) : NULL;
}

static tir_expr_ref value(const tir_selector *x, tir_expr_ref e)
{
    tir_expr_ref from = e->kind == TIR_CAST ? e->args[0] : NULL, numbers;
    if (e->kind == TIR_BINOP && e->type.dt == DT_I32 && e->type.lanes == LANES)
        return fixed_value(x, e);
    if (e->kind == TIR_BINOP && e->type.dt == DT_F32 && e->type.lanes == LANES)
        return by_number(x->c, e);
    if (!from || e->type.lanes != LANES || from->type.lanes != LANES)
        return NULL;
    if (e->type.dt == DT_F32 && from->type.dt == DT_F64)
        return once(x->c, e);
    if (e->type.dt == DT_F32 && from->type.dt == DT_I32)
        return floats_of(x->c, from);
    if ((e->type.dt != DT_I32 && e->type.dt != DT_F32) || !dtype_is_byte(from->type.dt))
        return NULL;
    numbers = numbers_of(x, from);
    return numbers && e->type.dt == DT_F32 ? floats_of(x->c, numbers) : numbers;
}

/* --- stores --- */

/* Numbers that are shifted by the same number of bits. */
static bool shifted_args(const tir_selector *x, tir_expr_ref e, tir_expr_ref *args)
{
    tir_expr_ref y = tir_read_within(e->args[0], DT_I32, e->type.dt);
    int64_t right;
    if (!y || !tir_is_binary(y, TIR_SHR))
        return false;
    args[0] = y->args[0];
    args[1] = same(x->c, y->args[1], false);
    return args[1] && tir_is_int(args[1], &right) && right >= 0 && right < 32;
}

static tir_stmt *stored(const tir_selector *x, tir_stmt *s)
{
    tir_expr_ref e = s->value, args[5], to;
    uint32_t n = 1;
    if (e->kind != TIR_CAST || e->type.lanes != LANES || !dtype_is_byte(e->type.dt))
        return NULL;
    to = run_at(x, s->buffer, s->n_indices, s->indices);
    if (!to)
        return NULL;
    const char *row = NULL;
    if (twice_args(x, e->args[0], e->type.dt, args + 1)) {
        row = tir_select_row(x->c, "put_twice", e->type.dt);
        n = 5;
    } else if (shifted_args(x, e, args + 1)) {
        row = tir_select_row(x->c, "put_shifted", e->type.dt);
        n = 3;
    } else {
        row = rounded_args(x, e, "put", &n, args);
    }
    args[0] = to;
    return row ? tir_evaluate(x->c, tir_select_instr(x->c, row, n, args)) : NULL;
}

/* Lanes that are bytes in memory or in a rounding, integers that become floats, and what is computed in binary64. */
static bool is_meant(const tir_selector *x, tir_expr_ref e)
{
    (void)x;
    if (e->kind != TIR_CAST || e->type.lanes != LANES || e->args[0]->kind == TIR_INSTR)
        return false;
    const dtype from = e->args[0]->type.dt, to = e->type.dt;
    return tir_is_made_by(e, TIR_RINT) || tir_is_made_by(e, TIR_SHIFTED) ||
           (dtype_is_byte(from) && !dtype_is_byte(to)) || (to == DT_F32 && (from == DT_F64 || from == DT_I32));
}

const tir_selection tir_selection_lanes = {
    .fits = cortex_m_has_vectors, .store = stored, .expr = value, .meant_expr = is_meant};
