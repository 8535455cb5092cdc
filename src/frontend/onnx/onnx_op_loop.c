/* SPDX-License-Identifier: Apache-2.0 */
/* Importer of Loop. A body is read again, with open extents, where a carried value comes out of it with another shape
 * than it went in. */
#include "frontend/onnx/onnx_loop.h"

#include <string.h>

graph_node *onnx_emit_loop(onnx_node *n, graph_func *f, const onnx_loop *l, const onnx_region *r)
{
    VEC(graph_value *) in = {0};
    arena *a = &n->c->mem;
    uint32_t n_out = r->f->results.len - 1;
    const char **names = arena_array(a, const char *, n_out + 1u);
    if (n->failed)
        return NULL;
    vec_push(a, &in, l->trips);
    vec_push(a, &in, l->condition);
    for (uint32_t i = 0; i < l->n_carried; i++)
        vec_push(a, &in, l->carried[i]);
    for (uint32_t i = 0; i < r->operands.len; i++)
        vec_push(a, &in, r->operands.data[i]);
    for (uint32_t i = 0; i < n_out; i++)
        names[i] = i < l->n_names && l->names[i] ? l->names[i] : "";
    attr at[2] = {attr_func(n->c, "body", r->f), attr_int(n->c, "carried", l->n_carried)};
    graph_node *g = graph_add_node(f, graph_find_op(n->c, "loop"), in.len, in.data, 2, at, n_out, names, n->loc);
    for (uint32_t i = 0; i < n_out; i++)
        if (l->declared && i < l->n_names && l->names[i]) {
            onnx_set_declared(n, l->of ? l->of[i] : i, g->outputs[i]);
            if (g->outputs[i]->declared.dt == DT_NONE) /* a hint: a shape alone */
                g->outputs[i]->declared.dt = r->f->results.data[1 + i]->type.dt;
        }
    n->failed |= !graph_infer_node(n->c, g);
    return n->failed ? NULL : g;
}

/* Result i of the body, whose shape is known at run time only, must have the one of `want`: the program compares. */
static void settle_result(onnx_region *r, uint32_t i, const type *want)
{
    compiler *c = r->n->c;
    graph_value *v = r->f->results.data[i];
    int64_t dims[TYPE_MAX_RANK], rank = want->shape.rank;
    if (want->kind != TYPE_TENSOR || v->type.kind != TYPE_TENSOR || v->type.dt != want->dt || rank <= 0 ||
        v->type.shape.rank != rank || shape_is_static(v->type.shape) || !shape_get(want->shape, dims))
        return;
    const int64_t rows[2] = {1, rank};
    attr a = attr_tensor(c, "rows",
                         tensor_dense(c, DT_I64, 2, rows,
                                      arena_copy(&c->mem, dims, (size_t)rank * sizeof *dims, _Alignof(int64_t))));
    graph_value *in[2] = {v, onnx_region_emit(r, "shape_of", 1, &v, 0, NULL)};
    in[0] = onnx_region_emit(r, "expect", 2, in, 1, &a);
    in[1] = graph_add_constant(r->f, tensor_from_i64s(c, (uint32_t)rank, dims), "", r->n->loc);
    v = onnx_region_emit(r, "reshape", 2, in, 0, NULL);
    if (!r->n->failed)
        r->f->results.data[i] = v;
}

/* What the body declares of its rows. */
static void settle_rows(onnx_region *r, const onnx_carrying *k)
{
    for (uint32_t i = 1 + k->all; i < r->g->output.len; i++) {
        type t = {0};
        const char *name = onnx_name(r->n->im, r->g->output.data[i]->name);
        if (r->g->output.data[i]->type && onnx_type_read(r->n->im, r->g->output.data[i]->type, name, &t))
            settle_result(r, i - k->all + k->carried, &t);
    }
}

/* --- carried values whose shape changes --- */

static onnx_changing *find_changing(const onnx_carrying *k, uint32_t value, uint32_t axis)
{
    for (uint32_t i = 0; i < k->list.len; i++)
        if (k->list.data[i].value == value && k->list.data[i].axis == axis)
            return &k->list.data[i];
    return NULL;
}

static type type_carried(const onnx_carrying *k, uint32_t value)
{
    type t = k->value[value]->type;
    dim d[TYPE_MAX_RANK];
    for (int32_t i = 0; i < t.shape.rank; i++) {
        const onnx_changing *x = find_changing(k, value, (uint32_t)i);
        d[i] = x ? x->d : t.shape.dims[i];
    }
    t.shape = shape_make(k->n->c, (uint32_t)t.shape.rank, d);
    return t;
}

