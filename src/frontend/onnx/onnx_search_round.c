/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a decoder's scores in a round of a search: penalties and masks change them, and the best, or those
 * that a draw finds, are the next tokens. The order of all steps is onnxruntime's, also in that a sample that is not
 * the first may end later because of the sums of the sample before it. */
#include "frontend/onnx/onnx_search.h"

#include <float.h>
#include <math.h>

static graph_value *number(onnx_node *n, int64_t v)
{
    return onnx_const_int(n, DT_I32, v);
}

static graph_value *gathered(onnx_node *n, graph_value *x, graph_value *at)
{
    attr a = attr_int(n->c, "axis", 1);
    return onnx_emit(n, ONNX_ARGS("gather_elements", 1, &a, x, at));
}

/* Sums along the rows; `how`: "exclusive", "reverse", or NULL. */
static graph_value *sum_up(onnx_node *n, graph_value *x, const char *how)
{
    attr a = attr_int(n->c, how ? how : "reverse", how != NULL);
    return onnx_emit(n, ONNX_ARGS("cumsum", 1, &a, x, onnx_const_int(n, DT_I64, 1)));
}

/* In the shape [a, b, c], or [a, b] with c = -1. */
static graph_value *shaped(onnx_node *n, graph_value *x, int64_t a, int64_t b, int64_t c)
{
    const int64_t d[3] = {a, b, c};
    return onnx_reshape_ints(n, x, c < 0 ? 2 : 3, d);
}

/* tokens[.., most] with the next ones [..] at place len. */
static graph_value *appended(const search *s, onnx_node *in, graph_value *tokens, graph_value *next, graph_value *len)
{
    graph_value *here = onnx_binary(in, "equal", onnx_search_steps(in, s->most), onnx_cast(in, len, DT_I32));
    return onnx_where(in, here, onnx_search_with_axis(in, next, onnx_rank(next)), tokens);
}

/* --- what changes scores --- */

/* Whether token t is in a row of `tokens` at a place where `which` is: bool[rows, vocabulary]. */
static graph_value *mentioned(onnx_node *in, graph_value *tokens, graph_value *which, int64_t vocabulary)
{
    const int64_t middle = 1;
    graph_value *all = onnx_search_steps(in, vocabulary);
    graph_value *is = onnx_binary(in, "equal", onnx_search_with_axis(in, tokens, 2), all);
    is = onnx_binary(in, "logical_and", is, onnx_search_with_axis(in, which, onnx_rank(which)));
    is = onnx_reduce(in, "max", onnx_cast(in, is, DT_I32), 1, &middle, false);
    return onnx_binary(in, "greater", is, number(in, 0));
}

/* Tokens that are there already become less likely. */
static graph_value *without_repeats(const search *s, onnx_node *in, graph_value *scores, const search_round *x)
{
    graph_value *len = onnx_cast(in, x->len, DT_I32);
    graph_value *before = onnx_binary(in, "less", onnx_search_steps(in, s->most), len);
    graph_value *is = mentioned(in, x->tokens, before, onnx_static_dim(in, scores, 1));
    graph_value *by = onnx_const_float(in, DT_F32, s->repetition);
    graph_value *more = onnx_binary(in, "multiply", scores, by), *part = onnx_binary(in, "divide", scores, by);
    graph_value *below = onnx_binary(in, "less", scores, onnx_const_float(in, DT_F32, 0));
    return onnx_where(in, is, onnx_where(in, below, more, part), scores);
}

/* Tokens that would make a run of no_repeat tokens that is there already are never taken. */
static graph_value *without_runs(const search *s, onnx_node *in, graph_value *scores, const search_round *x)
{
    const int64_t before = s->no_repeat - 1, runs = s->most - before;
    if (runs < 1)
        return scores; /* no tokens are as many */
    graph_value *len = onnx_cast(in, x->len, DT_I32), *ends = onnx_search_steps(in, runs);
    graph_value *same = onnx_binary(in, "less", onnx_binary(in, "add", ends, number(in, before)), len);
    for (int64_t i = 0; i < before; i++) {
        graph_value *at = onnx_binary(in, "add", x->len, onnx_const_int(in, DT_I64, i - before));
        at = onnx_binary(in, "maximum", at, onnx_const_int(in, DT_I64, 0));
        graph_value *mine = onnx_search_with_axis(in, onnx_search_take(in, x->tokens, at, 1), 1);
        graph_value *other = onnx_slice(in, x->tokens, 1, i, i + runs);
        same = onnx_binary(in, "logical_and", same, onnx_binary(in, "equal", other, mine));
    }
    graph_value *last = onnx_slice(in, x->tokens, 1, before, s->most);
    graph_value *is = mentioned(in, last, same, onnx_static_dim(in, scores, 1));
    return onnx_where(in, is, onnx_const_float(in, DT_F32, -FLT_MAX), scores);
}

