/* SPDX-License-Identifier: Apache-2.0 */
/* The audio front ends of TensorFlow Lite Micro, operators with memory: what a run leaves for the next is a state of
 * the model. The kernels keep rings of samples; here a state has the samples that are still to be read, oldest first.
 * Where such an operator says that its result is not valid yet, the kernel leaves the numbers as they are. */
#include "frontend/tflite/tflite_compose.h"

#define MOST_FRAMES 1024 /* of one run, where each takes operators of its own */

/* --- SignalDelay --- */

bool tflite_op_signal_delay(tflite_node *n)
{
    int64_t rows, length, delay;
    graph_value *x = compose_rows(n, &rows, &length);
    if (n->failed || !tflite_custom_int(n, "delay_length", 0, 1 << 24, &delay))
        return false;
    if (delay == 0)
        return tflite_result(n, 0, tflite_unary(n, "copy", tflite_in(n, 0)));
    tflite_variable *old = tflite_own_state(n, "delay", DT_I16, 2, (int64_t[]){rows, delay}, 0);
    graph_value *all = compose_joined(n, tflite_state_value(n, old), x, 1);
    tflite_set_state(n, old, compose_slice(n, all, 1, length, length + delay));
    return tflite_result(n, 0, compose_with_rows(n, compose_slice(n, all, 1, 0, length), 1, 1, &length));
}

/* --- SignalFramer --- */

/* Frames of the samples behind `old` ones: [rows, frames, size]. */
static graph_value *frames_of(tflite_node *n, graph_value *all, int64_t size, int64_t step)
{
    const attr a[3] = {attr_int(n->c, "axis", 1), attr_ints(n->c, "window_shape", 1, &size),
                       attr_ints(n->c, "strides", 1, &step)};
    return tflite_emit(n, "sliding_window", 1, &all, 3, a);
}

/* Whether the kernel has had enough samples: `needed` steps, of which `more` come with each run. */
static graph_value *has_enough(tflite_node *n, int64_t needed, int64_t more)
{
    if (needed <= 1)
        return tflite_const(n, tensor_splat(n->c, DT_BOOL, 0, NULL, &(uint8_t){1}), "");
    tflite_variable *steps = tflite_own_state(n, "steps", DT_I32, 0, NULL, 0);
    graph_value *had = tflite_state_value(n, steps);
    graph_value *now = tflite_binary(n, "add", had, tflite_i32(n, more));
    tflite_set_state(n, steps, tflite_binary(n, "minimum", now, tflite_i32(n, needed)));
    return tflite_binary(n, "greater_equal", had, tflite_i32(n, needed - 1));
}

bool tflite_op_signal_framer(tflite_node *n)
{
    int64_t rows, length, size, step, prefill;
    graph_value *x = compose_rows(n, &rows, &length);
    if (n->failed || !tflite_custom_int(n, "frame_size", 1, 1 << 24, &size) ||
        !tflite_custom_int(n, "frame_step", 1, length, &step) || !tflite_custom_int(n, "prefill", 0, 1, &prefill))
        return false;
    if (length % step != 0 || (prefill && step > size))
        return tflite_fail(n, DIAG_FORMAT, "%lld samples are no whole steps of %lld with frames of %lld",
                           (long long)length, (long long)step, (long long)size);
    /* without zeros in front the ring is first full after so many steps, and so are the samples that stay in it */
    const int64_t needed = prefill ? 1 : (size + step - 1) / step, kept = prefill ? size - step : (needed - 1) * step;
    const int64_t frames = length / step;
    graph_value *all = x;
    if (kept > 0) {
        tflite_variable *old = tflite_own_state(n, "samples", DT_I16, 2, (int64_t[]){rows, kept}, 0);
        all = compose_joined(n, tflite_state_value(n, old), x, 1);
        tflite_set_state(n, old, compose_slice(n, all, 1, length, length + kept));
    }
    all = compose_slice(n, all, 1, 0, (frames - 1) * step + size);
    return tflite_result(n, 0, compose_with_rows(n, frames_of(n, all, size, step), 1, 2, (int64_t[]){frames, size})) &&
           tflite_result(n, 1, has_enough(n, needed, frames));
}

/* --- SignalStacker --- */

/* How many frames are there with this one; *valid: whether they are enough. -1 frames, or none yet: then the first one
 * counts `left` times more. */
