/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor expressions: what a kernel computes, apart from how. An operation is a placeholder, a compute (axes, reduction
 * axes, one body per result), an extern (a loop-IR statement for what an expression cannot say) or a check (what must
 * hold of the operands). A schedule is a
 * value: a list of primitives on stages, printable and parsable; lowering applies it, infers bounds and gives one
 * loop-IR function. The empty schedule gives the plain loops, one nest per stage, in order. */
#ifndef LATHE_TE_TE_H
#define LATHE_TE_TE_H
#include "base/ptr_map.h"
#include "tir/tir.h"

typedef struct te_op_node te_node;

typedef enum te_axis_kind { AXIS_DATA, AXIS_REDUCE } te_axis_kind;
typedef struct te_axis {
    const tir_var *var;
    tir_expr_ref extent; /* from 0 */
    te_axis_kind kind;
} te_axis;

/* One result of an operation. Reading it in an expression: te_read. */
typedef struct te_tensor {
    te_node *node;
    uint32_t index;
    const tir_buffer *buffer;
    dtype dt;
    uint32_t rank;
    tir_expr_ref const *shape;
} te_tensor;

/* A commutative, associative combiner over a tuple: acc = combine(acc, x), from identity. */
typedef struct te_reducer {
    uint32_t n;
    const tir_var *const *acc, *const *x;
    tir_expr_ref const *combine;
    tir_expr_ref const *identity;
} te_reducer;

typedef enum te_kind { TE_PLACEHOLDER, TE_COMPUTE, TE_EXTERN, TE_CHECK } te_kind;

struct te_op_node {
    te_kind kind;
    const char *name; /* unique in its graph */
    te_tensor *const *outputs;
    uint32_t n_outputs;
    te_axis *const *axes; /* compute: one per dimension of the outputs; check: for all values of these */
    uint32_t n_axes;
    te_axis *const *reduce_axes;
    uint32_t n_reduce;
    tir_expr_ref const *body;  /* compute: one value per output; with reduction: the x of the reducer */
    const te_reducer *reducer; /* NULL without reduction */
    tir_expr_ref where;        /* with reduction: only where this holds; NULL: everywhere. check: what must hold */
    te_tensor *const *inputs;  /* extern: what it reads (computes: found in the bodies) */
    uint32_t n_inputs;
    tir_stmt *stmt; /* extern: writes all of its outputs' buffers */
    int32_t status; /* check: how the function ends where the condition does not hold */
    const char *message;
    const char *tag;  /* "conv2d", "injective": hints for schedules */
    bool inline_hint; /* may be recomputed at its use: cheap and injective */
};

/* A dimension that is known only when the function runs. */
#define TE_MOST_EXTENT ((int64_t)1 << 40) /* no dimension is larger: sums and products of a few do not overflow */
typedef struct te_symbol {
    const tir_var *var;
    int64_t max; /* its upper bound, at which storage is planned; -1: none is known */
} te_symbol;

/* A check stands before the node of that number. */
typedef struct te_check_at {
    te_node *check;
    uint32_t before;
} te_check_at;

typedef struct te_graph {
    compiler *c;
    src_loc loc;             /* of its text, when it was read from one */
    VEC(te_node *) nodes;    /* producers first; without the checks, which schedules do not see */
    VEC(te_check_at) checks; /* in order */
    VEC(te_tensor *) params; /* inputs then outputs of the function to be */
    uint32_t n_inputs;
    int64_t macs;
    VEC(te_symbol) symbols;     /* symbolic dimensions met so far, by name */
    VEC(te_tensor *) by_buffer; /* all tensors in order of creation: from a load back to what it reads */
    ptr_map tensor_names, axis_names; /* in use -> number to try behind it next */
} te_graph;

