/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the results of kernels results of the function, so that a caller sees every step and can find the operator that
 * computes wrongly. If a run decides extents, another result has the shape. Extents themselves, and values that
 * branches and loops make inside or carry, are left out. This pass comes before joining, which would put values into
 * others. */
#include "graph/graph.h"
#include "prog/prog.h"
#include "te/from_graph.h"

#include <string.h>

typedef struct showing {
    compiler *c;
    prog_module *m;
    prog_func *f;
    graph_func *scratch; /* where nodes of new kernels are made */
    bool *carried;       /* values that a loop makes again */
    bool *seen;          /* values that are made outside of blocks */
} showing;

static bool is_taken(const prog_func *f, const char *name)
{
    for (uint32_t i = 0; i < f->results.len; i++)
        if (strcmp(f->results.data[i].name, name) == 0)
            return true;
    return false;
}

/* --- shapes --- */

/* Whether the steps outside of blocks know all that d is made of. */
static bool knows(const showing *s, dim d)
{
    const dim *parts = NULL;
    uint32_t n = dim_operands(d, &parts);
    uint32_t cell = dim_symbol_name(d) ? prog_find_extent(s->f, dim_symbol_name(d)) : PROG_NONE;
    if (dim_symbol_name(d) && (cell == PROG_NONE || !s->seen[cell]))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!knows(s, parts[i]))
            return false;
    return true;
}

static bool knows_shape(const showing *s, shape of)
{
    for (int32_t i = 0; i < of.rank; i++)
        if (!knows(s, of.dims[i]))
            return false;
    return true;
}

static const char *new_value_name(const showing *s, const char *wanted)
{
    const char *name = intern(s->c->names, wanted);
    for (uint32_t i = 0; i < s->f->values.len; i++)
        if (s->f->values.data[i].name == name)
            return new_value_name(s, arena_printf(&s->c->mem, "%s_", wanted));
    return name;
}

/* A kernel that tells the shape of result `of`, and the result behind all others that it makes. */
static bool tell_shape(showing *s, uint32_t of, const struct target *t)
{
    arena *a = &s->c->mem;
    uint32_t shown = s->f->results.data[of].value;
    const char *name = arena_printf(a, "%s_shape", s->f->results.data[of].name);
    graph_value *x = graph_add_param(s->scratch, "", s->f->values.data[shown].type);
    graph_value *tells = graph_emit(s->scratch, NULL, "shape_of", 1, &x, 0, NULL, src_loc_none());
    prog_kernel *k = arena_new(a, prog_kernel);
    *k = (prog_kernel){.name = "shape_of", .kind = "shape_of", .target = t, .node = tells ? tells->def : NULL};
    if (!tells || !te_lower_node(s->c, k->node, k->name, NULL, NULL, &k->plain))
        return false;
    vec_push(a, &s->m->kernels, k);
    prog_step step = {.kind = STEP_KERNEL, .kernel = k, .source = "", .loc = src_loc_none()};
    step.args = arena_array(a, uint32_t, k->plain->n_params);
    for (uint32_t i = 0; i < k->plain->n_symbols; i++)
        step.args[step.n_in++] = prog_find_extent(s->f, k->plain->symbols[i]);
    step.args[step.n_in++] = shown;
    step.n_args = step.n_in + 1;
    step.args[step.n_in] = prog_add_value(
        s->m, s->f,
        (prog_value){
            .name = new_value_name(s, name), .type = tells->type, .space = SPACE_WORKSPACE, .base = PROG_NONE});
    vec_push(a, &s->f->steps, step);
    vec_push(a, &s->f->results, ((prog_result){name, step.args[step.n_in], of}));
    return true;
}

/* --- results --- */

/* Behind the results of the model and before the shapes of those; its number. */
static uint32_t add_result(showing *s, uint32_t value)
{
    prog_func *f = s->f;
    const char *name = f->values.data[value].name;
    uint32_t at = f->results.len;
    while (is_taken(f, name))
        name = intern(s->c->names, arena_printf(&s->c->mem, "%s.shown", name));
    vec_push(&s->c->mem, &f->results, (prog_result){0});
    for (; at > 0 && f->results.data[at - 1].shape_of != PROG_NONE; at--)
        f->results.data[at] = f->results.data[at - 1];
    f->results.data[at] = (prog_result){name, value, PROG_NONE};
    return at;
}

static void mark(showing *s)
{
    prog_walk w;
    uint32_t n = s->f->values.len;
    s->carried = arena_array(&s->c->mem, bool, n + 1u);
    s->seen = arena_array(&s->c->mem, bool, n + 1u);
    for (const prog_step *p = prog_first_step(s->f, &w); p; p = prog_next_step(&w))
        for (uint32_t k = 0; p->kind == STEP_LOOP && k < p->n_in; k++)
            s->carried[p->args[k]] = true;
    for (uint32_t i = 0; i < s->f->n_inputs; i++)
        s->seen[i] = true;
    for (uint32_t i = 0; i < s->f->steps.len; i++)
        for (uint32_t k = s->f->steps.data[i].n_in; k < s->f->steps.data[i].n_args; k++)
            s->seen[s->f->steps.data[i].args[k]] = true;
}

/* Makes what one step makes results. */
static bool show_step(showing *s, uint32_t at)
{
    for (uint32_t k = s->f->steps.data[at].n_in; k < s->f->steps.data[at].n_args; k++) {
        const prog_step *step = &s->f->steps.data[at];
        uint32_t v = step->args[k];
        const prog_value *x = &s->f->values.data[v];
        bool makes = step->kind != STEP_VIEW && step->kind != STEP_JOIN;
        if (!makes || x->space != SPACE_WORKSPACE || x->base != PROG_NONE || x->extent || s->carried[v] ||
            !knows_shape(s, x->type.shape))
            continue;
        bool open = !shape_is_static(x->type.shape);
        uint32_t result = add_result(s, v);
        if (open && !tell_shape(s, result, step->kernel ? step->kernel->target : s->m->kernels.data[0]->target))
            return false;
    }
    return true;
}

static bool show(showing *s)
{
    uint64_t start;
    prog_func *f = s->f;
    uint32_t n = f->steps.len; /* steps that tell shapes come behind */
    mark(s);
    for (uint32_t i = 0; i < n; i++)
        if (!show_step(s, i))
            return false;
    for (uint32_t i = 0; i < f->results.len; i++) {
        prog_value *root = &f->values.data[prog_root(f, f->results.data[i].value, &start)];
        root->space = SPACE_OUTPUT;
        root->index = i;
    }
    prog_place_results(f);
    return true;
}

bool prog_pass_show(compiler *c, prog_module *m)
{
    graph_func *scratch = graph_func_new(graph_module_new(c), "shapes");
    uint32_t before = m->kernels.len;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!show(&(showing){.c = c, .m = m, .f = m->funcs.data[i], .scratch = scratch}))
            return false;
    if (m->kernels.len > before)
        prog_name_kernels(m);
    return true;
}