/* Scores only where the mask is not 0. */
static graph_value *masked(onnx_node *in, graph_value *scores, graph_value *mask)
{
    graph_value *off = onnx_binary(in, "equal", mask, onnx_const_like(in, mask, 0));
    return onnx_where(in, off, onnx_const_float(in, DT_F32, -FLT_MAX), scores);
}

static graph_value *processed(const search *s, onnx_node *in, const search_round *x, graph_value *scores)
{
    graph_value *lowest = onnx_const_float(in, DT_F32, -FLT_MAX);
    if (s->repetition != 1)
        scores = without_repeats(s, in, scores, x);
    if (s->no_repeat > 0)
        scores = without_runs(s, in, scores, x);
    if (s->vocabulary)
        scores = masked(in, scores, s->vocabulary);
    if (s->prefix) {
        graph_value *later = onnx_binary(in, "greater", x->number, onnx_const_int(in, DT_I64, 0));
        scores = onnx_where(in, later, scores, masked(in, scores, s->prefix));
    }
    if (s->least > s->prompt) {
        graph_value *all = onnx_search_steps(in, onnx_static_dim(in, scores, 1));
        graph_value *end = onnx_binary(in, "equal", all, number(in, s->end));
        graph_value *soon = onnx_binary(in, "less", x->len, onnx_const_int(in, DT_I64, s->least));
        scores = onnx_where(in, onnx_binary(in, "logical_and", end, soon), lowest, scores);
    }
    if (s->temperature > 0 && s->temperature != 1)
        scores = onnx_binary(in, "divide", scores, onnx_const_float(in, DT_F32, s->temperature));
    return scores;
}

/* --- one token for each sample --- */

/* Not all samples are done. */
static graph_value *go_on(onnx_node *in, graph_value *done)
{
    graph_value *not = onnx_cast(in, onnx_unary(in, "logical_not", done), DT_I32);
    graph_value *any = onnx_reduce(in, "max", not, 0, NULL, false);
    return onnx_binary(in, "greater", any, number(in, 0));
}

/* The scores of the tokens that may be drawn: those of the most probable ones, whose sum is above top_p. Others get
 * the filter's value. */
static graph_value *filtered(const search *s, onnx_node *in, graph_value *scores)
{
    const int64_t all = onnx_static_dim(in, scores, 1), table[2] = {s->batch, all};
    const attr last = attr_int(in->c, "axis", -1), axis = attr_int(in->c, "axis", 1);
    graph_value *sorted[2], *drop;
    bool *may = arena_array(&in->c->mem, bool, (size_t)all + 1u);
    onnx_best_of_rows(in, scores, all, sorted);
    graph_value *p = onnx_emit(in, ONNX_ARGS("nn.softmax", 1, &last, sorted[0]));
    if (s->custom) { /* the sum of those before it is above */
        drop = onnx_binary(in, "greater", sum_up(in, p, "exclusive"), onnx_const_float(in, DT_F32, s->top_p));
    } else { /* its sum with all behind it is not above what the others may have */
        graph_value *rest = onnx_const_float(in, DT_F32, 1.f - (float)s->top_p);
        drop = onnx_binary(in, "less_equal", sum_up(in, p, "reverse"), rest);
        for (int64_t i = 0; i < all; i++)
            may[i] = i >= s->keep || i == all - 1;
        drop = onnx_binary(in, "logical_and", drop, onnx_constant(in, tensor_dense(in->c, DT_BOOL, 1, &all, may)));
    }
    graph_value *kept = onnx_where(in, drop, onnx_const_float(in, DT_F32, s->filter), sorted[0]);
    graph_value *none = onnx_search_splat(in, DT_F32, 2, table, 0);
    return onnx_emit(in, ONNX_ARGS("scatter_elements", 1, &axis, none, sorted[1], kept));
}

