/* SPDX-License-Identifier: Apache-2.0 */
/* What the schedules of qnn.conv2d_rows share, by whatever instructions they multiply. */
#ifndef LATHE_TARGET_CORTEX_M_RULE_RUNS_H
#define LATHE_TARGET_CORTEX_M_RULE_RUNS_H
#include "graph/op/rows.h"
#include "te/rule/rule.h"

enum { IMAGE, ROW, COLUMN, CHANNEL }; /* axes of the result */

/* Schedules the sums and the result. */
typedef void (*runs_loops)(const te_case *x, const rows_conv *v);
/* The same with all that stands between sums and result; false: it does not fit. `each`: the loop in which that is made
 * again. */
bool runs_schedule(const te_case *x, runs_loops loops, const char *each);
/* What the operator says; its attributes are checked. */
rows_conv runs_read(const te_case *x);
#endif
