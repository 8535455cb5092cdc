/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier: checks everything that the other parts rely on. Structure comes first. Types are checked only if the
 * structure is right. */
#include "graph/op.h"
#include "graph/op/promise.h"
#include "graph/operand.h"
#include "base/ptr_map.h"
#include "graph/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_CALL_DEPTH 200u /* passes follow calls by recursion */

typedef struct checker {
    compiler *c;
    const graph_module *m;
    const graph_func *f;
    ptr_map funcs; /* the module's */
    arena scratch;
} checker;

static bool fault(checker *k, src_loc at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static bool fault(checker *k, src_loc at, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return diag_error(&k->c->diags, DIAG_VERIFY, at, "@%s: %s", k->f->name, text);
}

/* --- attributes --- */

static int64_t position(const graph_op *op, const char *name)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].name == name)
            return i;
    return -1;
}

static bool in_module(const checker *k, const graph_func *f)
{
    uint32_t unused = 0;
    return f && ptr_map_get(&k->funcs, f, &unused);
}

static bool check_attr(checker *k, const graph_node *n, uint32_t i)
{
    const attr *a = &n->attrs[i];
    int64_t at = position(n->op, a->name);
    if (at < 0)
        return fault(k, n->loc, "%s has no attribute '%s'", n->op->name, a->name);
    if (n->op->attrs[at].kind != a->kind)
        return fault(k, n->loc, "%s: attribute '%s' is %s, not %s", n->op->name, a->name, graph_attr_kind_name(a->kind),
                     graph_attr_kind_name(n->op->attrs[at].kind));
    if (i > 0 && position(n->op, n->attrs[i - 1].name) >= at)
        return fault(k, n->loc, "%s: attribute '%s' is out of order or double", n->op->name, a->name);
    if (attr_equal(a, &n->op->defaults[at]))
        return fault(k, n->loc, "%s: attribute '%s' is stored although it has its default value", n->op->name, a->name);
    if (a->kind == ATTR_FUNC && !in_module(k, a->u.func))
        return fault(k, n->loc, "%s: '%s' is not a function of this module", n->op->name, a->name);
    if (a->kind == ATTR_TENSOR && !a->u.tensor)
        return fault(k, n->loc, "%s: '%s' has no value", n->op->name, a->name);
    return true;
}

static bool check_attrs(checker *k, const graph_node *n)
{
    bool ok = true;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        ok &= check_attr(k, n, i);
    for (uint32_t i = 0; i < n->op->n_attrs; i++)
        if (!graph_attr(n, n->op->attrs[i].name))
            ok = fault(k, n->loc, "%s: attribute '%s' is required", n->op->name, n->op->attrs[i].name);
    return ok;
}

/* --- nodes --- */

static bool check_count(checker *k, const graph_node *n, const char *what, uint32_t have, int32_t least, int32_t most)
{
    if ((int64_t)have >= least && (most < 0 || (int64_t)have <= most))
        return true;
    if (least == most)
        return fault(k, n->loc, "%s has %u %s where %d are needed", n->op->name, have, what, (int)least);
    if (most < 0)
        return fault(k, n->loc, "%s has %u %s where at least %d are needed", n->op->name, have, what, (int)least);
    return fault(k, n->loc, "%s has %u %s where %d to %d are needed", n->op->name, have, what, (int)least, (int)most);
}

/* mark 1: defined in this function, at this point */
static bool check_inputs(checker *k, const graph_node *n)
{
    bool ok = check_count(k, n, "operands", n->n_inputs, n->op->min_in, n->op->max_in);
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const graph_value *v = n->inputs[i];
        if (!v && operand_is_required(n->op, i))
            ok = fault(k, n->loc, "%s: operand %u is required", n->op->name, i);
        if (v && !v->mark)
            ok = fault(k, n->loc, "%s: operand %%%s is not defined before its use in this function", n->op->name,
                       v->name);
    }
    return ok;
}

static bool check_name(checker *k, ptr_map *names, const graph_value *v, src_loc at)
{
    uint32_t unused = 0;
    if (!v->name || !*v->name)
        return fault(k, at, "a value has no name");
    if (ptr_map_get(names, v->name, &unused))
        return fault(k, at, "two values are named %%%s", v->name);
    ptr_map_set(names, v->name, 1);
    return true;
}

static bool check_outputs(checker *k, const graph_node *n, ptr_map *names)
{
    bool ok = check_count(k, n, "results", n->n_outputs, n->op->min_out, n->op->max_out);
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        graph_value *v = n->outputs[i];
        if (v->def != n || v->index != i)
            ok = fault(k, n->loc, "%s: result %%%s does not know its node", n->op->name, v->name);
        ok &= check_name(k, names, v, n->loc);
        v->mark = 1;
    }
    return ok;
}

