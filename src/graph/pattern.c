/* SPDX-License-Identifier: Apache-2.0 */
/* Text to patterns, by the grammar of docs/reference/partition.md, one function for each of its rules. What has been
 * read can be matched: names are known, every node is found from the last one, checks exist. */
#include "graph/pattern.h"

#include "base/nearest.h"
#include "base/ptr_map.h"
#include "graph/text.h"

#include <string.h>

typedef struct parser {
    compiler *c;
    lexer l;
    const char *target; /* NULL: any */
    const target_check *checks; /* of the pattern's target; NULL: only built-in ones */
    ptr_map names;
    VEC(pattern_var) vars;
    VEC(pattern_node) nodes;
    VEC(pattern_check) calls;
    VEC(const char *) symbols;
    bool used[PATTERN_MAX_VARS];
    arena *mem;
} parser;

/* --- values --- */

static bool define(parser *p, const char *name, src_loc at, pattern_var v)
{
    uint32_t unused = 0;
    if (ptr_map_get(&p->names, name, &unused))
        return diag_error(&p->c->diags, DIAG_SYNTAX, at, "%%%s is defined already", name);
    if (p->vars.len == PATTERN_MAX_VARS)
        return lexer_error(&p->l, "a pattern has at most %u values", PATTERN_MAX_VARS);
    v.name = name;
    ptr_map_set(&p->names, name, p->vars.len);
    vec_push(p->mem, &p->vars, v);
    return true;
}

static bool parse_use(parser *p, uint32_t *out)
{
    lexer *l = &p->l;
    if (l->tok.kind != TOK_VAR)
        return lexer_error(l, "expected a value such as %%x");
    if (!ptr_map_get(&p->names, l->tok.text, out))
        return lexer_error(l, "%%%s is neither an input of the pattern nor made before", l->tok.text);
    p->used[*out] = true;
    lexer_next(l);
    return true;
}

static bool parse_dtypes(parser *p, pattern_type *t)
{
    lexer *l = &p->l;
    VEC(dtype) list = {0};
    if (lexer_accept(l, "_"))
        return true;
    do {
        dtype dt;
        if (l->tok.kind != TOK_IDENT || !dtype_parse(l->tok.text, &dt))
            return lexer_error(l, "expected an element type such as f32, or _");
        vec_push(p->mem, &list, dt);
        lexer_next(l);
    } while (lexer_accept(l, "|"));
    t->dtypes = list.data;
    t->n_dtypes = list.len;
    return true;
}

static pattern_extent symbol(parser *p, const char *name)
{
    uint32_t i = 0;
    while (i < p->symbols.len && p->symbols.data[i] != name)
        i++;
    if (i == p->symbols.len)
        vec_push(p->mem, &p->symbols, name);
    return (pattern_extent){EXTENT_SYMBOL, i};
}

static bool parse_extent(parser *p, pattern_extent *out)
{
    lexer *l = &p->l;
    *out = (pattern_extent){EXTENT_ANY, 0};
    if (lexer_accept(l, "_"))
        return true;
    if (l->tok.kind == TOK_IDENT) {
        *out = symbol(p, l->tok.text);
        if (p->symbols.len > PATTERN_MAX_VARS)
            return lexer_error(l, "a pattern has at most %u extents with a name", PATTERN_MAX_VARS);
    } else if (l->tok.kind == TOK_INT) {
        *out = (pattern_extent){EXTENT_NUMBER, l->tok.i};
    } else {
        return lexer_error(l, "expected an extent: a number, a name, _ for any, or * for any more of them");
    }
    lexer_next(l);
    return true;
}

