/* SPDX-License-Identifier: Apache-2.0 */
/* Importer of Scan: a loop with as many rounds as its inputs have slices. A round takes slices by its number, or from
 * the end on; rows that are wanted along another axis, or in reverse, are put in order behind the loop. In version 8
 * there is a batch in front: a loop over it around that loop. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

typedef struct scan {
    onnx_node *n;
    const pb_graph *g;
    uint32_t n_states, n_slices;     /* values that are carried, that are sliced */
    graph_value *const *in;          /* both */
    uint32_t axes[TYPE_MAX_RANK * 4]; /* of those that are sliced */
    bool reversed[TYPE_MAX_RANK * 4];
    onnx_captures k;
} scan;
#define MOST_SLICED (TYPE_MAX_RANK * 4)

static graph_value *take(onnx_region *r, graph_value *x, graph_value *at, uint32_t axis)
{
    graph_value *in[2] = {x, at};
    attr a = attr_int(r->n->c, "axis", axis);
    return onnx_region_emit(r, "take", 2, in, 1, &a);
}

/* The number of slices, of which `last` is the last one's; both in the graph around the loop. */
typedef struct extent {
    graph_value *trips, *last;
} extent;

static graph_value *emit_in(onnx_node *n, graph_func *f, const char *op, graph_value *a, graph_value *b)
{
    graph_value *in[2] = {a, b};
    graph_value *v = a && b && !n->failed ? graph_emit(f, NULL, op, 2, in, 0, NULL, n->loc) : NULL;
    n->failed |= !v;
    return v;
}

static extent slices_of(const scan *s, graph_func *f, graph_value *x)
{
    onnx_node *n = s->n;
    compiler *c = n->c;
    int64_t count = 0, none = 0;
    if (dim_is_const(x->type.shape.dims[s->axes[0]], &count))
        return (extent){graph_add_constant(f, tensor_scalar_i64(c, DT_I64, count), "", n->loc),
                        graph_add_constant(f, tensor_scalar_i64(c, DT_I64, count - 1), "", n->loc)};
    attr at[2] = {attr_int(c, "start", s->axes[0]), attr_int(c, "end", s->axes[0] + 1)};
    graph_value *one = graph_emit(f, NULL, "shape_of", 1, &x, 2, at, n->loc),
                *scalar = graph_add_constant(f, tensor_from_i64s(c, 0, &none), "", n->loc),
                *trips = emit_in(n, f, "reshape", one, scalar),
                *step = graph_add_constant(f, tensor_scalar_i64(c, DT_I64, 1), "", n->loc);
    return (extent){trips, emit_in(n, f, "subtract", trips, step)};
}

/* The loop over slices in f, where the values are `in`. */
static graph_node *loop_over_slices(scan *s, graph_func *f, graph_value *const *in, const onnx_captures *k,
                                    const char *const *names)
{
    onnx_node *n = s->n;
    onnx_region r;
    graph_value *const *sliced = in + s->n_states;
    extent e = slices_of(s, f, sliced[0]);
    onnx_region_open(&r, n, s->g, "body");
    graph_value *round = graph_add_param(r.f, "round", type_static(n->c, DT_I64, 0, NULL));
    for (uint32_t i = 0; i < s->n_states; i++)
        onnx_region_input(&r, i,
                          graph_add_param(r.f, onnx_name(n->im, s->g->input.data[i]->name), in[i]->type));
    graph_value *always = graph_add_constant(r.f, tensor_scalar_i64(n->c, DT_BOOL, 1), "go", n->loc), *back = NULL;
    graph_add_result(r.f, always);
    for (uint32_t i = 0; i < s->n_slices && !n->failed; i++) {
        if (s->reversed[i] && !back) {
            graph_value *of[2] = {onnx_region_value(&r, "last", e.last), round};
            back = onnx_region_emit(&r, "subtract", 2, of, 0, NULL);
        }
        graph_value *x = onnx_region_value(&r, sliced[i]->name, sliced[i]);
        onnx_region_input(&r, s->n_states + i, take(&r, x, s->reversed[i] ? back : round, s->axes[i]));
    }
    onnx_region_captures(&r, k);
    if (n->failed || !onnx_region_import(&r))
        return NULL;
    for (uint32_t i = 0; i < s->n_states; i++)
        if (!type_equal(&r.f->params.data[1 + i]->type, &r.f->results.data[1 + i]->type)) {
            onnx_fail(n, DIAG_TYPE, "the body changes the type of state %u", i);
            diag_hint(&n->c->diags, "a Loop can carry what grows");
            return NULL;
        }
    onnx_loop l = {.trips = e.trips, .carried = in, .n_carried = s->n_states, .names = names,
                   .n_names = names ? n->n_out : 0, .declared = names != NULL};
    return onnx_emit_loop(n, f, &l, &r);
}

