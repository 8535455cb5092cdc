/* SPDX-License-Identifier: Apache-2.0 */
/* Simplification of expressions with ranges. Integer sums get one written form; quotients and remainders are taken
 * apart by what divides exactly and by what stays below the divisor, which undoes splits and fusions of loops;
 * comparisons, minima and selections are decided where the ranges decide them. Float values only have their parts
 * simplified. */
#include "tir/build.h"
#include "tir/eval.h"
#include "tir/linear.h"
#include "tir/node.h"
#include "tir/walk.h"

static tir_expr_ref simplify(tir_bounds *b, tir_expr_ref e);

/* --- sums: quotient and remainder that belong together become their dividend --- */

static bool remove_term(linear *l, uint32_t i)
{
    l->terms[i] = l->terms[--l->len];
    return true;
}

static void drop_atom(linear_term *t, uint32_t i)
{
    for (t->n--; i < t->n; i++)
        t->atoms[i] = t->atoms[i + 1];
}

/* t = k * (x mod d): k alone. */
static bool without_remainder(linear_term t, linear_term *out, tir_expr_ref *mod)
{
    uint32_t i = 0;
    while (i < t.n && !tir_is_binary(t.atoms[i], TIR_FLOORMOD))
        i++;
    if (i == t.n)
        return false;
    *mod = t.atoms[i];
    drop_atom(&t, i);
    *out = t;
    return true;
}

static bool is_positive(tir_bounds *b, tir_expr_ref e)
{
    linear l;
    return linear_of(b, e, &l) && i64_add(l.constant, -1, &l.constant) && linear_is_nonnegative(b, &l);
}

/* l with k*(x mod d) and k*d*(x div d), all terms of it, taken out; false: they are not there. */
static bool take_both(tir_bounds *b, linear *l, uint32_t at, const linear *k, tir_expr_ref quotient, tir_expr_ref by)
{
    linear d, q, kd, product;
    if (!linear_of(b, by, &d) || !linear_of(b, quotient, &q) || !linear_mul(b, k, &d, &kd) ||
        !linear_mul(b, &kd, &q, &product) || product.len == 0 || product.constant != 0)
        return false;
    const uint32_t left = l->len - 1;
    remove_term(l, at);
    return left >= product.len && linear_add(b, l, &product, -1) && l->len == left - product.len;
}

/* k*(x mod d) + k*d*(x div d) = k*x, d >= 1 */
static bool recombine(tir_bounds *b, linear *l)
{
    for (uint32_t i = 0; i < l->len; i++) {
        linear k = {.len = 1}, x, kx, sum = *l;
        tir_expr_ref mod;
        if (!without_remainder(l->terms[i], &k.terms[0], &mod))
            continue;
        if (k.terms[0].n == 0)
            k = (linear){.constant = k.terms[0].coeff};
        tir_expr_ref quotient = simplify(b, tir_floordiv(b->c, mod->args[0], mod->args[1]));
        if (quotient->kind == TIR_INT || !take_both(b, &sum, i, &k, quotient, mod->args[1]) ||
            !is_positive(b, mod->args[1]) || !linear_of(b, mod->args[0], &x) || !linear_mul(b, &k, &x, &kx) ||
            !linear_add(b, &sum, &kx, 1))
            continue;
        *l = sum;
        return true;
    }
    return false;
}

static tir_expr_ref build_sum(tir_bounds *b, dtype dt, linear *l)
{
    while (recombine(b, l))
        ;
    return linear_build(b, dt, l);
}

static tir_expr_ref simplify_sum(tir_bounds *b, tir_expr_ref e)
{
    linear l;
    if (!linear_of(b, e, &l) || (l.len == 1 && l.terms[0].atoms[0] == e))
        return e;
    return build_sum(b, e->type.dt, &l);
}

/* --- quotients and remainders by a constant --- */

