/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a graph, one after the other, into the IR. A node that fails leaves poison in its results, so that the nodes
 * after it are passed over and every fault is told once. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

/* --- names --- */

const char *onnx_name(onnx_importer *im, span s)
{
    const uint8_t *nul = s.len ? memchr(s.data, 0, s.len) : NULL; /* IR names are C strings */
    return s.len ? intern_n(im->c->names, (const char *)s.data, nul ? (size_t)(nul - s.data) : s.len)
                 : intern(im->c->names, "");
}

const char *onnx_domain(onnx_importer *im, span s)
{
    const char *d = onnx_name(im, s);
    return strcmp(d, "ai.onnx") == 0 ? intern(im->c->names, "") : d;
}

src_loc onnx_loc(const onnx_importer *im)
{
    src_loc l = src_loc_none();
    l.file = im->path;
    return l;
}

void onnx_define(onnx_env *env, const char *name, graph_value *v)
{
    onnx_map_set(&env->im->c->mem, &env->scope->values, name, v);
}

/* A name from inside a body, changed where the main graph has it too. */
static const char *clear_of_main(const onnx_env *env, const char *name)
{
    while (!env->scope->top && *name && onnx_map_get(&env->im->reserved, name))
        name = intern(env->im->c->names, arena_printf(&env->im->c->mem, "%s_", name));
    return name;
}

static graph_value *make_initializer(onnx_env *env, const char *name, const pb_tensor *pb)
{
    const tensor_data *t = onnx_tensor_read(env->im, pb, env->frame ? env->frame->loc : onnx_loc(env->im));
    graph_value *v = &env->im->poison;
    if (t)
        v = graph_add_constant(env->f, t, clear_of_main(env, name), onnx_loc(env->im));
    onnx_define(env, name, v);
    return v;
}

graph_value *onnx_lookup(onnx_env *env, const char *name)
{
    for (onnx_scope *s = env->scope; s; s = s->parent) {
        const void *v = onnx_map_get(&s->values, name);
        if (v)
            return (graph_value *)(uintptr_t)v;
        const pb_tensor *pb = onnx_map_get(&s->initializers, name);
        if (pb) {
            onnx_env outer = *env;
            outer.scope = s;
            return make_initializer(&outer, name, pb);
        }
    }
    return NULL;
}

/* Tools that merge models leave initializers behind that are there twice: equal ones are one. */
static bool is_other_tensor(onnx_env *env, const char *name, const pb_tensor *pb)
{
    const pb_tensor *first = onnx_map_get(&env->scope->initializers, name);
    if (!first)
        return false;
    const tensor_data *a = onnx_tensor_read(env->im, first, onnx_loc(env->im)),
                      *b = onnx_tensor_read(env->im, pb, onnx_loc(env->im));
    return a && b && !tensor_equal(a, b); /* one that cannot be read is reported by the reader */
}

bool onnx_import_names(onnx_env *env, const pb_graph *g)
{
    onnx_importer *im = env->im;
    arena *a = &im->c->mem;
    bool ok = true;
    for (uint32_t i = 0; i < g->initializer.len; i++) {
        const char *name = onnx_name(im, g->initializer.data[i]->name);
        if (is_other_tensor(env, name, g->initializer.data[i]))
            ok = diag_error(&im->c->diags, DIAG_FORMAT, onnx_loc(im), "two initializers are named '%s'", name);
        onnx_map_set(a, &env->scope->initializers, name, g->initializer.data[i]);
    }
    if (g->sparse_initializer.len > 0)
        ok = diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im),
                        "sparse initializers are not supported yet (the model has %u)", g->sparse_initializer.len);
    for (uint32_t i = 0; i < g->value_info.len; i++)
        onnx_map_set(a, &env->scope->declared, onnx_name(im, g->value_info.data[i]->name), g->value_info.data[i]->type);
    for (uint32_t i = 0; i < g->output.len; i++)
        onnx_map_set(a, &env->scope->declared, onnx_name(im, g->output.data[i]->name), g->output.data[i]->type);
    return ok;
}

