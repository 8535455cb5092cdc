/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a sum is never negative: by the ranges of its parts, or because a smaller sum is not. A smaller one comes of
 * taking away what is known not to be negative (facts: loops of symbolic extent, conditions, names of sums), and of
 * putting the ends of their intervals in the place of quotients and remainders. The search is short: each step takes
 * something away, and there are few steps. */
#include "tir/build.h"
#include "tir/eval.h"
#include "tir/linear.h"
#include "tir/walk.h"

#define MOST_STEPS 4u
#define MOST_SUMS  48u /* that are looked at for one answer */

typedef struct proof {
    tir_bounds *b;
    uint32_t left; /* sums that may still be looked at */
} proof;

static bool holds(proof *p, const linear *l, uint32_t steps);

static bool never_negative(tir_bounds *b, const linear *l)
{
    tir_range r = linear_range(b, l);
    return r.known_min && r.min >= 0;
}

/* --- facts --- */

static bool same_product(const linear_term *x, const linear_term *y)
{
    bool same = x->n == y->n;
    for (uint32_t i = 0; same && i < x->n; i++)
        same = tir_expr_equal(x->atoms[i], y->atoms[i]);
    return same;
}

/* s*l - f*fact, in which a term of both is gone, is at least 1 - s: then l, an integer, is at least 0. */
static bool follows_from(proof *p, const linear *l, const linear *fact, uint32_t steps)
{
    for (uint32_t i = 0; i < l->len; i++) {
        for (uint32_t k = 0; k < fact->len; k++) {
            const linear_term *x = &l->terms[i], *y = &fact->terms[k];
            if ((x->coeff > 0) != (y->coeff > 0) || x->coeff == INT64_MIN || y->coeff == INT64_MIN ||
                !same_product(x, y))
                continue;
            int64_t a = x->coeff < 0 ? -x->coeff : x->coeff, c = y->coeff < 0 ? -y->coeff : y->coeff;
            int64_t g = linear_common(a, c);
            linear rest = {.constant = c / g - 1};
            if (linear_add(p->b, &rest, l, c / g) && linear_add(p->b, &rest, fact, -(a / g)) && holds(p, &rest, steps))
                return true;
        }
    }
    return false;
}

static bool follows_from_facts(proof *p, const linear *l, uint32_t steps)
{
    for (uint32_t i = p->b->facts.len; i > 0; i--)
        if (follows_from(p, l, p->b->facts.data[i - 1], steps))
            return true;
    return false;
}

/* --- quotients and remainders --- */

static bool is_division(const linear_term *t, tir_op op)
{
    const struct tir_expr *e = t->atoms[0];
    return t->n == 1 && e->kind == TIR_BINOP && e->op == op;
}

static bool is_quotient(const linear_term *t, int64_t *out_divisor)
{
    return is_division(t, TIR_FLOORDIV) && tir_is_int(t->atoms[0]->args[1], out_divisor) && *out_divisor > 0;
}

static linear without(const linear *l, uint32_t i)
{
    linear out = *l;
    out.terms[i] = out.terms[--out.len];
    return out;
}

/* floor(y/d) - floor(x/d) is at least floor((y - x)/d): a pair of quotients becomes a number. */
static bool pair_holds(proof *p, const linear *l, uint32_t i, uint32_t k, uint32_t steps)
{
    int64_t d, e, n = 0, more;
    linear diff, rest = *l;
    const linear_term *y = &l->terms[i], *x = &l->terms[k];
    if (y->coeff <= 0 || x->coeff >= 0 || x->coeff == INT64_MIN || !is_quotient(y, &d) || !is_quotient(x, &e) || d != e)
        return false;
    if (!linear_diff(p->b, y->atoms[0]->args[0], x->atoms[0]->args[0], &diff))
        return false;
    tir_range r = linear_range(p->b, &diff);
    if (r.known_min)
        n = eval_floordiv(r.min, d);
    else if (!holds(p, &diff, 1))
        return false;
    int64_t times = eval_imin(y->coeff, -x->coeff);
    linear_term less_y = {-times, 1, {y->atoms[0]}}, less_x = {times, 1, {x->atoms[0]}};
    return linear_add_term(p->b, &rest, &less_y) && linear_add_term(p->b, &rest, &less_x) && i64_mul(n, times, &more) &&
           i64_add(rest.constant, more, &rest.constant) && holds(p, &rest, steps);
}

