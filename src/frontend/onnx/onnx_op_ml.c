/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of ai.onnx.ml, but for trees and support vectors: linear models, scalers, encoders, ZipMap; and what all of
 * them share (onnx_ml.h). */
#include "frontend/onnx/onnx_ml.h"

#include <math.h>
#include <string.h>

/* --- lists --- */

ml_floats ml_attr_floats(onnx_node *n, const char *name)
{
    attr a;
    if (!onnx_attr_convert(n, name, name, ATTR_FLOATS, &a))
        return (ml_floats){0};
    return (ml_floats){a.n, a.u.floats};
}

ml_ints ml_attr_ints(onnx_node *n, const char *name)
{
    ml_ints l = {0};
    l.n = onnx_attr_ints(n, name, &l.v);
    return l;
}

ml_strings ml_attr_strings(onnx_node *n, const char *name)
{
    attr a;
    if (!onnx_attr_convert(n, name, name, ATTR_STRINGS, &a))
        return (ml_strings){0};
    return (ml_strings){a.n, a.u.strings};
}

graph_value *ml_matrix(onnx_node *n, dtype dt, uint32_t rank, const int64_t *dims, const double *v)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        count *= dims[i];
    const size_t size = dt == DT_F64 ? sizeof(double) : sizeof(float);
    uint8_t *bytes = arena_array(&n->c->mem, uint8_t, (size_t)count * size + 1u);
    for (int64_t i = 0; i < count; i++) {
        const float single = (float)v[i];
        memcpy(bytes + (size_t)i * size, dt == DT_F64 ? (const void *)&v[i] : (const void *)&single, size);
    }
    return onnx_constant(n, tensor_dense(n->c, dt, rank, dims, bytes));
}

graph_value *ml_vector(onnx_node *n, dtype dt, uint32_t count, const double *v)
{
    return ml_matrix(n, dt, 1, (int64_t[]){count}, v);
}

/* --- rows and columns --- */

graph_value *ml_rows(onnx_node *n, graph_value *x, dtype dt, int64_t *width)
{
    if (onnx_rank(x) == 1)
        x = onnx_expand_dims(n, x, 1, (int64_t[]){0});
    if (!n->failed && onnx_rank(x) != 2)
        onnx_fail(n, DIAG_TYPE, "input 0 must be rows of features, or one row; it has %u dimensions", onnx_rank(x));
    *width = onnx_static_dim(n, x, 1);
    return onnx_cast(n, x, dt);
}

graph_value *ml_argmax(onnx_node *n, graph_value *scores)
{
    attr a[2] = {attr_int(n->c, "axis", 1), attr_int(n->c, "keepdims", 0)};
    return onnx_emit(n, ONNX_ARGS("argmax", 2, a, scores));
}

graph_value *ml_column(onnx_node *n, graph_value *x, int64_t k)
{
    return onnx_slice(n, x, 1, k, k + 1);
}

static graph_value *times(onnx_node *n, graph_value *x, double by)
{
    return onnx_binary(n, "multiply", x, onnx_const_like(n, x, by));
}

static graph_value *plus(onnx_node *n, graph_value *x, double v)
{
    return onnx_binary(n, "add", x, onnx_const_like(n, x, v));
}

/* --- what is done with scores --- */

ml_post ml_attr_post(onnx_node *n)
{
    static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    const char *s = onnx_attr_string(n, "post_transform", "NONE");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(s, names[i]) == 0)
            return (ml_post)i;
    onnx_fail(n, DIAG_FORMAT, "there is no post_transform '%s'", s);
    return ML_NONE;
}

/* 1 / (1 + exp(-|x|)), and 1 less that for negative x: small probabilities are lost, as they are in onnxruntime. */
graph_value *ml_logistic(onnx_node *n, graph_value *x)
{
    graph_value *one = onnx_const_like(n, x, 1), *e = onnx_unary(n, "exp", times(n, onnx_unary(n, "abs", x), -1));
    graph_value *v = onnx_binary(n, "divide", one, onnx_binary(n, "add", one, e));
    return onnx_where(n, onnx_binary(n, "less", x, onnx_const_like(n, x, 0)), onnx_binary(n, "subtract", one, v), v);
}

