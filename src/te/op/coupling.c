/* SPDX-License-Identifier: Apache-2.0 */
/* Probabilities of classes from those of each pair of them (Wu, Lin, Weng 2004): rounds that change one probability
 * after the other, until what is minimized is flat, or a hundred of them. */
#include "te/op/loops.h"

#include <math.h>

#define MOST_ROUNDS 100

typedef struct coupling {
    te_graph *g;
    compiler *c;
    const tir_buffer *pairs, *out; /* [rows, pairs]; the probabilities [rows, classes] */
    const tir_buffer *won;         /* [classes, classes]: of i against j */
    const tir_buffer *q, *product; /* the matrix, and it times the probabilities */
    const tir_buffer *value, *step, *done, *pair;
    int64_t classes;
    tir_expr_ref row;
} coupling;

static tir_expr_ref real(const coupling *v, double x)
{
    return tir_float(v->c, v->out->dt, x);
}

static tir_expr_ref at2(const coupling *v, const tir_buffer *b, tir_expr_ref i, tir_expr_ref j)
{
    const tir_expr_ref idx[2] = {i, j};
    return tir_load(v->c, b, 2, idx);
}

static tir_stmt *set2(const coupling *v, const tir_buffer *b, tir_expr_ref i, tir_expr_ref j, tir_expr_ref x)
{
    const tir_expr_ref idx[2] = {i, j};
    return tir_store(v->c, b, 2, idx, x);
}

static tir_expr_ref product_of(const coupling *v, tir_expr_ref i)
{
    return tir_load(v->c, v->product, 1, &i);
}

static tir_stmt *set_product(const coupling *v, tir_expr_ref i, tir_expr_ref x)
{
    return tir_store(v->c, v->product, 1, &i, x);
}

static tir_expr_ref probability(const coupling *v, tir_expr_ref i)
{
    return at2(v, v->out, v->row, i);
}

static tir_stmt *set_probability(const coupling *v, tir_expr_ref i, tir_expr_ref x)
{
    return set2(v, v->out, v->row, i, x);
}

static tir_stmt *each(const coupling *v, const tir_var *i, tir_stmt *body)
{
    return tir_for(v->c, i, te_i64(v->g, 0), te_i64(v->g, v->classes), FOR_SERIAL, body);
}

/* The pairs stand in order (0, 1), (0, 2), ..., (1, 2), ... */
static tir_stmt *read_pairs(const coupling *v)
{
    compiler *c = v->c;
    const tir_var *vars[2];
    tir_expr_ref i[2];
    loops_vars(c, "r", 2, vars, i);
    tir_expr_ref j = tir_add(c, tir_add(c, i[0], te_i64(v->g, 1)), i[1]);
    tir_expr_ref rest = tir_sub(c, te_i64(v->g, v->classes - 1), i[0]);
    tir_expr_ref r = at2(v, v->pairs, v->row, tir_cast(c, DT_I64, loops_get(c, v->pair)));
    tir_stmt *parts[3] = {set2(v, v->won, i[0], j, r), set2(v, v->won, j, i[0], tir_sub(c, real(v, 1), r)),
                          loops_set(c, v->pair, tir_add(c, loops_get(c, v->pair), tir_int(c, DT_I32, 1)))};
    tir_stmt *row = tir_for(c, vars[1], te_i64(v->g, 0), rest, FOR_SERIAL, tir_seq(c, 3, parts));
    tir_stmt *all[2] = {loops_set(c, v->pair, tir_int(c, DT_I32, 0)), each(v, vars[0], row)};
    return tir_seq(c, 2, all);
}

/* q[i][i] = sum of won[j][i]^2; q[i][j] = -won[j][i] * won[i][j]; all probabilities begin equal. */
static tir_stmt *begin(const coupling *v)
{
    compiler *c = v->c;
    const tir_var *vars[2];
    tir_expr_ref i[2];
    loops_vars(c, "b", 2, vars, i);
    tir_expr_ref lost = at2(v, v->won, i[1], i[0]), own = at2(v, v->q, i[0], i[0]);
    tir_stmt *pair[2] = {set2(v, v->q, i[0], i[0], tir_add(c, own, tir_mul(c, lost, lost))),
                         set2(v, v->q, i[0], i[1],
                              tir_sub(c, real(v, 0), tir_mul(c, lost, at2(v, v->won, i[0], i[1]))))};
    tir_stmt *others = tir_if(c, tir_binary(c, TIR_NE, i[0], i[1]), tir_seq(c, 2, pair), NULL);
    tir_stmt *parts[3] = {set2(v, v->q, i[0], i[0], real(v, 0)), each(v, vars[1], others),
                          set_probability(v, i[0], real(v, (double)(1.0f / (float)v->classes)))};
    return each(v, vars[0], tir_seq(c, 3, parts));
}

/* product = q * p; value = p * product; done unless one of product is far from it. NaN is not far, as in onnxruntime:
 * where pairs are NaN, all classes keep the equal probabilities that they begin with. */
