/* SPDX-License-Identifier: Apache-2.0 */
/* Attention's operands: which axis of each is the batch, the head, the position, the feature. */
#ifndef LATHE_GRAPH_OP_ATTENTION_H
#define LATHE_GRAPH_OP_ATTENTION_H
#include "graph/op.h"

typedef enum attention_axis { ATTENTION_B, ATTENTION_H, ATTENTION_S, ATTENTION_D, ATTENTION_RANK } attention_axis;
/* "BSHD": out[a] is the dimension that is axis a. false: the text is no such order. */
bool attention_order(const char *layout, uint32_t out[ATTENTION_RANK]);
#endif