static const char *name_carried(const onnx_carrying *k, uint32_t value)
{
    return k->name[value];
}

static dim fresh_extent(const onnx_carrying *k, uint32_t value, uint32_t axis)
{
    arena *a = &k->n->c->mem;
    return dim_fresh(k->n->c, onnx_symbol(k->n->im, arena_printf(a, "%s_%u", name_carried(k, value), axis)), -1);
}

/* The extent of that result of the loop that the model declares; NULL: none. */
static dim declared_last(const onnx_carrying *k, uint32_t value, uint32_t axis)
{
    graph_value *v = arena_new(&k->n->c->mem, graph_value);
    int32_t rank = k->value[value]->type.shape.rank;
    onnx_set_declared(k->n, k->at[value], v);
    return v->declared.kind == TYPE_TENSOR && v->declared.shape.rank == rank ? v->declared.shape.dims[axis] : NULL;
}

/* The node that the body is read for now. */
static void open_tensors(onnx_carrying *k, onnx_node *n, uint32_t all)
{
    arena *a = &n->c->mem;
    const uint32_t most = 2 * all + 1; /* a sequence is one tensor or two */
    *k = (onnx_carrying){.n = n, .g = k->g, .all = all, .lists = k->lists, .list = k->list,
                         .value = arena_array(a, graph_value *, most), .name = arena_array(a, const char *, most),
                         .at = arena_array(a, uint32_t, most), .reshaped = arena_array(a, bool, most),
                         .trips = graph_most_rounds(n->c, onnx_optional(n, 0))};
    for (uint32_t i = 0; i < all; i++)
        if (!onnx_list_of(n->im, n->in[2 + i])) {
            k->value[k->own] = n->in[2 + i];
            k->name[k->own] = onnx_name(n->im, k->g->input.data[2 + i]->name);
            k->at[k->own++] = i;
        }
    onnx_loop_lists_open(k);
}

/* What is known to change begins with the extents of this node. */
static void open_changing(onnx_carrying *k)
{
    onnx_node *n = k->n;
    onnx_changing *was = arena_copy(&n->c->mem, k->list.data, k->list.len * sizeof *was, _Alignof(onnx_changing));
    for (uint32_t i = 0; i < k->list.len; i++) {
        onnx_changing *x = &k->list.data[i];
        int64_t v = 0;
        if (x->value >= k->carried || x->axis >= onnx_rank(k->value[x->value])) {
            k->list.len = 0; /* a function that is called with other ranks */
            return;
        }
        x->first = onnx_dim(n, k->value[x->value], x->axis);
        if (x->kind == CHANGES_NEVER && !dim_is_const(x->first, &v))
            x->kind = CHANGES_OPEN;
        x->d = x->kind == CHANGES_NEVER ? x->first : NULL;
        for (uint32_t j = 0; j < i && !x->d; j++)
            if (was[j].d == was[i].d && k->list.data[j].kind == x->kind && dim_equal(k->list.data[j].first, x->first))
                x->d = k->list.data[j].d;
        if (!x->d)
            x->d = fresh_extent(k, x->value, x->axis);
    }
}

/* Values that grow in step, as keys and values of a cache do, share their extent: their shapes must agree inside. */
static bool add_changing(onnx_carrying *k, uint32_t value, uint32_t axis, dim first, dim next)
{
    onnx_changing x = {.value = value, .axis = axis, .first = first, .next = next};
    for (uint32_t i = 0; i < k->list.len && !x.d; i++)
        if (dim_equal(k->list.data[i].first, first) && dim_equal(k->list.data[i].next, next)) {
            x.d = k->list.data[i].d;
            x.kind = k->list.data[i].kind;
        }
    if (!x.d)
        x.d = fresh_extent(k, value, axis);
    vec_push(&k->n->c->mem, &k->list, x);
    return true;
}

static dim next_extent(const onnx_region *r, const onnx_changing *x)
{
    return r->f->results.data[1 + x->value]->type.shape.dims[x->axis];
}