/* --- rows behind the loop --- */

static graph_value *finish(onnx_node *n, uint32_t i, onnx_args a, bool last)
{
    return last ? onnx_result(n, i, a) : onnx_emit(n, a);
}

/* Rows along axis 0 as result i: backwards, along another axis. */
static bool place_rows(onnx_node *n, uint32_t i, graph_value *rows, bool reversed, int64_t axis)
{
    uint32_t rank = onnx_rank(rows), at = onnx_axis(n, axis, rank);
    if (n->failed)
        return false;
    if (!reversed && at == 0)
        return onnx_alias(n, i, rows);
    if (reversed) {
        const int64_t zero = 0, first = -1, beyond = INT64_MIN;
        rows = finish(n, i, ONNX_ARGS("strided_slice", 0, NULL, rows, onnx_const_ints(n, 1, &first),
                                      onnx_const_ints(n, 1, &beyond), onnx_const_ints(n, 1, &zero),
                                      onnx_const_ints(n, 1, &first)), at == 0);
    }
    if (at > 0 && rows) {
        int64_t perm[TYPE_MAX_RANK];
        for (uint32_t k = 0; k < rank; k++)
            perm[k] = k < at ? k + 1 : k == at ? 0 : k;
        attr a = attr_ints(n->c, "perm", rank, perm);
        (void)onnx_result(n, i, ONNX_ARGS("transpose", 1, &a, rows));
    }
    return !n->failed;
}

static int64_t listed(const int64_t *list, uint32_t len, uint32_t i)
{
    return i < len ? list[i] : 0;
}

static bool check_scan(scan *s)
{
    onnx_node *n = s->n;
    if (s->g->input.len != s->n_states + s->n_slices || s->g->output.len < s->n_states ||
        n->n_out > s->g->output.len)
        return onnx_fail(n, DIAG_FORMAT, "the body has %u inputs and %u results, which do not fit the "
                                         "node", s->g->input.len,
                         s->g->output.len);
    if (s->n_slices == 0 || s->n_slices > MOST_SLICED)
        return onnx_fail(n, DIAG_FORMAT, "there are %u inputs to slice, which is not possible", s->n_slices);
    for (uint32_t i = 0; i < s->n_states + s->n_slices; i++)
        if (!s->in[i] || s->in[i]->type.kind != TYPE_TENSOR || s->in[i]->type.shape.rank < 0)
            return onnx_fail(n, DIAG_UNSUPPORTED, "input %u is not a tensor of known rank", i);
    onnx_capture(&s->k, s->g);
    return !n->failed;
}

static bool import_scan(scan *s)
{
    onnx_node *n = s->n;
    const int64_t *axes, *dirs, *out_axes, *out_dirs;
    uint32_t n_axes = onnx_attr_ints(n, "scan_input_axes", &axes),
             n_dirs = onnx_attr_ints(n, "scan_input_directions", &dirs),
             n_out_axes = onnx_attr_ints(n, "scan_output_axes", &out_axes),
             n_out_dirs = onnx_attr_ints(n, "scan_output_directions", &out_dirs);
    if (n->failed || !check_scan(s))
        return false;
    for (uint32_t i = 0; i < s->n_slices; i++) {
        s->axes[i] = onnx_axis(n, listed(axes, n_axes, i), onnx_rank(s->in[s->n_states + i]));
        s->reversed[i] = listed(dirs, n_dirs, i) != 0;
    }
    if (n->failed)
        return false;
    const char **names = arena_array(&n->c->mem, const char *, n->n_out);
    for (uint32_t i = 0; i < n->n_out; i++) { /* rows that are moved once more leave the name to what moves them */
        uint32_t row = i - s->n_states;
        bool moved = i >= s->n_states && (listed(out_axes, n_out_axes, row) != 0 || listed(out_dirs, n_out_dirs, row));
        names[i] = moved ? NULL : n->out_names[i];
    }
    graph_node *loop = loop_over_slices(s, n->f, s->in, &s->k, names);
    for (uint32_t i = 0; loop && i < n->n_out; i++) {
        uint32_t row = i - s->n_states;
        if (i < s->n_states ? !onnx_alias(n, i, loop->outputs[i])
                            : !place_rows(n, i, loop->outputs[i], listed(out_dirs, n_out_dirs, row) != 0,
                                          listed(out_axes, n_out_axes, row)))
            return false;
    }
    return loop && !n->failed;
}