static bool parse_shape(parser *p, pattern_type *t)
{
    lexer *l = &p->l;
    VEC(pattern_extent) list = {0};
    if (!lexer_accept(l, "["))
        return true;
    while (!lexer_accept(l, "]")) {
        pattern_extent e;
        if ((list.len || t->more) && !lexer_expect(l, ","))
            return false;
        if (t->more)
            return lexer_error(l, "nothing follows *");
        t->more = lexer_accept(l, "*");
        if (t->more)
            continue;
        if (!parse_extent(p, &e))
            return false;
        if (list.len == TYPE_MAX_RANK)
            return lexer_error(l, "at most %u extents", TYPE_MAX_RANK);
        vec_push(p->mem, &list, e);
    }
    t->rank = (int32_t)list.len;
    t->extents = list.data;
    return true;
}

/* constant f32|f16[_, 3, n] = 0.0 */
static bool parse_type(parser *p, pattern_type *t)
{
    lexer *l = &p->l;
    *t = (pattern_type){.rank = -1};
    t->constant = lexer_accept(l, "constant");
    if ((l->tok.kind == TOK_IDENT || !t->constant) && (!parse_dtypes(p, t) || !parse_shape(p, t)))
        return false;
    if (!t->constant || !lexer_accept(l, "="))
        return true;
    t->has_number = true;
    return lexer_float(l, &t->number);
}

/* --- nodes --- */

static bool parse_op(parser *p, const graph_op **out)
{
    lexer *l = &p->l;
    *out = l->tok.kind == TOK_IDENT ? graph_find_op(p->c, l->tok.text) : NULL;
    if (!*out && l->tok.kind == TOK_IDENT) {
        nearest near = nearest_to(l->tok.text, l->tok.len);
        for (uint32_t i = 0; i < graph_op_count(p->c); i++)
            nearest_offer(&near, graph_op_at(p->c, i)->name);
        (void)lexer_error(l, "unknown operator '%s'", l->tok.text);
        if (near.best)
            diag_hint(&p->c->diags, "%s", nearest_question(&near, "", &p->c->mem));
        return false;
    }
    if (!*out)
        return lexer_error(l, "expected an operator or 'return'");
    if (((*out)->flags & OPF_CALL) || (*out)->infer == infer_constant)
        return lexer_error(l, (*out)->flags & OPF_CALL ? "'%s' calls functions, which a pattern cannot contain"
                                                       : "'%s' is not a node of a pattern: an input is 'constant'",
                           (*out)->name);
    lexer_next(l);
    return true;
}

static bool parse_ops(parser *p, pattern_node *n)
{
    VEC(const graph_op *) list = {0};
    do {
        const graph_op *op;
        if (!parse_op(p, &op))
            return false;
        vec_push(p->mem, &list, op);
    } while (lexer_accept(&p->l, "|"));
    n->ops = list.data;
    n->n_ops = list.len;
    return true;
}

static bool parse_operand(parser *p, pattern_operand *out)
{
    *out = (pattern_operand){PATTERN_NONE, false};
    if (lexer_accept(&p->l, "_"))
        return true;
    if (!parse_use(p, &out->var))
        return false;
    out->optional = lexer_accept(&p->l, "?");
    if (out->optional && p->vars.data[out->var].node != PATTERN_NONE)
        return lexer_error(&p->l, "%%%s is made in the pattern: an operand that may be missing is an input",
                           p->vars.data[out->var].name);
    return true;
}

static bool parse_operands(parser *p, pattern_node *n)
{
    lexer *l = &p->l;
    VEC(pattern_operand) list = {0};
    if (!lexer_expect(l, "("))
        return false;
    while (!lexer_accept(l, ")")) {
        pattern_operand o;
        if ((list.len || n->more) && !lexer_expect(l, ","))
            return false;
        if (n->more)
            return lexer_error(l, "nothing follows *");
        n->more = lexer_accept(l, "*");
        if (n->more)
            continue;
        if (!parse_operand(p, &o))
            return false;
        vec_push(p->mem, &list, o);
    }
    n->operands = list.data;
    n->n_operands = list.len;
    return true;
}

