/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of GreedySearch and BeamSearch: a decoder that onnxruntime runs again and again, each time with one more
 * token. Its keys and values of before are not kept: each round gives it all tokens with an empty past, and reads the
 * scores of the last one, which the tokens behind it do not change. So everything has a fixed size. */
#include "frontend/onnx/onnx_import.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Operands by number; of GreedySearch, the first number, of BeamSearch the second one. -1: it has none. */
enum { IDS, MOST, LEAST, BEAMS, RETURNED, LENGTH_PENALTY, REPETITION, VOCABULARY, PREFIXES, MASK, N_OPERANDS };
static const int operands[2][N_OPERANDS] = {{0, 1, 2, -1, -1, -1, 3, 4, 5, 6}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}};

/* The decoder's inputs are input_ids, position_ids, attention_mask, past_0, past_1, .. */
enum { FIRST_PAST = 3, PAST_RANK = 5, MOST_TOKENS = 1 << 24 };

typedef struct search {
    onnx_node *n;
    const pb_graph *decoder;
    bool beam, early;
    int64_t batch, prompt, most, least, beams, returned, end, pad;
    double repetition, length_penalty;
    graph_value *ids, *mask, *places; /* of all samples: i32[batch, prompt], twice; i32[batch, most - 1] */
    graph_value *vocabulary;          /* or NULL */
} search;

static graph_value *operand(const search *s, int which)
{
    const int i = operands[s->beam][which];
    return i < 0 ? NULL : onnx_optional(s->n, (uint32_t)i);
}

static bool read_number(const search *s, int which, const char *name, double usual, double *out)
{
    graph_value *v = operand(s, which);
    *out = usual;
    return !v || onnx_float_of(v, out) ||
           onnx_fail(s->n, DIAG_UNSUPPORTED, "%s must be a constant number; --bind fixes an input", name);
}

static bool read_whole(const search *s, int which, const char *name, int64_t usual, int64_t least, int64_t *out)
{
    double v = 0;
    if (!read_number(s, which, name, (double)usual, &v))
        return false;
    *out = (int64_t)v;
    return (v >= (double)least && v <= 65536) ||
           onnx_fail(s->n, DIAG_FORMAT, "%s is %g; it may be from %lld to 65536", name, v, (long long)least);
}

static bool read_attributes(search *s)
{
    onnx_node *n = s->n;
    s->decoder = onnx_attr_graph(n, "decoder");
    s->end = onnx_attr_int(n, "eos_token_id", 0);
    s->pad = onnx_attr_int(n, "pad_token_id", 0);
    s->early = onnx_attr_int(n, "early_stopping", 0) != 0;
    (void)onnx_attr_int(n, "vocab_size", 0);
    (void)onnx_attr_int(n, "decoder_start_token_id", 0);
    if (n->failed || !s->decoder)
        return onnx_fail(n, DIAG_FORMAT, "the attribute decoder is missing");
    if (onnx_attr_int(n, "model_type", 0) != 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "model_type = 1, with an encoder, is not supported: export encoder and "
                                              "decoder, and search in your program");
    if (onnx_attr_int(n, "no_repeat_ngram_size", 0) != 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "no_repeat_ngram_size is not supported: export the model with 0");
    if (onnx_has_attr(n, "init_decoder"))
        (void)onnx_attr_graph(n, "init_decoder"); /* the same decoder, for the first round */
    if (operand(s, PREFIXES) || onnx_optional(n, 10) || onnx_optional(n, 11))
        return onnx_fail(n, DIAG_UNSUPPORTED, "prefix_vocab_mask, decoder_input_ids and logits_processor are not "
                                              "supported: export the model without");
    return true;
}

