/* SPDX-License-Identifier: Apache-2.0 */
/* Importer of If. A condition that constants decide picks its branch at once; else both become functions of the module.
 * Sequences are chosen element by element where both branches have as many; else all elements lie side by side. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

#define MOST_FOLDED   200u /* nodes on the way to a condition */
#define MOST_ELEMENTS (1 << 22)

/* What v is when all that it is made of is constant; NULL: it is not, or too much of it. */
static const tensor_data *folded(compiler *c, const graph_value *v, uint32_t *left)
{
    const tensor_data *t = graph_constant(v), *few[8] = {NULL};
    const graph_node *n = v->def;
    if (t || !n || !c->evaluate || *left == 0)
        return t;
    --*left;
    if (n->op->effect != EFFECT_PURE || (n->op->flags & OPF_CALL) || n->n_outputs > 8 ||
        shape_count(v->type.shape) < 0 || shape_count(v->type.shape) > MOST_ELEMENTS)
        return NULL;
    graph_node one = *n;
    one.inputs = arena_array(&c->mem, graph_value *, n->n_inputs);
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const tensor_data *in = n->inputs[i] ? folded(c, n->inputs[i], left) : NULL;
        if (n->inputs[i] && !in)
            return NULL;
        one.inputs[i] = in ? graph_detached_constant(c, in, "k") : NULL;
    }
    return c->evaluate(c, &one, few) ? few[v->index] : NULL;
}

/* The importer leaves arithmetic on weights to the passes; what decides a branch it must know before it looks at the
 * other one, which need not even be sound. */
bool onnx_is_known(onnx_node *n, const graph_value *condition, double *out)
{
    uint32_t left = MOST_FOLDED;
    const tensor_data *t = folded(n->c, condition, &left);
    if (!t || t->count != 1)
        return false;
    *out = tensor_get_f64(t, 0);
    return true;
}

/* The input that alone decides v; NULL: none, several, or one of more than a few numbers. */
static const graph_value *sole_input(const graph_value *v, uint32_t *left)
{
    const graph_node *n = v->def;
    const graph_value *found = NULL;
    if (!n || *left == 0)
        return !n && shape_count(v->type.shape) == 1 ? v : NULL;
    --*left;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        if (!n->inputs[i] || graph_constant(n->inputs[i]))
            continue;
        const graph_value *one = sole_input(n->inputs[i], left);
        if (!one || (found && found != one))
            return NULL;
        found = one;
    }
    return found;
}

/* What went wrong in a branch need not matter: a model for two rates has a branch for each, and one fits the data. */
static void hint_bind(onnx_node *n, const graph_value *condition, uint32_t errors)
{
    diags *d = &n->c->diags;
    uint32_t left = MOST_FOLDED;
    const graph_value *v = sole_input(condition, &left);
    const char *before = d->last && d->last->hint ? arena_printf(&n->c->mem, "%s; ", d->last->hint) : "";
    if (v && n->env->scope->top && d->errors > errors)
        diag_hint(d, "%sinput '%s' decides whether this branch is taken: --bind %s=NUMBER removes the other one",
                  before, v->name, v->name);
}

/* --- sequences and optionals as results --- */

static onnx_list list_made(const onnx_region *r, uint32_t i)
{
    const onnx_list *l = onnx_list_of(r->n->im, r->made[i]);
    onnx_part *one = arena_new(&r->n->c->mem, onnx_part);
    *one = (onnx_part){.v = r->made[i]};
    return l ? *l : (onnx_list){.n = 1, .parts = one, .is_tensor = true};
}

/* Two branches, each with a node to build in it. */
typedef struct branches {
    onnx_node *n, in[2];
    onnx_region *r[2];
} branches;

static void add_result(branches *b, uint32_t which, graph_value *v)
{
    b->n->failed |= b->in[which].failed;
    if (!b->n->failed)
        graph_add_result(b->r[which]->f, v);
}

