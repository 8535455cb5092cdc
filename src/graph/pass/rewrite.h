/* SPDX-License-Identifier: Apache-2.0 */
/* One forward walk over a function that replaces values and rebuilds the node list: what simplify, fold and cse
 * share. Replaced values are forwarded, and operands are brought up to date when the walk reaches them, so a walk is
 * linear. During it value->mark holds at least the number of uses, and MARK_RESULT for results of the function. */
#ifndef LATHE_GRAPH_PASS_REWRITE_H
#define LATHE_GRAPH_PASS_REWRITE_H
#include "graph/op.h"

#define MARK_RESULT 0x80000000u

typedef struct rewriter {
    compiler *c;
    graph_func *f;
    VEC(graph_node *) nodes; /* the list that is being made */
    bool folds; /* constant folding follows: arithmetic on constants costs nothing */
    bool changed;
    bool failed;
} rewriter;

void rewrite_begin(rewriter *r, compiler *c, graph_func *f); /* counts uses, empties `nodes` */
void rewrite_operands(graph_node *n);                        /* operands through the forwards */
void rewrite_keep(rewriter *r, graph_node *n);               /* appends a node */
void rewrite_end(rewriter *r);                               /* installs the list; results through the forwards */
/* A whole walk: what `made` gives stands for each node's result; NULL: the node stays. false after an error. */
bool rewrite_each(compiler *c, graph_func *f, graph_value *(*made)(rewriter *r, const graph_node *n));
/* `to` stands for `from` from here on; a result of the function hands its name on, as does any value to one without
 * a name of the model's. false, and nothing is done, when a result would become a parameter or another result: there
 * a copy must stay. */
bool rewrite_replace(rewriter *r, graph_value *from, graph_value *to);
void rewrite_take_name(graph_value *to, graph_value *from); /* exchanges names, unless `from` is a result */
uint32_t rewrite_uses(const graph_value *v);
bool rewrite_is_read_once(const graph_value *v); /* and is no result */
/* The node whose sums n rounds along axis 1 (qnn.requantize, qnn.rescale). out_bias: what is added between; NULL:
 * nothing. Nothing else reads either. NULL: n rounds no sums. */
graph_node *rewrite_rounded_sums(const graph_node *n, graph_value **out_bias);
#define REWRITE_ROUNDING_OPERANDS 4 /* at most, of what rounds */
/* Appends a new node of one result to the list: NULL (and r->failed) after an error. */
graph_value *rewrite_emit(rewriter *r, const char *op, uint32_t n_in, graph_value *const *in, uint32_t n_attr,
                          const attr *attrs, src_loc loc);
/* x in another shape, which has as many elements; its symbols are known where x is. */
graph_value *rewrite_reshape(rewriter *r, graph_value *x, uint32_t rank, const dim *dims, src_loc loc);
/* How many rows a tensor of rank 1 or more has, whose last axis is a row; NULL: none, or they are not known well
 * enough: a view of them must not be larger, as b n - b rows, of at most B N, would be for b (n - 1). */
dim rewrite_rows(compiler *c, const type *t);
graph_value *rewrite_constant(rewriter *r, const tensor_data *t, const char *name, src_loc loc);
/* x with pads[axis] elements before it and pads[rank + axis] behind it; fill NULL: zeros. */
graph_value *rewrite_pad(rewriter *r, graph_value *x, const int64_t *pads, const tensor_data *fill, src_loc loc);
/* Elements from[i], from[i] + steps[i], ... of n axes of x, axes[i], up to to[i]; steps NULL: of one. x NULL: NULL. */
graph_value *rewrite_slice(rewriter *r, graph_value *x, uint32_t n, const int64_t *from, const int64_t *to,
                           const int64_t *axes, const int64_t *steps, src_loc loc);
/* Makes n a constant node that makes the same value. */
void rewrite_to_constant(compiler *c, graph_node *n, const tensor_data *t);
/* Numbers of 8 bits, and `by`, as numbers of type dt. NULL after an error. */
graph_value *rewrite_shift(rewriter *r, graph_value *x, int64_t by, dtype dt);
/* Whether all operands of n that are there are constants. */
bool rewrite_reads_constants(const graph_node *n);
/* v, one result of such a node, as a constant by its compute definition; where nobody evaluates, v as it is. */
graph_value *rewrite_evaluate(rewriter *r, graph_value *v);

/* Copies the nodes of f into the function at hand; args: a value for each parameter, NULL where nothing reads it;
 * out_results: what stands for f's results. */
void rewrite_inline(rewriter *r, const graph_func *f, graph_value *const *args, graph_value **out_results);
/* As rewrite_replace, by a copy where nothing else does; `to` NULL: false. */
bool rewrite_stand_for(rewriter *r, graph_value *from, graph_value *to, src_loc loc);

/* Every element equal: splats, single elements, short tensors. out may be NULL. */
bool rewrite_is_uniform(const tensor_data *t, double *out);
bool rewrite_is_op(const graph_value *v, const char *op); /* made by an operator of this name */
#endif
