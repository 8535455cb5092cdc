/* SPDX-License-Identifier: Apache-2.0 */
/* A region as a list of operators, composites taken apart: for generators that translate operator by operator. */
#ifndef LATHE_CODEGEN_BYOC_FLAT_H
#define LATHE_CODEGEN_BYOC_FLAT_H
#include "codegen/byoc/byoc.h"

#define FLAT_MOST_INPUTS 12u

typedef struct flat_op {
    const graph_node *node;
    const graph_value *in[FLAT_MOST_INPUTS]; /* values of the region, or made by another one of the list; NULL: none */
    uint32_t n_in;
    const graph_value *out; /* the first result */
    bool done;              /* another one does its work */
} flat_op;

typedef struct flat_list {
    arena *a;
    VEC(flat_op) ops;
    ptr_map outer; /* parameter or result of a composite -> place in `values` */
    VEC(const graph_value *) values;
} flat_list;

/* The operators that results depend on. false: an operator has more operands than the list takes, or no result;
 * *out_bad is it. */
bool flat_make(arena *a, const graph_func *f, flat_list *out, const graph_node **out_bad);
/* What v stands for outside of composites. */
const graph_value *flat_value(const flat_list *l, const graph_value *v);
/* Element i of a list that is an attribute: strides, pads; `otherwise` where the list is shorter. */
int64_t flat_number(const graph_node *n, const char *attribute, uint32_t i, int64_t otherwise);
bool flat_is_image(const graph_value *v); /* of rank 4 */
/* The only operator that reads v, where v is no result of f; NULL: there are several, or none. */
flat_op *flat_reader(flat_list *l, const graph_func *f, const graph_value *v);
#endif