/* Whether the optional has its element. *run: a result says it. */
static bool choose_presence(branches *b, const onnx_list *l, onnx_list *out, bool *run)
{
    const bool none = l[0].none && l[1].none, sure = !l[0].none && !l[1].none && !l[0].has && !l[1].has;
    const bool tensor[2] = {l[0].is_tensor, l[1].is_tensor};
    *run = !none && !sure;
    out->none = none;
    out->is_tensor = l[0].none ? tensor[1] : tensor[0];
    if (tensor[0] != tensor[1])
        return onnx_fail(b->n, DIAG_TYPE, "a result is a sequence in one branch and a tensor in the other");
    for (uint32_t w = 0; *run && w < 2; w++)
        add_result(b, w, l[w].has ? l[w].has
                                  : onnx_constant(&b->in[w], tensor_scalar_i64(b->n->c, DT_BOOL, !l[w].none)));
    return !b->n->failed;
}

static bool fit_pairwise(const onnx_list *l)
{
    bool fit = l[0].n == l[1].n && !l[0].none && !l[1].none && !l[0].has && !l[1].has;
    for (uint32_t i = 0; fit && i < l[0].n; i++) {
        const onnx_part *x = &l[0].parts[i], *y = &l[1].parts[i];
        fit = x->kind == PART_ONE && y->kind == PART_ONE && x->v->type.dt == y->v->type.dt &&
              x->v->type.shape.rank == y->v->type.shape.rank;
    }
    return fit;
}

/* All elements of each branch side by side: as many as the branch that is taken has. */
static bool choose_stacked(branches *b, const onnx_list *l, onnx_part *out)
{
    onnx_slot slot = {.dt = DT_NONE};
    for (uint32_t w = 0; w < 2; w++)
        if (!onnx_slot_of(&b->in[w], &l[w], &slot) || !onnx_slot_close(&b->in[w], &slot))
            return !(b->n->failed = true);
    if (slot.dt == DT_NONE)
        return true;
    *out = (onnx_part){.kind = PART_MANY, .ragged = slot.ragged};
    for (uint32_t w = 0; w < 2; w++) {
        const onnx_part p = onnx_list_stack(&b->in[w], &l[w], &slot);
        add_result(b, w, p.v);
        if (slot.ragged)
            add_result(b, w, p.sizes);
    }
    return !b->n->failed;
}

/* Result i, a list: its parts, whose values are those results of the If that come next. *run: before them comes whether
 * it has its element. */
static bool choose_list(branches *b, uint32_t i, onnx_list *out, bool *run)
{
    onnx_list l[2] = {list_made(b->r[0], i), list_made(b->r[1], i)};
    onnx_part *parts = arena_array(&b->n->c->mem, onnx_part, l[0].n + 2u);
    *out = (onnx_list){.parts = parts};
    if (!choose_presence(b, l, out, run))
        return false;
    while (l[0].n && l[1].n && l[0].parts->kind == PART_BEFORE && l[1].parts->kind == PART_BEFORE &&
           l[0].parts->before == l[1].parts->before) { /* what a loop around both has appended to stays so */
        parts[out->n++] = *l[0].parts;
        for (uint32_t w = 0; w < 2; w++) {
            l[w].parts++;
            l[w].n--;
        }
    }
    if (fit_pairwise(l)) {
        for (uint32_t k = 0; k < l[0].n; k++) {
            parts[out->n++] = (onnx_part){.kind = PART_ONE};
            for (uint32_t w = 0; w < 2; w++)
                add_result(b, w, l[w].parts[k].v);
        }
        return !b->n->failed;
    }
    parts[out->n] = (onnx_part){0};
    if (!choose_stacked(b, l, &parts[out->n]))
        return false;
    out->n += parts[out->n].kind == PART_MANY;
    return true;
}

/* What comes out of the If as the list that was planned. */
static graph_value *take_list(onnx_node *n, uint32_t i, const onnx_list *planned, bool run, graph_value *const **next)
{
    onnx_list l = *planned;
    onnx_part *parts = arena_array(&n->c->mem, onnx_part, l.n + 1u);
    if (run)
        l.has = *(*next)++;
    for (uint32_t k = 0; k < l.n; k++) {
        parts[k] = l.parts[k];
        if (parts[k].kind != PART_BEFORE)
            parts[k].v = *(*next)++;
        if (parts[k].kind == PART_MANY && parts[k].ragged)
            parts[k].sizes = *(*next)++;
    }
    l.parts = parts;
    return onnx_list_value(n->im, n->out_names[i] ? n->out_names[i] : "", l);
}