/* --- operator sets --- */

bool onnx_read_opsets(onnx_importer *im, uint32_t n, pb_opset *const *list, onnx_opsets *out)
{
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        onnx_opset o = {onnx_domain(im, list[i]->domain), list[i]->version};
        if (!*o.domain && (o.version < 1 || o.version > ONNX_MAX_OPSET)) {
            ok = diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im),
                            "operator set version %lld of ai.onnx is not known; versions 1 to %d are",
                            (long long)o.version, ONNX_MAX_OPSET);
            diag_hint(&im->c->diags, "export the model for operator set %d, or convert it (onnx.version_converter)",
                      ONNX_MAX_OPSET);
        }
        vec_push(&im->c->mem, out, o);
    }
    return ok;
}

/* The version of a set that a model uses; 0: it is not imported. Sets that onnxruntime has itself need no import. */
int64_t onnx_opset_version(const onnx_env *env, const char *domain)
{
    static const onnx_opset always[] = {{"com.microsoft", 1}, {"ai.onnx.ml", 5}, {"ai.onnx.preview.training", 1}};
    const onnx_opsets *o = env->frame ? &env->frame->opsets : &env->im->opsets;
    for (uint32_t i = 0; i < o->len; i++)
        if (o->data[i].domain == domain)
            return o->data[i].version;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (strcmp(always[i].domain, domain) == 0)
            return always[i].version;
    return 0;
}

/* --- order --- */

/* Names that a body makes itself, and those of the bodies around it. */
typedef struct own_names {
    onnx_map names;
    const struct own_names *outer;
} own_names;

static void note_own(onnx_importer *im, const pb_graph *g, onnx_map *own)
{
    arena *a = &im->c->mem;
    for (uint32_t i = 0; i < g->initializer.len; i++)
        onnx_map_set(a, own, onnx_name(im, g->initializer.data[i]->name), "");
    for (uint32_t i = 0; i < g->input.len; i++)
        onnx_map_set(a, own, onnx_name(im, g->input.data[i]->name), "");
    for (uint32_t i = 0; i < g->node.len; i++)
        for (uint32_t k = 0; k < g->node.data[i]->output.len; k++)
            onnx_map_set(a, own, onnx_name(im, g->node.data[i]->output.data[k]), "");
}

static void visit_name(onnx_importer *im, span s, const own_names *own, onnx_visit visit, void *ctx)
{
    const char *name = onnx_name(im, s);
    if (!*name)
        return;
    for (; own; own = own->outer)
        if (onnx_map_get(&own->names, name))
            return;
    visit(ctx, name);
}

static void visit_body(onnx_importer *im, const pb_graph *g, const own_names *outer, onnx_visit visit, void *ctx)
{
    own_names own = {.outer = outer};
    note_own(im, g, &own.names);
    for (uint32_t i = 0; i < g->node.len; i++) {
        const pb_node *p = g->node.data[i];
        for (uint32_t k = 0; k < p->input.len; k++)
            visit_name(im, p->input.data[k], &own, visit, ctx);
        for (uint32_t k = 0; k < p->attribute.len; k++) {
            const pb_attribute *a = p->attribute.data[k];
            if (a->g)
                visit_body(im, a->g, &own, visit, ctx);
            for (uint32_t m = 0; m < a->graphs.len; m++)
                visit_body(im, a->graphs.data[m], &own, visit, ctx);
        }
    }
    for (uint32_t i = 0; i < g->output.len; i++)
        visit_name(im, g->output.data[i]->name, &own, visit, ctx);
}

void onnx_visit_captures(onnx_importer *im, const pb_graph *g, onnx_visit visit, void *ctx)
{
    visit_body(im, g, NULL, visit, ctx);
}

