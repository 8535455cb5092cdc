/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of quantisation. */
#include "graph/op/nn.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Scale and zero point: one number, one for each entry of the axis, or one for each block of it. */
static bool parameters_fit(compiler *c, const graph_node *n)
{
    shape x = infer_in(n, 0)->shape;
    int64_t block = graph_attr_int(n, "block_size"), a = 0;
    int32_t axis = 0;
    for (uint32_t i = 1; i < n->n_inputs && i < 3; i++) {
        const type *t = infer_in(n, i);
        if (!t || t->shape.rank == 0 || (t->shape.rank == 1 && block == 0 && dim_is(t->shape.dims[0], 1)))
            continue;
        bool blocked = t->shape.rank > 1 || block != 0;
        if (!infer_axis(c, n, graph_attr_int(n, "axis"), x.rank, &axis))
            return false;
        if (block < 0 || t->shape.rank != (blocked ? x.rank : 1) || infer_in(n, 1)->shape.rank != t->shape.rank)
            return infer_error(c, n, "operand %u has rank %d for data of rank %d", i, t->shape.rank, x.rank);
        for (int32_t k = 0; k < t->shape.rank; k++) {
            const int32_t at = blocked ? k : axis;
            const dim want = at == axis && block > 0 ? dim_ceildiv(c, x.dims[at], dim_const(c, block)) : x.dims[at];
            (void)dim_is_const(t->shape.dims[k], &a);
            if (!infer_extents(c, t->shape.dims[k], EXTENTS_EQUAL, want, "numbers and their scales"))
                return infer_error(c, n, "operand %u has extent %lld on axis %d, which does not fit", i, (long long)a,
                                   k);
        }
    }
    return true;
}

/* The result's element type: out_dtype, else that of zero point `zp`, else u8 (ONNX QuantizeLinear). */
static bool quantized_dtype(compiler *c, const graph_node *n, const type *zp, dtype *out)
{
    dtype dt = graph_attr_dtype(n, "out_dtype");
    if (zp && dt != DT_NONE && zp->dt != dt)
        return infer_error(c, n, "out_dtype %s differs from the zero point's %s", dtype_name(dt), dtype_name(zp->dt));
    *out = dt != DT_NONE ? dt : zp ? zp->dt : DT_U8;
    return true;
}

static bool rounding_fits(compiler *c, const graph_node *n)
{
    static const char *const methods[] = {"float", "integer", "tflite", "fast"};
    const char *r = graph_attr(n, "rounding") ? graph_attr_string(n, "rounding") : "nearest_even", *m = "float";
    const bool away = strcmp(n->op->name, "qnn.quantize") == 0 && strcmp(r, "half_away") == 0;
    if (strcmp(r, "nearest_even") != 0 && strcmp(r, "half_up") != 0 && !away)
        return infer_error(c, n, "rounding \"%s\" is neither \"nearest_even\" nor \"half_up\"", r);
    if (graph_attr(n, "method"))
        m = graph_attr_string(n, "method");
    const bool two = strcmp(n->op->name, "qnn.requantize") == 0 || strcmp(n->op->name, "qnn.softmax") == 0;
    const uint32_t count = two ? 2 : 4; /* qnn.requantize becomes qnn.rescale for the others */
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(m, methods[i]) == 0)
            return true;
    return infer_error(c, n, "unknown rounding method \"%s\"; known are \"float\", \"integer\"%s", m,
                       count > 2 ? ", \"tflite\" and \"fast\" do" : " do");
}

bool infer_quantize(compiler *c, const graph_node *n, type *out)
{
    dtype dt = DT_NONE;
    if (!rounding_fits(c, n) || !quantized_dtype(c, n, infer_in(n, 2), &dt))
        return false;
    out[0] = type_tensor(dt, infer_in(n, 0)->shape);
    return parameters_fit(c, n);
}

/* Output type: out_dtype, else the scale's (ONNX DequantizeLinear). */
bool infer_dequantize(compiler *c, const graph_node *n, type *out)
{
    dtype dt = graph_attr_dtype(n, "out_dtype");
    out[0] = type_tensor(dt == DT_NONE ? infer_in(n, 1)->dt : dt, infer_in(n, 0)->shape);
    return parameters_fit(c, n);
}

