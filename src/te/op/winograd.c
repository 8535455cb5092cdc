/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of the Winograd convolution: input tiles, their transform by rows and columns, one matrix product
 * for each of the side^2 positions in a tile, and the transform of the sums back. Every stage is tagged, so that the
 * schedule (te/rule/winograd.c) finds it. A transform's row is chosen by its index: once loops are written out,
 * a few additions remain. Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015. */
#include "graph/op/winograd.h"

#include "te/op/util.h"

#include <string.h>

typedef struct winograd_ctx {
    const winograd_form *form;
    bool integers; /* bytes by weights of 16 bits: the form without fractions, sums modulo 2^32 */
    nn_window win;
    te_tensor *x;       /* what the stage reads */
    const te_tensor *w; /* transformed weights */
    int64_t block;      /* channels in a block */
    int64_t lanes;      /* the same of the transformed input: of two blocks where those are integers of 16 bits */
    te_axis *ic;        /* input channel */
} winograd_ctx;

/* --- sums with constant coefficients --- */

static tir_expr_ref number(compiler *c, dtype dt, double v)
{
    return dtype_is_float(dt) ? tir_float(c, dt, v) : tir_int(c, dt, (int64_t)v);
}

static tir_expr_ref term(compiler *c, double coeff, tir_expr_ref x)
{
    return coeff == 1 ? x : tir_mul(c, number(c, x->type.dt, coeff), x);
}

/* sum + coeff * x; sum may be NULL: zero. */
static tir_expr_ref add_term(compiler *c, tir_expr_ref sum, double coeff, tir_expr_ref x)
{
    if (coeff == 0)
        return sum;
    if (sum && coeff < 0)
        return tir_sub(c, sum, term(c, -coeff, x));
    return sum ? tir_add(c, sum, term(c, coeff, x)) : term(c, coeff, x);
}

static tir_expr_ref or_zero(compiler *c, tir_expr_ref sum, dtype dt)
{
    return sum ? sum : tir_const(c, dt, 0);
}

/* sign * every other term from `first` on, those that are added before those that are subtracted. */
static tir_expr_ref half_row(compiler *c, const double *row, int64_t n, int64_t first, double sign,
                             tir_expr_ref const *in)
{
    tir_expr_ref sum = NULL;
    for (int64_t i = first; i < n; i += 2)
        sum = sign * row[i] > 0 ? add_term(c, sum, sign * row[i], in[i]) : sum;
    for (int64_t i = first; i < n; i += 2)
        sum = sign * row[i] < 0 ? add_term(c, sum, sign * row[i], in[i]) : sum;
    return sum;
}

/* Whether the terms from `first` on are differences with factors. */
static bool has_differences(const double *row, int64_t n, int64_t first)
{
    double sum = 0;
    bool factors = false;
    for (int64_t i = first; i < n; i += 2) {
        sum += row[i];
        factors |= row[i] != 0 && row[i] != 1 && row[i] != -1;
    }
    return factors && sum == 0;
}

/* The same of integers, which may be added in any order: neighbors' differences, which other rows have as well. */
static tir_expr_ref half_row_of_differences(compiler *c, const double *row, int64_t n, int64_t first, double sign,
                                            tir_expr_ref const *in)
{
    tir_expr_ref sum = NULL, before = NULL;
    double behind = 0; /* coefficients of the terms behind */
    for (int64_t i = first + (n - 1 - first) / 2 * 2; i >= first; i -= 2) {
        if (row[i] == 0)
            continue;
        sum = before ? add_term(c, sum, sign * behind, tir_sub(c, before, in[i])) : NULL;
        behind += row[i];
        before = in[i];
    }
    return sum;
}

static tir_expr_ref input_half(compiler *c, const winograd_ctx *v, int64_t r, int64_t first, double sign,
                               tir_expr_ref const *in)
{
    const double *row = v->form->bt[r];
    const int64_t n = v->form->side;
    return v->integers && has_differences(row, n, first) ? half_row_of_differences(c, row, n, first, sign, in)
                                                         : half_row(c, row, n, first, sign, in);
}

/* A row of B^T. Neighboring rows have equal even parts and odd parts that differ in sign: written this way, they share
 * both. */