static const attr_def *find_def(const graph_op *op, const char *name)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].name == name)
            return &op->attrs[i];
    return NULL;
}

/* The kind of an attribute that all of the operators have. */
static bool find_kind(parser *p, const pattern_node *n, attr_kind *out)
{
    lexer *l = &p->l;
    if (l->tok.kind != TOK_IDENT)
        return lexer_error(l, "expected the name of an attribute");
    for (uint32_t i = 0; i < n->n_ops; i++) {
        const attr_def *def = find_def(n->ops[i], l->tok.text);
        if (!def)
            return lexer_error(l, "operator '%s' has no attribute '%s'", n->ops[i]->name, l->tok.text);
        if (i && def->kind != *out)
            return lexer_error(l, "attribute '%s' is %s of '%s' and %s of '%s'", l->tok.text,
                               graph_attr_kind_name(*out), n->ops[0]->name, graph_attr_kind_name(def->kind),
                               n->ops[i]->name);
        *out = def->kind;
    }
    if (*out == ATTR_FUNC || *out == ATTR_TENSOR)
        return lexer_error(l, "attribute '%s' is a %s, which patterns cannot test", l->tok.text,
                           graph_attr_kind_name(*out));
    return true;
}

static bool parse_test(parser *p, attr_kind kind, pattern_attr *a)
{
    static const char *const signs[] = {
#define X(id, sign, words) sign,
        PATTERN_TESTS(X)
#undef X
    };
    lexer *l = &p->l;
    uint32_t i = 0;
    while (i < sizeof signs / sizeof *signs && !lexer_is(l, signs[i]))
        i++;
    if (i == sizeof signs / sizeof *signs)
        return lexer_error(l, "expected =, !=, <= or >=");
    a->test = (pattern_test)i;
    if (a->test >= TEST_MOST && kind != ATTR_INT && kind != ATTR_FLOAT && kind != ATTR_INTS)
        return lexer_error(l, "'%s' is %s: only = and != are for those", a->name, graph_attr_kind_name(kind));
    lexer_next(l);
    return true;
}

static bool parse_attr(parser *p, const pattern_node *n, pattern_attr *a)
{
    lexer *l = &p->l;
    attr_kind kind = ATTR_INT;
    VEC(attr) values = {0};
    *a = (pattern_attr){.name = l->tok.text};
    if (!find_kind(p, n, &kind))
        return false;
    lexer_next(l);
    if (!parse_test(p, kind, a))
        return false;
    do {
        attr v;
        bool each = kind == ATTR_INTS && !lexer_is(l, "[");
        if (kind == ATTR_INTS && !each && a->test >= TEST_MOST)
            return lexer_error(l, "<= and >= compare each number of a list with one: '%s <= 2'", a->name);
        if (!graph_parse_attr(p->c, l, a->name, each ? ATTR_INT : kind, &v))
            return false;
        vec_push(p->mem, &values, v);
    } while (lexer_accept(l, "|"));
    a->values = values.data;
    a->n_values = values.len;
    return true;
}

static bool parse_attrs(parser *p, pattern_node *n)
{
    VEC(pattern_attr) list = {0};
    if (!lexer_accept(&p->l, "{"))
        return true;
    do {
        pattern_attr a;
        if (!parse_attr(p, n, &a))
            return false;
        vec_push(p->mem, &list, a);
    } while (lexer_accept(&p->l, ","));
    n->attrs = list.data;
    n->n_attrs = list.len;
    return lexer_expect(&p->l, "}");
}

typedef struct result_names {
    const char *names[PATTERN_MAX_NODES];
    src_loc at[PATTERN_MAX_NODES];
    uint32_t len;
} result_names;

