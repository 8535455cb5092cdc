/* SPDX-License-Identifier: Apache-2.0 */
/* A model as it was read, for pages: its nodes by their names in the model, the values between them, the weights.
 * Passes change the graph in place, so this is taken before they run. */
#ifndef LATHE_DRIVER_HTML_MODEL_H
#define LATHE_DRIVER_HTML_MODEL_H
#include "base/json_out.h"
#include "base/vec.h"
#include "graph/graph.h"

typedef struct html_model_value {
    const char *name;
    struct type type;
} html_model_value;

/* A node of the model: one node of the graph, or those that a front end made of it. */
typedef struct html_model_node {
    const char *name; /* as in the model; "" where it has none */
    const char *op;   /* the model's word for it: "Conv" */
    const char *text; /* the nodes of the graph, one a line */
    const char *unread; /* why there are none of these; NULL: there are */
    int32_t place;    /* position in the model's list, or line of a text; -1: none */
    VEC(uint32_t) inputs, outputs; /* values */
    VEC(html_model_value) weights;
} html_model_node;

typedef struct html_model {
    VEC(html_model_node) nodes;
    VEC(html_model_value) values; /* that some node makes, or the caller gives */
    VEC(uint32_t) inputs, outputs;
    uint64_t weight_bytes;
    uint32_t *by_place, n_places; /* node of each place in the model's list; UINT32_MAX: none */
} html_model;

html_model *html_model_of(compiler *c, const graph_module *m);
/* The node that a place in the model means; UINT32_MAX: none of them. */
uint32_t html_model_find(const html_model *m, const src_loc *loc);
void html_model_write(json_out *j, const char *key, const html_model *m);
#endif
