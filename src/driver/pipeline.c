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

#include "abi/sha256.h"
#include "base/nearest.h"
#include "base/ptr_map.h"
#include "graph/op.h"
#include "codegen/c/placement.h"
#include "driver/computation.h"
#include "driver/given.h"
#include "driver/format.h"
#include "driver/html_model.h"
#include "driver/offload_report.h"
#include "driver/problem.h"
#include "driver/state.h"
#include "driver/stream.h"
#include "graph/pass/offload.h"
#include "prog/source.h"
#include "plan/stream.h"

#include <ctype.h>
#include <string.h>

void compile_options_init(compile_options *o)
{
    *o = (compile_options){
        .verb = "compile", .emit = "c", .module_name = "default", .host = "x86_64", .opt_level = 3};
    o->port = port_default();
}

/* --- reading
 * ---------------------------------------------------------------------------------------------------------- */

static void add_fixes(const dim_binding *from, uint32_t n, bool is_input, frontend_dim_fix *to)
{
    for (uint32_t i = 0; i < n; i++) {
        to[i] = (frontend_dim_fix){
            .name = from[i].name, .is_input = is_input, .is_bound = from[i].is_bound, .rank = from[i].rank};
        memcpy(to[i].dims, from[i].dims, sizeof to[i].dims);
    }
}

/* In hexadecimal digits. */
static const char *hash_model(compiler *c, span bytes)
{
    sha256 s;
    char *text = arena_alloc(&c->mem, SHA256_TEXT, 1);
    sha256_init(&s);
    sha256_add(&s, bytes.data, bytes.len);
    sha256_end_text(&s, text);
    return text;
}

typedef enum load_as { LOAD_MODEL, LOAD_INPUTS, LOAD_TO_LOOK } load_as;

/* out_hash: NULL: none is asked for. */
static bool load(compiler *c, const char *path, const compile_options *o, load_as as, const char **out_hash,
                 graph_module **out)
{
    span bytes;
    file_format format;
    const frontend *front;
    if (!compiler_progress(c, "reading", 0, 0) || !format_read(c, o->verb, path, &bytes, &format))
        return false;
    if (out_hash)
        *out_hash = hash_model(c, bytes);
    front = format_frontend(format);
    if (!front && o->n_dims + o->n_shapes + o->n_binds + (o->signature != NULL) > 0)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "'%s' is graph text: --shape, --dim, --bind and --signature are only for models", path);
    if (!front)
        return graph_parse(c, path, (const char *)bytes.data, bytes.len, out) && graph_infer(c, *out) &&
               graph_verify(c, *out);
    frontend_dim_fix *fixes = arena_array(&c->mem, frontend_dim_fix, o->n_dims + o->n_shapes + 1u);
    add_fixes(o->dims, o->n_dims, false, fixes);
    add_fixes(o->shapes, o->n_shapes, true, fixes + o->n_dims);
    if (o->signature && format != FORMAT_TFLITE) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--signature: %s has no signatures", front->name);
        diag_hint(&c->diags, "leave it out: only models of TensorFlow Lite have them");
        return false;
    }
    frontend_options options = {.fixes = fixes,
                            .signature = o->signature,
                            .n_fixes = o->n_dims + o->n_shapes,
                            .string_bytes = o->string_bytes,
                            .keeps_floats = o->opt_level == 0,
                            .inputs_only = as == LOAD_INPUTS,
                            .keeps_unread = as == LOAD_TO_LOOK};
    frontend_bind *binds = arena_array(&c->mem, frontend_bind, o->n_binds + 1u);
    for (uint32_t i = 0; i < o->n_binds; i++)
        binds[i] = (frontend_bind){o->binds[i].name, o->binds[i].numbers};
    options.binds = binds;
    options.n_binds = o->n_binds;
    options.like_litert = o->requant == REQUANT_LITERT;
    options.fixed_shapes = strcmp(o->emit, "graph") != 0 && !compile_is_for_module(o);
    return front->import(c, bytes, path, &options, out);
}

