/* SPDX-License-Identifier: Apache-2.0 */
/* Extremes of windows in two stages (windows.c). */
#ifndef LATHE_TE_WINDOWS_H
#define LATHE_TE_WINDOWS_H
#include "te/te.h"

/* Puts a stage before `pool`, an extreme over windows of planes of f32, which has the extremes of their columns; the
 * pool then reads these. False, and nothing is changed: it is something else, or its windows are too small. */
bool te_window_columns(te_graph *g, te_node *pool);
#endif
