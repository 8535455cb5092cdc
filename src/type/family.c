/* SPDX-License-Identifier: Apache-2.0 */
/* The families of processors, by the table of folders. */
#include "type/family.h"

const target_family *const target_families[] = {
#define TARGET_FAMILY(name) &target_family_##name,
#include "target/targets.def"
    NULL};