static bool no_such_extent(compiler *c, const graph_module *m, const char *name)
{
    writer w;
    ptr_map seen;
    uint32_t again;
    writer_init(&w, &c->mem);
    ptr_map_init(&seen, &c->mem);
    for (uint32_t f = 0; f < m->funcs.len; f++)
        for (uint32_t n = 0; n < m->funcs.data[f]->nodes.len; n++) {
            const char *symbols[TYPE_MAX_RANK];
            uint32_t count = graph_own_symbols(m->funcs.data[f]->nodes.data[n], TYPE_MAX_RANK, symbols);
            for (uint32_t i = 0; i < count; i++)
                if (!ptr_map_get(&seen, symbols[i], &again) && w.len < 300) {
                    ptr_map_set(&seen, symbols[i], 1);
                    w_fmt(&w, "%s%s", w.len ? ", " : "", symbols[i]);
                }
        }
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--bound: no result has the extent '%s'", name);
    if (w.len)
        diag_hint(&c->diags, "%sextents that depend on the data are: %s", nearest_in(name, w.data, &c->mem), w.data);
    else
        diag_hint(&c->diags, "no extent of this model depends on the data: leave --bound out; --dim is for dimensions "
                             "of inputs");
    return false;
}

static bool is_mentioned(const graph_module *m, const char *symbol)
{
    for (uint32_t f = 0; f < m->funcs.len; f++)
        for (uint32_t n = 0; n < m->funcs.data[f]->nodes.len; n++) {
            const graph_node *node = m->funcs.data[f]->nodes.data[n];
            for (uint32_t v = 0; v < node->n_outputs; v++)
                if (type_mentions(&node->outputs[v]->type, symbol))
                    return true;
        }
    return false;
}

/* Where the model declares that name for an extent of a value that is a symbol by itself, that symbol gets the bound;
 * false: nowhere. */
static bool bound_declared(compiler *c, const graph_module *m, const dim_binding *b)
{
    bool found = false;
    for (uint32_t f = 0; f < m->funcs.len; f++)
        for (uint32_t n = 0; n < m->funcs.data[f]->nodes.len; n++) {
            const graph_node *node = m->funcs.data[f]->nodes.data[n];
            for (uint32_t v = 0; v < node->n_outputs; v++) {
                const type *t = &node->outputs[v]->type, *declared = &node->outputs[v]->declared;
                bool fits = declared->kind == TYPE_TENSOR && t->kind == TYPE_TENSOR &&
                            declared->shape.rank == t->shape.rank;
                for (int32_t k = 0; fits && k < t->shape.rank; k++) {
                    const char *alias = dim_symbol_name(declared->shape.dims[k]);
                    const char *own = dim_symbol_name(t->shape.dims[k]);
                    if (!alias || !own || strcmp(alias, b->name) != 0)
                        continue;
                    (void)dim_symbol(c, own, b->dims[0]);
                    found = true;
                }
            }
        }
    return found;
}

/* An extent that a caller states is bounded where it is opened; a second bound would narrow it without a word. */
static bool check_no_input(compiler *c, const graph_module *m, const char *name)
{
    const graph_func *f = graph_module_find(m, "main");
    for (uint32_t i = 0; f && i < f->params.len; i++) {
        const char *input = f->params.data[i]->name;
        if (!type_mentions(&f->params.data[i]->type, name))
            continue;
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                   "--bound: '%s' is an extent of input '%s', so each run states it", name, input);
        diag_hint(&c->diags, "limit it with --dim '%s<=N', or in graph text with: where %s <= N", name, name);
        return false;
    }
    return true;
}

/* Bounds of extents that no input states. */
static bool set_bounds(compiler *c, const graph_module *m, const compile_options *o)
{
    for (uint32_t i = 0; i < o->n_bounds; i++) {
        const dim_binding *b = &o->bounds[i];
        if (!check_no_input(c, m, b->name))
            return false;
        if (is_mentioned(m, b->name))
            (void)dim_symbol(c, b->name, b->dims[0]);
        else if (!bound_declared(c, m, b))
            return no_such_extent(c, m, b->name);
    }
    return true;
}

bool pipeline_load(compiler *c, const char *path, const compile_options *o, graph_module **out)
{
    return load(c, path, o, LOAD_MODEL, NULL, out) && set_bounds(c, *out, o) && state_mark(c, *out, o, NULL);
}