bool onnx_op_scan(onnx_node *n)
{
    int64_t slices = onnx_attr_int(n, "num_scan_inputs", 0);
    scan s = {.n = n, .g = onnx_attr_graph(n, "body"), .in = n->in, .k = {.n = n}};
    if (n->failed || slices < 1 || slices > n->n_in)
        return onnx_fail(n, DIAG_FORMAT, "num_scan_inputs does not fit %u inputs", n->n_in);
    s.n_slices = (uint32_t)slices;
    s.n_states = n->n_in - s.n_slices;
    return import_scan(&s);
}

/* --- version 8: a batch in front --- */

/* One element of the batch: states and what is sliced, without the axis; the results become rows. */
static bool import_element(scan *s, onnx_region *r)
{
    onnx_node *n = s->n;
    uint32_t count = s->n_states + s->n_slices;
    graph_value **in = arena_array(&n->c->mem, graph_value *, count),
                *element = graph_add_param(r->f, "element", type_static(n->c, DT_I64, 0, NULL));
    onnx_captures inner = {.n = n};
    for (uint32_t i = 0; i < count && !n->failed; i++)
        in[i] = take(r, onnx_region_value(r, s->in[i]->name, s->in[i]), element, 0);
    for (uint32_t i = 0; i < s->k.names.len; i++) {
        vec_push(&n->c->mem, &inner.names, s->k.names.data[i]);
        vec_push(&n->c->mem, &inner.values, onnx_region_value(r, s->k.names.data[i], s->k.values.data[i]));
    }
    graph_add_result(r->f, graph_add_constant(r->f, tensor_scalar_i64(n->c, DT_BOOL, 1), "go", n->loc));
    graph_node *loop = n->failed ? NULL : loop_over_slices(s, r->f, in, &inner, NULL);
    for (uint32_t i = 0; loop && i < loop->n_outputs; i++)
        graph_add_result(r->f, loop->outputs[i]);
    return loop != NULL;
}

bool onnx_op_scan_8(onnx_node *n)
{
    int64_t slices = onnx_attr_int(n, "num_scan_inputs", 0), batch = 0;
    const int64_t *dirs;
    uint32_t n_dirs = onnx_attr_ints(n, "directions", &dirs);
    scan s = {.n = n, .g = onnx_attr_graph(n, "body"), .in = n->in + 1, .k = {.n = n}};
    if (n->failed || slices < 1 || slices >= n->n_in)
        return onnx_fail(n, DIAG_FORMAT, "num_scan_inputs does not fit %u inputs", n->n_in);
    if (onnx_optional(n, 0))
        return onnx_fail(n, DIAG_UNSUPPORTED, "sequence lengths are not supported yet");
    s.n_slices = (uint32_t)slices;
    s.n_states = n->n_in - 1 - s.n_slices;
    if (!check_scan(&s))
        return false;
    for (uint32_t i = 0; i < s.n_states + s.n_slices; i++)
        if (onnx_rank(s.in[i]) < (i < s.n_states ? 1u : 2u))
            return onnx_fail(n, DIAG_TYPE, "input %u has no axis for the batch", i);
    for (uint32_t i = 0; i < s.n_slices; i++)
        s.reversed[i] = listed(dirs, n_dirs, i) != 0;
    batch = onnx_static_dim(n, s.in[0], 0);
    onnx_region r;
    onnx_region_open(&r, n, s.g, "batch");
    if (n->failed || !import_element(&s, &r))
        return false;
    onnx_loop l = {.trips = onnx_const_int(n, DT_I64, batch), .names = n->out_names, .n_names = n->n_out,
                   .declared = true};
    graph_node *loop = onnx_emit_loop(n, n->f, &l, &r);
    for (uint32_t i = 0; loop && i < n->n_out; i++)
        n->out[i] = loop->outputs[i];
    return loop != NULL;
}
