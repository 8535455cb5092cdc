/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on dims, in normal form (dim_expr.h). An operation opens its operands into sums of terms, works on the
 * terms, and closes the result again; whatever int64 or the limits cannot hold becomes an unknown dim. */
#include "type/dim_expr.h"

#include <stdlib.h>
#include <string.h>

/* coeff * atoms[0] * ... ; no atoms: the constant */
typedef struct term {
    int64_t coeff;
    uint32_t n;
    dim atoms[DIM_MAX_DEGREE];
} term;

typedef struct poly {
    uint32_t n;
    term terms[DIM_MAX_TERMS]; /* in order, coefficients not 0 */
} poly;

/* More atoms first, so that the constant is last; then by structure. An admissible monomial order: division ends. */
static int compare_atoms(const term *a, const term *b)
{
    if (a->n != b->n)
        return a->n > b->n ? -1 : 1;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->atoms[i] != b->atoms[i])
            return dim_compare(a->atoms[i], b->atoms[i]);
    return 0;
}

/* --- opening and closing --- */

static void open_term(dim d, term *out)
{
    const dim *factors = d->kind == DIM_MUL ? d->ops : &d;
    uint32_t n = d->kind == DIM_MUL ? d->n_ops : 1;
    out->coeff = 1;
    out->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (factors[i]->kind == DIM_CONST)
            out->coeff = factors[i]->value;
        else
            out->atoms[out->n++] = factors[i];
    }
}

static void open_dim(dim d, poly *out)
{
    out->n = 0;
    if (dim_is(d, 0))
        return;
    if (d->kind != DIM_ADD) {
        open_term(d, &out->terms[out->n++]);
        return;
    }
    for (uint32_t i = 0; i < d->n_ops; i++)
        open_term(d->ops[i], &out->terms[out->n++]);
}

static uint64_t poly_size(const poly *p)
{
    uint64_t size = 1;
    for (uint32_t i = 0; i < p->n; i++) {
        size += 2;
        for (uint32_t k = 0; k < p->terms[i].n; k++)
            size += p->terms[i].atoms[k]->size;
    }
    return size;
}

static dim close_term(compiler *c, const term *t)
{
    dim factors[DIM_MAX_DEGREE + 1];
    uint32_t n = 0;
    if (t->coeff != 1 || t->n == 0)
        factors[n++] = dim_const(c, t->coeff);
    for (uint32_t i = 0; i < t->n; i++)
        factors[n++] = t->atoms[i];
    return n == 1 ? factors[0] : dim_make(c, DIM_MUL, n, factors);
}

/* false: larger than a dim may be */
static bool close_poly(compiler *c, const poly *p, dim *out)
{
    dim terms[DIM_MAX_TERMS];
    if (poly_size(p) > DIM_MAX_SIZE)
        return false;
    for (uint32_t i = 0; i < p->n; i++)
        terms[i] = close_term(c, &p->terms[i]);
    *out = p->n == 0 ? dim_const(c, 0) : p->n == 1 ? terms[0] : dim_make(c, DIM_ADD, p->n, terms);
    return true;
}

/* --- sums and products of terms --- */

/* p += t */
static bool add_term(poly *p, const term *t)
{
    uint32_t at = 0;
    int order = 1;
    while (at < p->n && (order = compare_atoms(&p->terms[at], t)) < 0)
        at++;
    if (t->coeff == 0)
        return true;
    if (at < p->n && order == 0) {
        if (!i64_add(p->terms[at].coeff, t->coeff, &p->terms[at].coeff))
            return false;
        if (p->terms[at].coeff == 0) {
            p->n--;
            memmove(&p->terms[at], &p->terms[at + 1], (p->n - at) * sizeof *t);
        }
        return true;
    }
    if (p->n == DIM_MAX_TERMS)
        return false;
    memmove(&p->terms[at + 1], &p->terms[at], (p->n - at) * sizeof *t);
    p->terms[at] = *t;
    p->n++;
    return true;
}

