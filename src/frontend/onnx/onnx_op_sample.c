/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of operators that read a picture between its pixels: RoiAlign, and DeformConv, which is a product of the
 * weights with what grid_sample finds at each tap. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

/* Up to version 15 regions lie on corners of pixels. */
bool onnx_op_roi_align(onnx_node *n)
{
    const graph_op *op = graph_find_op(n->c, "nn.roi_align");
    attr attrs[8];
    uint32_t count = onnx_row_attrs(n, n->row->attrs, op, attrs);
    if (n->version < 16)
        attrs[count++] = attr_string(n->c, "coordinate_transformation_mode", "output_half_pixel");
    onnx_result(n, 0, (onnx_args){op->name, n->n_in, n->in, count, attrs});
    return !n->failed;
}

typedef struct deform {
    onnx_node *n;
    int64_t batch, channels, in[2], out[2], kernel[2], stride[2], dilation[2], pad[2];
    int64_t group, offset_group, outputs, taps;
} deform;

static void read_pair(onnx_node *n, const char *name, int64_t dflt, int64_t *out)
{
    const int64_t *v;
    const uint32_t len = onnx_attr_ints(n, name, &v);
    for (uint32_t i = 0; i < 2; i++)
        out[i] = i < len ? v[i] : dflt;
}

static bool read_deform(deform *x)
{
    onnx_node *n = x->n;
    graph_value *d = onnx_in(n, 0), *w = onnx_in(n, 1), *o = onnx_in(n, 2);
    if (onnx_rank(d) != 4 || onnx_rank(w) != 4 || onnx_rank(o) != 4)
        return onnx_fail(n, DIAG_UNSUPPORTED, "only pictures of two dimensions are supported");
    read_pair(n, "strides", 1, x->stride);
    read_pair(n, "dilations", 1, x->dilation);
    read_pair(n, "pads", 0, x->pad);
    x->group = onnx_attr_int(n, "group", 1);
    x->offset_group = onnx_attr_int(n, "offset_group", 1);
    x->batch = onnx_static_dim(n, d, 0);
    x->channels = onnx_static_dim(n, d, 1);
    x->outputs = onnx_static_dim(n, w, 0);
    for (uint32_t i = 0; i < 2; i++) {
        x->in[i] = onnx_static_dim(n, d, 2 + i);
        x->out[i] = onnx_static_dim(n, o, 2 + i);
        x->kernel[i] = onnx_static_dim(n, w, 2 + i);
    }
    read_pair(n, "kernel_shape", 0, (int64_t[2]){0}); /* the weights say it */
    x->taps = x->kernel[0] * x->kernel[1];
    const int64_t groups = x->offset_group;
    if (n->failed || x->group < 1 || groups < 1 || x->channels % x->group != 0 || x->channels % groups != 0 ||
        x->outputs % x->group != 0 || onnx_static_dim(n, w, 1) != x->channels / x->group ||
        onnx_static_dim(n, o, 1) != 2 * groups * x->taps || onnx_static_dim(n, o, 0) != x->batch)
        return onnx_fail(n, DIAG_TYPE, "the extents of data, weights and offsets do not fit");
    return true;
}

/* f32[taps, rows, columns, 1]: where the taps are along an axis without offsets, as grid_sample counts: from -1 to 1
 * between the outer edges of the picture. */
static graph_value *base(const deform *x, uint32_t axis)
{
    onnx_node *n = x->n;
    const int64_t d[4] = {x->taps, x->out[0], x->out[1], 1};
    int64_t count = 0;
    float *v = tensor_count(4, d, &count) ? arena_try_alloc(&n->c->mem, (size_t)count * sizeof *v + 1, 64) : NULL;
    if (!v)
        return onnx_refuse(n, DIAG_ENVIRONMENT, "not enough memory");
    for (int64_t i = 0; i < count; i++) {
        const int64_t column = i % d[2], row = i / d[2] % d[1], tap = i / d[2] / d[1];
        const int64_t step = axis == 0 ? tap / x->kernel[1] : tap % x->kernel[1], cell = axis == 0 ? row : column;
        const int64_t pixel = cell * x->stride[axis] - x->pad[axis] + step * x->dilation[axis];
        v[i] = (float)((2.0 * (double)pixel + 1.0) / (double)x->in[axis] - 1.0);
    }
    return onnx_constant(n, tensor_dense(n->c, DT_F32, 4, d, v));
}

