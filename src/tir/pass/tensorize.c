/* SPDX-License-Identifier: Apache-2.0 */
/* tensorize: a region `attr [loop] "tensorize" = "name"` becomes the code of that intrinsic (tir/intrin.h). Region and
 * declared nest are brought to the same form: stores, each under its loops, with every access as a base and a stride
 * per loop. Then loops are paired in every way that there is, and for each the stores are compared; the pairing gives
 * the intrinsic's symbols their numbers and its operands their buffers. When none fits, the one that got furthest
 * explains why. */
#include "base/nearest.h"
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/intrin.h"
#include "tir/linear.h"
#include "tir/names.h"
#include "tir/node.h"
#include "tir/parse.h"
#include "tir/pass.h"
#include "tir/text.h"
#include "tir/walk.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_LOOPS 8u

/* A store and the loops around it in its nest, outermost first. */
typedef struct clause {
    tir_stmt *store;
    tir_stmt *loops[MAX_LOOPS];
    uint32_t n_loops;
} clause;

typedef struct nest {
    clause clauses[2];
    uint32_t n;
} nest;

/* What an operand of the intrinsic is in the region. */
typedef struct operand {
    const tir_buffer *buffer; /* NULL: not met yet */
    tir_expr_ref base;        /* index of its first element from the buffer's address */
} operand;

typedef struct bindings {
    tir_expr_ref symbols[TIR_INTRIN_SYMBOLS]; /* NULL: not met yet */
    operand operands[TIR_INTRIN_OPERANDS];
} bindings;

typedef struct matcher {
    compiler *c;
    tir_bounds *bounds;
    const char *node; /* the marked loop */
    tir_intrin row;
    tir_func *f; /* its nest */
    const tir_var *symbols[TIR_INTRIN_SYMBOLS];
    bindings b;
    const clause *region, *want;        /* the pair at hand */
    const tir_stmt *partner[MAX_LOOPS]; /* of each of want's loops: the region's; NULL: one iteration */
    uint32_t checks, most_checks;       /* passed in this attempt, and in the best one */
    const char *why;                    /* what stopped the best one */
    bool adds;                          /* the region is the update alone */
} matcher;