static bool multiply_terms(const term *a, const term *b, term *out)
{
    uint32_t i = 0, k = 0;
    if (a->n + b->n > DIM_MAX_DEGREE || !i64_mul(a->coeff, b->coeff, &out->coeff))
        return false;
    for (out->n = 0; i < a->n || k < b->n; out->n++) { /* merge: atoms stay in order */
        bool left = k == b->n || (i < a->n && dim_compare(a->atoms[i], b->atoms[k]) <= 0);
        out->atoms[out->n] = left ? a->atoms[i++] : b->atoms[k++];
    }
    return true;
}

/* p += t * d */
static bool add_product(poly *p, const term *t, const poly *d)
{
    term product;
    for (uint32_t i = 0; i < d->n; i++)
        if (!multiply_terms(t, &d->terms[i], &product) || !add_term(p, &product))
            return false;
    return true;
}

static bool add_scaled(poly *p, int64_t by, const poly *d)
{
    term t = {.coeff = by};
    return by == 0 || add_product(p, &t, d);
}

static bool add_constant(poly *p, int64_t v)
{
    term t = {.coeff = v};
    return add_term(p, &t);
}

static int64_t constant_of(const poly *p)
{
    return p->n && p->terms[p->n - 1].n == 0 ? p->terms[p->n - 1].coeff : 0;
}

/* --- what quotients and remainders of the same division have to do with each other --- */

static bool constant_divisor(dim d, dim_kind kind, int64_t *out)
{
    return d->kind == kind && dim_is_const(d->ops[1], out);
}

/* The quotient that goes with a remainder by a constant, when p has it as a term of its own. */
static dim quotient_of(const poly *p, dim mod)
{
    for (uint32_t i = 0; i < p->n; i++) {
        dim d = p->terms[i].n == 1 ? p->terms[i].atoms[0] : mod;
        if (d->kind == DIM_FLOORDIV && d->ops[0] == mod->ops[0] && d->ops[1] == mod->ops[1])
            return d;
    }
    return NULL;
}

/* c1 * mod(x, b) + c2 * floordiv(x, b) -> c1 * x + (c2 - c1 * b) * floordiv(x, b) */
static bool absorb_mod(poly *p, uint32_t at, bool *changed)
{
    int64_t b, by = p->terms[at].coeff;
    dim mod = p->terms[at].atoms[0];
    dim div = constant_divisor(mod, DIM_MOD, &b) ? quotient_of(p, mod) : NULL;
    if (!div)
        return true;
    term t = {.n = 1, .atoms = {div}}, gone = {.n = 1, .atoms = {mod}};
    poly x;
    *changed = true;
    open_dim(mod->ops[0], &x);
    return i64_mul(by, -b, &t.coeff) && i64_mul(by, -1, &gone.coeff) && add_term(p, &gone) && add_term(p, &t) &&
           add_scaled(p, by, &x);
}

/* Whether p has k times every term of x, the constant left aside. */
static bool has_multiple(const poly *p, int64_t k, const poly *x)
{
    for (uint32_t i = 0; i < x->n && x->terms[i].n > 0; i++) {
        int64_t want;
        uint32_t found = 0;
        if (!i64_mul(k, x->terms[i].coeff, &want))
            return false;
        while (found < p->n && (p->terms[found].coeff != want || compare_atoms(&p->terms[found], &x->terms[i]) != 0))
            found++;
        if (found == p->n)
            return false;
    }
    return true;
}

/* k * x - k * b * floordiv(x, b) -> k * mod(x, b) */
static bool gather_mod(compiler *c, poly *p, uint32_t at, bool *changed)
{
    int64_t b, k;
    dim div = p->terms[at].atoms[0];
    if (!constant_divisor(div, DIM_FLOORDIV, &b) || b < 2 || p->terms[at].coeff % b != 0)
        return true;
    k = -(p->terms[at].coeff / b);
    poly x;
    open_dim(div->ops[0], &x);
    if (!has_multiple(p, k, &x))
        return true;
    term gone = {.n = 1, .atoms = {div}}, mod = {.coeff = k, .n = 1, .atoms = {dim_mod(c, div->ops[0], div->ops[1])}};
    if (mod.atoms[0]->kind != DIM_MOD)
        return true; /* its normal form is another sum */
    *changed = true;
    return i64_mul(k, b, &gone.coeff) && add_term(p, &gone) && add_scaled(p, -k, &x) && add_term(p, &mod);
}