/* An If with lists among its results, each of which is any number of results of the node. */
static bool emit_with_lists(onnx_node *n, onnx_region *yes, onnx_region *no, uint32_t n_in, graph_value *const *in)
{
    branches b = {n, {onnx_region_node(yes), onnx_region_node(no)}, {yes, no}};
    onnx_list *lists = arena_array(&n->c->mem, onnx_list, n->n_out + 1u);
    bool *run = arena_array(&n->c->mem, bool, n->n_out + 1u), *is_list = arena_array(&n->c->mem, bool, n->n_out + 1u);
    yes->f->results.len = no->f->results.len = 0;
    for (uint32_t i = 0; i < n->n_out; i++) {
        is_list[i] = onnx_list_of(n->im, yes->made[i]) || onnx_list_of(n->im, no->made[i]);
        if (is_list[i] && !choose_list(&b, i, &lists[i], &run[i]))
            return false;
        if (is_list[i])
            continue;
        add_result(&b, 0, yes->made[i]);
        add_result(&b, 1, no->made[i]);
    }
    const uint32_t count = yes->f->results.len;
    const attr at[2] = {attr_func(n->c, "then_branch", yes->f), attr_func(n->c, "else_branch", no->f)};
    const char **names = arena_array(&n->c->mem, const char *, count + 1u);
    for (uint32_t i = 0; i < count; i++)
        names[i] = "";
    graph_node *g = count ? graph_add_node(n->f, graph_find_op(n->c, "if"), n_in, in, 2, at, count, names, n->loc)
                          : NULL;
    if (n->failed || (g && !graph_infer_node(n->c, g)))
        return !(n->failed = true);
    graph_value *const *next = g ? g->outputs : NULL;
    for (uint32_t i = 0; i < n->n_out; i++)
        n->out[i] = is_list[i] ? take_list(n, i, &lists[i], run[i], &next) : *next++;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (!is_list[i])
            onnx_keep_strings(n->im, yes->made[i], n->out[i]);
    return true;
}

/* --- the operator --- */

/* One number is a tensor of rank 0 in one branch and, say, a vector in the other: it has the larger rank in both, which
 * is the same to all operators that broadcast. An output of the model would show it. */
static void align_rank(onnx_region *a, onnx_region *b, uint32_t i)
{
    const char *name = onnx_name(a->n->im, a->n->pb->output.data[i]);
    onnx_region *less = onnx_rank(a->made[i]) < onnx_rank(b->made[i]) ? a : b, *more = less == a ? b : a;
    const graph_value *x = less->made[i], *y = more->made[i];
    int64_t ones[TYPE_MAX_RANK];
    const onnx_scope *s = a->n->env->scope;
    if (onnx_rank(x) == onnx_rank(y) || shape_count(x->type.shape) != 1 || shape_count(y->type.shape) != 1 ||
        (s->top && onnx_map_get(&s->outputs, name)) || onnx_is_text(a->n->im, x))
        return;
    for (uint32_t k = 0; k < onnx_rank(y); k++)
        ones[k] = 1;
    onnx_node inside = onnx_region_node(less);
    less->made[i] = less->f->results.data[i] = onnx_reshape_ints(&inside, less->made[i], onnx_rank(y), ones);
    a->n->failed |= inside.failed;
}

/* The first result of two ranks that the model declares nothing of; n_out: there is none. */
static uint32_t of_two_ranks(onnx_node *n, const onnx_region *a, const onnx_region *b)
{
    uint32_t i = 0;
    while (i < n->n_out && (onnx_rank(a->made[i]) == onnx_rank(b->made[i]) || onnx_declared(n, i)))
        i++;
    return i;
}

/* Values have one rank in all runs, which is that of the else branch: exporters have the unchanged value there. A run
 * that takes the other branch ends with a status. */
static bool keep_else(onnx_node *n, graph_value *cond, const pb_graph *no)
{
    const int64_t one = 1, never = 0;
    if (!onnx_inline_branch(n, no))
        return false;
    graph_value *taken = onnx_cast(n, onnx_reshape_ints(n, cond, 1, &one), DT_I64);
    for (uint32_t i = 0; i < n->n_out; i++)
        n->out[i] = onnx_expect(n, n->out[i], taken, 1, 1, &never);
    return !n->failed;
}