/* sqrt(2) times an approximation of the inverse of erf at 2x - 1. */
graph_value *ml_probit(onnx_node *n, graph_value *x)
{
    const float a = 0.147f, pi = 3.14159265f;
    graph_value *u = plus(n, times(n, x, 2), -1), *zero = onnx_const_like(n, x, 0), *one = onnx_const_like(n, x, 1);
    graph_value *below = onnx_binary(n, "subtract", one, u), *above = plus(n, u, 1);
    graph_value *l = onnx_unary(n, "log", onnx_binary(n, "multiply", below, above));
    graph_value *v = plus(n, times(n, l, 0.5), (double)(2 / (pi * a)));
    graph_value *root = onnx_unary(n, "sqrt", onnx_binary(n, "subtract", onnx_binary(n, "multiply", v, v),
                                                          times(n, l, (double)(1 / a))));
    graph_value *r = times(n, onnx_unary(n, "sqrt", onnx_binary(n, "subtract", root, v)), (double)1.41421356f);
    return onnx_where(n, onnx_binary(n, "less", u, zero), times(n, r, -1), r);
}

/* Softmax in which scores that are all but 0 stay what they are, times exp(-largest), and are not in the sum. */
static graph_value *softmax_zero(onnx_node *n, graph_value *s)
{
    const int64_t axis = 1;
    graph_value *most = onnx_reduce(n, "max", s, 1, &axis, true), *zero = onnx_const_like(n, s, 0);
    graph_value *far = onnx_binary(n, "greater", onnx_unary(n, "abs", s), onnx_const_like(n, s, (double)1e-7f));
    graph_value *e = onnx_unary(n, "exp", onnx_binary(n, "subtract", s, most));
    graph_value *sum = onnx_reduce(n, "sum", onnx_where(n, far, e, zero), 1, &axis, true);
    graph_value *small = onnx_binary(n, "multiply", s, onnx_unary(n, "exp", times(n, most, -1)));
    return onnx_binary(n, "divide", onnx_where(n, far, e, small), sum);
}

graph_value *ml_post_transform(onnx_node *n, graph_value *scores, ml_post post)
{
    attr axis = attr_int(n->c, "axis", -1);
    switch (post) {
    case ML_NONE: return scores;
    case ML_SOFTMAX: return onnx_emit(n, ONNX_ARGS("nn.softmax", 1, &axis, scores));
    case ML_LOGISTIC: return ml_logistic(n, scores);
    case ML_SOFTMAX_ZERO: return softmax_zero(n, scores);
    case ML_PROBIT: return ml_probit(n, scores);
    }
    return scores;
}

/* --- labels --- */

ml_labels ml_attr_labels(onnx_node *n, const char *ints, const char *strings)
{
    const ml_ints i = ml_attr_ints(n, ints);
    const ml_strings s = ml_attr_strings(n, strings);
    if (i.n && s.n)
        onnx_fail(n, DIAG_FORMAT, "%s and %s are both given", ints, strings);
    return i.n ? (ml_labels){i.n, i.v, NULL} : (ml_labels){s.n, NULL, s.n ? s.v : NULL};
}

static bool counts_up(const ml_labels *l)
{
    for (uint32_t i = 0; l->ints && i < l->n; i++)
        if (l->ints[i] != (int64_t)i)
            return false;
    return true;
}

graph_value *ml_take(onnx_node *n, graph_value *table, graph_value *at)
{
    attr axis = attr_int(n->c, "axis", 0);
    return onnx_emit(n, ONNX_ARGS("take", 1, &axis, table, at));
}

bool ml_result_labels(onnx_node *n, uint32_t i, graph_value *classes, const ml_labels *l)
{
    if (l->ints && !counts_up(l))
        classes = ml_take(n, onnx_const_ints(n, l->n, l->ints), classes);
    if (l->strings)
        onnx_set_strings(n->im, classes, l->n, l->strings);
    return onnx_alias(n, i, classes);
}

/* The matrix stays as it is: a package hands it out, with the keys as a table. */
bool onnx_op_zip_map(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0);
    const ml_labels keys = ml_attr_labels(n, "classlabels_int64s", "classlabels_strings");
    int64_t columns = keys.n;
    if (!n->failed && onnx_rank(x) > 0 && dim_is_const(onnx_dim(n, x, onnx_rank(x) - 1), &columns) && columns != keys.n)
        return onnx_fail(n, DIAG_TYPE, "input 0 has %lld columns; there are %u labels", (long long)columns, keys.n);
    attr *table = arena_new(&n->c->mem, attr);
    *table = keys.strings ? attr_strings(n->c, "labels", keys.n, keys.strings)
                          : attr_ints(n->c, "labels", keys.n, keys.ints);
    onnx_map_set(&n->c->mem, &n->im->columns, (const char *)x, table);
    return onnx_alias(n, 0, x);
}

/* --- linear models --- */

