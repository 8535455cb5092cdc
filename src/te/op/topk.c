/* SPDX-License-Identifier: Apache-2.0 */
/* TopK as loop IR. A heap holds the best elements so far, with the one that goes first on top, and is sorted in the
 * end. Its places lie where the indices of the result will lie, so nothing else needs memory.
 *
 * Where an element has at most 32 bits, a place holds a key and not a number of an element: the element as an integer
 * that is ordered as the rule for NaN wants it, and below it the number of the element, counted down. One comparison
 * of integers then decides, ties included, and no element is read again. Other elements are compared where they
 * stand. */
#include "te/op/heap.h"

#include <string.h>

#define KEY_BITS 32                           /* of the element, and of its number */
#define MOST_KEYS ((int64_t)1 << KEY_BITS)    /* elements of a row that have different numbers */
#define NAN_ORDER ((int64_t)0x7f800001)       /* above the bits of infinity */

typedef struct topk_row {
    const tir_buffer *x;
    tir_expr_ref const *idx; /* of the row; its axis is the heap's */
    bool largest;
    const tir_buffer *limit; /* local variable: the element on top of the full heap */
} topk_row;

static tir_expr_ref row_element(const loops_heap *h, tir_expr_ref i)
{
    const topk_row *v = h->ctx;
    tir_expr_ref at[TYPE_MAX_RANK];
    memcpy(at, v->idx, v->x->rank * sizeof *at);
    at[h->axis] = i;
    return tir_load(h->g->c, v->x, v->x->rank, at);
}

/* --- keys --- */

static bool has_keys(const tir_buffer *x, uint32_t axis)
{
    int64_t extent = 0;
    return x->dt != DT_F64 && dtype_bytes(x->dt) * 8 <= KEY_BITS && tir_is_int(x->shape[axis], &extent) &&
           extent <= MOST_KEYS;
}

/* A float as an integer of the same order, without a branch: both zeros are 0, and NaN is above all numbers. */
static tir_expr_ref float_order(te_graph *g, tir_expr_ref x)
{
    compiler *c = g->c;
    x = tir_cast(c, DT_F32, x);
    tir_expr_ref bits = tir_call1(c, TIR_TO_BITS, x), low = tir_int(c, DT_U32, 0x7fffffff);
    tir_expr_ref sign = tir_cast(c, DT_I64, tir_binary(c, TIR_SHR, bits, tir_int(c, DT_U32, 31)));
    tir_expr_ref flip = tir_sub(c, te_i64(g, 0), sign);
    tir_expr_ref size = tir_cast(c, DT_I64, tir_binary(c, TIR_BITAND, bits, low));
    tir_expr_ref order = tir_sub(c, tir_binary(c, TIR_BITXOR, size, flip), flip);
    return tir_select(c, tir_binary(c, TIR_NE, x, x), te_i64(g, NAN_ORDER), order);
}

/* Keys of better elements are larger. */
static tir_expr_ref key_of(const loops_heap *h, tir_expr_ref i)
{
    compiler *c = h->g->c;
    const topk_row *v = h->ctx;
    tir_expr_ref x = row_element(h, i);
    tir_expr_ref order = dtype_is_float(v->x->dt) ? float_order(h->g, x) : tir_cast(c, DT_I64, x);
    if (v->x->dt == DT_U32) /* into the range of 32 bits with a sign */
        order = tir_sub(c, order, tir_i64(c, (int64_t)1 << (KEY_BITS - 1)));
    if (!v->largest)
        order = tir_sub(c, tir_i64(c, -1), order);
    tir_expr_ref number = tir_sub(c, tir_i64(c, MOST_KEYS - 1), i);
    return tir_add(c, tir_mul(c, order, tir_i64(c, MOST_KEYS)), number);
}

static tir_stmt *compare_keys(const loops_heap *h, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = h->g->c;
    return loops_set(c, h->behind, tir_select(c, tir_binary(c, TIR_LT, a, b), tir_i64(c, 1), tir_i64(c, 0)));
}

/* --- elements that are compared where they stand --- */

/* NaN is above all numbers: among the largest it is first, among the smallest last. */
static tir_expr_ref stands_before(const loops_heap *h, tir_expr_ref x, tir_expr_ref y)
{
    const topk_row *v = h->ctx;
    return v->largest ? te_beats(h->g->c, TIR_GT, x, y) : te_beats(h->g->c, TIR_GT, y, x);
}

static tir_stmt *compare_elements(const loops_heap *h, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = h->g->c;
    tir_expr_ref x = row_element(h, a), y = row_element(h, b);
    tir_expr_ref tie = tir_and(c, te_ties(c, x, y), tir_binary(c, TIR_GT, a, b));
    tir_expr_ref behind = tir_binary(c, TIR_OR, stands_before(h, y, x), tie);
    return loops_set(c, h->behind, tir_select(c, behind, tir_i64(c, 1), tir_i64(c, 0)));
}

/* --- both --- */

/* What the heap holds for element i, and the number of the element at place t of the heap. */
static tir_expr_ref place_of(const loops_heap *h, tir_expr_ref i)
{
    return h->compare == compare_keys ? key_of(h, i) : i;
}