/* Branches give strings of one width. */
static bool match_text(onnx_node *n, onnx_region *a, onnx_region *b)
{
    for (uint32_t i = 0; i < a->f->results.len; i++) {
        const graph_value *x = a->f->results.data[i], *y = b->f->results.data[i];
        const int64_t w = onnx_text_width(x), v = onnx_text_width(y);
        if (onnx_is_text(n->im, x) != onnx_is_text(n->im, y))
            return onnx_fail(n, DIAG_TYPE, "result %u is strings in one branch only", i);
        if (!onnx_is_text(n->im, x))
            continue;
        onnx_region_widen(a, i, v);
        onnx_region_widen(b, i, w);
    }
    return !n->failed;
}

static bool import_regions(onnx_node *n, graph_value *cond, const pb_graph *yes, const pb_graph *no)
{
    onnx_captures k = {.n = n};
    onnx_region a, b;
    VEC(graph_value *) in = {0};
    bool lists = false;
    onnx_capture(&k, yes);
    onnx_capture(&k, no);
    if (n->failed)
        return false;
    onnx_region_open(&a, n, yes, "then");
    onnx_region_captures(&a, &k);
    onnx_region_open(&b, n, no, "else");
    onnx_region_captures(&b, &k);
    a.made = arena_array(&n->c->mem, graph_value *, n->n_out + 1u);
    b.made = arena_array(&n->c->mem, graph_value *, n->n_out + 1u);
    uint32_t errors = n->c->diags.errors;
    bool good = onnx_region_import(&a);
    good = onnx_region_import(&b) && good;
    if (!good) {
        hint_bind(n, cond, errors);
        return false;
    }
    vec_push(&n->c->mem, &in, onnx_rank(cond) ? onnx_reshape_ints(n, cond, 0, NULL) : cond);
    for (uint32_t i = 0; i < a.operands.len; i++)
        vec_push(&n->c->mem, &in, a.operands.data[i]);
    for (uint32_t i = 0; i < n->n_out; i++)
        lists |= onnx_list_of(n->im, a.made[i]) || onnx_list_of(n->im, b.made[i]);
    if (!lists && !match_text(n, &a, &b))
        return false;
    if (lists)
        return emit_with_lists(n, &a, &b, in.len, in.data);
    for (uint32_t i = 0; i < n->n_out; i++)
        align_rank(&a, &b, i);
    const uint32_t odd = of_two_ranks(n, &a, &b);
    if (odd < n->n_out) {
        diag_warning(&n->c->diags, DIAG_UNSUPPORTED, n->loc,
                     "the branches give result %u with %u and with %u dimensions: a run that takes 'then_branch' ends "
                     "with a status", odd, onnx_rank(a.made[odd]), onnx_rank(b.made[odd]));
        return keep_else(n, cond, no);
    }
    attr at[2] = {attr_func(n->c, "then_branch", a.f), attr_func(n->c, "else_branch", b.f)};
    good = onnx_results(n, (onnx_args){"if", in.len, in.data, 2, at}, n->n_out);
    if (good)
        onnx_region_spread(n, &a, 0, a.f->results.len, NULL);
    return good;
}

bool onnx_op_if(onnx_node *n)
{
    graph_value *cond = onnx_in(n, 0);
    const pb_graph *yes = onnx_attr_graph(n, "then_branch"), *no = onnx_attr_graph(n, "else_branch");
    double c = 0;
    if (n->failed)
        return false;
    const int64_t count = shape_count(cond->type.shape); /* below 0: a run knows */
    if (onnx_dtype(cond) != DT_BOOL || (count >= 0 && count != 1))
        return onnx_fail(n, DIAG_TYPE, "the condition must be one bool");
    if (yes->output.len != no->output.len || yes->output.len != n->n_out)
        return onnx_fail(n, DIAG_FORMAT, "the branches have %u and %u results, the node %u", yes->output.len,
                         no->output.len, n->n_out);
    return onnx_is_known(n, cond, &c) ? onnx_inline_branch(n, c != 0 ? yes : no) : import_regions(n, cond, yes, no);
}