static bool mismatch(matcher *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool mismatch(matcher *m, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    if (m->why && m->checks <= m->most_checks)
        return false;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    m->why = arena_strdup(&m->c->mem, text);
    m->most_checks = m->checks;
    return false;
}

static const char *expr_text(matcher *m, tir_expr_ref e)
{
    writer w;
    writer_init(&w, &m->c->mem);
    tir_print_expr(&w, e);
    return w.data;
}

/* --- nests --- */

static const char *stored_in(tir_stmt *s)
{
    while (s && s->kind != TIR_STORE)
        s = s->kind == TIR_SEQ ? s->n_stmts ? s->stmts[s->n_stmts - 1] : NULL : s->body;
    return s ? s->buffer->name : "?";
}

static bool gather(matcher *m, tir_stmt *s, clause *at, nest *out)
{
    switch (s->kind) {
    case TIR_FOR:
        if (s->for_kind == FOR_PARALLEL || s->for_kind == FOR_VTHREAD)
            return mismatch(m, "loop %s is split among parts inside of it", s->var->name);
        if (at->n_loops == MAX_LOOPS)
            return mismatch(m, "it has more than %u loops", MAX_LOOPS);
        at->loops[at->n_loops++] = s;
        bool ok = gather(m, s->body, at, out);
        at->n_loops--;
        return ok;
    case TIR_SEQ:
        for (uint32_t i = 0; i < s->n_stmts; i++)
            if (!gather(m, s->stmts[i], at, out))
                return false;
        return true;
    case TIR_STORE:
        if (out->n == 2)
            return mismatch(m, "it has more than two stores, the third to %s", s->buffer->name);
        at->store = s;
        out->clauses[out->n++] = *at;
        return true;
    case TIR_IF: return mismatch(m, "a guard stands in it: %s", expr_text(m, s->cond));
    case TIR_ATTR:
        return mismatch(m,
                        "attribute \"%s\" of %s is in it: move the loop that %s is computed in to the outside "
                        "(reorder), or compute it elsewhere (compute_at)",
                        s->key, stored_in(s->body), stored_in(s->body));
    case TIR_ALLOCATE: return mismatch(m, "buffer %s is allocated in it", s->buffer->name);
    case TIR_LET:
    case TIR_EVALUATE:
    case TIR_ASSERT: return mismatch(m, "it has a statement that is neither a loop nor a store");
    }
    return false;
}

static void find_buffer(void *ctx, tir_expr_ref e)
{
    const tir_buffer **b = ctx;
    if (e->kind == TIR_LOAD && e->u.buffer == *b)
        *b = NULL;
}

/* Whether the store adds to what is there. */
static bool updates(const clause *k)
{
    const tir_buffer *b = k->store->buffer;
    tir_visit_expr(k->store->value, find_buffer, &b);
    return b == NULL;
}

/* --- accesses --- */

static tir_expr_ref flat(matcher *m, const tir_buffer *b, uint32_t n, tir_expr_ref const *idx)
{
    if (n == 1 && b->rank != 1)
        return idx[0]; /* flattened already */
    return tir_flat_index(m->c, n ? idx[0]->type.dt : DT_I64, b, idx);
}

static tir_expr_ref at_value(matcher *m, tir_expr_ref e, const tir_var *v, tir_expr_ref value)
{
    return tir_simplify(m->bounds, tir_substitute(m->c, e, 1, &v, &value));
}

/* A number that is read is the same in every iteration of loops that it does not depend on: a variable. */
static tir_expr_ref as_variable(tir_rewriter *r, tir_expr_ref e)
{
    const bool read = e->kind == TIR_LOAD && e->type.lanes == 1 && !tir_uses_var(e, r->ctx),
               cast = e->kind == TIR_CAST && e->args[0]->kind == TIR_VAR && e->args[0]->u.var != r->ctx &&
                      e->args[0]->type.dt == DT_I32;
    return read || cast ? tir_varref(r->c, tir_new_var(r->c, "number", e->type)) : e;
}

/* Elements from one iteration of the loop to the next. */
static tir_expr_ref stride(matcher *m, tir_expr_ref at, const tir_var *v)
{
    tir_expr_ref next = tir_add(m->c, tir_varref(m->c, v), tir_int(m->c, v->type.dt, 1));
    tir_rewriter reads = {.c = m->c, .ctx = (void *)(uintptr_t)v, .expr = as_variable};
    at = tir_rewrite_expr(&reads, at);
    return tir_simplify(m->bounds, tir_sub(m->c, at_value(m, at, v, next), at));
}

/* Index of the first element: all loops of the clause at their start. */
static tir_expr_ref first_element(matcher *m, const clause *k, tir_expr_ref at)
{
    for (uint32_t i = 0; i < k->n_loops; i++)
        at = at_value(m, at, k->loops[i]->var, k->loops[i]->min);
    return at;
}

/* The number that an expression of symbols stands for; a symbol that is a stride takes `have` when it is free. */
static bool number(matcher *m, tir_expr_ref e, int64_t have, int64_t *out)
{
    for (uint32_t i = 0; i < m->row.n_symbols; i++) {
        bool free_stride = !m->b.symbols[i] && m->row.symbols[i].max == 0;
        if (free_stride && e->kind == TIR_VAR && e->u.var == m->symbols[i])
            m->b.symbols[i] = tir_i64(m->c, have);
        if (m->b.symbols[i])
            e = at_value(m, e, m->symbols[i], m->b.symbols[i]);
    }
    return tir_is_int(e, out);
}

/* What a stride has to be a multiple of; 1: it is whatever it is, or no symbol alone. */
static int64_t stride_multiple(const matcher *m, tir_expr_ref want)
{
    for (uint32_t i = 0; i < m->row.n_symbols; i++)
        if (want->kind == TIR_VAR && want->u.var == m->symbols[i] && m->row.symbols[i].max == 0)
            return m->row.symbols[i].multiple > 0 ? m->row.symbols[i].multiple : 1;
    return 1;
}

static bool match_strides(matcher *m, const tir_buffer *b, const char *name, tir_expr_ref want, tir_expr_ref have)
{
    for (uint32_t i = 0; i < m->want->n_loops; i++) {
        const tir_stmt *loop = m->partner[i];
        int64_t s = 0, w = 0;
        if (!loop)
            continue;
        if (!tir_is_int(stride(m, have, loop->var), &s))
            return mismatch(m, "operand %s: %s has no constant stride along loop %s", name, b->name, loop->var->name);
        const int64_t multiple = stride_multiple(m, stride(m, want, m->want->loops[i]->var));
        if (s % multiple != 0)
            return mismatch(m, "operand %s: %s has stride %" PRId64 " along loop %s, %s wants a multiple of %" PRId64,
                            name, b->name, s, loop->var->name, m->row.name, multiple);
        if (!number(m, stride(m, want, m->want->loops[i]->var), s, &w))
            return mismatch(m, "operand %s: its stride along %s is not known", name, m->want->loops[i]->var->name);
        if (s != w)
            return mismatch(m, "operand %s: %s has stride %" PRId64 " along loop %s, %s wants %" PRId64 " along %s",
                            name, b->name, s, loop->var->name, m->row.name, w, m->want->loops[i]->var->name);
        m->checks++;
    }
    return true;
}

static const char *scope_of(const tir_buffer *b)
{
    static const char *const texts[] = {
#define X(id, text) [id] = text,
        TIR_SCOPES(X)
#undef X
    };
    return b->scope == SCOPE_CUSTOM ? b->scope_name : texts[b->scope];
}

static bool is_aligned(matcher *m, tir_expr_ref base, int64_t elements)
{
    linear l;
    return elements <= 1 ||
           (linear_of(m->bounds, base, &l) && linear_gcd(&l) % elements == 0 && l.constant % elements == 0);
}

static bool bind(matcher *m, uint32_t i, const tir_buffer *b, tir_expr_ref base)
{
    const tir_buffer *p = m->f->params[i];
    operand *o = &m->b.operands[i];
    if (o->buffer)
        return (o->buffer == b && tir_expr_equal(o->base, base)) ||
               mismatch(m, "operand %s is %s at %s in one place and %s at %s in another", p->name, o->buffer->name,
                        expr_text(m, o->base), b->name, expr_text(m, base));
    if (b->dt != p->dt)
        return mismatch(m, "operand %s: %s holds %s, %s wants %s", p->name, b->name, dtype_full_name(b->dt),
                        m->row.name, dtype_full_name(p->dt));
    if (m->row.scopes[i] && strcmp(m->row.scopes[i], scope_of(b)) != 0)
        return mismatch(m, "operand %s: %s lives in %s, %s wants %s (set_scope)", p->name, b->name, scope_of(b),
                        m->row.name, m->row.scopes[i]);
    if (b->rank == 1 && b->strides)
        return mismatch(m, "operand %s: %s is a vector with strides", p->name, b->name);
    if (!is_aligned(m, base, p->align / (int64_t)dtype_bytes(p->dt)))
        return mismatch(m, "operand %s: it starts at element %s of %s, which is not a multiple of %u", p->name,
                        expr_text(m, base), b->name, (unsigned)(p->align / dtype_bytes(p->dt)));
    *o = (operand){b, base};
    m->checks++;
    return true;
}

static bool match_access(matcher *m, const tir_buffer *want, uint32_t n_want, tir_expr_ref const *want_idx,
                         const tir_buffer *have, uint32_t n, tir_expr_ref const *idx)
{
    tir_expr_ref at = tir_simplify(m->bounds, flat(m, have, n, idx)),
                 want_at = tir_simplify(m->bounds, flat(m, want, n_want, want_idx));
    for (uint32_t i = 0; i < m->f->n_params; i++)
        if (m->f->params[i] == want)
            return bind(m, i, have, first_element(m, m->region, at)) && match_strides(m, have, want->name, want_at, at);
    return false;
}

/* --- values --- */

static bool match_value(matcher *m, tir_expr_ref want, tir_expr_ref have);

static bool match_args(matcher *m, tir_expr_ref want, tir_expr_ref have, bool swapped)
{
    for (uint32_t i = 0; i < want->n_args; i++)
        if (!match_value(m, want->args[i], have->args[swapped ? 1 - i : i]))
            return false;
    return true;
}

static bool is_commutative(tir_expr_ref e)
{
    if (e->kind != TIR_BINOP)
        return false;
    switch (e->op) {
    case TIR_ADD:
    case TIR_MUL:
    case TIR_MIN:
    case TIR_MAX:
    case TIR_EQ:
    case TIR_NE:
    case TIR_BITAND:
    case TIR_BITOR:
    case TIR_BITXOR: return true;
    default: return false;
    }
}

/* --- sums and products of integers: the same whatever the order of their terms --- */

#define MAX_TERMS 8u

typedef struct terms {
    tir_expr_ref list[MAX_TERMS];
    uint32_t n; /* more than MAX_TERMS: not all of them stand there */
} terms;

static void add_terms(tir_op op, tir_expr_ref e, terms *out)
{
    if (e->kind == TIR_BINOP && e->op == op) {
        add_terms(op, e->args[0], out);
        add_terms(op, e->args[1], out);
    } else if (out->n++ < MAX_TERMS) {
        out->list[out->n - 1] = e;
    }
}

/* Gives the wanted terms from number i on one each of those that are not taken. */
static bool match_terms(matcher *m, const terms *want, const terms *have, uint32_t i, uint32_t taken)
{
    const bindings before = m->b;
    const uint32_t checks = m->checks;
    if (i == want->n)
        return true;
    for (uint32_t k = 0; k < have->n; k++) {
        if ((taken & 1u << k) == 0 && match_value(m, want->list[i], have->list[k]) &&
            match_terms(m, want, have, i + 1, taken | 1u << k))
            return true;
        m->b = before;
        m->checks = checks;
    }
    return false;
}

static bool is_integer_chain(tir_expr_ref e)
{
    return e->kind == TIR_BINOP && (e->op == TIR_ADD || e->op == TIR_MUL) && !dtype_is_float(e->type.dt);
}

static bool match_chain(matcher *m, tir_expr_ref want, tir_expr_ref have)
{
    terms w = {.n = 0}, h = {.n = 0};
    add_terms(want->op, want, &w);
    add_terms(want->op, have, &h);
    if (w.n != h.n || w.n > MAX_TERMS)
        return mismatch(m, "it computes %s, and %s has %s", expr_text(m, have), m->row.name, expr_text(m, want));
    m->checks++;
    return match_terms(m, &w, &h, 0, 0);
}

static bool same_head(tir_expr_ref a, tir_expr_ref b)
{
    return a->kind == b->kind && a->op == b->op && a->type.dt == b->type.dt && a->type.lanes == b->type.lanes &&
           a->n_args == b->n_args;
}

/* A loop's number in the values that it makes, from 0 on in both. */
static bool is_partner(const matcher *m, tir_expr_ref want, tir_expr_ref have)
{
    if (want->kind != TIR_VAR || have->kind != TIR_VAR)
        return false;
    for (uint32_t i = 0; i < m->want->n_loops; i++)
        if (m->want->loops[i]->var == want->u.var)
            return m->partner[i] && m->partner[i]->var == have->u.var && tir_is_const(m->partner[i]->min, 0);
    return false;
}

static bool match_value(matcher *m, tir_expr_ref want, tir_expr_ref have)
{
    if (is_partner(m, want, have))
        return true;
    if (want->kind == TIR_LOAD && have->kind == TIR_LOAD)
        return match_access(m, want->u.buffer, want->n_args, want->args, have->u.buffer, have->n_args, have->args);
    if (!same_head(want, have) || (want->n_args == 0 && !tir_expr_equal(want, have)))
        return mismatch(m, "it computes %s, and %s has %s", expr_text(m, have), m->row.name, expr_text(m, want));
    if (is_integer_chain(want))
        return match_chain(m, want, have);
    m->checks++;
    bindings before = m->b;
    uint32_t checks = m->checks;
    if (match_args(m, want, have, false))
        return true;
    if (!is_commutative(want))
        return false;
    m->b = before;
    m->checks = checks;
    return match_args(m, want, have, true);
}

/* --- loops --- */

/* The extent of a declared loop takes the number of iterations that the region has. */
static bool match_extent(matcher *m, const tir_stmt *want, const tir_stmt *have)
{
    int64_t n = 1, w = 0;
    const char *name = have ? have->var->name : "";
    if (have && !tir_is_int(have->extent, &n))
        return mismatch(m, "loop %s has no constant extent", name);
    for (uint32_t i = 0; i < m->row.n_symbols; i++) {
        const tir_intrin_symbol *s = &m->row.symbols[i];
        if (want->extent->kind != TIR_VAR || want->extent->u.var != m->symbols[i] || m->b.symbols[i])
            continue;
        if (n < s->min || n > s->max || n % s->multiple != 0)
            return mismatch(
                m, "loop %s has %" PRId64 " iterations, %s of %s takes %" PRId64 " to %" PRId64 " in steps of %" PRId64,
                name, n, want->var->name, m->row.name, s->min, s->max, s->multiple);
        m->b.symbols[i] = tir_i64(m->c, n);
    }
    if (!number(m, want->extent, n, &w) || n != w)
        return have ? mismatch(m, "loop %s has %" PRId64 " iterations, %s of %s has %" PRId64, name, n, want->var->name,
                               m->row.name, w)
                    : mismatch(m, "no loop matches %s of %s, which has %" PRId64 " iterations", want->var->name,
                               m->row.name, w);
    m->checks++;
    return true;
}

/* The value that is wanted; loops for which the region has none stand still. */
static tir_expr_ref value_wanted(matcher *m)
{
    tir_expr_ref e = m->want->store->value;
    for (uint32_t i = 0; i < m->want->n_loops; i++)
        if (!m->partner[i])
            e = at_value(m, e, m->want->loops[i]->var, m->want->loops[i]->min);
    return e;
}

static bool match_paired(matcher *m)
{
    const clause *w = m->want, *r = m->region;
    for (uint32_t i = 0; i < w->n_loops; i++)
        if (!match_extent(m, w->loops[i], m->partner[i]))
            return false;
    return match_access(m, w->store->buffer, w->store->n_indices, w->store->indices, r->store->buffer,
                        r->store->n_indices, r->store->indices) &&
           match_value(m, value_wanted(m), r->store->value);
}

/* Tries all ways to give the region's loops from number `next` on a declared loop each. */
static bool pair_loops(matcher *m, uint32_t next)
{
    if (next == m->region->n_loops) {
        bindings before = m->b;
        uint32_t checks = m->checks;
        if (match_paired(m))
            return true;
        m->b = before;
        m->checks = checks;
        return false;
    }
    if (tir_is_const(m->region->loops[next]->extent, 1))
        return pair_loops(m, next + 1);
    for (uint32_t i = 0; i < m->want->n_loops; i++) {
        if (m->partner[i])
            continue;
        m->partner[i] = m->region->loops[next];
        if (pair_loops(m, next + 1))
            return true;
        m->partner[i] = NULL;
    }
    return false;
}

/* Loops that run more than once, as far as constants tell. */
static uint32_t count_loops(const clause *k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->n_loops; i++)
        n += !tir_is_const(k->loops[i]->extent, 1);
    return n;
}

