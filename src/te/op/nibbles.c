/* SPDX-License-Identifier: Apache-2.0 */
/* Products by weights of 4 bits, eight in a word, which stay packed: a lane of words has eight numbers of a column and
 * is taken apart in registers. Of each block of numbers along K the sum of x * code is made first; it becomes
 * scale * (sum - zero * sum of x). With those sums of x (the last operand) x is divided by 16^(place of the number in
 * its half word) beforehand, exactly unless x is below 2^-114: then a number need not be shifted down, only masked. (An
 * infinite x gives NaN, since its sums are subtracted from each other.) Number k of eight has
 * the place k * 2 below 4, (k - 4) * 2 + 1 from there on, so that one mask gives four bytes that follow each other.
 * Data of 8 bits, with a scale for each block, is multiplied in integers, as the row dot_s8u4 of type/dot.h does. */
#include "graph/op/nn.h"
#include "te/op/util.h"

#include <string.h>

typedef struct nibbles {
    const te_tensor *x, *w, *scale, *zero, *sums, *x_scale, *part;
    int64_t block, lanes, fill; /* fill: the zero point where there is no operand */
    te_axis *k, *half, *place, *b;
    tir_expr_ref length;
    uint32_t rank;
} nibbles;

/* idx with another last index. */
static tir_expr_ref read_row(te_graph *g, const te_tensor *t, tir_expr_ref const *idx, tir_expr_ref last)
{
    tir_expr_ref at[TYPE_MAX_RANK];
    memcpy(at, idx, t->rank * sizeof *at);
    at[t->rank - 1] = last;
    return te_read(g, t, at);
}

static tir_expr_ref read_packed(te_graph *g, const nibbles *v, const te_tensor *t, tir_expr_ref column, tir_expr_ref at)
{
    tir_expr_ref lanes = te_i64(g, v->lanes);
    tir_expr_ref idx[3] = {tir_floordiv(g->c, column, lanes), at, tir_floormod(g->c, column, lanes)};
    return te_read(g, t, idx);
}

static tir_expr_ref i32_of(te_graph *g, tir_expr_ref index)
{
    return tir_cast(g->c, DT_I32, index);
}

static tir_expr_ref zero_of(te_graph *g, const nibbles *v, tir_expr_ref column, tir_expr_ref b)
{
    return v->zero ? tir_cast(g->c, DT_I32, read_packed(g, v, v->zero, column, b)) : tir_int(g->c, DT_I32, v->fill);
}

/* Index of x's number: 8 k + 4 (place % 2) + 2 half + place / 2 of its block. */
static tir_expr_ref number_at(te_graph *g, const nibbles *v, tir_expr_ref b)
{
    compiler *c = g->c;
    tir_expr_ref two = te_i64(g, 2), place = te_var(g, v->place);
    tir_expr_ref at = tir_mul(c, tir_floormod(c, place, two), te_i64(g, 4));
    at = tir_add(c, at, tir_add(c, tir_mul(c, te_var(g, v->half), two), tir_floordiv(c, place, two)));
    at = tir_add(c, tir_mul(c, te_var(g, v->k), te_i64(g, 8)), at);
    return tir_add(c, tir_mul(c, b, te_i64(g, v->block)), at);
}

/* idx: rows, column, block. */
static tir_expr_ref part_term(te_graph *g, const nibbles *v, tir_expr_ref const *idx)
{
    compiler *c = g->c;
    tir_expr_ref column = idx[v->rank - 1], b = idx[v->rank], four = te_i64(g, 4);
    tir_expr_ref word = tir_add(c, tir_mul(c, b, te_i64(g, v->block / 8)), te_var(g, v->k));
    tir_expr_ref up = i32_of(g, tir_mul(c, te_var(g, v->half), te_i64(g, 16)));
    tir_expr_ref low = i32_of(g, tir_mul(c, te_var(g, v->place), four)), mask = tir_int(c, DT_I32, 15);
    tir_expr_ref code = tir_binary(c, TIR_SHR, read_packed(g, v, v->w, column, word), up);
    if (v->sums) {
        code = tir_binary(c, TIR_BITAND, code, tir_binary(c, TIR_SHL, mask, low));
    } else {
        code = tir_binary(c, TIR_BITAND, tir_binary(c, TIR_SHR, code, low), mask);
        code = tir_sub(c, code, zero_of(g, v, column, b));
    }
    return tir_mul(c, read_row(g, v->x, idx, number_at(g, v, b)), tir_cast(c, DT_F32, code));
}

/* The same of data of 8 bits: number 8 k + 4 half + place by the code in bits 8 place + 4 half. */
static tir_expr_ref byte_term(te_graph *g, const nibbles *v, tir_expr_ref const *idx)
{
    compiler *c = g->c;
    tir_expr_ref b = idx[v->rank], half = te_var(g, v->half), place = te_var(g, v->place), four = te_i64(g, 4);
    tir_expr_ref word = tir_add(c, tir_mul(c, b, te_i64(g, v->block / 8)), te_var(g, v->k));
    tir_expr_ref at = tir_add(c, tir_add(c, tir_mul(c, te_var(g, v->k), te_i64(g, 8)), tir_mul(c, half, four)), place);
    at = tir_add(c, tir_mul(c, b, te_i64(g, v->block)), at);
    tir_expr_ref code = read_packed(g, v, v->w, idx[v->rank - 1], word);
    code = tir_binary(c, TIR_SHR, code, i32_of(g, tir_mul(c, half, four)));
    code = tir_binary(c, TIR_SHR, code, i32_of(g, tir_mul(c, place, te_i64(g, 8))));
    code = tir_binary(c, TIR_BITAND, code, tir_int(c, DT_I32, 15));
    return tir_mul(c, i32_of(g, read_row(g, v->x, idx, at)), code);
}

