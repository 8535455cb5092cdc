/* SPDX-License-Identifier: Apache-2.0 */
/* The walk: nodes of a graph, one after the other, into the IR. A node that fails leaves poison in its results, so that
 * the nodes after it are passed over and every fault is told once. Bodies that are imported in place (functions of the
 * model, the branch of an If that is known to be taken) are walked like the graph around them. */
#include "frontend/onnx/onnx_import.h"
#include "graph/op.h"

#include <string.h>

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
    const uint32_t listed = onnx_most_listed(n->row);
    n->n_in = n->pb->input.len;
    n->in = arena_array(&n->c->mem, graph_value *, n->n_in > listed ? n->n_in : listed);
    for (uint32_t i = 0; i < n->n_in; i++) {
        const char *name = onnx_name(n->im, n->pb->input.data[i]);
        if (!*name)
            continue;
        graph_value *v = onnx_lookup(n->env, name);
        if (!v) {
            diag_error(&n->c->diags, DIAG_FORMAT, n->loc, "input '%s' is not an input, initializer or result of the "
                                                          "model",
                       name);
            ok = false;
        }
        if (v == &n->im->absent) /* of a function's caller */
            continue;
        ok = ok && v != &n->im->poison && v->type.kind != TYPE_NONE; /* the latter: of a node that was not read */
        n->in[i] = v;
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
        n->out_names[i] = renamed ? renamed : *name ? onnx_clear_of_main(n->env, name) : NULL;
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
    onnx_node n = {.im = im, .c = im->c, .env = env, .pb = p, .loc = onnx_node_loc(env, p, index)};
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
    if (!fn && !(n.version && (im->find_op(im->c, domain, op, n.version))))
        onnx_note_missing(&n, domain, op, "", "");
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

/* --- bodies in place --- */

/* Inside, names are the body's own; its results take the names of the node that is replaced. */
static bool enter(onnx_node *n)
{
    if (n->im->nesting == ONNX_MAX_NESTING)
        return onnx_fail(n, DIAG_UNSUPPORTED, "functions and branches are nested more than %u deep", ONNX_MAX_NESTING);
    n->im->nesting++;
    return true;
}

/* Result i of the node is `inner` of the body. */
static void rename_result(onnx_node *n, onnx_scope *s, uint32_t i, const char *inner)
{
    arena *a = &n->c->mem;
    const char *outer = i < n->n_out ? onnx_name(n->im, n->pb->output.data[i]) : "";
    const void *declared = *outer ? onnx_map_get(&n->env->scope->declared, outer) : NULL;
    if (*outer && !onnx_map_get(&s->renamed, inner))
        onnx_map_set(a, &s->renamed, inner, n->out_names[i]);
    if (declared)
        onnx_map_set(a, &s->declared, inner, declared);
}

/* *out is what the body makes of that name. False: nothing; *out stays. */
static bool find_result(onnx_node *n, onnx_env *body, const char *name, graph_value **out)
{
    graph_value *v = onnx_lookup(body, name);
    if (!v || v == &n->im->absent)
        return onnx_fail(n, DIAG_FORMAT, "nothing in the body makes its result '%s'", name);
    if (v == &n->im->poison) /* told where it failed */
        return false;
    *out = v;
    return true;
}

static bool take_result(onnx_node *n, onnx_env *body, uint32_t i, const char *inner)
{
    return i >= n->n_out || !n->out_names[i] || find_result(n, body, inner, &n->out[i]);
}

bool onnx_inline_branch(onnx_node *n, const pb_graph *g)
{
    onnx_scope scope = {.parent = n->env->scope};
    onnx_env body = {.im = n->im, .f = n->f, .scope = &scope, .frame = n->env->frame};
    if (g->output.len < n->n_out)
        return onnx_fail(n, DIAG_FORMAT, "the branch has %u results, the node %u", g->output.len, n->n_out);
    if (!enter(n))
        return false;
    bool ok = onnx_import_names(&body, g);
    for (uint32_t i = 0; i < g->output.len; i++)
        rename_result(n, &scope, i, onnx_name(n->im, g->output.data[i]->name));
    ok = ok && onnx_import_nodes(&body, g->node.len, g->node.data);
    for (uint32_t i = 0; ok && i < g->output.len; i++)
        ok = take_result(n, &body, i, onnx_name(n->im, g->output.data[i]->name));
    n->im->nesting--;
    return ok;
}

bool onnx_inline_bodies(onnx_node *n, const pb_graph *g, uint32_t n_in, graph_value *const *in, uint32_t n_out,
                        graph_value **out)
{
    onnx_scope scope = {.parent = n->env->scope};
    onnx_env body = {.im = n->im, .f = n->f, .scope = &scope, .frame = n->env->frame};
    for (uint32_t i = 0; i < n_out; i++)
        out[i] = &n->im->poison;
    if (g->input.len != n_in || g->output.len < n_out)
        return onnx_fail(n, DIAG_FORMAT, "the graph has %u inputs and %u results, not %u and %u", g->input.len,
                         g->output.len, n_in, n_out);
    if (!enter(n))
        return false;
    bool ok = onnx_import_names(&body, g);
    for (uint32_t i = 0; i < n_in; i++)
        onnx_define(&body, onnx_name(n->im, g->input.data[i]->name), in[i]);
    ok = ok && onnx_import_nodes(&body, g->node.len, g->node.data);
    for (uint32_t i = 0; ok && i < n_out; i++)
        ok = find_result(n, &body, onnx_name(n->im, g->output.data[i]->name), &out[i]);
    n->im->nesting--;
    n->failed |= !ok;
    return ok;
}

graph_value *onnx_inline_body(onnx_node *n, const pb_graph *g, graph_value *in)
{
    graph_value *out;
    (void)onnx_inline_bodies(n, g, 1, &in, 1, &out);
    return out;
}

/* A body that imports no operator sets takes those of its caller. */
static bool read_frame(onnx_node *n, const pb_function *fn, onnx_frame *out)
{
    *out = (onnx_frame){.fn = fn, .attrs = n->attrs, .n_attrs = n->n_attrs, .loc = n->loc, .caller = n->env->frame};
    for (const onnx_frame *f = n->env->frame; f; f = f->caller)
        if (f->fn == fn)
            return onnx_fail(n, DIAG_FORMAT, "function '%s' calls itself", onnx_name(n->im, fn->name));
    if (n->n_in > fn->input.len || n->n_out > fn->output.len)
        return onnx_fail(n, DIAG_FORMAT, "function '%s' has %u inputs and %u results; the node has %u and %u",
                         onnx_name(n->im, fn->name), fn->input.len, fn->output.len, n->n_in, n->n_out);
    if (fn->opset_import.len == 0)
        out->opsets = n->env->frame ? n->env->frame->opsets : n->im->opsets;
    return onnx_read_opsets(n->im, fn->opset_import.len, fn->opset_import.data, &out->opsets);
}

static bool inline_call(onnx_node *n, const pb_function *fn)
{
    onnx_scope scope = {0};
    onnx_frame frame;
    onnx_env body = {.im = n->im, .f = n->f, .scope = &scope, .frame = &frame};
    if (!read_frame(n, fn, &frame) || !enter(n))
        return false;
    for (uint32_t i = 0; i < fn->input.len; i++)
        onnx_define(&body, onnx_name(n->im, fn->input.data[i]), i < n->n_in && n->in[i] ? n->in[i] : &n->im->absent);
    for (uint32_t i = 0; i < fn->value_info.len; i++)
        onnx_map_set(&n->c->mem, &scope.declared, onnx_name(n->im, fn->value_info.data[i]->name),
                     fn->value_info.data[i]->type);
    for (uint32_t i = 0; i < fn->output.len; i++)
        rename_result(n, &scope, i, onnx_name(n->im, fn->output.data[i]));
    bool ok = onnx_import_nodes(&body, fn->node.len, fn->node.data);
    for (uint32_t i = 0; ok && i < fn->output.len; i++)
        ok = take_result(n, &body, i, onnx_name(n->im, fn->output.data[i]));
    n->im->nesting--;
    return ok;
}

/* --- one node, all nodes --- */

static bool import_row(onnx_node *n)
{
    return onnx_check_operands(n) && onnx_check_strings(n) && onnx_check_small(n) &&
           (onnx_moves_text(n) ? onnx_move_text(n) : n->row->import(n));
}

static void write_type(writer *w, const type *t)
{
    if (t && t->kind == TYPE_TENSOR && t->dt != DT_NONE && t->shape.rank >= 0)
        type_print(w, t);
    else
        w_str(w, "?");
}

/* Of a node whose operator a user has to bring: what goes in, and what comes out where the model declares it. */
static const char *types_of(onnx_node *n, const char *domain)
{
    writer w;
    if (!*domain || strncmp(domain, "ai.onnx", 7) == 0 || strncmp(domain, "com.microsoft", 13) == 0)
        return "";
    writer_init(&w, &n->c->mem);
    for (uint32_t i = 0; i < n->pb->input.len; i++) {
        const char *name = onnx_name(n->im, n->pb->input.data[i]);
        const graph_value *v = *name ? onnx_lookup(n->env, name) : NULL;
        const bool known = v && v != &n->im->poison && v != &n->im->absent && !onnx_list_of(n->im, v);
        w_str(&w, i ? ", " : ": ");
        if (*name)
            write_type(&w, known ? &v->type : NULL);
        else
            w_str(&w, "-");
    }
    w_str(&w, n->pb->input.len ? " ->" : ": ->");
    for (uint32_t i = 0; i < n->pb->output.len; i++) {
        w_str(&w, i ? ", " : " ");
        write_type(&w, i < n->n_out ? onnx_declared(n, i) : NULL);
    }
    return w.data;
}

static bool run_import(onnx_node *n, const char *domain, const char *op)
{
    const pb_function *fn = onnx_find_function(n->im, domain, n->pb);
    if (n->n_out == 0)
        return onnx_fail(n, DIAG_FORMAT, "the node has no results");
    n->version = onnx_opset_version(n->env, domain);
    n->row = fn || !n->version ? NULL : n->im->find_op(n->c, domain, op, n->version);
    if (!fn && !n->row)
        onnx_note_missing(n, domain, op, "", types_of(n, domain));
    if (!fn && !n->row)
        return onnx_note_bodies(n), false;
    if (!read_inputs(n) || !read_attrs(n)) {
        if (n->im->missing.len && !n->im->symbolic) /* it may be for lack of an operator that nothing is known here */
            onnx_note_bodies(n);
        return false;
    }
    n->first = n->f->nodes.len;
    bool ok = fn ? inline_call(n, fn) : import_row(n);
    if (ok && !n->failed && !fn) {
        onnx_attr_warn_unused(n);
        onnx_spread_strings(n);
        onnx_spread_small(n);
    }
    return ok && !n->failed;
}

/* What the importer has made up to its error, but for constants: other nodes may read them. */
static void drop_unfinished(onnx_node *n)
{
    uint32_t kept = n->first;
    for (uint32_t i = n->first; i < n->f->nodes.len; i++) {
        graph_node *made = n->f->nodes.data[i];
        if (made->n_outputs == 1 && graph_constant(made->outputs[0]))
            n->f->nodes.data[kept++] = made;
    }
    n->f->nodes.len = kept;
}

/* A node that was not read, for who looks at the model: its inputs, as far as they are known, and its results. */
static void keep_unread(onnx_node *n, bool unknown)
{
    graph_value **in = arena_array(&n->c->mem, graph_value *, n->pb->input.len + 1u);
    uint32_t n_in = 0;
    for (uint32_t i = 0; i < n->pb->input.len; i++) {
        const char *name = onnx_name(n->im, n->pb->input.data[i]);
        graph_value *v = *name ? onnx_lookup(n->env, name) : NULL;
        if (v && v != &n->im->poison && v != &n->im->absent && !onnx_list_of(n->im, v))
            in[n_in++] = v;
    }
    const char **names = arena_array(&n->c->mem, const char *, n->n_out + 1u);
    for (uint32_t i = 0; i < n->n_out; i++)
        names[i] = n->out_names[i] ? n->out_names[i] : "";
    drop_unfinished(n);
    const graph_op *op = unknown ? &graph_op_unknown : &graph_op_unread;
    const graph_node *made = graph_add_node(n->f, op, n_in, in, 0, NULL, n->n_out, names, n->loc);
    for (uint32_t i = 0; i < n->n_out; i++) {
        graph_value *v = made->outputs[i];
        onnx_set_declared(n, i, v);
        if (v->declared.kind == TYPE_TENSOR && v->declared.dt != DT_NONE)
            v->type = v->declared;
        n->out[i] = v;
    }
}

static void import_node(onnx_env *env, const pb_node *p, uint32_t index)
{
    onnx_importer *im = env->im;
    onnx_node n = {.im = im, .c = im->c, .env = env, .f = env->f, .pb = p, .loc = onnx_node_loc(env, p, index)};
    const char *domain = onnx_domain(im, p->domain);
    n.first = n.f->nodes.len;
    name_outputs(&n);
    const bool ok = run_import(&n, domain, onnx_name(im, p->op_type));
    const bool keeps = !ok && im->o && im->o->keeps_unread;
    if (keeps)
        keep_unread(&n, !n.row && !onnx_find_function(im, domain, p));
    define_outputs(&n, ok || keeps, keeps || !n.row);
}

/* A Constant that is there twice is one, as long as its values are equal. */
static void compare_again(onnx_env *env, const pb_node *p, uint32_t index)
{
    onnx_importer *im = env->im;
    onnx_node n = {.im = im, .c = im->c, .env = env, .f = env->f, .pb = p, .loc = onnx_node_loc(env, p, index)};
    const char *name = onnx_name(im, p->output.data[0]);
    name_outputs(&n);
    n.out_names[0] = NULL; /* the first has the name */
    if (!run_import(&n, onnx_domain(im, p->domain), onnx_name(im, p->op_type)))
        return;
    const tensor_data *first = graph_constant(onnx_lookup(env, name)), *t = graph_constant(n.out[0]);
    if (first && t && !tensor_equal(first, t))
        onnx_fail(&n, DIAG_FORMAT, "the name '%s' is given to two constants that differ", name);
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
              "every call of a function is expanded, so functions that call others several times grow fast");
    return false;
}

bool onnx_import_nodes(onnx_env *env, uint32_t n_nodes, pb_node *const *nodes)
{
    onnx_order order;
    if (n_nodes > ONNX_MAX_NODES - env->im->nodes)
        return too_many(env, n_nodes);
    env->im->nodes += n_nodes;
    if (!onnx_order_nodes(env, n_nodes, nodes, &order))
        return false;
    for (uint32_t i = 0; i < n_nodes; i++)
        (order.again[order.list[i]] ? compare_again : import_node)(env, nodes[order.list[i]], order.list[i]);
    return true;
}
