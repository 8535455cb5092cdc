/* SPDX-License-Identifier: Apache-2.0 */
/* The same computation with images of fewer and longer rows (merge.c). */
#ifndef LATHE_TE_MERGE_H
#define LATHE_TE_MERGE_H
#include "te/te.h"

/* g, in which `rows` rows, a divisor of `height`, of `width` elements are one wherever a stage or a tensor has
 * these extents on `axis` and the axis behind it. With all rows as one, two reductions of these extents that a stage
 * ends with become one. As many nodes in the same order, of the same names. NULL: a stage reads elsewhere than where
 * it stands, or asks for its place in a row. */
te_graph *te_merge_rows(const te_graph *g, uint32_t axis, int64_t height, int64_t width, int64_t rows);
#endif
