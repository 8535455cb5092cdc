/* SPDX-License-Identifier: Apache-2.0 */
/* Linear algebra beyond products, as loop IR: determinants by elimination with partial pivoting, one matrix at a time
 * in a scratch copy. */
#include "te/op/util.h"

#include <string.h>

typedef struct elimination {
    compiler *c;
    const tir_buffer *a;             /* the matrix at hand, [m, m] */
    const tir_buffer *pivot;         /* its row, [1] i64 */
    const tir_buffer *swap, *result; /* [1] each */
    tir_expr_ref m, zero[1];
} elimination;

static tir_expr_ref element(const elimination *e, tir_expr_ref i, tir_expr_ref j)
{
    return tir_load(e->c, e->a, 2, (tir_expr_ref[]){i, j});
}

static tir_stmt *put(const elimination *e, tir_expr_ref i, tir_expr_ref j, tir_expr_ref value)
{
    return tir_store(e->c, e->a, 2, (tir_expr_ref[]){i, j}, value);
}

static tir_expr_ref pivot_row(const elimination *e)
{
    return tir_load(e->c, e->pivot, 1, e->zero);
}

static tir_stmt *loop(const elimination *e, const tir_var *v, tir_stmt *body)
{
    return tir_for(e->c, v, tir_i64(e->c, 0), e->m, FOR_SERIAL, body);
}

/* The row from k on with the largest element in column k. */
static tir_stmt *find_pivot(const elimination *e, tir_expr_ref k)
{
    compiler *c = e->c;
    const tir_var *r = tir_new_var(c, "r", TIR_I64);
    tir_expr_ref row = tir_varref(c, r);
    tir_expr_ref mine = tir_call1(c, TIR_FABS, element(e, row, k)),
                 best = tir_call1(c, TIR_FABS, element(e, pivot_row(e), k));
    tir_expr_ref better = tir_and(c, tir_binary(c, TIR_GT, row, k), tir_binary(c, TIR_GT, mine, best));
    tir_stmt *scan = loop(e, r, tir_if(c, better, tir_store(c, e->pivot, 1, e->zero, row), NULL));
    return tir_seq(c, 2, (tir_stmt *[]){tir_store(c, e->pivot, 1, e->zero, k), scan});
}

/* Rows k and pivot change places, which turns the sign. */
static tir_stmt *swap_rows(const elimination *e, tir_expr_ref k)
{
    compiler *c = e->c;
    const tir_var *j = tir_new_var(c, "j", TIR_I64);
    tir_expr_ref col = tir_varref(c, j), p = pivot_row(e);
    tir_stmt *swap[3] = {tir_store(c, e->swap, 1, e->zero, element(e, k, col)), put(e, k, col, element(e, p, col)),
                         put(e, p, col, tir_load(c, e->swap, 1, e->zero))};
    tir_expr_ref minus = tir_mul(c, tir_load(c, e->result, 1, e->zero), tir_const(c, e->a->dt, -1));
    tir_stmt *both[2] = {loop(e, j, tir_seq(c, 3, swap)), tir_store(c, e->result, 1, e->zero, minus)};
    return tir_if(c, tir_binary(c, TIR_NE, p, k), tir_seq(c, 2, both), NULL);
}

/* Row k times the right factor leaves every row below; a zero pivot has zeros below it already. */
static tir_stmt *eliminate(const elimination *e, tir_expr_ref k)
{
    compiler *c = e->c;
    const tir_var *r = tir_new_var(c, "r", TIR_I64), *j = tir_new_var(c, "j", TIR_I64);
    const tir_var *f = tir_new_var(c, "factor", tir_scalar(e->a->dt));
    tir_expr_ref row = tir_varref(c, r), col = tir_varref(c, j);
    tir_expr_ref rest = tir_sub(c, element(e, row, col), tir_mul(c, tir_varref(c, f), element(e, k, col)));
    tir_stmt *columns = loop(e, j, tir_if(c, tir_binary(c, TIR_GT, col, k), put(e, row, col, rest), NULL));
    tir_expr_ref factor = tir_binary(c, TIR_DIV, element(e, row, k), element(e, k, k));
    tir_stmt *rows = loop(e, r, tir_if(c, tir_binary(c, TIR_GT, row, k), tir_let(c, f, factor, columns), NULL));
    return tir_if(c, tir_binary(c, TIR_NE, element(e, k, k), tir_const(c, e->a->dt, 0)), rows, NULL);
}

/* One matrix, already in e->a: result = product of the pivots, with sign. */
static tir_stmt *determinant(const elimination *e)
{
    compiler *c = e->c;
    const tir_var *kv = tir_new_var(c, "k", TIR_I64);
    tir_expr_ref k = tir_varref(c, kv);
    tir_expr_ref product = tir_mul(c, tir_load(c, e->result, 1, e->zero), element(e, k, k));
    tir_stmt *step[4] = {find_pivot(e, k), swap_rows(e, k), tir_store(c, e->result, 1, e->zero, product),
                         eliminate(e, k)};
    tir_stmt *all[2] = {tir_store(c, e->result, 1, e->zero, tir_const(c, e->a->dt, 1)),
                        loop(e, kv, tir_seq(c, 4, step))};
    return tir_seq(c, 2, all);
}

static tir_stmt *build_det(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    (void)ctx;
    compiler *c = g->c;
    const tir_buffer *x = in[0], *y = out[0];
    uint32_t batch = y->rank;
    dtype dt = te_acc_dtype(x->dt);
    elimination e = {.c = c, .m = x->shape[batch], .zero = {tir_i64(c, 0)}};
    const int64_t one[1] = {1};
    e.a = te_scratch(g, "matrix", dt, 2, (tir_expr_ref[]){e.m, e.m});
    e.pivot = tir_buffer_static(c, "pivot", DT_I64, 1, one, SCOPE_LOCAL);
    e.swap = tir_buffer_static(c, "swap", dt, 1, one, SCOPE_LOCAL);
    e.result = tir_buffer_static(c, "result", dt, 1, one, SCOPE_LOCAL);
    const tir_var *vars[TYPE_MAX_RANK];
    tir_expr_ref idx[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++) {
        vars[i] = tir_new_var(c, arena_printf(&c->mem, "i%u", i), TIR_I64);
        idx[i] = tir_varref(c, vars[i]);
    }
    tir_stmt *copy = put(&e, idx[batch], idx[batch + 1], tir_cast(c, dt, tir_load(c, x, x->rank, idx)));
    copy = loop(&e, vars[batch], loop(&e, vars[batch + 1], copy));
    tir_stmt *write = tir_store(c, y, batch, idx, tir_cast(c, y->dt, tir_load(c, e.result, 1, e.zero)));
    tir_stmt *body = tir_seq(c, 3, (tir_stmt *[]){copy, determinant(&e), write});
    for (uint32_t i = batch; i-- > 0;)
        body = tir_for(c, vars[i], tir_i64(c, 0), y->shape[i], FOR_SERIAL, body);
    const tir_buffer *scratch[4] = {e.result, e.swap, e.pivot, e.a};
    for (uint32_t i = 0; i < 4; i++)
        body = tir_allocate(c, scratch[i], body);
    return body;
}

bool compute_det(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const type *t = te_out_type(n, 0);
    const uint32_t rank = (uint32_t)t->shape.rank;
    tir_expr_ref const *const dims = te_shape(g, t);
    te_extern(g, n->op->name, 1, in, 1, &t->dt, &rank, &dims, build_det, NULL, out);
    return true;
}
