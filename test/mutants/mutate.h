/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a graph by chance that leave most graphs valid: attributes, shapes, dtypes, constants, operands,
 * operators. The same state gives the same changes. */
#ifndef LATHE_TEST_MUTATE_H
#define LATHE_TEST_MUTATE_H
#include "graph/op.h"

/* Below n; n > 0. */
uint32_t chance(uint64_t *state, uint32_t n);
/* One to four changes of `main`; types of everything but parameters are left to inference. */
void mutate(graph_module *m, uint64_t *state);
#endif
