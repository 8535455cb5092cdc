/* SPDX-License-Identifier: Apache-2.0 */
/* What a package must give for which inputs, as a file: header, tensors (inputs, then outputs), then for each set its
 * status and the bytes of all inputs and, where the status is 0, of all outputs. Numbers as this machine has them. */
#ifndef LATHE_TEST_CASE_FILE_H
#define LATHE_TEST_CASE_FILE_H
#include <stdint.h>

typedef struct case_header {
    uint32_t n_sets, n_inputs, n_outputs;
    uint32_t exact; /* floats must agree to the bit: nothing is fused */
} case_header;

typedef struct case_tensor {
    uint64_t bytes;
    uint32_t is_float, bits;
} case_tensor;
#endif