static tir_expr_ref input_row(compiler *c, const winograd_ctx *v, int64_t r, tir_expr_ref const *in)
{
    const winograd_form *f = v->form;
    const double *row = f->bt[r];
    double sign = 1;
    tir_expr_ref even = input_half(c, v, r, 0, 1, in);
    for (int64_t i = 1; even && i < f->side; i += 2)
        sign = row[i] != 0 ? (row[i] < 0 ? -1 : 1) : sign;
    tir_expr_ref odd = input_half(c, v, r, 1, sign, in);
    if (even && odd)
        return add_term(c, even, sign, odd);
    return or_zero(c, even ? even : odd, in[0]->type.dt);
}

/* A row of A^T: columns 1 and 2, 3 and 4 hold equal or opposite coefficients, so rows share sums and differences. */
static tir_expr_ref output_row(compiler *c, const winograd_ctx *v, int64_t r, tir_expr_ref const *in)
{
    const winograd_form *f = v->form;
    double row[WINOGRAD_MAX_SIDE] = {0};
    for (int64_t k = 0; k < f->side; k++)
        row[k] = f->at[r][k] * (v->integers ? f->back[k] : 1);
    tir_expr_ref sum = add_term(c, NULL, row[0], in[0]);
    int64_t i = 1;
    for (; i + 1 < f->side; i += 2) {
        bool same = row[i] == row[i + 1];
        tir_expr_ref pair = same ? tir_add(c, in[i], in[i + 1]) : tir_sub(c, in[i], in[i + 1]);
        sum = row[i] != 0 || row[i + 1] != 0 ? add_term(c, sum, row[i], pair) : sum;
    }
    return or_zero(c, i < f->side ? add_term(c, sum, row[i], in[i]) : sum, in[0]->type.dt);
}

typedef tir_expr_ref (*row_fn)(compiler *c, const winograd_ctx *v, int64_t r, tir_expr_ref const *in);

/* Row `r` of a transform with n rows, r an index. */
static tir_expr_ref choose_row(te_graph *g, const winograd_ctx *v, row_fn row, int64_t n, tir_expr_ref r,
                               tir_expr_ref const *in)
{
    compiler *c = g->c;
    tir_expr_ref e = row(c, v, n - 1, in);
    for (int64_t i = n - 1; i-- > 0;)
        e = tir_select(c, tir_binary(c, TIR_EQ, r, te_i64(g, i)), row(c, v, i, in), e);
    return e;
}

/* --- weights --- */

/* Names for what the statements behind them share. */
typedef struct let_list {
    compiler *c;
    VEC(const tir_var *) vars;
    VEC(tir_expr_ref) values;
} let_list;

static tir_expr_ref named(let_list *l, const char *name, tir_expr_ref value)
{
    const tir_var *v = tir_new_var(l->c, name, value->type);
    vec_push(&l->c->mem, &l->vars, v);
    vec_push(&l->c->mem, &l->values, value);
    return tir_varref(l->c, v);
}

static tir_stmt *with_names(const let_list *l, tir_stmt *body)
{
    for (uint32_t i = l->vars.len; i-- > 0;)
        body = tir_let(l->c, l->vars.data[i], l->values.data[i], body);
    return body;
}

/* G of three values. The first and the last row have one coefficient; those between come in pairs that differ in the
 * sign of the middle one. */
static void weight_rows(let_list *l, const winograd_form *f, tir_expr_ref const *in, tir_expr_ref *out)
{
    compiler *c = l->c;
    int64_t last = f->side - 1;
    out[0] = term(c, f->g[0][0], in[0]);
    out[last] = term(c, f->g[last][2], in[2]);
    for (int64_t r = 1; r < last; r += 2) {
        const double *g = f->g[r];
        tir_expr_ref sides = named(l, "sides", tir_add(c, term(c, g[0], in[0]), term(c, g[2], in[2])));
        tir_expr_ref middle = named(l, "middle", term(c, g[1], in[1]));
        out[r] = tir_add(c, sides, middle);
        out[r + 1] = tir_sub(c, sides, middle);
    }
}

/* A lane behind the last channel. */
static tir_stmt *zero_lane(te_graph *g, const tir_buffer *to, tir_expr_ref block, tir_expr_ref lane)
{
    compiler *c = g->c;
    const tir_var *t = tir_new_var(c, "t", TIR_I64), *ic = tir_new_var(c, "ic", TIR_I64);
    tir_expr_ref at[4] = {tir_varref(c, t), block, tir_varref(c, ic), lane};
    tir_stmt *s = tir_store(c, to, 4, at, tir_const(c, DT_F32, 0));
    s = tir_for(c, ic, te_i64(g, 0), to->shape[2], FOR_SERIAL, s);
    return tir_for(c, t, te_i64(g, 0), to->shape[0], FOR_SERIAL, s);
}