/* [batch * offset groups, taps * rows, columns, 2]: x before y. */
static graph_value *make_grid(const deform *x)
{
    onnx_node *n = x->n;
    const int64_t all = x->batch * x->offset_group, d[6] = {all, x->taps, 2, x->out[0], x->out[1], 1};
    const int64_t at[4] = {all, x->taps * x->out[0], x->out[1], 2}, row[5] = {all, x->taps, x->out[0], x->out[1], 1};
    graph_value *o = onnx_reshape_ints(n, onnx_cast(n, onnx_in(n, 2), DT_F32), 6, d), *parts[2];
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t axis = 1 - i;
        graph_value *by = onnx_const_float(n, DT_F32, 2.0 / (double)x->in[axis]);
        graph_value *one = onnx_reshape_ints(n, onnx_slice(n, o, 2, axis, axis + 1), 5, row);
        parts[i] = onnx_binary(n, "add", onnx_binary(n, "multiply", one, by), base(x, axis));
    }
    return onnx_reshape_ints(n, onnx_concat(n, 2, parts, 4), 4, at);
}

/* [batch, channels, taps, positions]: what lies at the taps. */
static graph_value *find_taps(const deform *x)
{
    onnx_node *n = x->n;
    const int64_t share = x->channels / x->offset_group, positions = x->out[0] * x->out[1];
    const int64_t image[4] = {x->batch * x->offset_group, share, x->in[0], x->in[1]};
    const int64_t cells[5] = {x->batch, x->offset_group, share, x->taps, positions};
    const int64_t factor[5] = {x->batch, x->offset_group, 1, x->taps, positions};
    attr a[3] = {attr_string(n->c, "mode", "linear"), attr_string(n->c, "padding_mode", "zeros"),
                 attr_int(n->c, "align_corners", 0)};
    graph_value *v = onnx_reshape_ints(n, onnx_in(n, 0), 4, image), *mask = onnx_optional(n, 4);
    v = onnx_reshape_ints(n, onnx_emit(n, ONNX_ARGS("grid_sample", 3, a, v, make_grid(x))), 5, cells);
    if (mask)
        v = onnx_binary(n, "multiply", v, onnx_reshape_ints(n, mask, 5, factor));
    return v;
}

bool onnx_op_deform_conv(onnx_node *n)
{
    deform x = {.n = n};
    if (!read_deform(&x))
        return false;
    const int64_t depth = x.channels / x.group * x.taps, positions = x.out[0] * x.out[1];
    const int64_t taps[4] = {x.batch, x.group, depth, positions};
    const int64_t weights[4] = {1, x.group, x.outputs / x.group, depth}, bias[4] = {1, x.outputs, 1, 1};
    const int64_t image[4] = {x.batch, x.outputs, x.out[0], x.out[1]};
    const dtype dt = onnx_dtype(onnx_in(n, 0));
    graph_value *v = onnx_reshape_ints(n, find_taps(&x), 4, taps), *b = onnx_optional(n, 3);
    graph_value *y = onnx_matmul(n, onnx_reshape_ints(n, onnx_in(n, 1), 4, weights), v, false, false, dt);
    y = onnx_reshape_ints(n, y, 4, image);
    if (b)
        y = onnx_binary(n, "add", y, onnx_reshape_ints(n, b, 4, bias));
    return onnx_alias(n, 0, y);
}
