/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that a tensor expression cannot say, as loop IR: scans (CumSum, CumProd), scatters, MaxUnpool,
 * Col2Im. Each writes every element of its results; duplicate indices are applied in order. */
#include "graph/op/nn.h"

#include "abi/package.h"
#include "te/op/loops.h"

#include <string.h>

/* --- small vocabulary
 * --------------------------------------------------------------------------------------------------- */

void loops_vars(compiler *c, const char *prefix, uint32_t rank, const tir_var **vars, tir_expr_ref *idx)
{
    for (uint32_t i = 0; i < rank; i++) {
        vars[i] = tir_new_var(c, arena_printf(&c->mem, "%s%u", prefix, i), TIR_I64);
        idx[i] = tir_varref(c, vars[i]);
    }
}

tir_stmt *loops_nest(compiler *c, uint32_t rank, const tir_var *const *vars, tir_expr_ref const *extents,
                     tir_stmt *body)
{
    for (uint32_t i = rank; i-- > 0;)
        body = tir_for(c, vars[i], tir_i64(c, 0), extents[i], FOR_SERIAL, body);
    return body;
}

static tir_stmt *fill(te_graph *g, const tir_buffer *to, tir_expr_ref value, const tir_buffer *from)
{
    compiler *c = g->c;
    const tir_var *vars[TYPE_MAX_RANK];
    tir_expr_ref idx[TYPE_MAX_RANK];
    loops_vars(c, "i", to->rank, vars, idx);
    return loops_nest(c, to->rank, vars, to->shape,
                      tir_store(c, to, to->rank, idx, from ? tir_load(c, from, to->rank, idx) : value));
}

bool loops_extern(te_graph *g, const graph_node *n, te_tensor *const *in, uint32_t n_in, te_build_fn build,
                  loops_ctx *v, te_tensor **out)
{
    dtype dts[4];
    uint32_t ranks[4];
    tir_expr_ref const *shapes[4];
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        const type *t = te_out_type(n, i);
        dts[i] = t->dt;
        ranks[i] = (uint32_t)t->shape.rank;
        shapes[i] = te_shape(g, t);
    }
    v->n = n;
    v->in = in;
    te_extern(g, n->op->name, n_in, in, n->n_outputs, dts, ranks, shapes, build, v, out);
    return true;
}

/* An index from data, as i64, negative ones counted from the end. */
static tir_expr_ref wrapped(te_graph *g, tir_expr_ref i, tir_expr_ref extent)
{
    return te_wrap_index(g, tir_cast(g->c, DT_I64, i), extent);
}

/* --- scans
 * ----------------------------------------------------------------------------------------------------------------- */

static tir_stmt *scan_axis(te_graph *g, const loops_ctx *v, uint32_t axis, const tir_buffer *x, const tir_buffer *y,
                           tir_op op)
{
    compiler *c = g->c;
    bool exclusive = graph_attr_int(v->n, "exclusive") != 0, reverse = graph_attr_int(v->n, "reverse") != 0;
    const tir_var *vars[TYPE_MAX_RANK];
    tir_expr_ref idx[TYPE_MAX_RANK], prev[TYPE_MAX_RANK], one = tir_i64(c, 1);
    loops_vars(c, "i", x->rank, vars, idx);
    tir_expr_ref t = idx[axis], last = tir_sub(c, x->shape[axis], one);
    idx[axis] = reverse ? tir_sub(c, last, t) : t;
    memcpy(prev, idx, x->rank * sizeof *prev);
    prev[axis] = reverse ? tir_add(c, idx[axis], one) : tir_sub(c, idx[axis], one);
    tir_expr_ref identity = tir_const(c, x->dt, op == TIR_ADD ? 0 : 1);
    tir_expr_ref first = exclusive ? identity : tir_load(c, x, x->rank, idx);
    tir_expr_ref next =
        tir_binary(c, op, tir_load(c, y, y->rank, prev), tir_load(c, x, x->rank, exclusive ? prev : idx));
    tir_expr_ref value = tir_select(c, tir_binary(c, TIR_EQ, t, tir_i64(c, 0)), first, next);
    return loops_nest(c, x->rank, vars, x->shape, tir_store(c, y, y->rank, idx, value));
}