/* The terms of x that p has k times, by the atoms of y, where x + y is a multiple of b; the constant of x is the least
 * one that makes it so. false: there are none. */
static bool take_padded(const poly *p, int64_t k, const poly *y, int64_t b, poly *x)
{
    int64_t total;
    x->n = 0;
    for (uint32_t i = 0; i < y->n && y->terms[i].n > 0; i++) {
        uint32_t at = 0;
        while (at < p->n && compare_atoms(&p->terms[at], &y->terms[i]) != 0)
            at++;
        if (at == p->n || p->terms[at].coeff == INT64_MIN || p->terms[at].coeff % k != 0)
            return false;
        term t = p->terms[at];
        t.coeff /= k;
        if (!i64_add(t.coeff, y->terms[i].coeff, &total) || total % b != 0 || !add_term(x, &t))
            return false;
    }
    int64_t rest = constant_of(y) % b;
    return x->n > 0 && add_constant(x, rest > 0 ? b - rest : -rest);
}

/* k * x + k * mod(y, b), where x + y is a multiple of b: x padded to one, k * b * floordiv(x + b - 1, b) */
static bool gather_padding(compiler *c, poly *p, uint32_t at, bool *changed)
{
    int64_t b, k = p->terms[at].coeff, whole;
    dim mod = p->terms[at].atoms[0], above;
    if (!constant_divisor(mod, DIM_MOD, &b) || b < 2 || k == INT64_MIN || !i64_mul(k, b, &whole))
        return true;
    poly x, y, q;
    open_dim(mod->ops[0], &y);
    if (!take_padded(p, k, &y, b, &x))
        return true;
    *changed = true;
    term gone = {.coeff = -k, .n = 1, .atoms = {mod}};
    if (!add_term(p, &gone) || !add_scaled(p, -k, &x) || !add_constant(&x, b - 1) || !close_poly(c, &x, &above))
        return false;
    open_dim(dim_floordiv(c, above, dim_const(c, b)), &q);
    return add_scaled(p, whole, &q);
}

/* *out_changed: whether there was something to do */
static bool pair_divisions(compiler *c, poly *p, bool *out_changed)
{
    bool changed = false, more;
    for (uint32_t i = 0; i < p->n && !changed; i++)
        if (p->terms[i].n == 1 && !absorb_mod(p, i, &changed))
            return false;
    for (uint32_t i = 0; i < p->n && !changed; i++)
        if (p->terms[i].n == 1 && !gather_mod(c, p, i, &changed))
            return false;
    for (uint32_t i = 0; i < p->n && !changed; i++)
        if (p->terms[i].n == 1 && !gather_padding(c, p, i, &changed))
            return false;
    *out_changed = changed;
    return !changed || pair_divisions(c, p, &more); /* each step removes a division, or terms that go into one */
}

/* Closes the sum that `a op b` came to; unknown when it did not come out. */
static dim finish(compiler *c, poly *p, bool ok, char op, dim a, dim b)
{
    dim d;
    bool changed;
    return ok && pair_divisions(c, p, &changed) && close_poly(c, p, &d) ? d : dim_unknown(c, op, a, b);
}

dim dim_add(compiler *c, dim a, dim b)
{
    poly p, q;
    open_dim(a, &p);
    open_dim(b, &q);
    bool ok = add_scaled(&p, 1, &q);
    return finish(c, &p, ok, '+', a, b);
}

dim dim_sub(compiler *c, dim a, dim b)
{
    poly p, q;
    if (a == b)
        return dim_const(c, 0);
    open_dim(a, &p);
    open_dim(b, &q);
    bool ok = add_scaled(&p, -1, &q);
    return finish(c, &p, ok, '-', a, b);
}

dim dim_mul(compiler *c, dim a, dim b)
{
    poly p = {0}, x, y;
    open_dim(a, &x);
    open_dim(b, &y);
    bool ok = true;
    for (uint32_t i = 0; ok && i < x.n; i++)
        ok = add_product(&p, &x.terms[i], &y);
    return finish(c, &p, ok, '*', a, b);
}

/* --- division --- */

