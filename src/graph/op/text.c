/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations between numbers and their text. */
#include "graph/op.h"

enum { MOST_WIDTH = 64 };

static bool is_number(dtype dt)
{
    return dt == DT_I64 || dt == DT_U64 || dt == DT_F64;
}

bool infer_read_numbers(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    const dtype dt = graph_attr_dtype(n, "dtype");
    const int32_t last = x->shape.rank - 1;
    int64_t width = 0;
    if (!is_number(dt))
        return infer_error(c, n, "text becomes i64, u64 or f64, not %s", dtype_name(dt));
    if (!dim_is_const(x->shape.dims[last], &width) || width < 1)
        return infer_error(c, n, "the number of bytes of a text must be known, and not 0");
    out[0] = type_tensor(dt, shape_make(c, (uint32_t)last, x->shape.dims));
    return true;
}

bool infer_write_numbers(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    const int64_t width = graph_attr_int(n, "width");
    dim d[TYPE_MAX_RANK];
    if (!is_number(x->dt))
        return infer_error(c, n, "i64, u64 or f64 becomes text, not %s", dtype_name(x->dt));
    if (width < 1 || width > MOST_WIDTH || x->shape.rank == TYPE_MAX_RANK)
        return infer_error(c, n, "a text has 1 to %d bytes, along one dimension more", MOST_WIDTH);
    for (int32_t i = 0; i < x->shape.rank; i++)
        d[i] = x->shape.dims[i];
    d[x->shape.rank] = dim_const(c, width);
    out[0] = type_tensor(DT_U8, shape_make(c, (uint32_t)x->shape.rank + 1, d));
    return true;
}
