/* SPDX-License-Identifier: Apache-2.0 */
/* The run of a small package: C calls the operators one after the other, with addresses that are a base and an offset.
 * An engine that reads such addresses from tables would cost a model of a few hundred instructions more than that. */
#include "codegen/c/emit.h"
#include "codegen/c/package.h"

/* --- addresses --- */

static const char *input_of(const package *p, uint32_t i)
{
    const char *name = p->inputs[i].c_name;
    if (!p->inputs[i].extent)
        return arena_printf(&p->c->mem, "inputs->%s", name);
    return arena_printf(&p->c->mem, "(inputs->%s == %s_EMPTY ? &no_elements : &inputs->%s)", name, p->macro, name);
}

/* A pointer of C, to bytes or to elements of its own, and what is to be added to it. */
typedef struct pointer {
    const char *base;
    bool is_bytes;
    uint64_t at;
} pointer;

static pointer pointer_of(const package *p, uint32_t value)
{
    const plan_value *x = &p->pl->problem->values.data[value];
    pointer to = {"workspace", true, p->pl->places[value].offset};
    uint32_t area;
    switch (x->storage) {
    case STORE_INPUT: return (pointer){input_of(p, x->index), false, to.at};
    case STORE_OUTPUT:
        return (pointer){arena_printf(&p->c->mem, "outputs->%s", p->outputs[x->index].c_name), false, to.at};
    case STORE_CONSTANT:
        area = package_area(p, to.at);
        if (area == 0)
            return (pointer){"constants", true, to.at};
        return (pointer){arena_printf(&p->c->mem, "%s_get_const_area_%u()", p->prefix, area), false,
                         to.at - p->areas[area].begin};
    case STORE_WORKSPACE:
    case STORE_STATE:
    case STORE_DEVICE: break;
    }
    return to;
}

/* "(const float *)(const void *)(constants + 64)" */
static const char *address(const package *p, bool is_input, dtype dt, pointer to)
{
    const char *constant = is_input ? "const " : "", *text = to.base;
    if (to.at > 0)
        text = arena_printf(&p->c->mem, to.is_bytes ? "(%s%s + %llu)" : "((%suint8_t *)%s + %llu)",
                            to.is_bytes ? "" : constant, to.base, (unsigned long long)to.at);
    return arena_printf(&p->c->mem, "(%s%s *)(%svoid *)%s", constant, dtype_c_name(dt), constant, text);
}

static void write_args(const package *p, writer *w, uint32_t i, const char *numbers)
{
    const plan_op *op = &p->pl->problem->ops.data[i];
    w_str(w, numbers ? numbers : "");
    for (uint32_t k = 0; k < op->n_args + op->n_scratch; k++) {
        const bool is_scratch = k >= op->n_args;
        const tir_buffer *b = is_scratch ? op->scratch[k - op->n_args].buffer : op->func->params[k];
        const pointer to = is_scratch ? (pointer){"workspace", true, p->pl->tasks[i].scratch_offset[k - op->n_args]}
                                      : pointer_of(p, op->args[k]);
        w_fmt(w, "%s%s", k > 0 || numbers ? ", " : "", address(p, k < op->n_inputs, b->dt, to));
    }
}

/* --- the run --- */

static bool is_used(const package *p, plan_storage storage, uint32_t index)
{
    const plan_problem *pp = p->pl->problem;
    for (uint32_t i = 0; i < pp->ops.len; i++)
        for (uint32_t k = 0; k < pp->ops.data[i].n_args; k++) {
            const plan_value *x = &pp->values.data[pp->ops.data[i].args[k]];
            if (x->storage == storage && x->index == index)
                return true;
        }
    return false;
}

/* Pointers of the caller that operators get. Numbers of its structs have no pointers. */
static void write_checks(const package *p, writer *w)
{
    bool any = false;
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (!p->inputs[i].extent && is_used(p, STORE_INPUT, i)) {
            w_fmt(w, "%sinputs->%s == NULL", any ? " || " : "    if (", p->inputs[i].c_name);
            any = true;
        }
    for (uint32_t i = 0; i < p->n_outputs; i++)
        if (p->outputs[i].shape_of == PROG_NONE && is_used(p, STORE_OUTPUT, i)) {
            w_fmt(w, "%soutputs->%s == NULL", any ? " || " : "    if (", p->outputs[i].c_name);
            any = true;
        }
    if (any)
        w_str(w, ")\n        return tvmrt_small_fail(TVMRT_E_NULL);\n");
}

/* What cannot fail needs no look at its status, but the last one's is the run's. */
static void write_operator(const package *p, writer *w, uint32_t i, bool is_last)
{
    const char *numbers, *name = ops_function(p, i, &numbers);
    const bool may_fail = is_last || func_may_fail(package_code(&p->pl->problem->ops.data[i]));
    w_fmt(w, "    status = tvmrt_small_before(context, %u, &start);\n    if (status != TVMRT_OK)\n"
             "        return status;\n    %s%s(", i, may_fail ? "status = " : "(void)", name);
    write_args(p, w, i, numbers);
    w_fmt(w, ");\n    status = tvmrt_small_after(context, %u, start, status);\n", i);
    w_str(w, is_last ? "    return status;\n" : "    if (status != TVMRT_OK)\n        return status;\n");
}

void calls_write(const package *p, writer *w)
{
    const plan *pl = p->pl;
    uint32_t left = pl->problem->ops.len;
    write_checks(p, w);
    for (uint32_t l = 0; l < pl->n_layers; l++)
        for (uint32_t i = 0; i < pl->layer_len[l]; i++)
            write_operator(p, w, pl->layers[l][i], --left == 0);
}