static bool match_clause(matcher *m, const clause *want, const clause *have)
{
    uint32_t most = count_loops(want), n = count_loops(have);
    m->want = want;
    m->region = have;
    memset(m->partner, 0, sizeof m->partner);
    if (n > most)
        return mismatch(m, "%u loops are around %s, %s has %u there", n, have->store->buffer->name, m->row.name,
                        most);
    return pair_loops(m, 0);
}

/* --- the code --- */

static tir_expr_ref place_symbols(matcher *m, tir_expr_ref e)
{
    for (uint32_t i = 0; i < m->row.n_symbols; i++) {
        tir_expr_ref value = m->b.symbols[i] ? m->b.symbols[i] : tir_i64(m->c, 0); /* a loop that is not there */
        e = tir_substitute(m->c, e, 1, &m->symbols[i], &value);
    }
    return e;
}

/* Index of an operand's element in the buffer that it is. */
static tir_expr_ref place_index(matcher *m, uint32_t i, uint32_t n, tir_expr_ref const *idx)
{
    return tir_add(m->c, m->b.operands[i].base, place_symbols(m, flat(m, m->f->params[i], n, idx)));
}

static uint32_t operand_of(const matcher *m, const tir_buffer *b)
{
    uint32_t i = 0;
    while (i < m->f->n_params && m->f->params[i] != b)
        i++;
    return i;
}

