/* SPDX-License-Identifier: Apache-2.0 */
/* Text to graph, by the grammar of docs/reference/graph-ir.md, one function for each of its rules. Functions may be
 * named before they are written: such attributes are resolved at the end. What has been read is verified. */
#include "base/nearest.h"
#include "graph/op.h"
#include "base/ptr_map.h"
#include "graph/text.h"

#include <string.h>

/* An attribute that names a function. */
typedef struct fixup {
    attr *at;
    const char *name;
    src_loc loc;
} fixup;

typedef struct parser {
    compiler *c;
    lexer l;
    graph_module *m;
    graph_func *f;
    ptr_map values; /* of the current function: name -> position in `list` */
    VEC(graph_value *) list;
    VEC(fixup) fixups;
    arena scratch;
} parser;

static void define(parser *p, graph_value *v)
{
    ptr_map_set(&p->values, v->name, p->list.len);
    vec_push(&p->scratch, &p->list, v);
}

/* The name of a value that is about to be made. */
static bool parse_new_name(parser *p, const char **out)
{
    lexer *l = &p->l;
    uint32_t unused = 0;
    if (l->tok.kind != TOK_VAR || l->tok.len == 0 || strlen(l->tok.text) != l->tok.len)
        return lexer_error(l, "expected a value such as %%x");
    *out = l->tok.text;
    if (ptr_map_get(&p->values, *out, &unused))
        return lexer_error(l, "%%%s is defined already", *out);
    lexer_next(l);
    return true;
}

static bool parse_use(parser *p, graph_value **out)
{
    lexer *l = &p->l;
    uint32_t i = 0;
    if (l->tok.kind != TOK_VAR)
        return lexer_error(l, "expected a value such as %%x");
    if (!ptr_map_get(&p->values, l->tok.text, &i))
        return lexer_error(l, "%%%s is not defined before its use", l->tok.text);
    *out = p->list.data[i];
    lexer_next(l);
    return true;
}

/* --- nodes --- */

typedef struct node_text {
    const graph_op *op;
    src_loc loc;
    VEC(const char *) outs;
    VEC(graph_value *) ins;
    VEC(attr) attrs;
    VEC(fixup) funcs; /* `at` is found again when the node exists */
    VEC(type) types;
    VEC(type) declared;
    const char *compiler;
    uint32_t region;
} node_text;

static bool parse_outputs(parser *p, node_text *t)
{
    if (p->l.tok.kind != TOK_VAR)
        return true;
    do {
        const char *name = NULL;
        if (!parse_new_name(p, &name))
            return false;
        for (uint32_t i = 0; i < t->outs.len; i++)
            if (t->outs.data[i] == name)
                return lexer_error(&p->l, "%%%s is defined already", name);
        vec_push(&p->scratch, &t->outs, name);
    } while (lexer_accept(&p->l, ","));
    return lexer_expect(&p->l, "=");
}

static bool parse_operands(parser *p, node_text *t)
{
    lexer *l = &p->l;
    if (!lexer_expect(l, "("))
        return false;
    while (!lexer_accept(l, ")")) {
        graph_value *v = NULL;
        if (t->ins.len && !lexer_expect(l, ","))
            return false;
        if (!lexer_accept(l, "_") && !parse_use(p, &v))
            return false;
        vec_push(&p->scratch, &t->ins, v);
    }
    return true;
}

static const attr_def *find_def(const graph_op *op, const char *name)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].name == name)
            return &op->attrs[i];
    return NULL;
}

/* What an operator knows, for a message. */
static const char *known_attrs(arena *a, const graph_op *op)
{
    writer w;
    writer_init(&w, a);
    w_str(&w, op->n_attrs ? "it has " : "it has none");
    for (uint32_t i = 0; i < op->n_attrs; i++)
        w_fmt(&w, "%s%s", i ? ", " : "", op->attrs[i].name);
    return w.data;
}

