/* SPDX-License-Identifier: Apache-2.0 */
/* lathe compile: a model to a package, or to the text of a stage. */
#include "base/file.h"
#include "cli.h"

#include <stdio.h>
#include <string.h>

static bool put_text(cli *x, const writer *w)
{
    const char *file = cli_get(x, OPT_OUT, "-");
    if (strcmp(file, "-") != 0)
        return file_write(&x->c->diags, file, w->data ? w->data : "", w->len);
    return fwrite(w->data ? w->data : "", 1, w->len, stdout) == w->len;
}

static bool put_report(cli *x, const artifact *a)
{
    const char *file = cli_get(x, OPT_REPORT, NULL);
    for (uint32_t i = 0; file && i < a->files.len; i++)
        if (strcmp(a->files.data[i].path, "report.json") == 0)
            return file_write(&x->c->diags, file, a->files.data[i].data, a->files.data[i].len);
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
    if (strcmp(o->emit, "tir") == 0) {
        tir_print(&w, r->tir);
        return put_text(x, &w);
    }
    return artifact_write(x->c, &r->artifact, cli_get(x, OPT_OUT, NULL)) && put_report(x, &r->artifact);
}

int cmd_compile(cli *x)
{
    const char *model = cli_model(x);
    compile_options o;
    compile_result r;
    writer dump;
    if (!model || !cli_compile_options(x, false, &o))
        return 2;
    if (strcmp(o.emit, "c") == 0 && !cli_has(x, OPT_OUT)) {
        cli_usage_error(x, "as in: lathe compile model.onnx -o out", "no folder for the package is given");
        return 2;
    }
    writer_init(&dump, &x->c->mem);
    o.print_after_all = cli_has(x, OPT_PRINT_AFTER_ALL);
    o.dump = &dump;
    bool ok = pipeline_compile(x->c, model, &o, &r);
    if (dump.len > 0)
        fwrite(dump.data, 1, dump.len, stderr);
    ok = ok && put_result(x, &o, &r);
    return ok ? 0 : diags_exit_status(&x->c->diags);
}