/* Half up there are shifts alone: scales that are known are powers of two. */
static bool scales_fit(compiler *c, const graph_node *n, uint32_t count, const uint32_t *operands)
{
    if (!rounding_fits(c, n))
        return false;
    if (strcmp(graph_attr_string(n, "rounding"), "half_up") != 0)
        return true;
    for (uint32_t i = 0; i < count; i++) {
        const tensor_data *t = graph_constant(n->inputs[operands[i]]);
        for (int64_t k = 0; t && k < t->count; k++) {
            int exponent;
            double s = tensor_get_f64(t, k);
            if (!(s > 0) || frexp(s, &exponent) != 0.5 || s < 0x1p-126)
                return infer_error(c, n, "operand %u has the scale %g, which is not a power of two; half_up needs one",
                                   operands[i], s);
        }
    }
    return true;
}

/* Types of 8 or 16 bits: what is in between lies in i32 or f32, exactly. */
static bool is_narrow(compiler *c, const graph_node *n, dtype dt)
{
    return (dtype_is_int(dt) && (dtype_bits(dt) == 8 || dtype_bits(dt) == 16)) ||
           infer_error(c, n, "the result is %s; an integer of 8 or 16 bits is needed", dtype_name(dt));
}

bool infer_requantize(compiler *c, const graph_node *n, type *out)
{
    shape x = infer_in(n, 0)->shape, s = infer_in(n, 1)->shape, both;
    int32_t axis = 0;
    dtype dt = DT_NONE, from = infer_in(n, 0)->dt, by = infer_in(n, 1)->dt;
    if (!quantized_dtype(c, n, infer_in(n, 3), &dt) || !is_narrow(c, n, dt) ||
        !scales_fit(c, n, 2, (const uint32_t[]){1, 2}))
        return false;
    if ((by != DT_F32 && by != DT_F64) || (from != DT_I32 && (from != DT_I64 || by != DT_F64)))
        return infer_error(c, n, "sums of %s have no scale of %s: i32 by f32, i32 or i64 by f64", dtype_name(from),
                           dtype_name(by));
    if (s.rank > 1 && (!shape_broadcast(c, x, s, &both) || !shape_equal(both, x)))
        return infer_no_broadcast_to(c, n, infer_in(n, 1), infer_in(n, 0));
    if (s.rank == 1 && shape_count(s) != 1) {
        if (!infer_axis(c, n, graph_attr_int(n, "axis"), x.rank, &axis))
            return false;
        if (!dim_equal(s.dims[0], x.dims[axis]))
            return infer_error(c, n, "x_scale is neither one number nor one for each index of axis %d", axis);
    }
    if (infer_in(n, 4) && (by != DT_F64 || !shape_equal(infer_in(n, 4)->shape, s)))
        return infer_error(c, n, "there must be one quotient in f64 for each x_scale in f64");
    out[0] = type_tensor(dt, x);
    return true;
}

void graph_fixed_scale(double real, int32_t *multiplier, int32_t *shift)
{
    int exponent = 0;
    double m = round(frexp(real, &exponent) * 2147483648.0); /* halves away from 0 */
    if (m == 2147483648.0) {
        m /= 2;
        exponent++;
    }
    bool none = !(real > 0) || isinf(real) || exponent < -31;
    *multiplier = none ? 0 : (int32_t)m;
    *shift = none ? 0 : exponent > 30 ? 30 : exponent;
}

bool infer_rescale(compiler *c, const graph_node *n, type *out)
{
    shape x = infer_in(n, 0)->shape;
    dtype dt = DT_NONE;
    if (!quantized_dtype(c, n, infer_in(n, 3), &dt) || (dt != DT_I32 && !is_narrow(c, n, dt)))
        return false;
    if (infer_in(n, 0)->dt != DT_I32 && infer_in(n, 0)->dt != DT_I64)
        return infer_error(c, n, "sums are i32 or i64, not %s", dtype_name(infer_in(n, 0)->dt));
    for (uint32_t i = 1; i < 3; i++) {
        shape s = infer_in(n, i)->shape, both;
        int32_t axis = 0;
        if (shape_count(s) == 1)
            continue;
        if (s.rank > 1 && (!shape_broadcast(c, x, s, &both) || !shape_equal(both, x)))
            return infer_no_broadcast_to(c, n, infer_in(n, i), infer_in(n, 0));
        if (s.rank > 1)
            continue;
        if (!infer_axis(c, n, graph_attr_int(n, "axis"), x.rank, &axis))
            return false;
        if (!dim_equal(s.dims[0], x.dims[axis]))
            return infer_error(c, n, "operand %u is neither one number nor one for each index of axis %d", i, axis);
    }
    out[0] = type_tensor(dt, x);
    return true;
}

