/* SPDX-License-Identifier: Apache-2.0 */
/* What the decoder of a search gets in a round. One of GPT-2's kind gets all tokens with an empty past, and its scores
 * of the last one are read, which the tokens behind it do not change: so everything has a fixed size. One with an
 * encoder, of T5's kind, gets the last token alone, with the keys and values of those before it, which grow by one
 * position in each round. */
#include "frontend/onnx/onnx_search.h"

/* Inputs of a decoder of GPT-2's kind are input_ids, position_ids, attention_mask, past_0, past_1, .. */
enum { FIRST_PAST = 3, PAST_RANK = 5, CACHE_RANK = 4 };

graph_value *onnx_search_take(onnx_node *n, graph_value *x, graph_value *at, int64_t axis)
{
    attr a = attr_int(n->c, "axis", axis);
    return onnx_emit(n, ONNX_ARGS("take", 1, &a, x, at));
}

graph_value *onnx_search_with_axis(onnx_node *n, graph_value *x, int64_t axis)
{
    return onnx_expand_dims(n, x, 1, &axis);
}

graph_value *onnx_search_steps(onnx_node *n, int64_t count)
{
    return onnx_cast(n, onnx_positions(n, count), DT_I32);
}

graph_value *onnx_search_splat(onnx_node *n, dtype dt, uint32_t rank, const int64_t *dims, double v)
{
    uint64_t bits = 0;
    if (v != 0)
        dtype_store_f64(dt, (uint8_t *)&bits, v);
    return onnx_constant(n, tensor_splat(n->c, dt, rank, dims, &bits));
}

graph_value *onnx_search_rows(const search *s, graph_value *x)
{
    onnx_node *n = s->n;
    int64_t wide[TYPE_MAX_RANK + 1] = {s->batch, s->beams};
    const uint32_t rank = onnx_rank(x);
    for (uint32_t i = 1; i < rank; i++)
        wide[1 + i] = onnx_static_dim(n, x, i);
    if (n->failed || s->beams == 1)
        return x;
    x = onnx_binary(n, "broadcast_to", onnx_search_with_axis(n, x, 1), onnx_const_ints(n, rank + 1, wide));
    wide[1] = s->batch * s->beams;
    return onnx_reshape_ints(n, x, rank, wide + 1);
}

static graph_value *number(onnx_node *n, int64_t v)
{
    return onnx_const_int(n, DT_I32, v);
}

/* A decoder may make more scores for a token than the vocabulary has, to fill its product. onnxruntime reads the result
 * [rows, tokens, scores] as if no row had more: only the first row of the first token is where the decoder put it. */
static graph_value *of_vocabulary(const search *s, onnx_node *in, graph_value *scores)
{
    const int64_t rows = onnx_static_dim(in, scores, 0), tokens = onnx_static_dim(in, scores, 1);
    const int64_t made = onnx_static_dim(in, scores, 2), all = rows * tokens * made;
    if (s->tokens > made && !in->failed)
        return onnx_refuse(in, DIAG_FORMAT, "vocab_size = %lld, but the decoder makes %lld scores for a token",
                           (long long)s->tokens, (long long)made);
    if (in->failed || s->tokens == 0 || s->tokens == made)
        return scores;
    const int64_t read[3] = {rows, tokens, s->tokens};
    scores = onnx_slice(in, onnx_reshape_ints(in, scores, 1, &all), 0, 0, rows * tokens * s->tokens);
    return onnx_reshape_ints(in, scores, 3, read);
}

/* The scores of one token. */
static graph_value *last_scores(const search *s, onnx_node *in, graph_value *scores, graph_value *last)
{
    if (onnx_rank(scores) != 3)
        return onnx_refuse(in, DIAG_TYPE, "the first result of the decoder must be [batch, sequence, vocabulary]");
    return onnx_search_take(in, onnx_cast(in, of_vocabulary(s, in, scores), DT_F32), last, 1);
}

/* --- of GPT-2's kind --- */

