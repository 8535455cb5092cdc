/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a model of ONNX as it stands in its file: operands that are blank, cut, doubled, missing, of another rank
 * and type; attributes that are missing, of another kind or far out; other operator sets. They are numbered, the same
 * number of the same model is always the same change. */
#ifndef LATHE_TEST_ONNX_MUTATE_H
#define LATHE_TEST_ONNX_MUTATE_H
#include "frontend/onnx/onnx_proto.h"

/* Makes change `number` and returns its name. NULL: the model has fewer, *out_count of them. */
const char *onnx_mutate(compiler *c, pb_model *m, uint32_t number, uint32_t *out_count);
#endif
