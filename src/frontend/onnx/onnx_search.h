/* SPDX-License-Identifier: Apache-2.0 */
/* Searches (GreedySearch, BeamSearch, Sampling): a decoder that onnxruntime runs again and again, each time with one
 * more token. What the node says (onnx_op_generate.c), what the decoder gets in a round (onnx_search_decoder.c), and
 * what its scores lead to (onnx_search_round.c). */
#ifndef LATHE_FRONTEND_ONNX_ONNX_SEARCH_H
#define LATHE_FRONTEND_ONNX_ONNX_SEARCH_H
#include "frontend/onnx/onnx_import.h"

typedef enum search_kind { SEARCH_GREEDY, SEARCH_BEAM, SEARCH_SAMPLE } search_kind;

typedef struct search {
    onnx_node *n;
    search_kind kind;
    const pb_graph *decoder, *encoder; /* encoder NULL: the prompt is the beginning of the decoder's own tokens */
    bool hears;                        /* of Whisper's kind: the encoder gets numbers, and no mask */
    int64_t batch, prompt;             /* prompt: of these tokens; with an encoder it is what starts the decoder's */
    int64_t most, least, beams, returned, start, end, pad, no_repeat;
    int64_t tokens; /* of the vocabulary, which are the first scores of a row; 0: all */
    bool early;
    double repetition, length_penalty;
    double temperature;                /* of SEARCH_SAMPLE, and of what hears */
    double top_p, filter, presence;    /* of SEARCH_SAMPLE */
    int64_t keep;
    bool custom;
    graph_value *ids, *own_ids; /* own_ids: what starts the decoder's tokens; NULL: `start` */
    /* What all rounds read; NULL: the search has none. */
    graph_value *mask;       /* i32[rows, prompt]; with an encoder i32[rows, its tokens] */
    graph_value *places;     /* i32[rows, most - 1] */
    graph_value *vocabulary; /* i32[vocabulary] */
    graph_value *prefix;     /* i32[rows, vocabulary], of the first round alone */
    graph_value *presences;  /* i32[batch, vocabulary] */
    graph_value *draws;      /* f64[rounds, batch], from 0 to 1 */
    graph_value *hidden;     /* what the encoder made of its tokens, for decoders that ask for it */
    graph_value **cross;     /* keys and values of the encoder's tokens */
    uint32_t n_cross;
} search;

/* What a round gets and what is left of it: [rows, most], [batch], and of beams [rows], [batch, beams, most],
 * [batch, beams]. There are batch * beams rows. */
typedef struct search_round {
    graph_value *number, *len; /* i64[]: of the round, from 0 on; of the tokens so far */
    graph_value *tokens, *done, *sums, *kept, *kept_scores;
    graph_value *scores; /* f32[rows, vocabulary], as the decoder gives them */
    graph_value *go;     /* made by the round: bool[], not all samples are done */
    graph_value *from;   /* made by a round of beams: i64[rows], which row each goes on with; NULL: its own */
} search_round;

enum { SEARCH_VALUES = 5 };
/* Those that a round leaves for the next one; how many there are. */
uint32_t onnx_search_values(const search *s, search_round *x, graph_value **out[SEARCH_VALUES]);
/* Scores become the next tokens: x as the next round gets it. */
void onnx_search_step(const search *s, onnx_node *in, search_round *x);
/* The best rows of beams, as results of the node. */
bool onnx_search_finish(const search *s, const search_round *x);
/* Numbers from 0 to 1 for all rounds of SEARCH_SAMPLE, onnxruntime's; seed NULL: by the node's name. */
graph_value *onnx_search_draws(const search *s, graph_value *seed);

/* Masks and places of the prompt. */
void onnx_search_places(search *s, graph_value *mask);
/* Runs the encoder: the values that its decoder's first round has cached, [rows, heads, positions, size], how many
 * these are, and scores for the first tokens (NULL: the decoder makes them, too). */
bool onnx_search_encode(search *s, graph_value *mask, graph_value ***caches, uint32_t *n_caches, graph_value **scores);
/* Scores of what follows x's tokens; caches become those of the next round. */
graph_value *onnx_search_decode(const search *s, onnx_node *in, const search_round *x, graph_value **caches,
                                uint32_t n_caches);

/* --- small parts --- */

graph_value *onnx_search_take(onnx_node *n, graph_value *x, graph_value *at, int64_t axis);
graph_value *onnx_search_with_axis(onnx_node *n, graph_value *x, int64_t axis);
graph_value *onnx_search_steps(onnx_node *n, int64_t count); /* i32[count]: 0, 1, 2, .. */
graph_value *onnx_search_splat(onnx_node *n, dtype dt, uint32_t rank, const int64_t *dims, double v);
/* [batch, ..] with each sample as often as there are beams, one after the other. */
graph_value *onnx_search_rows(const search *s, graph_value *x);
#endif
