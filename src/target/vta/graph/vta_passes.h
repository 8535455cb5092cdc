/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of VTA on graphs, as rows; graph/pass.h says what the columns are. */
#ifndef LATHE_TARGET_VTA_GRAPH_PASSES_H
#define LATHE_TARGET_VTA_GRAPH_PASSES_H
#include "graph/pass.h"

/* X(name, function, place in a default order, needs, one-line help) */
#define VTA_GRAPH_PASSES(X)                                                                 \
    X("vta-fold", graph_pass_vta_fold, GRAPH_PLACE_BEFORE, FACTS_MODEL | FACT_FREE,         \
      "windows of few channels become channels, which fill the lanes of VTA")               \
    X("vta-pack", graph_pass_vta_pack, GRAPH_PLACE_REGIONS, FACTS_NODES,                    \
      "regions of VTA take and give tensors in the tiles of the device")

#define X(name, fn, place, needs, help) bool fn(compiler *c, graph_module *m, const pass_options *o);
VTA_GRAPH_PASSES(X)
#undef X
#endif