typedef struct order {
    onnx_importer *im;
    pb_node *const *nodes;
    uint32_t n;
    onnx_map makers; /* name -> address in `marks` of the node that makes it */
    uint8_t *marks;  /* 0 new, 1 on the way, 2 placed */
    bool *again;     /* a Constant whose name another constant has already */
    uint32_t *list;  /* the order */
    uint32_t len;
    VEC(uint32_t) stack;
    VEC(uint32_t) needs; /* makers that the node at hand waits for */
} order;

static void need_name(void *ctx, const char *name)
{
    order *o = ctx;
    const uint8_t *mark = onnx_map_get(&o->makers, name);
    if (mark && *mark != 2)
        vec_push(&o->im->c->mem, &o->needs, (uint32_t)(mark - o->marks));
}

static void collect_needs(order *o, const pb_node *p)
{
    o->needs.len = 0;
    for (uint32_t k = 0; k < p->input.len; k++)
        if (p->input.data[k].len)
            need_name(o, onnx_name(o->im, p->input.data[k]));
    for (uint32_t k = 0; k < p->attribute.len; k++) {
        const pb_attribute *a = p->attribute.data[k];
        if (a->g)
            onnx_visit_captures(o->im, a->g, need_name, o);
        for (uint32_t m = 0; m < a->graphs.len; m++)
            onnx_visit_captures(o->im, a->graphs.data[m], need_name, o);
    }
}

static src_loc node_loc(const onnx_env *env, const pb_node *p, uint32_t index)
{
    src_loc l = onnx_loc(env->im);
    if (env->frame)
        return env->frame->loc;
    l.node = onnx_name(env->im, p->name);
    l.op = onnx_name(env->im, p->op_type);
    l.node_index = (int32_t)index;
    return l;
}

static bool report_cycle(onnx_env *env, order *o, uint32_t index)
{
    const pb_node *p = o->nodes[index];
    return diag_error(&env->im->c->diags, DIAG_FORMAT, node_loc(env, p, index),
                      "the node depends on its own result '%s' (a cycle)",
                      p->output.len ? onnx_name(env->im, p->output.data[0]) : "");
}

/* Depth first without recursion; a node is placed when all that it needs is. */
static bool place(onnx_env *env, order *o, uint32_t root)
{
    arena *a = &env->im->c->mem;
    vec_push(a, &o->stack, root);
    while (o->stack.len > 0) {
        uint32_t i = vec_last(&o->stack);
        if (o->marks[i] != 2)
            collect_needs(o, o->nodes[i]);
        if (o->marks[i] == 2 || o->needs.len == 0) {
            if (o->marks[i] != 2)
                o->list[o->len++] = i;
            o->marks[i] = 2;
            (void)vec_pop(&o->stack);
            continue;
        }
        o->marks[i] = 1;
        for (uint32_t k = o->needs.len; k-- > 0;) {
            if (o->marks[o->needs.data[k]] == 1)
                return report_cycle(env, o, o->needs.data[k]);
            vec_push(a, &o->stack, o->needs.data[k]);
        }
    }
    return true;
}

static bool is_constant(onnx_importer *im, const pb_node *p)
{
    return p->output.len == 1 && strcmp(onnx_name(im, p->op_type), "Constant") == 0 && !*onnx_domain(im, p->domain);
}

static bool has_constant(const onnx_env *env, const order *o, const char *name)
{
    const uint8_t *maker = onnx_map_get(&o->makers, name);
    return maker ? is_constant(o->im, o->nodes[maker - o->marks])
                 : onnx_map_get(&env->scope->initializers, name) != NULL;
}

