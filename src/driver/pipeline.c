/* SPDX-License-Identifier: Apache-2.0 */
/* The story of a compile:
 *
 *   model ------import-------> graph --graph_run_passes--> graph' --prog_from_graph--> program --prog_run_passes--+
 *              (frontend)              (graph)                      (prog)                                        |
 *   +---------------------------------------------------------------------------------------------------- program'+
 *   |
 *   +--prog_schedule--> loops of each kernel --plan_memory--> plan --back end--> files in memory --artifact_write-->
 *      (te, tir)                               (plan)               (codegen)                      folder or file
 *
 * A module for any machine goes this way once for each width of vectors; its back end gets all the plans.
 *
 * prog_schedule, for each kernel and its own target: computation --rule--> schedule --te_lower--> loops
 *                                                    --tir_run_passes--> loops that the back end writes
 *
 * In TVM's words prog_from_graph is LowerTE, which meets a primitive function at each call, and te_lower_func, by which
 * prog_schedule makes a kernel's loops, is PrimFuncFor (driver/stages.h).
 *
 * Every arrow is a function that can be called alone; `lathe opt` does so on text. */
#include "driver/pipeline.h"

#include "driver/computation.h"
#include "driver/describe.h"
#include "driver/given.h"
#include "driver/problem.h"
#include "driver/read_model.h"
#include "driver/stream.h"
#include "driver/unit.h"
#include "driver/warn.h"
#include "driver/widths.h"
#include "graph/pass.h"

static bool run_graph_passes(compiler *c, graph_module *m, const compile_options *o, const target *t,
                             graph_choices *choices)
{
    pass_options options = {.target = t,
                            .opt_level = o->opt_level,
                            .no_winograd = o->no_winograd,
                            .no_split_data = o->no_split_data,
                            .offload = o->offload,
                            .no_integers = !o->integers && !t->integers,
                            .quantised_ends = o->quantised_ends,
                            .float_ends = o->float_ends,
                            .choices = choices,
                            .trees = (graph_trees)o->trees,
                            .requant = (graph_requant)o->requant,
                            .print_after_all = o->print_after_all,
                            .verify = o->verify,
                            .dump = o->dump};
    return graph_run_passes(c, m, NULL, &options);
}

/* A model to a graph, and what passes make of it. */
static bool make_graph(compiler *c, const char *path, const compile_options *o, const target *t, compile_result *r)
{
    if (!read_graph(c, path, o, r))
        return false;
    describe_model(c, o, r);
    if (!run_graph_passes(c, r->graph, o, t, &r->records->forms))
        return false;
    describe_passes(c, o, r);
    return !compile_makes(o, BACKEND_C) || codegen_c_holds(c, prog_least_kernels(c, r->graph));
}

/* Options that are for computations, beside a model. */
static bool check_for_model(compiler *c, const char *path, const compile_options *o)
{
    if (o->device) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--target %s is for computations, and '%s' is a model",
                   o->device->name, path);
        diag_hint(&c->diags, "the accelerator takes regions of a model, beside a CPU: --offload %s", o->device->name);
        return false;
    }
    if (o->schedule) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--schedule is for computations, and '%s' is a model", path);
        diag_hint(&c->diags, "--schedules FILE has schedules for the kernels of a model");
        return false;
    }
    return true;
}

/* The program, unless a graph is all that is asked for. */
static bool make_program(compiler *c, const char *path, const compile_options *o, const target *t, compile_result *r)
{
    bool is_computation;
    if (!pipeline_is_computation(c, path, o, &is_computation))
        return false;
    if (is_computation)
        return read_computation(c, path, o, t, &r->prog);
    if (!check_for_model(c, path, o) || !make_graph(c, path, o, t, r))
        return false;
    return o->stop == STOP_GRAPH || prog_from_graph(c, r->graph, t, compile_is_for_module(o), &r->prog);
}

/* What the program is for; its kernels get their loops. Schedules of different operators may come out equal. */
static bool make_loops(compiler *c, const compile_options *o, compile_result *r)
{
    const bool module = compile_makes(o, BACKEND_MODULE);
    r->prog->for_module = module;
    r->prog->unscheduled = o->unscheduled;
    r->prog->prefix = arena_printf(&c->mem, "tvmgen_%s", o->module_name);
    r->prog->records = r->records;
    return prog_run_passes(c, r->prog, o->opt_level > 0 ? "schedule,share,states-in-place" : "schedule", 0,
                           o->print_after_all, o->dump) &&
           (!module || prog_run_passes(c, r->prog, "device-memory", 0, o->print_after_all, o->dump));
}

/* Of packages: a module's kernels are compiled one by one. */
static bool shares_shapes(const compile_options *o, const target *t)
{
    return !compile_makes(o, BACKEND_MODULE) && o->opt_level > 0 && !o->unscheduled &&
           (o->shares_kernels ? o->shares_shapes : t->small);
}

/* From the model to a plan, for one target; an earlier stage when that is what is asked for. */
static bool compile_for(compiler *c, const char *path, const compile_options *o, const target *t, compile_result *r)
{
    if (!make_program(c, path, o, t, r))
        return false;
    if (o->stop == STOP_GRAPH)
        return true;
    if ((o->show_values && !prog_run_passes(c, r->prog, "show-values", 0, false, NULL)) ||
        !prog_run_passes(c, r->prog, NULL, o->opt_level, o->print_after_all, o->dump))
        return false;
    if (o->stop == STOP_PROG)
        return true;
    if (!make_loops(c, o, r))
        return false;
    if (o->stop == STOP_SCHEDULE)
        return true;
    if (!stream_program(c, o, t, r) ||
        (shares_shapes(o, t) && !prog_run_passes(c, r->prog, "share-shapes", 0, false, NULL)))
        return false;
    if (o->stop == STOP_NEVER && !unit_make(c, path, o, t, r))
        return false;
    stream_note_plan(r);
    return true;
}

bool pipeline_plan(compiler *c, const char *path, const compile_options *o, compile_result *out)
{
    *out = (compile_result){0};
    const target *t = widths_target(c, o), *targets;
    if (!unit_check_name(c, o->module_name))
        return false;
    const uint32_t n = widths_of(c, o, t, &targets);
    if (n == 0)
        return false;
    codegen_unit *units = arena_array(&c->mem, codegen_unit, n);
    te_records *records = te_records_new(c);
    for (uint32_t i = 0; i < o->n_schedules; i++)
        if (!computation_read_records(c, o->schedules[i], records))
            return false;
    for (uint32_t i = 0; i < n; i++) {
        compile_result *r = i == 0 ? out : arena_new(&c->mem, compile_result);
        r->records = records;
        if (!compile_for(c, path, o, &targets[i], r))
            return false;
        units[i] = r->unit;
    }
    out->units = units;
    out->n_units = n;
    given_warn(c, o, n, targets, out);
    warn_of_options(c, path, o, out);
    return true;
}

bool pipeline_compile(compiler *c, const char *path, const compile_options *o, compile_result *out)
{
    return pipeline_plan(c, path, o, out) && (!out->unit.func || unit_write(c, o, out));
}

bool pipeline_emit(compiler *c, prog_module *m, const compile_options *o, compile_result *out)
{
    codegen_unit *unit = arena_new(&c->mem, codegen_unit);
    *out = (compile_result){.prog = m, .records = te_records_new(c)};
    if (!prog_schedule(c, m) || !unit_make(c, "computation", o, widths_target(c, o), out))
        return false;
    *unit = out->unit;
    out->units = unit;
    out->n_units = 1;
    return unit_write(c, o, out);
}
