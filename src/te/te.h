/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor expressions: what a kernel computes, apart from how. An operation is a placeholder, a compute (axes, reduction
 * axes, one body per result), an extern (a loop-IR statement for what an expression cannot say) or a check (what must
 * hold of the operands). Schedules are values of their own (schedule.h); lower.h makes loops of both. */
#ifndef LATHE_TE_TE_H
#define LATHE_TE_TE_H
#include "base/ptr_map.h"
#include "tir/build.h"

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
    const char *label; /* placeholder: what its parameter is called in the loops; NULL: as the placeholder */
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
    bool unbounded; /* buffers without a bound are as large as a run says; else an error */
    bool products_apart; /* of floats: each is rounded by itself, whatever a C compiler may contract */
    VEC(te_symbol) symbols;     /* symbolic dimensions met so far, by name */
    VEC(te_tensor *) by_buffer; /* all tensors in order of creation */
    ptr_map tensor_of;          /* from a buffer, which a load reads, to its number there */
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
/* The most that an extent of g can be, by the bounds of its symbols, for rules: one without a bound counts as
 * TE_USUAL_EXTENT. 0: nothing is known. */
#define TE_USUAL_EXTENT ((int64_t)1024)
int64_t te_most(const te_graph *g, tir_expr_ref extent);
/* Memory that the loops of an operator allocate: as large as the extents' bounds, so that a plan can place it. Without
 * a bound it is as large as a run says. */
const tir_buffer *te_scratch(te_graph *g, const char *name, dtype dt, uint32_t rank, tir_expr_ref const *extents);
/* Declares the results of the function. A placeholder, or a tensor named twice, is copied by a stage of its own:
 * outputs never share storage with inputs or each other. */
void te_set_outputs(te_graph *g, uint32_t n, te_tensor *const *outs);
/* Takes the stages away that no result and no check reads, such as those of an operator's results that nobody wants:
 * schedules place every stage that they see in a reader's loops. One that is inlined where it is read takes nothing and
 * stays: recorded schedules name it. places: numbers of nodes, which follow. */
void te_drop_unread(te_graph *g, uint32_t n, uint32_t *const *places);
te_tensor *te_tensor_of(const te_graph *g, const tir_buffer *b); /* NULL: not a tensor of g */
/* A symbolic dimension of that name: the same variable each time; max as in te_symbol. */
const tir_var *te_add_symbol(te_graph *g, const char *name, int64_t max);
#endif