/* One block of output channels: lane by lane, so that the innermost loop runs over many input channels. */
static tir_stmt *transform_weights(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const winograd_ctx *v = ctx;
    compiler *c = g->c;
    const winograd_form *f = v->form;
    const tir_var *ob = tir_new_var(c, "ob", TIR_I64), *l = tir_new_var(c, "l", TIR_I64),
                  *ic = tir_new_var(c, "ic", TIR_I64);
    tir_expr_ref block = tir_varref(c, ob), lane = tir_varref(c, l), i = tir_varref(c, ic),
                 o = tir_add(c, tir_mul(c, block, te_i64(g, v->block)), lane);
    tir_expr_ref by_rows[WINOGRAD_KERNEL][WINOGRAD_MAX_SIDE], row[WINOGRAD_MAX_SIDE];
    tir_stmt *stores[WINOGRAD_MAX_SIDE * WINOGRAD_MAX_SIDE];
    let_list names = {.c = c};
    for (int64_t x = 0; x < WINOGRAD_KERNEL; x++) {
        tir_expr_ref w[WINOGRAD_KERNEL];
        for (int64_t y = 0; y < WINOGRAD_KERNEL; y++) {
            tir_expr_ref at[4] = {o, i, te_i64(g, y), te_i64(g, x)};
            w[y] = named(&names, "w", tir_load(c, in[0], 4, at));
        }
        weight_rows(&names, f, w, by_rows[x]);
        for (int64_t y = 0; y < f->side; y++)
            by_rows[x][y] = named(&names, "t", by_rows[x][y]);
    }
    for (int64_t y = 0; y < f->side; y++) {
        weight_rows(&names, f, (tir_expr_ref[]){by_rows[0][y], by_rows[1][y], by_rows[2][y]}, row);
        for (int64_t x = 0; x < f->side; x++) {
            tir_expr_ref at[4] = {te_i64(g, y * f->side + x), block, i, lane};
            stores[y * f->side + x] = tir_store(c, out[0], 4, at, row[x]);
        }
    }
    tir_stmt *body = with_names(&names, tir_seq(c, (uint32_t)(f->side * f->side), stores));
    body = tir_for(c, ic, te_i64(g, 0), out[0]->shape[2], FOR_SERIAL, body);
    int64_t outs = 0;
    if (!tir_is_int(in[0]->shape[0], &outs) || outs % v->block != 0)
        body = tir_if(c, tir_binary(c, TIR_LT, o, in[0]->shape[0]), body, zero_lane(g, out[0], block, lane));
    body = tir_for(c, l, te_i64(g, 0), out[0]->shape[3], FOR_SERIAL, body);
    return tir_for(c, ob, te_i64(g, 0), out[0]->shape[1], FOR_SERIAL, body);
}

bool compute_winograd_weight_transform(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    winograd_ctx v = {.form = winograd_form_of(graph_attr_int(n, "tile_size")), .block = graph_attr_int(n, "block")};
    const type *t = te_out_type(n, 0);
    uint32_t rank = 4;
    tir_expr_ref const *dims = te_shape(g, t);
    te_extern(g, "winograd_weights", 1, in, 1, &t->dt, &rank, &dims, transform_weights, &v, out);
    return true;
}

/* --- input --- */

static tir_expr_ref pad_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const winograd_ctx *v = ctx;
    tir_expr_ref at[5], inside = NULL, block = te_i64(g, v->block);
    memcpy(at, idx, sizeof at);
    if (v->lanes != v->block) {
        at[1] = tir_add(g->c, tir_mul(g->c, idx[1], te_i64(g, v->lanes / v->block)), tir_floordiv(g->c, idx[4], block));
        at[4] = tir_floormod(g->c, idx[4], block);
    }
    for (uint32_t i = 0; i < 2; i++) {
        at[2 + i] = tir_sub(g->c, idx[2 + i], te_i64(g, v->win.pad_begin[i]));
        inside = tir_and(g->c, inside, te_in_bounds(g, at[2 + i], v->x->shape[2 + i]));
    }
    tir_expr_ref x = te_read(g, v->x, at);
    if (v->integers)
        x = tir_cast(g->c, DT_I16, x);
    return tir_select(g->c, inside, x, tir_const(g->c, x->type.dt, 0));
}

