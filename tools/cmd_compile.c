/* SPDX-License-Identifier: Apache-2.0 */
/* lathe compile: a model to a package, or to the text of a stage. */
#include "base/file.h"
#include "base/json_out.h"
#include "cli.h"
#include "driver/vta/vta_computation.h"
#include "driver/functions.h"
#include "driver/html.h"
#include "driver/summary.h"
#include "target/vta/code/vta_code.h"
#include "tir/text.h"

#include <stdio.h>
#include <string.h>

static bool put_report(ask *x, const artifact *a)
{
    const char *file = ask_get(x, OPT_REPORT, NULL);
    for (uint32_t i = 0; file && i < a->files.len; i++)
        if (strcmp(a->files.data[i].path, "report.json") == 0)
            return compiler_write_file(x->c, file, a->files.data[i].data, a->files.data[i].len);
    return true;
}

/* --html: the page of inspect. */
static bool put_page(ask *x, const compile_options *o, const compile_result *r)
{
    const char *file = ask_get(x, OPT_HTML, NULL);
    const html_page page = {.file = r->unit.model_file, .model = r->model, .result = r, .ram = o->ram};
    return !file || html_write_file(x->c, file, &page);
}

static bool put_module(ask *x, const compile_result *r, const char *place)
{
    const artifact_file *f = &r->artifact.files.data[0];
    if (!compiler_write_file(x->c, place, f->data, f->len))
        return false;
    if (ask_has(x, OPT_JSON))
        summary_print_json(x->c, &x->out, r, place);
    else if (!ask_has(x, OPT_QUIET))
        summary_print_module(x->c, &x->out, r, place);
    return true;
}

static bool put_result(ask *x, const compile_options *o, const compile_result *r)
{
    writer w;
    writer_init(&w, &x->c->mem);
    if (o->stop == STOP_GRAPH) {
        graph_print(&w, r->graph);
        return cli_put_text(x, &w);
    }
    if (o->stop == STOP_PROG) {
        prog_print(&w, r->prog);
        return cli_put_text(x, &w);
    }
    if (o->stop == STOP_LOOPS) {
        for (uint32_t i = 0; i < r->prog->kernels.len; i++) {
            w_str(&w, i ? "\n" : "");
            const prog_kernel *k = r->prog->kernels.data[i];
            tir_print_func(&w, k->device ? k->device : k->loops);
        }
        for (uint32_t i = 0; i < r->prog->shapes.len; i++) {
            w_str(&w, "\n");
            tir_print_func(&w, r->prog->shapes.data[i]->loops);
        }
        return cli_put_text(x, &w);
    }
    if (o->stop == STOP_SCHEDULE)
        return prog_print_schedules(x->c, &w, r->prog, NULL) && cli_put_text(x, &w);
    const char *place = ask_get(x, OPT_OUT, NULL), *report = ask_get(x, OPT_REPORT, NULL);
    const char *page = ask_get(x, OPT_HTML, NULL);
    if (r->artifact.is_file)
        return put_module(x, r, place);
    if ((report && !compiler_may_write(x->c, report)) || (page && !compiler_may_write(x->c, page)) ||
        !artifact_write(x->c, &r->artifact, place, true) || !put_report(x, &r->artifact) || !put_page(x, o, r))
        return false;
    if (ask_has(x, OPT_JSON))
        summary_print_json(x->c, &x->out, r, place);
    else if (!ask_has(x, OPT_QUIET))
        summary_print(x->c, &x->out, r, place);
    return true;
}

/* --- computations for the accelerator --- */

/* NAME of --module-name, of the remark before the computation, or of the file; as a name of C. */
static const char *accelerated_name(ask *x, const computation *t, const char *file)
{
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    const char *stem = arena_strndup(&x->c->mem, base, strcspn(base, "."));
    const char *name = ask_get(x, OPT_MODULE_NAME, t->name ? t->name : *stem && *stem != '-' ? stem : "computation");
    return codegen_c_identifier(&x->c->mem, name);
}

