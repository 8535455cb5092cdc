/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of a graph on VTA: a function whose calls are layers becomes one loop-IR function of run-time calls. */
#ifndef LATHE_TE_RULE_VTA_REGION_H
#define LATHE_TE_RULE_VTA_REGION_H
#include "target/vta/graph/vta_layer.h"
#include "target/vta/rule/vta.h"
#include "tir/tir.h"

/* The layer in the rule's numbers, images and channels filled up to tiles, with its blocking. NULL, or why no blocking
 * fits the device of c. A VTA_LAYER_VIEW needs none. */
const char *te_vta_region_plan(compiler *c, const vta_layer *l, te_vta_layer *out);

/* The hook of the target `vta` (target_lower_fn): f as `vta-pack` left it, one layer behind the other, each with all of
 * the scratchpads. The layers' intermediate tensors are allocations in the device's memory, which take the place of
 * those that nobody reads any more; between layers a chain of tokens, store to compute to load; one synchronisation at
 * the end. Layers are annotated: attr [NAME] "vta_layer" = number around their statements. */
bool te_vta_region_lower(compiler *c, const graph_func *f, const char *name, tir_func **out);

/* Registers the target `vta` in c; `codegen` writes its regions as C. */
bool te_vta_region_register(compiler *c, target_codegen_fn codegen);
#endif
