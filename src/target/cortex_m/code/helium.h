/* SPDX-License-Identifier: Apache-2.0 */
/* What the C writer does otherwise for Cortex-M with vectors (Helium). */
#ifndef LATHE_TARGET_CORTEX_M_CODE_HELIUM_H
#define LATHE_TARGET_CORTEX_M_CODE_HELIUM_H
#include "codegen/c/family.h"

/* still.c: a call whose data stays in registers, beside the row's text for other compilers. False: it has no such form.
 */
bool helium_still_call(c_emit *e, tir_expr_ref x, c_text *out);
#endif