/* Extents that contradict each other; a symbol agrees with anything. */
static bool agrees(const type *a, const type *b)
{
    int64_t x = 0, y = 0;
    if (a->kind != b->kind)
        return false;
    if (a->kind != TYPE_TENSOR)
        return type_equal(a, b);
    if (a->dt != b->dt)
        return false;
    if (a->shape.rank < 0 || b->shape.rank < 0)
        return true;
    if (a->shape.rank != b->shape.rank)
        return false;
    for (int32_t i = 0; i < a->shape.rank; i++)
        if (dim_is_const(a->shape.dims[i], &x) && dim_is_const(b->shape.dims[i], &y) && x != y)
            return false;
    return true;
}

static const char *type_text(checker *k, const type *t)
{
    writer w;
    writer_init(&w, &k->scratch);
    type_print(&w, t);
    return w.data;
}

/* As relations ask for it. */
static bool operands_have_types(const graph_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] && (n->inputs[i]->type.kind == TYPE_NONE ||
                             (!(n->op->flags & OPF_CALL) &&
                              (n->inputs[i]->type.kind != TYPE_TENSOR || n->inputs[i]->type.shape.rank < 0))))
            return false;
    return true;
}

/* Relations that would make a fresh symbol are not asked: a check must not change the names that later passes make. */
static bool can_ask(const graph_node *n)
{
    if (!operands_have_types(n))
        return false;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        if (n->outputs[i]->type.kind != TYPE_TENSOR || !shape_is_static(n->outputs[i]->type.shape))
            return false;
    for (uint32_t i = 0; i < n->n_attrs; i++) /* of callees that are not inferred nothing is known */
        for (uint32_t r = 0; n->attrs[i].kind == ATTR_FUNC && r < n->attrs[i].u.func->results.len; r++)
            if (n->attrs[i].u.func->results.data[r]->type.kind == TYPE_NONE)
                return false;
    return n->n_outputs > 0;
}

static bool check_types(checker *k, const graph_node *n)
{
    if (!can_ask(n)) /* but what kernels rely on is looked at */
        return !operands_have_types(n) || graph_promise_kept(k->c, n);
    bool ok = true;
    type *out = arena_array(&k->scratch, type, n->n_outputs);
    uint32_t id = k->c->next_id;
    bool told = graph_relate(k->c, n, out);
    k->c->next_id = id;
    for (uint32_t i = 0; i < n->n_outputs && told; i++)
        if (!agrees(&n->outputs[i]->type, &out[i]))
            ok = fault(k, n->loc, "%s: %%%s has type %s but should have %s", n->op->name, n->outputs[i]->name,
                       type_text(k, &n->outputs[i]->type), type_text(k, &out[i]));
    return ok && told;
}

/* --- functions --- */

/* Values of other functions that slipped in have no mark either. */
static void clear_marks(const graph_func *f)
{
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t j = 0; j < f->nodes.data[i]->n_inputs; j++)
            if (f->nodes.data[i]->inputs[j])
                f->nodes.data[i]->inputs[j]->mark = 0;
    for (uint32_t i = 0; i < f->results.len; i++)
        f->results.data[i]->mark = 0;
}

static bool fits_state(const type *t, const tensor_data *initial)
{
    int64_t dims[TYPE_MAX_RANK];
    return !initial || (initial->dt == t->dt && shape_get(t->shape, dims) &&
                        initial->rank == (uint32_t)t->shape.rank &&
                        (initial->rank == 0 || memcmp(initial->dims, dims, initial->rank * sizeof *dims) == 0));
}

/* Of main, each a pair of its own, of one type that has a size. */
static bool check_states(checker *k, const graph_func *f)
{
    if (f->states.len > 0 && strcmp(f->name, "main") != 0)
        return fault(k, src_loc_none(), "only @main has states: a function has none between calls");
    for (uint32_t i = 0; i < f->states.len; i++) {
        const graph_state *s = &f->states.data[i];
        if (s->param >= f->params.len || s->result >= f->results.len)
            return fault(k, src_loc_none(), "a state of a parameter or a result that is not there");
        const graph_value *from = f->results.data[s->result], *to = f->params.data[s->param];
        if (graph_state_of_param(f, s->param) != s || graph_state_of_result(f, s->result) != s)
            return fault(k, src_loc_none(), "%%%s is the state of two results", to->name);
        if (from->type.kind != TYPE_TENSOR || to->type.kind != TYPE_TENSOR)
            continue;
        if (!type_equal(&from->type, &to->type) || !shape_is_static(to->type.shape))
            return fault(k, src_loc_none(), "%%%s cannot be the state of %%%s: both have one type, of a fixed shape",
                         from->name, to->name);
        if (!fits_state(&to->type, s->initial))
            return fault(k, src_loc_none(), "the state of %%%s: its first value has another type", to->name);
    }
    return true;
}

