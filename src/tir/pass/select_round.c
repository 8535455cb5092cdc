/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions that are instructions of intrin_round.c: the ends of quantizations, in floats and in fixed point, and
 * arithmetic in binary64 that binary32 does as well. For processors with registers of 32 bits and no vectors, where
 * each of these steps is a call of a function, or several instructions. */
#include "tir/pass/rounded.h"
#include "tir/build.h"
#include "tir/walk.h"
#include "type/target.h"

#include <string.h>

#define EXACT (1 << 24) /* binary32 has all integers below */

static const char *row_of(const tir_selector *x, dtype dt, const tir_rounded *r)
{
    return tir_select_row(x->c, r->acc ? "scaled" : r->sure ? "rounded_number" : "rounded", dt);
}

static tir_expr_ref rounded(const tir_selector *x, tir_expr_ref e)
{
    tir_rounded r;
    if (!tir_read_rounded(x, e, &r))
        return NULL;
    const char *row = row_of(x, e->type.dt, &r);
    return r.acc ? tir_select_instr(x->c, row, 3, (tir_expr_ref[]){r.acc, r.k, r.zero})
                 : tir_select_instr(x->c, row, 2, (tir_expr_ref[]){r.v, r.zero});
}

/* The number that was made binary64 for an exact product, as binary32; NULL: it may have more bits. */
static tir_expr_ref single(const tir_selector *x, tir_expr_ref e)
{
    if (e->kind == TIR_FLOAT && (double)(float)e->u.f == e->u.f)
        return tir_float(x->c, DT_F32, e->u.f);
    if (e->kind != TIR_CAST)
        return NULL;
    tir_expr_ref from = e->args[0];
    if (from->type.dt == DT_F32)
        return from;
    if (!dtype_is_int(from->type.dt))
        return NULL;
    const tir_range r = tir_range_of(x->bounds, from);
    const bool narrow = dtype_bits(from->type.dt) <= 16 ||
                        (r.known_min && r.known_max && r.min > -EXACT && r.max < EXACT);
    return narrow ? tir_cast(x->c, DT_F32, from) : NULL;
}

/* It is a product of floats, or may be one that has a name: a compiler may make one step of that and a sum. */
static bool may_be_product(const tir_selector *x, tir_expr_ref e)
{
    e = e->kind == TIR_CAST ? e->args[0] : e;
    if (tir_is_binary(e, TIR_MUL))
        return true;
    if (!dtype_is_float(e->type.dt))
        return false;
    return (e->kind == TIR_VAR && !tir_select_number(x, e->u.var)) ||
           (e->kind == TIR_LOAD && e->u.buffer->scope == SCOPE_REG);
}

/* A product by 1 is none any more: the sum of two numbers of f32 in f64, as f32, is their sum in f32. */
static tir_expr_ref once(const tir_selector *x, tir_expr_ref e)
{
    tir_once o;
    if (!tir_read_once(e, &o) || (!o.b && (may_be_product(x, o.a) || may_be_product(x, o.s))))
        return NULL;
    tir_expr_ref a = single(x, o.a), b = o.b ? single(x, o.b) : a, s = o.s ? single(x, o.s) : a;
    if (!a || !b || !s)
        return NULL;
    if (!o.b)
        return tir_add(x->c, a, s);
    return tir_select_instr(x->c, o.s ? "fma_once" : "product_once", o.s ? 3 : 2, (tir_expr_ref[]){a, b, s});
}

/* The upper word of a product, and more. */
static bool read_high(tir_expr_ref e, tir_expr_ref *out)
{
    for (uint32_t i = 0; i < 2 && tir_is_binary(e, TIR_ADD); i++) {
        tir_expr_ref high = e->args[i];
        if (high->kind != TIR_CALL || high->op != TIR_HIGH)
            continue;
        out[0] = high->args[0];
        out[1] = high->args[1];
        out[2] = e->args[1 - i];
        return true;
    }
    return false;
}

/* The row for the upper word of a product by args[1] as a byte. */
static tir_expr_ref word_of(const tir_selector *x, tir_expr_ref const *args, dtype byte)
{
    tir_expr_ref product = args[0];
    int64_t number;
    if (!tir_is_binary(product, TIR_MUL) || tir_is_int(product->args[1], &number))
        return tir_select_instr(x->c, tir_select_row(x->c, "word", byte), 4, args);
    return tir_select_instr(x->c, tir_select_row(x->c, "word_by", byte), 5,
                            (tir_expr_ref[]){product->args[0], product->args[1], args[1], args[2], args[3]});
}

/* A load, or that in 32 bits. */
static bool reads(tir_expr_ref e)
{
    return (e->kind == TIR_CAST ? e->args[0] : e)->kind == TIR_LOAD;
}

/* The first operand of a sum or of a difference, and the second one, which is a number or a product by one, with the
 * sign that the number has in the sum. False: it is none. */