/* A header with the declaration, as a folder holds it. */
static const char *accelerated_header(ask *x, const tir_func *f, const char *name, bool capture)
{
    writer w;
    writer_init(&w, &x->c->mem);
    w_fmt(&w, "/* %s.h: see %s.c. */\n#ifndef VTA_KERNEL_%s\n#define VTA_KERNEL_%s\n", name, name, name, name);
    w_str(&w, "#include <stdint.h>\n");
    if (capture)
        w_str(&w, "#include \"vta_replay.h\"\n");
    w_str(&w, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    if (capture)
        w_fmt(&w, "extern const vta_capture %s_capture;\n", name);
    vta_code_print_prototype(&w, f, name, capture);
    w_str(&w, ";\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
    return w.data;
}

static void put_folder(ask *x, const char *place)
{
    json_out j = json_out_begin(&x->out, JSON_OUT_LINE);
    json_out_object(&j, NULL);
    json_out_text(&j, "folder", place);
    json_out_end(&j);
}

/* One file of C, or a folder with it and its header. */
static bool compile_accelerated(ask *x, const char *file, const compile_options *o)
{
    compiler *c = x->c;
    computation t;
    tir_func *f;
    span bytes;
    writer w;
    const char *place = ask_get(x, OPT_OUT, "-");
    const bool capture = ask_has(x, OPT_CAPTURE);
    const size_t n = strlen(place);
    writer_init(&w, &c->mem);
    if (!compile_makes(o, BACKEND_C) && o->stop != STOP_LOOPS)
        return ask_usage_error(x, "give --emit c or tir", "--target vta cannot make --emit %s",
                               compile_emit_name(o));
    if (capture && o->stop == STOP_LOOPS)
        return ask_usage_error(x, "use only one of them", "--capture is a form of C, and --emit tir makes loop text");
    if (o->n_schedules > 0)
        return computation_refuses_schedules(c, file);
    if (!compiler_read_file(c, file, &bytes) || !computation_read(c, file, bytes, o->schedule, &t))
        return false;
    const char *name = accelerated_name(x, &t, file);
    if (!vta_computation_lower(c, &t, name, &f))
        return false;
    if (o->stop == STOP_LOOPS) {
        tir_print_func(&w, f);
        return cli_put_text(x, &w);
    }
    if (!(capture ? vta_code_print_capture(c, &w, f, name) : vta_code_print_jit(c, &w, f, name, true)))
        return false;
    if (strcmp(place, "-") == 0 || (n > 2 && strcmp(place + n - 2, ".c") == 0))
        return ask_is_file(x, OPT_OUT) && cli_put_text(x, &w);
    const char *header = accelerated_header(x, f, name, capture);
    artifact a = {0};
    vec_push(&c->mem, &a.files, ((artifact_file){arena_printf(&c->mem, "%s.c", name), w.data, w.len, false}));
    vec_push(&c->mem, &a.files, ((artifact_file){arena_printf(&c->mem, "%s.h", name), header, strlen(header), false}));
    if (!artifact_check_place(c, place, file) || !artifact_write(c, &a, place, true))
        return false;
    if (ask_has(x, OPT_JSON))
        put_folder(x, place);
    return true;
}

/* Options of packages have no meaning here. */
static bool check_accelerated(ask *x)
{
    static const struct {
        ask_option option;
        const char *name;
    } none[] = {{OPT_PORT, "port"}, {OPT_CONSTANTS, "constants"}, {OPT_REPORT, "report"},
                {OPT_HTML, "html"}, {OPT_WITH_INTERPRETER, "with-interpreter"}, {OPT_WORKERS, "workers"}};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (ask_has(x, none[i].option))
            return ask_usage_error(x, "leave it out", "--%s has no effect on C for the accelerator", none[i].name);
    return true;
}

/* Options and places that do not go with what is made. */
static bool check_places(ask *x, const compile_options *o, const char *model)
{
    const bool package = compile_makes(o, BACKEND_C), module = compile_makes(o, BACKEND_MODULE);
    if (package && !ask_has(x, OPT_OUT))
        return ask_usage_error(x, "for example: lathe compile model.onnx -o out", "no folder for the package is given");
    if (module && strcmp(ask_get(x, OPT_OUT, "-"), "-") == 0)
        return ask_usage_error(x, "for example: lathe compile model.onnx --emit module -o model.so",
                               "no file for the module is given");
    if (!module && ask_has(x, OPT_WITH_INTERPRETER))
        return ask_usage_error(x, "add --emit module, or leave it out", "--with-interpreter is for modules");
    if (!package && ask_has(x, OPT_REPORT))
        return ask_usage_error(x, "leave --report or --emit out", "--report is for packages, and --emit %s makes none",
                               compile_emit_name(o));
    if (!package && ask_has(x, OPT_HTML))
        return ask_usage_error(x, "leave --html or --emit out", "--html is for packages, and --emit %s makes none",
                               compile_emit_name(o));
    if ((!package && !ask_is_file(x, OPT_OUT)) || !ask_is_file(x, OPT_REPORT) || !ask_is_file(x, OPT_HTML))
        return false;
    return !package || artifact_check_place(x->c, ask_get(x, OPT_OUT, ""), model);
}

bool cmd_compile(ask *x)
{
    const char *model = ask_model(x);
    compile_options o;
    compile_result r;
    writer dump;
    if (!model || !ask_compile_options(x, false, &o))
        return false;
    bool is_computation = false;
    if (o.device && !pipeline_is_computation(x->c, model, &o, &is_computation))
        return false;
    if (is_computation)
        return check_accelerated(x) && compile_accelerated(x, model, &o);
    if (!o.device && ask_has(x, OPT_CAPTURE))
        return ask_usage_error(x, "add --target vta, or leave it out", "--capture is for the accelerator");
    if (!check_places(x, &o, model))
        return false;
    writer_init(&dump, &x->c->mem);
    o.print_after_all = ask_has(x, OPT_PRINT_AFTER_ALL);
    o.dump = &dump;
    o.proof = true;
    o.page = ask_has(x, OPT_HTML);
    bool ok = (o.n_signatures > 1 ? functions_compile : pipeline_compile)(x->c, model, &o, &r);
    progress_hide(x->c);
    if (dump.len > 0)
        fwrite(dump.data, 1, dump.len, stderr);
    return ok && put_result(x, &o, &r);
}
