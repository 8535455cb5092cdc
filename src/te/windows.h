/* SPDX-License-Identifier: Apache-2.0 */
/* Extremes of windows in two stages (windows.c). */
#ifndef LATHE_TE_WINDOWS_H
#define LATHE_TE_WINDOWS_H
#include "te/te.h"

/* Puts a stage before `pool`, an extreme over windows of planes of f32, which has the extremes of their columns; the
 * pool then reads these. False, and nothing is changed: it is something else, or its windows are too small. */
bool te_window_columns(te_graph *g, te_node *pool);

/* Whether n, an extreme of rows of so many floats in a parameter, may be found in parts that overlap. */
bool te_takes_rows_twice(const te_graph *g, const te_node *n, int64_t length);

/* An extreme of short rows that are no whole vectors, in parts that are: the last one goes over a part of the one
 * before it. What is left of a row would be found number by number. */
void te_whole_rows(te_graph *g, te_node *n);
#endif
