/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definition of max_roi_pool (ONNX MaxRoiPool): the largest pixel in each cell of each region. The data decide
 * where the cells lie, so that these are loops. */
#include "te/op/loops.h"

#include <float.h>

typedef struct roi_pool {
    te_graph *g;
    compiler *c;
    dtype dt; /* of arithmetic */
    const tir_buffer *x, *rois, *most;
    tir_expr_ref at[4];    /* of the result: region, channel, row, column */
    const tir_var *picture; /* of the region */
    const tir_var *ends[4]; /* of the cell: first row, one beyond the last row, the same of columns */
    double scale;
} roi_pool;

static tir_expr_ref op2(const roi_pool *v, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(v->c, op, a, b);
}

/* The 32-bit integer that a number becomes without its fraction, times `by`; the least one if none holds it, as on x86.
 * These are i64, whose sums never overflow. */
static tir_expr_ref whole(compiler *c, tir_expr_ref number, dtype dt, double by)
{
    tir_expr_ref ends[2] = {tir_float(c, dt, -2147483648.0), tir_float(c, dt, 2147483648.0)};
    tir_expr_ref holds = tir_and(c, tir_binary(c, TIR_GE, number, ends[0]), tir_binary(c, TIR_LT, number, ends[1]));
    tir_expr_ref kept = tir_select(c, holds, number, ends[0]);
    return tir_cast(c, DT_I64, tir_binary(c, TIR_MUL, kept, tir_float(c, dt, by)));
}

/* Entry k of the region in pixels, halves away from 0: from twice the number, which is exact, and which a compiler
 * cannot fuse with the product by the scale into other bits. */
static tir_expr_ref corner(const roi_pool *v, int64_t k)
{
    compiler *c = v->c;
    const tir_expr_ref at[2] = {v->at[0], tir_i64(c, k)};
    tir_expr_ref p = tir_cast(c, v->dt, tir_load(c, v->rois, 2, at)), one = tir_i64(c, 1), zero = tir_i64(c, 0);
    tir_expr_ref twice = whole(c, op2(v, TIR_MUL, p, tir_float(c, v->dt, v->scale)), v->dt, 2);
    twice = tir_add(c, twice, tir_select(c, op2(v, TIR_GE, twice, zero), one, zero));
    return tir_floordiv(c, twice, tir_i64(c, 2));
}

/* As 32-bit integers wrap. */
static tir_expr_ref wrapped(compiler *c, tir_expr_ref i)
{
    return tir_cast(c, DT_I64, tir_cast(c, DT_I32, i));
}

/* Where the cell begins and ends along an axis, 0: rows, 1: columns; within the picture. */
static void place(const roi_pool *v, int64_t axis, tir_expr_ref cells, tir_expr_ref *ends)
{
    compiler *c = v->c;
    tir_expr_ref start = corner(v, axis == 0 ? 2 : 1), last = corner(v, axis == 0 ? 4 : 3), one = tir_i64(c, 1);
    tir_expr_ref size = wrapped(c, tir_add(c, tir_sub(c, last, start), one)), extent = v->x->shape[2 + axis];
    size = tir_max(c, size, one);
    tir_expr_ref cell = op2(v, TIR_DIV, tir_cast(c, v->dt, size), tir_cast(c, v->dt, cells));
    for (int64_t k = 0; k < 2; k++) {
        tir_expr_ref end = tir_cast(c, v->dt, tir_add(c, v->at[2 + axis], tir_i64(c, k)));
        end = tir_call1(c, k == 0 ? TIR_FLOOR : TIR_CEIL, op2(v, TIR_MUL, end, cell));
        end = wrapped(c, tir_add(c, whole(c, end, v->dt, 1), start));
        ends[2 * axis + k] = tir_min(c, tir_max(c, end, tir_i64(c, 0)), extent);
    }
}

static tir_expr_ref extent_of(const roi_pool *v, uint32_t axis)
{
    tir_expr_ref size = tir_sub(v->c, tir_varref(v->c, v->ends[2 * axis + 1]), tir_varref(v->c, v->ends[2 * axis]));
    return tir_max(v->c, size, tir_i64(v->c, 0));
}

