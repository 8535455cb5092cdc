/* SPDX-License-Identifier: Apache-2.0 */
/* What whole_f64.inc calls and gives, when it is compiled alone. */
#ifndef LATHE_KERNEL_LANES_ALONE_WHOLE_H
#define LATHE_KERNEL_LANES_ALONE_WHOLE_H
#include "kernel/lanes/alone.h"

#if LATHE_VECTORS
typedef int32_t i32x2 __attribute__((vector_size(8)));
#else
typedef struct i32x2 {
    int32_t lane[2];
} i32x2;
#endif
#define LATHE_INTO i32x2
int32_t lathe_f64_to_i32(double x);

#endif
