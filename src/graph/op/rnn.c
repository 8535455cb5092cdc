/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of the recurrent operators RNN, GRU, LSTM (ONNX): X [T, B, I], W [D, G*H, I], R [D, G*H, H], or batch
 * first with layout 1. */
#include "graph/op.h"

#include <string.h>

bool infer_rnn(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *r = infer_in(n, 2);
    const char *dir = graph_attr_string(n, "direction");
    bool batch_first = graph_attr_int(n, "layout") != 0, both = strcmp(dir, "bidirectional") == 0;
    if (x->shape.rank != 3 || infer_in(n, 1)->shape.rank != 3 || r->shape.rank != 3)
        return infer_error(c, n, "X, W and R must have rank 3");
    if (!both && strcmp(dir, "forward") != 0 && strcmp(dir, "reverse") != 0)
        return infer_error(c, n, "unknown direction '%s'", dir);
    if (!dim_is(r->shape.dims[0], both ? 2 : 1))
        return infer_error(c, n, "R does not have %d direction(s)", both ? 2 : 1);
    dim t = x->shape.dims[batch_first ? 1 : 0], b = x->shape.dims[batch_first ? 0 : 1], h = r->shape.dims[2],
        d = dim_const(c, both ? 2 : 1);
    dim y[4] = {t, d, b, h}, y1[4] = {b, t, d, h}, s[3] = {d, b, h}, s1[3] = {b, d, h};
    out[0] = type_tensor(x->dt, shape_make(c, 4, batch_first ? y1 : y));
    for (uint32_t i = 1; i < n->n_outputs; i++)
        out[i] = type_tensor(x->dt, shape_make(c, 3, batch_first ? s1 : s));
    return true;
}
