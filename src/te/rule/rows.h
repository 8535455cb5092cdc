/* SPDX-License-Identifier: Apache-2.0 */
/* What the schedules of qnn.conv2d_rows share, by whatever instructions they multiply. */
#ifndef LATHE_TE_RULE_ROWS_H
#define LATHE_TE_RULE_ROWS_H
#include "graph/op/rows.h"
#include "te/rule/rule.h"

enum { IMAGE, ROW, COLUMN, CHANNEL }; /* axes of the result */

/* Vectors of bytes (mve.c): v->lanes. */
void te_schedule_lanes_conv(te_sched *s, const struct target *t, const rows_conv *v, te_node *anchor, te_node *last);
#endif