/* One nest for a constant axis; else one nest per axis, chosen at run time. */
static tir_stmt *build_scan(te_graph *g, const loops_ctx *v, const tir_buffer *const *in, const tir_buffer *const *out,
                            tir_op op)
{
    compiler *c = g->c;
    int64_t axis = 0, rank = in[0]->rank;
    uint32_t len = 0;
    if (graph_constant_ints(v->n->inputs[1], 1, &axis, &len) && len == 1)
        return scan_axis(g, v, (uint32_t)(axis < 0 ? axis + rank : axis), in[0], out[0], op);
    tir_expr_ref given = wrapped(g, loops_one(c, in[1]), tir_i64(c, rank));
    tir_stmt *s = NULL;
    for (uint32_t a = in[0]->rank; a-- > 0;)
        s = tir_if(c, tir_binary(c, TIR_EQ, given, tir_i64(c, a)), scan_axis(g, v, a, in[0], out[0], op), s);
    return s;
}

static tir_stmt *build_cumsum(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    return build_scan(g, ctx, in, out, TIR_ADD);
}

static tir_stmt *build_cumprod(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    return build_scan(g, ctx, in, out, TIR_MUL);
}

static bool scan(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out, te_build_fn build)
{
    int64_t axis = 0, rank = in[0]->rank;
    uint32_t len = 0;
    if (rank == 0 || (graph_constant_ints(n->inputs[1], 1, &axis, &len) && (axis < -rank || axis >= rank)))
        return infer_error(g->c, n, "axis %lld for rank %lld", (long long)axis, (long long)rank);
    te_check_axes(g, n, in, 1, (uint32_t)rank);
    return loops_extern(g, n, in, 2, build, &(loops_ctx){0}, out);
}

bool compute_cumsum(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return scan(g, n, in, out, build_cumsum);
}
bool compute_cumprod(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return scan(g, n, in, out, build_cumprod);
}

/* --- automata --- */

/* An index below the extent, whatever the table holds. */
static tir_expr_ref below(compiler *c, tir_expr_ref i, tir_expr_ref extent)
{
    return tir_binary(c, TIR_MIN, tir_cast(c, DT_I64, i), tir_sub(c, extent, tir_i64(c, 1)));
}

static tir_stmt *build_automaton(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    compiler *c = g->c;
    const tir_buffer *x = in[0], *next = in[2], *y = out[0], *state = loops_number(c, "state", DT_U16);
    const uint32_t last = x->rank - 1;
    const tir_var *vars[TYPE_MAX_RANK];
    tir_expr_ref idx[TYPE_MAX_RANK], at[2], byte;
    (void)ctx;
    loops_vars(c, "i", x->rank, vars, idx);
    byte = tir_cast(c, DT_I64, tir_load(c, x, x->rank, idx));
    at[0] = below(c, loops_get(c, state), next->shape[0]);
    at[1] = below(c, tir_load(c, in[1], 1, &byte), next->shape[1]);
    tir_stmt *step[2] = {loops_set(c, state, tir_load(c, next, 2, at)),
                         tir_store(c, y, y->rank, idx, loops_get(c, state))};
    tir_stmt *row[2] = {loops_set(c, state, tir_int(c, DT_U16, 0)),
                        tir_for(c, vars[last], tir_i64(c, 0), x->shape[last], FOR_SERIAL, tir_seq(c, 2, step))};
    return tir_allocate(c, state, loops_nest(c, last, vars, x->shape, tir_seq(c, 2, row)));
}

bool compute_automaton(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return loops_extern(g, n, in, 3, build_automaton, &(loops_ctx){0}, out);
}

/* --- scatters
 * ------------------------------------------------------------------------------------------------------------------ */

static bool scatter_op(compiler *c, const graph_node *n, tir_op *op)
{
    static const struct {
        const char *name;
        tir_op op;
    } table[] = {{"none", TIR_OP_NONE}, {"add", TIR_ADD}, {"mul", TIR_MUL}, {"max", TIR_MAX}, {"min", TIR_MIN}};
    const char *name = graph_attr_string(n, "reduction");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(name, table[i].name) == 0) {
            *op = table[i].op;
            return true;
        }
    }
    return infer_error(c, n, "unknown reduction '%s'", name);
}

static tir_stmt *scatter_store(compiler *c, const loops_ctx *v, const tir_buffer *y, tir_expr_ref const *at,
                               tir_expr_ref update)
{
    tir_op op = TIR_OP_NONE;
    (void)scatter_op(c, v->n, &op);
    if (op != TIR_OP_NONE)
        update = tir_binary(c, op, tir_load(c, y, y->rank, at), update);
    return tir_store(c, y, y->rank, at, update);
}

