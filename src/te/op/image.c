/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definition of decode_image: a call of the decoder, which is C (kernel/image/decode.h). */
#include "te/op/loops.h"

#include "abi/package.h"

static tir_expr_ref rounded_up(te_graph *g, tir_expr_ref side)
{
    int64_t v = 0;
    (void)tir_is_int(side, &v);
    return te_i64(g, (v + 15) / 16 * 16);
}

static tir_stmt *build_decode_image(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    compiler *c = g->c;
    tir_expr_ref const height = out[0]->shape[0], width = out[0]->shape[1];
    tir_expr_ref pixels = tir_mul(c, rounded_up(g, height), rounded_up(g, width));
    tir_expr_ref bytes = tir_add(c, tir_mul(c, te_i64(g, 4), pixels), height);
    const tir_buffer *work = te_scratch(g, "work", DT_U8, 1, &bytes), *status = loops_number(c, "status", DT_I32);
    (void)ctx;
    tir_expr_ref const args[6] = {tir_address(c, in[0], 0, NULL), in[0]->shape[0], tir_address(c, out[0], 0, NULL),
                                  height, width, tir_address(c, work, 0, NULL)};
    tir_expr_ref call = tir_extern(c, TIR_DECODE_IMAGE, tir_scalar(DT_I32), 6, args);
    tir_stmt *parts[2] = {loops_set(c, status, call),
                          tir_assert(c, tir_binary(c, TIR_EQ, loops_get(c, status), tir_const(c, DT_I32, 0)),
                                     PACKAGE_STATUS_SHAPE, "a picture of that size, of a known kind")};
    return tir_allocate(c, work, tir_allocate(c, status, tir_seq(c, 2, parts)));
}

bool compute_decode_image(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return loops_extern(g, n, in, 1, build_decode_image, &(loops_ctx){0}, out);
}