static tir_expr_ref place_expr(tir_rewriter *r, tir_expr_ref e)
{
    matcher *m = r->ctx;
    if (e->kind == TIR_VAR)
        return place_symbols(m, e);
    uint32_t i = tir_is_access(e) ? operand_of(m, e->u.buffer) : m->f->n_params;
    if (i == m->f->n_params)
        return e;
    tir_expr_ref at = place_index(m, i, e->n_args, e->args);
    return tir_node_access(r->c, e, m->b.operands[i].buffer, 1, &at);
}

static tir_stmt *place_store(tir_rewriter *r, tir_stmt *s)
{
    matcher *m = r->ctx;
    uint32_t i = s->kind == TIR_STORE ? operand_of(m, s->buffer) : m->f->n_params;
    if (i == m->f->n_params)
        return s;
    tir_expr_ref at = place_index(m, i, s->n_indices, s->indices);
    return tir_store(r->c, m->b.operands[i].buffer, 1, &at, s->value);
}

static uint32_t names_of(const matcher *m, parser_name *names)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->row.n_symbols; i++)
        names[n++] = (parser_name){m->row.symbols[i].name, m->symbols[i], NULL};
    for (uint32_t i = 0; m->f && i < m->f->n_params; i++)
        names[n++] = (parser_name){m->f->params[i]->name, NULL, m->f->params[i]};
    return n;
}

