/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of layouts, and the type relation of layout_transform. */
#include "graph/op/layout.h"

#include "graph/op.h"

#define MAX_BLOCK 65536 /* lanes of a packed layout: far above any vector */

uint32_t layout_find(const tensor_layout *l, char letter, bool block)
{
    uint32_t i = 0;
    while (i < l->n && !(l->letter[i] == letter && (l->block[i] != 0) == block))
        i++;
    return i;
}

/* One axis or block from the text; NULL: neither. */
static const char *parse_axis(const char *text, tensor_layout *l)
{
    int64_t block = 0;
    bool blocked = *text >= '0' && *text <= '9';
    for (; *text >= '0' && *text <= '9' && block <= MAX_BLOCK; text++)
        block = block * 10 + (*text - '0');
    char first = blocked ? 'a' : 'A', letter = *text;
    if (letter < first || letter > first + 25 || (blocked && block == 0) || block > MAX_BLOCK || l->n == TYPE_MAX_RANK)
        return NULL;
    letter = (char)(letter - first + 'A');
    bool known = layout_find(l, letter, false) < l->n;
    if (known != blocked || layout_block(l, letter) > MAX_BLOCK)
        return NULL;
    l->letter[l->n] = letter;
    l->block[l->n++] = block;
    return text + 1;
}

bool layout_parse(const char *text, tensor_layout *out)
{
    *out = (tensor_layout){0};
    while (text && *text)
        text = parse_axis(text, out);
    return text && out->n > 0;
}

int64_t layout_block(const tensor_layout *l, char letter)
{
    uint32_t i = layout_find(l, letter, true);
    return i < l->n ? l->block[i] * layout_step(l, i) : 0;
}

int64_t layout_step(const tensor_layout *l, uint32_t i)
{
    int64_t step = 1;
    for (uint32_t k = i + 1; k < l->n; k++)
        if (l->letter[k] == l->letter[i] && l->block[k])
            step *= l->block[k];
    return step;
}

int64_t layout_text_block(const char *text, char letter)
{
    tensor_layout l;
    return layout_parse(text, &l) ? layout_block(&l, letter) : 0;
}

/* Both name the same axes. */
static bool same_axes(const tensor_layout *a, const tensor_layout *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (layout_find(b, a->letter[i], false) == b->n)
            return false;
    for (uint32_t i = 0; i < b->n; i++)
        if (layout_find(a, b->letter[i], false) == a->n)
            return false;
    return true;
}

/* Extent of a whole axis seen through layout l of shape s. */
static dim whole_extent(compiler *c, const tensor_layout *l, shape s, char letter, int64_t given)
{
    dim outer = s.dims[layout_find(l, letter, false)];
    int64_t block = layout_block(l, letter);
    if (!block)
        return outer;
    return given ? dim_const(c, given) : dim_mul(c, outer, dim_const(c, block));
}

/* `extent` says how much of the last block of a source axis is data; it must lie in that block. */
static bool extent_fits(const tensor_layout *l, shape s, int64_t extent)
{
    int64_t outer = 0;
    for (uint32_t i = 0; extent && i < l->n; i++) {
        int64_t block = l->block[i] ? layout_block(l, l->letter[i]) : 0;
        if (!block || !dim_is_const(s.dims[layout_find(l, l->letter[i], false)], &outer))
            continue;
        if (extent < 0 || (extent + block - 1) / block != outer)
            return false;
    }
    return true;
}

/* src and dst name the same axes; those with blocks in dst are filled up with zeros, those with blocks in src have
 * `extent` elements (0: as many as there is room for). */
bool infer_layout_transform(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    const char *src = graph_attr_string(n, "src_layout"), *dst = graph_attr_string(n, "dst_layout");
    int64_t extent = graph_attr_int(n, "extent");
    tensor_layout from, to;
    dim d[TYPE_MAX_RANK];
    if (!layout_parse(src, &from) || !layout_parse(dst, &to) || x->shape.rank != (int32_t)from.n ||
        !same_axes(&from, &to) || !extent_fits(&from, x->shape, extent))
        return infer_error(c, n, "cannot go from layout %s to %s at rank %d", src, dst, x->shape.rank);
    for (uint32_t i = 0; i < to.n; i++) {
        int64_t block = layout_block(&to, to.letter[i]);
        dim whole = whole_extent(c, &from, x->shape, to.letter[i], extent);
        d[i] = to.block[i] ? dim_const(c, to.block[i]) : block ? dim_ceildiv(c, whole, dim_const(c, block)) : whole;
    }
    out[0] = type_tensor(x->dt, shape_make(c, to.n, d));
    return true;
}