bool pipeline_load_inputs(compiler *c, const char *path, const compile_options *o, graph_module **out)
{
    return load(c, path, o, LOAD_INPUTS, NULL, out);
}

bool pipeline_load_to_look(compiler *c, const char *path, const compile_options *o, graph_module **out)
{
    return load(c, path, o, LOAD_TO_LOOK, NULL, out);
}

/* --- the stages
 * ------------------------------------------------------------------------------------------------------- */

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

static bool generate(compiler *c, const compile_options *o, compile_result *r)
{
    static const struct {
        const char *name;
        backend_fn run;
    } backends[] = {
#define X(id, name, fn, help) {name, fn},
        BACKENDS(X)
#undef X
    };
    if (!compiler_progress(c, "writing C", 0, 0))
        return false;
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (strcmp(backends[i].name, o->emit) == 0)
            return backends[i].run(c, r->units, r->n_units, &r->artifact);
    return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--emit: '%s' is unknown", o->emit);
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

static bool check_module_name(compiler *c, const char *name)
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

/* The target with the schedule's width that was asked for: schedules cut their work for it. */
static const target *target_of(compiler *c, const compile_options *o)
{
    target *t = arena_new(&c->mem, target);
    *t = o->target ? *o->target : *target_default();
    t->workers = o->workers ? o->workers : t->workers;
    return t;
}

static bool is_dequantized(const graph_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] && n->inputs[i]->def && strcmp(n->inputs[i]->def->op->name, "qnn.dequantize") == 0)
            return true;
    return false;
}

static bool rounds_half_up(const graph_node *n)
{
    return graph_attr(n, "rounding") && strcmp(graph_attr_string(n, "rounding"), "half_up") == 0;
}

/* Arithmetic on quantised numbers, as far as passes made it or the model has it. */
static bool computes_in_integers(const graph_module *m)
{
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (uint32_t k = 0; k < m->funcs.data[i]->nodes.len; k++) {
            const char *op = m->funcs.data[i]->nodes.data[k]->op->name;
            if (strncmp(op, "qnn.", 4) == 0 && strcmp(op, "qnn.quantize") != 0 && strcmp(op, "qnn.dequantize") != 0)
                return true;
        }
    return false;
}

/* What passes have to tell, for the report; what stayed in float is counted again where a pass could tell. */
static void take_remarks(compiler *c, const compile_options *o, compile_result *r)
{
    const graph_module *m = r->graph;
    codegen_remark *list = arena_array(&c->mem, codegen_remark, m->notes.len + 1u);
    r->n_quantised = o->opt_level > 0 ? 0 : r->n_quantised;
    for (uint32_t i = 0; i < m->notes.len; i++) {
        const graph_note *n = &m->notes.data[i];
        list[i] = (codegen_remark){n->pass, n->op, n->value, n->text, n->loc.node ? n->loc.node : ""};
        r->n_quantised += o->opt_level > 0 && strcmp(n->pass, "use-integers") == 0;
    }
    r->integers = computes_in_integers(m);
    r->remarks = list;
    r->n_remarks = m->notes.len;
}

/* Before passes change the graph. */
static void count_nodes(compiler *c, compile_result *r)
{
    const graph_func *f = graph_module_find(r->graph, "main");
    if (f)
        pipeline_find_spans(c, f, r);
    for (uint32_t i = 0; f && i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        r->n_nodes += n->n_outputs == 0 || !graph_constant(n->outputs[0]);
        r->n_quantised += is_dequantized(n);
        r->quantised |= strncmp(n->op->name, "qnn.", 4) == 0;
        r->dynamic |= strcmp(n->op->name, "qnn.quantize") == 0 && !graph_constant(n->inputs[1]);
        r->half_up |= rounds_half_up(n);
    }
}

bool pipeline_is_computation(compiler *c, const char *path, const compile_options *o, bool *out)
{
    span bytes;
    file_format format;
    *out = false;
    if (!format_read(c, o->verb, path, &bytes, &format))
        return false;
    *out = format == FORMAT_COMPUTATION;
    return true;
}

