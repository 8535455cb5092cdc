/* SPDX-License-Identifier: Apache-2.0 */
/* The state between a schedule and its loops, private to the te folder. A stage is a working copy of an operation with
 * the loops that the schedule has made of its axes; the graph itself is never changed, so it can be lowered many times.
 */
#ifndef LATHE_TE_STAGE_H
#define LATHE_TE_STAGE_H
#include "te/schedule.h"
#include "te/te.h"
#include "tir/map.h"
#include "tir/simplify.h"
#include "tir/walk.h"

typedef struct te_note {
    const char *key;
    int64_t value;
} te_note;

/* A loop of a stage, now or before a split or a fuse took its place. */
typedef struct te_iter {
    const char *name;
    const tir_var *var;  /* counts from 0 */
    const te_axis *root; /* the axis itself; NULL: made by a split or a fuse */
    te_axis_kind kind;
    tir_for_kind loop;
    VEC(te_note) notes;           /* pragmas */
    const struct te_ahead *ahead; /* what is fetched in every iteration; may be NULL */
    const char *intrin;           /* the loop and all inside it is this intrinsic; NULL: it is not */
    src_loc loc;                  /* of the primitive that made it more than a serial loop */
    tir_expr_ref extent;          /* set by bound inference */
} te_iter;

/* A parameter whose region for the next iteration of a loop is fetched while this one runs. */
typedef struct te_ahead {
    const struct te_stage *source, *at;
    const te_iter *at_iter;
    const te_prim *from; /* the primitive that asks for it */
    const struct te_ahead *also; /* of another parameter; may be NULL */
} te_ahead;

typedef enum te_relation_kind { RELATION_SPLIT, RELATION_FUSE } te_relation_kind;
typedef struct te_relation {
    te_relation_kind kind;
    te_iter *whole, *outer, *inner; /* whole = outer * extent(inner) + inner, both ways */
    te_factor by;                   /* split */
} te_relation;

/* storage_align: the stride of a data axis is `offset` more than a multiple of `factor` elements. */
typedef struct te_alignment {
    uint32_t axis;
    int64_t factor, offset;
    const te_prim *prim; /* for messages */
} te_alignment;

/* storage_tile: tiles of ny by nx elements of two data axes lie one behind the other; ny 0: they do not. */
typedef struct te_storage_tiles {
    uint32_t y, x;
    int64_t ny, nx;
} te_storage_tiles;

/* rolling_buffer: rows of `axis` are kept, `length` of them, `step` new ones each iteration; length 0: not so. */
typedef struct te_roll {
    uint32_t axis;
    int64_t step, length;
} te_roll;

typedef enum te_attach { ATTACH_ROOT, ATTACH_AT, ATTACH_INLINE } te_attach;

typedef struct te_stage {
    te_node op; /* own copy: bodies and statement are rewritten by inlining and caching */
    const char *name;
    VEC(te_iter *) roots; /* data axes, then reduction axes */
    VEC(te_iter *) leaves;
    VEC(te_relation) relations;
    te_attach attach;
    struct te_stage *at; /* ATTACH_AT: consumer and its loop */
    te_iter *at_iter;
    bool live, is_param, is_result;
    bool hosts; /* another stage is placed in a loop of this one */
    bool has_scope;
    tir_scope scope;
    const char *scope_name;
    bool double_buffer, rolling;
    te_roll roll; /* set by bound inference */
    VEC(te_alignment) alignments;
    te_storage_tiles tiles;
    src_loc loc; /* of the primitive that placed it */
    /* bound inference: the box that is computed, per data axis, and where it is kept */
    tir_expr_ref *lo, *extent;
    bool *whole;                /* the whole axis: lo is 0, extent the shape */
    const tir_buffer **buffers; /* per output */
} te_stage;

typedef struct te_lowering {
    compiler *c;
    te_graph *g;
    const te_sched *s;
    VEC(te_stage *) stages;          /* producers first */
    tir_bounds *bounds;              /* ranges of all loop variables */
    VEC(te_iter *) loops;            /* of stages whose bounds are known */
    const tir_buffer *const *params; /* of the function: those of the graph, sizes read from the symbols' cells */
    const tir_buffer *const *cells;  /* one per symbol */
    tir_map param_of;                /* buffer of the graph -> of the function */
    tir_map stage_of;                /* buffer -> the stage that writes it; found again when that has changed */
    VEC(const tir_buffer *) hoisted; /* on-chip buffers: allocated around the whole function */
    VEC(const te_prim *) fetching;   /* prefetches that loops were made of */
} te_lowering;

/* Stages of the graph with the schedule applied, inlining done, placement checked (te/apply.c). */
bool te_apply(te_lowering *lw);
void te_note_stage(te_lowering *lw, te_stage *st); /* its results are found by te_stage_of */
te_stage *te_stage_of(te_lowering *lw, const tir_buffer *b, uint32_t *out_index); /* NULL: none */
uint32_t te_leaf_position(const te_stage *st, const te_iter *it);                 /* leaves.len when it is no leaf */