/* The tokens that this round's numbers draw. */
static graph_value *drawn(const search *s, onnx_node *in, const search_round *x, graph_value *scores)
{
    const int64_t one = 1;
    if (s->presences && s->presence != 0) {
        graph_value *less = onnx_cast(in, s->presences, DT_F32);
        less = onnx_binary(in, "multiply", less, onnx_const_float(in, DT_F32, s->presence));
        scores = onnx_binary(in, "subtract", scores, less);
    }
    scores = onnx_cast(in, filtered(s, in, scores), DT_F64);
    graph_value *most = onnx_reduce(in, "max", scores, 1, &one, true);
    graph_value *sums = sum_up(in, onnx_unary(in, "exp", onnx_binary(in, "subtract", scores, most)), NULL);
    graph_value *total = onnx_reduce(in, "max", sums, 1, &one, true);
    graph_value *u = onnx_search_with_axis(in, onnx_search_take(in, s->draws, x->number, 0), 1);
    graph_value *below = onnx_binary(in, "less_equal", sums, onnx_binary(in, "multiply", u, total));
    return onnx_reduce(in, "sum", onnx_cast(in, below, DT_I32), 1, &one, false);
}

static void next_token(const search *s, onnx_node *in, search_round *x)
{
    attr a[2] = {attr_int(in->c, "axis", 1), attr_int(in->c, "keepdims", 0)};
    graph_value *scores = processed(s, in, x, x->scores), *next;
    if (s->kind == SEARCH_SAMPLE)
        next = drawn(s, in, x, scores);
    else
        next = onnx_cast(in, onnx_emit(in, ONNX_ARGS("argmax", 2, a, scores)), DT_I32);
    x->done = onnx_binary(in, "logical_or", x->done, onnx_binary(in, "equal", next, number(in, s->end)));
    next = onnx_where(in, x->done, number(in, s->pad), next);
    x->tokens = appended(s, in, x->tokens, next, x->len);
    x->go = go_on(in, x->done);
}

/* The generator is x = 16807 x mod 2^31 - 1, each of whose numbers is a product of the seed and a constant. Two of
 * them make one that is drawn, for each sample in each round. */
graph_value *onnx_search_draws(const search *s, graph_value *seed)
{
    enum { FACTOR = 16807, MODULUS = 2147483647 };
    const double numbers = (double)MODULUS - 1; /* how many the generator has */
    onnx_node *n = s->n;
    const int64_t rounds = s->most - s->prompt, count = rounds * s->batch, table[2] = {rounds, s->batch};
    int64_t *factors = arena_array(&n->c->mem, int64_t, (size_t)(2 * count) + 1u), power = 1;
    for (int64_t i = 0; i < 2 * count; i++)
        factors[i % 2 * count + i / 2] = power = power * FACTOR % MODULUS;
    graph_value *modulus = onnx_const_int(n, DT_I64, MODULUS), *zero = onnx_const_int(n, DT_I64, 0);
    graph_value *one = onnx_const_int(n, DT_I64, 1), *sum = NULL;
    if (seed) {
        const dim none[1] = {NULL};
        seed = onnx_reshape(n, onnx_cast(n, seed, DT_I64), 0, none);
    } else {
        seed = onnx_const_int(n, DT_I64, (int64_t)((uint64_t)onnx_seed_of(n) >> 32));
    }
    seed = onnx_binary(n, "mod", seed, modulus);
    seed = onnx_where(n, onnx_binary(n, "equal", seed, zero), one, seed);
    for (int64_t i = 0; i < 2; i++) {
        graph_value *g = onnx_constant(n, tensor_dense(n->c, DT_I64, 2, table, factors + i * count));
        g = onnx_binary(n, "mod", onnx_binary(n, "multiply", seed, g), modulus);
        g = onnx_cast(n, onnx_binary(n, "subtract", g, one), DT_F64);
        if (i > 0)
            g = onnx_binary(n, "multiply", g, onnx_const_float(n, DT_F64, numbers));
        sum = sum ? onnx_binary(n, "add", sum, g) : g;
    }
    return onnx_binary(n, "divide", sum, onnx_const_float(n, DT_F64, numbers * numbers));
}

