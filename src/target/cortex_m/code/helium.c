/* SPDX-License-Identifier: Apache-2.0 */
/* C for Cortex-M with vectors (Helium) beside the kernels of kernel/mve: choices by comparison in lanes of four
 * numbers. gcc 12 writes them lane by lane, and where two masks are combined it looks at the first lane only. */
#include "target/cortex_m/code/helium.h"
#include "target/cortex_m/units.h"
#include "type/target.h"

#define LANES 4 /* numbers of 32 bits in a vector */

/* p where x compares with y, else q: names of the helper's parameters. The conditions lt and le are the opposites of
 * ge and gt, and true of a NaN: these are asked the other way round. */
static const char *choice_text(arena *a, tir_op test, const char *x, const char *y, const char *p, const char *q)
{
    const bool turned = test == TIR_LT || test == TIR_LE;
    const tir_op asked = test == TIR_LT ? TIR_GT : test == TIR_LE ? TIR_GE : test;
    return arena_printf(a,
                        "    f32x4 r;\n    __asm__(\"vcmp.f32 %s, %%q1, %%q2\\n vpsel %%q0, %%q3, %%q4\"\n"
                        "            : \"=w\"(r) : \"w\"(%s), \"w\"(%s), \"w\"(%s), \"w\"(%s) : LATHE_PREDICATE);\n",
                        needs_op_name(asked), turned ? y : x, turned ? x : y, p, q);
}

static const char *choice(arena *a, const c_need *n)
{
    const bool least = n->op == TIR_MIN;
    const char *text, *keep = "";
    if (n->dt != DT_F32 || n->lanes != LANES)
        return NULL;
    if (n->kind == NEED_VCHOOSE)
        text = choice_text(a, n->op, "a", "b", "x", "y");
    else if (n->kind == NEED_VBOUND)
        text = choice_text(a, least ? TIR_GE : TIR_LE, "x", "y", "y", "x");
    else if (n->kind == NEED_VEXTREME || (n->kind == NEED_VOP && (least || n->op == TIR_MAX)))
        text = choice_text(a, least ? TIR_LT : TIR_GT, "x", "y", "x", "y");
    else
        return NULL;
    if (n->kind == NEED_VOP)
        keep = "    __asm__(\"vcmp.f32 ne, %q1, %q1\\n vpsel %q0, %q1, %q0\"\n"
               "            : \"+w\"(r) : \"w\"(x) : LATHE_PREDICATE);\n";
    return arena_printf(a, "%s%s    return r;", text, keep);
}

static bool fits(const struct target *t)
{
    return cortex_m_has_vectors(t);
}

const c_family c_family_helium = {
    .fits = fits,
    .vectors = "defined(__ARM_FEATURE_MVE)",
    .setup = "kernel/mve/mve.h",
    .takes = "LATHE_MVE == 2 && LATHE_VECTORS",
    .takes_not = "LATHE_MVE != 2 || !LATHE_VECTORS",
    .choice = choice,
    .instr = helium_still_call,
};