/* A computation is a program of one kernel. */
static bool load_computation(compiler *c, const char *path, const compile_options *o, const target *t,
                             prog_module **out)
{
    span bytes;
    computation from;
    if (o->n_dims + o->n_shapes + o->n_binds + o->n_bounds + o->n_states > 0)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "'%s' is a computation: --shape, --dim, --bind, --bound and --state are only for models",
                          path);
    if (o->n_schedules > 0)
        return computation_refuses_schedules(c, path);
    const bool as_it_stands = o->opt_level == 0 || strcmp(o->emit, "prog") == 0; /* a program holds no schedules */
    if (o->schedule && o->opt_level == 0)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "--schedule: -O 0 compiles the computation as it stands; leave one of them out");
    if (o->schedule && as_it_stands)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "--schedule: --interpret and --emit prog take the computation as it stands; leave one out");
    if (strcmp(o->emit, "graph") == 0 || strcmp(o->emit, "schedule") == 0)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "'%s' is a computation and has no %s of a model", path,
                          o->emit);
    if (!compiler_read_file(c, path, &bytes) || !computation_read(c, path, bytes, o->schedule, &from))
        return false;
    if (as_it_stands && o->opt_level > 0 && from.schedule.data)
        diag_note(&c->diags, DIAG_USAGE, src_loc_none(),
                  "--interpret and --emit prog take the plain loops of '%s', without its schedule", path);
    if (as_it_stands)
        from.schedule = (span){NULL, 0};
    return computation_program(c, &from, t, out);
}

static bool load_program(compiler *c, const char *path, const compile_options *o, const target *t, compile_result *out)
{
    bool is_computation;
    if (!pipeline_is_computation(c, path, o, &is_computation))
        return false;
    if (is_computation)
        return load_computation(c, path, o, t, &out->prog);
    if (o->vta) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                   "--target vta is for computations, and '%s' is a model", path);
        diag_hint(&c->diags, "the accelerator takes regions of a model, beside a CPU: --offload vta");
        return false;
    }
    if (o->schedule) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--schedule is for computations, and '%s' is a model", path);
        diag_hint(&c->diags, "--schedules FILE has schedules for the kernels of a model");
        return false;
    }
    if (!load(c, path, o, LOAD_MODEL, o->proof ? &out->model_sha256 : NULL, &out->graph) ||
        !set_bounds(c, out->graph, o) || !state_mark(c, out->graph, o, &out->states))
        return false;
    out->n_states = o->n_states;
    count_nodes(c, out);
    if (o->page)
        out->model = html_model_of(c, out->graph);
    if (!run_graph_passes(c, out->graph, o, t, &out->records->forms))
        return false;
    take_remarks(c, o, out);
    if (strcmp(o->emit, "c") == 0 && !codegen_c_holds(c, prog_least_kernels(c, out->graph)))
        return false;
    return strcmp(o->emit, "graph") == 0 || prog_from_graph(c, out->graph, t, compile_is_for_module(o), &out->prog);
}

static const codegen_end *take_ends(compiler *c, const graph_module *m)
{
    const uint32_t n = m ? m->ends.len : 0;
    codegen_end *list = arena_array(&c->mem, codegen_end, n + 1u);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (codegen_end){m->ends.data[i].name, m->ends.data[i].is_input, m->ends.data[i].scale,
                                m->ends.data[i].zero_point};
    return list;
}

static const codegen_text *take_texts(compiler *c, const graph_module *m)
{
    const uint32_t n = m ? m->texts.len : 0;
    codegen_text *list = arena_array(&c->mem, codegen_text, n + 1u);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (codegen_text){m->texts.data[i].name, m->texts.data[i].is_input};
    return list;
}

static const codegen_fact *take_facts(compiler *c, const graph_module *m)
{
    const uint32_t n = m ? m->facts.len : 0;
    codegen_fact *list = arena_array(&c->mem, codegen_fact, n + 1u);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (codegen_fact){m->facts.data[i].name, m->facts.data[i].text};
    return list;
}

