/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of GreedySearch, BeamSearch, WhisperBeamSearch and Sampling: what the node says, and the loop of its
 * rounds. */
#include "frontend/onnx/onnx_search.h"

#include <math.h>

/* Operands by number; of GreedySearch and Sampling, of BeamSearch. -1: it has none. */
enum { IDS, MOST, LEAST, BEAMS, RETURNED, LENGTH_PENALTY, REPETITION, VOCABULARY, PREFIXES, MASK, N_OPERANDS };
static const int operands[2][N_OPERANDS] = {{0, 1, 2, -1, -1, -1, 3, 4, 5, 6}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}};
enum { PRESENCES = 7, SEED = 8 };                                         /* of Sampling */
enum { OWN_IDS = 10, PROCESSOR = 11, MORE_IDS = 13, TEMPERATURE = 14 }; /* of WhisperBeamSearch; two of BeamSearch */

enum { MOST_TOKENS = 1 << 24 };

static graph_value *operand(const search *s, int which)
{
    const int i = operands[s->kind == SEARCH_BEAM][which];
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

/* Tokens that only the rules of timestamps use, or results that are refused. */
static const char *const unused_by_hearing[] = {
    "beginning_timestamp_token_id", "no_speech_token_id", "no_timestamps_token_id", "start_of_lm_token_id",
    "transcribe_token_id", "translate_token_id"};

/* How Sampling changes scores. */
static void read_sampling(search *s)
{
    onnx_node *n = s->n;
    s->temperature = onnx_attr_float(n, "temperature", 1);
    s->top_p = onnx_attr_float(n, "top_p", 0);
    s->filter = onnx_attr_float(n, "filter_value", -INFINITY);
    s->presence = onnx_attr_float(n, "presence_penalty", 0);
    s->keep = onnx_attr_int(n, "min_tokens_to_keep", 0);
    s->custom = onnx_attr_int(n, "custom", 0) != 0;
    s->presences = onnx_optional(n, PRESENCES);
}

/* What WhisperBeamSearch has beside the others. */
static bool read_hearing(search *s)
{
    onnx_node *n = s->n;
    double rules = 0;
    graph_value *own = onnx_optional(n, OWN_IDS), *processor = onnx_optional(n, PROCESSOR),
                *temperature = onnx_optional(n, TEMPERATURE);
    for (uint32_t i = 0; i < sizeof unused_by_hearing / sizeof *unused_by_hearing; i++)
        (void)onnx_attr_int(n, unused_by_hearing[i], 0);
    s->temperature = 1;
    if (onnx_attr_int(n, "decoder_output_cross_qk", 0) != 0 || onnx_optional(n, MORE_IDS))
        return onnx_fail(n, DIAG_UNSUPPORTED, "decoder_output_cross_qk and extra_decoding_ids are not supported");
    if (processor && (!onnx_float_of(processor, &rules) || rules != 0))
        return onnx_fail(n, DIAG_UNSUPPORTED, "logits_processor must be 0: the rules of timestamps are not supported");
    if (temperature && !onnx_float_of(temperature, &s->temperature))
        return onnx_fail(n, DIAG_UNSUPPORTED, "temperature must be a constant number; --bind fixes an input");
    if (own && (onnx_rank(own) != 2 || onnx_static_dim(n, own, 0) != s->batch))
        return onnx_fail(n, DIAG_TYPE, "decoder_input_ids must be [batch, tokens]");
    s->own_ids = own;
    s->prompt = own ? onnx_static_dim(n, own, 1) : 1;
    return !n->failed;
}

static bool read_kind(search *s)
{
    onnx_node *n = s->n;
    const int64_t kind = onnx_attr_int(n, "model_type", s->hears ? 2 : 0), wanted = s->hears ? 2 : 1;
    if (kind != (s->hears ? 2 : 0) && (kind != wanted || s->kind != SEARCH_BEAM))
        return onnx_fail(n, DIAG_UNSUPPORTED, "model_type = %lld is not supported: with an encoder (1), there is "
                                              "BeamSearch alone; Whisper's (2) is WhisperBeamSearch",
                         (long long)kind);
    s->encoder = kind != 0 ? onnx_attr_graph(n, "encoder") : NULL;
    s->prompt = s->encoder ? 1 : onnx_static_dim(n, s->ids, 1);
    if (s->encoder && s->start < 0 && !(s->hears && onnx_optional(n, OWN_IDS)))
        return onnx_fail(n, DIAG_FORMAT, "a search with an encoder needs decoder_start_token_id");
    if (s->hears)
        return read_hearing(s);
    if (s->kind == SEARCH_BEAM && (onnx_optional(n, OWN_IDS) || onnx_optional(n, PROCESSOR)))
        return onnx_fail(n, DIAG_UNSUPPORTED, "decoder_input_ids and logits_processor, which are Whisper's, are not "
                                              "supported");
    return !n->failed;
}

static bool read_attributes(search *s)
{
    onnx_node *n = s->n;
    s->decoder = onnx_attr_graph(n, "decoder");
    s->end = onnx_attr_int(n, "eos_token_id", 0);
    s->pad = onnx_attr_int(n, "pad_token_id", 0);
    s->start = onnx_attr_int(n, "decoder_start_token_id", -1);
    s->early = onnx_attr_int(n, "early_stopping", 0) != 0;
    s->no_repeat = onnx_attr_int(n, "no_repeat_ngram_size", 0);
    s->tokens = onnx_attr_int(n, "vocab_size", 0);
    if (onnx_has_attr(n, "init_decoder"))
        (void)onnx_attr_graph(n, "init_decoder"); /* the same decoder, for the first round */
    if (s->kind == SEARCH_SAMPLE)
        read_sampling(s);
    if (s->tokens == -1)
        s->tokens = 0; /* as if it were not there */
    if (s->tokens < 0)
        return onnx_fail(n, DIAG_FORMAT, "vocab_size = %lld", (long long)s->tokens);
    if (n->failed || !s->decoder)
        return onnx_fail(n, DIAG_FORMAT, "the attribute decoder is missing");
    return read_kind(s);
}

static bool read_search(search *s)
{
    onnx_node *n = s->n;
    s->ids = onnx_in(n, IDS);
    if (onnx_rank(s->ids) != (s->hears ? 3u : 2u))
        return onnx_fail(n, DIAG_TYPE, s->hears ? "input_ids must be [batch, features, frames]"
                                                : "input_ids must be [batch, sequence]");
    s->batch = onnx_static_dim(n, s->ids, 0);
    s->vocabulary = operand(s, VOCABULARY);
    s->prefix = operand(s, PREFIXES);
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

/* What the first round starts with. */
static void first_values(const search *s, search_round *x)
{
    onnx_node *n = s->n;
    const int64_t own[2] = {s->batch, 1}, rest[2] = {s->batch, s->most - s->prompt}, rows = s->batch * s->beams;
    const int64_t kept[3] = {s->batch, s->beams, s->most};
    graph_value *ids = !s->encoder ? s->ids : s->own_ids ? s->own_ids
                                                         : onnx_search_splat(n, DT_I32, 2, own, (double)s->start);
    ids = onnx_cast(n, ids, DT_I32);
    graph_value *pads = onnx_search_splat(n, DT_I32, 2, rest, (double)s->pad);
    x->tokens = onnx_search_rows(s, onnx_concat(n, 2, (graph_value *[]){ids, pads}, 1));
    x->done = onnx_search_splat(n, DT_BOOL, 1, &s->batch, 0);
    float *sums = arena_array(&n->c->mem, float, (size_t)rows);
    for (int64_t i = 0; i < rows; i++)
        sums[i] = i % s->beams == 0 ? 0.f : -1e9f; /* the beams differ from the second round on */
    x->sums = onnx_constant(n, tensor_dense(n->c, DT_F32, 1, &rows, sums));
    x->kept = onnx_search_splat(n, DT_I32, 3, kept, (double)s->pad);
    x->kept_scores = onnx_search_splat(n, DT_F32, 2, kept, -INFINITY);
}

/* --- the body of the loop --- */

static graph_value *inside(onnx_region *r, const char *name, graph_value *v)
{
    return v ? onnx_region_value(r, name, v) : NULL;
}

/* The search as its rounds see it: what is captured are their own values. */
static search search_inside(const search *s, onnx_region *r)
{
    search in = *s;
    in.mask = inside(r, "mask", s->mask);
    in.places = inside(r, "places", s->places);
    in.vocabulary = inside(r, "vocabulary", s->vocabulary);
    in.prefix = inside(r, "prefix", s->prefix);
    in.presences = inside(r, "presences", s->presences);
    in.draws = inside(r, "draws", s->draws);
    in.hidden = inside(r, "hidden", s->hidden);
    in.cross = arena_array(&s->n->c->mem, graph_value *, s->n_cross + 1u);
    for (uint32_t i = 0; i < s->n_cross; i++)
        in.cross[i] = inside(r, intern(s->n->c->names, arena_printf(&s->n->c->mem, "cross_%u", i)), s->cross[i]);
    return in;
}

/* Parameters for what is carried: caches are of one more position in each round. */
static void add_params(const search *s, onnx_region *r, uint32_t count, uint32_t n, graph_value *const *carried,
                       graph_value **out)
{
    static const char *const names[SEARCH_VALUES] = {"tokens", "done", "sums", "kept", "kept_scores"};
    compiler *c = s->n->c;
    dim past = n > count ? dim_fresh(c, "past", s->most) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        type t = carried[i]->type;
        dim d[TYPE_MAX_RANK];
        for (int32_t k = 0; k < t.shape.rank; k++)
            d[k] = i >= count && k == 2 ? past : t.shape.dims[k];
        t.shape = shape_make(c, (uint32_t)t.shape.rank, d);
        out[i] = graph_add_param(r->f, i < count ? names[i] : intern(c->names, arena_printf(&c->mem, "past_%u", i)), t);
    }
}

/* A round behind `done` others: its decoder, and what its scores lead to. */
static void make_round(const search *s, onnx_region *r, int64_t done, uint32_t n_carried, graph_value *const *carried)
{
    onnx_node *n = s->n;
    onnx_captures captures = {.n = n};
    search_round x = {.number = graph_add_param(r->f, "round", type_static(n->c, DT_I64, 0, NULL))};
    graph_value **of[SEARCH_VALUES], **v = arena_array(&n->c->mem, graph_value *, n_carried);
    const uint32_t count = onnx_search_values(s, &x, of);
    add_params(s, r, count, n_carried, carried, v);
    for (uint32_t i = 0; i < count; i++)
        *of[i] = v[i];
    onnx_capture(&captures, s->decoder);
    if (n->failed)
        return;
    onnx_region_captures(r, &captures);
    const search own = search_inside(s, r);
    onnx_node in = onnx_region_node(r);
    if (done > 0)
        x.number = onnx_binary(&in, "add", x.number, onnx_const_int(&in, DT_I64, done));
    x.len = onnx_binary(&in, "add", x.number, onnx_const_int(&in, DT_I64, s->prompt));
    x.scores = onnx_search_decode(&own, &in, &x, v + count, n_carried - count);
    if (!in.failed)
        onnx_search_step(&own, &in, &x);
    for (uint32_t i = count; i < n_carried && !in.failed && x.from && s->beams > 1; i++)
        v[i] = onnx_search_take(&in, v[i], x.from, 0);
    if (!in.failed)
        graph_add_result(r->f, x.go);
    for (uint32_t i = 0; i < n_carried && !in.failed; i++)
        graph_add_result(r->f, i < count ? *of[i] : v[i]);
    n->failed |= in.failed;
}

/* --- the node --- */

/* What the rounds read, and what the first one is given: caches, and of an encoder that makes them the scores
 * of a first round, which is done here. */
static bool prepare(search *s, search_round *x, graph_value ***caches, uint32_t *n_caches)
{
    onnx_node *n = s->n;
    graph_value *mask = operand(s, MASK);
    if (s->kind == SEARCH_SAMPLE)
        s->draws = onnx_search_draws(s, onnx_optional(n, SEED));
    if (s->prefix)
        s->prefix = onnx_search_rows(s, s->prefix);
    first_values(s, x);
    if (!s->encoder) {
        onnx_search_places(s, mask);
        return !n->failed;
    }
    if (!onnx_search_encode(s, mask, caches, n_caches, &x->scores) || !x->scores)
        return !n->failed;
    x->number = onnx_const_int(n, DT_I64, 0);
    x->len = onnx_const_int(n, DT_I64, s->prompt);
    onnx_search_step(s, n, x);
    return !n->failed;
}

static bool import_search(onnx_node *n, search_kind kind, bool hears)
{
    search s = {.n = n, .kind = kind, .hears = hears};
    search_round x = {0};
    onnx_region r;
    graph_value **caches = NULL, **of[SEARCH_VALUES];
    uint32_t n_caches = 0, most_results = kind == SEARCH_BEAM ? 2 : 1;
    if (!read_search(&s))
        return false;
    for (uint32_t i = most_results; i < n->n_out; i++)
        if (n->out_names[i])
            return onnx_fail(n, DIAG_UNSUPPORTED, "scores of all rounds, or of the last one, as a result are not "
                                                  "supported");
    if (!prepare(&s, &x, &caches, &n_caches))
        return false;
    const uint32_t count = onnx_search_values(&s, &x, of);
    const int64_t done = x.scores != NULL;
    graph_value **first = arena_array(&n->c->mem, graph_value *, count + n_caches);
    for (uint32_t i = 0; i < count + n_caches; i++)
        first[i] = i < count ? *of[i] : caches[i - count];
    onnx_region_open(&r, n, NULL, "token");
    make_round(&s, &r, done, count + n_caches, first);
    onnx_loop l = {.trips = onnx_const_int(n, DT_I64, s.most - s.prompt - done), .carried = first,
                   .n_carried = count + n_caches};
    graph_node *loop = n->failed ? NULL : onnx_emit_loop(n, n->f, &l, &r);
    if (!loop)
        return false;
    for (uint32_t i = 0; i < count; i++)
        *of[i] = loop->outputs[i];
    return kind == SEARCH_BEAM ? onnx_search_finish(&s, &x) : onnx_alias(n, 0, x.tokens);
}

bool onnx_op_greedy_search(onnx_node *n)
{
    return import_search(n, SEARCH_GREEDY, false);
}

bool onnx_op_beam_search(onnx_node *n)
{
    return import_search(n, SEARCH_BEAM, false);
}

bool onnx_op_whisper_beam_search(onnx_node *n)
{
    return import_search(n, SEARCH_BEAM, true);
}

bool onnx_op_sampling(onnx_node *n)
{
    return import_search(n, SEARCH_SAMPLE, false);
}