static tir_stmt *build_scatter_elements(te_graph *g, void *ctx, const tir_buffer *const *in,
                                        const tir_buffer *const *out)
{
    const loops_ctx *v = ctx;
    compiler *c = g->c;
    const tir_var *vars[TYPE_MAX_RANK];
    tir_expr_ref idx[TYPE_MAX_RANK], at[TYPE_MAX_RANK];
    uint32_t rank = in[0]->rank;
    loops_vars(c, "u", rank, vars, idx);
    memcpy(at, idx, rank * sizeof *at);
    at[v->axis] = wrapped(g, tir_load(c, in[1], rank, idx), in[0]->shape[v->axis]);
    tir_stmt *update =
        loops_nest(c, rank, vars, in[2]->shape, scatter_store(c, v, out[0], at, tir_load(c, in[2], rank, idx)));
    tir_stmt *both[2] = {fill(g, out[0], NULL, in[0]), update};
    return tir_seq(c, 2, both);
}

bool compute_scatter_elements(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    loops_ctx v = {0};
    tir_op op;
    if (!scatter_op(g->c, n, &op) || !infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &v.axis))
        return false;
    if (in[1]->rank != in[0]->rank || in[2]->rank != in[0]->rank)
        return infer_error(g->c, n, "data, indices and updates must have one rank");
    te_axis *const *axes = te_data_axes(g, in[2]->rank, in[2]->shape);
    tir_expr_ref at[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < in[2]->rank; i++)
        at[i] = te_var(g, axes[i]);
    tir_expr_ref index = tir_cast(g->c, DT_I64, te_read(g, in[1], at));
    te_check_range(g, n, in[2]->rank, axes, te_names_element(g, index, in[0]->shape[v.axis]), "an index");
    return loops_extern(g, n, in, 3, build_scatter_elements, &v, out);
}

/* indices [lead..., depth]; updates [lead..., data axes from depth on] */
static tir_stmt *build_scatter_nd(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    compiler *c = g->c;
    const tir_var *vars[TYPE_MAX_RANK];
    tir_expr_ref idx[TYPE_MAX_RANK], ia[TYPE_MAX_RANK], at[TYPE_MAX_RANK];
    uint32_t lead = in[1]->rank - 1, rank = in[2]->rank;
    int64_t depth = 0;
    (void)tir_is_int(in[1]->shape[lead], &depth);
    loops_vars(c, "u", rank, vars, idx);
    memcpy(ia, idx, lead * sizeof *ia);
    for (uint32_t k = 0; k < (uint32_t)depth; k++) {
        ia[lead] = tir_i64(c, k);
        at[k] = wrapped(g, tir_load(c, in[1], lead + 1, ia), in[0]->shape[k]);
    }
    for (uint32_t i = (uint32_t)depth; i < in[0]->rank; i++)
        at[i] = idx[lead + i - (uint32_t)depth];
    tir_stmt *update =
        loops_nest(c, rank, vars, in[2]->shape, scatter_store(c, ctx, out[0], at, tir_load(c, in[2], rank, idx)));
    tir_stmt *both[2] = {fill(g, out[0], NULL, in[0]), update};
    return tir_seq(c, 2, both);
}

bool compute_scatter_nd(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    tir_op op;
    int64_t depth = 0;
    if (!scatter_op(g->c, n, &op))
        return false;
    if (in[1]->rank < 1 || !tir_is_int(in[1]->shape[in[1]->rank - 1], &depth) || depth < 0 ||
        depth > (int64_t)in[0]->rank || (int64_t)in[2]->rank != (int64_t)in[1]->rank - 1 + (int64_t)in[0]->rank - depth)
        return infer_error(g->c, n, "indices of rank %u and updates of rank %u do not fit data of rank %u", in[1]->rank,
                           in[2]->rank, in[0]->rank);
    te_check_tuples(g, n, in, 0);
    return loops_extern(g, n, in, 3, build_scatter_nd, &(loops_ctx){0}, out);
}

/* --- the inverses of windows
 * ------------------------------------------------------------------------------------------------------ */