/* x times the rows of coefficients, of which there are `rows`, plus the intercepts, as many, if there are any. */
static graph_value *linear(onnx_node *n, int64_t rows, ml_floats intercepts)
{
    int64_t width = 0;
    const ml_floats w = ml_attr_floats(n, "coefficients");
    graph_value *x = ml_rows(n, onnx_in(n, 0), DT_F32, &width);
    if (!n->failed && (rows < 1 || width * rows != w.n))
        return onnx_refuse(n, DIAG_TYPE, "%u coefficients do not make %lld rows for %lld features", w.n,
                           (long long)rows, (long long)width);
    if (n->failed)
        return onnx_nothing(n);
    graph_value *y = onnx_matmul(n, x, ml_matrix(n, DT_F32, 2, (int64_t[]){rows, width}, w.v), false, true, DT_NONE);
    return intercepts.n ? onnx_binary(n, "add", y, ml_vector(n, DT_F32, intercepts.n, intercepts.v)) : y;
}

/* Of one target no transform but PROBIT does anything. Intercepts of another number than targets are left out. */
bool onnx_op_linear_regressor(onnx_node *n)
{
    const int64_t targets = onnx_attr_int(n, "targets", 1);
    const ml_post post = ml_attr_post(n);
    ml_floats b = ml_attr_floats(n, "intercepts");
    if (b.n != targets)
        b.n = 0;
    graph_value *y = linear(n, targets, b);
    if (targets > 1 || post == ML_PROBIT)
        y = ml_post_transform(n, y, post);
    return onnx_alias(n, 0, y);
}

/* A comparison with NaN is false: a NaN in the first column keeps class 0, and one in another column never wins. */
static graph_value *no_nan(onnx_node *n, graph_value *s, uint32_t columns)
{
    double *v = arena_array(&n->c->mem, double, columns);
    for (uint32_t i = 0; i < columns; i++)
        v[i] = i ? -INFINITY : INFINITY;
    return onnx_where(n, onnx_unary(n, "isnan", s), ml_vector(n, DT_F32, columns, v), s);
}

/* One row of coefficients for two classes: [rows, 1] becomes (1 - s, s), or both logistic. */
static graph_value *two_of_one(onnx_node *n, graph_value *s, ml_post post)
{
    graph_value *first = onnx_binary(n, "subtract", onnx_const_like(n, s, 1), s);
    if (post == ML_LOGISTIC) {
        first = ml_logistic(n, times(n, s, -1));
        s = ml_logistic(n, s);
    }
    graph_value *both[2] = {first, s};
    return onnx_concat(n, 2, both, 1);
}

bool onnx_op_linear_classifier(onnx_node *n)
{
    const ml_labels l = ml_attr_labels(n, "classlabels_ints", "classlabels_strings");
    const ml_floats b = ml_attr_floats(n, "intercepts");
    const ml_post post = ml_attr_post(n);
    (void)onnx_attr_int(n, "multi_class", 0); /* it changes nothing */
    if (b.n == 0)
        return onnx_fail(n, DIAG_FORMAT, "the intercepts are missing");
    if (l.n && l.n != b.n && !(b.n == 1 && l.n == 2))
        return onnx_fail(n, DIAG_FORMAT, "%u labels do not fit %u rows of coefficients", l.n, b.n);
    graph_value *s = linear(n, b.n, b), *classes;
    if (b.n == 1) {
        const dim rows[1] = {onnx_dim(n, s, 0)};
        graph_value *above = onnx_binary(n, "greater", s, onnx_const_like(n, s, 0));
        classes = onnx_reshape(n, onnx_cast(n, above, DT_I64), 1, rows);
        if (l.n == 2)
            s = two_of_one(n, s, post);
        else if (post == ML_LOGISTIC)
            s = ml_logistic(n, s);
        else if (post == ML_PROBIT)
            s = ml_probit(n, s);
    } else {
        classes = ml_argmax(n, no_nan(n, s, b.n));
        s = ml_post_transform(n, s, post);
    }
    const ml_labels *names = b.n == 1 && l.n == 1 ? &(ml_labels){0} : &l;
    return ml_result_labels(n, 0, classes, names) && onnx_alias(n, 1, s);
}

/* --- scalers --- */

/* The numbers of a list along a row of `width`: one for all, or one each. */
static graph_value *along_row(onnx_node *n, const char *what, dtype dt, ml_floats l, int64_t width)
{
    if (l.n == 1)
        return onnx_const_float(n, dt, l.v[0]);
    if (l.n != width)
        return onnx_refuse(n, DIAG_TYPE, "%s has %u numbers; 1 or %lld are needed", what, l.n, (long long)width);
    return ml_vector(n, dt, l.n, l.v);
}