static tir_stmt *place_code(matcher *m, const char *text)
{
    parser_name names[TIR_INTRIN_SYMBOLS + TIR_INTRIN_OPERANDS];
    tir_stmt *s = parse_stmts_over(m->c, m->row.name, text, names_of(m, names), names);
    tir_rewriter r = {.c = m->c, .ctx = m, .expr = place_expr, .stmt = place_store};
    return s ? tir_rewrite_stmt(&r, s) : NULL;
}

/* The first symbol is how many units the result's vectors have; the others are arguments. */
static void add_symbols(matcher *m, bool lanes, tir_expr_ref *args, uint32_t *n)
{
    for (uint32_t i = lanes && m->row.n_symbols > 0; i < m->row.n_symbols; i++)
        args[(*n)++] = m->b.symbols[i] ? m->b.symbols[i] : tir_i64(m->c, 0); /* a loop that is not there */
}

/* Where the elements begin that unit `at` of the first symbol has. */
static tir_expr_ref element(matcher *m, const tir_instr_form *f, uint32_t param, uint32_t at)
{
    tir_expr_ref base = m->b.operands[param].base;
    return tir_add(m->c, base, tir_int(m->c, base->type.dt, (int64_t)at * f->per_lane[param]));
}

/* As an argument: an address, or the elements that `units` units from `at` on have. */
static tir_expr_ref argument(matcher *m, const tir_instr_form *f, uint32_t i, uint32_t at, uint32_t units)
{
    const uint32_t p = tir_instr_param(f->row, i);
    const tir_buffer *b = m->b.operands[p].buffer;
    tir_expr_ref first = element(m, f, p, at);
    if (tir_instr_by_address(f->row, i))
        return tir_address(m->c, b, 1, &first);
    tir_expr_ref all = tir_ramp(m->c, first, tir_int(m->c, first->type.dt, 1),
                                (uint16_t)(f->fixed[p] + f->per_lane[p] * units));
    return tir_load(m->c, b, 1, &all);
}

