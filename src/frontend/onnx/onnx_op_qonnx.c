/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of QONNX (qonnx.custom_op.general, which Brevitas calls onnx.brevitas): floats that are rounded to the
 * steps that a number of some bits has, and stay floats. The steps are those of the package qonnx. */
#include "frontend/onnx/onnx_import.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static graph_value *with_number(onnx_node *n, const char *op, graph_value *x, double v)
{
    return onnx_binary(n, op, x, onnx_const_like(n, x, v));
}

/* op of how far it is from 0 (moved by `by`), to the same side. */
static graph_value *by_distance(onnx_node *n, const char *op, graph_value *x, double by)
{
    graph_value *far = onnx_unary(n, "abs", x);
    far = by != 0 ? with_number(n, "add", far, by) : far;
    return onnx_binary(n, "multiply", onnx_unary(n, "sign", x), onnx_unary(n, op, far));
}

static graph_value *rounded(onnx_node *n, graph_value *x, const char *usual)
{
    static const struct {
        const char *name, *op;
        bool far; /* of the distance from 0, moved by `by` */
        double by;
    } modes[] = {
        {"ROUND", "round", false, 0},   {"HALF_EVEN", "round", false, 0},  {"CEIL", "ceil", false, 0},
        {"FLOOR", "floor", false, 0},   {"UP", "ceil", true, 0},           {"DOWN", "floor", true, 0},
        {"HALF_UP", "floor", true, .5}, {"HALF_DOWN", "ceil", true, -.5},
    };
    const char *mode = onnx_attr_string(n, "rounding_mode", usual);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcasecmp(modes[i].name, mode) == 0)
            return modes[i].far ? by_distance(n, modes[i].op, x, modes[i].by) : onnx_unary(n, modes[i].op, x);
    return onnx_refuse(n, DIAG_FORMAT, "rounding_mode '%.40s' is none of ROUND, HALF_EVEN, CEIL, FLOOR, UP, DOWN, "
                                       "HALF_UP, HALF_DOWN", mode);
}

/* x/scale + zero, and the way back. */
static graph_value *in_steps(onnx_node *n, graph_value *scale, graph_value *zero)
{
    return onnx_binary(n, "add", onnx_binary(n, "divide", onnx_in(n, 0), scale), zero);
}

static graph_value *out_of_steps(onnx_node *n, graph_value *y, graph_value *scale, graph_value *zero)
{
    return onnx_binary(n, "multiply", onnx_binary(n, "subtract", y, zero), scale);
}

/* How many bits operand i says. */
static bool read_bits(onnx_node *n, uint32_t i, double *out)
{
    if (!onnx_float_of(onnx_in(n, i), out))
        return onnx_fail(n, DIAG_UNSUPPORTED, "the number of bits must be one constant number");
    return (*out >= 0 && *out <= 64) || onnx_fail(n, DIAG_FORMAT, "%g bits", *out);
}

/* Between the least and the largest number of so many bits. */
static graph_value *within(onnx_node *n, graph_value *y, double bits, bool is_signed)
{
    const bool narrow = onnx_attr_int(n, "narrow", 0) != 0;
    const double half = exp2(bits - 1);
    const double least = is_signed ? narrow - half : 0, most = is_signed ? half - 1 : exp2(bits) - 1 - narrow;
    return with_number(n, "maximum", with_number(n, "minimum", y, most), least);
}

static graph_value *one_or_minus_one(onnx_node *n, graph_value *x)
{
    graph_value *above = with_number(n, "greater_equal", x, 0);
    return onnx_where(n, above, onnx_const_like(n, x, 1), onnx_const_like(n, x, -1));
}

bool onnx_op_qonnx_quant(onnx_node *n)
{
    const bool is_signed = onnx_attr_int(n, "signed", 1) != 0;
    graph_value *scale = onnx_in(n, 1), *zero = onnx_in(n, 2);
    double bits = 0;
    if (!read_bits(n, 3, &bits))
        return false;
    graph_value *y = in_steps(n, scale, zero);
    if (bits == 1 && is_signed) {
        (void)onnx_attr_int(n, "narrow", 0);
        (void)onnx_attr_string(n, "rounding_mode", "");
        y = one_or_minus_one(n, y);
    } else {
        y = rounded(n, within(n, y, bits, is_signed), "ROUND");
    }
    return onnx_alias(n, 0, out_of_steps(n, y, scale, zero));
}

bool onnx_op_qonnx_bipolar_quant(onnx_node *n)
{
    return onnx_alias(n, 0, onnx_binary(n, "multiply", one_or_minus_one(n, onnx_in(n, 0)), onnx_in(n, 1)));
}

/* x, scale, zero, bits before, bits behind: the lowest bits go, and the steps stay. */
bool onnx_op_qonnx_trunc_1(onnx_node *n)
{
    graph_value *scale = onnx_in(n, 1), *zero = onnx_in(n, 2);
    double before = 0, behind = 0;
    if (!read_bits(n, 3, &before) || !read_bits(n, 4, &behind))
        return false;
    graph_value *y = onnx_unary(n, "round", in_steps(n, scale, zero));
    y = rounded(n, with_number(n, "divide", y, exp2(before - behind)), "FLOOR");
    return onnx_alias(n, 0, out_of_steps(n, y, scale, zero));
}

/* x, scale, zero, bits before, scale behind, bits behind: the ratio of the scales is a power of two. */
bool onnx_op_qonnx_trunc(onnx_node *n)
{
    graph_value *scale = onnx_in(n, 1), *zero = onnx_in(n, 2), *other = onnx_in(n, 4);
    double bits = 0;
    if (!read_bits(n, 5, &bits))
        return false;
    graph_value *ratio = onnx_binary(n, "divide", other, scale);
    graph_value *by = with_number(n, "multiply", onnx_unary(n, "log", ratio), 1.4426950408889634);
    by = onnx_binary(n, "power", onnx_const_like(n, ratio, 2), onnx_unary(n, "round", by));
    graph_value *y = onnx_unary(n, "round", in_steps(n, scale, zero));
    y = within(n, onnx_binary(n, "divide", y, by), bits, onnx_attr_int(n, "signed", 1) != 0);
    return onnx_alias(n, 0, out_of_steps(n, rounded(n, y, "FLOOR"), other, onnx_binary(n, "divide", zero, by)));
}
