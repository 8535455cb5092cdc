/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of object detection: those that overlap a better one are left out (NON_MAX_SUPPRESSION_V4 and _V5), and what a
 * network says of its anchors becomes boxes before that (TFLite_Detection_PostProcess). There are as many results as
 * the model asks for; those behind the boxes that are found are zeros. Of several classes for each box TensorFlow Lite
 * Micro writes beyond its results; LiteRT does not. */
#include "frontend/tflite/tflite_compose.h"

#include <math.h>
#include <string.h>

typedef struct detection {
    int64_t boxes, classes, columns; /* columns: of scores; one more than there are classes: the first is background */
    int64_t most, each, per_class;   /* results; classes of each box; boxes of each class, where they are chosen so */
    int64_t by_class;
    float under, overlap; /* a box must have a score above one, and share no more than the other with a better box */
    double scale[4];
    graph_value *corners, *scores; /* [boxes, 4]; [boxes, classes] */
} detection;

static bool read_options(tflite_node *n, detection *d)
{
    static const char *const scales[4] = {"y_scale", "x_scale", "h_scale", "w_scale"};
    double least = 0, overlap = 0;
    d->per_class = 100;
    d->each = 1;
    bool ok = tflite_custom_int(n, "max_detections", 1, 1 << 16, &d->most) &&
              tflite_custom_int(n, "num_classes", 1, 1 << 16, &d->classes) &&
              tflite_custom_float(n, "nms_score_threshold", &least) &&
              tflite_custom_float(n, "nms_iou_threshold", &overlap);
    if (ok && tflite_custom_has(n, "use_regular_nms"))
        ok = tflite_custom_int(n, "use_regular_nms", 0, 1, &d->by_class);
    if (ok && tflite_custom_has(n, "detections_per_class"))
        ok = tflite_custom_int(n, "detections_per_class", 1, 1 << 16, &d->per_class);
    if (ok && !d->by_class)
        ok = tflite_custom_int(n, "max_classes_per_detection", 1, 1 << 16, &d->each);
    for (uint32_t i = 0; i < 4; i++)
        ok = ok && tflite_custom_float(n, scales[i], &d->scale[i]);
    d->under = nextafterf((float)least, -INFINITY); /* the least score counts, too */
    d->overlap = (float)overlap;
    return ok && ((overlap > 0 && overlap <= 1) ||
                  tflite_fail(n, DIAG_FORMAT, "its option 'nms_iou_threshold' is %g; it must be above 0, and 1 at most",
                              overlap));
}

/* Operand i as floats, of that rank, whose last extent is `last` at least; out_rows: the extent before it. */
static graph_value *floats_of(tflite_node *n, uint32_t i, int32_t rank, int64_t last, int64_t *out_rows)
{
    graph_value *x = tflite_in(n, i);
    tflite_scale s;
    int64_t have = 0, batch = 1;
    if (!n->failed && x->type.shape.rank != rank)
        (void)tflite_fail(n, DIAG_TYPE, "operand %u must have %d dimensions", i, rank);
    if (n->failed || !tflite_extent(n, x, (uint32_t)rank - 1, &have) ||
        !tflite_extent(n, x, (uint32_t)rank - 2, out_rows) || (rank == 3 && !tflite_extent(n, x, 0, &batch)))
        return x;
    if (batch != 1 || have < last || *out_rows < 1)
        (void)tflite_fail(n, DIAG_TYPE, "operand %u must be one batch of rows of %lld numbers", i, (long long)last);
    if (x->type.dt == DT_U8 && tflite_read_scale(n, i, &s)) {
        graph_value *in[3] = {x, tflite_number(n, DT_F32, (double)s.scale), tflite_zero(n, &s)};
        x = tflite_emit(n, "qnn.dequantize", 3, in, 0, NULL);
    }
    if (!n->failed && x->type.dt != DT_F32)
        (void)tflite_fail(n, DIAG_TYPE, "operand %u must be of f32 or u8", i);
    return tflite_reshape(n, x, 2, (int64_t[]){*out_rows, have});
}

static graph_value *real(tflite_node *n, double v)
{
    return tflite_number(n, DT_F64, (double)(float)v);
}

/* Centers and sizes relative to those of the anchors, in f64 as the kernel's; corners in f32. */
static graph_value *corners_of(tflite_node *n, const detection *d, graph_value *boxes, graph_value *anchors)
{
    graph_value *from[2], *to[2];
    boxes = tflite_cast(n, boxes, DT_F64);
    anchors = tflite_cast(n, anchors, DT_F64);
    for (int64_t k = 0; k < 2; k++) {
        graph_value *middle = compose_slice(n, boxes, 1, k, k + 1), *size = compose_slice(n, boxes, 1, k + 2, k + 3);
        graph_value *unit = compose_slice(n, anchors, 1, k + 2, k + 3);
        middle = tflite_binary(n, "multiply", tflite_binary(n, "divide", middle, real(n, d->scale[k])), unit);
        middle = tflite_binary(n, "add", middle, compose_slice(n, anchors, 1, k, k + 1));
        size = tflite_unary(n, "exp", tflite_binary(n, "divide", size, real(n, d->scale[k + 2])));
        size = tflite_binary(n, "multiply", tflite_binary(n, "multiply", size, real(n, 0.5)), unit);
        middle = tflite_cast(n, middle, DT_F32);
        size = tflite_cast(n, size, DT_F32);
        from[k] = tflite_binary(n, "subtract", middle, size);
        to[k] = tflite_binary(n, "add", middle, size);
    }
    graph_value *all[4] = {from[0], from[1], to[0], to[1]};
    const attr at = attr_int(n->c, "axis", 1);
    return tflite_emit(n, "concatenate", 4, all, 1, &at);
}

