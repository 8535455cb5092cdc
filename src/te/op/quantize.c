/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of quantisation (ONNX QuantizeLinear, DequantizeLinear: round half to even, saturate).
 * Scale and zero point are operands: one number, one per index of an axis, or one per block along an axis. */
#include "graph/op/nn.h"

#include "te/op/util.h"

#include <string.h>

typedef struct quant_ctx {
    const te_tensor *x, *scale, *zero;
    uint32_t axis;
    int64_t block;
    dtype out;
    bool half_up, half_away;
} quant_ctx;

/* scale or zero point for element idx */
static tir_expr_ref param_at(te_graph *g, const quant_ctx *v, const te_tensor *t, tir_expr_ref const *idx)
{
    tir_expr_ref at[TYPE_MAX_RANK];
    if (t->rank == 0)
        return te_read(g, t, NULL);
    if (t->rank == 1 && v->block == 0) {
        at[0] = tir_is_const(t->shape[0], 1) ? te_i64(g, 0) : idx[v->axis];
        return te_read(g, t, at);
    }
    memcpy(at, idx, t->rank * sizeof *at);
    at[v->axis] = tir_floordiv(g->c, idx[v->axis], te_i64(g, v->block ? v->block : 1));
    return te_read(g, t, at);
}

static bool quant_setup(te_graph *g, const graph_node *n, te_tensor *const *in, quant_ctx *v)
{
    int32_t axis = 0;
    int64_t raw = graph_attr_int(n, "axis");
    *v = (quant_ctx){.x = in[0], .scale = in[1], .zero = n->n_inputs > 2 ? in[2] : NULL, .out = te_out_type(n, 0)->dt};
    v->block = graph_attr_int(n, "block_size");
    bool per_tensor = in[1]->rank == 0 || (in[1]->rank == 1 && tir_is_const(in[1]->shape[0], 1));
    if (!per_tensor && !infer_axis(g->c, n, raw, (int32_t)in[0]->rank, &axis))
        return false;
    v->axis = (uint32_t)axis;
    if (!dtype_usable(v->out) || !dtype_usable(in[0]->dt))
        return diag_error(&g->c->diags, DIAG_UNSUPPORTED, n->loc, "%s between %s and %s has no kernel yet", n->op->name,
                          dtype_name(in[0]->dt), dtype_name(v->out));
    return true;
}

/* q rounded to an integer, halves up; nothing here is rounded itself. */
static tir_expr_ref half_up(compiler *c, tir_expr_ref q)
{
    tir_expr_ref below = tir_call1(c, TIR_FLOOR, q);
    tir_expr_ref up = tir_binary(c, TIR_GE, tir_sub(c, q, below), tir_float(c, DT_F32, 0.5));
    return tir_add(c, below, tir_select(c, up, tir_float(c, DT_F32, 1.0), tir_float(c, DT_F32, 0.0)));
}

/* q rounded to an integer, halves away from 0. */
static tir_expr_ref half_away(compiler *c, tir_expr_ref q)
{
    tir_expr_ref whole = tir_call1(c, TIR_TRUNC, q), rest = tir_sub(c, q, whole), zero = tir_float(c, DT_F32, 0);
    tir_expr_ref up = tir_binary(c, TIR_GE, rest, tir_float(c, DT_F32, 0.5));
    tir_expr_ref down = tir_binary(c, TIR_LE, rest, tir_float(c, DT_F32, -0.5));
    tir_expr_ref step = tir_select(c, down, tir_float(c, DT_F32, -1), zero);
    return tir_add(c, whole, tir_select(c, up, tir_float(c, DT_F32, 1), step));
}

static tir_expr_ref quantize_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const quant_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref x = tir_cast(c, DT_F32, te_read(g, v->x, idx));
    tir_expr_ref s = tir_cast(c, DT_F32, param_at(g, v, v->scale, idx));
    tir_expr_ref q = tir_binary(c, TIR_DIV, x, s);
    if (dtype_is_float(v->out)) { /* what a float of 8 bits is made of: encode_float rounds */
        if (v->zero)
            q = tir_add(c, q, tir_cast(c, DT_F32, param_at(g, v, v->zero, idx)));
        return tir_cast(c, v->out, q);
    }
    q = v->half_up ? half_up(c, q) : v->half_away ? half_away(c, q) : tir_call1(c, TIR_RINT, q);
    if (v->zero)
        q = tir_add(c, q, tir_cast(c, DT_F32, param_at(g, v, v->zero, idx)));
    q = tir_max(c, q, tir_float(c, DT_F32, (double)dtype_min_int(v->out)));
    q = tir_min(c, q, tir_float(c, DT_F32, (double)dtype_max_int(v->out)));
    return tir_cast(c, v->out, q);
}

bool compute_quantize(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    quant_ctx v;
    if (!quant_setup(g, n, in, &v))
        return false;
    v.half_up = strcmp(graph_attr_string(n, "rounding"), "half_up") == 0;
    v.half_away = strcmp(graph_attr_string(n, "rounding"), "half_away") == 0;
    out[0] = te_compute(g, "quantize", v.out, in[0]->rank, in[0]->shape, quantize_body, &v);
    return true;
}

/* (x - zero) * scale; the difference is exact in i32 for 8- and 16-bit types. What a sum of products becomes is rounded
 * before a bias is added, as onnxruntime does it. */
static tir_expr_ref dequantize_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const quant_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref x = te_read(g, v->x, idx), s = tir_cast(c, DT_F32, param_at(g, v, v->scale, idx));
    if (v->zero && dtype_is_int(v->x->dt))
        x = tir_sub(c, tir_cast(c, DT_I32, x), tir_cast(c, DT_I32, param_at(g, v, v->zero, idx)));
    tir_expr_ref y = tir_mul(c, tir_cast(c, DT_F32, x), s);
    if (v->x->dt == DT_I32 || v->x->dt == DT_I64)
        y = tir_call1(c, TIR_APART, y);
    return tir_cast(c, v->out, y);
}

bool compute_dequantize(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    quant_ctx v;
    if (!quant_setup(g, n, in, &v))
        return false;
    out[0] = te_compute(g, "dequantize", v.out, in[0]->rank, in[0]->shape, dequantize_body, &v);
    out[0]->node->inline_hint = true; /* the numbers are a quarter of what they stand for */
    return true;
}
