/* SPDX-License-Identifier: Apache-2.0 */
/* What is known when compiling about an integer tensor that says a shape: its elements as dims. A model computes shapes
 * from shapes (Shape, Gather, Mul, Concat, ...); their definitions are walked with symbols for numbers, so that the
 * result of a Reshape has its exact type. */
#ifndef LATHE_GRAPH_SHAPE_VALUE_H
#define LATHE_GRAPH_SHAPE_VALUE_H
#include "graph/graph.h"

#define SHAPE_VALUE_MOST 64u

typedef struct shape_value {
    uint32_t n;
    dim at[SHAPE_VALUE_MOST]; /* row-major; NULL: not known. Truth values are 0 and 1 */
} shape_value;

/* false: not a tensor of at most that many elements, or nothing is known of any of them. Elements of floating-point
 * tensors are known when they are integers. */
bool graph_shape_value(compiler *c, const graph_value *v, shape_value *out);
/* Whether all of them are known. */
bool shape_value_is_known(const shape_value *s);
#endif