static bool infer_pair(compiler *c, const graph_node *n, type *out)
{
    const type *a = infer_in(n, 0), *b = infer_in(n, 2);
    shape s;
    const bool even = !graph_attr(n, "rounding") || strcmp(graph_attr_string(n, "rounding"), "half_up") != 0;
    if (dtype_bits(a->dt) != 8 && (dtype_bits(a->dt) != 16 || !even))
        return infer_error(c, n, "data is %s; 8 bits are needed%s", dtype_name(a->dt),
                           even ? ", or 16" : " where halves are rounded up");
    if (!shape_broadcast(c, a->shape, b->shape, &s))
        return infer_no_broadcast(c, n, a, b);
    infer_leads_to(c, a->shape, s);
    infer_leads_to(c, b->shape, s);
    out[0] = type_tensor(a->dt, s);
    return true;
}

#define MOST_APART   21 /* 255 << 21 and the half that rounds are below 2^30 each */
#define MOST_POOLED ((int64_t)1 << 22)

bool nn_scales_are_near(double a, double b)
{
    return abs(ilogb(a) - ilogb(b)) <= MOST_APART;
}

static int64_t most_pooled(dtype dt)
{
    return dtype_bits(dt) == 16 ? INT16_MAX : MOST_POOLED;
}

bool nn_sum_fits(dtype dt, uint32_t n, const int64_t *extents)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < n; i++)
        if (!i64_mul(count, extents[i], &count) || count > most_pooled(dt))
            return false;
    return true;
}

bool infer_qnn_add(compiler *c, const graph_node *n, type *out)
{
    if (!infer_pair(c, n, out) || !scales_fit(c, n, 3, (const uint32_t[]){1, 3, 4}))
        return false;
    const tensor_data *a = graph_constant(n->inputs[1]), *b = graph_constant(n->inputs[3]);
    if (strcmp(graph_attr_string(n, "rounding"), "half_up") == 0 && a && b && a->count > 0 && b->count > 0 &&
        !nn_scales_are_near(tensor_get_f64(a, 0), tensor_get_f64(b, 0)))
        return infer_error(c, n, "the scales %g and %g are too far apart: half_up allows at most 2^%d",
                           tensor_get_f64(a, 0), tensor_get_f64(b, 0), MOST_APART);
    return true;
}

static bool is_i32(int64_t v)
{
    return v >= INT32_MIN && v <= INT32_MAX;
}

bool infer_qnn_sum_word(compiler *c, const graph_node *n, type *out)
{
    const type *a = infer_in(n, 0), *b = infer_in(n, 1);
    const int64_t wide = dtype_bits(a->dt) == 8 ? dtype_max_int(a->dt) + 1 : 0, right = graph_attr_int(n, "right");
    const int64_t of_a = graph_attr_int(n, "a_factor"), of_b = graph_attr_int(n, "b_factor"),
                  offset = graph_attr_int(n, "offset");
    shape s;
    if (wide == 0)
        return infer_error(c, n, "data is %s; 8 bits are needed", dtype_name(a->dt));
    if (!shape_broadcast(c, a->shape, b->shape, &s))
        return infer_no_broadcast(c, n, a, b);
    infer_leads_to(c, a->shape, s);
    infer_leads_to(c, b->shape, s);
    if (right < 0 || right > 31 || !is_i32(of_a) || !is_i32(of_b) || !is_i32(offset) ||
        wide * (llabs(of_a) + llabs(of_b)) + llabs(offset) > INT32_MAX)
        return infer_error(c, n, "its sums have more than 32 bits, or no such shift");
    out[0] = type_tensor(a->dt, s);
    return true;
}

bool infer_qnn_mul(compiler *c, const graph_node *n, type *out)
{
    return infer_pair(c, n, out) && rounding_fits(c, n);
}

static bool infer_byte_softmax(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    if (dtype_bits(x->dt) != 8)
        return infer_error(c, n, "data is %s; 8 bits are needed", dtype_name(x->dt));
    if (!rounding_fits(c, n))
        return false;
    int32_t axis;
    out[0] = *x;
    return infer_axis(c, n, graph_attr_int(n, "axis"), x->shape.rank, &axis);
}

