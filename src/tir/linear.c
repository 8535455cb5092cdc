/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products: arithmetic on them, and their one written form. Terms are ordered by number of factors, size of
 * coefficient, then nesting of the loops, so that an index reads from the outermost dimension to the innermost. */
#include "tir/intrin.h"
#include "tir/linear.h"
#include "tir/build.h"

#include "tir/eval.h"

#include <string.h>

/* --- order --- */

/* Place of a variable: outer loops first, then unknown variables by age. */
static int64_t var_rank(const tir_bounds *b, const tir_var *v)
{
    for (uint32_t i = 0; i < b->vars.len; i++)
        if (b->vars.data[i].var == v)
            return (int64_t)i;
    return (int64_t)v->id + ((int64_t)1 << 40);
}

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_atoms(const tir_bounds *b, tir_expr_ref x, tir_expr_ref y)
{
    if (x == y)
        return 0;
    if (x->kind != y->kind)
        return x->kind == TIR_VAR ? -1 : y->kind == TIR_VAR ? 1 : compare_i64(x->kind, y->kind);
    if (x->op != y->op)
        return compare_i64(x->op, y->op);
    if (x->n_args != y->n_args)
        return compare_i64(x->n_args, y->n_args);
    if (x->type.dt != y->type.dt)
        return compare_i64(x->type.dt, y->type.dt);
    if (x->kind == TIR_VAR)
        return x->u.var == y->u.var ? 0 : compare_i64(var_rank(b, x->u.var), var_rank(b, y->u.var));
    if (x->kind == TIR_INT && x->u.i != y->u.i)
        return compare_i64(x->u.i, y->u.i);
    if (x->kind == TIR_FLOAT)
        return memcmp(&x->u.f, &y->u.f, sizeof x->u.f);
    if (tir_is_access(x) && x->u.buffer != y->u.buffer)
        return compare_i64(x->u.buffer->id, y->u.buffer->id);
    if (x->kind ==
        TIR_EXTERN) { /* never equal: each call counts; those of one name and equal arguments stay in order */
        int order = strcmp(x->u.name, y->u.name);
        if (order)
            return order;
    }
    if (x->kind == TIR_INSTR && x->u.row != y->u.row)
        return strcmp(x->u.row->name, y->u.row->name);
    for (uint32_t i = 0; i < x->n_args; i++) {
        int order = compare_atoms(b, x->args[i], y->args[i]);
        if (order)
            return order;
    }
    return x->kind == TIR_EXTERN ? 1 : 0;
}

static int compare_products(const tir_bounds *b, const linear_term *x, const linear_term *y)
{
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    for (uint32_t i = 0; i < x->n; i++) {
        int order = compare_atoms(b, x->atoms[i], y->atoms[i]);
        if (order)
            return order;
    }
    return 0;
}

static uint64_t magnitude(int64_t v)
{
    return v < 0 ? (uint64_t)0 - (uint64_t)v : (uint64_t)v;
}

static int compare_terms(const tir_bounds *b, const linear_term *x, const linear_term *y)
{
    if (x->n == y->n && magnitude(x->coeff) != magnitude(y->coeff))
        return magnitude(x->coeff) > magnitude(y->coeff) ? -1 : 1;
    return compare_products(b, x, y);
}

/* --- arithmetic --- */

bool linear_add_term(tir_bounds *b, linear *l, const linear_term *t)
{
    if (t->coeff == 0)
        return true;
    if (t->n == 0)
        return i64_add(l->constant, t->coeff, &l->constant);
    for (uint32_t i = 0; i < l->len; i++) {
        if (compare_products(b, &l->terms[i], t) != 0)
            continue;
        if (!i64_add(l->terms[i].coeff, t->coeff, &l->terms[i].coeff))
            return false;
        if (l->terms[i].coeff == 0)
            l->terms[i] = l->terms[--l->len];
        return true;
    }
    if (l->len == LINEAR_MAX_TERMS)
        return false;
    l->terms[l->len++] = *t;
    return true;
}

bool linear_add(tir_bounds *b, linear *l, const linear *m, int64_t factor)
{
    int64_t k;
    if (!i64_mul(m->constant, factor, &k) || !i64_add(l->constant, k, &l->constant))
        return false;
    for (uint32_t i = 0; i < m->len; i++) {
        linear_term t = m->terms[i];
        if (!i64_mul(t.coeff, factor, &t.coeff) || !linear_add_term(b, l, &t))
            return false;
    }
    return true;
}

static bool multiply_terms(const tir_bounds *b, const linear_term *x, const linear_term *y, linear_term *out)
{
    if (x->n + y->n > LINEAR_MAX_ATOMS || !i64_mul(x->coeff, y->coeff, &out->coeff))
        return false;
    out->n = 0;
    for (uint32_t i = 0, k = 0; i + k < x->n + y->n;) {
        bool left = k == y->n || (i < x->n && compare_atoms(b, x->atoms[i], y->atoms[k]) <= 0);
        out->atoms[out->n++] = left ? x->atoms[i++] : y->atoms[k++];
    }
    return true;
}