/* --- building computations (te/te.c) --- */
te_graph *te_graph_new(compiler *c);
te_tensor *te_placeholder(te_graph *g, const char *name, dtype dt, uint32_t rank, tir_expr_ref const *shape);
te_axis *te_reduce_axis(te_graph *g, const char *name, tir_expr_ref extent);
tir_expr_ref te_var(te_graph *g, const te_axis *a);
/* Body of a compute without reduction: value of output `index` at idx[0..rank). */
typedef tir_expr_ref (*te_body_fn)(te_graph *g, void *ctx, tir_expr_ref const *idx);
te_tensor *te_compute(te_graph *g, const char *name, dtype dt, uint32_t rank, tir_expr_ref const *shape,
                      te_body_fn body, void *ctx);
/* With reduction: body gives the reduced value; reducer by kind. dt is the accumulator's type. */
typedef enum te_reduce_kind { TE_SUM, TE_PROD, TE_MAX, TE_MIN } te_reduce_kind;
const te_reducer *te_simple_reducer(compiler *c, te_reduce_kind kind, dtype dt);
te_tensor *te_reduce(te_graph *g, const char *name, dtype dt, uint32_t rank, tir_expr_ref const *shape,
                     uint32_t n_reduce, te_axis *const *axes, te_reduce_kind kind, te_body_fn body, void *ctx);
/* General form: several results, any reducer (NULL for none). bodies: n_out expressions over the variables of `axes`
 * (made by te_data_axes) and reduce axes. out: n_out tensors. */
te_axis *const *te_data_axes(te_graph *g, uint32_t rank, tir_expr_ref const *shape);
void te_compute_n(te_graph *g, const char *name, uint32_t rank, tir_expr_ref const *shape, te_axis *const *axes,
                  uint32_t n_reduce, te_axis *const *reduce_axes, const te_reducer *reducer, tir_expr_ref where,
                  uint32_t n_out, const dtype *dts, tir_expr_ref const *bodies, te_tensor **out);
/* Loop-IR builder: stmt reads in[i]->buffer and must write every element of the new outputs. `build` gets the outputs'
 * buffers. */
typedef tir_stmt *(*te_build_fn)(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out);
void te_extern(te_graph *g, const char *name, uint32_t n_in, te_tensor *const *in, uint32_t n_out, const dtype *dts,
               const uint32_t *ranks, tir_expr_ref const *const *shapes, te_build_fn build, void *ctx, te_tensor **out);
tir_expr_ref te_read(te_graph *g, const te_tensor *t, tir_expr_ref const *idx); /* rank indices, i64 */
/* The function ends with that status unless the condition holds for all values of the axes (none: once). What is built
 * afterwards is computed after the check. Checks over axes are shared among the parts of a function, so that another
 * part may compute meanwhile: what it reads must lie inside its buffers whatever the check will say. A condition that
 * holds always leaves nothing behind. */
void te_check(te_graph *g, const char *name, uint32_t n_axes, te_axis *const *axes, tir_expr_ref holds, int32_t status,
              const char *message);
/* Declares the results of the function. A placeholder, or a tensor named twice, is copied by a stage of its own:
 * outputs never share storage with inputs or each other. */
void te_set_outputs(te_graph *g, uint32_t n, te_tensor *const *outs);
te_tensor *te_tensor_of(const te_graph *g, const tir_buffer *b); /* NULL: not a tensor of g */

/* --- schedules as values (te/schedule.c) --- */
/* Primitives and their fields are rows of te/primitives.def; docs/schedule.md describes each. te_prim_kind has one
 * value a row, te_NAME_args the row's fields. */
typedef struct te_names {
    const char *const *data;
    uint32_t len;
} te_names;
typedef struct te_place {
    const char *stage, *axis;
} te_place;
typedef struct te_factor {
    int64_t n;
    bool is_parts; /* n is the outer extent, else the inner one */
} te_factor;