/* --- beams --- */

/* Scores by the length: sum / length ^ penalty. */
static graph_value *by_length(const search *s, onnx_node *in, graph_value *sums, graph_value *len)
{
    graph_value *by = onnx_binary(in, "power", onnx_cast(in, len, DT_F32),
                                  onnx_const_float(in, DT_F32, s->length_penalty));
    return onnx_binary(in, "divide", sums, by);
}

/* Rows [samples, m, most] of tokens at places i64[samples, k]. */
static graph_value *rows_at(const search *s, onnx_node *in, graph_value *rows, graph_value *at, int64_t k)
{
    const int64_t wide[3] = {s->batch, k, s->most};
    at = onnx_binary(in, "broadcast_to", onnx_search_with_axis(in, at, 2), onnx_const_ints(in, 3, wide));
    return gathered(in, rows, at);
}

/* The best of what is kept and of more: rows of tokens and their scores [samples, m]. */
static void keep_best(const search *s, onnx_node *in, graph_value **kept, graph_value **scores, graph_value *more,
                      graph_value *more_scores)
{
    graph_value *all = onnx_concat(in, 2, (graph_value *[]){*kept, more}, 1), *b[2];
    onnx_best_of_rows(in, onnx_concat(in, 2, (graph_value *[]){*scores, more_scores}, 1), s->beams, b);
    *kept = rows_at(s, in, all, b[1], s->beams);
    *scores = b[0];
}

/* The best sum that a sample may reach, as onnxruntime finds it: among 2 * beams candidates from number sample * beams
 * on, so that only the first sample looks at its own alone. */
static graph_value *best_of_window(const search *s, onnx_node *in, graph_value *sums)
{
    const int64_t one = 1;
    graph_value *most = onnx_reduce(in, "max", shaped(in, sums, 2 * s->batch, s->beams, -1), 1, &one, false);
    graph_value *first = onnx_slice(in, most, 0, 0, s->batch), *second = onnx_slice(in, most, 0, 1, s->batch + 1);
    return onnx_binary(in, "maximum", first, second);
}

/* Samples that were done go on with the first row of all, and pads: others look at their sums. */
static void idle(const search *s, onnx_node *in, const search_round *was, search_round *x)
{
    static const int64_t behind[2] = {1, 2};
    graph_value *row = onnx_slice(in, was->tokens, 0, 0, 1), *done = onnx_search_with_axis(in, was->done, 1);
    row = appended(s, in, row, onnx_cast(in, onnx_const_ints(in, 1, &s->pad), DT_I32), x->len);
    x->tokens = onnx_where(in, onnx_expand_dims(in, was->done, 2, behind), row, x->tokens);
    x->sums = onnx_where(in, done, onnx_const_float(in, DT_F32, 0), x->sums);
    x->from = onnx_where(in, done, onnx_const_int(in, DT_I64, 0), x->from);
}

/* i64[batch, beams]: the place of the candidate that goes on as number 0, 1, ..: the first that do not end. */
static graph_value *going_on(const search *s, onnx_node *in, graph_value *ends)
{
    const int64_t two = 2;
    graph_value *others = sum_up(in, onnx_cast(in, onnx_unary(in, "logical_not", ends), DT_I32), NULL);
    graph_value *places = onnx_search_with_axis(in, onnx_search_steps(in, s->beams), 1);
    graph_value *less = onnx_binary(in, "less_equal", onnx_search_with_axis(in, others, 1), places);
    return onnx_cast(in, onnx_reduce(in, "sum", onnx_cast(in, less, DT_I32), 1, &two, false), DT_I64);
}

/* A sample is done when what it keeps cannot become better. */
static graph_value *finished(const search *s, onnx_node *in, const search_round *x, graph_value *sums)
{
    const int64_t one = 1;
    graph_value *worst = onnx_reduce(in, "min", x->kept_scores, 1, &one, false);
    graph_value *full = onnx_binary(in, "greater", worst, onnx_const_float(in, DT_F32, -INFINITY));
    if (s->early)
        return full;
    graph_value *most = by_length(s, in, best_of_window(s, in, sums), x->len);
    return onnx_binary(in, "logical_and", full, onnx_binary(in, "greater_equal", worst, most));
}