static bool parse_results(parser *p, result_names *out)
{
    lexer *l = &p->l;
    out->len = 0;
    do {
        if (l->tok.kind != TOK_VAR || l->tok.len == 0)
            return lexer_error(l, "expected a value such as %%y, or 'return'");
        if (out->len == PATTERN_MAX_NODES)
            return lexer_error(l, "a node of a pattern has at most %u results", PATTERN_MAX_NODES);
        out->names[out->len] = l->tok.text;
        out->at[out->len++] = l->tok.loc;
        lexer_next(l);
    } while (lexer_accept(l, ","));
    return lexer_expect(l, "=");
}

static bool define_results(parser *p, pattern_node *n, const result_names *r)
{
    n->first_var = p->vars.len;
    n->n_results = r->len;
    bool typed = lexer_accept(&p->l, ":");
    for (uint32_t i = 0; i < r->len; i++) {
        pattern_var v = {.node = p->nodes.len, .result = i, .type = {.rank = -1}};
        if ((typed && i > 0 && !lexer_expect(&p->l, ",")) || (typed && !parse_type(p, &v.type)) ||
            !define(p, r->names[i], r->at[i], v))
            return false;
    }
    return true;
}

static bool parse_node(parser *p)
{
    lexer *l = &p->l;
    pattern_node n = {0};
    result_names results;
    if (p->nodes.len == PATTERN_MAX_NODES)
        return lexer_error(l, "a pattern has at most %u nodes", PATTERN_MAX_NODES);
    if (!parse_results(p, &results))
        return false;
    n.optional = lexer_accept(l, "optional");
    src_loc at = l->tok.loc;
    if (!parse_ops(p, &n) || !parse_operands(p, &n) || !parse_attrs(p, &n) || !define_results(p, &n, &results))
        return false;
    if (n.optional && (results.len != 1 || n.n_operands == 0 || n.operands[0].var == PATTERN_NONE ||
                       n.operands[0].optional))
        return diag_error(&p->c->diags, DIAG_SYNTAX, at,
                          "an optional node has one result, which is its first operand where the node is missing");
    vec_push(p->mem, &p->nodes, n);
    return true;
}

/* --- patterns --- */

static bool parse_inputs(parser *p)
{
    lexer *l = &p->l;
    if (!lexer_expect(l, "("))
        return false;
    while (!lexer_accept(l, ")")) {
        pattern_var v = {.node = PATTERN_NONE, .type = {.rank = -1}};
        if (p->vars.len && !lexer_expect(l, ","))
            return false;
        const char *name = l->tok.text;
        src_loc at = l->tok.loc;
        if (l->tok.kind != TOK_VAR || l->tok.len == 0)
            return lexer_error(l, "expected an input such as %%x");
        lexer_next(l);
        if ((lexer_accept(l, ":") && !parse_type(p, &v.type)) || !define(p, name, at, v))
            return false;
    }
    return true;
}

static target_check_fn find_check(const target_check *list, const char *name)
{
    for (; list && list->name; list++)
        if (strcmp(list->name, name) == 0)
            return list->fn;
    return NULL;
}

static bool unknown_check(parser *p)
{
    nearest near = nearest_to(p->l.tok.text, p->l.tok.len);
    for (const target_check *k = p->checks; k && k->name; k++)
        nearest_offer(&near, k->name);
    for (const target_check *k = graph_pattern_checks(); k->name; k++)
        nearest_offer(&near, k->name);
    (void)lexer_error(&p->l, "there is no check '%s'", p->l.tok.text);
    if (near.best)
        diag_hint(&p->c->diags, "%s", nearest_question(&near, "", &p->c->mem));
    return false;
}

