/* SPDX-License-Identifier: Apache-2.0 */
/* From a group of fusion to a primitive function: its name, what leaves it, and which constants go inside. */
#include "graph/pass/fuse.h"
#include "graph/pass/outline.h"
#include "graph/pass/rounded.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NAME 80u

/* A method of rounding in fixed point is made of the scales, and a definition that does not see them rounds floats. */
static bool rounds_by_scales(const graph_node *n)
{
    const char *method = graph_attr(n, "method") ? graph_attr_string(n, "method") : "float";
    return strcmp(method, "tflite") == 0 || strcmp(method, "fast") == 0;
}

bool fuse_takes_constant(bool literals, const graph_node *n, uint32_t i)
{
    if (!graph_is_literal(n, i))
        return false; /* level 0 leaves constants where the model has them, but for shapes and scales */
    return literals || graph_is_shape_arg(n, i) || rounds_by_scales(n);
}

static bool takes(const void *literals, const graph_node *n, uint32_t i)
{
    return fuse_takes_constant(*(const bool *)literals, n, i);
}

/* fused_nn_conv2d_add_nn_relu; long ones are cut and get a hash of the whole. */
static const char *group_name(compiler *c, const graph_func *f, const fuse_group *g)
{
    writer w;
    writer_init(&w, &c->mem);
    w_str(&w, "fused");
    for (uint32_t i = 0; i < g->nodes.len; i++)
        w_fmt(&w, "_%s", f->nodes.data[g->nodes.data[i]]->op->name);
    for (size_t i = 0; i < w.len; i++)
        if (w.data[i] == '.')
            w.data[i] = '_';
    if (w.len <= MAX_NAME)
        return w.data;
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < w.len; i++)
        h = (h ^ (unsigned char)w.data[i]) * 1099511628211u;
    return arena_printf(&c->mem, "%.*s_%016llx", (int)MAX_NAME, w.data, (unsigned long long)h);
}

static int by_position(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Results that nobody uses are left out, unless the kernel makes them all anyway, or none is used. */
static bool leaves(const graph_node *tip, const graph_value *v)
{
    bool any = false;
    for (uint32_t i = 0; i < tip->n_outputs; i++)
        any |= tip->outputs[i]->mark != 0;
    return v->mark != 0 || !any || tip->op->cls == CLASS_OPAQUE;
}

/* Whether a product of the group may share its rounding with a sum, and must not. */
static bool keeps_products(const graph_func *f, const fuse_group *g, const ptr_map *rounded)
{
    bool sums = false;
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const graph_node *n = f->nodes.data[g->nodes.data[i]];
        if (!rounded_has(rounded, n))
            return false;
        sums |= (n->op->flags & OPF_SUM) != 0;
    }
    return sums;
}

graph_node *fuse_outline(compiler *c, graph_func *f, const fuse_group *g, const ptr_map *rounded, bool literals)
{
    arena scratch;
    arena_init(&scratch, &c->mem);
    qsort(g->nodes.data, g->nodes.len, sizeof *g->nodes.data, by_position);
    const graph_node *tip = f->nodes.data[g->tip];
    graph_node **nodes = arena_array(&scratch, graph_node *, g->nodes.len);
    graph_value **results = arena_array(&scratch, graph_value *, tip->n_outputs);
    const attr attrs[2] = {attr_int(c, "primitive", 1), attr_int(c, "apart", 1)};
    outline_spec s = {.name = group_name(c, f, g),
                      .nodes = nodes,
                      .n_nodes = g->nodes.len,
                      .results = results,
                      .attrs = attrs,
                      .n_attrs = keeps_products(f, g, rounded) ? 2 : 1,
                      .takes = takes,
                      .context = &literals,
                      .loc = g->anchor ? g->anchor->loc : tip->loc};
    for (uint32_t i = 0; i < g->nodes.len; i++)
        nodes[i] = f->nodes.data[g->nodes.data[i]];
    for (uint32_t i = 0; i < tip->n_outputs; i++)
        if (leaves(tip, tip->outputs[i]))
            results[s.n_results++] = tip->outputs[i];
    graph_node *call = graph_outline(c, f, &s);
    arena_free(&scratch);
    return call;
}
