/* SPDX-License-Identifier: Apache-2.0 */
/* What capture.c needs of exec.c. */
#ifndef LATHE_CODEGEN_VTA_EXEC_H
#define LATHE_CODEGEN_VTA_EXEC_H
#include "target/vta/code/vta_code.h"

/* vta_code_execute for a capture. *out_full: the context's queue or micro-op log was too small, which is not reported.
 * What the host would compute itself is refused: a stream does not hold it. */
bool vta_exec_capture(compiler *c, const tir_func *f, vta_context *x, const vta_buffer *buffers, bool *out_full);
#endif