static bool read_sum_with(const tir_selector *x, tir_expr_ref e, tir_expr_ref *out_first, tir_expr_ref *out_by,
                          tir_expr_ref *out_number)
{
    int64_t number;
    const bool less = tir_is_binary(e, TIR_SUB);
    if (!less && !tir_is_binary(e, TIR_ADD))
        return false;
    tir_expr_ref second = e->args[1];
    if (out_by && !tir_is_binary(second, TIR_MUL))
        return false;
    if (!tir_is_int(out_by ? second->args[1] : second, &number) || (less && number == INT32_MIN))
        return false;
    *out_first = e->args[0];
    if (out_by)
        *out_by = second->args[0];
    *out_number = tir_int(x->c, DT_I32, less ? -number : number);
    return true;
}

/* Two numbers by known factors, and a known third one: a, its factor, b, its factor, the third. A load becomes b, which
 * the instruction takes last. */
static bool read_weighted(const tir_selector *x, tir_expr_ref e, tir_expr_ref *out)
{
    tir_expr_ref sum, first;
    int64_t factor;
    if (!read_sum_with(x, e, &sum, NULL, &out[4]) || !read_sum_with(x, sum, &first, &out[2], &out[3]) ||
        !tir_is_binary(first, TIR_MUL) || !tir_is_int(first->args[1], &factor))
        return false;
    out[0] = first->args[0];
    out[1] = first->args[1];
    if (reads(out[0])) {
        tir_expr_ref const product[] = {out[0], out[1]};
        memcpy(out, out + 2, sizeof product);
        memcpy(out + 2, product, sizeof product);
    }
    return true;
}

/* Such a sum, or that and any other number as a byte of it. */
static tir_expr_ref word(const tir_selector *x, tir_expr_ref e)
{
    static const dtype bytes[] = {DT_I8, DT_U8};
    tir_expr_ref args[6];
    int64_t right = 0;
    if (read_high(e, args))
        return tir_select_instr(x->c, "high_sum", 3, args);
    for (uint32_t i = 0; i < 2; i++) {
        tir_expr_ref shifted = tir_read_within(e, DT_I32, bytes[i]);
        if (!shifted || !tir_is_binary(shifted, TIR_SHR) || !tir_is_int(shifted->args[1], &right) || right < 0 ||
            right > 31)
            continue;
        args[3] = shifted->args[1];
        if (read_high(shifted->args[0], args))
            return word_of(x, args, bytes[i]);
        args[5] = shifted->args[1];
        if (read_weighted(x, shifted->args[0], args))
            return tir_select_instr(x->c, tir_select_row(x->c, "weighted", bytes[i]), 6, args);
        return tir_select_instr(x->c, tir_select_row(x->c, "shifted", bytes[i]), 2, shifted->args);
    }
    return NULL;
}

/* An i32 that becomes a float, by fewer additions. */
static tir_expr_ref with_factors(const tir_selector *x, tir_expr_ref e)
{
    if (e->type.dt != DT_F32 || e->args[0]->type.dt != DT_I32)
        return NULL;
    tir_expr_ref factored = tir_factored(x, e->args[0]);
    return factored != e->args[0] ? tir_cast(x->c, DT_F32, factored) : NULL;
}

static tir_expr_ref value(const tir_selector *x, tir_expr_ref e)
{
    tir_expr_ref out = NULL;
    if (e->type.lanes > 1)
        return NULL;
    if (e->kind == TIR_BINOP)
        return e->type.dt == DT_I32 ? word(x, e) : NULL;
    if (e->kind != TIR_CAST)
        return NULL;
    out = rounded(x, e);
    out = out ? out : once(x, e);
    return out ? out : with_factors(x, e);
}

/* --- two bytes at a time --- */

typedef struct reads_of {
    const tir_buffer *b;
    bool any;
} reads_of;

static void find_read(void *ctx, tir_expr_ref e)
{
    reads_of *r = ctx;
    r->any |= tir_is_access(e) && e->u.buffer == r->b;
}

/* What is stored is a byte, and a sum by a scale. */
static bool is_scaled(const tir_selector *x, const tir_stmt *store, tir_rounded *out)
{
    tir_expr_ref v = store->value;
    return v->type.dt == store->buffer->dt && v->type.lanes == 1 && tir_read_rounded(x, v, out) && out->acc;
}

/* The instruction for both, the second one `step` behind the first. */
static tir_stmt *scaled_at(const tir_selector *x, const tir_buffer *b, tir_expr_ref at, tir_expr_ref step,
                           const tir_rounded *first, const tir_rounded *second)
{
    tir_expr_ref const args[] = {tir_address(x->c, b, 1, &at), first->acc, first->k, second->acc, second->k,
                                 tir_cast(x->c, DT_I32, step), first->zero};
    return tir_evaluate(x->c, tir_select_instr(x->c, tir_select_row(x->c, "scaled_two", b->dt), 7, args));
}

