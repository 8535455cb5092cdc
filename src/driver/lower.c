/* SPDX-License-Identifier: Apache-2.0 */
/* The border between graph and loops. Views become values inside other values; a concatenation whose parts lie one
 * behind the other becomes the place where its operands are written; constants of one value become literals; equal
 * kernels are shared (except at -O0, where every operator keeps its own). */
#include "driver/lower.h"

#include "graph/op.h"
#include "graph/ptr_map.h"
#include "te/te_op.h"

#include <string.h>

typedef struct lowering {
    compiler *c;
    graph_func *f;
    const compile_options *o;
    plan_problem *p;
    tir_module *tir;
    VEC(unit_io) inputs, outputs;
    VEC(unit_const) constants;
    VEC(unit_op) ops;
    VEC(int32_t) older;               /* of each operator: the last one before with its name and hash; -1: none */
    ptr_map io_names, constant_names; /* upper-case C names in use -> number to try next */
    ptr_map kernels, kernel_counts;   /* "name#hash" -> its last operator; name -> kernels of that name */
} lowering;

/* More than any machine has: a size beyond it is a mistake in the model or on the command line. */
static const uint64_t most_bytes = (uint64_t)1 << 40, most_bytes_32 = (uint64_t)1 << 31;

static uint32_t index_of(const graph_value *v)
{
    return v->mark - 1;
} /* number in the plan */

uint64_t lower_most_bytes(const target *t)
{
    return strcmp(t->name, "cortex-m") == 0 ? most_bytes_32 : most_bytes;
}

/* --- what can be lowered
 * ------------------------------------------------------------------------------------------------ */

static bool check_value(lowering *l, const graph_value *v, src_loc loc)
{
    compiler *c = l->c;
    if (v->type.kind != TYPE_TENSOR)
        return diag_error(&c->diags, DIAG_UNSUPPORTED, loc,
                          "value '%s' is no tensor; sequences and optionals are not built yet", v->name);
    if (!dtype_usable(v->type.dt))
        return diag_error(&c->diags, DIAG_UNSUPPORTED, loc, "value '%s': kernels on %s are not built yet", v->name,
                          dtype_name(v->type.dt));
    bool fixed = shape_is_static(v->type.shape);
    int64_t bytes = fixed ? type_bytes(&v->type) : -1;
    if (bytes >= 0 && (uint64_t)bytes <= lower_most_bytes(c->target))
        return true;
    writer w;
    writer_init(&w, &c->mem);
    type_print(&w, &v->type);
    if (fixed)
        return diag_error(&c->diags, DIAG_UNSUPPORTED, loc,
                          "value '%s' of type %s is too large for the target %s: "
                          "the most is 2^%d bytes",
                          v->name, w.data, c->target->name, lower_most_bytes(c->target) == most_bytes ? 40 : 31);
    diag_error(&c->diags, DIAG_UNSUPPORTED, loc, "value '%s' has type %s, a shape that is not known at compile time",
               v->name, w.data);
    if (!v->def)
        diag_hint(&c->diags, "fix it with --shape '%s=...' or --dim NAME=N", v->name);
    return false;
}

static bool check_values(lowering *l)
{
    bool ok = true;
    for (uint32_t i = 0; i < l->f->params.len; i++)
        ok &= check_value(l, l->f->params.data[i], src_loc_none());
    for (uint32_t i = 0; ok && i < l->f->nodes.len; i++)
        for (uint32_t k = 0; k < l->f->nodes.data[i]->n_outputs; k++)
            ok &= check_value(l, l->f->nodes.data[i]->outputs[k], l->f->nodes.data[i]->loc);
    return ok;
}

static graph_func *callee_of(const graph_node *n)
{
    const attr *a = strcmp(n->op->name, "call") == 0 ? graph_attr(n, "callee") : NULL;
    return a ? a->u.func : NULL;
}

/* The only computing node of n, when n is a call of a primitive with one, or is no call. */
static const graph_node *sole_node(const graph_node *n)
{
    const graph_func *f = callee_of(n);
    const graph_node *found = NULL;
    if (!f)
        return n;
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        if (strcmp(f->nodes.data[i]->op->name, "constant") == 0)
            continue;
        if (found)
            return NULL;
        found = f->nodes.data[i];
    }
    return found;
}