/* Regions of all stages, extents of all loops, buffers (te/bound.c). */
bool te_infer_bounds(te_lowering *lw);
/* Extents of the loops of all reduction axes, which need no regions. */
void te_reduce_extents(te_lowering *lw, te_stage *st);
/* Finds the rows that a rolling stage keeps, its box and all bounds around it being known (te/rolling.c). */
bool te_infer_roll(te_lowering *lw, te_stage *st);
/* Where that row of the tensor lies in the buffer. */
tir_expr_ref te_roll_slot(te_lowering *lw, const te_stage *st, tir_expr_ref row);
/* Whether the row is not there yet. */
tir_expr_ref te_roll_guard(te_lowering *lw, const te_stage *st);
/* The parameter that tensor t is; NULL: none (te/symbol.c). */
const tir_buffer *te_param_of(const te_lowering *lw, const te_tensor *t);
/* What is known everywhere: the ranges of the symbols. */
tir_bounds *te_new_bounds(te_lowering *lw);
/* Makes cells and params. */
void te_declare_symbols(te_lowering *lw);
/* A size that an allocation can have: e, or the most that it can be; NULL after an error that names the symbol. */
tir_expr_ref te_static_extent(te_lowering *lw, const te_stage *st, tir_expr_ref e);
/* The function's body, in which the symbols have their values. */
tir_stmt *te_read_symbols(te_lowering *lw, tir_stmt *body);
/* Value of a loop of st, counted from 0, in the variables of its leaves. */
tir_expr_ref te_iter_value(te_lowering *lw, const te_stage *st, const te_iter *it);
/* Root axis variables of st and their values in its leaves' variables, region start included. */
void te_root_values(te_lowering *lw, te_stage *st, const tir_var ***out_vars, tir_expr_ref **out_values);
/* Indices of an element of the stage, in its box where it is placed, in its private buffer: a vectorized axis goes
 * last, so that its lanes are neighbors; or tiles of two axes do. */
tir_expr_ref *te_buffer_index(te_lowering *lw, const te_stage *st, tir_expr_ref const *idx);
uint32_t te_buffer_rank(const te_stage *st); /* of such an index */
/* The box of `source` that `reader` reads during one iteration of a loop of `at`: from lo to hi, both included, per
 * dimension. false: not known. */
bool te_region_read(te_lowering *lw, te_stage *reader, const te_stage *source, const te_stage *at,
                    const te_iter *at_iter, tir_expr_ref *lo, tir_expr_ref *hi);
/* The body of loop `it` of st with what the loop fetches ahead (te/prefetch.c). */
tir_stmt *te_with_prefetch(te_lowering *lw, te_stage *st, const te_iter *it, tir_stmt *body);
/* A long sum of floats, in blocks: a reduction loop is cut, and what one block adds up is added (te/blocks.c). */
typedef struct te_blocks {
    uint32_t at;            /* position of the loop among the leaves; their number: no blocks */
    int64_t steps;          /* its iterations in one block */
    bool last_apart;        /* a guard depends on it: the last block has loops of its own, where it may fail */
    const tir_buffer *sums; /* of one block, by the data loops inside */
} te_blocks;
te_blocks te_find_blocks(te_lowering *lw, const te_stage *st, tir_expr_ref const *guards);
/* The schedule of loops that are made, without prefetches that nothing came of. */
te_sched te_without_idle(const te_lowering *lw);
/* Conditions under which an element of the stage's box lies in the tensor and its loads in theirs; NULL-terminated
 * list. */
tir_expr_ref const *te_stage_guards(te_lowering *lw, te_stage *st);

/* --- stages (te/stage.c) --- */
te_iter *te_new_iter(te_lowering *lw, const char *name, const te_axis *root, te_axis_kind kind);
bool te_has_iter(const te_stage *st, const char *name); /* now, or before a split or a fuse */
te_stage *te_new_stage(te_lowering *lw, const te_node *n);
void te_insert_stage(te_lowering *lw, uint32_t at, te_stage *st);
uint32_t te_stage_index(const te_lowering *lw, const te_stage *st);
/* Where the stage's buffer lives: a memory of every target, or of an intrinsic's operands. */
bool te_set_scope(te_lowering *lw, const te_prim *p, te_stage *st, const char *scope);
/* The stage computes n instead, with loops that are not touched yet; what was placed where stays. */
void te_restart_stage(te_lowering *lw, te_stage *st, const te_node *n);
/* Replaces what the stage computes by what the rewriter makes of it. */
void te_rewrite_bodies(te_lowering *lw, te_stage *st, tir_rewriter *r);

/* --- primitives (te/apply.c, te/cache.c): false after a diagnostic that names stage and axis --- */
#define PRIMITIVE(id, name, fields) bool te_apply_##name(te_lowering *lw, const te_prim *p, te_stage *st);
#include "te/primitives.def"
#undef PRIMITIVE
/* NULL after a diagnostic. */
te_stage *te_find_stage(te_lowering *lw, const te_prim *p, const char *name);
te_iter *te_find_leaf(te_lowering *lw, const te_prim *p, te_stage *st, const char *axis);
/* "split C.i: why"; axis may be NULL. */
bool te_prim_error(te_lowering *lw, const te_prim *p, const char *axis, const char *why);
bool te_sched_error(te_lowering *lw, diag_code code, src_loc loc, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
const char *te_prim_text(te_prim_kind kind);
#endif
