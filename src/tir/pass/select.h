/* SPDX-License-Identifier: Apache-2.0 */
/* What the pass select asks of the folders of src/target. */
#ifndef LATHE_TIR_PASS_SELECT_H
#define LATHE_TIR_PASS_SELECT_H
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/node.h"
#include "tir/simplify.h"
#include "tir/tir.h"

/* The function at work, and what is known of variables where the pass stands. */
typedef struct tir_selector {
    compiler *c;
    const tir_func *f;
    tir_bounds *bounds;
    uint32_t *missed; /* counts loops and expressions that stay, and that instructions are meant for */
} tir_selector;

/* What stands in the place of a loop, of a store, or of an expression; NULL: it stays. Each may be NULL. */
typedef struct tir_selection {
    bool (*fits)(const struct target *t); /* whether the processor has such instructions */
    tir_stmt *(*loop)(const tir_selector *x, tir_stmt *loop);
    tir_stmt *(*store)(const tir_selector *x, tir_stmt *store);
    tir_stmt *(*stores)(const tir_selector *x, tir_stmt *first, tir_stmt *next); /* two, one right behind the other */
    tir_expr_ref (*expr)(const tir_selector *x, tir_expr_ref e);
    /* Whether a loop, or an expression, that stays is what the instructions are for, as far as types and steps say:
     * then the processor has an instruction that was not chosen. In whatever form it is written, which `loop` and
     * `expr` may not know. */
    bool (*meant_loop)(const tir_selector *x, tir_stmt *loop);
    bool (*meant_expr)(const tir_selector *x, tir_expr_ref e);
} tir_selection;
extern const tir_selection tir_selection_tables; /* bytes.c: for processors with vectors */
extern const tir_selection tir_selection_any;    /* select_any.c */
extern const tir_selection tir_selection_extremes; /* select_extremes.c; behind those of all processors */
extern const tir_selection tir_selection_round;  /* select_round.c: for small processors without vectors */
#define TARGET_SELECTION(name) extern const tir_selection tir_selection_##name;
#include "target/targets.def"

/* The number of a call that is this variable (tir_func.numbers); NULL: it is another one. */
static inline const tir_number *tir_select_number(const tir_selector *x, const tir_var *v)
{
    for (uint32_t i = 0; i < x->f->n_numbers; i++)
        if (x->f->numbers[i].var == v)
            return &x->f->numbers[i];
    return NULL;
}

/* An instruction by its row's name. */
static inline tir_expr_ref tir_select_instr(compiler *c, const char *row, uint32_t n, tir_expr_ref const *args)
{
    return tir_instr(c, tir_find_intrin(c, row), TIR_OP_NONE, n, args);
}

/* "name_u8": of rows for several types, that of dt. */
static inline const char *tir_select_row(compiler *c, const char *name, dtype dt)
{
    return arena_printf(&c->mem, "%s_%s", name, dtype_name(dt));
}

/* The index of an access from the buffer's address. */
static inline tir_expr_ref tir_select_flat(const tir_selector *x, const tir_buffer *b, uint32_t n,
                                           tir_expr_ref const *indices)
{
    tir_expr_ref at = tir_access_is_flat(b, n) ? indices[0]
                                               : tir_flat_index(x->c, n ? indices[0]->type.dt : DT_I64, b, indices);
    const bool wider = tir_is_widening(at) && at->args[0]->type.dt == DT_I32; /* indices do not overflow */
    return wider ? at->args[0] : at;
}
#endif