/* Values with one symbol that come out of the round with several extents are not in step. */
static bool part(onnx_carrying *k, const onnx_region *r)
{
    for (uint32_t i = 0; i < k->list.len; i++) {
        const onnx_changing *a = &k->list.data[i];
        dim own = NULL;
        for (uint32_t j = i + 1; j < k->list.len && dim_symbol_name(a->d); j++) {
            onnx_changing *b = &k->list.data[j];
            if (b->d != a->d || dim_equal(next_extent(r, a), next_extent(r, b)))
                continue;
            own = own ? own : fresh_extent(k, b->value, b->axis);
            b->d = own;
            b->kind = CHANGES_OPEN;
        }
        if (own)
            return true;
    }
    return false;
}

/* A symbol that nothing bounds by now: whether it stays below what it begins with is seen with that bound. Where it
 * does not, and where the model does not say that it changes, the program compares. */
static bool bound_changing(onnx_carrying *k, const onnx_region *r)
{
    bool again = false;
    for (uint32_t i = 0; i < k->list.len; i++) {
        onnx_changing *x = &k->list.data[i];
        dim next = next_extent(r, x), last = declared_last(k, x->value, x->axis);
        int64_t first = dim_bound(x->first), v = 0;
        if (x->d != r->f->params.data[1 + x->value]->type.shape.dims[x->axis] ||
            dim_is_const(dim_sub(k->n->c, next, x->d), &v))
            continue; /* seen to with another one; of a steady growth no bound can be seen */
        if (x->kind == CHANGES_OPEN && graph_carried_bound(k->n->c, x->d, x->first, next, k->trips, last) < 0 &&
            first >= 0)
            x->kind = CHANGES_WITHIN;
        else if (x->kind == CHANGES_WITHIN && (dim_bound(next) < 0 || dim_bound(next) > first))
            x->kind = dim_bound(next) < 0 && dim_is_const(x->first, &v) && (!last || dim_is_const(last, &v))
                          ? CHANGES_NEVER
                          : CHANGES_UNBOUNDED;
        else
            continue;
        dim was = x->d, now = x->kind == CHANGES_NEVER ? x->first : fresh_extent(k, x->value, x->axis);
        for (uint32_t m = 0; m < k->list.len; m++)
            if (k->list.data[m].d == was) {
                k->list.data[m].kind = x->kind;
                k->list.data[m].d = now;
            }
        again = true;
    }
    return again;
}

/* The shape that the body declares for a result, all of it numbers: what only a run knows is compared with it. */
static bool is_declared(const onnx_carrying *k, uint32_t value, const type *t)
{
    const pb_value_info *v = k->g->output.data[1 + k->at[value]];
    type declared = {0};
    return v->type && onnx_type_read(k->n->im, v->type, onnx_name(k->n->im, v->name), &declared) &&
           declared.kind == TYPE_TENSOR && declared.shape.rank >= 0 && shape_is_static(declared.shape) &&
           type_equal(&declared, t);
}

/* Strings that are carried have one width in all rounds. */
static bool check_text(const onnx_carrying *k, onnx_region *r, uint32_t value)
{
    onnx_node *n = k->n;
    const graph_value *before = k->value[value], *after = r->f->results.data[1 + value];
    const int64_t width = onnx_text_width(before);
    if (onnx_is_text(n->im, before) != onnx_is_text(n->im, after))
        return onnx_fail(n, DIAG_TYPE, "carried value '%s' is strings before the body or after it only",
                         name_carried(k, value));
    if (!onnx_is_text(n->im, before))
        return true;
    if (onnx_text_width(after) > width)
        return onnx_fail(n, DIAG_UNSUPPORTED,
                         "carried value '%s' has strings of at most %lld bytes, and of %lld after a round; strings "
                         "cannot grow in a loop yet",
                         name_carried(k, value), (long long)width, (long long)onnx_text_width(after));
    onnx_region_widen(r, 1 + value, width);
    return !n->failed;
}

/* One number as [] before the loop and as [1] behind a round, or the other way round: it is what a round makes of it
 * from the start. */
static bool reshape_number(onnx_carrying *k, uint32_t value, const type *before, const type *after)
{
    onnx_node *n = k->n;
    graph_value **first = &k->value[value];
    if (k->reshaped[value] || after->kind != TYPE_TENSOR || before->dt != after->dt || onnx_is_text(n->im, *first) ||
        shape_count(before->shape) != 1 || shape_count(after->shape) != 1)
        return false;
    k->reshaped[value] = true;
    *first = onnx_reshape(n, *first, (uint32_t)after->shape.rank, after->shape.dims);
    return !n->failed;
}