bool infer_qnn_softmax(compiler *c, const graph_node *n, type *out)
{
    if (!dim_is(infer_in(n, 1)->shape.dims[0], 256))
        return infer_error(c, n, "the table has not 256 entries");
    return infer_byte_softmax(c, n, out);
}

bool infer_qnn_softmax_fixed(compiler *c, const graph_node *n, type *out)
{
    const dtype dt = graph_attr_dtype(n, "out_dtype");
    const dim d = infer_in(n, 1)->shape.dims[0];
    int64_t entries;
    if (!dim_is_const(d, &entries) || entries < 1 || entries > 256)
        return infer_error(c, n, "the table has not 1 to 256 entries");
    if (!infer_byte_softmax(c, n, out))
        return false;
    out[0].dt = dt == DT_NONE ? out[0].dt : dt;
    return is_narrow(c, n, out[0].dt);
}

const tensor_data *graph_softmax_table(compiler *c, float scale, int64_t extent)
{
    const int64_t count = 256;
    float *t = arena_array(&c->mem, float, (size_t)count);
    const float most = FLT_MAX / (float)(extent > 0 ? extent : 1);
    const double room = (double)(float)log((double)most) - 5; /* onnxruntime takes the logarithm in f32 */
    const double up = (room > 0 ? room : 0) / (double)scale;
    for (int64_t i = 0; i < count; i++)
        t[i] = ldexpf((float)exp(((double)(i - 255) + up) * (double)scale), -64);
    return tensor_dense(c, DT_F32, 1, &count, t);
}

bool infer_qnn_table(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    if (dtype_bits(x->dt) != 8)
        return infer_error(c, n, "data is %s; 8 bits are needed", dtype_name(x->dt));
    if (!dim_is(infer_in(n, 1)->shape.dims[0], 256))
        return infer_error(c, n, "the table has not 256 entries");
    out[0] = type_tensor(infer_in(n, 1)->dt, x->shape);
    return true;
}

static bool too_many(compiler *c, const graph_node *n)
{
    return infer_error(c, n, "the sum of so many elements does not fit into 32 bits: at most %lld of them",
                       (long long)most_pooled(infer_in(n, 0)->dt));
}

/* Numbers of 8 bits, or of 16, whose ties go to even numbers. */
static bool is_pooled(compiler *c, const graph_node *n)
{
    dtype dt = infer_in(n, 0)->dt;
    return dtype_bits(dt) == 8 ||
           (dtype_bits(dt) == 16 && strcmp(graph_attr_string(n, "rounding"), "half_up") != 0) ||
           infer_error(c, n, "data is %s; 8 bits are needed, or 16 with halves to the nearest even", dtype_name(dt));
}

bool infer_qnn_pool(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    if (!is_pooled(c, n))
        return false;
    const int64_t *window = NULL;
    uint32_t rank = graph_attr_ints(n, "pool_size", &window);
    if (!scales_fit(c, n, 2, (const uint32_t[]){1, 2}) || !infer_pool(c, n, out))
        return false;
    return nn_sum_fits(x->dt, rank, window) || too_many(c, n);
}

bool infer_qnn_global_pool(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    dim d[TYPE_MAX_RANK];
    int64_t extents[NN_MAX_SPATIAL];
    if (!is_pooled(c, n))
        return false;
    if (!nn_check_data_layout(c, n, "data_layout"))
        return false;
    const int64_t block = nn_data_block(n, "data_layout");
    const int32_t spatial = x->shape.rank - (block ? 3 : 2);
    if (block && !dim_is(x->shape.dims[x->shape.rank - 1], block))
        return infer_error(c, n, "data has no blocks of %lld channels", (long long)block);
    if (spatial < 1 || spatial > (int32_t)NN_MAX_SPATIAL)
        return infer_error(c, n, "data of rank %d; at most %u are supported", x->shape.rank, 2 + NN_MAX_SPATIAL);
    for (int32_t i = 0; i < x->shape.rank; i++) {
        bool pooled = i >= 2 && i < 2 + spatial;
        d[i] = pooled ? dim_const(c, 1) : x->shape.dims[i];
        if (pooled && (!dim_is_const(x->shape.dims[i], &extents[i - 2]) || extents[i - 2] < 1))
            return infer_error(c, n, "spatial extents must be constants above 0; fix them with --shape or --dim");
    }
    if (!nn_sum_fits(x->dt, (uint32_t)spatial, extents))
        return too_many(c, n);
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)x->shape.rank, d));
    return scales_fit(c, n, 2, (const uint32_t[]){1, 2});
}