static bool note_makers(onnx_env *env, order *o)
{
    onnx_importer *im = env->im;
    bool ok = true;
    for (uint32_t i = 0; i < o->n; i++)
        for (uint32_t k = 0; k < o->nodes[i]->output.len; k++) {
            const char *name = onnx_name(im, o->nodes[i]->output.data[k]);
            if (!*name)
                continue;
            o->again[i] = is_constant(im, o->nodes[i]) && has_constant(env, o, name);
            if (o->again[i])
                continue;
            if (onnx_map_get(&o->makers, name) || onnx_map_get(&env->scope->values, name) ||
                onnx_map_get(&env->scope->initializers, name))
                ok = diag_error(&im->c->diags, DIAG_FORMAT, node_loc(env, o->nodes[i], i),
                                "the name '%s' is given to two values", name);
            onnx_map_set(&im->c->mem, &o->makers, name, o->marks + i);
        }
    return ok;
}

/* --- one node --- */

static const pb_attribute *resolve(onnx_node *n, const pb_attribute *a)
{
    const onnx_frame *f = n->env->frame;
    if (a->ref_attr_name.len == 0)
        return a;
    const char *ref = onnx_name(n->im, a->ref_attr_name);
    for (uint32_t i = 0; f && i < f->n_attrs; i++)
        if (f->attrs[i].name == ref)
            return f->attrs[i].pb;
    for (uint32_t i = 0; f && i < f->fn->attribute_proto.len; i++)
        if (onnx_name(n->im, f->fn->attribute_proto.data[i]->name) == ref)
            return f->fn->attribute_proto.data[i];
    if (!f)
        onnx_fail(n, DIAG_FORMAT, "attribute '%s' refers to a function's attribute, but the node is in no function",
                  onnx_name(n->im, a->name));
    return NULL; /* the call leaves it out: the operator's default holds */
}

static bool read_attrs(onnx_node *n)
{
    onnx_map seen = {0};
    n->attrs = arena_array(&n->c->mem, onnx_attr, n->pb->attribute.len);
    for (uint32_t i = 0; i < n->pb->attribute.len; i++) {
        const char *name = onnx_name(n->im, n->pb->attribute.data[i]->name);
        const pb_attribute *a = resolve(n, n->pb->attribute.data[i]);
        if (!a)
            continue;
        if (onnx_map_get(&seen, name))
            onnx_fail(n, DIAG_FORMAT, "attribute '%s' is given twice", name);
        onnx_map_set(&n->c->mem, &seen, name, a);
        n->attrs[n->n_attrs++] = (onnx_attr){.name = name, .pb = a};
    }
    return !n->failed;
}

/* false: an input is poisoned or unknown. */
static bool read_inputs(onnx_node *n)
{
    bool ok = true;
    n->n_in = n->pb->input.len;
    n->in = arena_array(&n->c->mem, graph_value *, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++) {
        const char *name = onnx_name(n->im, n->pb->input.data[i]);
        if (!*name)
            continue;
        graph_value *v = onnx_lookup(n->env, name);
        if (!v) {
            diag_error(&n->c->diags, DIAG_FORMAT, n->loc, "input '%s' is no input, initializer or result of the model",
                       name);
            ok = false;
        }
        ok = ok && v != &n->im->poison;
        n->in[i] = v == &n->im->absent ? NULL : v;
    }
    return ok;
}

static void name_outputs(onnx_node *n)
{
    n->n_out = n->pb->output.len;
    n->out = arena_array(&n->c->mem, graph_value *, n->n_out);
    n->out_names = arena_array(&n->c->mem, const char *, n->n_out);
    for (uint32_t i = 0; i < n->n_out; i++) {
        const char *name = onnx_name(n->im, n->pb->output.data[i]);
        const char *renamed = onnx_map_get(&n->env->scope->renamed, name);
        n->out_names[i] = renamed ? renamed : *name ? clear_of_main(n->env, name) : NULL;
    }
}