static bool read_search(search *s)
{
    onnx_node *n = s->n;
    s->ids = onnx_in(n, IDS);
    if (onnx_rank(s->ids) != 2)
        return onnx_fail(n, DIAG_TYPE, "input_ids must be [batch, sequence]");
    s->batch = onnx_static_dim(n, s->ids, 0);
    s->prompt = onnx_static_dim(n, s->ids, 1);
    s->vocabulary = operand(s, VOCABULARY);
    if (n->failed || !read_attributes(s) || !read_whole(s, MOST, "max_length", 0, 1, &s->most) ||
        !read_whole(s, LEAST, "min_length", 0, 0, &s->least) || !read_whole(s, BEAMS, "num_beams", 1, 1, &s->beams) ||
        !read_whole(s, RETURNED, "num_return_sequences", 1, 1, &s->returned) ||
        !read_number(s, REPETITION, "repetition_penalty", 1, &s->repetition) ||
        !read_number(s, LENGTH_PENALTY, "length_penalty", 1, &s->length_penalty))
        return false;
    int64_t all = 0;
    if (!i64_mul(s->batch, s->beams * s->most, &all) || all < 1 || all > MOST_TOKENS)
        return onnx_fail(n, DIAG_UNSUPPORTED, "%lld beams of %lld tokens for %lld samples are none, or too many",
                         (long long)s->beams, (long long)s->most, (long long)s->batch);
    if (s->most <= s->prompt || s->prompt < 1 || s->returned > s->beams)
        return onnx_fail(n, DIAG_FORMAT, "max_length = %lld, %lld beams, %lld returned do not fit a prompt of %lld",
                         (long long)s->most, (long long)s->beams, (long long)s->returned, (long long)s->prompt);
    return s->repetition > 0 || onnx_fail(n, DIAG_FORMAT, "repetition_penalty must be above 0");
}

/* --- small parts --- */

static graph_value *number(onnx_node *n, int64_t v)
{
    return onnx_const_int(n, DT_I32, v);
}

/* i32[count]: 0, 1, 2, .. */
static graph_value *steps(onnx_node *n, int64_t count)
{
    return onnx_cast(n, onnx_positions(n, count), DT_I32);
}

static graph_value *taken(onnx_node *n, graph_value *x, graph_value *at, int64_t axis)
{
    attr a = attr_int(n->c, "axis", axis);
    return onnx_emit(n, ONNX_ARGS("take", 1, &a, x, at));
}

static graph_value *gathered(onnx_node *n, graph_value *x, graph_value *at)
{
    attr a = attr_int(n->c, "axis", 1);
    return onnx_emit(n, ONNX_ARGS("gather_elements", 1, &a, x, at));
}

static graph_value *with_axis(onnx_node *n, graph_value *x, int64_t axis)
{
    return onnx_expand_dims(n, x, 1, &axis);
}

/* In the shape [a, b, c], or [a, b] with c = -1. */
static graph_value *shaped(onnx_node *n, graph_value *x, int64_t a, int64_t b, int64_t c)
{
    const int64_t d[3] = {a, b, c};
    return onnx_reshape_ints(n, x, c < 0 ? 2 : 3, d);
}

static graph_value *splat(onnx_node *n, dtype dt, uint32_t rank, const int64_t *dims, double v)
{
    uint64_t bits = 0;
    if (v != 0)
        dtype_store_f64(dt, (uint8_t *)&bits, v);
    return onnx_constant(n, tensor_splat(n->c, dt, rank, dims, &bits));
}

/* [samples, ..] with each of them as often as there are beams, one after the other. */
static graph_value *for_beams(const search *s, graph_value *x, int64_t extent)
{
    onnx_node *n = s->n;
    const int64_t wide[3] = {s->batch, s->beams, extent};
    x = onnx_binary(n, "broadcast_to", with_axis(n, x, 1), onnx_const_ints(n, 3, wide));
    return shaped(n, x, s->batch * s->beams, extent, -1);
}

/* --- what the decoder gets --- */

