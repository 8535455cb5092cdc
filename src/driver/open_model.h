/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a model whose inputs have open dimensions, before anyone has chosen values for them. */
#ifndef LATHE_DRIVER_OPEN_MODEL_H
#define LATHE_DRIVER_OPEN_MODEL_H
#include "driver/groups.h"
#include "driver/pipeline.h"

typedef struct open_model {
    const graph_func *main; /* NULL: every dimension has a value or a bound, or the file is a computation */
    const char **symbols;   /* the dimensions without either, in the order of the inputs */
    uint32_t n_symbols;
    groups kinds;           /* its nodes by the operator of the model; constants are none */
    uint32_t n_nodes;
    uint64_t constant_bytes;
} open_model;

/* Reads a model for `lathe inspect`. False after a diagnostic. */
bool open_model_read(compiler *c, const char *path, const compile_options *o, open_model *out);
const char *open_model_kind(const open_model *m, uint32_t kind);
void open_model_json(writer *w, const open_model *m);
#endif