/* Ranks, [groups, boxes], of the boxes that are chosen in each group of scores; 0 for others. */
static graph_value *ranks_of(tflite_node *n, const detection *d, graph_value *scores, int64_t groups, int64_t most)
{
    graph_value *in[5] = {tflite_reshape(n, d->corners, 3, (int64_t[]){1, d->boxes, 4}),
                          tflite_reshape(n, scores, 3, (int64_t[]){1, groups, d->boxes}),
                          compose_number(n, DT_I64, most), tflite_number(n, DT_F32, (double)d->overlap),
                          tflite_number(n, DT_F32, (double)d->under)};
    graph_value *ranks = tflite_emit(n, "nn.nms", 5, in, 0, NULL);
    return tflite_reshape(n, ranks, 2, (int64_t[]){groups, d->boxes});
}

/* x, [found, width], of which `count` rows are results, as [most, width + more]: zeros behind them. */
static graph_value *filled(tflite_node *n, graph_value *x, graph_value *count, int64_t found, int64_t most,
                           int64_t more)
{
    graph_value *row = tflite_reshape(n, compose_positions(n, found), 2, (int64_t[]){found, 1});
    graph_value *is_one = tflite_binary(n, "less", row, count);
    x = compose_chosen(n, is_one, tflite_cast(n, x, DT_F32), tflite_number(n, DT_F32, 0));
    const int64_t pads[4] = {0, 0, most - found, more};
    return tflite_binary(n, "nn.pad", x, tflite_const(n, tensor_from_i64s(n->c, 4, pads), "pads"));
}

/* How many ranks there are, at most `most`, in i32. */
static graph_value *count_of(tflite_node *n, graph_value *ranks, int64_t most)
{
    const attr drop = attr_int(n->c, "keepdims", 0);
    graph_value *is_one = tflite_cast(n, compose_by(n, "greater", ranks, 0), DT_I32);
    return compose_by(n, "minimum", tflite_emit(n, "sum", 1, &is_one, 1, &drop), most);
}

/* Of each box that is found its corners, and classes and scores, of which there are as many. */
static bool put_results(tflite_node *n, const detection *d, graph_value *box, graph_value *classes, graph_value *scores,
                        graph_value *count, int64_t found, int64_t have)
{
    const int64_t all = d->most * d->each, one = 1, dims[3] = {1, all, 4};
    graph_value *times = tflite_const(n, tensor_from_i64s(n->c, 2, (int64_t[]){1, have}), "times");
    graph_value *of[3] = {tflite_binary(n, "tile", compose_entry(n, d->corners, box), times), classes, scores};
    for (uint32_t i = 0; i < 3; i++) {
        const int64_t width = i == 0 ? 4 : 1;
        graph_value *y = filled(n, of[i], count, found, d->most, (d->each - have) * width);
        if (!tflite_result(n, i, tflite_reshape(n, y, i == 0 ? 3 : 2, dims)))
            return false;
    }
    return tflite_result(n, 3, tflite_cast(n, tflite_reshape(n, count, 1, &one), DT_F32));
}

/* Boxes are chosen by their best score; results are the best classes of each. */
static bool by_best_class(tflite_node *n, const detection *d)
{
    const int64_t each = d->each < d->classes ? d->each : d->classes, found = d->most < d->boxes ? d->most : d->boxes;
    graph_value *best[2], *order[2];
    if (!compose_top_k(n, d->scores, each, true, best))
        return false;
    graph_value *ranks = ranks_of(n, d, compose_slice(n, best[0], 1, 0, 1), 1, d->most);
    ranks = tflite_reshape(n, ranks, 1, &d->boxes);
    graph_value *none = compose_number(n, DT_I64, INT32_MAX);
    graph_value *key = compose_chosen(n, compose_by(n, "greater", ranks, 0), ranks, none);
    return compose_top_k(n, key, found, false, order) &&
           put_results(n, d, order[1], compose_entry(n, best[1], order[1]), compose_entry(n, best[0], order[1]),
                       count_of(n, ranks, d->most), found, each);
}