/* Of a result by value: a store of the instruction's vector. */
static tir_stmt *place_vector(matcher *m, const tir_instr_form *f, uint32_t at, uint32_t units)
{
    tir_expr_ref args[TIR_INTRIN_OPERANDS + TIR_INTRIN_SYMBOLS];
    uint32_t n = 0;
    for (; n < f->n_operands; n++)
        args[n] = argument(m, f, n, at, units);
    add_symbols(m, true, args, &n);
    return tir_store(m->c, args[0]->u.buffer, 1, args[0]->args, tir_instr(m->c, f->row, TIR_ADD, n, args));
}

/* The first symbol of the region in vectors of lanes that are powers of two, the longest first. */
static tir_stmt *place_vectors(matcher *m, const tir_instr_form *f)
{
    tir_stmt *parts[64];
    uint32_t count = 0;
    int64_t units = 1;
    if (m->row.n_symbols > 0 && m->b.symbols[0])
        (void)tir_is_int(m->b.symbols[0], &units);
    if (m->row.lanes > 0)
        return place_vector(m, f, 0, (uint32_t)tir_instr_units(f, m->row.lanes));
    for (uint32_t at = 0, n; at < units; at += n) {
        for (n = 1; 2 * n <= units - at; n *= 2)
            continue;
        parts[count++] = place_vector(m, f, at, n);
    }
    return count == 1 ? parts[0] : tir_seq(m->c, count, parts);
}

