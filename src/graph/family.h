/* SPDX-License-Identifier: Apache-2.0 */
/* What a folder of src/target brings to the graph: passes. The table is made of src/target/targets.def where it is
 * read, in pass/pass.c. */
#ifndef LATHE_GRAPH_FAMILY_H
#define LATHE_GRAPH_FAMILY_H
#include "base/pass.h"
#include "graph/pass.h"

/* Where a target's pass stands in a default order. */
typedef enum graph_place {
    GRAPH_PLACE_NONE,    /* nowhere: it runs by name */
    GRAPH_PLACE_BEFORE,  /* before targets take their nodes, where some target does */
    GRAPH_PLACE_REGIONS, /* behind that, before the CPU's passes; regions may also come with the graph */
} graph_place;

typedef struct graph_pass_row {
    pass_row row;
    graph_pass_fn run;
    graph_place place;
} graph_pass_row;

/* The passes of a device, beside those of graph/pass.h. */
typedef struct graph_device {
    const graph_pass_row *passes;
    uint32_t n;
} graph_device;

#define TARGET_GRAPH(name) extern const graph_device graph_device_##name;
#include "target/targets.def"
#endif