/* By a number: k*floor(x/d), multiplied by d, is at least k*(x - d + 1), and at most k*x. */
static bool quotient_holds(proof *p, const linear *l, uint32_t i, uint32_t steps)
{
    int64_t d;
    const linear_term *t = &l->terms[i];
    linear x, rest;
    if (!is_quotient(t, &d) || !linear_of(p->b, t->atoms[0]->args[0], &x))
        return false;
    const int64_t s = d / linear_common(d, t->coeff == INT64_MIN ? 1 : t->coeff);
    int64_t k = t->coeff;
    if (k > 0 && !i64_add(x.constant, 1 - d, &x.constant))
        return false;
    rest = (linear){.constant = s - 1};
    linear others = without(l, i);
    return i64_mul(k, s, &k) && linear_add(p->b, &rest, &others, s) && linear_add(p->b, &rest, &x, k / d) &&
           holds(p, &rest, steps);
}

static bool at_least_one(proof *p, const linear *d)
{
    linear l = *d;
    return i64_add(l.constant, -1, &l.constant) && holds(p, &l, 1);
}

/* By a symbol, d >= 1: m - k*floor(x/d) >= 0 where (m + 1)*d - 1 - k*x >= 0, and m + k*floor(x/d) >= m where x >= 0. */
static bool symbolic_quotient_holds(proof *p, const linear *l, uint32_t i, uint32_t steps)
{
    const linear_term *t = &l->terms[i];
    linear x, d, m = without(l, i), rest;
    if (!is_division(t, TIR_FLOORDIV) || !linear_of(p->b, t->atoms[0]->args[0], &x) ||
        !linear_of(p->b, t->atoms[0]->args[1], &d) || d.len == 0 || !at_least_one(p, &d))
        return false;
    if (t->coeff > 0)
        return holds(p, &x, 1) && holds(p, &m, steps);
    return i64_add(m.constant, 1, &m.constant) && linear_mul(p->b, &m, &d, &rest) &&
           i64_add(rest.constant, -1, &rest.constant) && linear_add(p->b, &rest, &x, t->coeff) &&
           holds(p, &rest, steps);
}

/* x mod d lies between 0 and d - 1, d >= 1. */
static bool symbolic_remainder_holds(proof *p, const linear *l, uint32_t i, uint32_t steps)
{
    const linear_term *t = &l->terms[i];
    linear d, rest = without(l, i);
    if (!is_division(t, TIR_FLOORMOD) || !linear_of(p->b, t->atoms[0]->args[1], &d) || d.len == 0 ||
        !at_least_one(p, &d))
        return false;
    linear most = d;
    return (t->coeff > 0 ||
            (i64_add(most.constant, -1, &most.constant) && linear_add(p->b, &rest, &most, t->coeff))) &&
           holds(p, &rest, steps);
}

static bool holds_without_divisions(proof *p, const linear *l, uint32_t steps)
{
    for (uint32_t i = 0; i < l->len; i++)
        for (uint32_t k = 0; k < l->len; k++)
            if (pair_holds(p, l, i, k, steps))
                return true;
    for (uint32_t i = 0; i < l->len; i++)
        if (quotient_holds(p, l, i, steps) || symbolic_quotient_holds(p, l, i, steps) ||
            symbolic_remainder_holds(p, l, i, steps))
            return true;
    return false;
}

static bool holds(proof *p, const linear *l, uint32_t steps)
{
    if (p->left == 0)
        return false;
    p->left--;
    if (never_negative(p->b, l))
        return true;
    return steps > 0 && (holds_without_divisions(p, l, steps - 1) || follows_from_facts(p, l, steps - 1));
}

bool linear_is_nonnegative(tir_bounds *b, const linear *l)
{
    for (uint32_t steps = 0; steps <= MOST_STEPS; steps++) { /* short ways first */
        proof p = {b, MOST_SUMS};
        if (holds(&p, l, steps))
            return true;
    }
    return false;
}
