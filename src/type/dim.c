/* SPDX-License-Identifier: Apache-2.0 */
/* Symbolic dimensions. Every expression is unique in its table and in normal form: a constant, an atom (symbol, floordiv,
 * mod, min, max), a product (an optional constant factor first, then atoms by age), or a sum of such terms by age with the
 * constant last. Arithmetic goes through a flat polynomial; what overflows becomes the symbol "unknown". */
#include "type/dim.h"

#include <string.h>

#define MAX_TERMS 32u
#define MAX_ATOMS 8u

struct dim_expr {
    dim_kind kind;
    uint32_t id; /* age */
    uint32_t n;
    int64_t value;    /* CONST */
    int64_t bound;    /* SYMBOL: largest value, -1 unknown */
    const char *name; /* SYMBOL */
    const dim *ops;
    struct dim_expr *next;
};

typedef struct dim_table {
    struct dim_expr *buckets[1024];
    uint32_t count;
} dim_table;

typedef struct term {
    int64_t coeff;
    uint32_t n;
    dim atoms[MAX_ATOMS];
} term;

typedef struct poly {
    uint32_t n;
    bool overflow;
    term t[MAX_TERMS];
} poly;

static uint32_t hash_of(const struct dim_expr *e)
{
    uint64_t h = (uint64_t)e->kind * 31 + (uint64_t)e->value * 0x9e3779b97f4a7c15u + (uintptr_t)e->name;
    for (uint32_t i = 0; i < e->n; i++)
        h = (h ^ e->ops[i]->id) * 0x100000001b3u;
    return (uint32_t)(h >> 32 ^ h) % 1024;
}

static struct dim_expr *unique(compiler *c, const struct dim_expr *e)
{
    if (!c->dims)
        c->dims = arena_new(&c->mem, dim_table);
    struct dim_expr **bucket = &c->dims->buckets[hash_of(e)];
    for (struct dim_expr *k = *bucket; k; k = k->next)
        if (k->kind == e->kind && k->value == e->value && k->name == e->name && k->n == e->n &&
            (e->n == 0 || memcmp(k->ops, e->ops, e->n * sizeof *e->ops) == 0))
            return k;
    struct dim_expr *k = arena_new(&c->mem, struct dim_expr);
    *k = *e;
    if (e->n)
        k->ops = arena_copy(&c->mem, e->ops, e->n * sizeof *e->ops, _Alignof(dim));
    k->id = c->dims->count++;
    k->next = *bucket;
    *bucket = k;
    return k;
}

dim dim_const(compiler *c, int64_t v) { return unique(c, &(struct dim_expr){.kind = DIM_CONST, .value = v}); }

dim dim_symbol(compiler *c, const char *name, int64_t bound)
{
    struct dim_expr *k = unique(c, &(struct dim_expr){.kind = DIM_SYMBOL, .name = intern(c->names, name), .bound = -1});
    if (bound >= 0 && (k->bound < 0 || bound < k->bound))
        k->bound = bound;
    return k;
}

dim dim_fresh(compiler *c, const char *prefix, int64_t bound)
{
    return dim_symbol(c, arena_printf(&c->mem, "%s_%u", prefix, c->next_id++), bound);
}

static dim unknown(compiler *c) { return dim_symbol(c, "unknown", -1); }

/* --- polynomials ------------------------------------------------------------------------------------------------------- */

static void add_term(poly *p, const term *t)
{
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->t[i].n != t->n || memcmp(p->t[i].atoms, t->atoms, t->n * sizeof *t->atoms) != 0)
            continue;
        p->overflow |= !i64_add(p->t[i].coeff, t->coeff, &p->t[i].coeff);
        if (p->t[i].coeff == 0)
            p->t[i] = p->t[--p->n];
        return;
    }
    if (t->coeff == 0)
        return;
    if (p->n == MAX_TERMS)
        p->overflow = true;
    else
        p->t[p->n++] = *t;
}

static void add_scaled(poly *p, dim d, int64_t k)
{
    if (d->kind == DIM_ADD) {
        for (uint32_t i = 0; i < d->n; i++)
            add_scaled(p, d->ops[i], k);
        return;
    }
    term t = {.coeff = k};
    uint32_t n = d->kind == DIM_MUL ? d->n : 1;
    const dim *ops = d->kind == DIM_MUL ? d->ops : &d;
    for (uint32_t i = 0; i < n; i++) {
        if (ops[i]->kind == DIM_CONST)
            p->overflow |= !i64_mul(t.coeff, ops[i]->value, &t.coeff);
        else
            t.atoms[t.n++] = ops[i];
    }
    add_term(p, &t);
}

