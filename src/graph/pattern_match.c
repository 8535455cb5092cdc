/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a pattern's last node can be a given node of a graph, and if not, why. If there are several ways
 * (operands that may be swapped, a node that may be missing), the first one that fits is used. Bindings that were made
 * on another way are undone. */
#include "graph/pattern.h"

#include "graph/text.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define MAX_STEPS 4096u /* nodes tried from one node of the graph: swaps nest */

typedef struct matcher {
    compiler *c;
    arena *scratch;
    const graph_pattern *p;
    graph_match *m;
} matcher;

static bool refuse(matcher *k, const graph_node *at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static bool refuse(matcher *k, const graph_node *at, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    if (k->m->why && k->m->n_matched <= k->m->why_matched)
        return false;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    k->m->why = arena_printf(k->scratch, "%s: %s", k->p->name, text);
    k->m->why_matched = k->m->n_matched;
    k->m->refused = at;
    return false;
}

static void note(matcher *k, pattern_bound kind, uint32_t i)
{
    k->m->trail[k->m->n_trail].kind = kind;
    k->m->trail[k->m->n_trail++].i = i;
}

static void undo(matcher *k, uint32_t to)
{
    graph_match *m = k->m;
    while (m->n_trail > to) {
        const struct pattern_step *s = &m->trail[--m->n_trail];
        switch (s->kind) {
        case BOUND_VAR:
            m->bound[s->i] = false;
            m->values[s->i] = NULL;
            break;
        case BOUND_NODE:
            m->nodes[s->i] = NULL;
            m->n_matched--;
            break;
        case BOUND_SKIP: m->skipped[s->i] = false; break;
        case BOUND_SYMBOL: m->symbols[s->i] = NULL; break;
        }
    }
}

/* --- values --- */

static void print_asked(writer *w, const graph_pattern *p, const pattern_type *t)
{
    w_str(w, t->constant ? "constant " : "");
    for (uint32_t i = 0; i < t->n_dtypes; i++)
        w_fmt(w, "%s%s", i ? "|" : "", dtype_name(t->dtypes[i]));
    w_str(w, t->n_dtypes ? "" : "_");
    if (t->rank >= 0)
        w_str(w, "[");
    for (int32_t i = 0; i < t->rank; i++) {
        w_str(w, i ? ", " : "");
        if (t->extents[i].kind == EXTENT_NUMBER)
            w_fmt(w, "%lld", (long long)t->extents[i].number);
        else
            w_str(w, t->extents[i].kind == EXTENT_SYMBOL ? p->symbols[t->extents[i].number] : "_");
    }
    if (t->rank >= 0)
        w_str(w, !t->more ? "]" : t->rank ? ", *]" : "*]");
    if (t->has_number) {
        w_str(w, " = ");
        w_float(w, t->number, 64);
    }
}

static bool refuse_type(matcher *k, const graph_node *at, const pattern_var *v, const graph_value *value)
{
    writer is, asked;
    writer_init(&is, k->scratch);
    writer_init(&asked, k->scratch);
    type_print(&is, &value->type);
    print_asked(&asked, k->p, &v->type);
    return refuse(k, at, "%%%s is %s%.100s, and has to be %.150s", v->name, graph_constant(value) ? "constant " : "",
                  is.data, asked.data);
}

static bool has_extent(matcher *k, const pattern_extent *e, dim d)
{
    switch (e->kind) {
    case EXTENT_ANY: return true;
    case EXTENT_NUMBER: return dim_is(d, e->number);
    case EXTENT_SYMBOL:
        if (k->m->symbols[e->number])
            return dim_equal(k->m->symbols[e->number], d);
        k->m->symbols[e->number] = d;
        note(k, BOUND_SYMBOL, (uint32_t)e->number);
        return true;
    }
    return false;
}

static bool has_shape(matcher *k, const pattern_type *t, shape s)
{
    bool ok = t->rank < 0 || s.rank == t->rank || (t->more && s.rank > t->rank);
    for (int32_t i = 0; i < t->rank && ok; i++)
        ok = has_extent(k, &t->extents[i], s.dims[i]);
    return ok;
}

static bool is_number(const tensor_data *t, double number)
{
    int64_t count = t->kind == TENSOR_SPLAT ? 1 : t->count;
    if (!dtype_usable(t->dt))
        return false;
    for (int64_t i = 0; i < count; i++)
        if (tensor_get_f64(t, i) != number)
            return false;
    return true;
}

static bool has_type(matcher *k, const pattern_type *t, const graph_value *value)
{
    const tensor_data *data = graph_constant(value);
    bool dtype_fits = t->n_dtypes == 0;
    if (value->type.kind != TYPE_TENSOR || (t->constant && !data) || (t->has_number && !is_number(data, t->number)))
        return false;
    for (uint32_t i = 0; i < t->n_dtypes; i++)
        dtype_fits |= t->dtypes[i] == value->type.dt;
    return dtype_fits && has_shape(k, t, value->type.shape);
}

static void set_var(matcher *k, uint32_t var, graph_value *value)
{
    k->m->bound[var] = true;
    k->m->values[var] = value;
    note(k, BOUND_VAR, var);
}

/* `at`: the node whose operand or result it is. */
static bool bind(matcher *k, const graph_node *at, uint32_t var, graph_value *value)
{
    const pattern_var *v = &k->p->vars[var];
    if (k->m->bound[var])
        return k->m->values[var] == value || refuse(k, at, "%%%s is not the same value everywhere", v->name);
    if (!has_type(k, &v->type, value))
        return refuse_type(k, at, v, value);
    set_var(k, var, value);
    return true;
}

/* --- attributes --- */

static bool compares(pattern_test test, double a, double b)
{
    switch (test) {
    case TEST_EQUAL: return a == b;
    case TEST_OTHER: return a != b;
    case TEST_MOST: return a <= b;
    case TEST_LEAST: return a >= b;
    }
    return false;
}

static bool fits_value(const pattern_attr *a, const attr *have, const attr *asked)
{
    if (a->test >= TEST_MOST && have->kind == ATTR_INT)
        return compares(a->test, (double)have->u.i, (double)asked->u.i);
    if (a->test >= TEST_MOST)
        return compares(a->test, have->u.f, asked->u.f);
    return attr_equal(have, asked) == (a->test == TEST_EQUAL);
}

/* The list is one of the lists, or each of its elements one of the numbers; of != neither it nor any element. */
static bool fits_list(const pattern_attr *a, const attr *have)
{
    bool listed = false, numbers = false, each = true;
    for (uint32_t v = 0; v < a->n_values; v++) {
        numbers |= a->values[v].kind == ATTR_INT;
        listed |= a->values[v].kind == ATTR_INTS && attr_equal(have, &a->values[v]);
    }
    for (uint32_t i = 0; i < have->n; i++) {
        bool all = true, any = false;
        for (uint32_t v = 0; v < a->n_values; v++) {
            bool ok = a->values[v].kind == ATTR_INT &&
                      compares(a->test, (double)have->u.ints[i], (double)a->values[v].u.i);
            all &= ok || a->values[v].kind == ATTR_INTS;
            any |= ok;
        }
        each &= a->test == TEST_OTHER ? all : any;
    }
    return a->test == TEST_OTHER ? !listed && each : listed || (numbers && each);
}

/* One of the values; of != none of them. */
static bool fits(const pattern_attr *a, const attr *have)
{
    bool all = true, any = false;
    if (have->kind == ATTR_INTS)
        return fits_list(a, have);
    for (uint32_t i = 0; i < a->n_values; i++) {
        bool ok = fits_value(a, have, &a->values[i]);
        all &= ok;
        any |= ok;
    }
    return a->test == TEST_OTHER ? all : any;
}

static bool refuse_attr(matcher *k, const graph_node *n, const pattern_attr *a, const attr *have)
{
    static const char *const words[] = {
#define X(id, sign, text) text,
        PATTERN_TESTS(X)
#undef X
    };
    writer is, asked;
    writer_init(&is, k->scratch);
    writer_init(&asked, k->scratch);
    graph_print_attr(&is, have);
    w_str(&asked, words[a->test]);
    for (uint32_t i = 0; i < a->n_values; i++) {
        w_str(&asked, i ? " or " : "");
        graph_print_attr(&asked, &a->values[i]);
    }
    return refuse(k, n, "%s of %s is %.100s, and has to be %.150s", a->name, n->op->name, is.data, asked.data);
}

static bool match_attrs(matcher *k, const pattern_node *pn, const graph_node *n)
{
    for (uint32_t i = 0; i < pn->n_attrs; i++) {
        const attr *have = graph_attr(n, pn->attrs[i].name);
        if (have && !fits(&pn->attrs[i], have))
            return refuse_attr(k, n, &pn->attrs[i], have);
    }
    return true;
}

/* --- nodes --- */

static bool match_node(matcher *k, uint32_t i, graph_node *n);

static bool match_value(matcher *k, const graph_node *at, uint32_t var, graph_value *value)
{
    const pattern_var *v = &k->p->vars[var];
    graph_match *m = k->m;
    if (v->node == PATTERN_NONE)
        return bind(k, at, var, value);
    if (m->nodes[v->node])
        return m->values[var] == value || refuse(k, at, "%%%s is not the same value everywhere", v->name);
    const pattern_node *pn = &k->p->nodes[v->node];
    if (m->skipped[v->node])
        return match_value(k, at, pn->operands[0].var, value);
    uint32_t mark = k->m->n_trail;
    graph_node *def = value->def;
    if (def && value->index == v->result && match_node(k, v->node, def))
        return true;
    undo(k, mark);
    if (!pn->optional)
        return false;
    m->skipped[v->node] = true;
    note(k, BOUND_SKIP, v->node);
    set_var(k, var, value);
    return match_value(k, at, pn->operands[0].var, value);
}

static bool match_operands(matcher *k, const pattern_node *pn, const graph_node *n, bool swapped)
{
    for (uint32_t i = 0; i < pn->n_operands; i++) {
        const pattern_operand *o = &pn->operands[i];
        graph_value *v = i < n->n_inputs ? n->inputs[swapped ? 1 - i : i] : NULL;
        if (o->var == PATTERN_NONE && v)
            return refuse(k, n, "operand %u of %s is given", i, n->op->name);
        if (o->var == PATTERN_NONE)
            continue;
        if (!v && !o->optional)
            return refuse(k, n, "operand %u of %s is left out", i, n->op->name);
        if (!v && !k->m->bound[o->var])
            set_var(k, o->var, NULL);
        if (v && !match_value(k, n, o->var, v))
            return false;
    }
    for (uint32_t i = pn->n_operands; !pn->more && i < n->n_inputs; i++)
        if (n->inputs[i])
            return refuse(k, n, "%s has an operand %u", n->op->name, i);
    return true;
}

static bool is_one_of(const pattern_node *pn, const graph_op *op)
{
    for (uint32_t i = 0; i < pn->n_ops; i++)
        if (pn->ops[i] == op)
            return true;
    return false;
}

static bool is_matched(const graph_match *m, const graph_pattern *p, const graph_node *n)
{
    for (uint32_t i = 0; i < p->n_nodes; i++)
        if (m->nodes[i] == n)
            return true;
    return false;
}

static bool match_node(matcher *k, uint32_t i, graph_node *n)
{
    const pattern_node *pn = &k->p->nodes[i];
    graph_match *m = k->m;
    if (!is_one_of(pn, n->op) || n->n_outputs < pn->n_results || is_matched(m, k->p, n))
        return false;
    if (++m->steps > MAX_STEPS)
        return refuse(k, n, "too many ways to match");
    m->nodes[i] = n;
    m->n_matched++;
    note(k, BOUND_NODE, i);
    if (!match_attrs(k, pn, n))
        return false;
    for (uint32_t r = 0; r < pn->n_results; r++)
        if (!bind(k, n, pn->first_var + r, n->outputs[r]))
            return false;
    uint32_t mark = k->m->n_trail;
    if (match_operands(k, pn, n, false))
        return true;
    if (!(n->op->flags & OPF_COMMUTATIVE) || n->n_inputs != 2 || pn->n_operands != 2)
        return false;
    undo(k, mark);
    return match_operands(k, pn, n, true);
}

static bool run_checks(matcher *k, const graph_node *root)
{
    graph_value *values[PATTERN_MAX_NODES];
    for (uint32_t i = 0; i < k->p->n_checks; i++) {
        const pattern_check *check = &k->p->checks[i];
        for (uint32_t v = 0; v < check->n_vars; v++)
            values[v] = k->m->values[check->vars[v]];
        const char *why = check->fn(k->c, check->n_vars, values);
        if (why)
            return refuse(k, root, "%.300s", why);
    }
    return true;
}

/* The root may be missing itself: then n is what it would take. */
static bool match_root(matcher *k, graph_node *n)
{
    const pattern_node *root = &k->p->nodes[k->p->root];
    if (match_node(k, k->p->root, n))
        return true;
    undo(k, 0);
    if (!root->optional || n->n_outputs == 0)
        return false;
    uint32_t below = k->p->vars[root->operands[0].var].node;
    uint32_t result = k->p->vars[root->operands[0].var].result;
    if (below == PATTERN_NONE || result >= n->n_outputs)
        return false;
    k->m->skipped[k->p->root] = true;
    note(k, BOUND_SKIP, k->p->root);
    set_var(k, root->first_var, n->outputs[result]);
    return match_value(k, n, root->operands[0].var, n->outputs[result]);
}

static bool match_siblings(matcher *k, const graph_around *around, const graph_node *root, uint32_t from);

static bool match_sibling_at(matcher *k, const graph_around *around, const graph_node *root, uint32_t from, uint32_t at)
{
    const uint32_t mark = k->m->n_trail;
    if (around->taken[at] == UINT32_MAX && match_node(k, k->p->siblings[from], around->f->nodes.data[at]) &&
        match_siblings(k, around, root, from + 1))
        return true;
    undo(k, mark);
    return false;
}

/* Siblings from number `from` on: each the nearest node that fits, in front of the last node first, and leaves one to
 * those behind it. */
static bool match_siblings(matcher *k, const graph_around *around, const graph_node *root, uint32_t from)
{
    const uint32_t at = root->mark, count = around ? around->f->nodes.len : 0;
    if (from == k->p->n_siblings)
        return true;
    for (uint32_t d = 1; d <= PATTERN_SPAN && d <= at && count > 0; d++)
        if (match_sibling_at(k, around, root, from, at - d))
            return true;
    for (uint32_t d = 1; d <= PATTERN_SPAN && at + d < count; d++)
        if (match_sibling_at(k, around, root, from, at + d))
            return true;
    return refuse(k, root, "no %s beside the last node fits", k->p->nodes[k->p->siblings[from]].ops[0]->name);
}

/* An optional root is seen through; then the node below it may be the one. */
static bool may_be_root(const graph_pattern *p, const graph_op *op)
{
    uint32_t i = p->root;
    for (;;) {
        const pattern_node *pn = &p->nodes[i];
        if (is_one_of(pn, op))
            return true;
        if (!pn->optional || p->vars[pn->operands[0].var].node == PATTERN_NONE)
            return false;
        i = p->vars[pn->operands[0].var].node;
    }
}

bool graph_pattern_match(compiler *c, arena *scratch, const graph_pattern *p, const graph_around *around, graph_node *n,
                         graph_match *out)
{
    out->why = NULL;
    out->refused = NULL;
    if (!may_be_root(p, n->op))
        return false;
    memset(out, 0, offsetof(graph_match, trail));
    out->pattern = p;
    matcher k = {.c = c, .scratch = scratch, .p = p, .m = out};
    return match_root(&k, n) && out->n_matched > 0 && match_siblings(&k, around, n, 0) && run_checks(&k, n);
}