/* Masks and places of the prompt: pads have none, unless a mask is given. Behind it, places go on. */
static void find_places(search *s)
{
    onnx_node *n = s->n;
    graph_value *ids = s->ids, *pad = onnx_const_like(n, ids, (double)s->pad);
    graph_value *used = onnx_cast(n, onnx_binary(n, "not_equal", ids, pad), DT_I32);
    graph_value *before = onnx_emit(n, ONNX_ARGS("cumsum", 0, NULL, used, onnx_const_int(n, DT_I64, 1)));
    before = onnx_binary(n, "multiply", onnx_binary(n, "subtract", before, number(n, 1)), used);
    const int64_t one = 1, more = s->most - 1 - s->prompt;
    graph_value *count = onnx_reduce(n, "sum", used, 1, &one, true);
    s->mask = operand(s, MASK) ? onnx_cast(n, operand(s, MASK), DT_I32) : used;
    s->places = before;
    if (more > 0) {
        graph_value *next = onnx_binary(n, "add", count, steps(n, more));
        s->places = onnx_concat(n, 2, (graph_value *[]){before, next}, 1);
    }
    s->mask = for_beams(s, s->mask, s->prompt);
    s->places = for_beams(s, s->places, s->most - 1);
}

/* An empty past of the decoder's input i. */
static graph_value *empty_past(const search *s, onnx_node *in, uint32_t i)
{
    const pb_value_info *info = s->decoder->input.data[i];
    int64_t d[PAST_RANK] = {2, 0, 0, 0, 0};
    type t = {0};
    const bool known = info->type && onnx_type_read(in->im, info->type, onnx_name(in->im, info->name), &t);
    if (!known || t.kind != TYPE_TENSOR || t.shape.rank != PAST_RANK || !dim_is_const(t.shape.dims[2], &d[2]) ||
        !dim_is_const(t.shape.dims[4], &d[4]))
        return onnx_refuse(in, DIAG_UNSUPPORTED, "input %u of the decoder must be a past that is declared as [2, "
                                                 "batch, heads, positions, size], with numbers of heads and size", i);
    d[1] = s->batch * s->beams;
    return onnx_constant(in, tensor_splat(in->c, t.dt, PAST_RANK, d, &(uint64_t){0}));
}

/* The scores [rows, vocabulary] of what follows the first `len` (i64) of the tokens. */
static graph_value *decode(const search *s, onnx_node *in, graph_value *tokens, graph_value *mask, graph_value *places,
                           graph_value *len)
{
    const uint32_t count = s->decoder->input.len;
    const int64_t behind = s->most - 1 - s->prompt, rows = s->batch * s->beams;
    graph_value **v = arena_array(&in->c->mem, graph_value *, count + FIRST_PAST), *logits = NULL;
    if (count < FIRST_PAST)
        return onnx_refuse(in, DIAG_FORMAT, "the decoder has %u inputs; input_ids, position_ids, attention_mask and "
                                            "the past are needed", count);
    v[0] = onnx_slice(in, tokens, 1, 0, s->most - 1);
    v[1] = places;
    v[2] = mask;
    if (behind > 0) {
        graph_value *at = onnx_binary(in, "add", steps(in, behind), number(in, s->prompt));
        graph_value *on = onnx_cast(in, onnx_binary(in, "less", at, onnx_cast(in, len, DT_I32)), DT_I32);
        const int64_t wide[2] = {rows, behind};
        on = onnx_binary(in, "broadcast_to", on, onnx_const_ints(in, 2, wide));
        v[2] = onnx_concat(in, 2, (graph_value *[]){mask, on}, 1);
    }
    for (uint32_t i = FIRST_PAST; i < count; i++)
        v[i] = empty_past(s, in, i);
    if (in->failed || !onnx_inline_bodies(in, s->decoder, count, v, 1, &logits))
        return onnx_nothing(in);
    if (onnx_rank(logits) != 3)
        return onnx_refuse(in, DIAG_TYPE, "the first result of the decoder must be [batch, sequence, vocabulary]");
    graph_value *last = onnx_binary(in, "subtract", len, onnx_const_int(in, DT_I64, 1));
    return taken(in, onnx_cast(in, logits, DT_F32), last, 1);
}