/* (x - offset) * scale; of f64 the arithmetic is f64 and the result rounded. With three dimensions the list runs along
 * the flat tensor, as long as axis 1. */
bool onnx_op_scaler(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *was = x;
    const ml_floats offset = ml_attr_floats(n, "offset"), scale = ml_attr_floats(n, "scale");
    const dtype dt = onnx_dtype(x) == DT_F64 ? DT_F64 : DT_F32;
    const uint32_t rank = onnx_rank(x);
    const bool folds = rank > 2 && scale.n > 1;
    if (offset.n != scale.n || scale.n == 0)
        return onnx_fail(n, DIAG_FORMAT, "offset has %u numbers and scale %u: both must be given, equally long",
                         offset.n, scale.n);
    const int64_t width = scale.n > 1 ? onnx_static_dim(n, x, rank > 2 ? 1 : rank - 1) : 1;
    if (folds)
        x = onnx_reshape_ints(n, x, 2, (int64_t[]){-1, width});
    x = onnx_binary(n, "subtract", onnx_cast(n, x, dt), along_row(n, "offset", dt, offset, width));
    x = onnx_cast(n, onnx_binary(n, "multiply", x, along_row(n, "scale", dt, scale, width)), DT_F32);
    return onnx_alias(n, 0, folds ? onnx_reshape(n, x, rank, was->type.shape.dims) : x);
}

/* A divisor of 0 counts as 1, which leaves a row as it is: that is looked at once a row. */
static graph_value *by_no_zero(onnx_node *n, graph_value *x, graph_value *by)
{
    graph_value *zero = onnx_binary(n, "equal", by, onnx_const_like(n, by, 0));
    return onnx_binary(n, "divide", x, onnx_where(n, zero, onnx_const_like(n, by, 1), by));
}

/* Rows of probabilities, whose sum is 1 but for its rounding. */
static bool is_softmax(const graph_value *x)
{
    const graph_node *n = x->def;
    return n && strcmp(n->op->name, "nn.softmax") == 0 &&
           (graph_attr_int(n, "axis") == -1 || graph_attr_int(n, "axis") == (int64_t)x->type.shape.rank - 1);
}

/* MAX divides by the largest number, not by the largest magnitude. L2 is sign(x) * sqrt(x * x / sum). A row whose
 * divisor is 0 stays as it is. */
bool onnx_op_normalizer(onnx_node *n)
{
    const char *norm = onnx_attr_string(n, "norm", "MAX");
    int64_t width = 0;
    const int64_t axis = 1;
    const uint32_t rank = onnx_rank(onnx_in(n, 0));
    graph_value *x = ml_rows(n, onnx_in(n, 0), DT_F32, &width), *zero = onnx_const_like(n, x, 0), *by, *y;
    if (strcmp(norm, "MAX") == 0) {
        graph_value *least = onnx_const_like(n, x, -(double)3.402823466e38f);
        by = onnx_reduce(n, "max", onnx_where(n, onnx_unary(n, "isnan", x), least, x), 1, &axis, true);
        y = by_no_zero(n, x, by);
    } else if (strcmp(norm, "L1") == 0 && is_softmax(x)) {
        y = x;
    } else if (strcmp(norm, "L1") == 0) {
        y = by_no_zero(n, x, onnx_reduce(n, "sum", onnx_unary(n, "abs", x), 1, &axis, true));
    } else if (strcmp(norm, "L2") == 0) {
        graph_value *square = onnx_binary(n, "multiply", x, x);
        by = onnx_reduce(n, "sum", square, 1, &axis, true);
        y = onnx_unary(n, "sqrt", onnx_binary(n, "divide", square, by));
        y = onnx_where(n, onnx_binary(n, "less", x, zero), times(n, y, -1), y);
        y = onnx_where(n, onnx_binary(n, "equal", by, zero), x, y);
    } else {
        return onnx_fail(n, DIAG_FORMAT, "there is no norm '%s'", norm);
    }
    return onnx_alias(n, 0, rank == 1 ? onnx_reshape_ints(n, y, 1, &width) : y);
}

/* 1 above the threshold, else 0; NaN gives 0. */
bool onnx_op_binarizer(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *limit = onnx_const_like(n, x, onnx_attr_float(n, "threshold", 0));
    attr a = attr_dtype(n->c, "dtype", onnx_dtype(x));
    onnx_result(n, 0, ONNX_ARGS("cast", 1, &a, onnx_binary(n, "greater", x, limit)));
    return !n->failed;
}

