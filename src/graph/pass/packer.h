/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of pack-weights share: a function at work, and what was made in it of values that several nodes read,
 * so that these are made once. pack.c goes over the nodes; lists of steps are pack_steps.c. */
#ifndef LATHE_GRAPH_PASS_PACKER_H
#define LATHE_GRAPH_PASS_PACKER_H
#include "base/ptr_map.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"

#define PACKER_FEW_ROWS 12 /* of a left operand; measured as attention's (docs/notes/performance.md) */

/* Lists of steps of weights that products share. */
typedef struct product_lists {
    bool transposed;
    graph_value *weights, *places; /* NULL: they would be too long */
} product_lists;

typedef struct packed_weights {
    graph_value *v;
    const char *src, *dst; /* layouts */
} packed_weights;

/* Data with a border. */
typedef struct bordered {
    graph_value *v;
    int64_t pads[4];
} bordered;

typedef struct packer {
    rewriter r;
    const struct target *target;
    uint32_t lanes;
    bool no_split;
    arena scratch;
    ptr_map packed; /* weights -> position in `list`: weights that several nodes share are packed once */
    VEC(packed_weights) list;
    ptr_map filled; /* data -> position in `rows`, the same with rows filled up */
    VEC(graph_value *) rows;
    ptr_map framed; /* data -> position in `borders`, the last border that it got */
    VEC(bordered) borders;
    /* data -> position in `pixels`, the same with whole pixels, as it is, as i8, or limited */
    ptr_map turned, turned_signed, limited;
    VEC(graph_value *) pixels;
    ptr_map listed; /* weights of products -> position in `lists` */
    VEC(product_lists) lists;
} packer;

/* The scratch is the caller's to free; p->r is not begun. */
void packer_init(packer *p, compiler *c, const pass_options *o);
/* Operand 1 of n, weights, in another layout. promised: something will be said of the numbers (graph/op/promise.h),
 * which must be there to be looked at: they are transformed here. NULL after an error. */
graph_value *packer_transform(packer *p, graph_node *n, const char *src, const char *dst, bool promised);
/* The data of convolution n with its border in it: tiles of pixels have no tests between them. Convolutions with one
 * border read one value. NULL after an error. */
graph_value *packer_border(packer *p, graph_node *n);
#endif