/* Extents of the tensor that was pooled: (in-1)*stride + kernel - pads. */
static void pooled_extents(compiler *c, const graph_node *n, const te_tensor *x, tir_expr_ref *out)
{
    const int64_t *kernel = NULL;
    nn_window w;
    (void)graph_attr_ints(n, "pool_size", &kernel);
    (void)nn_window_read(c, n, x->rank - 2, &w);
    memcpy(out, x->shape, 2 * sizeof *out);
    for (uint32_t i = 0; i < x->rank - 2; i++) {
        tir_expr_ref sweep = tir_mul(c, tir_sub(c, x->shape[2 + i], tir_i64(c, 1)), tir_i64(c, w.stride[i]));
        out[2 + i] = tir_add(c, sweep, tir_i64(c, kernel[i] - w.pad_begin[i] - w.pad_end[i]));
    }
}

/* Where indices count: in the result, which is the tensor that was pooled, as the text of ONNX and onnxruntime have it.
 * With an output_shape that is larger than the default one, ONNX's reference counts in the default one, and keeps the
 * positions. So does this where indices cannot be those of a pool over the result, and all are below the default
 * size. */
typedef struct unpool_ctx {
    const graph_node *n;
    const te_tensor *x, *indices;
    nn_window w;
    tir_expr_ref given[TYPE_MAX_RANK], plain[TYPE_MAX_RANK]; /* extents of the result, and by default */
    te_axis *axes[TYPE_MAX_RANK];
    te_tensor *most; /* of how_far, over all indices; NULL: one way alone */
    bool is_plain;   /* without `most`: the default shape */
} unpool_ctx;

enum { IN_WINDOW, OUTSIDE, BEYOND }; /* of its window in the result; of the default shape */

static tir_expr_ref how_far(te_graph *g, void *ctx, tir_expr_ref const *unused)
{
    const unpool_ctx *v = ctx;
    compiler *c = g->c;
    const uint32_t rank = v->x->rank;
    tir_expr_ref idx[TYPE_MAX_RANK], at[TYPE_MAX_RANK], inside = NULL, size = tir_i64(c, 1);
    (void)unused;
    for (uint32_t i = 0; i < rank; i++)
        idx[i] = te_var(g, v->axes[i]);
    tir_expr_ref index = te_read(g, v->indices, idx);
    te_unflatten(g, index, rank, v->given, at);
    for (uint32_t i = 0; i < rank; i++) {
        size = tir_mul(c, size, v->plain[i]);
        if (i < 2) {
            inside = tir_and(c, inside, tir_binary(c, TIR_EQ, at[i], idx[i]));
            continue;
        }
        const int64_t kernel = v->w.kernel[i - 2]; /* pads are those of the pool, which output_shape may stand for */
        tir_expr_ref from = tir_sub(c, at[i], tir_mul(c, idx[i], tir_i64(c, v->w.stride[i - 2])));
        inside = tir_and(c, inside, te_in_bounds(g, tir_add(c, from, tir_i64(c, kernel - 1)),
                                                 tir_i64(c, 2 * kernel - 1)));
    }
    tir_expr_ref outside = tir_select(c, tir_binary(c, TIR_LT, index, size), tir_int(c, DT_I32, OUTSIDE),
                                      tir_int(c, DT_I32, BEYOND));
    return tir_select(c, inside, tir_int(c, DT_I32, IN_WINDOW), outside);
}

/* Extents that do not fit into the result are not the reference's, which puts one tensor into the other. */
static void read_unpool(te_graph *g, const graph_node *n, te_tensor *const *in, unpool_ctx *v)
{
    const uint32_t rank = in[0]->rank;
    bool same = true, fits = true;
    v->n = n;
    v->x = in[0];
    v->indices = in[1];
    pooled_extents(g->c, n, in[0], v->plain);
    for (uint32_t i = 0; i < rank; i++) {
        int64_t given, plain;
        v->given[i] = te_dim(g, te_out_type(n, 0)->shape.dims[i]);
        const bool known = tir_is_int(v->given[i], &given) && tir_is_int(v->plain[i], &plain);
        same &= known && given == plain;
        fits &= !known || plain <= given;
    }
    v->is_plain = same || !te_has_operand(n, 2);
    if (v->is_plain || !fits)
        return;
    for (uint32_t i = 0; i < rank; i++)
        v->axes[i] = te_numbered_axis(g, "k", i, in[1]->shape[i]);
    v->most = te_reduce(g, "how_far", DT_I32, 0, NULL, rank, v->axes, TE_MAX, how_far, v);
}