#define STAGE
#define AXIS(p, m)   const char *m;
#define ORDER(p, m)  te_names m;
#define PLACE(p, m)  te_place m;
#define WORD(p, m)   const char *m;
#define STRING(p, m) const char *m;
#define NUMBER(p, m) int64_t m;
#define FACTOR(p, m) te_factor m;
#define NEW(p, m)    const char *m;
typedef enum te_prim_kind {
#define PRIMITIVE(id, name, fields) id,
#include "te/primitives.def"
#undef PRIMITIVE
} te_prim_kind;
#define PRIMITIVE(id, name, fields)   \
    typedef struct te_##name##_args { \
        const char *stage;            \
        fields                        \
    } te_##name##_args;
#include "te/primitives.def"
#undef PRIMITIVE
#undef STAGE
#undef AXIS
#undef ORDER
#undef PLACE
#undef WORD
#undef STRING
#undef NUMBER
#undef FACTOR
#undef NEW

/* One primitive. All names are interned; every member of the union starts with the stage. */
typedef struct te_prim {
    te_prim_kind kind;
    src_loc loc;
    union {
        const char *stage;
#define PRIMITIVE(id, name, fields) te_##name##_args name;
#include "te/primitives.def"
#undef PRIMITIVE
    } u;
} te_prim;

typedef struct te_sched {
    compiler *c;
    te_graph *g;
    VEC(te_prim) prims;
} te_sched;

te_sched *te_sched_new(te_graph *g);
/* Convenience appenders: they only record; checks happen when the schedule is applied. Names given by the caller. */
void te_sched_split(te_sched *s, const char *stage, const char *axis, int64_t factor, const char *outer,
                    const char *inner);
void te_sched_fuse(te_sched *s, const char *stage, const char *a, const char *b, const char *fused);
void te_sched_reorder(te_sched *s, const char *stage, uint32_t n, const char *const *axes);
void te_sched_compute_at(te_sched *s, const char *stage, const char *consumer, const char *axis);
void te_sched_compute_inline(te_sched *s, const char *stage);
void te_sched_cache_write(te_sched *s, const char *stage, const char *scope, const char *new_stage);
void te_sched_rfactor(te_sched *s, const char *stage, const char *axis, const char *new_stage);
void te_sched_cache_read(te_sched *s, const char *stage, const char *scope, const char *reader, const char *new_stage);
void te_sched_set_scope(te_sched *s, const char *stage, const char *scope);
void te_sched_annotate(te_sched *s, te_prim_kind kind, const char *stage,
                       const char *axis); /* vectorize unroll parallel vthread */
void te_sched_pragma(te_sched *s, const char *stage, const char *axis, const char *key, int64_t value);
/* While one iteration of `consumer.place` runs, the iterations of loop `axis` inside it fetch what it will read next of
 * a parameter of the function. */
void te_sched_prefetch(te_sched *s, const char *stage, const char *axis, const char *tensor, const char *consumer,
                       const char *place);
void te_sched_print(writer *w, const te_sched *s);
bool te_sched_parse(te_graph *g, const char *file, const char *text, size_t len, te_sched **out);

/* A symbolic dimension of that name: the same variable each time; max as in te_symbol. */
const tir_var *te_add_symbol(te_graph *g, const char *name, int64_t max);

/* Applies the schedule, infers bounds, makes loops: the function's parameters are one int64 cell for each symbol, which
 * holds its value, then the graph's params. Non-dividing
 * splits get a guard. Diagnostics name stage and axis. Loop names are the axes' names; initialisation of a reduction
 * stands at the outermost reduction loop (C.init loops when data axes lie inside it), which is where accelerators reset
 * theirs. */
bool te_lower(te_graph *g, const te_sched *s, const char *name, tir_func **out);

/* A computation as text, parsed back: docs/schedule.md. Externs are printed, but not read yet. */
void te_print(writer *w, const te_graph *g);
bool te_parse(compiler *c, const char *file, const char *text, size_t len, te_graph **out);
#endif