static bool fail_rank(const onnx_carrying *k, uint32_t value, const type *before, const type *after)
{
    writer w;
    writer_init(&w, &k->n->c->mem);
    type_print(&w, before);
    w_str(&w, " before the body and ");
    type_print(&w, after);
    onnx_fail(k->n, DIAG_UNSUPPORTED, "carried value '%s' is %s after it; only extents may change",
              name_carried(k, value), w.data);
    diag_hint(&k->n->c->diags, "reshape it at the end of the body, or before the loop");
    return false;
}

/* What is carried must come out of a round as it went in, or with extents that are open. *again: the body is to be read
 * with other extents. */
static bool check_carried(onnx_carrying *k, onnx_region *r, bool *again)
{
    onnx_node *n = k->n;
    for (uint32_t i = 0; i < k->carried; i++) {
        if (!check_text(k, r, i))
            return false;
        const type *before = &r->f->params.data[1 + i]->type, *after = &r->f->results.data[1 + i]->type;
        bool same_rank = after->kind == TYPE_TENSOR && after->dt == before->dt &&
                         after->shape.rank == before->shape.rank, never = is_declared(k, i, before);
        for (int32_t a = 0; same_rank && a < before->shape.rank; a++) {
            const onnx_changing *x = find_changing(k, i, (uint32_t)a);
            never |= x && x->kind == CHANGES_NEVER;
        }
        if (never)
            settle_result(r, 1 + i, before);
        after = &r->f->results.data[1 + i]->type;
        for (int32_t a = 0; same_rank && a < before->shape.rank; a++)
            if (!dim_equal(before->shape.dims[a], after->shape.dims[a]) && !find_changing(k, i, (uint32_t)a))
                *again = add_changing(k, i, (uint32_t)a, before->shape.dims[a], after->shape.dims[a]);
        if (same_rank)
            continue;
        if (!reshape_number(k, i, before, after))
            return !n->failed && fail_rank(k, i, before, after);
        *again = true;
    }
    *again = *again || part(k, r) || bound_changing(k, r);
    return true;
}

static bool check_loop(onnx_node *n, const pb_graph *g, uint32_t carried)
{
    graph_value *trips = onnx_optional(n, 0), *cond = onnx_optional(n, 1);
    if ((trips && (onnx_dtype(trips) != DT_I64 || shape_count(trips->type.shape) != 1)) ||
        (cond && (onnx_dtype(cond) != DT_BOOL || shape_count(cond->type.shape) != 1)))
        return onnx_fail(n, DIAG_TYPE, "the number of rounds must be one int64, the condition one bool");
    if (g->input.len != 2 + carried || g->output.len < 1 + carried || n->n_out > g->output.len - 1)
        return onnx_fail(n, DIAG_FORMAT, "a body with %u inputs and %u results does not fit a node with %u values and "
                                         "%u results",
                         g->input.len, g->output.len, carried, n->n_out);
    for (uint32_t i = 0; i < carried; i++)
        if (!onnx_list_of(n->im, n->in[2 + i]) &&
            (n->in[2 + i]->type.kind != TYPE_TENSOR || n->in[2 + i]->type.shape.rank < 0))
            return onnx_fail(n, DIAG_UNSUPPORTED, "carried value %u is not a tensor of known rank", i);
    return true;
}

/* --- the operator --- */

/* The condition that the body sees is true whenever it runs. */
static bool import_body(onnx_carrying *k, const onnx_captures *captures, onnx_region *r, bool *again)
{
    onnx_node *n = k->n;
    const pb_graph *g = k->g;
    onnx_region_open(r, n, g, "body");
    onnx_region_input(r, 0, graph_add_param(r->f, onnx_name(n->im, g->input.data[0]->name),
                                            type_static(n->c, DT_I64, 0, NULL)));
    onnx_region_input(r, 1, graph_add_constant(r->f, tensor_scalar_i64(n->c, DT_BOOL, 1),
                                               onnx_name(n->im, g->input.data[1]->name), n->loc));
    r->made = arena_array(&n->c->mem, graph_value *, g->output.len + 1u);
    for (uint32_t i = 0; i < k->carried; i++) {
        graph_value *v = graph_add_param(r->f, name_carried(k, i), type_carried(k, i));
        onnx_keep_strings(n->im, k->value[i], v);
        if (i < k->own)
            onnx_region_input(r, 2 + k->at[i], v);
    }
    onnx_loop_lists_inside(k, r);
    onnx_region_captures(r, captures);
    return !n->failed && onnx_region_import(r) && onnx_loop_lists_behind(k, r, again);
}

