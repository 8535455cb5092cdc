/* SPDX-License-Identifier: Apache-2.0 */
/* A model of ONNX that is changed and written again: constants by name, new ones, new nodes, metadata. All of the model
 * that is not touched stays as it was. Names are interned. */
#ifndef LATHE_FRONTEND_ONNX_ONNX_EDIT_H
#define LATHE_FRONTEND_ONNX_ONNX_EDIT_H
#include "base/ptr_map.h"
#include "frontend/onnx/onnx_proto.h"
#include "type/tensor.h"

typedef struct onnx_edit {
    compiler *c;
    const char *path;
    span bytes;
    pb_model *model;
    pb_graph *graph;   /* of model */
    ptr_map constants; /* name -> number in `tensors` */
    VEC(const pb_tensor *) tensors;
    ptr_map taken; /* names that somebody has */
} onnx_edit;

/* Reads a model. Bytes of external files are taken in, so that the file written is whole. false after a diagnostic. */
bool onnx_edit_open(compiler *c, span bytes, const char *path, onnx_edit *out);
bool onnx_edit_bytes(onnx_edit *e, span *out);

int64_t onnx_edit_opset(const onnx_edit *e); /* of ai.onnx; 0: none */
const char *onnx_edit_name(const onnx_edit *e, span s);
const char *onnx_edit_op(const onnx_edit *e, const pb_node *n); /* "" outside of ai.onnx */
/* Operand or result i; "" where it is left out. */
const char *onnx_edit_input(const onnx_edit *e, const pb_node *n, uint32_t i);
const char *onnx_edit_output(const onnx_edit *e, const pb_node *n, uint32_t i);
/* An initializer, or what a Constant node makes; NULL: the name is no constant that can be read. */
const tensor_data *onnx_edit_constant(onnx_edit *e, const char *name);
int64_t onnx_edit_int(const onnx_edit *e, const pb_node *n, const char *attribute, int64_t otherwise);
double onnx_edit_float(const onnx_edit *e, const pb_node *n, const char *attribute, double otherwise);
const char *onnx_edit_string(const onnx_edit *e, const pb_node *n, const char *attribute, const char *otherwise);
/* Name -> how often nodes read it, those of bodies as well; results of a graph count as 2. */
void onnx_edit_count_reads(const onnx_edit *e, ptr_map *out);
bool onnx_edit_is_result(const onnx_edit *e, const char *name); /* of the graph */

const char *onnx_edit_fresh(onnx_edit *e, const char *want); /* that name, or with _1, _2, ... */
const char *onnx_edit_add_constant(onnx_edit *e, const char *want, const tensor_data *t); /* its name */
/* A node of ai.onnx with one result, not in the graph yet. */
pb_node *onnx_edit_node(onnx_edit *e, const char *op, uint32_t n_in, const char *const *in, const char *result);
void onnx_edit_set_int(onnx_edit *e, pb_node *n, const char *attribute, int64_t v);
void onnx_edit_set_input(onnx_edit *e, pb_node *n, uint32_t i, const char *name); /* appended when i is its number */
void onnx_edit_set_output(onnx_edit *e, pb_node *n, const char *from, const char *to); /* the result of that name */
/* A tensor becomes a result of the graph, if it is none yet; which one it is. */
uint32_t onnx_edit_add_result(onnx_edit *e, const char *name);
void onnx_edit_set_metadata(onnx_edit *e, const char *key, const char *value);
/* BatchNormalization with constant parameters right behind a Conv with constant weights goes into these. Returns how
 * many went. */
uint32_t onnx_edit_fold_batch_norms(onnx_edit *e);
#endif
