/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of the recurrent operators RNN, GRU, LSTM (ONNX): X [T, B, I], W [D, G*H, I], R [D, G*H, H], or batch
 * first with layout 1. */
#include "graph/op.h"

#include <string.h>

/* Operand i, when given, has these extents. */
static bool operand_is(compiler *c, const graph_node *n, uint32_t i, const dim *want)
{
    const type *t = infer_in(n, i);
    if (!t)
        return true;
    const char *name = operand_of(n->op, i)->name;
    bool ok = true;
    for (int32_t k = 0; ok && k < t->shape.rank; k++)
        ok = infer_extents(c, t->shape.dims[k], EXTENTS_EQUAL, want[k], name);
    return ok || infer_error(c, n, "operand %u, %s, does not have the extents that x and r ask for", i, name);
}

/* W, R, bias, lengths, first states, peepholes. */
static bool operands_fit(compiler *c, const graph_node *n, dim d, dim b, dim h, bool batch_first)
{
    const type *x = infer_in(n, 0);
    int64_t gates = strcmp(n->op->name, "lstm") == 0 ? 4 : strcmp(n->op->name, "gru") == 0 ? 3 : 1;
    dim gh = dim_mul(c, dim_const(c, gates), h), state[3] = {batch_first ? b : d, batch_first ? d : b, h};
    return operand_is(c, n, 1, (dim[]){d, gh, x->shape.dims[2]}) && operand_is(c, n, 2, (dim[]){d, gh, h}) &&
           operand_is(c, n, 3, (dim[]){d, dim_mul(c, dim_const(c, 2), gh)}) && operand_is(c, n, 4, &b) &&
           operand_is(c, n, 5, state) && operand_is(c, n, 6, state) &&
           operand_is(c, n, 7, (dim[]){d, dim_mul(c, dim_const(c, 3), h)});
}

static bool read_direction(compiler *c, const graph_node *n, dim of_r, bool *out_both)
{
    const char *dir = graph_attr_string(n, "direction");
    *out_both = strcmp(dir, "bidirectional") == 0;
    if (!*out_both && strcmp(dir, "forward") != 0 && strcmp(dir, "reverse") != 0)
        return infer_error(c, n, "unknown direction '%s'", dir);
    return dim_is(of_r, *out_both ? 2 : 1) || infer_error(c, n, "R does not have %d direction(s)", *out_both ? 2 : 1);
}

/* y, and the last states. */
static void set_results(compiler *c, const graph_node *n, dim t, dim d, dim b, dim h, type *out)
{
    const bool batch_first = graph_attr_int(n, "layout") != 0;
    const dtype dt = infer_in(n, 0)->dt;
    dim y[4] = {t, d, b, h}, y1[4] = {b, t, d, h}, s[3] = {d, b, h}, s1[3] = {b, d, h};
    out[0] = type_tensor(dt, shape_make(c, 4, batch_first ? y1 : y));
    for (uint32_t i = 1; i < n->n_outputs; i++)
        out[i] = type_tensor(dt, shape_make(c, 3, batch_first ? s1 : s));
}

bool infer_rnn(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *r = infer_in(n, 2);
    bool batch_first = graph_attr_int(n, "layout") != 0, both;
    if (!read_direction(c, n, r->shape.dims[0], &both))
        return false;
    dim t = x->shape.dims[batch_first ? 1 : 0], b = x->shape.dims[batch_first ? 0 : 1], h = r->shape.dims[2],
        d = dim_const(c, both ? 2 : 1);
    if (!operands_fit(c, n, d, b, h, batch_first))
        return false;
    set_results(c, n, t, d, b, h, out);
    return true;
}

/* Blocks of R that hold so many gates of h. */
static int64_t blocks(int64_t gates, int64_t h, int64_t block)
{
    return (gates * h + block - 1) / block;
}

static bool lies_in(int64_t x, int64_t least, int64_t most)
{
    return least <= x && x <= most;
}

/* R in blocks, [D, blocks, H, block]; a GRU's third gate has blocks of its own. */
static bool r_is_in_blocks(const graph_node *n, bool gru, int64_t gates, int64_t dims[TYPE_MAX_RANK])
{
    const int64_t lanes = graph_attr_int(n, "lanes"), block = graph_attr_int(n, "block");
    if (!lies_in(lanes, 1, 64) || !lies_in(block, lanes, 4096) || block % lanes != 0)
        return false;
    if (!shape_get(infer_in(n, 1)->shape, dims) || dims[3] != block || !lies_in(dims[2], 1, INT32_MAX))
        return false;
    return dims[1] == (gru ? blocks(2, dims[2], block) + blocks(1, dims[2], block) : blocks(gates, dims[2], block));
}

/* Sums of the input, bias, lengths, first states, peepholes. */
static bool steps_operands_fit(compiler *c, const graph_node *n, dim d, dim b, dim h, int64_t gates)
{
    const type *x = infer_in(n, 0);
    const bool batch_first = graph_attr_int(n, "layout") != 0;
    dim gh = dim_mul(c, dim_const(c, gates), h), state[3] = {batch_first ? b : d, batch_first ? d : b, h};
    return operand_is(c, n, 0, (dim[]){x->shape.dims[0], x->shape.dims[1], dim_mul(c, d, gh)}) &&
           operand_is(c, n, 2, (dim[]){d, h}) && operand_is(c, n, 3, &b) && operand_is(c, n, 4, state) &&
           operand_is(c, n, 5, state) && operand_is(c, n, 6, (dim[]){d, dim_mul(c, dim_const(c, 3), h)});
}

bool infer_rnn_steps(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *r = infer_in(n, 1);
    const bool gru = strcmp(n->op->name, "gru_steps") == 0, batch_first = graph_attr_int(n, "layout") != 0;
    const int64_t gates = gru ? 3 : strcmp(n->op->name, "lstm_steps") == 0 ? 4 : 1, rows = graph_attr_int(n, "rows");
    int64_t dims[TYPE_MAX_RANK], samples = 0;
    bool both;
    if (!read_direction(c, n, r->shape.dims[0], &both))
        return false;
    dim t = x->shape.dims[batch_first ? 1 : 0], b = x->shape.dims[batch_first ? 0 : 1], d = dim_const(c, both ? 2 : 1);
    if (!r_is_in_blocks(n, gru, gates, dims) || !lies_in(rows, 1, 64))
        return infer_error(c, n, "r does not have the blocks that its attributes ask for");
    if (rows > 1 && (!dim_is_const(b, &samples) || samples % rows != 0))
        return infer_error(c, n, "samples do not come in groups of %lld", (long long)rows);
    dim h = dim_const(c, dims[2]);
    if (!steps_operands_fit(c, n, d, b, h, gates))
        return false;
    set_results(c, n, t, d, b, h, out);
    return true;
}