static int64_t floor_quotient(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

/* t / by when by's atoms are among t's and the coefficients divide */
static bool divide_term(const term *t, const term *by, term *out)
{
    uint32_t k = 0;
    if (by->n > t->n || t->coeff % by->coeff != 0 || by->coeff == -1)
        return false;
    out->n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        if (k < by->n && t->atoms[i] == by->atoms[k])
            k++;
        else
            out->atoms[out->n++] = t->atoms[i];
    }
    out->coeff = t->coeff / by->coeff;
    return k == by->n;
}

/* a = q * b exactly. */
static bool divide_exactly(const poly *a, const poly *b, poly *q)
{
    poly r = *a;
    q->n = 0;
    for (uint32_t steps = 0; r.n > 0; steps++) {
        term t, minus;
        if (steps > DIM_MAX_TERMS || !divide_term(&r.terms[0], &b->terms[0], &t) || !add_term(q, &t))
            return false;
        minus = t;
        if (!i64_mul(t.coeff, -1, &minus.coeff) || !add_product(&r, &minus, b))
            return false;
    }
    return true;
}

/* p = b * q + r with coefficients of r in [0, b): a multiple of b leaves a floor division whole. */
static bool split_by(const poly *p, int64_t b, poly *q, poly *r)
{
    q->n = r->n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        term whole = p->terms[i], rest = p->terms[i];
        whole.coeff = floor_quotient(p->terms[i].coeff, b);
        rest.coeff = p->terms[i].coeff - whole.coeff * b;
        if (!add_term(q, &whole) || !add_term(r, &rest))
            return false;
    }
    return true;
}

/* Greatest common divisor of b and all coefficients but the constant's. */
static int64_t content(const poly *p, int64_t b)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->terms[i].n > 0)
            b = common_divisor(b, p->terms[i].coeff);
    return b;
}

/* r = g * r + k -> r, with k in [0, g) */
static int64_t divide_by_content(poly *r, int64_t g)
{
    int64_t constant = constant_of(r), k = constant - floor_quotient(constant, g) * g;
    for (uint32_t i = 0; i < r->n; i++)
        r->terms[i].coeff = floor_quotient(r->terms[i].coeff, g);
    if (r->n && r->terms[r->n - 1].coeff == 0) /* only the constant can vanish */
        r->n--;
    return k;
}

/* y + floordiv(x, a) over b is (a * y + x) over a * b, when it is the only division in the sum. */
static bool flatten(poly *r, int64_t *b)
{
    uint32_t found = 0, at = 0;
    int64_t a, ab;
    for (uint32_t i = 0; i < r->n; i++) {
        for (uint32_t k = 0; k < r->terms[i].n; k++) {
            if (r->terms[i].atoms[k]->kind == DIM_FLOORDIV) {
                found++;
                at = i;
            }
        }
    }
    if (found != 1 || r->terms[at].n != 1 || r->terms[at].coeff != 1)
        return false;
    if (!constant_divisor(r->terms[at].atoms[0], DIM_FLOORDIV, &a) || a < 2 || !i64_mul(a, *b, &ab))
        return false;
    poly x, y = {0};
    open_dim(r->terms[at].atoms[0]->ops[0], &x);
    term gone = r->terms[at];
    gone.coeff = -1;
    if (!add_term(r, &gone) || !add_scaled(&y, a, r) || !add_scaled(&y, 1, &x))
        return false;
    *r = y;
    *b = ab;
    return true;
}

static bool in_range(dim d, int64_t b)
{
    dim_range range = dim_get_range(d, false);
    return range.lo >= 0 && range.hi < b;
}

/* floordiv(p, b), b >= 1, into q */
static bool floordiv_by(compiler *c, const poly *p, int64_t b, poly *q)
{
    poly r = *p;
    dim rest;
    q->n = 0;
    do {
        poly whole, all = r;
        if (!split_by(&all, b, &whole, &r) || !add_scaled(q, 1, &whole))
            return false;
        int64_t g = content(&r, b);
        (void)divide_by_content(&r, g);
        b /= g;
    } while (b > 1 && flatten(&r, &b));
    if (b == 1)
        return add_scaled(q, 1, &r);
    bool changed;
    if (!pair_divisions(c, &r, &changed))
        return false;
    if (changed) { /* its coefficients are others */
        poly more;
        return floordiv_by(c, &r, b, &more) && add_scaled(q, 1, &more);
    }
    if (!close_poly(c, &r, &rest))
        return false;
    if (in_range(rest, b))
        return true;
    term t = {.coeff = 1, .n = 1, .atoms = {dim_make_atom(c, DIM_FLOORDIV, '/', rest, dim_const(c, b))}};
    return add_term(q, &t);
}

