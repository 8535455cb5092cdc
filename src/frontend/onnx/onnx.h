/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX to graph IR. onnx_read: a bounded, table-driven protobuf wire reader over the bytes of the file (depth limit, no
 * copies of tensor data). onnx_import: operators by (domain, name, version) through one table, model-local functions
 * inlined. */
#ifndef LATHE_FRONTEND_ONNX_ONNX_H
#define LATHE_FRONTEND_ONNX_ONNX_H
#include "base/file.h"
#include "graph/graph.h"
#include "graph/op.h"

typedef struct onnx_dim_fix {
    const char *name; /* symbol name (rank 1), or input name */
    bool is_input;
    bool is_bound; /* the symbol stays one, of at most that extent */
    uint32_t rank;
    int64_t dims[TYPE_MAX_RANK];
} onnx_dim_fix;

typedef struct onnx_bind {
    const char *input, *numbers; /* tensor_from_numbers */
} onnx_bind;

typedef struct onnx_options {
    const onnx_dim_fix *fixes;
    uint32_t n_fixes;
    const onnx_bind *binds; /* inputs that are constants */
    uint32_t n_binds;
    bool keeps_floats; /* no arithmetic on floating-point constants while reading: the graph as it stands */
    bool inputs_only;  /* the module is its inputs, of any rank, and nothing else */
    bool fixed_shapes; /* for kernels: open extents of inputs, and an If that is decided at run time, are errors */
} onnx_options;

/* bytes must stay for the whole compile: constants point into them. path: for messages and external data, which
 * must lie under the model's folder. */
bool onnx_import(compiler *c, span bytes, const char *path, const onnx_options *o, graph_module **out);
/* One TensorProto (a .pb test-data file) as a constant. */
bool onnx_read_tensor(compiler *c, span bytes, const char *path, const char **out_name, const tensor_data **out);
#endif