static bool parse_attr_entry(parser *p, node_text *t)
{
    lexer *l = &p->l;
    const attr_def *def = l->tok.kind == TOK_IDENT ? find_def(t->op, l->tok.text) : NULL;
    attr a;
    if (!def)
        return lexer_error(l, "operator '%s' has no attribute '%s'; %s", t->op->name, l->tok.text ? l->tok.text : "",
                           known_attrs(l->a, t->op));
    for (uint32_t i = 0; i < t->attrs.len; i++)
        if (t->attrs.data[i].name == def->name)
            return lexer_error(l, "attribute '%s' is given twice", def->name);
    lexer_next(l);
    if (!lexer_expect(l, "="))
        return false;
    src_loc at = l->tok.loc;
    if (!graph_parse_attr(p->c, l, def->name, def->kind, &a))
        return false;
    if (def->kind == ATTR_FUNC) {
        vec_push(&p->scratch, &t->funcs, (fixup){NULL, a.u.s, at});
        a.u.func = NULL;
    }
    vec_push(&p->scratch, &t->attrs, a);
    return true;
}

static bool parse_attrs(parser *p, node_text *t)
{
    if (!lexer_accept(&p->l, "{"))
        return true;
    do {
        if (!parse_attr_entry(p, t))
            return false;
    } while (lexer_accept(&p->l, ","));
    return lexer_expect(&p->l, "}");
}

static bool parse_result_types(parser *p, node_text *t)
{
    if (!lexer_accept(&p->l, ":"))
        return true;
    do {
        type ty, declared;
        if (!type_parse(p->c, &p->l, &ty))
            return false;
        declared = ty;
        if (lexer_accept(&p->l, "declared") && !type_parse(p->c, &p->l, &declared))
            return false;
        vec_push(&p->scratch, &t->types, ty);
        vec_push(&p->scratch, &t->declared, declared);
    } while (lexer_accept(&p->l, ","));
    if (t->types.len != t->outs.len)
        return lexer_error(&p->l, "%u types for %u results", t->types.len, t->outs.len);
    return true;
}

/* constant f32[2] dense [1.0, 2.0] */
static bool parse_constant(parser *p, node_text *t)
{
    attr value;
    if (!graph_parse_attr(p->c, &p->l, intern(p->c->names, "value"), ATTR_TENSOR, &value))
        return false;
    vec_push(&p->scratch, &t->attrs, value);
    type ty = tensor_type(p->c, value.u.tensor);
    for (uint32_t i = 0; i < t->outs.len; i++) { /* more than one is for the verifier to refuse */
        vec_push(&p->scratch, &t->types, ty);
        vec_push(&p->scratch, &t->declared, (type){0});
    }
    return true;
}

static bool parse_string(lexer *l, const char **out)
{
    if (l->tok.kind != TOK_STRING || strlen(l->tok.text) != l->tok.len)
        return lexer_error(l, "expected a string");
    *out = l->tok.text;
    lexer_next(l);
    return true;
}

/* on "acme" region 2 */
static bool parse_annotation(parser *p, node_text *t)
{
    lexer *l = &p->l;
    if (!lexer_accept(l, "on"))
        return true;
    if (!parse_string(l, &t->compiler))
        return false;
    if (!lexer_accept(l, "region"))
        return true;
    if (l->tok.kind != TOK_INT || l->tok.i < 1 || l->tok.i > INT32_MAX)
        return lexer_error(l, "expected the number of a region, 1 or more");
    t->region = (uint32_t)l->tok.i;
    lexer_next(l);
    return true;
}

static bool parse_loc(parser *p, node_text *t)
{
    lexer *l = &p->l;
    if (!lexer_accept(l, "loc"))
        return true;
    t->loc = src_loc_none();
    if (!lexer_expect(l, "("))
        return false;
    if (l->tok.kind == TOK_STRING && (!parse_string(l, &t->loc.file) || !lexer_expect(l, ",")))
        return false;
    bool minus = lexer_accept(l, "-");
    if (l->tok.kind != TOK_INT || l->tok.i < 0 || l->tok.i > INT32_MAX)
        return lexer_error(l, "expected the index of a node");
    t->loc.node_index = minus ? -1 : (int32_t)l->tok.i;
    lexer_next(l);
    if (!lexer_expect(l, ",") || !parse_string(l, &t->loc.node))
        return false;
    if (lexer_accept(l, ",") && !parse_string(l, &t->loc.op))
        return false;
    return lexer_expect(l, ")");
}

