/* SPDX-License-Identifier: Apache-2.0 */
/* A function of 16 bits as 512 straight pieces over their range, as TensorFlow Lite's LUTPopulate makes it and its
 * LUTLookup reads it. Entries lie halfway between the curve and its chords. */
#include "frontend/tflite/tflite_compose.h"
#include "frontend/tflite/tflite_import.h"

#include <math.h>

#define PIECES 512

double tflite_as_wide(double v, bool narrow)
{
    const volatile float f = (float)v;
    return narrow ? (double)f : v;
}

static double sum(const tflite_pieces *p, double a, double b)
{
    return tflite_as_wide(a + b, p->narrow);
}

static double product(const tflite_pieces *p, double a, double b)
{
    return tflite_as_wide(a * b, p->narrow);
}

/* The ends of the result, and its steps in 1. */
typedef struct ends {
    double low, high, steps;
} ends;

/* The function at x in steps of the result. */
static double in_steps(const tflite_pieces *p, double x, const ends *e)
{
    const double y = p->fn(x, p->narrow);
    return product(p, isnan(y) ? e->low : isinf(y) ? e->high : y, e->steps);
}

static void fill_table(const tflite_pieces *p, int32_t t[PIECES + 1])
{
    const double least = product(p, p->in, INT16_MIN - p->in_zero), most = product(p, p->in, INT16_MAX - p->in_zero);
    const double step = tflite_as_wide(sum(p, most, -least) / PIECES, p->narrow);
    ends e = {product(p, p->out, INT16_MIN - p->out_zero), product(p, p->out, INT16_MAX - p->out_zero), 0};
    e.steps = tflite_as_wide(65536.0 / sum(p, e.high, -e.low), p->narrow);
    for (int i = 0; i <= PIECES; i++) {
        const double x = i < PIECES ? sum(p, least, product(p, (double)i, step)) : most;
        const double at = round(in_steps(p, x, &e));
        double y = at;
        if (i < PIECES) {
            const double next = sum(p, least, product(p, (double)(i + 1), step));
            const double up = in_steps(p, next, &e), middle = sum(p, x, step / 2);
            const double chord = round(tflite_as_wide(sum(p, up, at) / 2, p->narrow));
            y -= round((chord - round(in_steps(p, middle, &e))) / 2);
        }
        t[i] = (int32_t)(y >= INT16_MIN ? y > INT16_MAX ? INT16_MAX : y : INT16_MIN);
    }
}

/* LUTLookup takes the rise of a piece in 16 bits, where one around a pole wraps. */
static bool has_steep_piece(const int32_t *t)
{
    for (int i = 0; i < PIECES; i++)
        if (t[i + 1] - t[i] > INT16_MAX || t[i + 1] - t[i] < INT16_MIN)
            return true;
    return false;
}

graph_value *tflite_on_pieces(tflite_node *n, const tflite_pieces *p, graph_value *v)
{
    const int64_t count = PIECES + 1;
    int32_t *table = arena_array(&n->c->mem, int32_t, (size_t)count);
    fill_table(p, table);
    graph_value *t = tflite_const(n, tensor_dense(n->c, DT_I32, 1, &count, table), "pieces");
    graph_value *at = tflite_binary(n, "add", compose_down(n, v, 7), tflite_i32(n, PIECES / 2));
    graph_value *first[2] = {t, at}, *last[2] = {t, tflite_binary(n, "add", at, tflite_i32(n, 1))};
    graph_value *a = tflite_emit(n, "take", 2, first, 0, NULL);
    graph_value *b = tflite_emit(n, "take", 2, last, 0, NULL);
    graph_value *way = tflite_binary(n, "bitwise_and", v, tflite_i32(n, 127));
    graph_value *rise = tflite_binary(n, "subtract", b, a);
    if (has_steep_piece(table))
        rise = tflite_cast(n, tflite_cast(n, rise, DT_I16), DT_I32);
    rise = tflite_binary(n, "multiply", way, rise);
    rise = tflite_binary(n, "add", rise, tflite_i32(n, 64));
    return tflite_binary(n, "add", a, compose_down(n, rise, 7));
}
