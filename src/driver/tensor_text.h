/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of strings in files: NumPy's kinds S and U as bytes of one width, padded with zeros. */
#ifndef LATHE_DRIVER_TENSOR_TEXT_H
#define LATHE_DRIVER_TENSOR_TEXT_H
#include "driver/run.h"

/* What a file has of a tensor. */
typedef struct tensor_content {
    dtype dt;
    uint32_t rank;
    int64_t dims[TYPE_MAX_RANK];
    const uint8_t *data;
    size_t len;
    bool raw;     /* neither dtype nor shape are known */
    bool is_text; /* strings: u8, the last axis is their bytes */
} tensor_content;

/* "S5" or "<U5" of a .npy header; out_bytes: of a string in the file. */
bool tensor_text_descr(const char *descr, bool *out_wide, int64_t *out_bytes);
/* x holds strings of these bytes, of kind U if they are wide: becomes rows of UTF-8, as wide as the longest string.
 * false after a diagnostic. */
bool tensor_text_take(compiler *c, const char *path, bool wide, int64_t bytes, tensor_content *x);
/* With rows as wide as those of t. false after a diagnostic: a string is longer. */
bool tensor_text_fit(compiler *c, const char *path, const run_tensor *t, tensor_content *x);
void tensor_text_random(run_tensor *t, uint64_t *state, uint64_t (*next)(uint64_t *state));
#endif