static tir_stmt *place_instr(matcher *m, const tir_intrin *row)
{
    tir_expr_ref args[TIR_INTRIN_OPERANDS + TIR_INTRIN_SYMBOLS];
    const tir_instr_form *f = tir_instr_form_of(m->c, row);
    uint32_t n = 0;
    if (!f || tir_instr_gives_value(row))
        return f ? place_vectors(m, f) : NULL;
    for (; n < f->n_operands; n++)
        args[n] = argument(m, f, n, 0, 1);
    add_symbols(m, false, args, &n);
    return tir_evaluate(m->c, tir_instr(m->c, row, m->adds || !f->whole ? TIR_ADD : TIR_OP_NONE, n, args));
}

/* --- the pass --- */

static bool declare(matcher *m)
{
    parser_name names[TIR_INTRIN_SYMBOLS];
    if (m->row.configure && !m->row.configure(m->c, &m->row))
        return false;
    for (uint32_t i = 0; i < m->row.n_symbols; i++)
        m->symbols[i] = tir_new_var(m->c, m->row.symbols[i].name, TIR_I64);
    m->f = parse_function_over(m->c, m->row.name, m->row.nest, names_of(m, names), names);
    if (m->f && m->f->n_params > TIR_INTRIN_OPERANDS)
        return diag_error(&m->c->diags, DIAG_USAGE, src_loc_none(), "intrinsic %s has more than %u operands",
                          m->row.name, TIR_INTRIN_OPERANDS);
    return m->f != NULL;
}