/* Boxes are chosen for each class; results are the best of all, of equal ones that of the first class. */
static bool by_each_class(tflite_node *n, const detection *d)
{
    int64_t all = 0, found = d->most;
    graph_value *best[2];
    if (!i64_mul(d->classes, d->boxes, &all) || all > INT32_MAX)
        return tflite_fail(n, DIAG_UNSUPPORTED, "there are too many boxes and classes");
    found = found < all ? found : all;
    graph_value *scores = tflite_transpose(n, d->scores, 2, (int64_t[]){1, 0});
    graph_value *ranks = ranks_of(n, d, scores, d->classes, d->per_class);
    graph_value *key = compose_chosen(n, compose_by(n, "greater", ranks, 0), scores,
                                      tflite_number(n, DT_F32, -INFINITY));
    if (!compose_top_k(n, tflite_reshape(n, key, 1, &all), found, true, best))
        return false;
    graph_value *class = compose_by(n, "divide", best[1], d->boxes), *box = compose_by(n, "mod", best[1], d->boxes);
    const int64_t column[2] = {found, 1};
    return put_results(n, d, box, tflite_reshape(n, class, 2, column), tflite_reshape(n, best[0], 2, column),
                       count_of(n, ranks, found), found, 1);
}

bool tflite_op_detection(tflite_node *n)
{
    detection d = {0};
    int64_t rows = 0, anchors = 0;
    if (!read_options(n, &d))
        return false;
    graph_value *boxes = floats_of(n, 0, 3, 4, &d.boxes), *scores = floats_of(n, 1, 3, d.classes, &rows);
    graph_value *units = floats_of(n, 2, 2, 4, &anchors);
    if (n->failed || !tflite_extent(n, scores, 1, &d.columns))
        return false;
    if (rows != d.boxes || anchors != d.boxes || d.columns > d.classes + 1)
        return tflite_fail(n, DIAG_TYPE,
                           "it has %lld boxes, scores of %lld boxes in %lld columns for %lld classes, and %lld anchors",
                           (long long)d.boxes, (long long)rows, (long long)d.columns, (long long)d.classes,
                           (long long)anchors);
    if (n->n_out != 4)
        return tflite_fail(n, DIAG_FORMAT, "it must have four results, and has %u", n->n_out);
    d.corners = corners_of(n, &d, boxes, units);
    d.scores = compose_slice(n, scores, 1, d.columns - d.classes, d.columns);
    return d.by_class ? by_each_class(n, &d) : by_best_class(n, &d);
}

/* --- without anchors --- */

static bool read_limit(tflite_node *n, uint32_t i, float *out)
{
    const tensor_data *t = tflite_constant(n, i);
    *out = t && t->count == 1 && t->dt == DT_F32 ? (float)tensor_get_f64(t, 0) : NAN;
    return !isnan(*out) || tflite_fail(n, DIAG_UNSUPPORTED, "operand %u must be one constant float", i);
}

/* The boxes that are chosen, the best first, and how many there are. The target "scores": their scores, too. */
bool tflite_op_nms(tflite_node *n)
{
    detection d = {0};
    float least, overlap, sigma = 0;
    const bool has_scores = strcmp(n->row->target, "scores") == 0;
    graph_value *order[2], *scores = compose_vector(n, 1, DT_F32, 0, NULL);
    d.corners = floats_of(n, 0, 2, 4, &d.boxes);
    if (n->failed || !tflite_one_int(n, 2, "the number of results", &d.most) || !read_limit(n, 3, &overlap) ||
        !read_limit(n, 4, &least) || (has_scores && !read_limit(n, 5, &sigma)))
        return false;
    if (sigma != 0)
        return tflite_fail(n, DIAG_UNSUPPORTED, "scores that are lowered (a sigma other than 0) are not supported yet");
    if (d.most < 1 || d.most > 1 << 16 || shape_count(scores->type.shape) != d.boxes || n->n_out != 2u + has_scores)
        return tflite_fail(n, DIAG_FORMAT, "its numbers of boxes, scores or results do not fit");
    const int64_t found = d.most < d.boxes ? d.most : d.boxes, column[2] = {found, 1};
    d.under = least;
    d.overlap = nextafterf(overlap, -INFINITY); /* as much as the limit is too much */
    graph_value *ranks = tflite_reshape(n, ranks_of(n, &d, scores, 1, d.most), 1, &d.boxes);
    graph_value *count = count_of(n, ranks, d.most), *none = compose_number(n, DT_I64, INT32_MAX);
    if (!compose_top_k(n, compose_chosen(n, compose_by(n, "greater", ranks, 0), ranks, none), found, false, order))
        return false;
    graph_value *boxes = filled(n, tflite_reshape(n, order[1], 2, column), count, found, d.most, 0);
    graph_value *theirs = tflite_reshape(n, compose_entry(n, scores, order[1]), 2, column);
    boxes = tflite_cast(n, tflite_reshape(n, boxes, 1, &d.most), DT_I32);
    theirs = tflite_reshape(n, filled(n, theirs, count, found, d.most, 0), 1, &d.most);
    return tflite_result(n, 0, boxes) && (!has_scores || tflite_result(n, 1, theirs)) &&
           tflite_result(n, 1 + has_scores, count);
}
