/* SPDX-License-Identifier: Apache-2.0 */
/* The code generators that come with the compiler, in one table. */
#include "codegen/byoc/byoc.h"

const lathe_codegen *const byoc_generators[] = {
    &byoc_xnnpack,
    &byoc_cutlass,
    &byoc_cmsis_nn,
    NULL,
};