/* x = d * q + r with as much as possible in q; the constant of r lies in [0, d). */
static bool split_by(tir_bounds *b, const linear *x, int64_t d, linear *q, linear *r)
{
    *q = (linear){.constant = eval_floordiv(x->constant, d)};
    *r = (linear){.constant = eval_floormod(x->constant, d)};
    for (uint32_t i = 0; i < x->len; i++) {
        linear_term t = x->terms[i];
        bool exact = t.coeff % d == 0;
        if (exact)
            t.coeff /= d;
        if (!linear_add_term(b, exact ? q : r, &t))
            return false;
    }
    return true;
}

/* Whether r lies in [k*d, (k+1)*d) for one k. */
static bool quotient_is_constant(tir_bounds *b, const linear *r, int64_t d, int64_t *out)
{
    tir_range range = linear_range(b, r);
    linear end = {.constant = -1}; /* (k + 1)*d - 1 - r >= 0 */
    int64_t above;
    if (!range.known_min)
        return false;
    *out = eval_floordiv(range.min, d);
    if (range.known_max && eval_floordiv(range.max, d) == *out)
        return true;
    return b->facts.len > 0 && i64_add(*out, 1, &above) && i64_mul(above, d, &above) &&
           i64_add(end.constant, above, &end.constant) && linear_add(b, &end, r, -1) && linear_is_nonnegative(b, &end);
}

/* r and d without their common factor; what is left of the constant goes to *out_rest. */
static void reduce(linear *r, int64_t *d, int64_t *out_factor, int64_t *out_rest)
{
    *out_factor = r->len > 0 ? linear_common(linear_gcd(r), *d) : 1;
    *out_rest = eval_floormod(r->constant, *out_factor);
    for (uint32_t i = 0; i < r->len; i++)
        r->terms[i].coeff /= *out_factor;
    r->constant = eval_floordiv(r->constant, *out_factor);
    *d /= *out_factor;
}

/* r = g*a + s, where g divides d and s lies in [0, g): then r/d = a/(d/g), and r mod d = g*(a mod d/g) + s. Lanes of a
 * block inside a group of blocks are such an s. */
static bool split_small(tir_bounds *b, const linear *r, int64_t d, int64_t *g, linear *a, linear *s)
{
    for (uint32_t i = 0; i < r->len; i++) {
        int64_t k, kg;
        *g = r->terms[i].coeff == INT64_MIN ? 1 : linear_common(r->terms[i].coeff, d);
        if (*g > 1 && *g < d && split_by(b, r, *g, a, s) && s->len > 0 && quotient_is_constant(b, s, *g, &k) &&
            i64_mul(k, *g, &kg) && i64_add(s->constant, -kg, &s->constant) && i64_add(a->constant, k, &a->constant))
            return true;
    }
    return false;
}

static bool lone_atom(const linear *l, tir_expr_ref *out)
{
    if (l->len != 1 || l->terms[0].n != 1 || l->terms[0].coeff != 1)
        return false;
    *out = l->terms[0].atoms[0];
    return true;
}

/* floor(r / d) where r is a nested quotient or remainder; NULL: no rule. */
static tir_expr_ref nested_quotient(tir_bounds *b, const linear *r, int64_t d, dtype dt)
{
    tir_expr_ref atom;
    int64_t m, k;
    linear x;
    if (!lone_atom(r, &atom) || atom->kind != TIR_BINOP || !tir_is_int(atom->args[1], &m) || m <= 0)
        return NULL;
    if (atom->op == TIR_FLOORDIV && i64_mul(m, d, &k) &&
        linear_of(b, atom->args[0], &x)) { /* (x/m + c)/d = (x + c*m)/(m*d) */
        int64_t shift;
        if (!i64_mul(r->constant, m, &shift) || !i64_add(x.constant, shift, &x.constant))
            return NULL;
        return simplify(b, tir_floordiv(b->c, linear_build(b, dt, &x), tir_int(b->c, dt, k)));
    }
    if (atom->op == TIR_FLOORMOD && r->constant == 0 && m % d == 0) { /* (x mod m)/d = (x/d) mod (m/d) */
        tir_expr_ref quotient = tir_floordiv(b->c, atom->args[0], tir_int(b->c, dt, d));
        return simplify(b, tir_floormod(b->c, quotient, tir_int(b->c, dt, m / d)));
    }
    return NULL;
}

