/* SPDX-License-Identifier: Apache-2.0 */
/* What the pass select asks of the folders of src/target. */
#ifndef LATHE_TIR_PASS_SELECT_H
#define LATHE_TIR_PASS_SELECT_H
#include "tir/simplify.h"
#include "tir/tir.h"

/* The function at work, and what is known of variables where the pass stands. */
typedef struct tir_selector {
    compiler *c;
    const tir_func *f;
    tir_bounds *bounds;
} tir_selector;

typedef struct tir_selection {
    bool (*fits)(const struct target *t); /* whether the processor has such instructions */
    tir_stmt *(*loop)(const tir_selector *x, tir_stmt *loop); /* what stands in its place; NULL: it stays */
} tir_selection;
#define TARGET_SELECTION(name) extern const tir_selection tir_selection_##name;
#include "target/targets.def"

/* The index of an access from the buffer's address. */
tir_expr_ref tir_select_flat(const tir_selector *x, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices);
#endif
