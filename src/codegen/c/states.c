/* SPDX-License-Identifier: Apache-2.0 */
/* States of a package: the first bytes of the workspace keep their value from run to run. An init function, and what
 * the package calls `reset`, gives them the value that they have in the first run. */
#include "codegen/c/package.h"
#include "codegen/embedded.h"

#include <string.h>

bool package_has_states(const package *p)
{
    return p->u->func->n_states > 0;
}

static const prog_value *state_at(const package *p, uint32_t i)
{
    return &p->u->func->values.data[p->u->func->n_inputs + i];
}

/* All bytes are one and the same: no array is needed. */
static bool is_filled(const tensor_data *t, uint8_t *out)
{
    const size_t size = dtype_bytes(t->dt);
    *out = t->count > 0 ? *(const uint8_t *)tensor_element(t, 0) : 0;
    for (int64_t i = 0; i < t->count; i++)
        for (size_t k = 0; k < size; k++)
            if (((const uint8_t *)tensor_element(t, i))[k] != *out)
                return false;
    return true;
}

static void write_array(const package *p, writer *w, uint32_t i)
{
    const tensor_data *t = state_at(p, i)->initial;
    uint8_t byte;
    if (!t || is_filled(t, &byte))
        return;
    w_fmt(w, "static const %s state_%u[] =\n", dtype_c_name(t->dt), i);
    constants_write_numbers(p, w, t);
    w_str(w, ";\n\n");
}

static void write_start(const package *p, writer *w, uint32_t i)
{
    const prog_value *v = state_at(p, i);
    const uint64_t at = p->pl->places[p->u->func->n_inputs + i].offset;
    uint8_t byte;
    const char *name = package_comment(&p->c->mem, v->name);
    if (!v->initial)
        return;
    if (!is_filled(v->initial, &byte))
        w_fmt(w, "    memcpy(states + %llu, state_%u, sizeof state_%u); /* %s */\n", (unsigned long long)at, i, i,
              name);
    else if (byte != 0)
        w_fmt(w, "    memset(states + %llu, %u, %llu); /* %s */\n", (unsigned long long)at, byte,
              (unsigned long long)prog_bytes(v), name);
}

void states_write(const package *p, writer *w)
{
    if (!package_has_states(p))
        return;
    for (uint32_t i = 0; i < p->u->func->n_states; i++)
        write_array(p, w, i);
    package_template(p, w, "/* States as they are in the first run: the first bytes of the workspace. */\n"
                           "void @p_set_states(void *workspace)\n{\n    uint8_t *states = workspace;\n\n"
                           "    memset(states, 0, @M_STATES_SIZE);\n");
    for (uint32_t i = 0; i < p->u->func->n_states; i++)
        write_start(p, w, i);
    w_str(w, "}\n\n");
    package_template(p, w, embedded_text("src/codegen/c/text/reset.c.in"));
}

bool package_copies_state(const plan *pl, uint32_t value)
{
    for (uint32_t i = 0; i < pl->problem->ops.len; i++) {
        const plan_op *op = &pl->problem->ops.data[i];
        const char *kind = op->step && op->step->kernel ? op->step->kernel->kind : "";
        if (strcmp(kind, "copy") == 0 && op->n_args == op->n_inputs + 1 && op->args[op->n_inputs] == value)
            return true;
    }
    return false;
}

void states_report(json_out *j, const package *p)
{
    const prog_func *f = p->u->func;
    if (!package_has_states(p))
        return;
    json_out_uint(j, "state_bytes", p->pl->state_bytes);
    json_out_array(j, "states");
    for (uint32_t i = 0; i < f->n_states; i++) {
        const prog_value *v = state_at(p, i);
        json_out_object(j, NULL);
        json_out_text(j, "name", v->name);
        json_out_text(j, "dtype", dtype_full_name(v->type.dt));
        json_out_uint(j, "bytes", prog_bytes(v));
        json_out_uint(j, "offset", p->pl->places[f->n_inputs + i].offset);
        json_out_text(j, "update", package_copies_state(p->pl, f->n_inputs + i) ? "copy" : "in place");
        json_out_end(j);
    }
    json_out_end(j);
}