static dim negated(compiler *c, dim d)
{
    return dim_mul(c, d, dim_const(c, -1));
}

/* Takes `atom` out of every term of p; false, and p stays, where one has none. */
static bool take_atom(poly *p, dim atom)
{
    poly q = *p;
    for (uint32_t i = 0; i < q.n; i++) {
        term *t = &q.terms[i];
        uint32_t k = 0;
        while (k < t->n && t->atoms[k] != atom)
            k++;
        if (k == t->n)
            return false;
        for (t->n--; k < t->n; k++)
            t->atoms[k] = t->atoms[k + 1];
    }
    *p = q;
    return true;
}

/* Takes out of a and b what all of their terms have: a number, and atoms. Whether there was something. */
static bool take_common(poly *a, poly *b)
{
    int64_t g = content(b, content(a, common_divisor(constant_of(a), constant_of(b))));
    bool found = g > 1;
    if (found) {
        (void)divide_by_content(b, g);
        (void)divide_by_content(a, g);
    }
    for (uint32_t k = 0; b->n > 0 && k < b->terms[0].n;) {
        poly x = *a, y = *b;
        dim atom = b->terms[0].atoms[k];
        bool common = take_atom(&x, atom) && take_atom(&y, atom);
        if (common) {
            *a = x;
            *b = y;
        }
        found |= common;
        k += !common;
    }
    return found;
}

/* max(0, b) is b where b is positive. */
static bool open_max(poly *a, dim b)
{
    for (uint32_t i = 0; i < a->n; i++) {
        for (uint32_t k = 0; k < a->terms[i].n; k++) {
            dim m = a->terms[i].atoms[k];
            bool same = m->kind == DIM_MAX && (m->ops[0] == b || m->ops[1] == b) &&
                        (dim_is(m->ops[0], 0) || dim_is(m->ops[1], 0));
            if (!same || a->terms[i].coeff == INT64_MIN)
                continue;
            poly by, rest = *a;
            term gone = a->terms[i], whole = gone;
            whole.n--;
            memmove(&whole.atoms[k], &whole.atoms[k + 1], (whole.n - k) * sizeof *whole.atoms);
            gone.coeff = -gone.coeff;
            open_dim(b, &by);
            if (!add_term(&rest, &gone) || !add_product(&rest, &whole, &by))
                return false;
            *a = rest;
            return true;
        }
    }
    return false;
}

/* Symbolic divisors: what both have goes out, and whole multiples, as in (m * n + k) / n = m + k / n. */
static dim floordiv_symbolic(compiler *c, dim a, dim b)
{
    poly p, by, q, r = {0};
    dim rest, x, y;
    bool ok = true;
    open_dim(a, &p);
    open_dim(b, &by);
    if (take_common(&p, &by) && close_poly(c, &p, &x) && close_poly(c, &by, &y))
        return dim_floordiv(c, x, y);
    open_dim(a, &p);
    open_dim(b, &by);
    if (divide_exactly(&p, &by, &q))
        return finish(c, &q, true, '/', a, b);
    q.n = 0;
    for (uint32_t i = 0; ok && i < p.n; i++) {
        term t;
        bool whole = by.n == 1 && divide_term(&p.terms[i], &by.terms[0], &t);
        ok = whole ? add_term(&q, &t) : add_term(&r, &p.terms[i]);
    }
    if (!ok || q.n == 0 || !close_poly(c, &r, &rest))
        return dim_make_atom(c, DIM_FLOORDIV, '/', a, b);
    return dim_add(c, finish(c, &q, true, '/', a, b), dim_make_atom(c, DIM_FLOORDIV, '/', rest, b));
}