static tir_expr_ref quotient(tir_bounds *b, tir_expr_ref e, int64_t d)
{
    dtype dt = e->type.dt;
    linear x, q, r, small;
    int64_t k, factor, rest;
    if (!linear_of(b, e->args[0], &x) || !split_by(b, &x, d, &q, &r))
        return e;
    if (quotient_is_constant(b, &r, d, &k))
        return i64_add(q.constant, k, &q.constant) ? build_sum(b, dt, &q) : e;
    if (split_small(b, &r, d, &factor, &x, &small)) {
        r = x;
        d /= factor;
    }
    reduce(&r, &d, &factor, &rest); /* what is dropped is below the factor: it cannot reach the next multiple */
    tir_expr_ref atom = d == 1 ? linear_build(b, dt, &r) : nested_quotient(b, &r, d, dt);
    if (!atom)
        atom = tir_floordiv(b->c, linear_build(b, dt, &r), tir_int(b->c, dt, d));
    linear sum;
    return linear_of(b, atom, &sum) && linear_add(b, &q, &sum, 1) ? build_sum(b, dt, &q) : e;
}

/* x mod m inside something mod d, d dividing k*m: x itself will do. */
static bool open_remainders(tir_bounds *b, linear *r, int64_t d)
{
    for (uint32_t i = 0; i < r->len; i++) {
        int64_t m, km;
        linear_term t = r->terms[i];
        linear x, sum = *r;
        if (t.n != 1 || !tir_is_binary(t.atoms[0], TIR_FLOORMOD) || !tir_is_int(t.atoms[0]->args[1], &m) || m <= 0)
            continue;
        if (!i64_mul(t.coeff, m, &km) || km % d != 0 || !linear_of(b, t.atoms[0]->args[0], &x))
            continue;
        remove_term(&sum, i);
        if (!linear_add(b, &sum, &x, t.coeff))
            continue;
        *r = sum;
        return true;
    }
    return false;
}

static tir_expr_ref remainder_of(tir_bounds *b, tir_expr_ref e, int64_t d)
{
    dtype dt = e->type.dt;
    linear x, q, r, small, sum = {0};
    int64_t k, kd, factor, rest;
    if (!linear_of(b, e->args[0], &x) || !split_by(b, &x, d, &q, &r))
        return e;
    while (open_remainders(b, &r, d)) {
        x = r;
        if (!split_by(b, &x, d, &q, &r))
            return e;
    }
    if (quotient_is_constant(b, &r, d, &k)) {
        if (!i64_mul(k, d, &kd) || !i64_add(r.constant, -kd, &r.constant))
            return e;
        return build_sum(b, dt, &r);
    }
    if (split_small(b, &r, d, &factor, &x, &small)) {
        tir_expr_ref outer = tir_floormod(b->c, linear_build(b, dt, &x), tir_int(b->c, dt, d / factor));
        if (!linear_of(b, simplify(b, outer), &x) || !linear_add(b, &small, &x, factor))
            return e;
        return build_sum(b, dt, &small);
    }
    reduce(&r, &d, &factor, &rest);
    if (d == 1)
        return tir_int(b->c, dt, rest);
    tir_expr_ref mod = tir_floormod(b->c, linear_build(b, dt, &r), tir_int(b->c, dt, d));
    if (!linear_of(b, mod, &x) || !linear_add(b, &sum, &x, factor) || !i64_add(sum.constant, rest, &sum.constant))
        return e;
    return build_sum(b, dt, &sum);
}

/* --- by a sum that has symbols: polynomial division, and a rest that is provably below the divisor --- */

/* t / lead, where lead divides it. */
static bool divide_term(linear_term t, const linear_term *lead, linear_term *out)
{
    if (lead->coeff == 0 || t.coeff % lead->coeff != 0)
        return false;
    t.coeff /= lead->coeff;
    for (uint32_t k = 0; k < lead->n; k++) {
        uint32_t i = 0;
        while (i < t.n && !tir_expr_equal(t.atoms[i], lead->atoms[k]))
            i++;
        if (i == t.n)
            return false;
        drop_atom(&t, i);
    }
    *out = t;
    return true;
}