static void define_outputs(onnx_node *n, bool ok, bool inlined)
{
    for (uint32_t i = 0; i < n->n_out; i++) {
        const char *name = onnx_name(n->im, n->pb->output.data[i]);
        if (!*name)
            continue;
        if (ok && !n->out[i]) {
            onnx_fail(n, DIAG_UNSUPPORTED, "result %u ('%s') of this operator is not supported yet", i, name);
            ok = false;
        }
        ok = ok && (inlined || onnx_settle_result(n, i));
        onnx_define(n->env, name, ok ? n->out[i] : &n->im->poison);
    }
}

/* --- what is not imported, but would be needed --- */

static void note_nodes(onnx_env *env, uint32_t n_nodes, pb_node *const *nodes);

static void note_node(onnx_env *env, const pb_node *p, uint32_t index)
{
    onnx_importer *im = env->im;
    onnx_node n = {.im = im, .c = im->c, .env = env, .pb = p, .loc = node_loc(env, p, index)};
    const char *domain = onnx_domain(im, p->domain), *op = onnx_name(im, p->op_type);
    const pb_function *fn = onnx_find_function(im, domain, p);
    n.version = onnx_opset_version(env, domain);
    if (fn && !onnx_map_get(&im->scanned, (const char *)fn)) {
        onnx_frame frame = {.fn = fn, .loc = n.loc, .caller = env->frame};
        onnx_env body = {.im = im, .frame = &frame};
        onnx_map_set(&im->c->mem, &im->scanned, (const char *)fn, fn);
        if (fn->opset_import.len == 0)
            frame.opsets = env->frame ? env->frame->opsets : im->opsets;
        (void)onnx_read_opsets(im, fn->opset_import.len, fn->opset_import.data, &frame.opsets);
        note_nodes(&body, fn->node.len, fn->node.data);
    }
    if (!fn && !(n.version && (onnx_ops_find(domain, op, n.version) || onnx_ops_find_registered(im->c, domain, op))))
        onnx_note_missing(&n, domain, op, "");
    onnx_note_bodies(&n);
}

static void note_nodes(onnx_env *env, uint32_t n_nodes, pb_node *const *nodes)
{
    for (uint32_t i = 0; i < n_nodes; i++)
        note_node(env, nodes[i], i);
}

/* Messages are nested 100 deep at most, functions are looked at once: the recursion has an end. */
void onnx_note_bodies(onnx_node *n)
{
    for (uint32_t i = 0; i < n->pb->attribute.len; i++) {
        const pb_attribute *a = n->pb->attribute.data[i];
        if (a->g)
            note_nodes(n->env, a->g->node.len, a->g->node.data);
        for (uint32_t k = 0; k < a->graphs.len; k++)
            note_nodes(n->env, a->graphs.data[k]->node.len, a->graphs.data[k]->node.data);
    }
}

static bool run_import(onnx_node *n, const char *domain, const char *op)
{
    const pb_function *fn = onnx_find_function(n->im, domain, n->pb);
    if (n->n_out == 0)
        return onnx_fail(n, DIAG_FORMAT, "the node has no results");
    n->version = onnx_opset_version(n->env, domain);
    n->row = fn || !n->version ? NULL : onnx_ops_find(domain, op, n->version);
    if (!fn && n->version && !n->row)
        n->row = onnx_ops_find_registered(n->c, domain, op);
    if (!fn && !n->row)
        onnx_note_missing(n, domain, op, "");
    if (!fn && !n->row)
        return onnx_note_bodies(n), false;
    if (!read_inputs(n) || !read_attrs(n)) {
        if (n->im->missing.len && !n->im->symbolic) /* it may be for lack of an operator that nothing is known here */
            onnx_note_bodies(n);
        return false;
    }
    n->first = n->f->nodes.len;
    bool ok = fn ? onnx_inline_call(n, fn) : n->row->import(n);
    if (ok && !n->failed && !fn)
        onnx_attr_warn_unused(n);
    return ok && !n->failed;
}