/* fixed order: by number of atoms falling, then by age, so that the constant comes last */
static bool before(const term *a, const term *b)
{
    if (a->n != b->n)
        return a->n > b->n;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->atoms[i] != b->atoms[i])
            return a->atoms[i]->id < b->atoms[i]->id;
    return false;
}

static dim term_dim(compiler *c, const term *t)
{
    dim ops[MAX_ATOMS + 1];
    uint32_t n = 0;
    if (t->n == 0)
        return dim_const(c, t->coeff);
    if (t->coeff != 1)
        ops[n++] = dim_const(c, t->coeff);
    for (uint32_t i = 0; i < t->n; i++)
        ops[n++] = t->atoms[i];
    return n == 1 ? ops[0] : unique(c, &(struct dim_expr){.kind = DIM_MUL, .n = n, .ops = ops});
}

static dim from_poly(compiler *c, poly *p)
{
    dim ops[MAX_TERMS];
    if (p->overflow)
        return unknown(c);
    for (uint32_t i = 1; i < p->n; i++) {
        term t = p->t[i];
        uint32_t j = i;
        for (; j > 0 && before(&t, &p->t[j - 1]); j--)
            p->t[j] = p->t[j - 1];
        p->t[j] = t;
    }
    for (uint32_t i = 0; i < p->n; i++)
        ops[i] = term_dim(c, &p->t[i]);
    if (p->n == 0)
        return dim_const(c, 0);
    return p->n == 1 ? ops[0] : unique(c, &(struct dim_expr){.kind = DIM_ADD, .n = p->n, .ops = ops});
}

dim dim_add(compiler *c, dim a, dim b)
{
    poly p = {.n = 0};
    add_scaled(&p, a, 1);
    add_scaled(&p, b, 1);
    return from_poly(c, &p);
}

dim dim_sub(compiler *c, dim a, dim b)
{
    poly p = {.n = 0};
    add_scaled(&p, a, 1);
    add_scaled(&p, b, -1);
    return from_poly(c, &p);
}

static void sorted_insert(term *t, dim atom)
{
    uint32_t j = t->n++;
    for (; j > 0 && atom->id < t->atoms[j - 1]->id; j--)
        t->atoms[j] = t->atoms[j - 1];
    t->atoms[j] = atom;
}

dim dim_mul(compiler *c, dim a, dim b)
{
    poly pa = {.n = 0}, pb = {.n = 0}, p = {.n = 0};
    add_scaled(&pa, a, 1);
    add_scaled(&pb, b, 1);
    p.overflow = pa.overflow || pb.overflow;
    for (uint32_t i = 0; i < pa.n; i++) {
        for (uint32_t j = 0; j < pb.n; j++) {
            term t = pa.t[i];
            if (t.n + pb.t[j].n > MAX_ATOMS || !i64_mul(t.coeff, pb.t[j].coeff, &t.coeff)) {
                p.overflow = true;
                continue;
            }
            for (uint32_t k = 0; k < pb.t[j].n; k++)
                sorted_insert(&t, pb.t[j].atoms[k]);
            add_term(&p, &t);
        }
    }
    return from_poly(c, &p);
}

