/* SPDX-License-Identifier: Apache-2.0 */
/* --ram and --minimize: what counts is the workspace and the tables of an instance, which the summary calls RAM. */
#include "driver/stream.h"

#include "codegen/c/package.h"
#include "driver/given.h"
#include "driver/problem.h"
#include "plan/stream.h"

#include <string.h>

typedef struct attempt {
    compiler *c;
    const compile_options *o;
    const target *t;
    graph_choices *forms;
} attempt;

static bool plan_program(void *ctx, prog_module *m, plan *out, uint64_t *out_ram)
{
    const attempt *x = ctx;
    prog_func *f = prog_find(m, "main");
    if (!compiler_progress(x->c, "streaming", 0, 0) ||
        !plan_memory(x->c, compile_problem(x->c, x->o, x->t, f, x->forms), out))
        return false;
    const codegen_unit unit = {.prog = m, .func = f, .plan = out, .target = x->t, .opt_level = x->o->opt_level,
                               .port = x->o->port};
    *out_ram = out->workspace_bytes + package_instance_bytes(&unit);
    return true;
}

static bool refuse(compiler *c, const compile_options *o, const target *t, bool fits)
{
    if (compile_makes(o, BACKEND_MODULE))
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "%s is for packages, not for modules",
                          o->ram > 0 ? "--ram" : "--minimize ram");
    if (fits) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "%s needs a level above -O0",
                   o->ram > 0 ? "--ram" : "--minimize ram");
        diag_hint(&c->diags, "leave -O0 out");
        return false;
    }
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "%s is for microcontrollers, and not for the target %s",
               o->ram > 0 ? "--ram" : "--minimize ram", t->name);
    diag_hint(&c->diags, "name a microcontroller, for example --target cortex-m4; lathe targets lists them");
    return false;
}

bool stream_program(compiler *c, const compile_options *o, const target *t, compile_result *r)
{
    attempt x = {c, o, t, &r->records->forms};
    const bool asked = o->ram > 0 || o->least_ram;
    const stream_planner p = {.ctx = &x,
                              .plan = plan_program,
                              .ram = o->ram,
                              .least = o->least_ram,
                              .bounds_only = !asked,
                              .effort = o->plan_effort,
                              .inputs_inside = o->input_in_workspace};
    const bool fits = t->address_bits == 32 && t->vector_bytes == 0 && !compile_makes(o, BACKEND_MODULE);
    stream_bounds *b = arena_new(&c->mem, stream_bounds);
    prog_module *made;
    if (!fits || o->unscheduled || o->opt_level == 0)
        return !asked || refuse(c, o, t, fits);
    if (!plan_stream(c, r->prog, &p, &made, b))
        return false;
    if (made != r->prog) {
        prog_drop_unused(made);
        given_note_chains(r->records, r->prog, made);
    }
    r->prog = made;
    r->bounds = b;
    return prog_verify(c, made);
}

void stream_note_plan(compile_result *r)
{
    if (!r->bounds || r->bounds->asked)
        return;
    r->bounds->overlapped = r->bounds->reached = r->plan.workspace_bytes;
}