static void import_node(onnx_env *env, const pb_node *p, uint32_t index)
{
    onnx_importer *im = env->im;
    onnx_node n = {.im = im, .c = im->c, .env = env, .f = env->f, .pb = p, .loc = node_loc(env, p, index)};
    name_outputs(&n);
    bool ok = run_import(&n, onnx_domain(im, p->domain), onnx_name(im, p->op_type));
    define_outputs(&n, ok, !n.row);
}

/* A Constant that is there twice is one, as long as its values are equal. */
static void compare_again(onnx_env *env, const pb_node *p, uint32_t index)
{
    onnx_importer *im = env->im;
    onnx_node n = {.im = im, .c = im->c, .env = env, .f = env->f, .pb = p, .loc = node_loc(env, p, index)};
    const char *name = onnx_name(im, p->output.data[0]);
    name_outputs(&n);
    n.out_names[0] = NULL; /* the first has the name */
    if (!run_import(&n, onnx_domain(im, p->domain), onnx_name(im, p->op_type)))
        return;
    const tensor_data *first = graph_constant(onnx_lookup(env, name)), *t = graph_constant(n.out[0]);
    if (first && t && !tensor_equal(first, t))
        onnx_fail(&n, DIAG_FORMAT, "the name '%s' is given to two constants that differ", name);
}

static bool keeps_shape(const char *op)
{
    static const char *const ops[] = {"Cast", "CastLike", "Identity", "Sqrt", "Exp", "Log", "Neg", "Abs", "Reciprocal"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i], op) == 0)
            return true;
    return false;
}

/* A declared shape holds as well for the operand of a node that keeps shapes: from the last node to the first. */
static void spread_shapes(onnx_env *env, const order *o)
{
    onnx_importer *im = env->im;
    onnx_scope *s = env->scope;
    for (uint32_t i = o->len; i-- > 0;) {
        const pb_node *p = o->nodes[o->list[i]];
        if (p->input.len == 0 || p->output.len == 0 || !keeps_shape(onnx_name(im, p->op_type)) || p->domain.len)
            continue;
        const char *in = onnx_name(im, p->input.data[0]), *out = onnx_name(im, p->output.data[0]);
        const void *t = onnx_map_get(&s->declared, out);
        t = t ? t : onnx_map_get(&s->hints, out);
        if (t && !onnx_map_get(&s->declared, in))
            onnx_map_set(&im->c->mem, &s->hints, in, t);
    }
}

static bool too_many(const onnx_env *env, uint32_t n_nodes)
{
    onnx_importer *im = env->im;
    if (!env->frame)
        return diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im), "the model has %u nodes; at most %u are read",
                          im->nodes + n_nodes, ONNX_MAX_NODES);
    diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im), "functions expand to more than %u nodes (in function %s)",
               ONNX_MAX_NODES, onnx_name(im, env->frame->fn->name));
    diag_hint(&im->c->diags,
              "every call is expanded: a function that calls another one twice, again and again, doubles");
    return false;
}

bool onnx_import_nodes(onnx_env *env, uint32_t n_nodes, pb_node *const *nodes)
{
    arena *a = &env->im->c->mem;
    order o = {.im = env->im, .nodes = nodes, .n = n_nodes};
    if (n_nodes > ONNX_MAX_NODES - env->im->nodes)
        return too_many(env, n_nodes);
    env->im->nodes += n_nodes;
    o.marks = arena_array(a, uint8_t, n_nodes);
    o.again = arena_array(a, bool, n_nodes);
    o.list = arena_array(a, uint32_t, n_nodes);
    if (!note_makers(env, &o))
        return false;
    for (uint32_t i = 0; i < n_nodes; i++)
        if (!place(env, &o, i))
            return false;
    spread_shapes(env, &o);
    for (uint32_t i = 0; i < n_nodes; i++)
        (o.again[o.list[i]] ? compare_again : import_node)(env, nodes[o.list[i]], o.list[i]);
    return true;
}
