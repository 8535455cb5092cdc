/* SPDX-License-Identifier: Apache-2.0 */
/* say-rounds: C compilers write loops out where this costs more than it saves. The annotation TIR_ROUNDS in front of
 * such a loop says what they are told: to leave it alone, or to write out eight of its rounds. */
#include "tir/build.h"
#include "tir/facts.h"
#include "tir/intrin.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"

typedef struct rounds {
    const struct target *t;
    bool few_steps; /* the function takes no time to speak of, so its code counts */
} rounds;

/* --- small processors --- */

static bool calls_extern(const tir_stmt *s)
{
    if (s->kind == TIR_FOR)
        return false;
    const bool few = s->kind == TIR_EVALUATE && s->value->kind == TIR_INSTR && s->value->u.row->few;
    bool found = (s->kind == TIR_EVALUATE && !few && tir_has_extern(s->value)) || (s->body && calls_extern(s->body)) ||
                 (s->orelse && calls_extern(s->orelse));
    for (uint32_t i = 0; i < s->n_stmts && !found; i++)
        found = calls_extern(s->stmts[i]);
    return found;
}

typedef struct division {
    const tir_var *of;
    bool found;
} division;

static void find_division(void *ctx, tir_expr_ref x)
{
    division *d = ctx;
    const bool divides = x->kind == TIR_BINOP && (x->op == TIR_FLOORMOD || x->op == TIR_FLOORDIV);
    d->found |= divides && tir_uses_var(x->args[0], d->of);
}

/* The loop stores vectors narrowed to bytes. Unrolled, it would need more vector registers than there are. */
static bool ends_in_bytes(const tir_stmt *s)
{
    const tir_stmt *b = s->body;
    return b->kind == TIR_EVALUATE ? b->value->kind == TIR_INSTR && b->value->u.row->lanes > 1
                                   : b->kind == TIR_STORE && b->value->type.lanes > 1 && b->value->kind == TIR_CAST;
}

/* What the function of an intrinsic does takes far more time than a loop around it, and much code. Written out, a loop
 * has divisions of its variable done in front of loops around it. */
static bool stays_rolled(const rounds *x, const tir_stmt *s)
{
    division d = {s->var, false};
    if (!x->t->small)
        return false;
    if (x->few_steps || ends_in_bytes(s))
        return true;
    if (!calls_extern(s->body))
        return false;
    tir_visit_stmt(s->body, NULL, find_division, &d);
    return !d.found;
}

static void find_bytes(void *ctx, tir_expr_ref x)
{
    *(bool *)ctx |= x->kind == TIR_LOAD && dtype_bits(x->type.dt) == 8;
}

/* A sum of floats that are made of bytes, in a register: of eight instructions three are for the loop. */
static bool sums_bytes(const tir_stmt *s)
{
    int64_t n = 0;
    bool bytes = false;
    const tir_stmt *b = s->body;
    if (b->kind != TIR_STORE || b->buffer->scope != SCOPE_REG || b->buffer->dt != DT_F32 ||
        !tir_is_int(s->extent, &n) || n < 4)
        return false;
    tir_visit_expr(b->value, find_bytes, &bytes);
    return bytes;
}

/* --- processors with vectors --- */

#define TILE_SUMS  6  /* vectors that one step of a tile adds to */
#define FEW_REGS   16
#define SHORT_STEP 16 /* iterations that clang would write out */

/* Stores of vectors in straight code; -1: there is a loop. */
static int64_t vector_stores(const tir_stmt *s)
{
    if (!s || s->kind == TIR_FOR)
        return s ? -1 : 0;
    int64_t n = s->kind == TIR_STORE && s->value->type.lanes > 1, body = vector_stores(s->body),
            orelse = vector_stores(s->orelse);
    bool loop = body < 0 || orelse < 0;
    n += body + orelse;
    for (uint32_t i = 0; i < s->n_stmts && !loop; i++) {
        int64_t inner = vector_stores(s->stmts[i]);
        loop = inner < 0;
        n += inner;
    }
    return loop ? -1 : n;
}

static bool is_short_loop(const tir_stmt *s)
{
    int64_t n;
    return s && s->kind == TIR_FOR && s->for_kind == FOR_SERIAL && tir_is_int(s->extent, &n) && n <= SHORT_STEP;
}

/* A few steps of a tile whose sums fill the registers. Clang would write them out and the loops around them, too, and
 * keep what neighboring steps share in registers that are not there: a 5x5 convolution takes twice as long. Where
 * there are 32 registers it does no harm. */
static bool is_tile_step(const rounds *x, const tir_stmt *s)
{
    return x->t->vector_regs <= FEW_REGS && is_short_loop(s) && vector_stores(s->body) >= TILE_SUMS;
}

/* A block of elements that are transposed: clang would write all of it out, element by element; of the inner loop alone
 * it makes vectors. */
static bool is_transposing(const rounds *x, const tir_stmt *s)
{
    if (x->t->small || !is_short_loop(s) || !is_short_loop(s->body))
        return false;
    const tir_stmt *copy = s->body->body;
    return copy->kind == TIR_STORE && copy->value->type.lanes == 1 && copy->value->kind == TIR_LOAD;
}

/* --- the pass --- */

/* NULL: compilers do as they like. gcc has no use for it where a loop has two ends, and says so. */
static const char *what_is_said(const rounds *x, const tir_stmt *s)
{
    if (s->kind != TIR_FOR || s->for_kind != FOR_SERIAL || tir_ends_early(s))
        return NULL;
    if (stays_rolled(x, s))
        return sums_bytes(s) ? TIR_ROUNDS_EIGHT : TIR_ROUNDS_ROLLED;
    return is_tile_step(x, s) || is_transposing(x, s) ? TIR_ROUNDS_CLANG : NULL;
}

static tir_stmt *mark(tir_rewriter *r, tir_stmt *s)
{
    const char *said = what_is_said(r->ctx, s);
    return said ? tir_attr(r->c, said, TIR_ROUNDS, tir_i64(r->c, 1), s) : s;
}

bool tir_pass_say_rounds(compiler *c, tir_func *f)
{
    if (!f->target)
        return true;
    rounds x = {f->target, (f->target->features & TARGET_MVE) == 0 && tir_takes_few_steps(f)};
    tir_rewriter r = {.c = c, .ctx = &x, .stmt = mark};
    f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}