/* The value for each column, or the first one for all. */
bool onnx_op_imputer(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *hit, *value;
    const ml_floats f = ml_attr_floats(n, "imputed_value_floats");
    const ml_ints i = ml_attr_ints(n, "imputed_value_int64s");
    const double marker = onnx_attr_float(n, "replaced_value_float", 0);
    const int64_t number = onnx_attr_int(n, "replaced_value_int64", 0);
    const bool floats = onnx_dtype(x) == DT_F32;
    const uint32_t count = floats ? f.n : i.n, rank = onnx_rank(x);
    int64_t width = 0;
    if (!floats && onnx_dtype(x) != DT_I64)
        return onnx_fail(n, DIAG_TYPE, "input 0 is %s; f32 or i64 is needed", dtype_name(onnx_dtype(x)));
    if (count == 0)
        return onnx_fail(n, DIAG_FORMAT, "imputed_value_%s is missing", floats ? "floats" : "int64s");
    const bool each = count > 1 && dim_is_const(onnx_dim(n, x, rank > 1 ? 1 : 0), &width) && width == count;
    if (each && rank > 2)
        return onnx_fail(n, DIAG_UNSUPPORTED, "values for each column of %u dimensions are not supported", rank);
    if (floats)
        value = each ? ml_vector(n, DT_F32, count, f.v) : onnx_const_like(n, x, f.v[0]);
    else
        value = each ? onnx_const_ints(n, count, i.v) : onnx_const_int(n, DT_I64, i.v[0]);
    if (floats && isnan(marker))
        hit = onnx_unary(n, "isnan", x);
    else
        hit = onnx_binary(n, "equal", x, floats ? onnx_const_like(n, x, marker) : onnx_const_int(n, DT_I64, number));
    onnx_result(n, 0, ONNX_ARGS("where", 0, NULL, hit, value, x));
    return !n->failed;
}

/* --- columns --- */

/* Columns of the last axis; a list counts as one row. */
bool onnx_op_array_feature_extractor(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *at = onnx_in(n, 1);
    const tensor_data *known = graph_constant(at);
    if (onnx_rank(x) == 0)
        return onnx_fail(n, DIAG_TYPE, "data of one axis or more is needed");
    for (int64_t i = 0; known && i < known->count; i++)
        if (tensor_get_i64(known, i) < 0)
            return onnx_fail(n, DIAG_TYPE, "index %lld is negative", (long long)tensor_get_i64(known, i));
    const int64_t count = shape_count(at->type.shape), all[1] = {count < 0 ? -1 : count};
    if (onnx_rank(at) != 1)
        at = onnx_reshape_ints(n, at, 1, all);
    attr axis = attr_int(n->c, "axis", -1);
    graph_value *y = onnx_emit(n, ONNX_ARGS("take", 1, &axis, x, at));
    return onnx_alias(n, 0, onnx_rank(x) > 1 ? y : onnx_expand_dims(n, y, 1, (int64_t[]){0}));
}

/* Inputs side by side, each as wide as inputdimensions says: zeros behind a narrow one, a wide one is cut. */
bool onnx_op_feature_vectorizer(onnx_node *n)
{
    const ml_ints widths = ml_attr_ints(n, "inputdimensions");
    graph_value **parts = arena_array(&n->c->mem, graph_value *, n->n_in + 1u);
    if (widths.n != n->n_in)
        return onnx_fail(n, DIAG_FORMAT, "inputdimensions has %u numbers for %u inputs", widths.n, n->n_in);
    for (uint32_t i = 0; i < n->n_in && !n->failed; i++) {
        int64_t width = 0;
        graph_value *x = ml_rows(n, onnx_in(n, i), DT_F32, &width);
        if (widths.v[i] < 0 || widths.v[i] > INT32_MAX)
            return onnx_fail(n, DIAG_FORMAT, "input %u cannot be %lld wide", i, (long long)widths.v[i]);
        if (width < widths.v[i])
            x = onnx_binary(n, "nn.pad", x, onnx_const_ints(n, 4, (int64_t[]){0, 0, 0, widths.v[i] - width}));
        else if (width > widths.v[i])
            x = onnx_slice(n, x, 1, 0, widths.v[i]);
        parts[i] = x;
    }
    return onnx_alias(n, 0, n->n_in == 1 || n->failed ? parts[0] : onnx_concat(n, n->n_in, parts, 1));
}