dim dim_floordiv(compiler *c, dim a, dim b)
{
    int64_t by, v;
    if (dim_is(b, 0))
        return dim_unknown(c, '/', a, b);
    if (a == b)
        return dim_const(c, 1);
    if (dim_is(a, 0) || dim_is(b, 1))
        return a;
    if (!dim_is_const(b, &by))
        return floordiv_symbolic(c, a, b);
    if (by == INT64_MIN || (dim_is_const(a, &v) && v == INT64_MIN && by == -1))
        return dim_unknown(c, '/', a, b);
    if (by < 0)
        return dim_floordiv(c, negated(c, a), dim_const(c, -by));
    poly p, q;
    open_dim(a, &p);
    bool ok = floordiv_by(c, &p, by, &q);
    return finish(c, &q, ok, '/', a, b);
}

dim dim_divide_extents(compiler *c, dim a, dim b)
{
    poly p, by;
    dim x, y;
    open_dim(a, &p);
    open_dim(b, &by);
    (void)take_common(&p, &by);
    if (!close_poly(c, &by, &y) || !open_max(&p, y) || !close_poly(c, &p, &x))
        return dim_floordiv(c, a, b);
    return dim_floordiv(c, x, y);
}

dim dim_ceildiv(compiler *c, dim a, dim b)
{
    int64_t by;
    if (dim_is_const(b, &by) && by < 0 && by != INT64_MIN)
        return dim_ceildiv(c, negated(c, a), dim_const(c, -by));
    if (dim_is(b, 0))
        return dim_unknown(c, '/', a, b);
    return dim_floordiv(c, dim_add(c, a, dim_sub(c, b, dim_const(c, 1))), b);
}

/* Terms c * mod(x, m) with b dividing m may as well be c * x. */
static bool drop_inner_mods(poly *p, int64_t b)
{
    for (uint32_t i = 0; i < p->n; i++) {
        int64_t m;
        if (p->terms[i].n != 1 || !constant_divisor(p->terms[i].atoms[0], DIM_MOD, &m) || m % b != 0)
            continue;
        term gone = p->terms[i];
        int64_t by = gone.coeff;
        poly x;
        open_dim(gone.atoms[0]->ops[0], &x);
        gone.coeff = -by;
        return add_term(p, &gone) && add_scaled(p, by, &x) && drop_inner_mods(p, b);
    }
    return true;
}

/* mod(p, b), b >= 1, as a sum */
static bool mod_by(compiler *c, poly *p, int64_t b, poly *out)
{
    poly q, r;
    dim rest;
    if (!drop_inner_mods(p, b) || !split_by(p, b, &q, &r))
        return false;
    int64_t g = content(&r, b), k = divide_by_content(&r, g); /* mod(g * r + k, b) = g * mod(r, b / g) + k */
    bool changed;
    if (!pair_divisions(c, &r, &changed))
        return false;
    out->n = 0;
    if (changed) {
        poly more;
        return mod_by(c, &r, b / g, &more) && add_scaled(out, g, &more) && add_constant(out, k);
    }
    if (!close_poly(c, &r, &rest))
        return false;
    term t = {.coeff = g, .n = 1};
    if (in_range(rest, b / g))
        return add_scaled(out, g, &r) && add_constant(out, k);
    t.atoms[0] = dim_make_atom(c, DIM_MOD, '%', rest, dim_const(c, b / g));
    return add_term(out, &t) && add_constant(out, k);
}

dim dim_mod(compiler *c, dim a, dim b)
{
    int64_t by;
    poly p, q;
    if (dim_is(b, 0) || dim_is(b, INT64_MIN))
        return dim_unknown(c, '%', a, b);
    if (a == b || dim_is(a, 0))
        return dim_const(c, 0);
    open_dim(a, &p);
    if (!dim_is_const(b, &by)) {
        poly divisor;
        open_dim(b, &divisor);
        return divide_exactly(&p, &divisor, &q) ? dim_const(c, 0) : dim_make_atom(c, DIM_MOD, '%', a, b);
    }
    if (by < 0) /* the result has the divisor's sign */
        return negated(c, dim_mod(c, negated(c, a), dim_const(c, -by)));
    bool ok = mod_by(c, &p, by, &q);
    return finish(c, &q, ok, '%', a, b);
}

