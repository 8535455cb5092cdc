/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of encode_float and decode_float: floats of 8, 6 and 4 bits as codes in bytes. All is done on the
 * bits of an f32 or f64, so that every machine gives the same codes. */
#include "te/op/util.h"

#include <string.h>

typedef struct format {
    dtype dt;
    int64_t digits, bias; /* of the fraction; of the exponent */
    int64_t most;         /* code of the largest number */
    int64_t beyond;       /* what is above it, unless saturated: infinity or NaN */
    int64_t nan;
    int64_t sign;         /* bit of the sign; 0: there is none */
    bool zero_signed, nan_signed;
} format;

static const format formats[] = {
    {DT_F8E4M3FN, 3, 7, 0x7e, 0x7f, 0x7f, 0x80, true, true},
    {DT_F8E4M3FNUZ, 3, 8, 0x7f, 0x80, 0x80, 0x80, false, false},
    {DT_F8E5M2, 2, 15, 0x7b, 0x7c, 0x7e, 0x80, true, true},
    {DT_F8E5M2FNUZ, 2, 16, 0x7f, 0x80, 0x80, 0x80, false, false},
    {DT_F4E2M1, 1, 1, 7, 7, 8, 8, true, false}, /* NaN becomes -0, as ml_dtypes has it */
    {DT_F6E2M3, 3, 1, 0x1f, 0x1f, 0x20, 0x20, true, false},
    {DT_F6E3M2, 2, 3, 0x1f, 0x1f, 0x20, 0x20, true, false},
    {DT_F8E8M0, 0, 127, 0xfe, 0xff, 0xff, 0, false, false},
};

/* The format of an attribute; its error says which there are. */
static const format *find_format(te_graph *g, const graph_node *n)
{
    const dtype dt = graph_attr_dtype(n, "format");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].dt == dt)
            return &formats[i];
    (void)diag_error(&g->c->diags, DIAG_TYPE, n->loc, "%s is no float of 8, 6 or 4 bits", dtype_name(dt));
    return NULL;
}

/* The wide float that is taken apart: f32, or f64 for f64. */
typedef struct wide {
    dtype dt, bits;
    int64_t digits, bias;
} wide;

static wide wide_of(dtype dt)
{
    return dt == DT_F64 ? (wide){DT_F64, DT_U64, 52, 1023} : (wide){DT_F32, DT_U32, 23, 127};
}

typedef struct coding {
    const te_tensor *x;
    const format *f;
    wide w;
    dtype out;
    bool saturate;
    const char *round; /* of E8M0 */
} coding;

static tir_expr_ref word(compiler *c, const coding *v, int64_t k)
{
    return tir_int(c, v->w.bits, k);
}

static tir_expr_ref op2(compiler *c, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(c, op, a, b);
}

/* Half to even, behind `drop` bits. */
static tir_expr_ref rounded(compiler *c, const coding *v, tir_expr_ref m, int64_t drop)
{
    tir_expr_ref odd = op2(c, TIR_BITAND, op2(c, TIR_SHR, m, word(c, v, drop)), word(c, v, 1));
    m = tir_add(c, tir_add(c, m, word(c, v, ((int64_t)1 << (drop - 1)) - 1)), odd);
    return op2(c, TIR_SHR, m, word(c, v, drop));
}

/* The code of |x|, without regard to the largest: from the bits of a number that is normal in the format, else by the
 * sum with a power of two whose last bit is the format's least number. */
static tir_expr_ref magnitude(compiler *c, const coding *v, tir_expr_ref mag)
{
    const wide *w = &v->w;
    const format *f = v->f;
    const int64_t drop = w->digits - f->digits, normal = (w->bias - f->bias + 1) << w->digits;
    const int64_t magic = (w->bias + 1 - f->bias - f->digits + w->digits) << w->digits;
    tir_expr_ref big = rounded(c, v, tir_sub(c, op2(c, TIR_MAX, mag, word(c, v, normal)),
                                             word(c, v, (w->bias - f->bias) << w->digits)), drop);
    tir_expr_ref low = op2(c, TIR_MIN, mag, word(c, v, normal));
    tir_expr_ref sum = tir_add(c, tir_call1(c, TIR_FROM_BITS, low), tir_call1(c, TIR_FROM_BITS, word(c, v, magic)));
    tir_expr_ref small = tir_sub(c, tir_call1(c, TIR_TO_BITS, sum), word(c, v, magic));
    return tir_select(c, op2(c, TIR_LT, mag, word(c, v, normal)), small, big);
}