static dim binary(compiler *c, dim_kind kind, dim a, dim b)
{
    dim ops[2] = {a, b};
    return unique(c, &(struct dim_expr){.kind = kind, .n = 2, .ops = ops});
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

dim dim_floordiv(compiler *c, dim a, dim b)
{
    int64_t k = b->kind == DIM_CONST ? b->value : 0;
    if (b->kind == DIM_CONST && k == 0)
        return unknown(c);
    if (k == 1 || a == dim_const(c, 0))
        return a;
    if (k == -1)
        return dim_sub(c, dim_const(c, 0), a);
    if (k && a->kind == DIM_CONST)
        return dim_const(c, floor_div(a->value, k));
    if (a == b)
        return dim_const(c, 1);
    if (k > 0) { /* terms that k divides come out: (k*x + r) // k = x + r // k */
        poly p = {.n = 0}, whole = {.n = 0}, rest = {.n = 0};
        add_scaled(&p, a, 1);
        for (uint32_t i = 0; i < p.n; i++) {
            term t = p.t[i];
            int64_t q = floor_div(t.coeff, k), r = t.coeff - q * k;
            term tq = t;
            tq.coeff = t.n == 0 ? q : r == 0 ? q : 0;
            t.coeff = t.n == 0 ? r : r == 0 ? 0 : t.coeff;
            add_term(&whole, &tq);
            add_term(&rest, &t);
        }
        dim w = from_poly(c, &whole), r = from_poly(c, &rest);
        if (r->kind == DIM_CONST)
            return dim_add(c, w, dim_const(c, floor_div(r->value, k)));
        return dim_add(c, w, binary(c, DIM_FLOORDIV, r, b));
    }
    return binary(c, DIM_FLOORDIV, a, b);
}

dim dim_ceildiv(compiler *c, dim a, dim b)
{
    return dim_floordiv(c, dim_add(c, a, dim_sub(c, b, dim_const(c, 1))), b);
}

dim dim_mod(compiler *c, dim a, dim b)
{
    if (b->kind == DIM_CONST && b->value == 0)
        return unknown(c);
    if (a->kind == DIM_CONST && b->kind == DIM_CONST)
        return dim_const(c, a->value - floor_div(a->value, b->value) * b->value);
    if (a == b || (b->kind == DIM_CONST && (b->value == 1 || b->value == -1)))
        return dim_const(c, 0);
    return binary(c, DIM_MOD, a, b);
}

static dim extremum(compiler *c, dim_kind kind, dim a, dim b)
{
    int64_t d = 0;
    if (a == b)
        return a;
    if (dim_is_const(dim_sub(c, a, b), &d))
        return (kind == DIM_MIN) == (d < 0) ? a : b;
    return a->id < b->id ? binary(c, kind, a, b) : binary(c, kind, b, a);
}

dim dim_min(compiler *c, dim a, dim b) { return extremum(c, DIM_MIN, a, b); }
dim dim_max(compiler *c, dim a, dim b) { return extremum(c, DIM_MAX, a, b); }

/* --- reading ---------------------------------------------------------------------------------------------------------- */

bool dim_is_const(dim d, int64_t *out)
{
    if (d->kind != DIM_CONST)
        return false;
    *out = d->value;
    return true;
}

bool dim_is(dim d, int64_t v) { return d->kind == DIM_CONST && d->value == v; }

/* Symbols are at least 0, so a sum of terms with positive factors is bounded by the bounds of its parts. */
int64_t dim_bound(dim d)
{
    int64_t r = d->kind == DIM_MUL ? 1 : 0;
    switch (d->kind) {
    case DIM_CONST: return d->value;
    case DIM_SYMBOL: return d->bound;
    case DIM_ADD:
    case DIM_MUL:
        for (uint32_t i = 0; i < d->n; i++) {
            int64_t b = dim_bound(d->ops[i]);
            bool constant = d->ops[i]->kind == DIM_CONST;
            if (d->kind == DIM_MUL && constant && b < 0)
                return 0; /* a negative multiple of something >= 0 */
            if ((b < 0 && !constant) || !(d->kind == DIM_ADD ? i64_add(r, b, &r) : i64_mul(r, b, &r)))
                return -1;
        }
        return r;
    case DIM_FLOORDIV: {
        int64_t a = dim_bound(d->ops[0]), k = 0;
        return a >= 0 && dim_is_const(d->ops[1], &k) && k > 0 ? a / k : -1;
    }
    case DIM_MOD: return dim_is_const(d->ops[1], &r) && r > 0 ? r - 1 : -1;
    case DIM_MIN:
    case DIM_MAX: {
        int64_t a = dim_bound(d->ops[0]), b = dim_bound(d->ops[1]);
        if (d->kind == DIM_MAX)
            return a < 0 || b < 0 ? -1 : a > b ? a : b;
        return a < 0 ? b : b < 0 ? a : a < b ? a : b;
    }
    }
    return -1;
}

const char *dim_symbol_name(dim d) { return d->kind == DIM_SYMBOL ? d->name : NULL; }
dim_kind dim_get_kind(dim d) { return d->kind; }

uint32_t dim_operands(dim d, const dim **out)
{
    *out = d->ops;
    return d->n;
}

dim dim_substitute(compiler *c, dim d, dim (*lookup)(void *ctx, const char *symbol), void *ctx)
{
    dim r = NULL;
    if (d->kind == DIM_CONST)
        return d;
    if (d->kind == DIM_SYMBOL)
        return (r = lookup(ctx, d->name)) ? r : d;
    dim acc = dim_substitute(c, d->ops[0], lookup, ctx);
    for (uint32_t i = 1; i < d->n; i++) {
        r = dim_substitute(c, d->ops[i], lookup, ctx);
        switch (d->kind) {
        case DIM_ADD: acc = dim_add(c, acc, r); break;
        case DIM_MUL: acc = dim_mul(c, acc, r); break;
        case DIM_FLOORDIV: acc = dim_floordiv(c, acc, r); break;
        case DIM_MOD: acc = dim_mod(c, acc, r); break;
        case DIM_MIN: acc = dim_min(c, acc, r); break;
        case DIM_MAX: acc = dim_max(c, acc, r); break;
        case DIM_CONST:
        case DIM_SYMBOL: break;
        }
    }
    return acc;
}

/* --- text -------------------------------------------------------------------------------------------------------------- */

static const char *const fn_names[] = {[DIM_FLOORDIV] = "floordiv", [DIM_MOD] = "mod", [DIM_MIN] = "min", [DIM_MAX] = "max"};

static bool plain_word(const char *s)
{
    static const char *const taken[] = {"floordiv", "mod", "min", "max", "inf", "nan"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(s, taken[i]) == 0)
            return false;
    bool ok = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_';
    for (; ok && *s; s++)
        ok = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') || *s == '_' || *s == '.';
    return ok;
}

void dim_print(writer *w, dim d)
{
    switch (d->kind) {
    case DIM_CONST: w_fmt(w, "%lld", (long long)d->value); return;
    case DIM_SYMBOL:
        if (plain_word(d->name))
            w_str(w, d->name);
        else
            w_quoted(w, d->name, strlen(d->name));
        return;
    case DIM_ADD:
    case DIM_MUL:
        for (uint32_t i = 0; i < d->n; i++) {
            if (i)
                w_str(w, d->kind == DIM_ADD ? " + " : "*");
            dim_print(w, d->ops[i]);
        }
        return;
    case DIM_FLOORDIV:
    case DIM_MOD:
    case DIM_MIN:
    case DIM_MAX:
        w_fmt(w, "%s(", fn_names[d->kind]);
        dim_print(w, d->ops[0]);
        w_str(w, ", ");
        dim_print(w, d->ops[1]);
        w_str(w, ")");
        return;
    }
}

static bool parse_sum(compiler *c, lexer *l, dim *out);

static bool parse_call(compiler *c, lexer *l, dim_kind kind, dim *out)
{
    dim a, b;
    lexer_next(l);
    if (!lexer_expect(l, "(") || !parse_sum(c, l, &a) || !lexer_expect(l, ",") || !parse_sum(c, l, &b) || !lexer_expect(l, ")"))
        return false;
    *out = kind == DIM_FLOORDIV ? dim_floordiv(c, a, b) : kind == DIM_MOD ? dim_mod(c, a, b) : kind == DIM_MIN ? dim_min(c, a, b) : dim_max(c, a, b);
    return true;
}

static bool parse_atom(compiler *c, lexer *l, dim *out)
{
    if (lexer_accept(l, "-")) {
        if (!parse_atom(c, l, out))
            return false;
        *out = dim_mul(c, *out, dim_const(c, -1));
        return true;
    }
    if (l->tok.kind == TOK_INT) {
        *out = dim_const(c, l->tok.i);
    } else if (l->tok.kind == TOK_IDENT || l->tok.kind == TOK_STRING) {
        for (dim_kind k = DIM_FLOORDIV; l->tok.kind == TOK_IDENT && k <= DIM_MAX; k++)
            if (strcmp(l->tok.text, fn_names[k]) == 0)
                return parse_call(c, l, k, out);
        *out = dim_symbol(c, l->tok.text, -1);
    } else {
        return lexer_error(l, "expected a dimension");
    }
    lexer_next(l);
    return true;
}

static bool parse_product(compiler *c, lexer *l, dim *out)
{
    dim b;
    if (!parse_atom(c, l, out))
        return false;
    while (lexer_accept(l, "*")) {
        if (!parse_atom(c, l, &b))
            return false;
        *out = dim_mul(c, *out, b);
    }
    return true;
}

static bool parse_sum(compiler *c, lexer *l, dim *out)
{
    dim b;
    if (++l->depth > LEXER_MAX_DEPTH)
        return lexer_error(l, "nesting too deep");
    bool ok = parse_product(c, l, out);
    while (ok && (lexer_is(l, "+") || lexer_is(l, "-"))) {
        bool minus = lexer_is(l, "-");
        lexer_next(l);
        ok = parse_product(c, l, &b);
        if (ok)
            *out = minus ? dim_sub(c, *out, b) : dim_add(c, *out, b);
    }
    l->depth--;
    return ok;
}

bool dim_parse(compiler *c, lexer *l, dim *out) { return parse_sum(c, l, out); }
