/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definition of roi_align (ONNX RoiAlign): the mean, or the largest, of samples in each cell of each region.
 * How many samples a cell has may depend on the region, so that these are loops. The largest is that of the weighted
 * neighbors, not of the samples: ONNX and onnxruntime have it so. */
#include "te/op/loops.h"

#include <string.h>

#define MOST_SAMPLES 1e6 /* of a cell along one axis: what asks for more is no region of a picture */

typedef struct roi {
    te_graph *g;
    compiler *c;
    dtype dt; /* of arithmetic */
    const tir_buffer *x, *rois, *batches;
    const tir_buffer *sum;
    tir_expr_ref at[4];    /* of the result: region, channel, row, column */
    tir_expr_ref grid[2];  /* samples of a cell along each axis */
    tir_expr_ref start[2], cell[2];
    double scale;
    int64_t samples; /* 0: as many as a cell has pixels */
    bool half_pixel, largest;
} roi;

static tir_expr_ref real(const roi *v, double k)
{
    return tir_float(v->c, v->dt, k);
}

static tir_expr_ref op2(const roi *v, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(v->c, op, a, b);
}

static tir_expr_ref real_of(const roi *v, tir_expr_ref i)
{
    return tir_cast(v->c, v->dt, i);
}

/* Entry k of the region. */
static tir_expr_ref corner(const roi *v, int64_t k)
{
    tir_expr_ref at[2] = {v->at[0], tir_i64(v->c, k)};
    tir_expr_ref p = op2(v, TIR_MUL, real_of(v, tir_load(v->c, v->rois, 2, at)), real(v, v->scale));
    return v->half_pixel ? op2(v, TIR_SUB, p, real(v, 0.5)) : p;
}

/* Where region and cell lie along an axis, 0: rows, 1: columns. */
static void place(roi *v, uint32_t axis, tir_expr_ref cells)
{
    compiler *c = v->c;
    v->start[axis] = corner(v, axis == 0 ? 1 : 0);
    tir_expr_ref size = op2(v, TIR_SUB, corner(v, axis == 0 ? 3 : 2), v->start[axis]);
    if (!v->half_pixel)
        size = op2(v, TIR_MAX, size, real(v, 1));
    v->cell[axis] = op2(v, TIR_DIV, size, real_of(v, cells));
    v->grid[axis] = tir_i64(c, v->samples);
    if (v->samples == 0) { /* NaN gives none */
        tir_expr_ref many = tir_call1(c, TIR_CEIL, v->cell[axis]), none = op2(v, TIR_GT, many, real(v, 0));
        many = op2(v, TIR_MIN, tir_select(c, none, many, real(v, 0)), real(v, MOST_SAMPLES));
        v->grid[axis] = tir_cast(c, DT_I64, many);
    }
}

/* One coordinate of a sample: whether it is in the picture, the pixels below and above, the weight of the latter. */
typedef struct between {
    tir_expr_ref inside, low, high, weight;
} between;

static between find_pixels(const roi *v, uint32_t axis, tir_expr_ref i, tir_expr_ref extent)
{
    compiler *c = v->c;
    between b;
    tir_expr_ref p = op2(v, TIR_MUL, real_of(v, v->at[2 + axis]), v->cell[axis]), zero = real(v, 0);
    tir_expr_ref step = op2(v, TIR_MUL, op2(v, TIR_ADD, real_of(v, i), real(v, 0.5)), v->cell[axis]);
    p = op2(v, TIR_ADD, op2(v, TIR_ADD, v->start[axis], p), op2(v, TIR_DIV, step, real_of(v, v->grid[axis])));
    b.inside = tir_and(c, op2(v, TIR_GE, p, real(v, -1)), op2(v, TIR_LE, p, real_of(v, extent)));
    p = op2(v, TIR_MAX, tir_select(c, b.inside, p, zero), zero);
    tir_expr_ref last = tir_sub(c, extent, tir_i64(c, 1)), whole = tir_cast(c, DT_I64, p);
    b.low = tir_min(c, whole, last);
    b.high = tir_min(c, tir_add(c, b.low, tir_i64(c, 1)), last);
    b.weight = tir_select(c, op2(v, TIR_GE, whole, last), zero, op2(v, TIR_SUB, p, real_of(v, b.low)));
    return b;
}