static bool check_func(checker *k, const graph_func *f)
{
    bool ok = true;
    ptr_map names;
    k->f = f;
    ptr_map_init(&names, &k->scratch);
    clear_marks(f);
    for (uint32_t i = 0; i < f->params.len; i++) {
        graph_value *v = f->params.data[i];
        if (v->def || v->index != i)
            ok = fault(k, src_loc_none(), "parameter %%%s does not know its place", v->name);
        ok &= check_name(k, &names, v, src_loc_none());
        v->mark = 1;
    }
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        bool sound = check_inputs(k, n);
        sound &= check_attrs(k, n);
        sound &= check_outputs(k, n, &names);
        ok &= sound && check_types(k, n);
    }
    for (uint32_t i = 0; i < f->results.len; i++)
        if (!f->results.data[i]->mark)
            ok = fault(k, src_loc_none(), "result %%%s is not defined in this function", f->results.data[i]->name);
    return ok && check_states(k, f);
}

/* --- what a row believes --- */

/* The promise of n, a node of the fused function g, for one call of it, with the call's constants. */
static bool check_promise(checker *k, const graph_node *call, const graph_func *g, const graph_node *n)
{
    uint32_t first = 0, last = 0;
    graph_node copy = *n;
    if (!graph_promises(n, &first, &last))
        return true;
    copy.inputs = arena_copy(&k->scratch, n->inputs, n->n_inputs * sizeof *n->inputs, _Alignof(graph_value *));
    const graph_value *x = n->inputs[0];
    int64_t most = 0;
    if (graph_promises_limit(n, &most) && x && !x->def &&
        !graph_is_limited(x->index < call->n_inputs ? call->inputs[x->index] : NULL, most))
        return fault(k, call->loc, "%s: @%s wants numbers of at most %lld for its parameter %%%s, as of a minimum with "
                     "one constant", call->op->name, g->name, (long long)most, x->name);
    for (uint32_t i = first; i <= last; i++) {
        const graph_value *v = n->inputs[i];
        if (!v || v->def)
            continue;
        copy.inputs[i] = v->index < call->n_inputs ? call->inputs[v->index] : NULL;
        if (!graph_constant(copy.inputs[i]))
            return fault(k, call->loc, "%s: @%s wants a constant for its parameter %%%s, because %s makes a claim "
                                       "about it",
                         call->op->name, g->name, v->name, n->op->name);
    }
    return !operands_have_types(&copy) || graph_promise_kept(k->c, &copy);
}

/* A constant, or weights of 4 bits, of which the relation looks at the range. */
static bool is_known(const graph_value *v)
{
    return graph_constant(v) || (v->def && strcmp(v->def->op->name, "unpack_nibbles") == 0);
}

enum { IS_CALLED = 1, IS_TAKEN = 2 }; /* marks of functions: the callee of `call`; of anything else, or the entry */

/* In a fused function, of parameters as well: those who call it answer for them, and nobody else runs it. */
static bool check_own_promises(checker *k, const graph_node *n)
{
    uint32_t first = 0, last = 0;
    int64_t most = 0;
    bool ok = true;
    const bool limits = graph_promises_limit(n, &most) && n->inputs[0];
    if (limits && (n->inputs[0]->def || !graph_is_primitive(k->f)) && !graph_is_limited(n->inputs[0], most))
        ok = fault(k, n->loc, "%s: proved = 1 is set for %%%s, which is not a minimum with one constant of at most "
                              "%lld; leave it out", n->op->name, n->inputs[0]->name, (long long)most);
    else if (limits && !n->inputs[0]->def && k->f->mark != IS_CALLED)
        ok = fault(k, n->loc, "%s: proved = 1 is set for parameter %%%s, which no call guarantees; leave it out",
                   n->op->name, n->inputs[0]->name);
    for (uint32_t i = 1; graph_promises(n, &first, &last) && i >= first && i <= last; i++) {
        const graph_value *v = n->inputs[i];
        const char *what = last > 1 ? "proved" : "pairs";
        if (!v || is_known(v))
            continue;
        if (v->def || !graph_is_primitive(k->f))
            ok = fault(k, n->loc, "%s: %s = 1 is set for %%%s, which is not a constant; leave it "
                                  "out", n->op->name, what,
                       v->name);
        else if (k->f->mark != IS_CALLED)
            ok = fault(k, n->loc, "%s: %s = 1 is set for parameter %%%s, which no call guarantees; leave it out",
                       n->op->name, what, v->name);
    }
    return ok;
}

