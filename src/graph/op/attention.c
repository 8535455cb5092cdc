/* SPDX-License-Identifier: Apache-2.0 */
/* Type relation of nn.attention: softmax(q k^T * scale + mask) v for each head, whose operands and result say in which
 * order their axes lie. */
#include "graph/op/attention.h"

#include <string.h>

bool attention_order(const char *layout, uint32_t out[ATTENTION_RANK])
{
    static const char letters[] = "BHSD";
    uint32_t seen = 0;
    for (uint32_t i = 0; i < ATTENTION_RANK; i++) {
        const char *at = layout[i] ? strchr(letters, layout[i]) : NULL;
        if (!at)
            return false;
        out[at - letters] = i;
        seen |= 1u << (at - letters);
    }
    return layout[ATTENTION_RANK] == '\0' && seen == (1u << ATTENTION_RANK) - 1;
}

/* Operand i's extents in the order of attention_axis. */
static bool read_dims(compiler *c, const graph_node *n, uint32_t i, const char *name, dim out[ATTENTION_RANK])
{
    uint32_t at[ATTENTION_RANK];
    const char *layout = graph_attr_string(n, name);
    if (!attention_order(layout, at))
        return infer_error(c, n, "%s '%s' is not an order of B, H, S and D", name, layout);
    for (uint32_t a = 0; a < ATTENTION_RANK; a++)
        out[a] = infer_in(n, i)->shape.dims[at[a]];
    return true;
}

/* Each extent of the mask is 1, or that of the scores. */
static bool mask_fits(compiler *c, const graph_node *n, const dim scores[ATTENTION_RANK])
{
    const type *mask = infer_in(n, 3), want = type_tensor(DT_F32, shape_make(c, ATTENTION_RANK, scores));
    if (!mask)
        return true;
    bool fits = mask->shape.rank <= (int32_t)ATTENTION_RANK;
    for (int32_t i = 0; fits && i < mask->shape.rank; i++) {
        int64_t v = 0;
        bool one = dim_is_const(mask->shape.dims[i], &v) && v == 1;
        fits = one || dim_equal(mask->shape.dims[i], scores[(int32_t)ATTENTION_RANK - mask->shape.rank + i]);
    }
    return fits || infer_no_broadcast_to(c, n, mask, &want);
}

bool infer_attention(compiler *c, const graph_node *n, type *out)
{
    dim q[ATTENTION_RANK], k[ATTENTION_RANK], v[ATTENTION_RANK], y[ATTENTION_RANK];
    uint32_t at[ATTENTION_RANK];
    if (!read_dims(c, n, 0, "q_layout", q) || !read_dims(c, n, 1, "k_layout", k) || !read_dims(c, n, 2, "v_layout", v))
        return false;
    if (!attention_order(graph_attr_string(n, "out_layout"), at))
        return infer_error(c, n, "out_layout '%s' is not an order of B, H, S and D",
                           graph_attr_string(n, "out_layout"));
    bool fit = dim_equal(q[ATTENTION_D], k[ATTENTION_D]) && dim_equal(k[ATTENTION_S], v[ATTENTION_S]);
    for (uint32_t a = ATTENTION_B; a <= ATTENTION_H; a++)
        fit = fit && dim_equal(q[a], k[a]) && dim_equal(q[a], v[a]);
    if (!fit)
        return infer_error(c, n, "queries, keys and values do not fit together");
    if (graph_attr_int(n, "lanes") < 1 || graph_attr_int(n, "lanes") > 64)
        return infer_error(c, n, "lanes must be from 1 to 64");
    y[at[ATTENTION_B]] = q[ATTENTION_B];
    y[at[ATTENTION_H]] = q[ATTENTION_H];
    y[at[ATTENTION_S]] = q[ATTENTION_S];
    y[at[ATTENTION_D]] = v[ATTENTION_D];
    out[0] = type_tensor(DT_F32, shape_make(c, ATTENTION_RANK, y));
    return mask_fits(c, n, (const dim[]){q[ATTENTION_B], q[ATTENTION_H], q[ATTENTION_S], k[ATTENTION_S]});
}
