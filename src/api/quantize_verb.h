/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizes a float model: the options, and what is found. */
#ifndef LATHE_API_QUANTIZE_VERB_H
#define LATHE_API_QUANTIZE_VERB_H
#include "api/ask.h"
#include "driver/run.h"
#include "quantize/quantize.h"

/* What a quantised value has lost, over all samples. */
typedef struct quantize_loss {
    double error, power;
    int64_t others; /* calls in which the quantised model gave it other extents: there is nothing to compare */
} quantize_loss;

typedef struct quantize_run {
    ask *x;
    compiler *c;
    compile_options options;
    const char *scratch;
    long workers;
    quantizer q;
    run_model plain, quantized; /* compiled, with the values among their outputs */
    quantize_loss *losses; /* of values */
    int64_t seen, calls, samples, right, right_quantized, same;
    int64_t classes, strangers; /* strangers: labels that are no class */
    run_tensor labels;
    bool has_labels, has_answers;
} quantize_run;

/* Writes the model that is asked for; false after a diagnostic. *out lies in the memory of x->c. */
bool quantize_verb(ask *x, quantize_run **out);
void quantize_verb_write_json(const quantize_run *r, writer *w);
/* Of a value: the root of the mean square of its error, relative; the part of what was seen that is cut off. */
double quantize_verb_loss(const quantize_run *r, uint32_t i);
double quantize_verb_saturated(const quantize_run *r, uint32_t i);
#endif