/* The position that an index names. */
static void unpool_position(te_graph *g, const unpool_ctx *v, tir_expr_ref most, tir_expr_ref index, tir_expr_ref *at)
{
    compiler *c = g->c;
    tir_expr_ref extents[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < v->x->rank; i++)
        extents[i] = v->is_plain ? v->plain[i] : v->given[i];
    for (uint32_t i = 0; most && i < v->x->rank; i++)
        extents[i] = tir_select(c, tir_binary(c, TIR_EQ, most, tir_int(c, DT_I32, OUTSIDE)), v->plain[i], v->given[i]);
    te_unflatten(g, index, v->x->rank, extents, at);
}

static tir_stmt *build_max_unpool(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const unpool_ctx *v = ((loops_ctx *)ctx)->more;
    compiler *c = g->c;
    const tir_var *vars[TYPE_MAX_RANK];
    tir_expr_ref idx[TYPE_MAX_RANK] = {NULL}, at[TYPE_MAX_RANK];
    uint32_t rank = in[0]->rank;
    loops_vars(c, "i", rank, vars, idx);
    unpool_position(g, v, v->most ? tir_load(c, in[2], 0, NULL) : NULL, tir_load(c, in[1], rank, idx), at);
    tir_stmt *put = tir_store(c, out[0], rank, at, tir_load(c, in[0], rank, idx));
    put = loops_nest(c, rank, vars, in[0]->shape, put);
    tir_stmt *both[2] = {fill(g, out[0], tir_const(c, out[0]->dt, 0), NULL), put};
    return tir_seq(c, 2, both);
}

/* Each index names an element of the result. */
static void check_unpool(te_graph *g, const unpool_ctx *v)
{
    compiler *c = g->c;
    uint32_t rank = v->x->rank;
    te_axis *const *axes = te_data_axes(g, rank, v->x->shape);
    tir_expr_ref idx[TYPE_MAX_RANK], at[TYPE_MAX_RANK], holds = NULL;
    for (uint32_t i = 0; i < rank; i++)
        idx[i] = te_var(g, axes[i]);
    unpool_position(g, v, v->most ? te_read(g, v->most, NULL) : NULL, te_read(g, v->indices, idx), at);
    for (uint32_t i = 0; i < rank; i++)
        holds = tir_and(c, holds, te_in_bounds(g, at[i], v->given[i]));
    te_check_range(g, v->n, rank, axes, holds, "an index");
}

/* Operand i gives the result's extents from axis `first` on. */
static void check_extents(te_graph *g, const graph_node *n, te_tensor *const *in, uint32_t i, uint32_t first,
                          const char *what)
{
    tir_expr_ref fits = NULL;
    const shape s = te_out_type(n, 0)->shape;
    for (uint32_t k = 0; first + k < (uint32_t)s.rank; k++)
        fits = tir_and(g->c, fits,
                       tir_binary(g->c, TIR_EQ, te_operand(g, n, in, i, k), te_dim(g, s.dims[first + k])));
    te_check_shape(g, n, fits, what);
}

bool compute_max_unpool(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    unpool_ctx *v = arena_new(&g->c->mem, unpool_ctx);
    *v = (unpool_ctx){0};
    if (in[1]->rank != in[0]->rank || !nn_window_read(g->c, n, in[0]->rank - 2, &v->w))
        return infer_error(g->c, n, "indices must have the data's shape");
    const int64_t *kernel = NULL;
    (void)graph_attr_ints(n, "pool_size", &kernel);
    memcpy(v->w.kernel, kernel, (in[0]->rank - 2) * sizeof *kernel);
    if (te_has_operand(n, 2))
        check_extents(g, n, in, 2, 0, "output_shape");
    read_unpool(g, n, in, v);
    check_unpool(g, v);
    te_tensor *const operands[] = {in[0], in[1], v->most};
    return loops_extern(g, n, operands, v->most ? 3 : 2, build_max_unpool, &(loops_ctx){.more = v}, out);
}

/* Element i of col2im's block_shape: a literal when it is constant. */
static tir_expr_ref block_extent(compiler *c, const graph_node *n, const tir_buffer *block, uint32_t i)
{
    const tensor_data *t = graph_constant(n->inputs[2]);
    tir_expr_ref at[1] = {tir_i64(c, i)};
    return t ? tir_i64(c, tensor_get_i64(t, i)) : tir_cast(c, DT_I64, tir_load(c, block, 1, at));
}

