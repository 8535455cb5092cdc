/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and outputs as the library describes them: name, type, shape, and open dimensions. */
#include "api/objects.h"

#include <string.h>

static const char *dim_text(compiler *c, dim d)
{
    writer w;
    writer_init(&w, &c->mem);
    dim_print(&w, d);
    return w.data;
}

static lathe_tensor_info *begin(compiler *c, const char *name, dtype dt, uint32_t rank, lathe_tensor_info *t,
                                int64_t **out_shape, int64_t **out_most, const char ***out_symbols)
{
    *out_shape = arena_array(&c->mem, int64_t, rank + 1u);
    *out_most = arena_array(&c->mem, int64_t, rank + 1u);
    *out_symbols = arena_array(&c->mem, const char *, rank + 1u);
    *t = (lathe_tensor_info){.size = sizeof *t,
                             .dtype = run_module_to_dlpack(dt),
                             .name = arena_strdup(&c->mem, name),
                             .ndim = (int32_t)rank,
                             .shape = *out_shape,
                             .most = *out_most,
                             .symbols = *out_symbols};
    return t;
}

tensor_infos infos_of_run(compiler *c, const run_tensor *list, uint32_t n)
{
    lathe_tensor_info *made = arena_array(&c->mem, lathe_tensor_info, n + 1u);
    for (uint32_t i = 0; i < n; i++) {
        int64_t *extents, *most, value;
        const char **symbols;
        const run_tensor *t = &list[i];
        begin(c, t->name, t->dt, t->rank, &made[i], &extents, &most, &symbols);
        for (uint32_t k = 0; k < t->rank; k++) {
            const bool open = t->open && !dim_is_const(t->open[k], &value);
            symbols[k] = open ? dim_text(c, t->open[k]) : NULL;
            extents[k] = open ? -1 : t->most[k];
            most[k] = t->most[k];
        }
        made[i].string_bytes = t->is_text ? (uint32_t)t->most[t->rank - 1] : 0;
    }
    return (tensor_infos){made, n};
}

static bool is_text(const graph_module *m, bool is_input, const char *name)
{
    bool found = false;
    for (uint32_t i = 0; i < m->texts.len; i++)
        found |= m->texts.data[i].is_input == is_input && strcmp(m->texts.data[i].name, name) == 0;
    return found;
}

tensor_infos infos_of_values(compiler *c, const graph_module *m, bool is_input, graph_value *const *list, uint32_t n)
{
    lathe_tensor_info *made = arena_array(&c->mem, lathe_tensor_info, n + 1u);
    for (uint32_t i = 0; i < n; i++) {
        int64_t *extents, *most;
        const char **symbols;
        const type *t = &list[i]->type;
        const bool known = t->kind == TYPE_TENSOR && t->shape.rank >= 0;
        begin(c, list[i]->name, t->dt, known ? (uint32_t)t->shape.rank : 0, &made[i], &extents, &most, &symbols);
        for (uint32_t k = 0; known && k < (uint32_t)t->shape.rank; k++) {
            const bool open = !dim_is_const(t->shape.dims[k], &extents[k]);
            symbols[k] = open ? dim_text(c, t->shape.dims[k]) : NULL;
            most[k] = open ? dim_bound(t->shape.dims[k]) : extents[k];
            extents[k] = open ? -1 : extents[k];
        }
        if (!known)
            made[i].ndim = -1;
        else if (t->shape.rank > 0 && is_text(m, is_input, list[i]->name))
            made[i].string_bytes = (uint32_t)most[t->shape.rank - 1];
    }
    return (tensor_infos){made, n};
}

const lathe_tensor_info *infos_at(const tensor_infos *t, uint32_t index)
{
    return index < t->n ? &t->list[index] : NULL;
}
