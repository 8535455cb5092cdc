/* SPDX-License-Identifier: Apache-2.0 */
/* Names of C for what a program calls by the model's names: inputs, outputs, constants. They become fields of structs
 * and, in capitals, parts of macros. */
#include "codegen/c/package.h"

#include <string.h>

/* A name in capitals: macros are made of it, so two names that differ in letters' case only are the same. */
static const char *capitals(compiler *c, const char *name)
{
    char *s = arena_strdup(&c->mem, name);
    for (char *at = s; *at; at++)
        *at = (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
    return intern(c->names, s);
}

/* A C identifier that is not in `used` yet; it is afterwards. */
static const char *unique_name(compiler *c, const char *wanted, ptr_map *used)
{
    const char *base = codegen_c_identifier(&c->mem, wanted);
    const char *name = base, *first = capitals(c, base), *key = first;
    uint32_t k = 1, ignored;
    bool again = ptr_map_get(used, first, &k);
    while (again && ptr_map_get(used, key, &ignored)) {
        name = arena_printf(&c->mem, "%s_%u", base, k++);
        key = capitals(c, name);
    }
    ptr_map_set(used, first, k);
    if (key != first)
        ptr_map_set(used, key, 1);
    return name;
}

typedef struct bound_list {
    VEC(package_bound) all;
    ptr_map *used;
} bound_list;

/* The symbols of d that no input states, each once. */
static void bind_bounds(package *p, dim d, bound_list *list)
{
    const dim *parts = NULL;
    uint32_t n = dim_operands(d, &parts);
    const char *name = dim_symbol_name(d);
    bool there = !name || package_extent(p, d) != UINT32_MAX;
    for (uint32_t i = 0; i < list->all.len && !there; i++)
        there = strcmp(list->all.data[i].name, name) == 0;
    if (!there)
        vec_push(&p->c->mem, &list->all,
                 ((package_bound){name, unique_name(p->c, name, list->used), dim_bound(d)}));
    for (uint32_t i = 0; i < n; i++)
        bind_bounds(p, parts[i], list);
}

static void bind_ends(const package *p, package_io *io, uint32_t n, bool inputs)
{
    compiler *c = p->c;
    ptr_map by_name;
    ptr_map_init(&by_name, &c->mem);
    for (uint32_t i = 0; i < p->u->n_ends; i++)
        if (p->u->ends[i].is_input == inputs)
            ptr_map_set(&by_name, intern(c->names, p->u->ends[i].name), i);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = 0;
        if (ptr_map_get(&by_name, intern(c->names, io[i].name), &at))
            io[i].end = &p->u->ends[at];
    }
}

int64_t package_text_bytes(const package_io *io)
{
    return dim_bound(io->type.shape.dims[io->type.shape.rank - 1]);
}

static void bind_texts(const package *p, package_io *io, uint32_t n, bool inputs)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < p->u->n_texts; k++)
            if (p->u->texts[k].is_input == inputs && strcmp(io[i].name, p->u->texts[k].name) == 0)
                io[i].is_text = io[i].shape_of == PROG_NONE && !io[i].extent;
}

static void bind_labels(const package *p, package_io *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < p->u->n_labels; k++)
            if (strcmp(out[i].name, p->u->labels[k].name) == 0 && out[i].shape_of == PROG_NONE)
                out[i].labels = &p->u->labels[k];
}

/* What a caller knows an input by. An extent has the name that the model gives it, although a value inside of the
 * program may be called so, but not another input or an output. */
static const char *input_name(const prog_func *f, const prog_value *v)
{
    if (!v->extent)
        return v->name;
    const char *symbol = dim_symbol_name(v->extent);
    bool taken = false;
    for (uint32_t i = 0; i < f->n_inputs; i++)
        taken |= &f->values.data[i] != v && strcmp(f->values.data[i].name, symbol) == 0;
    for (uint32_t i = 0; i < f->results.len; i++)
        taken |= strcmp(f->results.data[i].name, symbol) == 0;
    return taken ? v->name : symbol;
}

