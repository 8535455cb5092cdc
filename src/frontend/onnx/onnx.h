/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX to graph IR. onnx_read: a bounded, table-driven protobuf wire reader over the bytes of the file (depth limit, no
 * copies of tensor data). onnx_import: operators by (domain, name, version) through one table, model-local functions
 * inlined. */
#ifndef LATHE_FRONTEND_ONNX_ONNX_H
#define LATHE_FRONTEND_ONNX_ONNX_H
#include "frontend/frontend.h"
#include "graph/op.h"

/* A frontend_import_fn; external data must lie under the model's folder. */
bool onnx_import(compiler *c, span bytes, const char *path, const frontend_options *o, graph_module **out);
/* One TensorProto (a .pb test-data file) as a constant. */
bool onnx_read_tensor(compiler *c, span bytes, const char *path, const char **out_name, bool *out_is_text,
                      const tensor_data **out);

/* What a SequenceProto, an OptionalProto of one, or of a tensor holds; or a MapProto: its keys, and their values. */
typedef struct onnx_values {
    bool none; /* an optional without its element */
    uint32_t n;
    const tensor_data **items;
    bool *is_text; /* of each: strings, with their bytes as the last axis */
} onnx_values;
bool onnx_read_values(compiler *c, span bytes, const char *path, bool is_sequence, bool is_optional, onnx_values *out);
bool onnx_read_map(compiler *c, span bytes, const char *path, onnx_values *out);
#endif