bool linear_mul(tir_bounds *b, const linear *x, const linear *y, linear *out)
{
    *out = (linear){0};
    for (uint32_t i = 0; i <= x->len; i++) {
        linear_term tx = {.coeff = x->constant};
        if (i < x->len)
            tx = x->terms[i];
        for (uint32_t k = 0; k <= y->len; k++) {
            linear_term ty = {.coeff = y->constant}, t = {0};
            if (k < y->len)
                ty = y->terms[k];
            if (tx.coeff == 0 || ty.coeff == 0)
                continue;
            if (!multiply_terms(b, &tx, &ty, &t) || !linear_add_term(b, out, &t))
                return false;
        }
    }
    return true;
}

static bool of_product(tir_bounds *b, tir_expr_ref e, linear *out)
{
    linear x, y;
    if (!linear_of(b, e->args[0], &x) || !linear_of(b, e->args[1], &y))
        return false;
    return linear_mul(b, &x, &y, out);
}

bool linear_of(tir_bounds *b, tir_expr_ref e, linear *out)
{
    linear y;
    *out = (linear){0};
    if (e->kind == TIR_INT) {
        out->constant = e->u.i;
        return true;
    }
    if (e->kind == TIR_BINOP && (e->op == TIR_ADD || e->op == TIR_SUB))
        return linear_of(b, e->args[0], out) && linear_of(b, e->args[1], &y) &&
               linear_add(b, out, &y, e->op == TIR_ADD ? 1 : -1);
    if (tir_is_binary(e, TIR_MUL) && of_product(b, e, out))
        return true;
    *out = (linear){.len = 1, .terms = {{.coeff = 1, .n = 1, .atoms = {e}}}};
    return true;
}

bool linear_diff(tir_bounds *b, tir_expr_ref x, tir_expr_ref y, linear *out)
{
    linear t;
    return linear_of(b, x, out) && linear_of(b, y, &t) && linear_add(b, out, &t, -1);
}

int64_t linear_gcd(const linear *l)
{
    uint64_t g = 0;
    for (uint32_t i = 0; i < l->len; i++) {
        uint64_t x = magnitude(l->terms[i].coeff);
        while (x) {
            uint64_t r = g % x;
            g = x;
            x = r;
        }
    }
    return g > (uint64_t)INT64_MAX ? 1 : (int64_t)g;
}

int64_t linear_common(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a < 0 ? -a : a;
}

/* --- the written form --- */

static void sort_terms(const tir_bounds *b, linear *l)
{
    for (uint32_t i = 1; i < l->len; i++) {
        linear_term t = l->terms[i];
        uint32_t k = i;
        for (; k > 0 && compare_terms(b, &t, &l->terms[k - 1]) < 0; k--)
            l->terms[k] = l->terms[k - 1];
        l->terms[k] = t;
    }
}

static tir_expr_ref build_term(tir_bounds *b, dtype dt, const linear_term *t, int64_t coeff)
{
    tir_expr_ref e = t->atoms[0];
    for (uint32_t i = 1; i < t->n; i++)
        e = tir_mul(b->c, e, t->atoms[i]);
    return tir_mul(b->c, e, tir_int(b->c, dt, coeff));
}

tir_expr_ref linear_build(tir_bounds *b, dtype dt, linear *l)
{
    compiler *c = b->c;
    tir_expr_ref e = NULL;
    int64_t k = l->constant;
    sort_terms(b, l);
    for (uint32_t i = 0; i < l->len; i++)
        if (l->terms[i].coeff > 0) {
            tir_expr_ref t = build_term(b, dt, &l->terms[i], l->terms[i].coeff);
            e = e ? tir_add(c, e, t) : t;
        }
    if (!e && k != 0 && l->len) { /* 15 - i */
        e = tir_int(c, dt, k);
        k = 0;
    }
    for (uint32_t i = 0; i < l->len; i++) {
        int64_t coeff = l->terms[i].coeff;
        if (coeff > 0)
            continue;
        bool negate = e && coeff != INT64_MIN;
        tir_expr_ref t = build_term(b, dt, &l->terms[i], negate ? -coeff : coeff);
        e = !e ? t : negate ? tir_sub(c, e, t) : tir_add(c, e, t);
    }
    if (!e)
        return tir_int(c, dt, k);
    if (k < 0 && k != INT64_MIN)
        return tir_sub(c, e, tir_int(c, dt, -k));
    return k ? tir_add(c, e, tir_int(c, dt, k)) : e;
}