static void bind_io(package *p)
{
    /* TVMGEN_M_WORKSPACE_SIZE and TVMGEN_M_CONST_SIZE have other meanings; `none` stands in for no field at all. */
    static const char *const reserved[] = {"workspace", "const", "none"};
    const prog_func *f = p->u->func;
    arena *a = &p->c->mem;
    ptr_map used;
    ptr_map_init(&used, a);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        ptr_map_set(&used, capitals(p->c, reserved[i]), 1);
    if (f->n_states > 0) /* TVMGEN_M_STATES_SIZE */
        ptr_map_set(&used, capitals(p->c, "states"), 1);
    package_io *in = arena_array(a, package_io, f->n_inputs + 1u),
               *out = arena_array(a, package_io, f->results.len + 1u);
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        const prog_value *v = &f->values.data[i];
        const char *name = input_name(f, v);
        in[i] = (package_io){name, unique_name(p->c, name, &used), v->type, i, PROG_NONE, PROG_NONE,
                             v->extent, NULL, false, NULL};
    }
    for (uint32_t i = 0; i < f->results.len; i++) {
        const prog_result *r = &f->results.data[i];
        uint64_t start;
        out[i] = (package_io){r->name, unique_name(p->c, r->name, &used), f->values.data[r->value].type,
                              prog_root(f, r->value, &start), r->shape_of, PROG_NONE, NULL, NULL, false, NULL};
        if (r->shape_of != PROG_NONE)
            out[r->shape_of].shape = i;
    }
    bind_ends(p, in, f->n_inputs, true);
    bind_ends(p, out, f->results.len, false);
    bind_texts(p, in, f->n_inputs, true);
    bind_texts(p, out, f->results.len, false);
    bind_labels(p, out, f->results.len);
    p->inputs = in;
    p->outputs = out;
    p->n_inputs = f->n_inputs;
    p->n_outputs = f->results.len;
    bound_list bounds = {.used = &used};
    for (uint32_t i = 0; i < p->n_outputs; i++)
        for (int32_t k = 0; k < out[i].type.shape.rank; k++)
            bind_bounds(p, out[i].type.shape.dims[k], &bounds);
    p->bounds = bounds.all.data;
    p->n_bounds = bounds.all.len;
}

static void bind_constants(package *p)
{
    const prog_func *f = p->u->func;
    VEC(package_const) list = {0};
    ptr_map used;
    ptr_map_init(&used, &p->c->mem);
    for (uint32_t i = 0; i < f->values.len; i++) {
        const prog_value *v = &f->values.data[i];
        if (!v->data)
            continue;
        const char *wanted = p->u->opt_level > 0 ? arena_printf(&p->c->mem, "const_%.60s", v->name)
                             : list.len == 0     ? "fused_constant_let" /* as TVM numbers them */
                                                 : arena_printf(&p->c->mem, "fused_constant_%u_let", list.len);
        const char *name = unique_name(p->c, wanted, &used);
        vec_push(&p->c->mem, &list, ((package_const){name, v->data, i, p->u->opt_level > 0 ? name : v->name}));
    }
    p->constants = list.data;
    p->n_constants = list.len;
}

static void find_first_ops(package *p)
{
    ptr_map_init(&p->first_ops, &p->c->mem);
    p->next_ops = arena_array(&p->c->mem, uint32_t, p->pl->problem->ops.len);
    for (uint32_t i = p->pl->problem->ops.len; i-- > 0;) {
        if (!ptr_map_get(&p->first_ops, package_kernel(p, i), &p->next_ops[i]))
            p->next_ops[i] = UINT32_MAX;
        ptr_map_set(&p->first_ops, package_kernel(p, i), i);
    }
}

void package_bind(package *p)
{
    bind_io(p);
    bind_constants(p);
    find_first_ops(p);
}

const prog_kernel *package_kernel(const package *p, uint32_t i)
{
    return p->pl->problem->ops.data[i].step->kernel;
}

bool package_is_first(const package *p, uint32_t i)
{
    uint32_t first;
    return ptr_map_get(&p->first_ops, package_kernel(p, i), &first) && first == i;
}
