/* SPDX-License-Identifier: Apache-2.0 */
/* Back ends get units: a program with its plan, and what the options and the model say of it (codegen/backend.h). */
#include "driver/unit.h"

#include "codegen/c/placement.h"
#include "driver/offload_report.h"
#include "driver/problem.h"
#include "graph/pass/offload.h"
#include "plan/stream.h"

#include <ctype.h>
#include <string.h>

bool unit_check_name(compiler *c, const char *name)
{
    bool good = isalpha((unsigned char)*name) || *name == '_';
    for (const char *s = name; *s; s++)
        good &= (isalnum((unsigned char)*s) && (unsigned char)*s < 128) || *s == '_';
    if (good && strlen(name) <= 100)
        return true;
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "'%s' cannot be a module name", name);
    diag_hint(&c->diags, "use letters, digits and _, at most 100, not beginning with a digit");
    return false;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* --memory: a choice of its own for each compile, for the description is shared. */
static bool place_on_board(compiler *c, const compile_options *o, compile_result *r)
{
    if (!o->memories)
        return true;
    placement *p = arena_new(&c->mem, placement);
    *p = *o->memories;
    p->quantised = r->quantised;
    p->streams = r->bounds && !r->bounds->asked;
    if (!placement_choose(c, p, &r->plan))
        return false;
    r->unit.places = p;
    return true;
}

static bool plan_and_check(compiler *c, const compile_options *o, compile_result *r)
{
    plan_problem *p = compile_problem(c, o, r->unit.target, r->unit.func, &r->records->forms);
    if (!compiler_progress(c, "planning", 0, 0) || !plan_memory(c, p, &r->plan) || !plan_verify(c, &r->plan))
        return false;
    if (r->plan.workspace_bytes <= prog_most_bytes(r->unit.target))
        return place_on_board(c, o, r);
    return diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                      "the workspace of %llu bytes is too large for the target %s",
                      (unsigned long long)r->plan.workspace_bytes, r->unit.target->name);
}

bool unit_make(compiler *c, const char *path, const compile_options *o, const target *t, compile_result *out)
{
    out->unit = (codegen_unit){.module_name = o->module_name,
                               .model_file = base_name(path),
                               .model_sha256 = out->model_sha256,
                               .prog = out->prog,
                               .func = prog_find(out->prog, "main"),
                               .plan = &out->plan,
                               .bounds = out->bounds,
                               .target = t,
                               .port = o->port,
                               .as = o->as,
                               .board = o->example_board,
                               .host = o->host,
                               .with_interpreter = o->with_interpreter,
                               .short_names = o->short_names,
                               .constants_form = o->constants_form,
                               .remarks = out->remarks,
                               .n_remarks = out->n_remarks,
                               .ends = out->graph ? out->graph->ends.data : NULL,
                               .n_ends = out->graph ? out->graph->ends.len : 0,
                               .texts = out->graph ? out->graph->texts.data : NULL,
                               .n_texts = out->graph ? out->graph->texts.len : 0,
                               .labels = out->graph ? out->graph->labels.data : NULL,
                               .n_labels = out->graph ? out->graph->labels.len : 0,
                               .lists = out->graph ? out->graph->lists.data : NULL,
                               .n_lists = out->graph ? out->graph->lists.len : 0,
                               .facts = out->graph ? out->graph->facts.data : NULL,
                               .n_facts = out->graph ? out->graph->facts.len : 0,
                               .opt_level = o->opt_level,
                               .offload = o->offload ? o->offload->log : NULL};
    if (o->offload)
        offload_note_runners(c, o->offload->log, out->prog);
    if (!plan_and_check(c, o, out))
        return false;
    plan_note_shared(c, &out->plan);
    return prog_run_passes(c, out->prog, "select", 0, o->print_after_all, o->dump);
}

bool unit_write(compiler *c, const compile_options *o, compile_result *r)
{
    static const backend_fn backends[] = {
#define X(id, name, fn, help) fn,
        BACKENDS(X)
#undef X
    };
    return compiler_progress(c, "writing C", 0, 0) && backends[o->artifact](c, r->units, r->n_units, &r->artifact);
}