/* Two bytes that are made of sums and scales share the moves between registers of floats and of integers. The second
 * one is made before the first is stored. */
static tir_stmt *two_scaled(const tir_selector *x, tir_stmt *first, tir_stmt *next)
{
    const tir_buffer *b = first->buffer;
    reads_of of_first = {b, false};
    tir_rounded r, s;
    if (next->buffer != b || b->scope == SCOPE_REG || !is_scaled(x, first, &r) || !is_scaled(x, next, &s) ||
        !tir_expr_equal(r.zero, s.zero))
        return NULL;
    tir_visit_expr(next->value, find_read, &of_first);
    if (of_first.any)
        return NULL;
    tir_expr_ref at = tir_select_flat(x, b, first->n_indices, first->indices),
                 then = tir_select_flat(x, b, next->n_indices, next->indices),
                 step = tir_simplify(x->bounds, tir_sub(x->c, then, at));
    const tir_range r_step = tir_range_of(x->bounds, step);
    if (r_step.known_max && r_step.max < 0) /* a stride of the result is not negative: the nearer one is the first */
        return scaled_at(x, b, then, tir_simplify(x->bounds, tir_sub(x->c, at, then)), &s, &r);
    return scaled_at(x, b, at, step, &r, &s);
}

#define MANY 32 /* elements, of which pairs save what a loop costs more that takes two at a time */

/* The byte that such a loop stores is rounded by an instruction of which two take less than twice the time. */
static bool rounds_many(const tir_selector *x, const tir_stmt *loop)
{
    const tir_stmt *s = loop->body;
    int64_t n = MANY;
    tir_rounded r;
    if (loop->for_kind != FOR_SERIAL || (tir_is_int(loop->extent, &n) && n < MANY))
        return false;
    if (s->kind != TIR_STORE || s->value->type.lanes > 1 || !dtype_is_byte(s->buffer->dt) ||
        s->buffer->scope == SCOPE_REG)
        return false;
    tir_bounds_push(x->bounds, loop->var, loop->min, loop->extent);
    const bool rounds = tir_read_rounded(x, s->value, &r);
    tir_bounds_pop(x->bounds);
    return rounds && tir_find_intrin(x->c, row_of(x, s->value->type.dt, &r))->by_two;
}

/* Two at a time, then the one that is left. On processors with SMLAD and floats. */
static tir_stmt *by_two(const tir_selector *x, tir_stmt *loop)
{
    compiler *c = x->c;
    const target *t = x->f->target;
    if (!t->small || (t->features & (TARGET_DSP | TARGET_MVE | TARGET_FPU)) != (TARGET_DSP | TARGET_FPU) ||
        !rounds_many(x, loop))
        return NULL;
    const dtype dt = loop->var->type.dt;
    const tir_var *pair = tir_new_var(c, "pair", loop->var->type);
    tir_expr_ref two = tir_int(c, dt, 2), next = tir_add(c, tir_varref(c, loop->var), tir_int(c, dt, 1)),
                 from = tir_add(c, loop->min, tir_mul(c, tir_varref(c, pair), two));
    tir_stmt *const both[2] = {loop->body, tir_substitute_stmt(c, loop->body, 1, &loop->var, &next)};
    tir_stmt *pairs = tir_for(c, pair, tir_int(c, dt, 0), tir_floordiv(c, loop->extent, two), FOR_SERIAL,
                              tir_let(c, loop->var, from, tir_seq(c, 2, both)));
    tir_expr_ref last = tir_sub(c, tir_add(c, loop->min, loop->extent), tir_int(c, dt, 1)),
                 odd = tir_floormod(c, loop->extent, two);
    if (tir_is_const(odd, 0))
        return pairs;
    tir_stmt *rest = tir_substitute_stmt(c, loop->body, 1, &loop->var, &last);
    if (!tir_is_const(odd, 1))
        rest = tir_if(c, tir_binary(c, TIR_NE, odd, tir_int(c, dt, 0)), rest, NULL);
    tir_stmt *const all[2] = {pairs, rest};
    return tir_seq(c, 2, all);
}

/* Roundings to bytes, products and sums that are made in binary64 and rounded to binary32, upper words of products. */
static bool is_meant(const tir_selector *x, tir_expr_ref e)
{
    (void)x;
    if (e->type.lanes > 1)
        return false;
    if (e->kind != TIR_CAST)
        return e->kind == TIR_CALL && e->op == TIR_HIGH;
    return tir_is_made_by(e, TIR_RINT) ||
           (e->type.dt == DT_F32 && e->args[0]->type.dt == DT_F64 && e->args[0]->kind == TIR_BINOP);
}

static bool fits(const struct target *t)
{
    return t && t->vector_bytes == 0 && t->address_bits == 32;
}

const tir_selection tir_selection_round = {
    .fits = fits, .loop = by_two, .stores = two_scaled, .expr = value, .meant_expr = is_meant};