/* --- what changes scores --- */

/* Tokens that are there already become less likely. */
static graph_value *without_repeats(const search *s, onnx_node *in, graph_value *scores, graph_value *tokens,
                                    graph_value *len)
{
    const int64_t vocabulary = onnx_static_dim(in, scores, 1), middle = 1;
    graph_value *is = onnx_binary(in, "equal", with_axis(in, tokens, 2), steps(in, vocabulary));
    graph_value *at = with_axis(in, steps(in, s->most), 1);
    is = onnx_binary(in, "logical_and", is, onnx_binary(in, "less", at, onnx_cast(in, len, DT_I32)));
    is = onnx_reduce(in, "max", onnx_cast(in, is, DT_I32), 1, &middle, false);
    graph_value *by = onnx_const_float(in, DT_F32, s->repetition);
    graph_value *less = onnx_where(in, onnx_binary(in, "less", scores, onnx_const_float(in, DT_F32, 0)),
                                   onnx_binary(in, "multiply", scores, by), onnx_binary(in, "divide", scores, by));
    return onnx_where(in, onnx_binary(in, "greater", is, number(in, 0)), less, scores);
}

static graph_value *processed(const search *s, onnx_node *in, graph_value *scores, graph_value *tokens,
                              graph_value *vocabulary, graph_value *len)
{
    graph_value *lowest = onnx_const_float(in, DT_F32, -FLT_MAX);
    if (s->repetition != 1)
        scores = without_repeats(s, in, scores, tokens, len);
    if (vocabulary)
        scores = onnx_where(in, onnx_binary(in, "equal", vocabulary, onnx_const_like(in, vocabulary, 0)), lowest,
                            scores);
    if (s->least > s->prompt) {
        graph_value *end = onnx_binary(in, "equal", steps(in, onnx_static_dim(in, scores, 1)), number(in, s->end));
        graph_value *soon = onnx_binary(in, "less", len, onnx_const_int(in, DT_I64, s->least));
        scores = onnx_where(in, onnx_binary(in, "logical_and", end, soon), lowest, scores);
    }
    return scores;
}

/* tokens[.., most] with the next ones [..] at place len. */
static graph_value *appended(const search *s, onnx_node *in, graph_value *tokens, graph_value *next, graph_value *len)
{
    graph_value *here = onnx_binary(in, "equal", steps(in, s->most), onnx_cast(in, len, DT_I32));
    return onnx_where(in, here, with_axis(in, next, onnx_rank(next)), tokens);
}

/* --- the body of the loop --- */

typedef struct round_in {
    graph_value *round, *len, *tokens, *done, *scores, *kept, *kept_scores; /* the last three: of beams alone */
    graph_value *next;                                                     /* scores of all tokens */
} round_in;

/* Not all samples are done. */
static graph_value *go_on(onnx_node *in, graph_value *done)
{
    graph_value *not = onnx_cast(in, onnx_unary(in, "logical_not", done), DT_I32);
    graph_value *any = onnx_reduce(in, "max", not, 0, NULL, false);
    return onnx_binary(in, "greater", any, number(in, 0));
}

static void greedy_round(const search *s, onnx_node *in, onnx_region *r, const round_in *x)
{
    attr a[2] = {attr_int(in->c, "axis", 1), attr_int(in->c, "keepdims", 0)};
    graph_value *next = onnx_cast(in, onnx_emit(in, ONNX_ARGS("argmax", 2, a, x->next)), DT_I32);
    graph_value *done = onnx_binary(in, "logical_or", x->done, onnx_binary(in, "equal", next, number(in, s->end)));
    next = onnx_where(in, done, number(in, s->pad), next);
    graph_value *tokens = appended(s, in, x->tokens, next, x->len);
    graph_value *go = go_on(in, done);
    if (in->failed)
        return;
    graph_add_result(r->f, go);
    graph_add_result(r->f, tokens);
    graph_add_result(r->f, done);
}

