/* SPDX-License-Identifier: Apache-2.0 */
/* The story of a compile:
 *
 *   model.onnx --onnx_import--> graph --passes--> graph' --te_lower_func--> loop IR --plan_memory--> plan
 *              (frontend)              (graph)             (te, tir)                    (plan)
 *                                                                                         |
 *                 folder <--artifact_write-- files in memory <--back end (codegen)--------+
 *
 * Every arrow is a function that can be called alone; `lathe opt` does so on text. */
#include "driver/pipeline.h"

#include "driver/embedded.h"
#include "driver/lower.h"
#include "frontend/onnx/onnx.h"
#include "graph/pass.h"

#include <ctype.h>
#include <string.h>

void compile_options_init(compile_options *o)
{
    *o = (compile_options){.emit = "c", .module_name = "default", .port = "posix", .opt_level = 3};
}

/* --- reading
 * ---------------------------------------------------------------------------------------------------------- */

static bool is_graph_text(span s)
{
    size_t i = 0;
    while (i < s.len && isspace(s.data[i]))
        i++;
    return (s.len - i >= 5 && memcmp(s.data + i, "func ", 5) == 0) ||
           (s.len - i >= 2 && memcmp(s.data + i, "//", 2) == 0);
}

static void add_fixes(compiler *c, const dim_binding *from, uint32_t n, bool is_input, onnx_dim_fix *to)
{
    (void)c;
    for (uint32_t i = 0; i < n; i++) {
        to[i] = (onnx_dim_fix){.name = from[i].name, .is_input = is_input, .rank = from[i].rank};
        memcpy(to[i].dims, from[i].dims, sizeof to[i].dims);
    }
}

bool pipeline_load(compiler *c, const char *path, const compile_options *o, graph_module **out)
{
    span bytes;
    if (!file_map(&c->diags, &c->mem, path, &bytes)) /* stays mapped: constants point into it */
        return false;
    if (is_graph_text(bytes) && o->n_dims + o->n_shapes > 0)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "'%s' is graph text, which states its shapes itself: --shape and --dim are for ONNX", path);
    if (is_graph_text(bytes))
        return graph_parse(c, path, (const char *)bytes.data, bytes.len, out) && graph_infer(c, *out) &&
               graph_verify(c, *out);
    onnx_dim_fix *fixes = arena_array(&c->mem, onnx_dim_fix, o->n_dims + o->n_shapes + 1u);
    add_fixes(c, o->dims, o->n_dims, false, fixes);
    add_fixes(c, o->shapes, o->n_shapes, true, fixes + o->n_dims);
    onnx_options options = {.fixes = fixes, .n_fixes = o->n_dims + o->n_shapes};
    return onnx_import(c, bytes, path, &options, out);
}

/* --- the stages
 * ------------------------------------------------------------------------------------------------------- */

static bool run_graph_passes(compiler *c, graph_module *m, const compile_options *o)
{
    pass_options options = {.print_after_all = o->print_after_all, .verify = o->verify, .dump = o->dump};
    c->opt_level = o->opt_level;
    c->no_winograd = o->no_winograd;
    return graph_run_passes(c, m, NULL, &options);
}

/* The runtime's sources travel inside the compiler. */
static bool add_runtime(compiler *c, const compile_options *o, artifact *a)
{
    const char *port = arena_printf(&c->mem, "tvmrt_port_%s.c", o->port);
    uint32_t found = 0;
    for (const struct embedded_file *f = lathe_embedded_files; f->name; f++) {
        bool wanted = strcmp(f->name, port) == 0 || strcmp(f->name, "tvmrt.h") == 0 || strcmp(f->name, "tvmrt.c") == 0;
        if (!wanted)
            continue;
        found++;
        vec_push(&c->mem, &a->files,
                 ((artifact_file){arena_printf(&c->mem, "src/%s", f->name), f->data, f->size, false}));
    }
    if (found == 3)
        return true;
    return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "there is no runtime port '%s'", o->port);
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
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (strcmp(backends[i].name, o->emit) == 0)
            return backends[i].run(c, &r->unit, &r->artifact) && add_runtime(c, o, &r->artifact);
    return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "nothing is called '%s' that could be emitted", o->emit);
}

static bool plan_and_check(compiler *c, const compile_options *o, compile_result *r, plan_problem *p)
{
    p->workers = r->unit.workers;
    p->split_parts = o->opt_level > 0;
    if (!plan_memory(c, p, &r->plan) || !plan_verify(c, &r->plan))
        return false;
    if (r->plan.workspace_bytes <= lower_most_bytes(c->target))
        return true;
    return diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                      "the workspace of %llu bytes is too large for the target %s",
                      (unsigned long long)r->plan.workspace_bytes, c->target->name);
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

bool pipeline_compile(compiler *c, const char *path, const compile_options *o, compile_result *out)
{
    plan_problem *p = NULL;
    *out = (compile_result){0};
    c->target = target_of(c, o);
    if (!check_module_name(c, o->module_name) || !pipeline_load(c, path, o, &out->graph) ||
        !run_graph_passes(c, out->graph, o))
        return false;
    if (strcmp(o->emit, "graph") == 0)
        return true;
    out->unit = (codegen_unit){.module_name = o->module_name,
                               .model_file = base_name(path),
                               .plan = &out->plan,
                               .target = c->target,
                               .port = o->port,
                               .target_cflags = c->target->cflags,
                               .constant_file_threshold = 32768,
                               .opt_level = o->opt_level,
                               .workers = c->target->workers};
    if (!lower_module(c, out->graph, o, &out->unit, &p, &out->tir))
        return false;
    if (strcmp(o->emit, "tir") == 0)
        return true;
    return plan_and_check(c, o, out, p) && generate(c, o, out);
}