/* Takes back what a reading has said and bounded. */
typedef struct reading {
    diags_mark said;
    dim_mark bounds;
    uint32_t funcs;
} reading;

static reading begin_reading(const onnx_carrying *k)
{
    return (reading){diags_get_mark(&k->n->c->diags), dim_get_mark(k->n->c), k->n->im->module->funcs.len};
}

static void undo_reading(const onnx_carrying *k, const reading *was)
{
    diags_reset(&k->n->c->diags, was->said);
    k->n->im->module->funcs.len = was->funcs;
    dim_reset(k->n->c, &was->bounds);
}

/* What is carried of sequences, before the loop; what was known of their extents is not, where their slots changed. */
static bool carry_lists(onnx_carrying *k, const onnx_captures *captures)
{
    uint32_t kept = 0;
    const reading was = begin_reading(k);
    if (!onnx_loop_lists_measure(k, captures))
        return false;
    undo_reading(k, &was);
    for (uint32_t i = 0; i < k->list.len; i++)
        if (k->list.data[i].value < k->own)
            k->list.data[kept++] = k->list.data[i];
    k->list.len = kept;
    return onnx_loop_lists_carry(k);
}

/* One reading of the body. *again: it is to be read with other types; *lists: with sequences that it reads, or with
 * more room for their elements. */
static bool import_round(onnx_carrying *k, const onnx_captures *captures, onnx_region *r, bool *again, bool *lists)
{
    for (uint32_t i = 0; i < k->list.len; i++)
        if (k->list.data[i].kind == CHANGES_WITHIN)
            (void)dim_symbol(k->n->c, dim_symbol_name(k->list.data[i].d), dim_bound(k->list.data[i].first));
    *again = *lists = false;
    if (!import_body(k, captures, r, lists))
        *lists = onnx_loop_lists_read(k);
    else if (!*lists)
        return check_carried(k, r, again);
    *again = *lists;
    return *lists;
}

/* The body with the types that its carried values have in all rounds. */
static bool import_rounds(onnx_carrying *k, const onnx_captures *captures, onnx_region *r)
{
    for (bool again = true, lists; again;) {
        const reading was = begin_reading(k);
        if (!import_round(k, captures, r, &again, &lists))
            return false;
        if (again)
            undo_reading(k, &was);
        if (lists && !carry_lists(k, captures))
            return false;
    }
    settle_rows(r, k);
    return !k->n->failed;
}

/* Results of the node as those of the loop: tensors that are carried, rows, and what is appended to lists. */
static bool emit_results(onnx_carrying *k, onnx_region *r)
{
    onnx_node *n = k->n;
    arena *a = &n->c->mem;
    const uint32_t rows = r->g->output.len - 1 - k->all, tensors = k->carried + rows;
    const char **names = arena_array(a, const char *, tensors + 1u);
    uint32_t *of = arena_array(a, uint32_t, tensors + 1u);
    for (uint32_t i = 0; i < tensors; i++) {
        of[i] = i < k->own ? k->at[i] : i < k->carried ? UINT32_MAX : k->all + i - k->carried;
        names[i] = of[i] < n->n_out ? n->out_names[of[i]] : NULL;
    }
    if (!onnx_loop_lists_append(k, r))
        return false;
    onnx_loop l = {.trips = onnx_optional(n, 0), .condition = onnx_optional(n, 1), .carried = k->value,
                   .n_carried = k->carried, .names = names, .n_names = tensors, .declared = true, .of = of};
    graph_node *node = onnx_emit_loop(n, n->f, &l, r);
    for (uint32_t i = 0; node && i < tensors; i++)
        if (of[i] < n->n_out)
            n->out[of[i]] = node->outputs[i];
    if (!node)
        return false;
    onnx_region_spread(n, r, 1, tensors, of);
    onnx_loop_lists_take(k, node, tensors);
    return !n->failed;
}

static bool import_loop(onnx_node *n, const pb_graph *g, uint32_t carried, const onnx_captures *captures)
{
    onnx_region r;
    onnx_carrying *k = (onnx_carrying *)(uintptr_t)onnx_map_get(&n->im->bodies, (const char *)g);
    if (!k) {
        k = arena_new(&n->c->mem, onnx_carrying);
        k->g = g;
        onnx_map_set(&n->c->mem, &n->im->bodies, (const char *)g, k);
    }
    open_tensors(k, n, carried);
    if (n->failed || !carry_lists(k, captures))
        return false;
    open_changing(k);
    return import_rounds(k, captures, &r) && emit_results(k, &r);
}

