/* SPDX-License-Identifier: Apache-2.0 */
/* The story of a compile, and the options that steer it. */
#ifndef LATHE_DRIVER_PIPELINE_H
#define LATHE_DRIVER_PIPELINE_H
#include "codegen/backend.h"
#include "graph/graph.h"

typedef struct dim_binding {
    const char *name; /* symbol (--dim) or input (--shape) */
    uint32_t rank;
    int64_t dims[TYPE_MAX_RANK];
} dim_binding;

typedef struct compile_options {
    const char *emit; /* "c" | "graph" | "tir" */
    const char *module_name;
    const char *port;
    const struct target *target; /* NULL: default */
    int opt_level;
    bool no_winograd; /* see compiler */
    uint32_t workers;
    const dim_binding *dims, *shapes;
    uint32_t n_dims, n_shapes;
    bool print_after_all, verify, time_passes;
    writer *dump;
} compile_options;

typedef struct compile_result {
    graph_module *graph;
    tir_module *tir;
    codegen_unit unit;
    struct plan plan;
    struct artifact artifact;
} compile_result;

void compile_options_init(compile_options *o);
void compiler_setup(compiler *c); /* compiler_init, built-in operator rows, the evaluate hook */

/* Model (ONNX, or graph text when the file starts with "func" or "//") to graph. frontend/onnx/onnx.h does the reading.
 */
bool pipeline_load(compiler *c, const char *path, const compile_options *o, graph_module **out);
bool pipeline_compile(compiler *c, const char *path, const compile_options *o, compile_result *out);
/* Writes the artifact under dir: temporary folder, then rename; replaces an existing folder only when it is empty or
 * holds our report.json. */
bool artifact_write(compiler *c, const artifact *a, const char *dir);
#endif