/* The stage of blocks: one axis more than the result, for the blocks. */
static const te_tensor *block_stage(te_graph *g, nibbles *v, tir_expr_ref const *dims)
{
    tir_expr_ref extents[TYPE_MAX_RANK + 1], idx[TYPE_MAX_RANK + 1];
    memcpy(extents, dims, v->rank * sizeof *extents);
    extents[v->rank] = v->scale->shape[1];
    te_axis *const *axes = te_data_axes(g, v->rank + 1, extents);
    for (uint32_t i = 0; i <= v->rank; i++)
        idx[i] = te_var(g, axes[i]);
    v->k = te_reduce_axis(g, "kw", te_i64(g, v->block / 8));
    v->half = te_reduce_axis(g, "kh", te_i64(g, 2));
    v->place = te_reduce_axis(g, "kn", te_i64(g, 4));
    te_axis *const reduce[3] = {v->k, v->half, v->place};
    const dtype dt = v->x_scale ? DT_I32 : DT_F32;
    tir_expr_ref value = v->x_scale ? byte_term(g, v, idx) : part_term(g, v, idx), where = NULL;
    int64_t length = 0;
    if (!tir_is_int(v->length, &length) || length % v->block != 0)
        where = tir_binary(g->c, TIR_LT, number_at(g, v, idx[v->rank]), v->length);
    te_tensor *y;
    te_compute_n(g, "block", v->rank + 1, extents, axes, 3, reduce, te_simple_reducer(g->c, TE_SUM, dt), where, 1, &dt,
                 &value, &y);
    y->node->tag = "nibbles";
    return y;
}

static tir_expr_ref sum_term(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const nibbles *v = ctx;
    compiler *c = g->c;
    tir_expr_ref at[TYPE_MAX_RANK + 1], b = te_var(g, v->b), column = idx[v->rank - 1];
    memcpy(at, idx, v->rank * sizeof *at);
    at[v->rank] = b;
    tir_expr_ref sum = tir_cast(c, DT_F32, te_read(g, v->part, at));
    if (v->sums) {
        tir_expr_ref zero = tir_cast(c, DT_F32, zero_of(g, v, column, b));
        sum = tir_sub(c, sum, tir_mul(c, zero, read_row(g, v->sums, idx, b)));
    }
    tir_expr_ref scale = read_packed(g, v, v->scale, column, b);
    return tir_mul(c, v->x_scale ? tir_mul(c, scale, read_row(g, v->x_scale, idx, b)) : scale, sum);
}

bool compute_matmul_nibbles(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    nibbles v = {.x = in[0], .w = in[1], .scale = in[2], .block = graph_attr_int(n, "block_size")};
    v.zero = n->n_inputs > 3 ? in[3] : NULL;
    v.sums = n->n_inputs > 4 ? in[4] : NULL;
    v.x_scale = n->n_inputs > 5 ? in[5] : NULL;
    v.fill = graph_attr_int(n, "zero");
    v.rank = in[0]->rank;
    v.length = in[0]->shape[v.rank - 1];
    (void)tir_is_int(in[1]->shape[2], &v.lanes); /* the type relation sees to it */
    tir_expr_ref const *dims = te_shape(g, te_out_type(n, 0));
    v.part = block_stage(g, &v, dims);
    v.b = te_reduce_axis(g, "kb", in[2]->shape[1]);
    out[0] = te_reduce(g, "matmul", DT_F32, v.rank, dims, 1, &v.b, TE_SUM, sum_term, &v);
    out[0]->node->tag = n->op->name;
    te_count_macs(g, 2, (int64_t[]){te_most_count(g, out[0]), te_most(g, v.length)});
    return true;
}

/* --- sums of blocks --- */

static tir_expr_ref block_sum_term(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const nibbles *v = ctx;
    const dtype dt = v->x->dt == DT_F32 ? DT_F32 : DT_I32;
    tir_expr_ref at = tir_add(g->c, tir_mul(g->c, idx[v->rank - 1], te_i64(g, v->block)), te_var(g, v->k));
    tir_expr_ref none = dt == DT_F32 ? tir_float(g->c, dt, 0) : tir_int(g->c, dt, 0);
    return tir_select(g->c, tir_binary(g->c, TIR_LT, at, v->length), tir_cast(g->c, dt, read_row(g, v->x, idx, at)),
                      none);
}

static tir_expr_ref as_float(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    return tir_cast(g->c, DT_F32, te_read(g, ctx, idx));
}

bool compute_block_sums(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    nibbles v = {.x = in[0], .rank = in[0]->rank, .block = graph_attr_int(n, "block_size")};
    v.length = in[0]->shape[v.rank - 1];
    v.k = te_reduce_axis(g, "k", te_i64(g, v.block));
    const bool in_floats = in[0]->dt == DT_F32;
    tir_expr_ref const *dims = te_shape(g, te_out_type(n, 0));
    te_tensor *sums = te_reduce(g, "block_sums", in_floats ? DT_F32 : DT_I32, v.rank, dims, 1, &v.k, TE_SUM,
                                block_sum_term, &v);
    sums->node->tag = n->op->name;
    out[0] = in_floats ? sums : te_compute(g, "as_float", DT_F32, v.rank, dims, as_float, sums);
    return true;
}