/* Scores by the length: sum / length ^ penalty. */
static graph_value *by_length(const search *s, onnx_node *in, graph_value *sums, graph_value *len)
{
    graph_value *by = onnx_binary(in, "power", onnx_cast(in, len, DT_F32),
                                  onnx_const_float(in, DT_F32, s->length_penalty));
    return onnx_binary(in, "divide", sums, by);
}

/* The greatest numbers of each row, and their places. */
static void best(onnx_node *in, graph_value *x, int64_t count, graph_value *out[2])
{
    const attr axis = attr_int(in->c, "axis", 1);
    onnx_emit_all(in, ONNX_ARGS("topk", 1, &axis, x, onnx_const_ints(in, 1, &count)), 2, out);
}

/* Rows [samples, m, most] of tokens at places i64[samples, k]. */
static graph_value *rows_at(const search *s, onnx_node *in, graph_value *rows, graph_value *at, int64_t k)
{
    const int64_t wide[3] = {s->batch, k, s->most};
    return gathered(in, rows, onnx_binary(in, "broadcast_to", with_axis(in, at, 2), onnx_const_ints(in, 3, wide)));
}

/* The best of what is kept and of more: rows of tokens and their scores [samples, m]. */
static void keep_best(const search *s, onnx_node *in, graph_value **kept, graph_value **scores, graph_value *more,
                      graph_value *more_scores)
{
    graph_value *all = onnx_concat(in, 2, (graph_value *[]){*kept, more}, 1), *b[2];
    best(in, onnx_concat(in, 2, (graph_value *[]){*scores, more_scores}, 1), s->beams, b);
    *kept = rows_at(s, in, all, b[1], s->beams);
    *scores = b[0];
}

/* The best sum that a sample may reach, as onnxruntime finds it: among 2 * beams candidates from number sample * beams
 * on, so that only the first sample looks at its own alone. */
static graph_value *best_of_window(const search *s, onnx_node *in, graph_value *sums)
{
    const int64_t one = 1;
    graph_value *most = onnx_reduce(in, "max", shaped(in, sums, 2 * s->batch, s->beams, -1), 1, &one, false);
    return onnx_binary(in, "maximum", onnx_slice(in, most, 0, 0, s->batch), onnx_slice(in, most, 0, 1, s->batch + 1));
}

/* Samples that are done go on with the first beam of all, and pads: others look at their sums. */
static void idle(const search *s, onnx_node *in, const round_in *x, graph_value **tokens, graph_value **sums)
{
    static const int64_t behind[2] = {1, 2};
    graph_value *row = onnx_slice(in, x->tokens, 0, 0, 1);
    row = appended(s, in, row, onnx_cast(in, onnx_const_ints(in, 1, &s->pad), DT_I32), x->len);
    *tokens = onnx_where(in, onnx_expand_dims(in, x->done, 2, behind), row, *tokens);
    *sums = onnx_where(in, with_axis(in, x->done, 1), onnx_const_float(in, DT_F32, 0), *sums);
}