static void add_node(parser *p, node_text *t)
{
    graph_node *n = graph_add_node(p->f, t->op, t->ins.len, t->ins.data, t->attrs.len, t->attrs.data, t->outs.len,
                                   t->outs.data, t->loc);
    n->compiler = t->compiler;
    n->region = t->region;
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        if (t->types.len) {
            n->outputs[i]->type = t->types.data[i];
            n->outputs[i]->declared = t->declared.data[i];
        }
        define(p, n->outputs[i]);
    }
    uint32_t next = 0; /* of funcs, which stand in the text's order; the node's attributes stand in the row's */
    for (uint32_t i = 0; i < t->attrs.len; i++) {
        if (t->attrs.data[i].kind != ATTR_FUNC)
            continue;
        fixup fix = t->funcs.data[next++];
        for (uint32_t k = 0; k < n->n_attrs; k++)
            if (n->attrs[k].name == t->attrs.data[i].name)
                fix.at = &n->attrs[k];
        vec_push(&p->scratch, &p->fixups, fix);
    }
}

static bool unknown_operator(parser *p)
{
    nearest near = nearest_to(p->l.tok.text, p->l.tok.len);
    for (uint32_t i = 0; i < graph_op_count(p->c); i++)
        nearest_offer_short(&near, graph_op_at(p->c, i)->name);
    (void)lexer_error(&p->l, "unknown operator '%s'", p->l.tok.text);
    if (near.best)
        diag_hint(&p->c->diags, "%s", nearest_question(&near, "", &p->c->mem));
    return false;
}

static bool parse_node(parser *p)
{
    lexer *l = &p->l;
    node_text t = {.loc = l->tok.loc};
    if (!parse_outputs(p, &t))
        return false;
    t.op = l->tok.kind == TOK_IDENT ? graph_find_op(p->c, l->tok.text) : NULL;
    if (!t.op && l->tok.kind == TOK_IDENT)
        return unknown_operator(p);
    if (!t.op)
        return lexer_error(l, "expected an operator or 'return'");
    lexer_next(l);
    bool sugar = t.op->infer == infer_constant && !lexer_is(l, "(");
    bool ok = sugar ? parse_constant(p, &t) : parse_operands(p, &t) && parse_attrs(p, &t) && parse_result_types(p, &t);
    if (!ok || !parse_annotation(p, &t) || !parse_loc(p, &t))
        return false;
    add_node(p, &t);
    return true;
}

/* --- functions --- */

static bool parse_params(parser *p)
{
    lexer *l = &p->l;
    if (!lexer_expect(l, "("))
        return false;
    while (!lexer_accept(l, ")")) {
        const char *name = NULL;
        type t;
        if (p->f->params.len && !lexer_expect(l, ","))
            return false;
        if (!parse_new_name(p, &name) || !lexer_expect(l, ":") || !type_parse(p->c, l, &t))
            return false;
        define(p, graph_add_param(p->f, name, t));
    }
    return true;
}

static bool parse_func_attr(parser *p)
{
    lexer *l = &p->l;
    attr a;
    if (l->tok.kind != TOK_IDENT)
        return lexer_error(l, "expected the name of an attribute");
    const char *name = l->tok.text;
    if (graph_func_attr(p->f, name))
        return lexer_error(l, "attribute '%s' is given twice", name);
    lexer_next(l);
    if (!lexer_expect(l, "="))
        return false;
    attr_kind kind = l->tok.kind == TOK_STRING ? ATTR_STRING : l->tok.kind == TOK_FLOAT ? ATTR_FLOAT : ATTR_INT;
    if (!graph_parse_attr(p->c, l, name, kind, &a))
        return false;
    vec_push(&p->c->mem, &p->f->attrs, a);
    return true;
}

static bool parse_func_attrs(parser *p)
{
    if (!lexer_accept(&p->l, "["))
        return true;
    do {
        if (!parse_func_attr(p))
            return false;
    } while (lexer_accept(&p->l, ","));
    return lexer_expect(&p->l, "]");
}