/* x = d*q + r with as much as possible in q, by the term of d that has the most factors. */
static bool divide_sums(tir_bounds *b, const linear *x, const linear *d, linear *q, linear *r)
{
    uint32_t lead = 0;
    for (uint32_t i = 1; i < d->len; i++)
        if (d->terms[i].n > d->terms[lead].n)
            lead = i;
    *q = (linear){0};
    *r = *x;
    for (uint32_t i = 0, rounds = 0; i < r->len; rounds++) {
        linear part = {.len = 1}, product;
        if (!divide_term(r->terms[i], &d->terms[lead], &part.terms[0])) {
            i++;
            continue;
        }
        if (part.terms[0].n == 0)
            part = (linear){.constant = part.terms[0].coeff};
        if (rounds > LINEAR_MAX_TERMS || !linear_mul(b, &part, d, &product) || !linear_add(b, r, &product, -1) ||
            !linear_add(b, q, &part, 1))
            return false;
        i = 0;
    }
    return true;
}

static tir_expr_ref divide_by_symbol(tir_bounds *b, tir_expr_ref e)
{
    linear x, d, q, r, below;
    bool is_quotient = e->op == TIR_FLOORDIV;
    if (!linear_of(b, e->args[1], &d) || d.len == 0 || !linear_of(b, e->args[0], &x) ||
        !divide_sums(b, &x, &d, &q, &r))
        return e;
    below = (linear){.constant = -1}; /* d - 1 - r >= 0 */
    if (!linear_add(b, &below, &d, 1) || !linear_add(b, &below, &r, -1))
        return e;
    if (linear_is_nonnegative(b, &r) && linear_is_nonnegative(b, &below))
        return build_sum(b, e->type.dt, is_quotient ? &q : &r);
    if ((q.len == 0 && q.constant == 0) || !is_positive(b, e->args[1]))
        return e;
    tir_expr_ref rest = tir_binary(b->c, e->op, linear_build(b, e->type.dt, &r), e->args[1]);
    linear sum;
    if (!is_quotient)
        return rest;
    return linear_of(b, rest, &sum) && linear_add(b, &q, &sum, 1) ? build_sum(b, e->type.dt, &q) : e;
}

static tir_expr_ref simplify_division(tir_bounds *b, tir_expr_ref e)
{
    int64_t d;
    if (!bounds_is_exact(b, e->args[0]) || !bounds_is_exact(b, e->args[1]))
        return e;
    if (!tir_is_int(e->args[1], &d))
        return divide_by_symbol(b, e);
    if (d == 0)
        return tir_int(b->c, e->type.dt, 0);
    if (d < 0)
        return e;
    return e->op == TIR_FLOORDIV ? quotient(b, e, d) : remainder_of(b, e, d);
}

/* --- comparisons --- */

static bool negated(tir_bounds *b, const linear *l, int64_t shift, linear *out)
{
    *out = (linear){.constant = shift};
    return linear_add(b, out, l, -1);
}

/* d >= 0 written with positive terms on both sides and no common factor; `d` has terms. */
static tir_expr_ref write_nonnegative(tir_bounds *b, dtype dt, const linear *d)
{
    linear left = {0}, right = {0};
    int64_t g = linear_gcd(d), k = eval_floordiv(d->constant, g), bound;
    for (uint32_t i = 0; i < d->len; i++) {
        linear_term t = d->terms[i];
        t.coeff /= g;
        bool is_left = t.coeff < 0;
        if (is_left && t.coeff == INT64_MIN)
            return NULL;
        t.coeff = is_left ? -t.coeff : t.coeff;
        if (!linear_add_term(b, is_left ? &left : &right, &t))
            return NULL;
    }
    if (left.len == 0) { /* right >= -k */
        if (k == INT64_MIN)
            return NULL;
        return tir_binary(b->c, TIR_GE, linear_build(b, dt, &right), tir_int(b->c, dt, -k));
    }
    if (!i64_add(k, 1, &bound) || eval_wrap(dt, bound) != bound) /* left < right + k + 1 */
        return NULL;
    right.constant = bound;
    return tir_binary(b->c, TIR_LT, linear_build(b, dt, &left), linear_build(b, dt, &right));
}