static graph_value *count_frames(tflite_node *n, int64_t left, int64_t needed, int64_t step, graph_value **out_is_first)
{
    tflite_variable *frames = tflite_own_state(n, "frames", DT_I32, 0, NULL, -1);
    graph_value *had = tflite_state_value(n, frames);
    *out_is_first = tflite_binary(n, "less", had, tflite_i32(n, 0));
    graph_value *now = compose_chosen(n, *out_is_first, tflite_i32(n, left + 1),
                              tflite_binary(n, "add", had, tflite_i32(n, 1)));
    graph_value *is_valid = tflite_binary(n, "greater_equal", now, tflite_i32(n, needed));
    graph_value *left_over = tflite_binary(n, "subtract", now, tflite_i32(n, step));
    tflite_set_state(n, frames, compose_chosen(n, is_valid, left_over, now));
    return is_valid;
}

bool tflite_op_signal_stacker(tflite_node *n)
{
    int64_t rows, length, channels, left, right, step;
    graph_value *x = compose_rows(n, &rows, &length), *is_first;
    if (n->failed || !tflite_custom_int(n, "num_channels", 1, 1 << 16, &channels) ||
        !tflite_custom_int(n, "stacker_left_context", 0, 1 << 12, &left) ||
        !tflite_custom_int(n, "stacker_right_context", 0, 1 << 12, &right) ||
        !tflite_custom_int(n, "stacker_step", 1, left + right + 1, &step))
        return false;
    if (rows != 1 || length != channels)
        return tflite_fail(n, DIAG_TYPE, "its data must be a vector of %lld channels", (long long)channels);
    const int64_t needed = left + right + 1, kept = (needed - 1) * channels;
    graph_value *is_valid = count_frames(n, left, needed, step, &is_first), *all = tflite_in(n, 0);
    if (kept > 0) {
        tflite_variable *old = tflite_own_state(n, "stack", DT_I16, 2, (int64_t[]){needed - 1, channels}, 0);
        graph_value *have = compose_chosen(n, is_first, x, tflite_state_value(n, old));
        all = compose_joined(n, have, x, 0);
        tflite_set_state(n, old, compose_slice(n, all, 0, 1, needed));
        all = tflite_reshape(n, all, 1, (int64_t[]){needed * channels});
    }
    return tflite_result(n, 0, all == tflite_in(n, 0) ? tflite_unary(n, "copy", all) : all) &&
           tflite_result(n, 1, is_valid);
}

/* --- SignalOverlapAdd --- */

static graph_value *added(tflite_node *n, graph_value *a, graph_value *b)
{
    if (n->failed || a->type.dt != DT_I16)
        return tflite_binary(n, "add", a, b);
    graph_value *sum = tflite_binary(n, "add", tflite_cast(n, a, DT_I32), tflite_cast(n, b, DT_I32));
    return tflite_clipped(n, sum, INT16_MIN, INT16_MAX, DT_I16);
}

/* x with `more` zeros behind each row. */
static graph_value *padded(tflite_node *n, graph_value *x, int64_t more)
{
    const int64_t pads[4] = {0, 0, 0, more};
    return tflite_binary(n, "nn.pad", x, tflite_const(n, tensor_from_i64s(n->c, 4, pads), "pads"));
}

/* Frames are added one by one to what is left of those before; the first samples of each sum are complete. */
bool tflite_op_signal_overlap_add(tflite_node *n)
{
    int64_t rows, size, step, frames = 0;
    graph_value *x = compose_rows(n, &rows, &size), *y = NULL;
    const shape s = tflite_in(n, 0)->type.shape;
    if (n->failed || !tflite_custom_int(n, "frame_step", 1, size, &step))
        return false;
    if (s.rank < 2 || !dim_is_const(s.dims[s.rank - 2], &frames) || frames < 1 || frames > MOST_FRAMES)
        return tflite_fail(n, DIAG_UNSUPPORTED, "its data must have 1 to %d frames", MOST_FRAMES);
    rows /= frames;
    x = tflite_reshape(n, x, 3, (int64_t[]){rows, frames, size});
    tflite_variable *kept = step == size ? NULL
                                         : tflite_own_state(n, "overlap", tflite_in(n, 0)->type.dt, 2,
                                                            (int64_t[]){rows, size - step}, 0);
    graph_value *old = kept ? tflite_state_value(n, kept) : NULL;
    for (int64_t i = 0; i < frames && !n->failed; i++) {
        graph_value *frame = tflite_reshape(n, compose_slice(n, x, 1, i, i + 1), 2, (int64_t[]){rows, size});
        frame = old ? added(n, frame, padded(n, old, step)) : frame;
        graph_value *done = old ? compose_slice(n, frame, 1, 0, step) : frame;
        y = y ? compose_joined(n, y, done, 1) : done;
        old = old ? compose_slice(n, frame, 1, step, size) : NULL;
    }
    if (kept)
        tflite_set_state(n, kept, old);
    return !n->failed && tflite_result(n, 0, compose_with_rows(n, y, 2, 1, (int64_t[]){frames * step}));
}
