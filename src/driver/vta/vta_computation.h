/* SPDX-License-Identifier: Apache-2.0 */
/* Computations of files, lowered for the accelerator. */
#ifndef LATHE_DRIVER_VTA_COMPUTATION_H
#define LATHE_DRIVER_VTA_COMPUTATION_H
#include "driver/computation.h"

/* Lowered for the accelerator that c compiles for. Errors: nothing of it runs there. */
bool vta_computation_lower(compiler *c, const computation *t, const char *name, tir_func **out);
/* Warns where nothing of a function that was lowered for VTA runs there. */
void vta_computation_warn(compiler *c, const tir_func *f);
#endif
