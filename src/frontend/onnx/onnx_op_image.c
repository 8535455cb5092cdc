/* SPDX-License-Identifier: Apache-2.0 */
/* Importer of ImageDecoder: decode_image gives red, green and blue, from which other orders and gray are made. A
 * picture of another size than the model declares, or of a kind that the decoder does not know, ends the run with a
 * status. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

#define LEAST_BYTES 12 /* of a file */

/* Pillow's, with 16 bits behind the point. */
static graph_value *gray(onnx_node *n, graph_value *rgb)
{
    static const int32_t parts[3] = {19595, 38470, 7471};
    const int64_t three = 3, last = -1;
    graph_value *weights = onnx_constant(n, tensor_dense(n->c, DT_I32, 1, &three, parts));
    graph_value *y = onnx_binary(n, "multiply", onnx_cast(n, rgb, DT_I32), weights);
    y = onnx_binary(n, "add", onnx_reduce(n, "sum", y, 1, &last, true), onnx_const_int(n, DT_I32, 1 << 15));
    return onnx_cast(n, onnx_binary(n, "right_shift", y, onnx_const_int(n, DT_I32, 16)), DT_U8);
}

static graph_value *turned(onnx_node *n, graph_value *rgb)
{
    const int64_t back[3] = {2, 1, 0};
    const attr axis = attr_int(n->c, "axis", 2);
    return onnx_emit(n, ONNX_ARGS("take", 1, &axis, rgb, onnx_const_ints(n, 3, back)));
}

bool onnx_op_image_decoder(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0);
    const char *pixels = onnx_attr_string(n, "pixel_format", "RGB");
    const bool is_gray = strcmp(pixels, "Grayscale") == 0, is_bgr = strcmp(pixels, "BGR") == 0;
    const type *t = onnx_declared(n, 0);
    int64_t d[TYPE_MAX_RANK] = {0};
    if (onnx_rank(x) != 1 || onnx_dtype(x) != DT_U8)
        return onnx_fail(n, DIAG_TYPE, "the file must be a vector of bytes");
    const int64_t len = onnx_static_dim(n, x, 0);
    if (n->failed || len < LEAST_BYTES)
        return !n->failed && onnx_fail(n, DIAG_TYPE, "%lld bytes are no file of a picture", (long long)len);
    if (!is_gray && !is_bgr && strcmp(pixels, "RGB") != 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "pixel_format '%.40s' is not known", pixels);
    if (!t || t->shape.rank != 3 || !shape_get(t->shape, d) || d[2] != (is_gray ? 1 : 3))
        return onnx_fail(n, DIAG_UNSUPPORTED, "the result must be declared with its size and %s",
                         is_gray ? "one color" : "three colors");
    attr at[2] = {attr_int(n->c, "height", d[0]), attr_int(n->c, "width", d[1])};
    graph_value *rgb = onnx_emit(n, ONNX_ARGS("decode_image", 2, at, x));
    return onnx_alias(n, 0, is_gray ? gray(n, rgb) : is_bgr ? turned(n, rgb) : rgb);
}