/* B^T d: [n, block, tile row, row, column of the strip, lane]. Neighboring tiles have columns in common. */
static tir_expr_ref rows_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const winograd_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref in[WINOGRAD_MAX_SIDE], tile = te_i64(g, v->form->tile);
    for (int64_t k = 0; k < v->form->side; k++) {
        tir_expr_ref y = tir_add(c, tir_mul(c, idx[2], tile), te_i64(g, k));
        in[k] = te_read(g, v->x, (tir_expr_ref[]){idx[0], idx[1], y, idx[4], idx[5]});
    }
    return choose_row(g, v, input_row, v->form->side, idx[3], in);
}

/* (B^T d) B: [n, position, tile row, block, tile column, lane] */
static tir_expr_ref input_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const winograd_ctx *v = ctx;
    tir_expr_ref in[WINOGRAD_MAX_SIDE], side = te_i64(g, v->form->side), row = tir_floordiv(g->c, idx[1], side);
    for (int64_t k = 0; k < v->form->side; k++) {
        tir_expr_ref x = tir_add(g->c, tir_mul(g->c, idx[4], te_i64(g, v->form->tile)), te_i64(g, k));
        in[k] = te_read(g, v->x, (tir_expr_ref[]){idx[0], idx[3], idx[2], row, x, idx[5]});
    }
    return choose_row(g, v, input_row, v->form->side, tir_floormod(g->c, idx[1], side), in);
}

/* --- products, output --- */

/* [n, position, block, tile row, tile column, lane] */
static tir_expr_ref product_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const winograd_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref ic = te_var(g, v->ic), lanes = te_i64(g, v->lanes);
    tir_expr_ref x = te_read(
        g, v->x,
        (tir_expr_ref[]){idx[0], idx[1], idx[3], tir_floordiv(c, ic, lanes), idx[4], tir_floormod(c, ic, lanes)});
    if (!v->integers)
        return tir_mul(c, x, te_read(g, v->w, (tir_expr_ref[]){idx[1], idx[2], ic, idx[5]}));
    tir_expr_ref two = te_i64(g, 2);
    tir_expr_ref w = te_read(
        g, v->w, (tir_expr_ref[]){idx[1], idx[2], tir_floordiv(c, ic, two), idx[5], tir_floormod(c, ic, two)});
    return tir_mul(c, tir_cast(c, DT_I32, x), tir_cast(c, DT_I32, w));
}

/* A^T m: [n, block, tile row, tile column, row, column, lane] */
static tir_expr_ref sums_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const winograd_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref in[WINOGRAD_MAX_SIDE];
    for (int64_t k = 0; k < v->form->side; k++) {
        tir_expr_ref position = tir_add(c, te_i64(g, k * v->form->side), idx[5]);
        in[k] = te_read(g, v->x, (tir_expr_ref[]){idx[0], position, idx[1], idx[2], idx[3], idx[6]});
    }
    return choose_row(g, v, output_row, v->form->tile, idx[4], in);
}

/* (A^T m) A */
static tir_expr_ref output_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const winograd_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref in[WINOGRAD_MAX_SIDE], tile = te_i64(g, v->form->tile);
    for (int64_t k = 0; k < v->form->side; k++)
        in[k] = te_read(g, v->x,
                        (tir_expr_ref[]){idx[0], idx[1], tir_floordiv(c, idx[2], tile), tir_floordiv(c, idx[3], tile),
                                         tir_floormod(c, idx[2], tile), te_i64(g, k), idx[4]});
    tir_expr_ref sum = choose_row(g, v, output_row, v->form->tile, tir_floormod(c, idx[3], tile), in);
    if (!v->integers)
        return sum;
    /* odd * 2^shift times the result */
    if (v->form->inverse != 1)
        sum = tir_mul(c, sum, tir_int(c, DT_I32, (int32_t)v->form->inverse));
    return tir_binary(c, TIR_SHR, sum, tir_int(c, DT_I32, v->form->shift));
}