/* What the back end gets, with its plan. */
static bool make_unit(compiler *c, const char *path, const compile_options *o, const target *t, compile_result *out)
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
                               .ends = take_ends(c, out->graph),
                               .n_ends = out->graph ? out->graph->ends.len : 0,
                               .texts = take_texts(c, out->graph),
                               .n_texts = out->graph ? out->graph->texts.len : 0,
                               .labels = out->graph ? out->graph->labels.data : NULL,
                               .n_labels = out->graph ? out->graph->labels.len : 0,
                               .lists = out->graph ? out->graph->lists.data : NULL,
                               .n_lists = out->graph ? out->graph->lists.len : 0,
                               .facts = take_facts(c, out->graph),
                               .n_facts = out->graph ? out->graph->facts.len : 0,
                               .opt_level = o->opt_level,
                               .offload = o->offload ? o->offload->log : NULL};
    if (o->offload)
        offload_note_runners(c, o->offload->log, out->prog);
    return plan_and_check(c, o, out);
}

/* Of packages: a module's kernels are compiled one by one. */
static bool shares_shapes(const compile_options *o, const target *t)
{
    return strcmp(o->emit, "module") != 0 && o->opt_level > 0 && !o->unscheduled &&
           (o->shares_kernels ? o->shares_shapes : t->small);
}

static bool has_states(const prog_module *m)
{
    const prog_func *f = prog_find(m, "main");
    return f && f->n_states > 0;
}

/* From the model to a plan, for one target; an earlier stage when that is what is asked for. */
static bool compile_for(compiler *c, const char *path, const compile_options *o, const target *t, compile_result *out)
{
    if (!load_program(c, path, o, t, out))
        return false;
    if (strcmp(o->emit, "graph") == 0)
        return true;
    if ((o->show_values && !prog_run_passes(c, out->prog, "show-values", 0, false, NULL)) ||
        !prog_run_passes(c, out->prog, NULL, o->opt_level, o->print_after_all, o->dump))
        return false;
    if (strcmp(o->emit, "prog") == 0)
        return true;
    out->prog->for_module = strcmp(o->emit, "module") == 0;
    out->prog->unscheduled = o->unscheduled;
    out->prog->prefix = arena_printf(&c->mem, "tvmgen_%s", o->module_name);
    out->prog->records = out->records;
    if (!prog_schedule(c, out->prog) || /* schedules of different operators may come out equal */
        (o->opt_level > 0 && !prog_run_passes(c, out->prog, "share", o->opt_level, false, NULL)) ||
        (o->opt_level > 0 && has_states(out->prog) &&
         !prog_run_passes(c, out->prog, "states-in-place", 0, o->print_after_all, o->dump)) ||
        (out->prog->for_module && !prog_run_passes(c, out->prog, "device-memory", 0, o->print_after_all, o->dump)))
        return false;
    if (strcmp(o->emit, "schedule") == 0)
        return true;
    if (!stream_program(c, o, t, out) ||
        (shares_shapes(o, t) && !prog_run_passes(c, out->prog, "share-shapes", o->opt_level, false, NULL)))
        return false;
    if (strcmp(o->emit, "tir") != 0 && !make_unit(c, path, o, t, out))
        return false;
    stream_note_plan(out);
    return true;
}

static bool is_wanted(const compile_options *o, const target *t)
{
    bool wanted = o->n_widths == 0;
    for (uint32_t i = 0; i < o->n_widths; i++)
        wanted |= o->widths[i] == t->vector_bytes;
    return wanted;
}

/* Those that stand for t in a module, with t's width of the schedule; none after a diagnostic. */
static uint32_t find_variants(compiler *c, const compile_options *o, const target *t, target *list)
{
    uint32_t n = 0;
    for (uint32_t i = 0; t->variants[i]; i++) {
        list[n] = *target_lookup(c, t->variants[i]);
        list[n].workers = t->workers;
        list[n].integers = t->integers; /* one answer on all machines */
        n += is_wanted(o, &list[n]);
    }
    if (n < (o->n_widths ? o->n_widths : 1)) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--widths: the target %s does not have all of them", t->name);
        diag_hint(&c->diags, "name each of 64, 32 and 16 at most once");
        return 0;
    }
    return n;
}