static bool parse_bounds(parser *p)
{
    lexer *l = &p->l;
    if (!lexer_accept(l, "where"))
        return true;
    do {
        const char *name = l->tok.text;
        if (l->tok.kind != TOK_IDENT)
            return lexer_error(l, "expected a symbol");
        lexer_next(l);
        if (!lexer_expect(l, "<="))
            return false;
        if (l->tok.kind != TOK_INT || l->tok.i < 0)
            return lexer_error(l, "expected the bound of '%s'", name);
        (void)dim_symbol(p->c, name, l->tok.i);
        lexer_next(l);
    } while (lexer_accept(l, ","));
    return true;
}

/* "state of %h from dense [1.0]", of the last result. */
static bool parse_state(parser *p)
{
    lexer *l = &p->l;
    graph_state s = {.result = p->f->results.len - 1};
    graph_value *v = NULL;
    if (!lexer_accept(l, "state"))
        return true;
    if (!lexer_expect(l, "of"))
        return false;
    src_loc at = l->tok.loc;
    if (!parse_use(p, &v))
        return false;
    if (v->def)
        return diag_error(&p->c->diags, DIAG_SYNTAX, at, "%%%s is not a parameter: a state pairs a result with a "
                                                         "parameter of the next call", v->name);
    s.param = v->index;
    if (lexer_accept(l, "from") && !tensor_parse(p->c, l, &v->type, &s.initial))
        return false;
    graph_add_state(p->f, s);
    return true;
}

static bool parse_results(parser *p)
{
    if (lexer_is(&p->l, "}"))
        return true;
    do {
        graph_value *v = NULL;
        if (!parse_use(p, &v))
            return false;
        graph_add_result(p->f, v);
        if (!parse_state(p))
            return false;
    } while (lexer_accept(&p->l, ","));
    return true;
}

static bool parse_func(parser *p)
{
    lexer *l = &p->l;
    uint32_t unused = 0;
    if (!lexer_expect(l, "func"))
        return false;
    if (l->tok.kind != TOK_SYMBOL || l->tok.len == 0 || strlen(l->tok.text) != l->tok.len)
        return lexer_error(l, "expected a function such as @main");
    if (ptr_map_get(p->m->names, l->tok.text, &unused))
        return lexer_error(l, "@%s is defined already", l->tok.text);
    p->f = graph_func_new(p->m, l->tok.text);
    ptr_map_init(&p->values, &p->scratch);
    p->list.len = 0;
    lexer_next(l);
    if (!parse_params(p) || !parse_func_attrs(p) || !parse_bounds(p) || !lexer_expect(l, "{"))
        return false;
    while (!lexer_is(l, "return"))
        if (!parse_node(p))
            return false;
    lexer_next(l);
    return parse_results(p) && lexer_expect(l, "}");
}

static bool resolve(parser *p)
{
    ptr_map by_name;
    ptr_map_init(&by_name, &p->scratch);
    for (uint32_t i = 0; i < p->m->funcs.len; i++)
        ptr_map_set(&by_name, p->m->funcs.data[i]->name, i);
    bool ok = true;
    for (uint32_t i = 0; i < p->fixups.len; i++) {
        const fixup *fix = &p->fixups.data[i];
        uint32_t at = 0;
        if (ptr_map_get(&by_name, fix->name, &at))
            fix->at->u.func = p->m->funcs.data[at];
        else
            ok = diag_error(&p->c->diags, DIAG_SYNTAX, fix->loc, "there is no function @%s", fix->name);
    }
    return ok;
}

bool graph_parse(compiler *c, const char *file, const char *text, size_t len, graph_module **out)
{
    parser p = {.c = c, .m = graph_module_new(c)};
    *out = NULL;
    arena_init(&p.scratch, &c->mem);
    lexer_init(&p.l, &c->mem, c->names, &c->diags, file, text, len);
    bool ok = true;
    while (ok && p.l.tok.kind != TOK_END)
        ok = parse_func(&p);
    ok = ok && !p.l.failed && resolve(&p) && graph_verify(c, p.m);
    arena_free(&p.scratch);
    if (ok)
        *out = p.m;
    return ok;
}