static tir_expr_ref number_at(const loops_heap *h, tir_expr_ref t)
{
    compiler *c = h->g->c;
    tir_expr_ref most = tir_i64(c, MOST_KEYS - 1), place = loops_heap_get(h, t);
    return h->compare == compare_keys ? tir_sub(c, most, tir_binary(c, TIR_BITAND, place, most)) : place;
}

/* The elements behind those that the full heap began with. One that equals the limit has a later place, and stays
 * out. */
static tir_stmt *look_at_rest(const loops_heap *h, tir_expr_ref count)
{
    compiler *c = h->g->c;
    const topk_row *v = h->ctx;
    const tir_var *var = tir_new_var(c, "s", TIR_I64);
    tir_expr_ref zero = tir_i64(c, 0), next = tir_add(c, count, tir_varref(c, var));
    tir_expr_ref better = stands_before(h, row_element(h, next), loops_get(c, v->limit));
    tir_stmt *limit = loops_set(c, v->limit, row_element(h, number_at(h, zero)));
    tir_stmt *replace[2] = {loops_heap_replace(h, count, place_of(h, next)), limit};
    tir_stmt *look = tir_for(c, var, zero, tir_sub(c, v->x->shape[h->axis], count), FOR_SERIAL,
                             tir_if(c, better, tir_seq(c, 2, replace), NULL));
    tir_stmt *parts[2] = {limit, look};
    return tir_if(c, tir_binary(c, TIR_GT, count, zero), tir_seq(c, 2, parts), NULL);
}

/* Place t of the sorted heap as results. */
static tir_stmt *put(const loops_heap *h, const tir_buffer *values, tir_expr_ref t)
{
    compiler *c = h->g->c;
    tir_expr_ref to[TYPE_MAX_RANK];
    memcpy(to, h->idx, values->rank * sizeof *to);
    to[h->axis] = t;
    tir_stmt *parts[2] = {loops_heap_set(h, t, number_at(h, t)),
                          tir_store(c, values, values->rank, to, row_element(h, loops_heap_get(h, t)))};
    return h->compare == compare_keys ? tir_seq(c, 2, parts) : parts[1];
}

static tir_stmt *topk_of_row(const loops_heap *h, const tir_buffer *values)
{
    compiler *c = h->g->c;
    const topk_row *v = h->ctx;
    const tir_var *vars[2];
    tir_expr_ref i[2], zero = tir_i64(c, 0), count = values->shape[h->axis];
    loops_vars(c, "t", 2, vars, i);
    tir_stmt *parts[5] = {tir_for(c, vars[0], zero, count, FOR_SERIAL, loops_heap_set(h, i[0], place_of(h, i[0]))),
                          loops_heap_make(h, count), look_at_rest(h, count), loops_heap_sort(h, count),
                          tir_for(c, vars[1], zero, count, FOR_SERIAL, put(h, values, i[1]))};
    return loops_heap_end(h, tir_allocate(c, v->limit, tir_seq(c, 5, parts)));
}

static tir_stmt *build_topk(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *v = ctx;
    compiler *c = g->c;
    uint32_t rank = in[0]->rank, a = (uint32_t)v->axis;
    const tir_var *vars[TYPE_MAX_RANK];
    tir_expr_ref idx[TYPE_MAX_RANK];
    loops_vars(c, "i", rank, vars, idx);
    topk_row row = {.x = in[0], .idx = idx, .largest = graph_attr_int(v->n, "largest") != 0,
                    .limit = loops_number(c, "limit", in[0]->dt)};
    loops_heap h = {.g = g, .places = out[1], .idx = idx, .axis = a, .most = te_most(g, out[0]->shape[a]),
                    .compare = has_keys(in[0], a) ? compare_keys : compare_elements, .ctx = &row};
    loops_heap_begin(&h);
    tir_stmt *body = topk_of_row(&h, out[0]);
    for (uint32_t i = rank; i-- > 0;)
        if (i != a)
            body = tir_for(c, vars[i], tir_i64(c, 0), in[0]->shape[i], FOR_SERIAL, body);
    return body;
}

static tir_expr_ref topk_extent(te_graph *g, void *ctx, uint32_t result, uint32_t axis)
{
    const loops_ctx *v = ctx;
    (void)result;
    (void)axis;
    return te_operand(g, v->n, v->in, 1, 0);
}

bool extents_topk(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    loops_ctx v = {.n = n, .in = in};
    return te_own_extents(g, n, topk_extent, &v, out);
}

bool compute_topk(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    loops_ctx v = {0};
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &v.axis))
        return false;
    tir_expr_ref taken = te_dim(g, te_out_type(n, 0)->shape.dims[v.axis]);
    tir_expr_ref there = tir_binary(g->c, TIR_LE, taken, in[0]->shape[v.axis]);
    te_check_shape(g, n, tir_and(g->c, there, tir_binary(g->c, TIR_EQ, te_operand(g, n, in, 1, 0), taken)), "k");
    return loops_extern(g, n, in, 1, build_topk, &v, out);
}
