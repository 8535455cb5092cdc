/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the halves of InjectCoProcSync: statements to be put before and after others, planned first and inserted at
 * once, so that plans can name statements by address. */
#ifndef LATHE_TIR_PASS_VTA_SYNC_H
#define LATHE_TIR_PASS_VTA_SYNC_H
#include "target/vta/pass/vta.h"

typedef struct vta_inserts {
    compiler *c;
    tir_map before, after; /* statement -> list */
} vta_inserts;

void vta_inserts_begin(vta_inserts *ins);
/* Each new statement stands farther from s than those before it. */
void vta_insert_before(vta_inserts *ins, tir_stmt *s, tir_stmt *made);
void vta_insert_after(vta_inserts *ins, tir_stmt *s, tir_stmt *made);
/* vta_insert_after, unless an equal call stands there already. */
void vta_insert_once(vta_inserts *ins, tir_stmt *s, tir_stmt *made);
tir_stmt *vta_inserts_apply(vta_inserts *ins, tir_stmt *s);
/* Plans pushes and pops of tokens between the queues of body's tasks. */
bool vta_plan_tokens(vta_pass *p, tir_stmt *body, vta_inserts *ins);
#endif
