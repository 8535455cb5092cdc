/* SPDX-License-Identifier: Apache-2.0 */
/* In which form onnxruntime computes a sum, a product or a pool between dequantised values on x86-64, for the pass
 * use-integers: the forms round differently where a result is near the middle of two steps. It makes u8 of i8 between a
 * quantize and the one dequantize that reads it, and of constants. Where all operands and the result are of one type
 * then, one of its kernels computes on the numbers; else the operators stay, and each of them rounds to f32. */
#include "graph/pass/qnn.h"

#include <string.h>

void qnn_find_readers(compiler *c, const graph_func *f, ptr_map *out)
{
    ptr_map_init(out, &c->mem);
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_inputs; k++)
            if (f->nodes.data[i]->inputs[k])
                ptr_map_set(out, f->nodes.data[i]->inputs[k], i);
}

/* The one node that reads a value; NULL: none, several, or the value is a result. */
static const graph_node *only_reader(const graph_func *f, const ptr_map *readers, const graph_value *v)
{
    uint32_t at = 0;
    return rewrite_is_read_once(v) && ptr_map_get(readers, v, &at) ? f->nodes.data[at] : NULL;
}

void qnn_find_u8(compiler *c, const graph_func *f, const ptr_map *readers, ptr_map *out)
{
    ptr_map_init(out, &c->mem);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *q = f->nodes.data[i];
        if (strcmp(q->op->name, "qnn.quantize") != 0 || q->outputs[0]->type.dt != DT_I8)
            continue;
        const graph_node *d = only_reader(f, readers, q->outputs[0]);
        if (!d || strcmp(d->op->name, "qnn.dequantize") != 0 || rewrite_uses(d->outputs[0]) != 1)
            continue; /* a dequantize that several read becomes one for each of them */
        ptr_map_set(out, q, 1);
        ptr_map_set(out, d, 1);
    }
}

/* Pairs of quantize and dequantize are put behind these. */
static bool is_passed(const graph_node *n)
{
    static const char *const passed[] = {"reshape", "transpose", "strided_slice", "nn.max_pool1d", "nn.max_pool2d",
                                         "nn.max_pool3d"};
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        if (strcmp(n->op->name, passed[i]) == 0)
            return true;
    return false;
}

uint32_t qnn_form(compiler *c, const ptr_map *u8, const graph_node *n, uint32_t n_data, const graph_node *q,
                  bool clips, attr *out)
{
    uint32_t found = 0, at;
    bool fused = !clips;
    const bool is_i8 = q->outputs[0]->type.dt == DT_I8;
    for (uint32_t i = 0; i < n_data; i++) {
        const graph_node *d = n->inputs[i]->def;
        const bool direct = strcmp(d->op->name, "qnn.dequantize") == 0;
        fused &= direct || is_passed(d);
        found += !direct || graph_constant(d->inputs[0]) || ptr_map_get(u8, d, &at);
    }
    found += ptr_map_get(u8, q, &at);
    const bool as_u8 = found == n_data + 1;
    if (!fused || (is_i8 && found > 0 && !as_u8)) {
        out[0] = attr_int(c, "in_steps", 1);
        return 1;
    }
    out[0] = attr_int(c, "as_u8", as_u8);
    return is_i8;
}