static graph_value *operand_outside(const graph_node *call, const graph_node *inner, uint32_t i)
{
    const graph_func *f = callee_of(call);
    if (!f)
        return inner->inputs[i];
    for (uint32_t k = 0; k < f->params.len; k++)
        if (f->params.data[k] == inner->inputs[i])
            return call->inputs[k];
    return NULL;
}

/* What n only gives another shape; NULL: n computes. */
static graph_value *viewed(const graph_node *n)
{
    const graph_node *inner = n ? sole_node(n) : NULL;
    if (!inner || !(inner->op->flags & OPF_VIEW) || inner->n_inputs == 0 || n->n_outputs != 1)
        return NULL;
    return operand_outside(n, inner, 0);
}

static const graph_value *base_of(const graph_value *v)
{
    while (viewed(v->def))
        v = viewed(v->def);
    return v;
}

/* A result must be written by an operator, and no two results share bytes: others get a copy. */
static bool separate_results(lowering *l)
{
    for (uint32_t i = 0; i < l->f->results.len; i++) {
        graph_value *v = l->f->results.data[i];
        const graph_value *base = base_of(v);
        bool copy = !base->def || graph_constant(base);
        for (uint32_t k = 0; k < i; k++)
            copy |= base_of(l->f->results.data[k]) == base;
        if (!copy)
            continue;
        graph_value *made = graph_emit(l->f, NULL, "copy", 1, &v, 0, NULL, v->def ? v->def->loc : src_loc_none());
        if (!made)
            return false;
        l->f->results.data[i] = made;
    }
    return true;
}

/* --- values
 * ------------------------------------------------------------------------------------------------------------- */

static uint32_t add_value(lowering *l, graph_value *v, plan_storage storage, uint32_t index)
{
    uint64_t bytes = (uint64_t)type_bytes(&v->type);
    vec_push(&l->c->mem, &l->p->values,
             ((plan_value){.name = v->name,
                           .storage = storage,
                           .index = index,
                           .bytes = bytes,
                           .align = plan_align(bytes),
                           .parent = -1}));
    v->mark = l->p->values.len;
    return v->mark - 1;
}