/* The code that stands for the region; NULL when it does not match, with m->why. */
static const char *match_region(matcher *m, tir_stmt *body)
{
    nest want = {0}, have = {0};
    clause at = {0};
    const char *text = m->row.body;
    if (!gather(m, m->f->body, &at, &want) || !gather(m, body, &at, &have))
        return NULL;
    bool sum = want.n == 2, whole = have.n == want.n;
    if (have.n == 0 || have.n > want.n) {
        (void)mismatch(m, "it has %u stores, %s has %u", have.n, m->row.name, want.n);
        return NULL;
    }
    if (whole) {
        for (uint32_t i = want.n; i-- > 0;) /* the sum says most about the loops */
            if (!match_clause(m, &want.clauses[i], &have.clauses[i]))
                return NULL;
    } else {
        bool adds = updates(&have.clauses[0]);
        if (!match_clause(m, &want.clauses[adds], &have.clauses[0]))
            return NULL;
        text = adds ? m->row.update : m->row.reset;
        m->adds = adds;
    }
    if (!text)
        (void)mismatch(m, "%s has no code for this part: %s", m->row.name,
                       whole && sum ? "tensorize a loop inside the reduction" : "the other one is all that it does");
    return text;
}

static void note_loop(void *ctx, tir_stmt *s)
{
    writer *w = ctx;
    if (s->kind != TIR_FOR)
        return;
    w_fmt(w, "%s%s < ", w->len ? ", " : "", s->var->name);
    tir_print_expr(w, s->extent);
}

/* A nest that depends on the configuration of the target is not the same for all readers. */
static void hint_of_nest(matcher *m)
{
    writer w;
    if (!m->row.configure)
        return;
    writer_init(&w, &m->c->mem);
    tir_visit_stmt(m->f->body, note_loop, NULL, &w);
    diag_hint(&m->c->diags, "%s has the loops %.*s on the device %s", m->row.name, (int)w.len, w.data, m->row.device);
}

typedef struct state {
    tir_bounds *bounds;
    src_loc loc; /* of the function */
    bool ok;
} state;

static tir_stmt *tensorize(tir_rewriter *r, tir_stmt *s)
{
    state *st = r->ctx;
    if (s->kind != TIR_ATTR || strcmp(s->key, "tensorize") != 0 || !st->ok)
        return s;
    const char *name = s->value->kind == TIR_EXTERN ? s->value->u.name : "";
    const tir_intrin *row = tir_find_intrin(r->c, name);
    if (!row) {
        st->ok = diag_error(&r->c->diags, DIAG_VERIFY, st->loc, "tensorize: there is no intrinsic '%s'", name);
        diag_hint(&r->c->diags, "%sintrinsics are: %s", nearest_in(name, tir_list_intrins(r->c), &r->c->mem),
                  tir_list_intrins(r->c));
        return s;
    }
    matcher m = {.c = r->c, .bounds = st->bounds, .node = s->node, .row = *row};
    st->ok = declare(&m);
    const char *text = st->ok ? match_region(&m, s->body) : NULL;
    if (st->ok && !text) {
        (void)diag_error(&r->c->diags, DIAG_VERIFY, st->loc, "tensorize %s.%s %s: the region does not match: %s",
                         stored_in(s->body), s->node, name, m.why);
        hint_of_nest(&m);
    }
    const bool is_instr = text && strcmp(text, TIR_INSTRUCTION) == 0;
    tir_stmt *code = is_instr ? place_instr(&m, row) : text ? place_code(&m, text) : NULL;
    st->ok = code != NULL;
    return code ? code : s;
}

bool tir_pass_tensorize(compiler *c, tir_func *f)
{
    state st = {tir_bounds_new(c), f->loc, true};
    tir_rewriter r = {.c = c, .ctx = &st, .stmt = tensorize};
    tir_stmt *s = tir_rewrite_stmt(&r, f->body);
    if (s != f->body)
        f->body = tir_simplify_stmt(c, s);
    return st.ok;
}