static void beam_round(const search *s, onnx_node *in, onnx_region *r, const round_in *x)
{
    const int64_t vocabulary = onnx_static_dim(in, x->next, 1), k = s->beams, one = 1, two = 2;
    graph_value *scores = onnx_binary(in, "add", x->next, with_axis(in, x->scores, 1)), *b[2];
    best(in, shaped(in, scores, s->batch, k * vocabulary, -1), 2 * k, b);
    if (in->failed)
        return;
    graph_value *size = onnx_const_int(in, DT_I64, vocabulary), *none = onnx_const_float(in, DT_F32, -INFINITY);
    graph_value *sums = b[0], *from = onnx_binary(in, "divide", b[1], size);
    graph_value *next = onnx_cast(in, onnx_binary(in, "mod", b[1], size), DT_I32);
    graph_value *ends = onnx_binary(in, "equal", next, number(in, s->end));
    graph_value *rows = rows_at(s, in, shaped(in, x->tokens, s->batch, k, s->most), from, 2 * k);
    /* what ends among the first is kept */
    graph_value *open = with_axis(in, onnx_unary(in, "logical_not", x->done), 1);
    graph_value *early = onnx_binary(in, "less", steps(in, 2 * k), number(in, k));
    graph_value *is = onnx_binary(in, "logical_and", onnx_binary(in, "logical_and", ends, early), open);
    graph_value *kept = x->kept, *kept_scores = x->kept_scores;
    keep_best(s, in, &kept, &kept_scores, rows, onnx_where(in, is, by_length(s, in, sums, x->len), none));
    /* the first others go on: the place of the one that is number 0, 1, .. */
    graph_value *others = onnx_cast(in, onnx_unary(in, "logical_not", ends), DT_I32);
    graph_value *at = onnx_emit(in, ONNX_ARGS("cumsum", 0, NULL, others, onnx_const_int(in, DT_I64, 1)));
    graph_value *less = onnx_binary(in, "less_equal", with_axis(in, at, 1), with_axis(in, steps(in, k), 1));
    at = onnx_cast(in, onnx_reduce(in, "sum", onnx_cast(in, less, DT_I32), 1, &two, false), DT_I64);
    graph_value *tokens = appended(s, in, rows_at(s, in, rows, at, k), gathered(in, next, at), x->len);
    /* a sample is done when what it keeps cannot become better */
    graph_value *worst = onnx_reduce(in, "min", kept_scores, 1, &one, false);
    graph_value *full = onnx_binary(in, "greater", worst, none);
    if (!s->early) {
        graph_value *most = by_length(s, in, best_of_window(s, in, sums), x->len);
        full = onnx_binary(in, "logical_and", full, onnx_binary(in, "greater_equal", worst, most));
    }
    graph_value *done = onnx_binary(in, "logical_or", x->done, full), *go = go_on(in, done);
    const int64_t flat = s->batch * k;
    graph_value *sum = gathered(in, sums, at);
    idle(s, in, x, &tokens, &sum);
    sum = onnx_reshape_ints(in, sum, 1, &flat);
    tokens = shaped(in, tokens, s->batch * k, s->most, -1);
    graph_value *const results[6] = {go, tokens, done, sum, kept, kept_scores};
    for (uint32_t i = 0; i < 6 && !in->failed; i++)
        graph_add_result(r->f, results[i]);
}

static void make_round(const search *s, onnx_region *r, uint32_t n_carried, graph_value *const *carried)
{
    static const char *const names[5] = {"tokens", "done", "sums", "kept", "kept_scores"};
    onnx_node *n = s->n;
    onnx_captures captures = {.n = n};
    graph_value *v[5] = {NULL};
    round_in x = {.round = graph_add_param(r->f, "round", type_static(n->c, DT_I64, 0, NULL))};
    for (uint32_t i = 0; i < n_carried; i++)
        v[i] = graph_add_param(r->f, names[i], carried[i]->type);
    x.tokens = v[0];
    x.done = v[1];
    x.scores = v[2];
    x.kept = v[3];
    x.kept_scores = v[4];
    onnx_capture(&captures, s->decoder);
    if (n->failed)
        return;
    onnx_region_captures(r, &captures);
    graph_value *mask = onnx_region_value(r, "mask", s->mask), *places = onnx_region_value(r, "places", s->places);
    graph_value *vocabulary = s->vocabulary ? onnx_region_value(r, "vocabulary", s->vocabulary) : NULL;
    onnx_node in = onnx_region_node(r);
    attr axis = attr_int(n->c, "axis", -1);
    x.len = onnx_binary(&in, "add", x.round, onnx_const_int(&in, DT_I64, s->prompt));
    graph_value *next = decode(s, &in, x.tokens, mask, places, x.len);
    if (s->beam)
        next = onnx_emit(&in, ONNX_ARGS("nn.log_softmax", 1, &axis, next));
    x.next = processed(s, &in, next, x.tokens, vocabulary, x.len);
    if (!in.failed)
        (s->beam ? beam_round : greedy_round)(s, &in, r, &x);
    n->failed |= in.failed;
}

