/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that patterns name, for conditions that text cannot express. A check returns NULL if the values fulfill
 * it, else the reason why not. A value that is missing in the match is NULL. docs/reference/partition.md lists the
 * checks. */
#include "graph/pattern.h"

#include <math.h>

/* static(%x, ...): all extents are numbers */
static const char *check_static(compiler *c, uint32_t n, graph_value *const *v)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i] && (v[i]->type.kind != TYPE_TENSOR || !shape_is_static(v[i]->type.shape)))
            return arena_printf(&c->mem, "the extents of %%%.100s are known only at run time", v[i]->name);
    return NULL;
}

/* power_of_two(%s, ...): every element of each constant is one */
static const char *check_power_of_two(compiler *c, uint32_t n, graph_value *const *v)
{
    for (uint32_t i = 0; i < n; i++) {
        const tensor_data *t = graph_constant(v[i]);
        int64_t count = t && t->kind == TENSOR_SPLAT ? 1 : t ? t->count : 0;
        if (v[i] && (!t || !dtype_usable(t->dt)))
            return arena_printf(&c->mem, "%%%.100s is not a constant", v[i]->name);
        for (int64_t k = 0; k < count; k++) {
            int exponent;
            double x = tensor_get_f64(t, k);
            if (!(x > 0) || isinf(x) || frexp(x, &exponent) != 0.5)
                return arena_printf(&c->mem, "%%%.100s holds %g, which is not a power of two", v[i]->name, x);
        }
    }
    return NULL;
}

/* same_shape(%a, %b, ...) */
static const char *check_same_shape(compiler *c, uint32_t n, graph_value *const *v)
{
    const graph_value *first = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (!v[i])
            continue;
        if (first && !shape_equal(first->type.shape, v[i]->type.shape))
            return arena_printf(&c->mem, "%%%.100s and %%%.100s have different shapes", first->name, v[i]->name);
        first = first ? first : v[i];
    }
    return NULL;
}

/* per_channel(%b, %y): %b broadcasts over %y as one number, or as one for each channel, axis 1 of %y */
static const char *check_per_channel(compiler *c, uint32_t n, graph_value *const *v)
{
    if (n != 2 || !v[0] || !v[1])
        return n == 2 ? NULL : "per_channel takes two values";
    const shape b = v[0]->type.shape, y = v[1]->type.shape;
    bool ok = b.rank <= y.rank;
    for (int32_t i = 0; i < b.rank && ok; i++) {
        int32_t axis = i + y.rank - b.rank;
        ok = dim_is(b.dims[i], 1) || (axis == 1 && dim_equal(b.dims[i], y.dims[1]));
    }
    return ok ? NULL : arena_printf(&c->mem, "%%%.100s is not one number for each channel", v[0]->name);
}

/* depthwise(%x, %w): as many groups as channels, of one channel each; dense(%x, %w): one group */
static bool one_channel_each(graph_value *const *v)
{
    int64_t in = 0;
    const shape x = v[0]->type.shape, w = v[1]->type.shape;
    return x.rank >= 3 && w.rank == x.rank && dim_is_const(x.dims[1], &in) && in > 1 && dim_is(w.dims[1], 1);
}

static const char *check_depthwise(compiler *c, uint32_t n, graph_value *const *v)
{
    (void)c;
    if (n != 2 || !v[0] || !v[1])
        return "depthwise takes two values";
    return one_channel_each(v) ? NULL : "it is not depthwise";
}

const target_check *graph_pattern_checks(void)
{
    static const target_check list[] = {
        {"static", check_static},
        {"power_of_two", check_power_of_two},
        {"same_shape", check_same_shape},
        {"per_channel", check_per_channel},
        {"depthwise", check_depthwise},
        {NULL, NULL},
    };
    return list;
}
