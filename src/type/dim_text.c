/* SPDX-License-Identifier: Apache-2.0 */
/* Dims as text, and with symbols replaced. Text is read back through the arithmetic, so what is printed comes back as
 * the same pointer. */
#include "type/dim_expr.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

typedef dim (*dim_operation)(compiler *c, dim a, dim b);

/* By dim_kind; the name of a function in text, NULL for the others. */
static const struct {
    const char *name;
    dim_operation apply;
} operations[] = {
    [DIM_CONST] = {NULL, NULL},
    [DIM_SYMBOL] = {NULL, NULL},
    [DIM_ADD] = {NULL, dim_add},
    [DIM_MUL] = {NULL, dim_mul},
    [DIM_FLOORDIV] = {"floordiv", dim_floordiv},
    [DIM_MOD] = {"mod", dim_mod},
    [DIM_MIN] = {"min", dim_min},
    [DIM_MAX] = {"max", dim_max},
};

/* "ceildiv" is read, never printed */
static dim_operation find_function(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (operations[i].name && strcmp(operations[i].name, name) == 0)
            return operations[i].apply;
    return strcmp(name, "ceildiv") == 0 ? dim_ceildiv : NULL;
}

dim dim_substitute(compiler *c, dim d, dim (*lookup)(void *ctx, const char *symbol), void *ctx)
{
    if (d->kind == DIM_CONST)
        return d;
    if (d->kind == DIM_SYMBOL) {
        dim to = lookup(ctx, d->name);
        return to ? to : d;
    }
    dim made = dim_substitute(c, d->ops[0], lookup, ctx);
    for (uint32_t i = 1; i < d->n_ops; i++)
        made = operations[d->kind].apply(c, made, dim_substitute(c, d->ops[i], lookup, ctx));
    return made;
}

/* --- printing --- */

static bool is_plain(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", more[] = "0123456789.";
    if (!*name || !strchr(letters, *name) || find_function(name) || strcmp(name, "inf") == 0 ||
        strcmp(name, "nan") == 0)
        return false;
    for (const char *s = name; *s; s++)
        if (!strchr(letters, *s) && !strchr(more, *s))
            return false;
    return true;
}

static void print_sum(writer *w, dim d);

static void print_factor(writer *w, dim d)
{
    if (d->kind == DIM_CONST) {
        w_fmt(w, "%" PRId64, d->value);
    } else if (d->kind == DIM_SYMBOL) {
        if (is_plain(d->name))
            w_str(w, d->name);
        else
            w_quoted(w, d->name, strlen(d->name));
    } else {
        assert(operations[d->kind].name);
        w_fmt(w, "%s(", operations[d->kind].name);
        print_sum(w, d->ops[0]);
        w_str(w, ", ");
        print_sum(w, d->ops[1]);
        w_str(w, ")");
    }
}

/* The coefficient of a term: its leading constant. */
static int64_t coefficient(dim term)
{
    int64_t v = 1;
    return dim_is_const(term->kind == DIM_MUL ? term->ops[0] : term, &v) ? v : 1;
}

/* A term without its sign. */
static void print_magnitude(writer *w, dim term)
{
    int64_t v = coefficient(term);
    uint64_t magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    if (term->kind == DIM_CONST) {
        w_fmt(w, "%" PRIu64, magnitude);
        return;
    }
    const dim *factors = term->kind == DIM_MUL ? term->ops : &term;
    uint32_t n = term->kind == DIM_MUL ? term->n_ops : 1, i = n > 1 && factors[0]->kind == DIM_CONST;
    if (i && magnitude != 1)
        w_fmt(w, "%" PRIu64 "*", magnitude);
    for (uint32_t first = i; i < n; i++) {
        w_str(w, i > first ? "*" : "");
        print_factor(w, factors[i]);
    }
}

static void print_sum(writer *w, dim d)
{
    const dim *terms = d->kind == DIM_ADD ? d->ops : &d;
    uint32_t n = d->kind == DIM_ADD ? d->n_ops : 1;
    for (uint32_t i = 0; i < n; i++) {
        bool minus = coefficient(terms[i]) < 0;
        w_str(w, i == 0 ? (minus ? "-" : "") : (minus ? " - " : " + "));
        print_magnitude(w, terms[i]);
    }
}

void dim_print(writer *w, dim d)
{
    print_sum(w, d);
}

/* --- parsing --- */

static bool parse_sum(compiler *c, lexer *l, dim *out);

static bool parse_function(compiler *c, lexer *l, dim_operation apply, dim *out)
{
    dim a, b;
    lexer_next(l);
    bool ok = lexer_expect(l, "(") && parse_sum(c, l, &a) && lexer_expect(l, ",") && parse_sum(c, l, &b) &&
              lexer_expect(l, ")");
    if (ok)
        *out = apply(c, a, b);
    return ok;
}

/* `minus`: the factor is wanted negated, so that INT64_MIN, whose magnitude is no int64, can be read. */
static bool parse_factor(compiler *c, lexer *l, bool minus, dim *out)
{
    while (lexer_accept(l, "-"))
        minus = !minus;
    if (l->tok.kind == TOK_UINT && minus && l->tok.i == INT64_MIN) {
        *out = dim_const(c, INT64_MIN);
        lexer_next(l);
        return true;
    }
    bool ok = true;
    if (l->tok.kind == TOK_INT) {
        *out = dim_const(c, l->tok.i);
        lexer_next(l);
    } else if (l->tok.kind == TOK_IDENT && find_function(l->tok.text)) {
        ok = parse_function(c, l, find_function(l->tok.text), out);
    } else if (l->tok.kind == TOK_IDENT || l->tok.kind == TOK_STRING) {
        *out = dim_symbol(c, l->tok.text, -1);
        lexer_next(l);
    } else if (lexer_accept(l, "(")) {
        ok = parse_sum(c, l, out) && lexer_expect(l, ")");
    } else {
        return lexer_error(l, "expected a dimension: a number, a name or an operation on them");
    }
    if (ok && minus)
        *out = dim_mul(c, *out, dim_const(c, -1));
    return ok;
}

static bool parse_product(compiler *c, lexer *l, bool minus, dim *out)
{
    dim factor;
    bool ok = parse_factor(c, l, minus, out);
    while (ok && lexer_accept(l, "*")) {
        ok = parse_factor(c, l, false, &factor);
        if (ok)
            *out = dim_mul(c, *out, factor);
    }
    return ok;
}

static bool parse_sum(compiler *c, lexer *l, dim *out)
{
    dim term;
    if (!lexer_enter(l))
        return false;
    bool ok = parse_product(c, l, false, out);
    while (ok && (lexer_is(l, "+") || lexer_is(l, "-"))) {
        bool minus = lexer_is(l, "-");
        lexer_next(l);
        ok = parse_product(c, l, minus, &term);
        if (ok)
            *out = dim_add(c, *out, term);
    }
    lexer_leave(l);
    return ok;
}

bool dim_parse(compiler *c, lexer *l, dim *out)
{
    dim d;
    *out = dim_const(c, 0);
    if (!parse_sum(c, l, &d))
        return false;
    *out = d;
    return true;
}