/* x < y (strict) or x <= y. */
static tir_expr_ref order(tir_bounds *b, tir_expr_ref e, tir_expr_ref x, tir_expr_ref y, bool strict)
{
    linear d, opposite;
    if (!linear_diff(b, y, x, &d) || !i64_add(d.constant, strict ? -1 : 0, &d.constant))
        return e;
    if (linear_is_nonnegative(b, &d))
        return tir_int(b->c, DT_BOOL, 1);
    if (negated(b, &d, -1, &opposite) && linear_is_nonnegative(b, &opposite))
        return tir_int(b->c, DT_BOOL, 0);
    tir_expr_ref out = d.len ? write_nonnegative(b, x->type.dt, &d) : NULL;
    return out ? out : e;
}

static tir_expr_ref equality(tir_bounds *b, tir_expr_ref e)
{
    linear d, opposite;
    bool holds_when_equal = e->op == TIR_EQ;
    if (!linear_diff(b, e->args[0], e->args[1], &d))
        return e;
    if (d.len == 0)
        return tir_int(b->c, DT_BOOL, (d.constant == 0) == holds_when_equal);
    tir_range r = linear_range(b, &d);
    linear above = d;
    bool never = (r.known_min && r.min > 0) || (r.known_max && r.max < 0) || d.constant % linear_gcd(&d) != 0;
    never = never || (i64_add(above.constant, -1, &above.constant) && linear_is_nonnegative(b, &above));
    never = never || (negated(b, &d, -1, &opposite) && linear_is_nonnegative(b, &opposite));
    if (never)
        return tir_int(b->c, DT_BOOL, !holds_when_equal);
    if (r.known_min && r.known_max && r.min == 0 && r.max == 0)
        return tir_int(b->c, DT_BOOL, holds_when_equal);
    return e;
}

static tir_expr_ref simplify_compare(tir_bounds *b, tir_expr_ref e)
{
    tir_expr_ref x = e->args[0], y = e->args[1];
    if (!bounds_is_index_type(x->type) || !bounds_is_exact(b, x) || !bounds_is_exact(b, y))
        return e;
    if (e->op == TIR_EQ || e->op == TIR_NE)
        return equality(b, e);
    bool swap = e->op == TIR_GT || e->op == TIR_GE;
    return order(b, e, swap ? y : x, swap ? x : y, e->op == TIR_LT || e->op == TIR_GT);
}

static tir_expr_ref simplify_minmax(tir_bounds *b, tir_expr_ref e)
{
    linear d, opposite;
    tir_expr_ref x = e->args[0], y = e->args[1];
    if (!bounds_is_index_type(e->type) || !bounds_is_exact(b, x) || !bounds_is_exact(b, y) || !linear_diff(b, y, x, &d))
        return e;
    bool is_min = e->op == TIR_MIN;
    if (linear_is_nonnegative(b, &d)) /* x <= y */
        return is_min ? x : y;
    if (negated(b, &d, 0, &opposite) && linear_is_nonnegative(b, &opposite))
        return is_min ? y : x;
    int64_t k, m;
    if (tir_is_binary(x, e->op) && tir_is_int(x->args[1], &k) && tir_is_int(y, &m))
        return tir_binary(b->c, e->op, x->args[0], tir_int(b->c, e->type.dt, is_min == (k < m) ? k : m));
    return e;
}

/* --- the rest --- */

static tir_expr_ref simplify_logic(tir_bounds *b, tir_expr_ref e)
{
    tir_expr_ref x = simplify(b, e->args[0]);
    bounds_push_cond(b, x, e->op == TIR_AND); /* the right side matters only when the left has not decided */
    tir_expr_ref y = simplify(b, e->args[1]);
    tir_bounds_pop(b);
    if (tir_expr_equal(x, y) && !tir_has_extern(x))
        return x;
    return tir_binary(b->c, e->op, x, y);
}