/* What has to be compiled: one target, or those that stand for it in a module. */
static uint32_t targets_of(compiler *c, const compile_options *o, const target *t, const target **out)
{
    target *list = arena_array(&c->mem, target, COMPILE_MAX_WIDTHS);
    bool module = strcmp(o->emit, "module") == 0;
    list[0] = *t;
    *out = list;
    if (t->variants && module)
        return find_variants(c, o, t, list);
    if (t->variants && strcmp(o->emit, "c") != 0) /* the text of a stage: for the first of them */
        list[0] = *target_lookup(c, t->variants[0]);
    if ((!t->variants && o->n_widths == 0) || list[0].variants != t->variants)
        return 1;
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
               t->variants ? "the target %s is for modules" : "--widths: the target %s has one width", t->name);
    diag_hint(&c->diags, t->variants ? "add --emit module" : "leave --widths out, or take --target my_device");
    return 0;
}

static bool has_region(const graph_module *m, const char *who)
{
    bool found = false;
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        const char *taken_by = graph_func_text(m->funcs.data[i], "compiler");
        found |= taken_by && strcmp(taken_by, who) == 0;
    }
    return found;
}

/* Libraries with threads of an operating system, and build systems of microcontrollers, beside a target that is for the
 * other kind of machine. */
static void warn_of_machine(compiler *c, const compile_options *o, const compile_result *r)
{
    const target *t = target_of(c, o);
    for (uint32_t i = 0; r->prog && t->address_bits == 32 && i < r->prog->sources.len; i++) {
        const prog_source *s = &r->prog->sources.data[i];
        if (!s->text || !s->ldflags || !strstr(s->ldflags, "-lpthread"))
            continue;
        diag_warning(&c->diags, DIAG_USAGE, src_loc_none(),
                     "--offload %s: its library needs threads of an operating system, and %s is a microcontroller",
                     s->target->name, t->name);
        diag_hint(&c->diags, "leave it out, or take --target native; cmsis_nn is for Cortex-M");
    }
    if (!o->as || o->as->takes_files || t->address_bits == 32 || t->vector_bytes == 0 || strstr(o->as->ports, "posix"))
        return;
    diag_warning(&c->diags, DIAG_USAGE, src_loc_none(), "--as %s is for microcontrollers, and the code is for %s",
                 o->as->name, t->name);
    diag_hint(&c->diags, "add --target cortex-m4, for example, or --target generic; 'lathe targets' lists all");
}

/* Options that the model has nothing for. */
static void warn_of_options(compiler *c, const char *path, const compile_options *o, const compile_result *r)
{
    if (o->integers && r->graph && !r->quantised) {
        diag_warning(&c->diags, DIAG_USAGE, src_loc_none(), "nothing in '%s' is quantized, so %s has no effect", path,
                     o->quantised_ends             ? "--quantized-io"
                     : o->requant != REQUANT_EXACT ? "--requant"
                                                      : "--integers");
        diag_hint(&c->diags, "lathe quantize makes a quantized model");
    }
    if (o->offload && r->prog)
        offload_warn(c, path, o->offload);
    warn_of_machine(c, o, r);
    if (c->vta && r->graph && !has_region(r->graph, "vta"))
        diag_warning(&c->diags, DIAG_USAGE, src_loc_none(),
                     "no part of '%s' runs on the accelerator, so --vta-config has no effect", path);
}

bool pipeline_plan(compiler *c, const char *path, const compile_options *o, compile_result *out)
{
    *out = (compile_result){0};
    const target *t = target_of(c, o), *targets;
    if (!check_module_name(c, o->module_name))
        return false;
    const uint32_t n = targets_of(c, o, t, &targets);
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
    return pipeline_plan(c, path, o, out) && (!out->unit.func || generate(c, o, out));
}

bool pipeline_emit(compiler *c, prog_module *m, const compile_options *o, compile_result *out)
{
    codegen_unit *unit = arena_new(&c->mem, codegen_unit);
    *out = (compile_result){.prog = m, .records = te_records_new(c)};
    if (!prog_schedule(c, m) || !make_unit(c, "computation", o, target_of(c, o), out))
        return false;
    *unit = out->unit;
    out->units = unit;
    out->n_units = 1;
    return generate(c, o, out);
}
