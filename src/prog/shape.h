/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of kernels: loops that stand for those of several, with numbers (docs/reference/program.md, "Shapes"). */
#ifndef LATHE_PROG_SHAPE_H
#define LATHE_PROG_SHAPE_H
#include "prog/prog.h"

/* How many numbers the shape asks for, and its loops with these in them: those of the kernel, but for sizes of arrays
 * on the stack, which are the largest ones. */
uint32_t prog_shape_numbers(const prog_shape *s);
tir_func *prog_shape_instance(compiler *c, const prog_shape *s, const int32_t *numbers);
/* The loops that a shape stands for: those of the target, where there are some. */
const tir_func *prog_kernel_loops(const prog_kernel *k);
/* Each shape with a kernel's numbers gives that kernel's loops; else DIAG_VERIFY. */
bool prog_verify_shapes(compiler *c, const prog_module *m);
/* Kernels have their own loops again. */
void prog_drop_shapes(prog_module *m);
#endif