/* Axes of the stages, in the order of their dimensions. */
static const char *const image_axes[] = {"n", "block", "y", "x", "lane"};
static const char *const line_axes[] = {"n", "block", "tile_row", "row", "col", "lane"};
static const char *const tile_axes[] = {"n", "block", "tile_row", "tile", "row", "col", "lane"};
static const char *const input_axes[] = {"n", "position", "tile_row", "block", "tile", "lane"};
static const char *const product_axes[] = {"n", "position", "block", "tile_row", "tile", "lane"};

/* A stage of the chain: it reads the one before, and sums over `reduce` when there is one. */
static void stage(te_graph *g, winograd_ctx *v, const char *name, uint32_t rank, const char *const *axis_names,
                  tir_expr_ref const *dims, te_axis *reduce, te_body_fn body)
{
    te_axis *axes[7], *own = arena_array(&g->c->mem, te_axis, rank);
    tir_expr_ref idx[7];
    for (uint32_t i = 0; i < rank; i++) {
        own[i] = (te_axis){tir_new_var(g->c, axis_names[i], TIR_I64), dims[i], AXIS_DATA};
        axes[i] = &own[i];
        idx[i] = te_var(g, axes[i]);
    }
    tir_expr_ref value = body(g, v, idx);
    dtype dt = value->type.dt;
    te_tensor *t = NULL;
    te_compute_n(g, name, rank, dims, axes, reduce ? 1 : 0, &reduce,
                 reduce ? te_simple_reducer(g->c, TE_SUM, dt) : NULL, NULL, 1, &dt, &value, &t);
    t->node->tag = name;
    v->x = t;
}

bool compute_conv2d_winograd(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    compiler *c = g->c;
    winograd_ctx v = {.form = winograd_form_of(graph_attr_int(n, "tile_size")), .x = in[0], .w = in[1]};
    tir_expr_ref const *y = te_shape(g, te_out_type(n, 0));
    v.integers = !dtype_is_float(in[0]->dt);
    if (!nn_window_read(c, n, 2, &v.win) || !tir_is_int(in[0]->shape[4], &v.block))
        return false;
    tir_expr_ref ins = v.integers ? tir_mul(c, in[1]->shape[2], te_i64(g, 2)) : in[1]->shape[2];
    int64_t side = v.form->side, tile = v.form->tile, blocks = 0;
    v.lanes = v.integers && tir_is_int(in[0]->shape[1], &blocks) && blocks % 2 == 0 ? 2 * v.block : v.block;
    tir_expr_ref th = te_ceildiv(g, y[2], tile), tw = te_ceildiv(g, y[3], tile), lanes = y[4],
                 in_lanes = v.lanes == v.block ? lanes : te_i64(g, v.lanes),
                 ib = te_ceildiv(g, in[0]->shape[1], v.lanes / v.block), edge = te_i64(g, side - tile),
                 step = te_i64(g, tile), s = te_i64(g, side);
    tir_expr_ref high = tir_add(c, tir_mul(c, th, step), edge), wide = tir_add(c, tir_mul(c, tw, step), edge);
    tir_expr_ref positions = te_i64(g, side * side);
    stage(g, &v, "winograd_tiles", 5, image_axes, (tir_expr_ref[]){y[0], ib, high, wide, in_lanes}, NULL, pad_body);
    stage(g, &v, "winograd_rows", 6, line_axes, (tir_expr_ref[]){y[0], ib, th, s, wide, in_lanes}, NULL, rows_body);
    stage(g, &v, "winograd_input", 6, input_axes, (tir_expr_ref[]){y[0], positions, th, ib, tw, in_lanes}, NULL,
          input_body);
    v.ic = te_reduce_axis(g, "ic", ins);
    stage(g, &v, "winograd_product", 6, product_axes, (tir_expr_ref[]){y[0], positions, y[1], th, tw, lanes}, v.ic,
          product_body);
    v.x->node->tag = n->op->name;
    int64_t products = te_most_count(g, v.x);
    stage(g, &v, "winograd_sums", 7, tile_axes, (tir_expr_ref[]){y[0], y[1], th, tw, step, s, lanes}, NULL, sums_body);
    stage(g, &v, "winograd", 5, image_axes, y, NULL, output_body);
    int64_t channels = 0;
    if (tir_is_int(ins, &channels))
        te_count_macs(g, 2, (int64_t[]){products, channels});
    out[0] = v.x;
    return true;
}
