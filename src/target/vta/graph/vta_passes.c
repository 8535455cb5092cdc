/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of VTA on graphs, for the table of passes. */
#include "target/vta/graph/vta_passes.h"

#include "graph/family.h"

static const graph_pass_row rows[] = {
#define X(name, fn, place, needs, help) {{name, help, needs, 0, 0, 0}, fn, place},
    VTA_GRAPH_PASSES(X)
#undef X
};

const graph_device graph_device_vta = {.passes = rows, .n = sizeof rows / sizeof *rows};
