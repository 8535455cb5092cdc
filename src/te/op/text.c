/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of read_numbers and write_numbers: calls of C (kernel/text/number.h). */
#include "te/op/loops.h"

#include "abi/package.h"

enum { SIGNED, UNSIGNED, FLOATS, FIXED }; /* as there */

/* function(from, count, bytes of a text, kind, to) */
static tir_expr_ref call_for(compiler *c, const char *function, int floats, const tir_buffer *from,
                             const tir_buffer *to)
{
    const tir_buffer *text = from->dt == DT_U8 ? from : to, *numbers = from->dt == DT_U8 ? to : from;
    const dtype dt = numbers->dt;
    tir_expr_ref count = tir_i64(c, 1);
    for (uint32_t i = 0; i < numbers->rank; i++)
        count = tir_mul(c, count, numbers->shape[i]);
    tir_expr_ref const args[5] = {tir_address(c, from, 0, NULL), count, text->shape[text->rank - 1],
                                  tir_const(c, DT_I32, dt == DT_I64 ? SIGNED : dt == DT_U64 ? UNSIGNED : floats),
                                  tir_address(c, to, 0, NULL)};
    return tir_extern(c, function, tir_scalar(DT_I32), 5, args);
}

static tir_stmt *build_read(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    compiler *c = g->c;
    const tir_buffer *status = loops_number(c, "status", DT_I32);
    (void)ctx;
    tir_stmt *parts[2] = {loops_set(c, status, call_for(c, TIR_READ_NUMBERS, FLOATS, in[0], out[0])),
                          tir_assert(c, tir_binary(c, TIR_EQ, loops_get(c, status), tir_const(c, DT_I32, 0)),
                                     PACKAGE_STATUS_SHAPE, "text that begins with a number")};
    return tir_allocate(c, status, tir_seq(c, 2, parts));
}

static tir_stmt *build_write(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *x = ctx;
    const int floats = graph_attr_int(x->n, "fixed") ? FIXED : FLOATS;
    return tir_evaluate(g->c, call_for(g->c, TIR_WRITE_NUMBERS, floats, in[0], out[0]));
}

bool compute_read_numbers(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return loops_extern(g, n, in, 1, build_read, &(loops_ctx){0}, out);
}

bool compute_write_numbers(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return loops_extern(g, n, in, 1, build_write, &(loops_ctx){.n = n}, out);
}