static void next_beams(const search *s, onnx_node *in, search_round *x)
{
    const int64_t k = s->beams, flat = s->batch * k, column[2] = {s->batch, 1};
    const search_round was = *x;
    attr axis = attr_int(in->c, "axis", -1);
    graph_value *scores = onnx_emit(in, ONNX_ARGS("nn.log_softmax", 1, &axis, x->scores)), *b[2];
    scores = processed(s, in, x, scores);
    const int64_t vocabulary = onnx_static_dim(in, scores, 1);
    scores = onnx_binary(in, "add", scores, onnx_search_with_axis(in, x->sums, 1));
    onnx_best_of_rows(in, shaped(in, scores, s->batch, k * vocabulary, -1), 2 * k, b);
    if (in->failed)
        return;
    graph_value *size = onnx_const_int(in, DT_I64, vocabulary), *none = onnx_const_float(in, DT_F32, -INFINITY);
    graph_value *sums = b[0], *from = onnx_binary(in, "divide", b[1], size);
    graph_value *next = onnx_cast(in, onnx_binary(in, "mod", b[1], size), DT_I32);
    graph_value *ends = onnx_binary(in, "equal", next, number(in, s->end));
    graph_value *rows = rows_at(s, in, shaped(in, x->tokens, s->batch, k, s->most), from, 2 * k);
    /* what ends among the first is kept */
    graph_value *open = onnx_search_with_axis(in, onnx_unary(in, "logical_not", x->done), 1);
    graph_value *early = onnx_binary(in, "less", onnx_search_steps(in, 2 * k), number(in, k));
    graph_value *is = onnx_binary(in, "logical_and", onnx_binary(in, "logical_and", ends, early), open);
    graph_value *ended = onnx_where(in, is, by_length(s, in, sums, x->len), none);
    keep_best(s, in, &x->kept, &x->kept_scores, rows, ended);
    graph_value *at = going_on(s, in, ends);
    graph_value *own = rows_at(s, in, rows, at, k);
    x->tokens = appended(s, in, own, gathered(in, next, at), x->len);
    x->done = onnx_binary(in, "logical_or", x->done, finished(s, in, x, sums));
    x->go = go_on(in, x->done);
    x->sums = gathered(in, sums, at);
    int64_t *first = arena_array(&in->c->mem, int64_t, (size_t)s->batch);
    for (int64_t i = 0; i < s->batch; i++)
        first[i] = i * k;
    x->from = onnx_binary(in, "add", gathered(in, from, at),
                          onnx_constant(in, tensor_dense(in->c, DT_I64, 2, column, first)));
    idle(s, in, &was, x);
    x->sums = onnx_reshape_ints(in, x->sums, 1, &flat);
    x->from = onnx_reshape_ints(in, x->from, 1, &flat);
    x->tokens = shaped(in, x->tokens, flat, s->most, -1);
}

/* Beams of samples that are not done count with what they have. */
bool onnx_search_finish(const search *s, const search_round *x)
{
    onnx_node *n = s->n;
    graph_value *kept = x->kept, *scores = x->kept_scores;
    graph_value *open = onnx_search_with_axis(n, onnx_unary(n, "logical_not", x->done), 1);
    graph_value *sums = by_length(s, n, shaped(n, x->sums, s->batch, s->beams, -1), onnx_const_int(n, DT_I64, s->most));
    sums = onnx_where(n, open, sums, onnx_const_float(n, DT_F32, -INFINITY));
    keep_best(s, n, &kept, &scores, shaped(n, x->tokens, s->batch, s->beams, s->most), sums);
    onnx_alias(n, 0, onnx_slice(n, kept, 1, 0, s->returned));
    return onnx_alias(n, 1, onnx_slice(n, scores, 1, 0, s->returned));
}

/* --- both --- */

uint32_t onnx_search_values(const search *s, search_round *x, graph_value **out[SEARCH_VALUES])
{
    out[0] = &x->tokens;
    out[1] = &x->done;
    out[2] = &x->sums;
    out[3] = &x->kept;
    out[4] = &x->kept_scores;
    return s->kind == SEARCH_BEAM ? SEARCH_VALUES : 2;
}

void onnx_search_step(const search *s, onnx_node *in, search_round *x)
{
    (s->kind == SEARCH_BEAM ? next_beams : next_token)(s, in, x);
}