static tir_expr_ref simplify_select(tir_bounds *b, tir_expr_ref e)
{
    tir_expr_ref cond = simplify(b, e->args[0]), side[2];
    int64_t v;
    if (tir_is_int(cond, &v))
        return tir_broadcast(b->c, simplify(b, e->args[v ? 1 : 2]), e->type.lanes);
    for (int i = 0; i < 2; i++) {
        bounds_push_cond(b, cond, i == 0);
        side[i] = simplify(b, e->args[1 + i]);
        tir_bounds_pop(b);
    }
    if (tir_expr_equal(side[0], side[1]) && !tir_has_extern(side[0]) && !tir_has_extern(cond))
        return side[0];
    return tir_select(b->c, cond, side[0], side[1]);
}

/* cast(t, cast(narrow, x)) where x fits the narrow type. */
static tir_expr_ref simplify_cast(tir_bounds *b, tir_expr_ref e)
{
    tir_expr_ref inner = e->args[0];
    if (inner->kind != TIR_CAST || e->type.lanes > 1 || !dtype_is_int(e->type.dt) || !dtype_is_int(inner->type.dt) ||
        !dtype_is_int(inner->args[0]->type.dt))
        return e;
    tir_range r = tir_range_of(b, inner->args[0]);
    bool fits =
        r.known_min && r.known_max && r.min >= dtype_min_int(inner->type.dt) && r.max <= dtype_max_int(inner->type.dt);
    return fits ? tir_cast(b->c, e->type.dt, inner->args[0]) : e;
}

static tir_expr_ref simplify_binop(tir_bounds *b, tir_expr_ref e)
{
    bool is_index = bounds_is_index_type(e->type);
    switch (e->op) {
    case TIR_ADD:
    case TIR_SUB:
    case TIR_MUL: return is_index && bounds_is_exact(b, e) ? simplify_sum(b, e) : e;
    case TIR_FLOORDIV:
    case TIR_FLOORMOD: return is_index ? simplify_division(b, e) : e;
    case TIR_MIN:
    case TIR_MAX: return simplify_minmax(b, e);
    default: return tir_op_is_compare(e->op) ? simplify_compare(b, e) : e;
    }
}

static tir_expr_ref simplify_parts(tir_bounds *b, tir_expr_ref e)
{
    tir_expr_ref few[8], *args = e->n_args > 8 ? arena_array(&b->c->mem, tir_expr_ref, e->n_args) : few;
    bool changed = false;
    for (uint32_t i = 0; i < e->n_args; i++) {
        args[i] = simplify(b, e->args[i]);
        changed |= args[i] != e->args[i];
    }
    /* parsed nodes are written out as they stand: the constructors have not seen them */
    return changed || e->kind == TIR_BINOP || e->kind == TIR_NOT || e->kind == TIR_CAST || e->kind == TIR_CALL
               ? tir_node_rebuild(b->c, e, args)
               : e;
}

static tir_expr_ref compute(tir_bounds *b, tir_expr_ref e)
{
    if (e->kind == TIR_SELECT)
        return simplify_select(b, e);
    if (e->kind == TIR_BINOP && (e->op == TIR_AND || e->op == TIR_OR))
        return simplify_logic(b, e);
    tir_expr_ref out = simplify_parts(b, e);
    if (out->kind == TIR_BINOP)
        return simplify_binop(b, out);
    return out->kind == TIR_CAST ? simplify_cast(b, out) : out;
}

static tir_expr_ref simplify(tir_bounds *b, tir_expr_ref e)
{
    if (e->kind == TIR_INT || e->kind == TIR_FLOAT)
        return e;
    if (e->kind == TIR_VAR) {
        tir_range r = bounds_is_index_type(e->type) ? tir_range_of(b, e) : (tir_range){0};
        return r.known_min && r.known_max && r.min == r.max ? tir_int(b->c, e->type.dt, r.min) : e;
    }
    tir_expr_ref known = tir_map_get(&b->simplified, e);
    if (known)
        return known;
    tir_expr_ref out = compute(b, e);
    tir_map_put(&b->simplified, e, out);
    return out;
}

tir_expr_ref tir_simplify(tir_bounds *b, tir_expr_ref e)
{
    return simplify(b, e);
}

bool tir_prove(tir_bounds *b, tir_expr_ref cond)
{
    return tir_is_const(simplify(b, cond), 1);
}