static tir_stmt *measure(const coupling *v)
{
    compiler *c = v->c;
    const tir_var *vars[3];
    tir_expr_ref i[3];
    loops_vars(c, "m", 3, vars, i);
    tir_expr_ref sum = tir_add(c, product_of(v, i[0]), tir_mul(c, at2(v, v->q, i[0], i[1]), probability(v, i[1])));
    tir_expr_ref value = loops_get(c, v->value);
    tir_stmt *row[3] = {set_product(v, i[0], real(v, 0)), each(v, vars[1], set_product(v, i[0], sum)),
                        loops_set(c, v->value,
                                  tir_add(c, value, tir_mul(c, probability(v, i[0]), product_of(v, i[0]))))};
    tir_expr_ref off = tir_call1(c, TIR_FABS, tir_sub(c, product_of(v, i[2]), value));
    tir_expr_ref far = tir_binary(c, TIR_GE, off, real(v, (double)(0.005f / (float)v->classes)));
    tir_stmt *parts[4] = {loops_set(c, v->value, real(v, 0)), each(v, vars[0], tir_seq(c, 3, row)),
                          loops_set(c, v->done, tir_int(c, DT_I32, 1)),
                          each(v, vars[2], tir_if(c, far, loops_set(c, v->done, tir_int(c, DT_I32, 0)), NULL))};
    return tir_seq(c, 4, parts);
}

static tir_stmt *improve(const coupling *v)
{
    compiler *c = v->c;
    const tir_var *vars[2];
    tir_expr_ref i[2], value = loops_get(c, v->value), d = loops_get(c, v->step);
    loops_vars(c, "s", 2, vars, i);
    tir_expr_ref own = at2(v, v->q, i[0], i[0]), whole = tir_add(c, real(v, 1), d), p = product_of(v, i[0]);
    tir_expr_ref grown = tir_add(c, tir_mul(c, d, own), tir_mul(c, real(v, 2), p));
    tir_expr_ref next = tir_add(c, value, tir_mul(c, d, grown));
    tir_expr_ref other = tir_add(c, product_of(v, i[1]), tir_mul(c, d, at2(v, v->q, i[0], i[1])));
    tir_stmt *both[2] = {set_product(v, i[1], tir_binary(c, TIR_DIV, other, whole)),
                         set_probability(v, i[1], tir_binary(c, TIR_DIV, probability(v, i[1]), whole))};
    tir_stmt *parts[4] = {loops_set(c, v->step, tir_binary(c, TIR_DIV, tir_sub(c, value, p), own)),
                          set_probability(v, i[0], tir_add(c, probability(v, i[0]), d)),
                          loops_set(c, v->value, tir_binary(c, TIR_DIV, tir_binary(c, TIR_DIV, next, whole), whole)),
                          each(v, vars[1], tir_seq(c, 2, both))};
    return each(v, vars[0], tir_seq(c, 4, parts));
}

static tir_stmt *couple_row(const coupling *v)
{
    compiler *c = v->c;
    const tir_var *round = tir_new_var(c, "round", TIR_I64);
    tir_expr_ref going = tir_binary(c, TIR_EQ, loops_get(c, v->done), tir_int(c, DT_I32, 0));
    tir_stmt *rest[2] = {measure(v), tir_if(c, going, improve(v), NULL)};
    tir_stmt *rounds = tir_for(c, round, te_i64(v->g, 0), te_i64(v->g, MOST_ROUNDS), FOR_SERIAL,
                               tir_if(c, going, tir_seq(c, 2, rest), NULL));
    tir_stmt *parts[4] = {read_pairs(v), begin(v), loops_set(c, v->done, tir_int(c, DT_I32, 0)), rounds};
    return tir_seq(c, 4, parts);
}

static tir_stmt *build_coupling(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *l = ctx;
    compiler *c = g->c;
    const int64_t n = graph_attr_int(l->n, "classes"), square[2] = {n, n};
    const dtype dt = out[0]->dt;
    const tir_var *row = tir_new_var(c, "row", TIR_I64);
    const coupling v = {.g = g,
                        .c = c,
                        .pairs = in[0],
                        .out = out[0],
                        .won = tir_buffer_static(c, "won", dt, 2, square, SCOPE_LOCAL),
                        .q = tir_buffer_static(c, "q", dt, 2, square, SCOPE_LOCAL),
                        .product = tir_buffer_static(c, "product", dt, 1, &n, SCOPE_LOCAL),
                        .value = loops_number(c, "value", dt),
                        .step = loops_number(c, "step", dt),
                        .done = loops_number(c, "done", DT_I32),
                        .pair = loops_number(c, "pair", DT_I32),
                        .classes = n,
                        .row = tir_varref(c, row)};
    const tir_buffer *local[] = {v.won, v.q, v.product, v.value, v.step, v.done, v.pair};
    tir_stmt *body = couple_row(&v);
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        body = tir_allocate(c, local[i], body);
    return tir_for(c, row, te_i64(g, 0), out[0]->shape[0], FOR_SERIAL, body);
}

bool compute_pairwise_coupling(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return loops_extern(g, n, in, 1, build_coupling, &(loops_ctx){0}, out);
}