/* --- min and max --- */

#define MAX_CHOICES 16u

static uint32_t add_choice(dim_kind kind, dim d, uint32_t n, dim *choices)
{
    if (d->kind == kind) { /* nested to the left: choices and one more */
        n = add_choice(kind, d->ops[0], n, choices);
        return add_choice(kind, d->ops[1], n, choices);
    }
    if (n < MAX_CHOICES)
        choices[n] = d;
    return n + 1;
}

/* Whether d is a nest of choices of the other kind, one of which is x: max(x, min(x, y)) is x. */
static bool is_among(dim_kind other, dim d, dim x)
{
    return d == x || (d->kind == other && (is_among(other, d->ops[0], x) || is_among(other, d->ops[1], x)));
}

/* Whether a can never be the one that counts when b is there. */
static bool is_beaten(compiler *c, dim_kind kind, dim a, dim b)
{
    int64_t x = 0, y = 0;
    if (dim_is_const(a, &x) && dim_is_const(b, &y)) /* their difference may be too large for a number */
        return kind == DIM_MAX ? x <= y : x >= y;
    dim_range r = dim_get_range(kind == DIM_MAX ? dim_sub(c, b, a) : dim_sub(c, a, b), false);
    return r.lo >= 0 || is_among(kind == DIM_MAX ? DIM_MIN : DIM_MAX, a, b);
}

static int by_structure(const void *a, const void *b)
{
    return dim_compare(*(const dim *)a, *(const dim *)b);
}

static dim choose(compiler *c, dim_kind kind, dim a, dim b)
{
    dim choices[MAX_CHOICES];
    uint32_t n = add_choice(kind, a, 0, choices), kept = 0;
    n = add_choice(kind, b, n, choices);
    char op = kind == DIM_MIN ? '<' : '>';
    if (n > MAX_CHOICES)
        return dim_unknown(c, op, a, b);
    qsort(choices, n, sizeof *choices, by_structure);
    for (uint32_t i = 0; i < n; i++) {
        bool beaten = false;
        for (uint32_t k = 0; k < n && !beaten; k++) /* of two that are always equal the first one stays */
            beaten = k != i && is_beaten(c, kind, choices[i], choices[k]) &&
                     (k < i || !is_beaten(c, kind, choices[k], choices[i]));
        if (!beaten)
            choices[kept++] = choices[i];
    }
    dim d = choices[0];
    for (uint32_t i = 1; i < kept; i++)
        d = dim_make_atom(c, kind, op, d, choices[i]);
    return d;
}

dim dim_min(compiler *c, dim a, dim b)
{
    return choose(c, DIM_MIN, a, b);
}

dim dim_max(compiler *c, dim a, dim b)
{
    return choose(c, DIM_MAX, a, b);
}

/* --- comparison --- */

/* a <= b for reasons that lie in a (a quotient of it is, one choice of a minimum is) or in b. */
static bool below_by_parts(compiler *c, dim a, dim b)
{
    if (a->kind == DIM_FLOORDIV && dim_get_range(a->ops[0], true).lo >= 0 && dim_get_range(a->ops[1], true).lo >= 1)
        return dim_never_above(c, a->ops[0], b);
    if (a->kind == DIM_MOD && dim_get_range(a->ops[1], true).lo >= 0 && dim_never_above(c, a->ops[1], b))
        return true;
    if (a->kind == DIM_MIN)
        return dim_never_above(c, a->ops[0], b) || dim_never_above(c, a->ops[1], b);
    if (b->kind == DIM_MAX)
        return dim_never_above(c, a, b->ops[0]) || dim_never_above(c, a, b->ops[1]);
    return b->kind == DIM_MIN && dim_never_above(c, a, b->ops[0]) && dim_never_above(c, a, b->ops[1]);
}

bool dim_never_above(compiler *c, dim a, dim b)
{
    dim_range above = dim_get_range(a, true), below = dim_get_range(b, true);
    return a == b || (above.hi != INT64_MAX && above.hi <= below.lo) || dim_get_range(dim_sub(c, b, a), true).lo >= 0 ||
           below_by_parts(c, a, b);
}