static bool parse_check(parser *p)
{
    lexer *l = &p->l;
    pattern_check k = {.name = l->tok.text};
    VEC(uint32_t) vars = {0};
    if (l->tok.kind != TOK_IDENT)
        return lexer_error(l, "expected the name of a check");
    k.fn = find_check(p->checks, k.name);
    k.fn = k.fn ? k.fn : find_check(graph_pattern_checks(), k.name);
    if (!k.fn)
        return unknown_check(p);
    lexer_next(l);
    if (!lexer_expect(l, "("))
        return false;
    while (!lexer_accept(l, ")")) {
        uint32_t v = 0;
        if ((vars.len && !lexer_expect(l, ",")) || !parse_use(p, &v))
            return false;
        if (vars.len == PATTERN_MAX_NODES)
            return lexer_error(l, "a check takes at most %u values", PATTERN_MAX_NODES);
        vec_push(p->mem, &vars, v);
    }
    k.vars = vars.data;
    k.n_vars = vars.len;
    vec_push(p->mem, &p->calls, k);
    return true;
}

static bool parse_return(parser *p, uint32_t *n_leaving)
{
    lexer *l = &p->l;
    lexer_next(l);
    do {
        uint32_t v = 0;
        if (!parse_use(p, &v))
            return false;
        if (p->vars.data[v].node == PATTERN_NONE || p->vars.data[v].leaves)
            return lexer_error(l, p->vars.data[v].leaves ? "%%%s is returned twice" : "%%%s is an input",
                               p->vars.data[v].name);
        p->vars.data[v].leaves = true;
        ++*n_leaving;
    } while (lexer_accept(l, ","));
    return lexer_expect(l, "}");
}

/* What a match has seen: nodes, and values by their variables. */
typedef struct reach {
    bool nodes[PATTERN_MAX_NODES], vars[PATTERN_MAX_VARS];
} reach;

/* Node i and all that it needs. true: some of its values were there before. */
static bool reach_from(const parser *p, uint32_t i, reach *r)
{
    bool shares = false;
    reach mine = {0};
    mine.nodes[i] = true;
    for (uint32_t n = i + 1; n-- > 0;)
        for (uint32_t k = 0; mine.nodes[n] && k < p->nodes.data[n].n_operands; k++) {
            const uint32_t v = p->nodes.data[n].operands[k].var;
            if (v == PATTERN_NONE)
                continue;
            mine.vars[v] = true;
            shares |= r->vars[v];
            if (p->vars.data[v].node != PATTERN_NONE)
                mine.nodes[p->vars.data[v].node] = true;
        }
    for (uint32_t k = 0; k < PATTERN_MAX_NODES; k++)
        r->nodes[k] |= mine.nodes[k];
    for (uint32_t k = 0; k < PATTERN_MAX_VARS; k++)
        r->vars[k] |= mine.vars[k];
    return shares;
}

/* A node that gives a result, and is there. */
static bool is_sibling(const parser *p, uint32_t i)
{
    const pattern_node *n = &p->nodes.data[i];
    bool leaves = false;
    for (uint32_t k = 0; k < n->n_results; k++)
        leaves |= p->vars.data[n->first_var + k].leaves;
    return leaves && !n->optional;
}

/* From the last node and its siblings all others are reached, or a match would never see them. */
static bool check_reach(parser *p, graph_pattern *out, src_loc at)
{
    reach seen = {0};
    uint32_t *siblings = arena_array(p->mem, uint32_t, p->nodes.len);
    (void)reach_from(p, p->nodes.len - 1, &seen);
    for (uint32_t i = p->nodes.len; i-- > 0;) {
        if (seen.nodes[i])
            continue;
        if (!is_sibling(p, i) || !reach_from(p, i, &seen))
            return diag_error(&p->c->diags, DIAG_SYNTAX, at,
                              p->nodes.data[i].optional
                                  ? "%%%s may be missing and the last node does not depend on it; make it the last node"
                                  : "the last node does not depend on %%%s, so no match would find it",
                              p->vars.data[p->nodes.data[i].first_var].name);
        siblings[out->n_siblings++] = i;
    }
    out->siblings = siblings;
    for (uint32_t i = 0; i < p->vars.len; i++)
        if (p->vars.data[i].node == PATTERN_NONE && !p->used[i])
            return diag_error(&p->c->diags, DIAG_SYNTAX, at, "no node takes the input %%%s", p->vars.data[i].name);
    return true;
}

