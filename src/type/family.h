/* SPDX-License-Identifier: Apache-2.0 */
/* What a folder of src/target brings of a family of processors. target.c, cpu_model.c and dot.c search all of them, in
 * the order of src/target/targets.def. */
#ifndef LATHE_TYPE_FAMILY_H
#define LATHE_TYPE_FAMILY_H
#include "type/dot.h"
#include "type/target.h"

#include <stddef.h>

typedef struct target_family {
    const target *targets;
    size_t n_targets;
    const cpu_model *models;
    size_t n_models;
    const target_dot *dots; /* the cheapest first; each asks for a feature that no other family has */
    size_t n_dots;
    /* Of the family to which this machine belongs, as the compiler itself was built; elsewhere all NULL. */
    const char *usual; /* the target that code is made for when nobody says another */
    const char *cc;    /* of those that targets name: `cc` here makes the same code */
    /* The name of the level of instructions that this machine has, and which of target_feature. */
    const char *(*level)(uint32_t *out_features);
    /* The name of its model, by the processor's identification; NULL: none that is known. */
    const char *(*model)(void);
} target_family;

#define TARGET_FAMILY(name) extern const target_family target_family_##name;
#define TARGET_PARTS(name)  bool target_parts_##name(compiler *c); /* target_register of what takes parts of models */
#include "target/targets.def"

extern const target_family *const target_families[]; /* NULL at the end */
#endif
