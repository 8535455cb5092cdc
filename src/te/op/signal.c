/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of operators on signals in whole numbers. The arithmetic is that of TensorFlow Lite Micro's audio
 * front ends. */
#include "te/op/loops.h"

/* --- filter_bank --- */

/* The least of 0 or more that all allow. */
static tir_expr_ref least(compiler *c, tir_expr_ref a, tir_expr_ref b)
{
    return tir_max(c, tir_min(c, a, b), tir_i64(c, 0));
}

static tir_expr_ref number_at(compiler *c, const tir_buffer *b, tir_expr_ref i)
{
    return tir_cast(c, DT_I64, tir_load(c, b, 1, &i));
}

static tir_expr_ref product(compiler *c, const tir_buffer *weights, tir_expr_ref at, tir_expr_ref x)
{
    return tir_mul(c, tir_cast(c, DT_U64, number_at(c, weights, at)), x);
}

/* Band i reads `widths[i]` numbers; what stands outside of the data or the weights does not count. Its sum by weights
 * is that of channel i - 1, to which that of the band before by unweights belongs. */
static tir_stmt *build_filter_bank(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    compiler *c = g->c;
    const tir_buffer *carried = loops_number(c, "carried", DT_U64), *sum = loops_number(c, "sum", DT_U64);
    const tir_var *var[2], *let[3];
    tir_expr_ref i[2], of[3], zero = tir_i64(c, 0), one = tir_i64(c, 1);
    (void)ctx;
    loops_vars(c, "band", 2, var, i);
    for (uint32_t k = 0; k < 3; k++) {
        let[k] = tir_new_var(c, (const char *const[]){"start", "weight_start", "width"}[k], TIR_I64);
        of[k] = tir_varref(c, let[k]);
    }
    tir_expr_ref from = tir_add(c, of[0], i[1]), at = tir_add(c, of[1], i[1]);
    tir_expr_ref x = tir_cast(c, DT_U64, tir_load(c, in[0], 1, &from));
    tir_stmt *each[2] = {loops_set(c, sum, tir_add(c, loops_get(c, sum), product(c, in[1], at, x))),
                         loops_set(c, carried, tir_add(c, loops_get(c, carried), product(c, in[2], at, x)))};
    tir_expr_ref channel = tir_sub(c, i[0], one);
    tir_stmt *put = tir_store(c, out[0], 1, &channel, loops_get(c, sum));
    tir_stmt *band[4] = {loops_set(c, sum, loops_get(c, carried)), loops_set(c, carried, tir_int(c, DT_U64, 0)),
                         tir_for(c, var[1], zero, of[2], FOR_SERIAL, tir_seq(c, 2, each)),
                         tir_if(c, tir_binary(c, TIR_GT, i[0], zero), put, NULL)};
    tir_expr_ref room = tir_min(c, tir_sub(c, in[0]->shape[0], of[0]), tir_sub(c, in[1]->shape[0], of[1]));
    tir_stmt *body = tir_let(c, let[2], least(c, number_at(c, in[5], i[0]), room), tir_seq(c, 4, band));
    body = tir_let(c, let[1], least(c, number_at(c, in[4], i[0]), in[1]->shape[0]), body);
    body = tir_let(c, let[0], least(c, number_at(c, in[3], i[0]), in[0]->shape[0]), body);
    tir_stmt *all[2] = {loops_set(c, carried, tir_int(c, DT_U64, 0)),
                        tir_for(c, var[0], zero, in[3]->shape[0], FOR_SERIAL, body)};
    return tir_allocate(c, carried, tir_allocate(c, sum, tir_seq(c, 2, all)));
}

bool compute_filter_bank(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return loops_extern(g, n, in, 6, build_filter_bank, &(loops_ctx){0}, out);
}

/* --- rounded_root --- */

/* A digit of two bits in each round: is what is left as much as twice the root so far, and a one, at this place? */
static tir_stmt *root_step(compiler *c, const tir_buffer *rest, const tir_buffer *root, tir_expr_ref bit)
{
    tir_expr_ref half = tir_binary(c, TIR_SHR, loops_get(c, root), tir_int(c, DT_U64, 1));
    const tir_var *var = tir_new_var(c, "trial", tir_scalar(DT_U64));
    tir_expr_ref trial = tir_varref(c, var);
    tir_stmt *taken[2] = {loops_set(c, rest, tir_sub(c, loops_get(c, rest), trial)),
                          loops_set(c, root, tir_add(c, half, bit))};
    tir_stmt *choice = tir_if(c, tir_binary(c, TIR_GE, loops_get(c, rest), trial), tir_seq(c, 2, taken),
                              loops_set(c, root, half));
    return tir_let(c, var, tir_add(c, loops_get(c, root), bit), choice);
}

/* Numbers below 2^32 take half as many rounds, and their roots are 65535 at most. */
static tir_stmt *build_rounded_root(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    compiler *c = g->c;
    const tir_buffer *rest = loops_number(c, "rest", DT_U64), *root = loops_number(c, "root", DT_U64);
    const tir_var *vars[TYPE_MAX_RANK], *var = tir_new_var(c, "round", TIR_I64);
    const tir_var *let = tir_new_var(c, "rounds", TIR_I64);
    tir_expr_ref idx[TYPE_MAX_RANK], rounds = tir_varref(c, let), zero = tir_int(c, DT_U64, 0);
    (void)ctx;
    loops_vars(c, "i", in[0]->rank, vars, idx);
    tir_expr_ref x = tir_load(c, in[0], in[0]->rank, idx);
    tir_expr_ref high = tir_binary(c, TIR_SHR, x, tir_int(c, DT_U64, 32)), small = tir_binary(c, TIR_EQ, high, zero);
    tir_expr_ref place = tir_sub(c, tir_sub(c, rounds, tir_i64(c, 1)), tir_varref(c, var));
    place = tir_cast(c, DT_U64, tir_mul(c, place, tir_i64(c, 2)));
    tir_expr_ref bit = tir_binary(c, TIR_SHL, tir_int(c, DT_U64, 1), place);
    tir_expr_ref most = tir_select(c, small, tir_int(c, DT_U64, UINT16_MAX), tir_int(c, DT_U64, UINT32_MAX));
    tir_expr_ref above = tir_and(c, tir_binary(c, TIR_GT, loops_get(c, rest), loops_get(c, root)),
                                 tir_binary(c, TIR_LT, loops_get(c, root), most));
    tir_expr_ref y = tir_add(c, loops_get(c, root), tir_cast(c, DT_U64, above));
    tir_stmt *parts[4] = {loops_set(c, rest, x), loops_set(c, root, zero),
                          tir_for(c, var, tir_i64(c, 0), rounds, FOR_SERIAL, root_step(c, rest, root, bit)),
                          tir_store(c, out[0], in[0]->rank, idx, tir_cast(c, DT_U32, y))};
    tir_stmt *body = tir_let(c, let, tir_select(c, small, tir_i64(c, 16), tir_i64(c, 32)), tir_seq(c, 4, parts));
    return tir_allocate(c, rest, tir_allocate(c, root, loops_nest(c, in[0]->rank, vars, in[0]->shape, body)));
}

bool compute_rounded_root(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return loops_extern(g, n, in, 1, build_rounded_root, &(loops_ctx){0}, out);
}