static tir_expr_ref pixel(const roi *v, tir_expr_ref y, tir_expr_ref x, tir_expr_ref wy, tir_expr_ref wx)
{
    compiler *c = v->c;
    tir_expr_ref batch = tir_cast(c, DT_I64, tir_load(c, v->batches, 1, v->at));
    batch = te_clamp_index(v->g, te_wrap_index(v->g, batch, v->x->shape[0]), v->x->shape[0]);
    tir_expr_ref at[4] = {batch, v->at[1], y, x};
    return op2(v, TIR_MUL, op2(v, TIR_MUL, wy, wx), real_of(v, tir_load(c, v->x, 4, at)));
}

static tir_stmt *take_sample(const roi *v, tir_expr_ref iy, tir_expr_ref ix)
{
    compiler *c = v->c;
    between y = find_pixels(v, 0, iy, v->x->shape[2]), x = find_pixels(v, 1, ix, v->x->shape[3]);
    tir_expr_ref one = real(v, 1), hy = op2(v, TIR_SUB, one, y.weight), hx = op2(v, TIR_SUB, one, x.weight);
    tir_expr_ref p[4] = {pixel(v, y.low, x.low, hy, hx), pixel(v, y.low, x.high, hy, x.weight),
                         pixel(v, y.high, x.low, y.weight, hx), pixel(v, y.high, x.high, y.weight, x.weight)};
    tir_expr_ref all = p[0];
    for (uint32_t i = 1; i < 4; i++)
        all = op2(v, v->largest ? TIR_MAX : TIR_ADD, all, p[i]);
    all = tir_select(c, tir_and(c, y.inside, x.inside), all, real(v, 0));
    return loops_set(c, v->sum, op2(v, v->largest ? TIR_MAX : TIR_ADD, loops_get(c, v->sum), all));
}

static tir_stmt *build_roi_align(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *l = ctx;
    compiler *c = g->c;
    const tir_var *vars[4], *sample[2];
    tir_expr_ref i[2], zero = tir_i64(c, 0);
    roi v = {.g = g, .c = c, .dt = te_acc_dtype(in[0]->dt), .x = in[0], .rois = in[1], .batches = in[2]};
    v.scale = graph_attr_float(l->n, "spatial_scale");
    v.samples = graph_attr_int(l->n, "sampling_ratio");
    v.half_pixel = strcmp(graph_attr_string(l->n, "coordinate_transformation_mode"), "half_pixel") == 0;
    v.largest = strcmp(graph_attr_string(l->n, "mode"), "max") == 0;
    v.sum = loops_number(c, "sum", v.dt);
    loops_vars(c, "r", 4, vars, v.at);
    loops_vars(c, "s", 2, sample, i);
    place(&v, 0, out[0]->shape[2]);
    place(&v, 1, out[0]->shape[3]);
    tir_stmt *loops = tir_for(c, sample[1], zero, v.grid[1], FOR_SERIAL, take_sample(&v, i[0], i[1]));
    loops = tir_for(c, sample[0], zero, v.grid[0], FOR_SERIAL, loops);
    tir_expr_ref count = tir_mul(c, v.grid[0], v.grid[1]), y = loops_get(c, v.sum);
    if (v.largest)
        y = tir_select(c, op2(&v, TIR_GT, count, zero), y, real(&v, 0));
    else
        y = op2(&v, TIR_DIV, y, real_of(&v, tir_max(c, count, tir_i64(c, 1))));
    tir_stmt *parts[3] = {loops_set(c, v.sum, v.largest ? te_lowest(c, v.dt) : real(&v, 0)), loops,
                          tir_store(c, out[0], 4, v.at, tir_cast(c, out[0]->dt, y))};
    return tir_allocate(c, v.sum, loops_nest(c, 4, vars, out[0]->shape, tir_seq(c, 3, parts)));
}

bool compute_roi_align(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    te_axis *const *axes = te_data_axes(g, 1, in[2]->shape);
    tir_expr_ref at[1] = {te_var(g, axes[0])};
    tir_expr_ref batch = tir_cast(g->c, DT_I64, te_read(g, in[2], at));
    te_check_range(g, n, 1, axes, te_names_element(g, batch, in[0]->shape[0]), "an index of a batch");
    return loops_extern(g, n, in, 3, build_roi_align, &(loops_ctx){0}, out);
}
