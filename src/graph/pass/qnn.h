/* SPDX-License-Identifier: Apache-2.0 */
/* What the pass use-integers asks of a graph of dequantised values (QDQ): which of them are quantised numbers, with
 * which parameters, and which are biases. Nothing is changed here. */
#ifndef LATHE_GRAPH_PASS_QNN_H
#define LATHE_GRAPH_PASS_QNN_H
#include "base/ptr_map.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"

#define QNN_MAX_NODES 16u /* operators of a table */
#define QNN_MAX_PARTS 64u /* operands of a concatenation */

/* Scale and zero point that are constants. */
typedef struct qnn_params {
    const tensor_data *scale, *zero; /* f32; zero NULL: 0 */
    int32_t axis;                    /* of the value, where there is more than one scale */
    dtype dt;                        /* of the quantised numbers */
} qnn_params;

bool qnn_is_single(const qnn_params *p); /* one scale and one zero point for all */
bool qnn_is_wide(const qnn_params *p);   /* of 16 bits */
float qnn_scale(const qnn_params *p, int64_t i);
int64_t qnn_zero(const qnn_params *p, int64_t i);
bool qnn_same_params(const qnn_params *a, const qnn_params *b);
bool qnn_powers_of_two(const qnn_params *p);
int64_t qnn_quantized(const qnn_params *p, double x, bool half_up); /* of one number: rounded, saturated */

/* The parameters of n, a dequantize or a quantize; false: they are no constants, blocks, or of another type than 8
 * or 16 bits (`wide`: or i32). */
bool qnn_read_params(const graph_node *n, bool wide, qnn_params *out);
/* v is made by a dequantize of numbers with these parameters. */
bool qnn_dequantized(const graph_value *v, bool wide, qnn_params *out);
/* The same through operators that only move elements, or choose among them: these work on quantised numbers as well,
 * where the numbers that pads put in are among them. */
bool qnn_is_quantised(const graph_value *v, qnn_params *out);
/* The same, whatever pads put in: of a value inside one that was asked for. */
bool qnn_source(const graph_value *v, qnn_params *out);
/* NULL: n, a resize, is linear, and its weights along each of `axes` axes are whole numbers times 2 to minus `bits`.
 * Otherwise why not. */
const char *qnn_read_resize(const graph_node *n, uint32_t *bits, uint32_t *axes);
/* n is a pad with one number, `fill`. */
bool qnn_pads_by_constant(const graph_node *n, double *fill);
/* n is the mean over all spatial axes, in any order; they stay, or go. */
bool qnn_is_global_mean(const graph_node *n);
/* The operand of n that such an operator moves, or all of them; 0: n is another operator. */
uint32_t qnn_moved_operands(const graph_node *n);

/* The weights w less their zero points, one for each of `lines` that stand `apart` elements from each other, one for
 * all, or none (NULL), in the integers `to`; sums: of each line, NULL where nobody asks. NULL: some do not fit. */
const tensor_data *qnn_centred(compiler *c, dtype to, const tensor_data *w, const tensor_data *zeros, int64_t lines,
                               int64_t apart, int64_t *sums);

/* How rows round to the nearest even under these options: the value of their attribute `method`. */
const char *qnn_method(const pass_options *o);
/* A sum whose scale is a product of two by another, rounded as TensorFlow Lite does. */
typedef struct qnn_fixed {
    float first, last;         /* scales of one operand and of the result */
    const tensor_data *second; /* of the other one: one, or one for each index of the axis */
    bool twice;
    int64_t axis, most;        /* most: no sum is farther from 0 */
    dtype out;
} qnn_fixed;
/* The qnn.rescale of acc, with its multipliers and shifts; zero: may be NULL. NULL after an error. */
graph_value *qnn_rescale(rewriter *r, const qnn_fixed *x, graph_value *acc, graph_value *zero, src_loc loc);
/* --- numbers of 16 bits (qnn_wide.c) --- */
/* No sum of products with numbers of x is farther from 0, whatever they are, by the weights w of `lines` channels on
 * axis `line`; products: of one sum. */
int64_t qnn_most_sum(compiler *c, const qnn_params *x, const tensor_data *w, const qnn_params *of_w, int32_t line,
                     int64_t products);
/* acc times the products of the scales of x and w by that of y, rounded to the nearest exactly. */
graph_value *qnn_requantize_wide(rewriter *r, graph_value *acc, const qnn_params *x, const qnn_params *w,
                                 const qnn_params *y, int64_t axis, graph_value *zero, src_loc loc);
/* The greatest distance of a number from its zero point. */
int64_t qnn_reach(const qnn_params *p);
/* The sums of row `op` for the node n (in: data, weights, zero points), with outputs on the weights' axis `line`, in
 * i64 from at most so many parts in i32 (qnn_parts.c). NULL: it is not made so. */