/* Pads of the prompt have no places, unless a mask is given. Behind it, places go on. */
void onnx_search_places(search *s, graph_value *mask)
{
    onnx_node *n = s->n;
    graph_value *ids = s->ids, *pad = onnx_const_like(n, ids, (double)s->pad);
    graph_value *used = onnx_cast(n, onnx_binary(n, "not_equal", ids, pad), DT_I32);
    graph_value *before = onnx_emit(n, ONNX_ARGS("cumsum", 0, NULL, used, onnx_const_int(n, DT_I64, 1)));
    before = onnx_binary(n, "multiply", onnx_binary(n, "subtract", before, number(n, 1)), used);
    const int64_t one = 1, more = s->most - 1 - s->prompt;
    graph_value *count = onnx_reduce(n, "sum", used, 1, &one, true);
    s->places = before;
    if (more > 0) {
        graph_value *next = onnx_binary(n, "add", count, onnx_search_steps(n, more));
        s->places = onnx_concat(n, 2, (graph_value *[]){before, next}, 1);
    }
    s->mask = onnx_search_rows(s, mask ? onnx_cast(n, mask, DT_I32) : used);
    s->places = onnx_search_rows(s, s->places);
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

/* The scores of the last of x's tokens. onnxruntime gives its decoder the prompt in the first round, and one token
 * then: what is read as its vocabulary depends on how many. */
static graph_value *scores_of_last(const search *s, onnx_node *in, const search_round *x, graph_value *scores)
{
    graph_value *last = onnx_binary(in, "subtract", x->len, onnx_const_int(in, DT_I64, 1));
    graph_value *zero = onnx_const_int(in, DT_I64, 0);
    if (s->tokens == 0 || onnx_rank(scores) != 3 || s->tokens == onnx_static_dim(in, scores, 2))
        return last_scores(s, in, scores, last);
    graph_value *one = onnx_search_with_axis(in, onnx_search_take(in, scores, last, 1), 1);
    graph_value *prompt = onnx_slice(in, scores, 1, 0, s->prompt);
    graph_value *later = last_scores(s, in, one, zero);
    graph_value *first = last_scores(s, in, prompt, onnx_const_int(in, DT_I64, s->prompt - 1));
    return in->failed ? later : onnx_where(in, onnx_binary(in, "equal", x->number, zero), first, later);
}

static graph_value *decode_all(const search *s, onnx_node *in, const search_round *x)
{
    const uint32_t count = s->decoder->input.len;
    const int64_t behind = s->most - 1 - s->prompt, rows = s->batch * s->beams;
    graph_value **v = arena_array(&in->c->mem, graph_value *, count + FIRST_PAST), *scores = NULL;
    if (count < FIRST_PAST)
        return onnx_refuse(in, DIAG_FORMAT, "the decoder has %u inputs; input_ids, position_ids, attention_mask and "
                                            "the past are needed", count);
    v[0] = onnx_slice(in, x->tokens, 1, 0, s->most - 1);
    v[1] = s->places;
    v[2] = s->mask;
    if (behind > 0) {
        graph_value *at = onnx_binary(in, "add", onnx_search_steps(in, behind), number(in, s->prompt));
        graph_value *on = onnx_cast(in, onnx_binary(in, "less", at, onnx_cast(in, x->len, DT_I32)), DT_I32);
        const int64_t wide[2] = {rows, behind};
        on = onnx_binary(in, "broadcast_to", on, onnx_const_ints(in, 2, wide));
        v[2] = onnx_concat(in, 2, (graph_value *[]){s->mask, on}, 1);
    }
    for (uint32_t i = FIRST_PAST; i < count; i++)
        v[i] = empty_past(s, in, i);
    if (in->failed || !onnx_inline_bodies(in, s->decoder, count, v, 1, &scores))
        return onnx_nothing(in);
    return scores_of_last(s, in, x, scores);
}

/* --- with an encoder --- */

/* Pads in front are not seen, unless a mask is given. */
static graph_value *encoder_mask(const search *s, graph_value *mask)
{
    onnx_node *n = s->n;
    if (mask)
        return onnx_cast(n, mask, DT_I32);
    graph_value *pad = onnx_const_like(n, s->ids, (double)s->pad);
    graph_value *used = onnx_cast(n, onnx_binary(n, "not_equal", s->ids, pad), DT_I32);
    used = onnx_emit(n, ONNX_ARGS("cumsum", 0, NULL, used, onnx_const_int(n, DT_I64, 1)));
    return onnx_cast(n, onnx_binary(n, "greater", used, number(n, 0)), DT_I32);
}

/* What the encoder gets: its tokens and their mask, or numbers; and in some forms what starts the decoder's tokens. */
static uint32_t encoder_inputs(search *s, graph_value *mask, graph_value **in)
{
    onnx_node *n = s->n;
    const int64_t first[2] = {s->batch, 1};
    uint32_t count = 0;
    in[count++] = s->ids;
    if (!s->hears)
        in[count++] = s->mask = encoder_mask(s, mask);
    in[count++] = s->own_ids ? onnx_cast(n, s->own_ids, DT_I32)
                             : onnx_search_splat(n, DT_I32, 2, first, (double)s->start);
    return count;
}

/* Its results are the caches of the encoder's tokens; in the other form scores of the token behind those that start,
 * what it made of its tokens, caches of the decoder's tokens, and then these. */
bool onnx_search_encode(search *s, graph_value *mask, graph_value ***caches, uint32_t *n_caches, graph_value **scores)
{
    onnx_node *n = s->n;
    graph_value *in[3];
    const uint32_t most = encoder_inputs(s, mask, in), count = s->encoder->input.len, made = s->encoder->output.len;
    const bool scored = count == most;
    const uint32_t rest = scored ? made - 2 : made;
    graph_value **out = arena_array(&n->c->mem, graph_value *, made + 1u), **own = out + (made - rest);
    if ((!scored && (count != 2 || s->hears)) || made < (scored ? 6u : 2u) || rest % (scored ? 4 : 2) != 0)
        return onnx_fail(n, DIAG_FORMAT, "the encoder has %u inputs and %u results; keys and values of each layer are "
                                         "needed", count, made);
    if (n->failed || !onnx_inline_bodies(n, s->encoder, count, in, made, out))
        return false;
    s->mask = s->mask ? onnx_search_rows(s, s->mask) : NULL;
    s->n_cross = scored ? rest / 2 : rest;
    s->cross = own + (rest - s->n_cross);
    for (uint32_t i = 0; i < rest; i++)
        if (onnx_rank(own[i]) != CACHE_RANK)
            return onnx_fail(n, DIAG_TYPE, "keys and values of the encoder must be [batch, heads, positions, size]");
        else
            own[i] = onnx_search_rows(s, own[i]);
    *n_caches = s->n_cross;
    *caches = arena_array(&n->c->mem, graph_value *, s->n_cross + 1u);
    for (uint32_t i = 0; i < s->n_cross; i++) {
        const int64_t none[CACHE_RANK] = {s->batch * s->beams, onnx_static_dim(n, s->cross[i], 1), 0,
                                          onnx_static_dim(n, s->cross[i], 3)};
        (*caches)[i] = scored ? own[i] : onnx_search_splat(n, onnx_dtype(s->cross[i]), CACHE_RANK, none, 0);
    }
    if (!scored)
        return !n->failed;
    s->hidden = onnx_search_rows(s, out[1]);
    const int64_t last = onnx_rank(out[0]) == 3 ? onnx_static_dim(n, out[0], 1) - 1 : 0;
    *scores = onnx_search_rows(s, last_scores(s, n, out[0], onnx_const_int(n, DT_I64, last)));
    return !n->failed;
}

/* The keys and values that a round leaves are those that it got and one position more. */
static graph_value *grown(onnx_node *in, graph_value *now, const graph_value *past)
{
    dim d[CACHE_RANK];
    if (onnx_rank(now) != CACHE_RANK || onnx_dtype(now) != onnx_dtype(past))
        return onnx_refuse(in, DIAG_TYPE, "keys and values that the decoder makes must have the type of those "
                                          "it gets");
    for (uint32_t i = 0; i < CACHE_RANK; i++)
        d[i] = past->type.shape.dims[i];
    d[2] = dim_add(in->c, d[2], dim_const(in->c, 1));
    return onnx_reshape(in, now, CACHE_RANK, d);
}

static graph_value *decode_next(const search *s, onnx_node *in, const search_round *x, graph_value **caches,
                                uint32_t n_caches)
{
    const uint32_t count = s->decoder->input.len, made = 1 + n_caches, masks = s->hears ? 0 : 1;
    const uint32_t plain = 1 + masks + n_caches + s->n_cross;
    graph_value **v = arena_array(&in->c->mem, graph_value *, count + plain + 1u);
    graph_value **out = arena_array(&in->c->mem, graph_value *, made);
    const bool asks = count == plain + 1;
    if ((count != plain && !asks) || (asks && !s->hidden))
        return onnx_refuse(in, DIAG_UNSUPPORTED, "the decoder has %u inputs; input_ids%s and %u keys and values are "
                                                 "needed",
                           count, s->hears ? "" : ", encoder_attention_mask", n_caches + s->n_cross);
    type t = {0};
    const pb_value_info *info = s->decoder->input.data[0];
    if (!info->type || !onnx_type_read(in->im, info->type, "input_ids", &t) || t.shape.rank != 2 ||
        !dim_is(t.shape.dims[1], 1))
        return onnx_refuse(in, DIAG_UNSUPPORTED, "input_ids of the decoder must be declared as [batch, 1]: decoders "
                                                 "that get all tokens again are not supported");
    graph_value *last = onnx_binary(in, "subtract", x->len, onnx_const_int(in, DT_I64, 1));
    v[0] = onnx_search_with_axis(in, onnx_search_take(in, x->tokens, last, 1), 1);
    v[1] = s->mask;
    v[1 + masks] = s->hidden;
    for (uint32_t i = 0; i < n_caches; i++)
        v[1 + masks + asks + i] = caches[i];
    for (uint32_t i = 0; i < s->n_cross; i++)
        v[1 + masks + asks + n_caches + i] = s->cross[i];
    if (in->failed || !onnx_inline_bodies(in, s->decoder, count, v, made, out))
        return onnx_nothing(in);
    for (uint32_t i = 0; i < n_caches && !in->failed; i++)
        caches[i] = grown(in, out[1 + i], caches[i]);
    return last_scores(s, in, out[0], onnx_const_int(in, DT_I64, 0));
}

graph_value *onnx_search_decode(const search *s, onnx_node *in, const search_round *x, graph_value **caches,
                                uint32_t n_caches)
{
    return s->encoder ? decode_next(s, in, x, caches, n_caches) : decode_all(s, in, x);
}