/* --- the node --- */

/* What the first round starts with: tokens; done; of beams: their sums, and what is kept. */
static uint32_t first_values(const search *s, graph_value *out[5])
{
    onnx_node *n = s->n;
    const int64_t rest[2] = {s->batch, s->most - s->prompt}, kept[3] = {s->batch, s->beams, s->most};
    graph_value *ids = onnx_cast(n, s->ids, DT_I32);
    out[0] = onnx_concat(n, 2, (graph_value *[]){ids, splat(n, DT_I32, 2, rest, (double)s->pad)}, 1);
    out[0] = for_beams(s, out[0], s->most);
    out[1] = splat(n, DT_BOOL, 1, &s->batch, 0);
    if (!s->beam)
        return 2;
    const int64_t rows = s->batch * s->beams;
    float *sums = arena_array(&n->c->mem, float, (size_t)rows);
    for (int64_t i = 0; i < rows; i++)
        sums[i] = i % s->beams == 0 ? 0.f : -1e9f; /* the beams differ from the second round on */
    out[2] = onnx_constant(n, tensor_dense(n->c, DT_F32, 1, &rows, sums));
    out[3] = splat(n, DT_I32, 3, kept, (double)s->pad);
    out[4] = splat(n, DT_F32, 2, kept, -INFINITY);
    return 5;
}

/* Beams of samples that are not done count with what they have. */
static bool finish_beams(const search *s, graph_value *const *last)
{
    onnx_node *n = s->n;
    graph_value *kept = last[3], *scores = last[4], *open = with_axis(n, onnx_unary(n, "logical_not", last[1]), 1);
    graph_value *sums = by_length(s, n, shaped(n, last[2], s->batch, s->beams, -1), onnx_const_int(n, DT_I64, s->most));
    sums = onnx_where(n, open, sums, onnx_const_float(n, DT_F32, -INFINITY));
    keep_best(s, n, &kept, &scores, shaped(n, last[0], s->batch, s->beams, s->most), sums);
    onnx_alias(n, 0, onnx_slice(n, kept, 1, 0, s->returned));
    return onnx_alias(n, 1, onnx_slice(n, scores, 1, 0, s->returned));
}

static bool import_search(onnx_node *n, bool beam)
{
    search s = {.n = n, .beam = beam};
    onnx_region r;
    graph_value *first[5];
    if (!read_search(&s))
        return false;
    if (n->n_out > 2 && n->out_names[2])
        return onnx_fail(n, DIAG_UNSUPPORTED, "the scores of all rounds as a result are not supported");
    find_places(&s);
    const uint32_t carried = first_values(&s, first);
    if (n->failed)
        return false;
    onnx_region_open(&r, n, NULL, "token");
    make_round(&s, &r, carried, first);
    onnx_loop l = {.trips = onnx_const_int(n, DT_I64, s.most - s.prompt), .carried = first, .n_carried = carried};
    graph_node *loop = n->failed ? NULL : onnx_emit_loop(n, n->f, &l, &r);
    if (!loop)
        return false;
    return beam ? finish_beams(&s, loop->outputs) : onnx_alias(n, 0, loop->outputs[0]);
}

bool onnx_op_greedy_search(onnx_node *n)
{
    return import_search(n, false);
}

bool onnx_op_beam_search(onnx_node *n)
{
    return import_search(n, true);
}
