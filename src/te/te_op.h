/* SPDX-License-Identifier: Apache-2.0 */
/* The `te` part of an operator row: its compute definition, which is its only semantics, and its default schedule. */
#ifndef LATHE_TE_TE_OP_H
#define LATHE_TE_TE_OP_H
#include "graph/op.h"
#include "te/schedule.h"

/* Adds the operator's stages to g: in[i] is the tensor of input i (NULL when left out; rank and shape by the value's
 * type), out[i] receives one tensor per output with exactly the output's type. Types are inferred; dimensions come from
 * te_shape. Attributes through graph_attr_*. Constant operands may be read by graph_constant(n->inputs[i]) for better
 * code, but a definition must also work when they are not constant. */
typedef bool (*te_compute_hook)(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out);

/* Adds primitives for the whole fused function. `anchor` is the stage made by the group's most rigid operator (NULL:
 * only element-wise and injective ones); producers that are inline_hint are already inlined; `last` is the output's
 * stage. */
typedef bool (*te_schedule_hook)(te_sched *s, const struct target *t, const graph_node *n, te_node *anchor,
                                 te_node *last);

/* Adds what computes the extents that only operands' values tell: out[k], an i64[] tensor, is the k-th
 * of graph_own_symbols(n). Their kernel runs before n's. */
typedef bool (*te_extent_hook)(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out);

typedef struct te_op {
    te_compute_hook compute;
    te_schedule_hook schedule; /* NULL: the empty schedule */
    te_extent_hook extents;    /* NULL: operands' types tell all extents of the results */
} te_op;

#define TE_FFT_STEP "fft_step" /* the tag of a step of a Fourier transform (te/op/fft.c) */
#define TE_COLUMNS "columns" /* the stage, and the tag, of extremes of the columns of windows (te/windows.c) */
#define TE_LITERAL "constant" /* the tag of a number that the compiler knows, which is inlined wherever it is read */
#define TE_TABLE "table" /* the tag of numbers along one axis, which vectors read rather than compute for each row */
#define TE_UNPACKED "unpacked" /* the stage, and the tag, of weights of 4 bits that are taken apart */
/* Schedules it where it is read, unless the rule has said where it is computed. */
void te_inline_unpacked(te_sched *s);

/* X(operator, hook): the rows with such extents. */
#define TE_EXTENTS(X)                                                                                   \
    X("arange", extents_arange) X("broadcast_to", extents_broadcast_to) X("compress", extents_compress) \
    X("full", extents_full) X("nn.pad", extents_pad) X("nn.nms_rows", extents_nms_rows)                 \
    X("nonzero", extents_nonzero) X("one_hot", extents_one_hot) X("reshape", extents_reshape)           \
    X("resize", extents_resize) X("split", extents_split) X("strided_slice", extents_strided_slice)     \
    X("tile", extents_tile) X("topk", extents_topk) X("unique", extents_unique)
#define X(name, hook) bool hook(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out);
TE_EXTENTS(X)
#undef X

/* Compute definitions live in te/op/<family>.c, beside graph/op/<family>.c with the type relations. */
#define GRAPH_OP(id, name, operands, omin, omax, cls, effect, flags, infer, compute, schedule, schema) \
    bool compute(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out);
#include "graph/graph_ops.def"
#undef GRAPH_OP
/* The families of computations among whose rules (te/choose.h) an operator's hook chooses. X(family, hook, whether its
 * rules see to lines themselves, as chains ask for them). */
#define TE_FAMILIES(X)                                                                                   \
    X(TE_STAGES, te_schedule_default, false)           /* no reduction, or several */                    \
    X(TE_REDUCTION, te_schedule_reduce, false)                                                           \
    X(TE_ROWS, te_schedule_softmax, false)             /* several stages along rows */                   \
    X(TE_CONV, te_schedule_conv, false)                                                                  \
    X(TE_CONV_STEPS, te_schedule_conv_steps, false)    /* by lists of steps */                           \
    X(TE_RUNS, te_schedule_conv2d_rows, true)          /* of runs of numbers, on microcontrollers */     \
    X(TE_WINOGRAD, te_schedule_winograd, false)                                                          \
    X(TE_POOL, te_schedule_pool, false)                                                                  \
    X(TE_PRODUCT, te_schedule_matmul, false)                                                             \
    X(TE_PRODUCT_STEPS, te_schedule_matmul_steps, false)                                                 \
    X(TE_PRODUCT_NIBBLES, te_schedule_matmul_nibbles, false)                                             \
    X(TE_ATTENTION, te_schedule_attention, false)                                                        \
    X(TE_FFT, te_schedule_fft, false)                                                                    \
    X(TE_LINES, te_schedule_lines, true)               /* whatever chains need line by line */
#define X(family, hook, own_lines) \
    bool hook(te_sched *s, const struct target *t, const graph_node *n, te_node *anchor, te_node *last);
TE_FAMILIES(X)
#undef X
/* g, or the same computation with longer rows, which the convolution's tiles divide better; t has vectors. */
te_graph *te_merge_conv(te_graph *g, const struct target *t, const graph_node *n, te_node *anchor);
/* g, element-wise operators alone, or the same computation with longer rows, where they are no whole vectors of t. */
te_graph *te_merge_elements(te_graph *g, const struct target *t);
/* g, or the same computation with the two innermost axes, which the stage reduces last, as one. */
te_graph *te_merge_reduced(te_graph *g, const te_node *stage);

void te_register_builtin_ops(compiler *c); /* after graph_register_builtin_ops */

/* Adds the checks of what n's relation asks of open extents: before the compute hook, which relies on them, and before
 * the hook that finds the results' own extents, but for those (results: false). */
bool te_check_demands(te_graph *g, const graph_node *n, bool results);

/* Helpers for compute definitions. */
tir_expr_ref te_dim(te_graph *g, dim d);                  /* constant; symbols become i64 variables */
tir_expr_ref const *te_shape(te_graph *g, const type *t); /* rank expressions */
tir_expr_ref te_i64(te_graph *g, int64_t v);
const type *te_in_type(const graph_node *n, uint32_t i);
const type *te_out_type(const graph_node *n, uint32_t i);
/* in read under broadcasting at index idx of a tensor of that rank and those extents. Where types do not tell whether
 * an extent of it is 1, the loops look; the relation asks that it is, or is that of the result. */
tir_expr_ref te_read_broadcast(te_graph *g, const te_tensor *in, uint32_t rank, tir_expr_ref const *extents,
                               tir_expr_ref const *idx);
/* The same for the first `lead` axes of in alone, under a result that has `rank` such axes: batches of products. Writes
 * the indices. */
void te_broadcast_lead(te_graph *g, const te_tensor *in, uint32_t lead, uint32_t rank, tir_expr_ref const *extents,
                       tir_expr_ref const *idx, tir_expr_ref *at);
#endif