static void mark_callees_of(const graph_node *n)
{
    const graph_func *callee = graph_callee(n);
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (n->attrs[i].kind == ATTR_FUNC)
            n->attrs[i].u.func->mark |= n->attrs[i].u.func == callee ? IS_CALLED : IS_TAKEN;
}

static void mark_callees(const checker *k)
{
    for (uint32_t i = 0; i < k->m->funcs.len; i++)
        k->m->funcs.data[i]->mark = strcmp(k->m->funcs.data[i]->name, "main") == 0 ? IS_TAKEN : 0;
    for (uint32_t i = 0; i < k->m->funcs.len; i++) {
        const graph_func *f = k->m->funcs.data[i];
        for (uint32_t j = 0; j < f->nodes.len; j++)
            mark_callees_of(f->nodes.data[j]);
    }
}

static bool check_promises(checker *k)
{
    bool ok = true;
    mark_callees(k);
    for (uint32_t i = 0; i < k->m->funcs.len; i++) {
        const graph_func *f = k->f = k->m->funcs.data[i];
        for (uint32_t j = 0; j < f->nodes.len; j++) {
            const graph_node *n = f->nodes.data[j];
            const graph_func *g = graph_callee(n);
            ok &= check_own_promises(k, n);
            for (uint32_t h = 0; g && graph_is_primitive(g) && h < g->nodes.len; h++)
                ok &= check_promise(k, n, g, g->nodes.data[h]);
        }
    }
    for (uint32_t i = 0; i < k->m->funcs.len; i++) /* a mark says another thing to check_calls of another module */
        k->m->funcs.data[i]->mark = 0;
    return ok;
}

/* mark: 0 not seen, 1 above on the stack, 2 + h when done: h calls are nested in it */
static bool check_calls(checker *k, graph_func *f, uint32_t depth)
{
    uint32_t height = 0;
    k->f = f;
    if (f->mark == 1)
        return fault(k, src_loc_none(), "the function calls itself");
    if (depth + (f->mark ? f->mark - 2 : 0) > MAX_CALL_DEPTH)
        return fault(k, src_loc_none(), "calls are nested deeper than %u", MAX_CALL_DEPTH);
    if (f->mark)
        return true;
    f->mark = 1;
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        for (uint32_t a = 0; a < n->n_attrs; a++) {
            graph_func *g = n->attrs[a].kind == ATTR_FUNC ? n->attrs[a].u.func : NULL;
            if (g && !check_calls(k, g, depth + 1))
                return false;
            if (g && g->mark - 1 > height)
                height = g->mark - 1;
        }
    }
    f->mark = 2 + height;
    return true;
}

static bool check_all_calls(checker *k)
{
    for (uint32_t i = 0; i < k->m->funcs.len; i++)
        k->m->funcs.data[i]->mark = 0;
    for (uint32_t i = 0; i < k->m->funcs.len; i++)
        if (!check_calls(k, k->m->funcs.data[i], 0))
            return false;
    return true;
}

static bool check_func_names(checker *k)
{
    bool ok = true;
    ptr_map names;
    ptr_map_init(&names, &k->scratch);
    for (uint32_t i = 0; i < k->m->funcs.len; i++) {
        uint32_t unused = 0;
        k->f = k->m->funcs.data[i];
        if (ptr_map_get(&names, k->f->name, &unused))
            ok = fault(k, src_loc_none(), "two functions have this name");
        ptr_map_set(&names, k->f->name, 1);
        ptr_map_set(&k->funcs, k->f, 1);
    }
    return ok;
}

bool graph_verify(compiler *c, const graph_module *m)
{
    checker k = {.c = c, .m = m};
    arena_init(&k.scratch, &c->mem);
    ptr_map_init(&k.funcs, &k.scratch);
    bool ok = check_func_names(&k) && check_all_calls(&k), sound = ok;
    for (uint32_t i = 0; i < m->funcs.len && ok; i++)
        sound &= check_func(&k, m->funcs.data[i]);
    ok = sound && check_promises(&k);
    arena_free(&k.scratch);
    return ok;
}
