/* SPDX-License-Identifier: Apache-2.0 */
/* InjectConv2DTransposeSkip: the inner nest of a transposed convolution under pragma_conv2d_transpose_gemm becomes one
 * micro-op, guarded by the condition under which its input is data and no inserted zero. Where loops around it are
 * unrolled the condition is constant, and taps on zeros cost nothing. */
#include "tir/build.h"
#include "target/vta/pass/vta.h"
#include "tir/walk.h"

#define MAX_LOOPS 4u

typedef struct nest {
    tir_stmt *loops[MAX_LOOPS], *store;
    uint32_t n, axis[MAX_LOOPS]; /* of a loop: 0 rows of the batch, 1 columns of the output, 2 of the input */
    tir_expr_ref cond; /* NULL: always data */
    tir_expr_ref inp, wgt;
} nest;

/* The load of the scratchpad in e, below casts that keep values and zeros that stand in for it. */
static tir_expr_ref operand(vta_pass *p, nest *k, tir_expr_ref e)
{
    while (tir_is_widening(e) || (e->kind == TIR_SELECT && tir_is_const(e->args[2], 0))) {
        if (e->kind == TIR_SELECT)
            k->cond = tir_and(p->c, k->cond, e->args[0]);
        e = e->args[e->kind == TIR_SELECT ? 1 : 0];
    }
    return e->kind == TIR_LOAD ? e : NULL;
}

static bool lies_in(tir_expr_ref e, enum vta_mem m)
{
    enum vta_mem is;
    return e && vta_scratchpad(e->u.buffer, &is) && is == m && e->n_args == 1;
}

/* out = out + inp*wgt */
static bool read_update(vta_pass *p, nest *k)
{
    tir_expr_ref sum = k->store->value;
    if (!tir_is_binary(sum, TIR_ADD))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        tir_expr_ref old = sum->args[i], product = sum->args[1 - i];
        bool is_old = old->kind == TIR_LOAD && old->u.buffer == k->store->buffer && old->n_args == 1 &&
                      tir_expr_equal(old->args[0], k->store->indices[0]);
        if (!is_old || !tir_is_binary(product, TIR_MUL))
            continue;
        tir_expr_ref a = operand(p, k, product->args[0]), b = operand(p, k, product->args[1]);
        bool swapped = lies_in(a, VTA_MEM_WGT);
        k->inp = swapped ? b : a;
        k->wgt = swapped ? a : b;
        return lies_in(k->inp, VTA_MEM_INP) && lies_in(k->wgt, VTA_MEM_WGT);
    }
    return false;
}

/* The steps of the loops in an index must be those of their axes within a tile; *out is where the tile starts. */
static bool tile_start(vta_pass *p, const nest *k, tir_expr_ref index, int64_t const *steps, tir_expr_ref *out)
{
    linear l;
    if (!vta_linear(p, index, &l))
        return false;
    for (uint32_t i = 0; i < k->n; i++) {
        int64_t step;
        if (!vta_take_var(&l, k->loops[i]->var, &step) || step != steps[k->axis[i]])
            return false;
    }
    *out = linear_build(p->bounds, index->type.dt, &l);
    return true;
}

/* The loops are rows of the batch, columns of the output, and, in the update, of the input: those of several
 * iterations, because the others have been simplified away. */
static bool loops_fit(const vta_pass *p, nest *k, bool update)
{
    const int64_t all[3] = {p->g.batch, p->g.block_out, update ? p->g.block_in : 1};
    int64_t extent;
    uint32_t n = 0;
    for (uint32_t axis = 0; axis < 3; axis++)
        if (all[axis] > 1)
            k->axis[n++] = axis;
    if (k->n != n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!tir_is_int(k->loops[i]->extent, &extent) || extent != all[k->axis[i]] ||
            !tir_is_const(k->loops[i]->min, 0))
            return false;
    return true;
}

static bool uses_loops(const nest *k, tir_expr_ref e)
{
    for (uint32_t i = 0; i < k->n; i++)
        if (tir_uses_var(e, k->loops[i]->var))
            return true;
    return false;
}

static tir_stmt *write(vta_pass *p, const nest *k, bool update)
{
    int64_t in = p->g.block_in, out = p->g.block_out;
    const int64_t out_steps[] = {out, 1, 0}, inp_steps[] = {in, 0, 1}, wgt_steps[] = {0, in, 1};
    tir_expr_ref at = NULL, zero = vta_int(p, 0);
    tir_expr_ref args[VTA_UOP_ARGS] = {zero, vta_int(p, !update), zero, zero, zero, zero, zero, zero};
    if (!tile_start(p, k, k->store->indices[0], out_steps, &at))
        return NULL;
    args[VTA_UOP_DST] = tir_address(p->c, k->store->buffer, 1, &at);
    if (update && !tile_start(p, k, k->inp->args[0], inp_steps, &at))
        return NULL;
    if (update)
        args[VTA_UOP_SRC] = tir_address(p->c, k->inp->u.buffer, 1, &at);
    if (update && !tile_start(p, k, k->wgt->args[0], wgt_steps, &at))
        return NULL;
    if (update)
        args[VTA_UOP_WGT] = tir_address(p->c, k->wgt->u.buffer, 1, &at);
    tir_stmt *push = tir_evaluate(p->c, tir_extern(p->c, "tir.vta.uop_push", tir_scalar(DT_I32), VTA_UOP_ARGS, args));
    tir_stmt *task = vta_coproc_scope(p, VTA_QUEUE_COMPUTE, vta_uop_scope(p, VTA_PUSH_GEMM, push));
    return k->cond ? tir_if(p->c, k->cond, task, NULL) : task;
}

static tir_stmt *inject(vta_pass *p, tir_stmt *s)
{
    nest k = {0};
    enum vta_mem m;
    for (; s->kind == TIR_FOR && k.n < MAX_LOOPS; s = s->body)
        k.loops[k.n++] = s;
    k.store = s;
    bool ok = s->kind == TIR_STORE && s->n_indices == 1 && vta_scratchpad(s->buffer, &m) && m == VTA_MEM_ACC;
    bool update = ok && !tir_is_const(s->value, 0);
    ok = ok && (!update || read_update(p, &k)) && loops_fit(p, &k, update) && !(k.cond && uses_loops(&k, k.cond));
    tir_stmt *made = ok ? write(p, &k, update) : NULL;
    if (!made)
        (void)vta_error(
            p,
            "a 'conv2d_transpose_gemm' nest (%s) is neither one tile of accumulators set to 0 nor one input "
            "tile times one weight tile added to it",
            s->buffer ? s->buffer->name : "no store");
    return made;
}

static tir_stmt *inject_marked(vta_pass *p, tir_stmt *s)
{
    tir_stmt *made = vta_is_attr(s, "pragma_conv2d_transpose_gemm") ? inject(p, s->body) : NULL;
    return made ? made : s;
}

bool tir_pass_inject_conv2d_transpose_skip(compiler *c, tir_func *f)
{
    return vta_pass_run(c, f, inject_marked);
}