graph_value *qnn_sum_in_parts(rewriter *r, const graph_node *n, const char *op, graph_value *const *in,
                              const qnn_params *x, const qnn_params *w, int32_t line, uint32_t most);
uint32_t qnn_most_parts(const pass_options *o);
/* Numbers with parameters x as numbers with parameters y. */
graph_value *qnn_change_scale(rewriter *r, graph_value *numbers, const qnn_params *x, const qnn_params *y,
                              graph_value *zero, src_loc loc);
/* --- forms of onnxruntime (qnn_form.c) --- */
/* Value -> position in f->nodes of the node that reads it, the last one. */
void qnn_find_readers(compiler *c, const graph_func *f, ptr_map *out);
/* The quantize and dequantize nodes of f, of i8, between which it makes u8; behind rewrite_begin, which counts uses. */
void qnn_find_u8(compiler *c, const graph_func *f, const ptr_map *readers, ptr_map *out);
/* The attributes, at most one, that say how the row for n rounds, whose first n_data operands are dequantised and whose
 * result q quantises; clips: there are some between, which the type's range does not imply. How many there are. */
uint32_t qnn_form(compiler *c, const ptr_map *u8, const graph_node *n, uint32_t n_data, const graph_node *q,
                  bool clips, attr *out);

/* Rows that an importer made: each rounds by the method of the options, as far as it has that. */
bool qnn_set_methods(compiler *c, graph_func *f, const pass_options *o);

/* --- what stays in float (qnn_stay.c) --- */
typedef struct qnn_reasons {
    ptr_map of; /* node -> position in texts, as far as a reason was looked for */
    VEC(const char *) texts;
} qnn_reasons;
void qnn_set_reason(compiler *c, qnn_reasons *r, const graph_node *n, const char *why);
/* Notes in f's module; integers: the pass has looked for operators in integers at all. */
void qnn_note_floats(compiler *c, const graph_func *f, const qnn_reasons *r, bool integers);

/* What notes of the pass convert-rows begin with, in front of ": " and the reason. */
#define QNN_NOTE_BYTES "its weights of 4 bits become bytes"
#define QNN_NOTE_PLAIN "its sums are plain loops"

#define QNN_LEAST_NIBBLES 64 /* weights, fewer than which the code that takes them apart outweighs */
/* Products by constants of 4 bits keep them packed (nibbles.c). */
bool qnn_keep_nibbles(compiler *c, graph_func *f, const pass_options *o);
/* A note that n's weights become bytes, for such a reason, if the model has them in 4 bits; of the pass convert-rows,
 * which keeps others two in a byte. */
void qnn_note_bytes(compiler *c, graph_func *f, const graph_node *n, const char *why);
/* The same of each convolution and product of integers. */
void qnn_note_all_bytes(compiler *c, graph_func *f, const char *why);
/* The same of those that pack-nibbles will not keep. */
void qnn_note_wide_nibbles(compiler *c, graph_func *f);

/* A value that is element by element a function of one quantised value, and no constant. */
typedef struct qnn_cone {
    graph_value *source; /* which qnn_is_quantised, with one scale */
    qnn_params params;
    uint32_t n_nodes; /* operators in between; 0: the value is the source */
    graph_value *nodes[QNN_MAX_NODES]; /* their results, operands first */
} qnn_cone;
bool qnn_read_cone(graph_value *v, qnn_cone *out);
/* The largest extents that a run may give. False: one has no limit, so that sums along it may leave 32 bits. */
bool qnn_get_bounds(shape s, int64_t *out);
/* The table of a qnn.softmax of x, numbers of that scale, along axis, whose extent may be open. NULL: an error. */
graph_value *qnn_softmax_table(rewriter *r, graph_value *x, uint32_t axis, float scale, src_loc loc);

/* What the numbers -128..127 or 0..255, by their bits as u8, become: quantised by q's parameters (a qnn.quantize), and
 * for a cone of no operators by the change of scales alone. Constant nodes, for folding. NULL after an error. */
graph_value *qnn_make_table(rewriter *r, const qnn_cone *x, const graph_node *q);

/* A constant number, or vector of numbers for each entry of the axis of extent `channels` (0: of one entry), which is
 * the last axis but `behind` of what v is added to. Looked for through reshapes. */
typedef struct qnn_bias {
    const tensor_data *numbers; /* f32, or i32 of a dequantize */
    bool is_integer;
    qnn_params params; /* then */
} qnn_bias;
bool qnn_read_bias(const graph_value *v, int64_t channels, uint32_t behind, qnn_bias *out);
#endif
