/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow Lite to graph IR. The bytes are read by a bounded reader of FlatBuffers (flat.c), the operators imported
 * through one table (tflite_ops.def). Quantised operators become integer arithmetic that rounds as TensorFlow Lite
 * Micro's reference kernels do: the results are theirs bit for bit. */
#ifndef LATHE_FRONTEND_TFLITE_TFLITE_H
#define LATHE_FRONTEND_TFLITE_TFLITE_H
#include "frontend/frontend.h"

/* A frontend_import_fn. */
bool tflite_import(compiler *c, span bytes, const char *path, const frontend_options *o, graph_module **out);
#endif