/* A name in capitals: macros are made of it, so two names that differ in letters' case only are the same. */
static const char *capitals(compiler *c, const char *name)
{
    char *s = arena_strdup(&c->mem, name);
    for (char *at = s; *at; at++)
        *at = (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
    return intern(c->names, s);
}

/* A C identifier that is not in `used` yet; it is afterwards. */
static const char *unique_name(compiler *c, const char *wanted, ptr_map *used)
{
    const char *base = codegen_c_identifier(&c->mem, wanted);
    const char *name = base, *first = capitals(c, base), *key = first;
    uint32_t k = 1, ignored;
    bool again = ptr_map_get(used, first, &k);
    while (again && ptr_map_get(used, key, &ignored)) {
        name = arena_printf(&c->mem, "%s_%u", base, k++);
        key = capitals(c, name);
    }
    ptr_map_set(used, first, k);
    if (key != first)
        ptr_map_set(used, key, 1);
    return name;
}

static void init_names(lowering *l)
{
    /* TVMGEN_M_WORKSPACE_SIZE and TVMGEN_M_CONST_SIZE have other meanings; `none` stands in for no field at all. */
    static const char *const reserved[] = {"workspace", "const", "none"};
    ptr_map_init(&l->io_names, &l->c->mem);
    ptr_map_init(&l->constant_names, &l->c->mem);
    ptr_map_init(&l->kernels, &l->c->mem);
    ptr_map_init(&l->kernel_counts, &l->c->mem);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        ptr_map_set(&l->io_names, capitals(l->c, reserved[i]), 1);
}

static void add_inputs(lowering *l)
{
    for (uint32_t i = 0; i < l->f->params.len; i++) {
        graph_value *v = l->f->params.data[i];
        uint32_t value = add_value(l, v, STORE_INPUT, i);
        unit_io io = {v->name, unique_name(l->c, v->name, &l->io_names), v->type, value};
        vec_push(&l->c->mem, &l->inputs, io);
    }
}

static bool is_literal(const graph_value *v)
{
    const tensor_data *t = graph_constant(v);
    return t && t->kind == TENSOR_SPLAT && t->count > 1;
}

static void add_constant(lowering *l, graph_value *v)
{
    const tensor_data *t = graph_constant(v);
    for (uint32_t i = 0; i < l->constants.len && l->o->opt_level > 0; i++)
        if (tensor_equal(l->constants.data[i].data, t)) {
            v->mark = l->constants.data[i].value + 1;
            return;
        }
    uint32_t n = l->constants.len;
    uint32_t value = add_value(l, v, STORE_CONSTANT, n);
    const char *name = unique_name(l->c, arena_printf(&l->c->mem, "const_%.60s", v->name), &l->constant_names);
    vec_push(&l->c->mem, &l->constants, ((unit_const){name, t, value}));
}

/* Constants are made values only when something reads them. */
static void need(lowering *l, graph_value *v)
{
    if (v->mark == 0 && graph_constant(v))
        add_constant(l, v);
}

static bool add_view(lowering *l, graph_node *n)
{
    graph_value *from = viewed(n);
    need(l, from);
    if (type_bytes(&n->outputs[0]->type) > type_bytes(&from->type))
        return diag_error(&l->c->diags, DIAG_TYPE, n->loc, "'%s' shows more elements than '%s' has",
                          n->outputs[0]->name, from->name);
    uint32_t v = add_value(l, n->outputs[0], STORE_WORKSPACE, 0), parent = index_of(from);
    l->p->values.data[v].storage = l->p->values.data[parent].storage;
    l->p->values.data[v].parent = (int32_t)parent;
    return true;
}

/* --- concatenation in place
 * ----------------------------------------------------------------------------------------------- */

static bool outer_is_one(const graph_node *concat)
{
    int64_t dims[TYPE_MAX_RANK], axis = graph_attr_int(concat, "axis");
    const shape *s = &concat->outputs[0]->type.shape;
    if (!shape_get(*s, dims))
        return false;
    axis = axis < 0 ? axis + s->rank : axis;
    for (int64_t i = 0; i < axis; i++)
        if (dims[i] != 1)
            return false;
    return true;
}

/* The root of v when it may be moved into another value. */
static bool movable(const lowering *l, const graph_value *v, uint32_t *out)
{
    uint64_t start;
    if (!v || v->mark == 0)
        return false;
    *out = plan_root(l->p, index_of(v), &start);
    const plan_value *r = &l->p->values.data[*out];
    return r->storage == STORE_WORKSPACE && r->bytes == (uint64_t)type_bytes(&v->type) && start == 0;
}

static bool is_result(const lowering *l, uint32_t root)
{
    uint64_t start;
    for (uint32_t i = 0; i < l->f->results.len; i++) {
        const graph_value *v = base_of(l->f->results.data[i]);
        if (v->mark != 0 && plan_root(l->p, index_of(v), &start) == root)
            return true;
    }
    return false;
}

static bool alias_concat(lowering *l, graph_node *n)
{
    const graph_node *inner = sole_node(n);
    if (!inner || strcmp(inner->op->name, "concatenate") != 0 || n->n_outputs != 1 || l->o->opt_level == 0 ||
        !outer_is_one(inner))
        return false;
    uint32_t *roots = arena_array(&l->c->mem, uint32_t, inner->n_inputs);
    for (uint32_t i = 0; i < inner->n_inputs; i++) {
        if (!movable(l, operand_outside(n, inner, i), &roots[i]) || is_result(l, roots[i]))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (roots[k] == roots[i])
                return false;
    }
    uint32_t whole = add_value(l, n->outputs[0], STORE_WORKSPACE, 0);
    uint64_t at = 0;
    for (uint32_t i = 0; i < inner->n_inputs; i++) {
        l->p->values.data[roots[i]].parent = (int32_t)whole;
        l->p->values.data[roots[i]].parent_offset = at;
        at += l->p->values.data[roots[i]].bytes;
    }
    return true;
}

/* --- operators
 * ------------------------------------------------------------------------------------------------------------ */

typedef struct literal_use {
    const tir_buffer *buffer;
    const tensor_data *data;
} literal_use;

static tir_expr_ref replace_load(tir_rewriter *r, tir_expr_ref e)
{
    const literal_use *u = r->ctx;
    if (e->kind != TIR_LOAD || e->u.buffer != u->buffer)
        return e;
    dtype dt = u->data->dt;
    tir_expr_ref v = dtype_is_float(dt) ? tir_float(r->c, dt, tensor_get_f64(u->data, 0))
                                        : tir_int(r->c, dt, tensor_get_i64(u->data, 0));
    return e->type.lanes > 1 ? tir_broadcast(r->c, v, e->type.lanes) : v;
}

/* Parameter i of f always holds the same number. */
static void drop_literal(lowering *l, tir_func *f, uint32_t i, const tensor_data *t)
{
    literal_use u = {f->params[i], t};
    tir_rewriter r = {.c = l->c, .ctx = &u, .expr = replace_load};
    const tir_buffer **params = arena_array(&l->c->mem, const tir_buffer *, f->n_params);
    f->body = tir_rewrite_stmt(&r, f->body);
    for (uint32_t k = 0, n = 0; k < f->n_params; k++)
        if (k != i)
            params[n++] = f->params[k];
    f->params = params;
    f->n_params--;
    f->n_inputs--;
}

static void append_name(writer *w, const char *text, const char *separator)
{
    if (w->len > 0)
        w_str(w, separator);
    w_str(w, text);
}

static void describe_node(const graph_node *n, writer *name, writer *kind, writer *source)
{
    if (strcmp(n->op->name, "constant") == 0)
        return;
    char part[64];
    size_t i = 0;
    for (; n->op->name[i] && i + 1 < sizeof part; i++)
        part[i] = n->op->name[i] == '.' ? '_' : n->op->name[i];
    part[i] = '\0';
    if (name->len + i < 90)
        append_name(name, part, "_");
    append_name(kind, n->op->name, "+");
    const char *from = n->loc.node && *n->loc.node ? n->loc.node : n->loc.op;
    if (from && source->len < 300)
        append_name(source, from, ", ");
}

static void describe(lowering *l, const graph_node *n, unit_op *out)
{
    writer name, kind, source;
    writer_init(&name, &l->c->mem);
    writer_init(&kind, &l->c->mem);
    writer_init(&source, &l->c->mem);
    w_str(&name, "fused");
    const graph_func *f = callee_of(n);
    for (uint32_t i = 0; f && i < f->nodes.len; i++)
        describe_node(f->nodes.data[i], &name, &kind, &source);
    if (!f)
        describe_node(n, &name, &kind, &source);
    out->name = name.data;
    out->kind = kind.data ? kind.data : "";
    out->source = source.data ? source.data : "";
}

/* The kernel that this operator calls: an equal one, or a new one with a number behind its name. */
static void name_kernel(lowering *l, tir_func *f, unit_op *op)
{
    compiler *c = l->c;
    bool share = l->o->opt_level > 0;
    uint64_t hash = share ? tir_hash(f) : 0;
    uint32_t last, same = 0;
    const char *name = intern(c->names, op->name),
               *key = intern(c->names, arena_printf(&c->mem, "%s#%llx", name, (unsigned long long)hash));
    int32_t older = share && ptr_map_get(&l->kernels, key, &last) ? (int32_t)last : -1;
    for (int32_t i = older; i >= 0 && !op->kernel; i = l->older.data[i])
        if (tir_func_equal(l->p->ops.data[i].func, f))
            op->kernel = l->ops.data[i].kernel;
    op->defines_kernel = !op->kernel;
    vec_push(&c->mem, &l->older, older);
    if (!op->defines_kernel)
        return;
    (void)ptr_map_get(&l->kernel_counts, name, &same);
    op->kernel = same == 0 ? op->name : arena_printf(&c->mem, "%s_%u", op->name, same);
    ptr_map_set(&l->kernel_counts, name, same + 1);
    ptr_map_set(&l->kernels, key, l->ops.len);
}

static bool add_operands(lowering *l, graph_node *n, tir_func *f, uint32_t *args, uint32_t *count)
{
    for (uint32_t i = 0, param = 0; i < n->n_inputs; i++) {
        if (!n->inputs[i])
            continue;
        if (is_literal(n->inputs[i])) {
            drop_literal(l, f, param, graph_constant(n->inputs[i]));
            continue;
        }
        need(l, n->inputs[i]);
        if (n->inputs[i]->mark == 0)
            return diag_error(&l->c->diags, DIAG_INTERNAL, n->loc, "value '%s' is read before it is made",
                              n->inputs[i]->name);
        args[(*count)++] = index_of(n->inputs[i]);
        param++;
    }
    for (uint32_t i = 0; i < n->n_outputs; i++)
        args[(*count)++] = add_value(l, n->outputs[i], STORE_WORKSPACE, 0);
    return true;
}

/* Loop IR of a primitive function or a single node: by the target's hook when it has one and takes the function. */
static bool make_loops(compiler *c, const graph_func *callee, const graph_node *n, const char *name, tir_func **out)
{
    *out = NULL;
    if (callee && c->target->lower && !c->target->lower(c, callee, name, out))
        return false;
    if (*out)
        return tir_verify(c, *out);
    return callee ? te_lower_func(c, callee, name, false, out) : te_lower_node(c, n, name, false, out);
}

static bool add_op(lowering *l, graph_node *n)
{
    unit_op u = {0};
    tir_func *f = NULL;
    const graph_func *callee = callee_of(n);
    describe(l, n, &u);
    if (!make_loops(l->c, callee, n, u.name, &f))
        return false;
    uint32_t *args = arena_array(&l->c->mem, uint32_t, n->n_inputs + n->n_outputs), count = 0;
    if (!add_operands(l, n, f, args, &count))
        return false;
    if (count != f->n_params)
        return diag_error(&l->c->diags, DIAG_INTERNAL, n->loc, "kernel %s has %u parameters for %u operands", u.name,
                          f->n_params, count);
    u.macs = f->macs;
    name_kernel(l, f, &u);
    f->name = u.kernel;
    if (u.defines_kernel)
        vec_push(&l->c->mem, &l->tir->funcs, f);
    vec_push(&l->c->mem, &l->ops, u);
    vec_push(
        &l->c->mem, &l->p->ops,
        ((plan_op){.name = u.kernel, .func = f, .args = args, .n_args = count, .n_inputs = f->n_inputs, .extent = 1}));
    return true;
}

static bool add_node(lowering *l, graph_node *n)
{
    if (strcmp(n->op->name, "constant") == 0)
        return true;
    if (viewed(n))
        return add_view(l, n);
    return alias_concat(l, n) || add_op(l, n);
}

/* --- results
 * -------------------------------------------------------------------------------------------------------------- */

static void add_outputs(lowering *l, const char *const *names)
{
    uint64_t start;
    for (uint32_t i = 0; i < l->f->results.len; i++) {
        graph_value *v = l->f->results.data[i];
        uint32_t root = plan_root(l->p, index_of(v), &start);
        l->p->values.data[root].storage = STORE_OUTPUT;
        l->p->values.data[root].index = i;
        unit_io io = {names[i], unique_name(l->c, names[i], &l->io_names), v->type, root};
        vec_push(&l->c->mem, &l->outputs, io);
    }
    for (uint32_t v = 0; v < l->p->values.len; v++) {
        const plan_value *r = &l->p->values.data[plan_root(l->p, v, &start)];
        l->p->values.data[v].storage = r->storage;
        l->p->values.data[v].index = r->index;
    }
}

static const char *const *result_names(const lowering *l)
{
    const char **names = arena_array(&l->c->mem, const char *, l->f->results.len + 1u);
    for (uint32_t i = 0; i < l->f->results.len; i++)
        names[i] = l->f->results.data[i]->name;
    return names;
}

static void clear_marks(graph_func *f)
{
    for (uint32_t i = 0; i < f->params.len; i++)
        f->params.data[i]->mark = 0;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_outputs; k++)
            f->nodes.data[i]->outputs[k]->mark = 0;
}

bool lower_module(compiler *c, graph_module *m, const compile_options *o, codegen_unit *u, plan_problem **out_problem,
                  tir_module **out_tir)
{
    lowering l = {.c = c, .f = graph_module_find(m, "main"), .o = o};
    if (!l.f)
        return diag_error(&c->diags, DIAG_FORMAT, src_loc_none(), "the graph has no function @main");
    l.p = arena_new(&c->mem, plan_problem);
    l.tir = arena_new(&c->mem, tir_module);
    l.tir->c = c;
    const char *const *names = result_names(&l);
    if (!check_values(&l) || !separate_results(&l))
        return false;
    clear_marks(l.f);
    init_names(&l);
    add_inputs(&l);
    for (uint32_t i = 0; i < l.f->nodes.len; i++)
        if (!add_node(&l, l.f->nodes.data[i]))
            return false;
    add_outputs(&l, names);
    u->inputs = l.inputs.data;
    u->n_inputs = l.inputs.len;
    u->outputs = l.outputs.data;
    u->n_outputs = l.outputs.len;
    u->constants = l.constants.data;
    u->n_constants = l.constants.len;
    u->ops = l.ops.data;
    *out_problem = l.p;
    *out_tir = l.tir;
    return true;
}
