/* SPDX-License-Identifier: Apache-2.0 */
/* What a model says of itself beside its graph: front ends and passes note it there, and back ends write it. */
#ifndef LATHE_TYPE_MODEL_H
#define LATHE_TYPE_MODEL_H
#include <stdbool.h>
#include <stdint.h>

/* An input or an output that is handed over quantised: value = scale * (number - zero_point). */
typedef struct model_end {
    const char *name;
    bool is_input;
    double scale;
    int64_t zero_point;
} model_end;

/* An input or an output that is strings: u8, and its last axis is their bytes, with zeros behind them. */
typedef struct model_text {
    const char *name;
    bool is_input;
} model_text;

/* "description", "signature serving_default" */
typedef struct model_fact {
    const char *name, *text;
} model_fact;
#endif