/* Columns that a window of `block` taps makes of an axis. */
static tir_expr_ref columns(compiler *c, const nn_window *w, uint32_t i, tir_expr_ref image, tir_expr_ref block)
{
    tir_expr_ref taps = tir_mul(c, tir_sub(c, block, tir_i64(c, 1)), tir_i64(c, w->dilation[i]));
    tir_expr_ref reach = tir_add(c, image, tir_i64(c, w->pad_begin[i] + w->pad_end[i] - 1));
    return tir_add(c, tir_floordiv(c, tir_sub(c, reach, taps), tir_i64(c, w->stride[i])), tir_i64(c, 1));
}

/* data [N, C*kernel, columns] added into the image (ONNX Col2Im). A block_shape that is known at run time only must fit
 * the data's extents. */
static tir_stmt *build_col2im(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *v = ctx;
    compiler *c = g->c;
    const tir_buffer *y = out[0];
    uint32_t sp = y->rank - 2;
    nn_window w;
    (void)nn_window_read(c, v->n, sp, &w);
    const tir_var *vars[2 + 2 * TYPE_MAX_RANK];
    tir_expr_ref idx[2 + 2 * TYPE_MAX_RANK], extent[2 + 2 * TYPE_MAX_RANK], at[TYPE_MAX_RANK], inside = NULL;
    loops_vars(c, "i", 2 + 2 * sp, vars, idx);
    tir_expr_ref row = idx[1], col = tir_i64(c, 0), rows = y->shape[1], cols = tir_i64(c, 1);
    memcpy(extent, y->shape, 2 * sizeof *extent);
    memcpy(at, idx, 2 * sizeof *at);
    for (uint32_t i = 0; i < sp; i++) {
        tir_expr_ref k = idx[2 + i], o = idx[2 + sp + i];
        extent[2 + i] = block_extent(c, v->n, in[2], i);
        extent[2 + sp + i] = columns(c, &w, i, y->shape[2 + i], extent[2 + i]);
        rows = tir_mul(c, rows, extent[2 + i]);
        cols = tir_mul(c, cols, extent[2 + sp + i]);
        row = tir_add(c, tir_mul(c, row, extent[2 + i]), k);
        col = tir_add(c, tir_mul(c, col, extent[2 + sp + i]), o);
        at[2 + i] = tir_add(c, tir_mul(c, o, tir_i64(c, w.stride[i])), tir_mul(c, k, tir_i64(c, w.dilation[i])));
        at[2 + i] = tir_sub(c, at[2 + i], tir_i64(c, w.pad_begin[i]));
        inside = tir_and(c, inside, te_in_bounds(g, at[2 + i], y->shape[2 + i]));
    }
    tir_expr_ref from[3] = {idx[0], row, col};
    tir_expr_ref sum = tir_add(c, tir_load(c, y, y->rank, at), tir_load(c, in[0], 3, from));
    tir_stmt *body =
        loops_nest(c, 2 + 2 * sp, vars, extent, tir_if(c, inside, tir_store(c, y, y->rank, at, sum), NULL));
    tir_expr_ref fits =
        tir_and(c, tir_binary(c, TIR_EQ, rows, in[0]->shape[1]), tir_binary(c, TIR_EQ, cols, in[0]->shape[2]));
    tir_stmt *parts[3] = {
        tir_assert(c, fits, PACKAGE_STATUS_SHAPE, "col2im: the data's shape does not follow from block_shape"),
        fill(g, y, tir_const(c, y->dt, 0), NULL), body};
    return tir_seq(c, 3, parts);
}

bool compute_col2im(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    int64_t blocks = 0;
    uint32_t rank = (uint32_t)te_out_type(n, 0)->shape.rank;
    nn_window w;
    if (!tir_is_int(in[2]->shape[0], &blocks) || blocks < 1 || rank != blocks + 2)
        return infer_error(g->c, n, "block_shape must have one entry for each of the %u spatial axes", rank - 2);
    check_extents(g, n, in, 1, 2, "image_shape");
    return nn_window_read(g->c, n, (uint32_t)blocks, &w) &&
           loops_extern(g, n, in, 3, build_col2im, &(loops_ctx){0}, out);
}
