/* SPDX-License-Identifier: Apache-2.0 */
/* What the C writer does otherwise for a family of processors. It is written in the family's folder (src/target). */
#ifndef LATHE_CODEGEN_C_FAMILY_H
#define LATHE_CODEGEN_C_FAMILY_H
#include "codegen/c/emit.h"

typedef struct c_family {
    bool (*fits)(const struct target *t); /* whose functions are written so */
    const char *vectors; /* what its compilers say where they have vectors of 16 bytes: a condition */
    const char *setup;   /* a file of kernel/ that tells which form of its kernels a compiler gets */
    /* Conditions: a compiler takes the bodies of `choice` and kernels in lanes; it takes none of them. */
    const char *takes, *takes_not;
    /* The body of a helper of floats that chooses by a comparison (NEED_VOP of a minimum or maximum, NEED_VCHOOSE,
     * NEED_VBOUND, NEED_VEXTREME); NULL: compilers make vectors of another one, or of other lanes, themselves. */
    const char *(*choice)(arena *a, const c_need *n);
    /* A form of an instruction beside its row's text; false: it has none. */
    bool (*instr)(c_emit *e, tir_expr_ref x, c_text *out);
} c_family;

/* NULL: nothing is otherwise. */
const c_family *c_family_of(const struct target *t);

#define TARGET_CODE(name) extern const c_family c_family_##name;
#include "target/targets.def"
#endif