static tir_expr_ref encode_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const coding *v = ctx;
    const format *f = v->f;
    compiler *c = g->c;
    const int64_t infinity = (2 * v->w.bias + 1) << v->w.digits, top = v->w.digits + (v->w.dt == DT_F64 ? 11 : 8);
    tir_expr_ref bits = tir_call1(c, TIR_TO_BITS, tir_cast(c, v->w.dt, te_read(g, v->x, idx)));
    tir_expr_ref sign = op2(c, TIR_SHR, bits, word(c, v, top));
    tir_expr_ref mag = op2(c, TIR_BITAND, bits, word(c, v, (int64_t)(((uint64_t)1 << top) - 1)));
    tir_expr_ref code = magnitude(c, v, mag), past = op2(c, TIR_GT, code, word(c, v, f->most));
    tir_expr_ref signed_bit = tir_mul(c, sign, word(c, v, f->sign)), zero = word(c, v, 0);
    code = tir_select(c, past, word(c, v, v->saturate ? f->most : f->beyond), code);
    if (!f->zero_signed)
        signed_bit = tir_select(c, op2(c, TIR_EQ, code, zero), zero, signed_bit);
    tir_expr_ref nan = word(c, v, f->nan);
    if (f->nan_signed)
        nan = op2(c, TIR_BITOR, nan, signed_bit);
    code = tir_select(c, op2(c, TIR_GT, mag, word(c, v, infinity)), nan, op2(c, TIR_BITOR, code, signed_bit));
    return tir_cast(c, DT_U8, code);
}

/* E8M0 is the exponent of an f32 alone; the rules are those of ONNX's own to_float8e8m0. */
static tir_expr_ref exponent_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const coding *v = ctx;
    compiler *c = g->c;
    tir_expr_ref bits = tir_call1(c, TIR_TO_BITS, tir_cast(c, DT_F32, te_read(g, v->x, idx)));
    tir_expr_ref e = op2(c, TIR_BITAND, op2(c, TIR_SHR, bits, word(c, v, 23)), word(c, v, 255)), up = NULL;
    tir_expr_ref rest = op2(c, TIR_BITAND, bits, word(c, v, 0x7fffff)), half = word(c, v, 0x400000);
    if (strcmp(v->round, "up") == 0)
        up = op2(c, TIR_GT, rest, word(c, v, 0));
    else if (strcmp(v->round, "nearest") == 0)
        up = op2(c, TIR_OR, op2(c, TIR_GT, rest, half),
                 op2(c, TIR_AND, op2(c, TIR_EQ, rest, half), op2(c, TIR_GT, e, word(c, v, 0))));
    if (up)
        up = op2(c, TIR_AND, up, op2(c, TIR_LT, e, word(c, v, v->saturate ? 254 : 255)));
    if (up)
        e = tir_select(c, up, tir_add(c, e, word(c, v, 1)), e);
    return tir_cast(c, DT_U8, e);
}

bool compute_encode_float(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const format *f = find_format(g, n);
    if (!f)
        return false;
    const bool exponent = f->dt == DT_F8E8M0;
    coding v = {.x = in[0], .f = f, .w = wide_of(exponent ? DT_F32 : in[0]->dt)};
    v.saturate = graph_attr_int(n, "saturate") != 0;
    v.round = graph_attr_string(n, "round_mode");
    if (exponent && strcmp(v.round, "up") != 0 && strcmp(v.round, "down") != 0 && strcmp(v.round, "nearest") != 0)
        return diag_error(&g->c->diags, DIAG_TYPE, n->loc, "round_mode \"%s\" is none of up, down, nearest", v.round);
    out[0] = te_compute(g, n->op->name, DT_U8, in[0]->rank, in[0]->shape, exponent ? exponent_body : encode_body, &v);
    out[0]->node->inline_hint = true;
    return true;
}

