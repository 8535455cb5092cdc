/* SPDX-License-Identifier: Apache-2.0 */
/* Long sums of floats. Added one after the other, n numbers have an error of up to n roundings of the sum of their
 * amounts. So a long chain of additions is cut into blocks, whose sums are added: the error of n additions in blocks of
 * b grows with b + n / b. This holds for every stage, with a schedule and without, so that the interpreter, constants
 * that are folded and all targets mean the same by a sum; what a schedule changes is which numbers are in one chain.
 * Shorter chains are as they were. docs/reference/operators.md states the bound. */
#include "te/stage.h"

#define LONG_CHAIN   256
#define LONG_PRODUCT 1024 /* of products: convolutions fill packages of small networks, whose code stays as short */
#define LEAST_BLOCK  128  /* additions: what a block costs beside them cannot be measured */
#define TILE_BLOCK   512  /* of products: tiles fill the registers, so that sums are stored and loaded for a block */
#define MOST_BESIDE  8    /* sums of a block that grow side by side, vectors or numbers: registers hold them twice */
#define MOST_TILE    32   /* of products */
#define MOST_ROW     64   /* of sums that an array holds */

static bool adds_floats(const te_node *op)
{
    const te_reducer *r = op->reducer;
    if (!r || r->n != 1 || op->n_outputs != 1 || !dtype_is_float(op->outputs[0]->dt))
        return false;
    tir_expr_ref e = r->combine[0];
    return tir_is_binary(e, TIR_ADD) && e->args[0]->kind == TIR_VAR && e->args[1]->kind == TIR_VAR &&
           e->args[0]->u.var == r->acc[0] && e->args[1]->u.var == r->x[0];
}

/* A product of two numbers, as convolutions and matrix products add; not a square. */
static bool is_product(tir_expr_ref e)
{
    while (e->kind == TIR_CAST || e->kind == TIR_SELECT)
        e = e->args[e->kind == TIR_SELECT ? 1 : 0];
    return tir_is_binary(e, TIR_MUL) && !tir_expr_equal(e->args[0], e->args[1]);
}

static int64_t most(const te_lowering *lw, const te_iter *it)
{
    const int64_t m = te_most(lw->g, it->extent);
    return m > 0 ? m : TE_USUAL_EXTENT;
}

/* Additions of one chain. */
static int64_t chain_length(const te_lowering *lw, const te_stage *st)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < st->leaves.len; i++)
        if (st->leaves.data[i]->kind == AXIS_REDUCE && !i64_mul(n, most(lw, st->leaves.data[i]), &n))
            return TE_MOST_EXTENT;
    return n;
}

/* About the root of n: then a block is as long as there are blocks. */
static int64_t block_length(int64_t n)
{
    int64_t b = LEAST_BLOCK;
    while (b < n / b)
        b *= 2;
    return b;
}

/* Nothing stands in the loop, or hangs on it, that has to see each of its iterations in one loop. */
static bool may_be_cut(const te_lowering *lw, const te_stage *st, const te_iter *it)
{
    for (uint32_t i = 0; st->hosts && i < lw->stages.len; i++)
        if (lw->stages.data[i]->live && lw->stages.data[i]->attach == ATTACH_AT && lw->stages.data[i]->at == st)
            return false;
    return it->loop == FOR_SERIAL && !it->intrin && it->notes.len == 0;
}

/* A number of steps near `steps` that divides n; none near: `steps`. */
static int64_t divisor_near(int64_t n, int64_t steps)
{
    for (int64_t d = 0; d <= steps / 2; d++) {
        if (n % (steps - d) == 0)
            return steps - d;
        if (n % (steps + d) == 0)
            return steps + d;
    }
    return steps;
}

/* The sums of a block: one for each iteration of the data loops inside. NULL: too many, or who knows how many. */
static const tir_buffer *block_sums(te_lowering *lw, const te_stage *st, uint32_t at)
{
    compiler *c = lw->c;
    tir_expr_ref *extents = arena_array(&c->mem, tir_expr_ref, st->leaves.len + 1u);
    uint32_t rank = 0;
    int64_t vectors = 1, lanes = 1;
    bool registers = true; /* indices are constant once loops are unrolled */
    for (uint32_t i = at + 1; i < st->leaves.len; i++) {
        const te_iter *it = st->leaves.data[i];
        int64_t n = 0, *count = it->loop == FOR_VECTORIZED ? &lanes : &vectors;
        if (it->kind == AXIS_REDUCE)
            continue;
        if (!tir_is_int(it->extent, &n) || n > MOST_ROW || it->intrin || it->notes.len > 0)
            return NULL;
        *count *= n;
        if (*count > MOST_ROW)
            return NULL;
        registers &= it->loop == FOR_VECTORIZED || it->loop == FOR_UNROLLED;
        extents[rank++] = it->extent;
    }
    const int64_t most_vectors = is_product(st->op.body[0]) ? MOST_TILE : MOST_BESIDE;
    if (registers ? vectors > most_vectors : vectors * lanes > MOST_ROW)
        return NULL;
    if (rank == 0)
        extents[rank++] = tir_i64(c, 1);
    return tir_new_buffer(c, arena_printf(&c->mem, "%s_block", st->name), st->op.outputs[0]->dt, rank, extents,
                          registers ? SCOPE_REG : SCOPE_LOCAL);
}

/* The loop that is cut, and how many of its iterations a block has: with the reduction loops inside it they are
 * `length` additions. */
static void find_loop(const te_lowering *lw, const te_stage *st, int64_t length, te_blocks *out)
{
    int64_t inside = 1;
    for (uint32_t i = st->leaves.len; i-- > 0;) {
        const te_iter *it = st->leaves.data[i];
        if (it->kind != AXIS_REDUCE)
            continue;
        out->at = i;
        const int64_t n = most(lw, it);
        if (n >= (length + inside - 1) / inside) {
            out->steps = (length + inside - 1) / inside;
            break;
        }
        inside *= n;
    }
}

te_blocks te_find_blocks(te_lowering *lw, const te_stage *st, tir_expr_ref const *guards)
{
    const te_blocks none = {.at = st->leaves.len};
    te_blocks b = none;
    const int64_t chain = adds_floats(&st->op) ? chain_length(lw, st) : 0;
    const bool product = chain > 0 && is_product(st->op.body[0]);
    int64_t n = 0;
    if (chain <= LONG_CHAIN || (chain <= LONG_PRODUCT && product))
        return none;
    find_loop(lw, st, product ? TILE_BLOCK : block_length(chain), &b);
    const te_iter *it = st->leaves.data[b.at];
    if (!may_be_cut(lw, st, it) || (product && b.steps < TILE_BLOCK / 2)) /* windows in a block: loops cost as much */
        return none;
    for (uint32_t i = 0; guards[i]; i++)
        b.last_apart |= tir_uses_var(guards[i], it->var);
    const bool known = tir_is_int(it->extent, &n);
    if (b.last_apart && !known) /* the loop is partitioned by a bound that only it has as a whole */
        return none;
    if (known)
        b.steps = divisor_near(n, b.steps);
    b.sums = block_sums(lw, st, b.at);
    return b.sums ? b : none;
}
