/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising a model of ONNX: which values get scales, what ranges they have, and the model with QuantizeLinear and
 * DequantizeLinear around its arithmetic (docs/explanation/quantize.md). Running the model is the caller's: it compiles
 * what quantize_calibration gives and shows each run's values to quantize_observe. */
#ifndef LATHE_QUANTIZE_QUANTIZE_H
#define LATHE_QUANTIZE_QUANTIZE_H
#include "frontend/onnx/onnx_edit.h"
#include "quantize/histogram.h"
#include "type/target.h"

/* A value that has no scale because of its type. */
typedef struct quantize_other {
    const char *name; /* interned */
    dtype dt;
} quantize_other;

typedef struct quantize_options {
    target_numbers numbers; /* of the model that is made */
    bool ends; /* inputs and results of the model get scales as well */
    histogram_method method;
    double percentile;
    const char *const *skips; /* names of nodes, or of their results, that stay in float */
    uint32_t n_skips;
    const quantize_other *others; /* values that are not of f32, as far as the caller has seen */
    uint32_t n_others;
} quantize_options;

/* A value of the model that is quantised. */
typedef struct quantize_value {
    const char *name, *op; /* op: what makes it; "" for an input */
    uint32_t group;        /* values of a group have one scale; the number of one of them */
    uint32_t result;       /* its number among the results of quantize_calibration's model, and of `shown` */
    histogram seen;        /* of the group: in that one */
    double lo, hi;         /* of the group: what the numbers span */
    float scale;
    int64_t zero;
    const char *dequantized; /* its name in the quantised model */
} quantize_value;

typedef struct quantizer {
    compiler *c;
    quantize_options o;
    onnx_edit e;
    bool one_scale; /* for the weights of a layer, not one for each output channel */
    VEC(quantize_value) values;
    ptr_map by_name; /* name -> number of the value */
    struct quantize_layer *layers; /* plan.c's: nodes with weights */
    uint32_t n_layers, n_folded;   /* folded: batch norms */
    uint32_t n_nodes, n_quantized; /* of the model, and those whose operands are quantised */
} quantizer;

/* A node with weights (a convolution or product), as the report shows it. */
typedef struct quantize_layer {
    pb_node *node;
    const char *name, *result;
    const char *bias;         /* "" for none */
    const tensor_data *weights;
    int64_t axis;             /* of the output channels */
    int64_t channels;
    double weight_error;      /* of the weights: root of the mean square over that of their values */
} quantize_layer;

/* Reads the model, folds batch norms and chooses what is quantised. false after a diagnostic. The file does not say
 * the types of values: the results of quantize_calibration's model do, and where some are no f32 the model is opened
 * again with them among the options. */
bool quantize_open(compiler *c, span bytes, const char *path, const quantize_options *o, quantizer *out);
/* The float model whose results are its own, and behind them the values that are none of these. */
bool quantize_calibration(quantizer *q, span *out);
void quantize_observe(quantizer *q, uint32_t value, const float *x, int64_t count);
/* Scales from what was seen, and the quantised model; `shown`: the values, dequantised, are results as well. Once. */
bool quantize_write(quantizer *q, span *out, span *shown);
#endif
