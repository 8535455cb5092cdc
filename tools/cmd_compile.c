/* SPDX-License-Identifier: Apache-2.0 */
/* lathe compile: a model to a package, or to the text of a stage. */
#include "base/file.h"
#include "cli.h"
#include "driver/summary.h"
#include "tir/text.h"

#include <stdio.h>
#include <string.h>

static bool put_text(cli *x, const writer *w)
{
    const char *file = cli_get(x, OPT_OUT, "-");
    if (strcmp(file, "-") != 0)
        return compiler_write_file(x->c, file, w->data, w->len);
    w_str(&x->out, w->data);
    return true;
}

static bool put_report(cli *x, const artifact *a)
{
    const char *file = cli_get(x, OPT_REPORT, NULL);
    for (uint32_t i = 0; file && i < a->files.len; i++)
        if (strcmp(a->files.data[i].path, "report.json") == 0)
            return compiler_write_file(x->c, file, a->files.data[i].data, a->files.data[i].len);
    return true;
}

static bool put_module(cli *x, const compile_result *r, const char *place)
{
    const artifact_file *f = &r->artifact.files.data[0];
    if (!compiler_write_file(x->c, place, f->data, f->len))
        return false;
    if (!cli_has(x, OPT_QUIET))
        summary_print_module(&x->out, r, place);
    return true;
}

static bool put_result(cli *x, const compile_options *o, const compile_result *r)
{
    writer w;
    writer_init(&w, &x->c->mem);
    if (strcmp(o->emit, "graph") == 0) {
        graph_print(&w, r->graph);
        return put_text(x, &w);
    }
    if (strcmp(o->emit, "prog") == 0) {
        prog_print(&w, r->prog);
        return put_text(x, &w);
    }
    if (strcmp(o->emit, "tir") == 0) {
        for (uint32_t i = 0; i < r->prog->kernels.len; i++) {
            w_str(&w, i ? "\n" : "");
            tir_print_func(&w, r->prog->kernels.data[i]->loops);
        }
        return put_text(x, &w);
    }
    if (strcmp(o->emit, "schedule") == 0)
        return prog_print_schedules(x->c, &w, r->prog) && put_text(x, &w);
    const char *place = cli_get(x, OPT_OUT, NULL), *report = cli_get(x, OPT_REPORT, NULL);
    if (r->artifact.is_file)
        return put_module(x, r, place);
    if ((report && !compiler_may_write(x->c, report)) || !artifact_write(x->c, &r->artifact, place, true) ||
        !put_report(x, &r->artifact))
        return false;
    if (cli_has(x, OPT_JSON))
        summary_print_json(&x->out, r, place);
    else if (!cli_has(x, OPT_QUIET))
        summary_print(&x->out, r, place);
    return true;
}

bool cmd_compile(cli *x)
{
    const char *model = cli_model(x);
    compile_options o;
    compile_result r;
    writer dump;
    if (!model || !cli_compile_options(x, false, &o))
        return false;
    bool package = strcmp(o.emit, "c") == 0, module = strcmp(o.emit, "module") == 0;
    if (package && !cli_has(x, OPT_OUT))
        return cli_usage_error(x, "as in: lathe compile model.onnx -o out", "no folder for the package is given");
    if (module && strcmp(cli_get(x, OPT_OUT, "-"), "-") == 0)
        return cli_usage_error(x, "as in: lathe compile model.onnx --emit module -o model.so",
                               "no file for the module is given");
    if (!module && cli_has(x, OPT_WITH_INTERPRETER))
        return cli_usage_error(x, "add --emit module, or leave it out", "--with-interpreter is for modules");
    if (module && (cli_has(x, OPT_PORT) || cli_has(x, OPT_CONSTANTS)))
        return cli_usage_error(x, "leave it out, or --emit module", "--%s is for packages, and a module is none",
                               cli_has(x, OPT_PORT) ? "port" : "constants");
    if (!package && cli_has(x, OPT_JSON))
        return cli_usage_error(x, "leave --json or --emit out", "--json tells of a package, and --emit %s makes none",
                               o.emit);
    if (!package && cli_has(x, OPT_REPORT))
        return cli_usage_error(x, "leave --report or --emit out", "--report is for packages, and --emit %s makes none",
                               o.emit);
    if ((!package && !cli_is_file(x, OPT_OUT)) || !cli_is_file(x, OPT_REPORT))
        return false;
    if (package && !artifact_check_place(x->c, cli_get(x, OPT_OUT, ""), model))
        return false;
    writer_init(&dump, &x->c->mem);
    o.print_after_all = cli_has(x, OPT_PRINT_AFTER_ALL);
    o.dump = &dump;
    bool ok = pipeline_compile(x->c, model, &o, &r);
    progress_hide(x->progress);
    if (dump.len > 0)
        fwrite(dump.data, 1, dump.len, stderr);
    return ok && put_result(x, &o, &r);
}