static bool parse_body(parser *p, graph_pattern *out)
{
    lexer *l = &p->l;
    src_loc at = l->tok.loc;
    if (!lexer_expect(l, "{"))
        return false;
    while (!lexer_is(l, "return"))
        if (!parse_node(p))
            return false;
    if (p->nodes.len == 0)
        return lexer_error(l, "a pattern has a node at least");
    if (!parse_return(p, &out->n_leaving) || !check_reach(p, out, at))
        return false;
    if (out->is_operator && (p->nodes.len != 1 || p->nodes.data[0].optional))
        return diag_error(&p->c->diags, DIAG_SYNTAX, at, "a pattern that stands for an operator must be a single node");
    if (!lexer_accept(l, "where"))
        return true;
    do {
        if (!parse_check(p))
            return false;
    } while (lexer_accept(l, ","));
    return true;
}

/* "acme.conv2d": the target is what stands before the first dot. */
static bool parse_pattern_name(parser *p, graph_pattern *out)
{
    lexer *l = &p->l;
    const char *dot = l->tok.kind == TOK_IDENT || l->tok.kind == TOK_STRING ? strchr(l->tok.text, '.') : NULL;
    if (!dot || dot == l->tok.text || !dot[1] || strlen(l->tok.text) != l->tok.len)
        return lexer_error(l, "expected the name of a pattern: TARGET.NAME");
    out->name = l->tok.text;
    out->target = intern_n(p->c->names, l->tok.text, (size_t)(dot - l->tok.text));
    out->loc = l->tok.loc;
    if (p->target && strcmp(p->target, out->target) != 0)
        return lexer_error(l, "'%s' is not a pattern of the target %s", out->name, p->target);
    const struct target *row = target_lookup(p->c, out->target);
    p->checks = row && row->offload ? row->offload->checks : NULL;
    lexer_next(l);
    return true;
}

static void reset(parser *p)
{
    arena *mem = p->mem;
    ptr_map_init(&p->names, mem);
    memset(&p->vars, 0, sizeof p->vars); /* the pattern before has the old ones */
    memset(&p->nodes, 0, sizeof p->nodes);
    memset(&p->calls, 0, sizeof p->calls);
    memset(&p->symbols, 0, sizeof p->symbols);
    memset(p->used, 0, sizeof p->used);
}

static bool parse_pattern(parser *p, graph_patterns *to)
{
    lexer *l = &p->l;
    graph_pattern *out = arena_new(p->mem, graph_pattern);
    reset(p);
    out->is_operator = lexer_is(l, "operator");
    if (!out->is_operator && !lexer_is(l, "pattern"))
        return lexer_error(l, "expected 'pattern' or 'operator'");
    lexer_next(l);
    if (!parse_pattern_name(p, out) || !parse_inputs(p) || !parse_body(p, out))
        return false;
    out->vars = p->vars.data;
    out->n_vars = p->vars.len;
    out->nodes = p->nodes.data;
    out->n_nodes = p->nodes.len;
    out->root = p->nodes.len - 1;
    out->checks = p->calls.data;
    out->n_checks = p->calls.len;
    out->symbols = p->symbols.data;
    out->n_symbols = p->symbols.len;
    vec_push(p->mem, &to->list, out);
    return true;
}

bool graph_patterns_parse(compiler *c, const char *file, const char *text, size_t len, const char *owner,
                          graph_patterns *out)
{
    parser *p = arena_new(&c->mem, parser);
    *p = (parser){.c = c, .target = owner, .mem = &c->mem};
    lexer_init(&p->l, &c->mem, c->names, &c->diags, file, text, len);
    bool ok = true;
    while (ok && p->l.tok.kind != TOK_END)
        ok = parse_pattern(p, out);
    return ok && !p->l.failed;
}