/* --- one round after the other --- */

/* How many rounds a loop with sequences has, as far as constants tell; false: a run decides. */
static bool count_rounds(onnx_node *n, uint32_t carried, const onnx_captures *captures, int64_t *out)
{
    double going = 1;
    uint32_t len = 0;
    bool lists = false;
    for (uint32_t i = 0; i < carried; i++)
        lists |= onnx_list_of(n->im, n->in[2 + i]) != NULL;
    for (uint32_t i = 0; i < captures->values.len; i++)
        lists |= onnx_list_of(n->im, captures->values.data[i]) != NULL;
    if (!lists || !onnx_ints_of(onnx_optional(n, 0), out, &len) || len != 1 || *out > (int64_t)ONNX_MOST_ELEMENTS)
        return false;
    if (onnx_optional(n, 1) && !onnx_is_known(n, onnx_optional(n, 1), &going))
        return false;
    *out = going != 0 && *out > 0 ? *out : 0;
    return true;
}

/* Rows of all rounds on top of each other. */
static graph_value *pile(onnx_node *n, int64_t rounds, graph_value *const *rows)
{
    const int64_t front = 0;
    graph_value **each = arena_array(&n->c->mem, graph_value *, (uint32_t)rounds + 1u);
    if (rounds == 0)
        return onnx_refuse(n, DIAG_UNSUPPORTED, "rows of a loop over sequences that has no rounds");
    for (int64_t i = 0; i < rounds && !n->failed; i++)
        each[i] = onnx_list_of(n->im, rows[i]) ? onnx_refuse(n, DIAG_TYPE, "rows are sequences")
                                               : onnx_expand_dims(n, rows[i], 1, &front);
    return onnx_concat(n, (uint32_t)rounds, each, 0);
}

/* The body in place for each round: then what it appends to sequences, and takes of them, is known. *open: no, because
 * a run decides when the loop ends. */
static bool unroll(onnx_node *n, const pb_graph *g, uint32_t carried, int64_t rounds, bool *open)
{
    arena *a = &n->c->mem;
    const uint32_t n_rows = g->output.len - 1 - carried;
    graph_value **in = arena_array(a, graph_value *, carried + 2u),
                **out = arena_array(a, graph_value *, g->output.len);
    graph_value ***rows = arena_array(a, graph_value **, n_rows + 1u);
    int64_t done = 0;
    double going = 1;
    for (uint32_t i = 0; i < n_rows; i++)
        rows[i] = arena_array(a, graph_value *, (uint32_t)rounds + 1u);
    for (uint32_t i = 0; i < carried; i++)
        in[2 + i] = n->in[2 + i];
    for (; done < rounds && going != 0; done++) {
        in[0] = onnx_const_int(n, DT_I64, done);
        in[1] = onnx_const_int(n, DT_BOOL, 1);
        if (!onnx_inline_bodies(n, g, carried + 2, in, g->output.len, out))
            return false;
        *open = !onnx_is_known(n, out[0], &going);
        if (*open)
            return false;
        for (uint32_t i = 0; i < carried; i++)
            in[2 + i] = out[1 + i];
        for (uint32_t i = 0; i < n_rows; i++)
            rows[i][done] = out[1 + carried + i];
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        if (!onnx_alias(n, i, i < carried ? in[2 + i] : pile(n, done, rows[i - carried])))
            return false;
    return !n->failed;
}

bool onnx_op_loop(onnx_node *n)
{
    const pb_graph *g = onnx_attr_graph(n, "body");
    uint32_t carried = n->n_in > 2 ? n->n_in - 2 : 0;
    onnx_captures captures = {.n = n};
    int64_t rounds = 0;
    if (n->failed || !check_loop(n, g, carried))
        return false;
    for (uint32_t i = 0; i < carried; i++)
        n->in[2 + i] = onnx_text(n, n->in[2 + i]);
    onnx_capture(&captures, g);
    if (n->failed)
        return false;
    const diags_mark said = diags_get_mark(&n->c->diags);
    bool is_open = !count_rounds(n, carried, &captures, &rounds);
    if (!is_open && (unroll(n, g, carried, rounds, &is_open) || !is_open))
        return !n->failed;
    diags_reset(&n->c->diags, said);
    return import_loop(n, g, carried, &captures);
}