/* NaN takes the place of what was found before it, and the next pixel that of NaN. */
static tir_stmt *take_pixel(const roi_pool *v, tir_expr_ref y, tir_expr_ref x)
{
    compiler *c = v->c;
    const tir_expr_ref at[4] = {tir_varref(c, v->picture), v->at[1], y, x};
    tir_expr_ref pixel = tir_cast(c, v->dt, tir_load(c, v->x, 4, at)), most = loops_get(c, v->most);
    return loops_set(c, v->most, tir_select(c, op2(v, TIR_LT, pixel, most), most, pixel));
}

/* The largest starts at the lowest finite number, which is what a cell of -inf alone has. */
static tir_stmt *find_largest(const roi_pool *v, const tir_buffer *out)
{
    compiler *c = v->c;
    const tir_var *pixel[2];
    tir_expr_ref i[2], zero = tir_i64(c, 0), rows = extent_of(v, 0), columns = extent_of(v, 1);
    loops_vars(c, "p", 2, pixel, i);
    tir_stmt *loops = tir_for(c, pixel[1], tir_varref(c, v->ends[2]), columns, FOR_SERIAL, take_pixel(v, i[0], i[1]));
    loops = tir_for(c, pixel[0], tir_varref(c, v->ends[0]), rows, FOR_SERIAL, loops);
    tir_expr_ref any = op2(v, TIR_GT, tir_mul(c, rows, columns), zero);
    tir_expr_ref y = tir_select(c, any, loops_get(c, v->most), tir_float(c, v->dt, 0));
    tir_stmt *parts[3] = {loops_set(c, v->most, tir_float(c, v->dt, v->dt == DT_F64 ? -DBL_MAX : -FLT_MAX)), loops,
                          tir_store(c, out, 4, v->at, tir_cast(c, out->dt, y))};
    return tir_seq(c, 3, parts);
}

static tir_expr_ref picture_of(const roi_pool *v)
{
    compiler *c = v->c;
    const tir_expr_ref at[2] = {v->at[0], tir_i64(c, 0)};
    tir_expr_ref number = whole(c, tir_cast(c, v->dt, tir_load(c, v->rois, 2, at)), v->dt, 1);
    return te_clamp_index(v->g, number, v->x->shape[0]);
}

static tir_stmt *build_roi_pool(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    static const char *const names[] = {"top", "bottom", "left", "right"};
    const loops_ctx *l = ctx;
    compiler *c = g->c;
    const tir_var *vars[4];
    tir_expr_ref ends[4];
    roi_pool v = {.g = g, .c = c, .dt = te_acc_dtype(in[0]->dt), .x = in[0], .rois = in[1]};
    v.scale = graph_attr_float(l->n, "spatial_scale");
    v.most = loops_number(c, "most", v.dt);
    loops_vars(c, "r", 4, vars, v.at);
    for (int64_t i = 0; i < 2; i++)
        place(&v, i, out[0]->shape[2 + i], ends);
    for (uint32_t i = 0; i < 4; i++)
        v.ends[i] = tir_new_var(c, names[i], (tir_type){DT_I64, 1});
    v.picture = tir_new_var(c, "picture", (tir_type){DT_I64, 1});
    tir_stmt *body = find_largest(&v, out[0]);
    body = tir_let(c, v.picture, picture_of(&v), body);
    for (uint32_t i = 4; i-- > 0;)
        body = tir_let(c, v.ends[i], ends[i], body);
    return tir_allocate(c, v.most, loops_nest(c, 4, vars, out[0]->shape, body));
}

bool compute_max_roi_pool(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    compiler *c = g->c;
    te_axis *const *axes = te_data_axes(g, 1, in[1]->shape);
    const dtype dt = te_acc_dtype(in[0]->dt);
    const tir_expr_ref at[2] = {te_var(g, axes[0]), te_i64(g, 0)};
    tir_expr_ref batch = whole(c, tir_cast(c, dt, te_read(g, in[1], at)), dt, 1);
    te_check_range(g, n, 1, axes, te_in_bounds(g, batch, in[0]->shape[0]), "an index of a batch");
    return loops_extern(g, n, in, 2, build_roi_pool, &(loops_ctx){0}, out);
}