/* The number of an exponent and fraction above zero that is no NaN. */
static tir_expr_ref number(compiler *c, const coding *v, tir_expr_ref code)
{
    const format *f = v->f;
    const int64_t drop = 23 - f->digits;
    tir_expr_ref shifted = op2(c, TIR_SHL, code, word(c, v, drop));
    tir_expr_ref normal = tir_add(c, shifted, word(c, v, (127 - f->bias) << 23));
    if (f->dt == DT_F8E8M0) /* 2^-127 has no exponent in an f32 */
        return tir_call1(c, TIR_FROM_BITS,
                         tir_select(c, op2(c, TIR_EQ, code, word(c, v, 0)), word(c, v, 0x400000), shifted));
    tir_expr_ref least = tir_call1(c, TIR_FROM_BITS, word(c, v, (127 + 1 - f->bias - f->digits) << 23));
    tir_expr_ref small = tir_mul(c, tir_cast(c, DT_F32, code), least);
    return tir_select(c, op2(c, TIR_LT, code, word(c, v, (int64_t)1 << f->digits)), small,
                      tir_call1(c, TIR_FROM_BITS, normal));
}

static tir_expr_ref decode_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const coding *v = ctx;
    const format *f = v->f;
    compiler *c = g->c;
    tir_expr_ref all = tir_cast(c, DT_U32, te_read(g, v->x, idx)), code = all;
    if (f->sign)
        code = op2(c, TIR_BITAND, all, word(c, v, f->sign - 1));
    tir_expr_ref y = number(c, v, code), nan = tir_call1(c, TIR_FROM_BITS, word(c, v, 0x7fc00000));
    if (f->dt == DT_F8E5M2)
        y = tir_select(c, op2(c, TIR_EQ, code, word(c, v, f->beyond)),
                       tir_call1(c, TIR_FROM_BITS, word(c, v, 0x7f800000)), y);
    if (f->sign)
        y = tir_select(c, op2(c, TIR_GE, all, word(c, v, f->sign)), tir_mul(c, y, tir_float(c, DT_F32, -1)), y);
    if (f->dt == DT_F8E4M3FN || f->dt == DT_F8E5M2)
        y = tir_select(c, op2(c, TIR_GT, code, word(c, v, f->dt == DT_F8E5M2 ? f->beyond : f->most)), nan, y);
    else if (f->beyond != f->most) /* else there is none */
        y = tir_select(c, op2(c, TIR_EQ, all, word(c, v, f->nan)), nan, y);
    return tir_cast(c, v->out, y);
}

bool compute_decode_float(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    coding v = {.x = in[0], .f = find_format(g, n), .w = wide_of(DT_F32), .out = te_out_type(n, 0)->dt};
    if (!v.f)
        return false;
    out[0] = te_compute(g, n->op->name, v.out, in[0]->rank, in[0]->shape, decode_body, &v);
    out[0]->node->inline_hint = true;
    return true;
}

/* --- the same bits as another type --- */

static tir_expr_ref bits_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const coding *v = ctx;
    compiler *c = g->c;
    tir_expr_ref x = te_read(g, v->x, idx);
    if (dtype_is_float(v->x->dt) == dtype_is_float(v->out))
        return tir_cast(c, v->out, x);
    if (dtype_is_float(v->x->dt))
        return tir_cast(c, v->out, tir_call1(c, TIR_TO_BITS, x));
    return tir_call1(c, TIR_FROM_BITS, tir_cast(c, v->out == DT_F64 ? DT_U64 : DT_U32, x));
}

/* Integers of one width wrap into each other; of floats these are f32 or f64 (the type relation sees to both). */
bool compute_bit_cast(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    coding v = {.x = in[0], .out = te_out_type(n, 0)->dt};
    out[0] = te_compute(g, n->op->name, v.out, in[0]->rank, in[0]->shape, bits_body, &v);
    out[0]->node->inline_hint = true;
    return true;
}
