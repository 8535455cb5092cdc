/* SPDX-License-Identifier: Apache-2.0 */
/* lathe inspect: what a compile makes of a model: a table, JSON, or a page with pictures. */
#include "base/file.h"
#include "cli.h"
#include "driver/html.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static char *shape_text(arena *a, const tir_buffer *b)
{
    writer w;
    writer_init(&w, a);
    w_fmt(&w, "%s[", dtype_name(b->dt));
    for (uint32_t i = 0; i < b->rank; i++) {
        w_str(&w, i ? "," : "");
        tir_print_expr(&w, b->shape[i]);
    }
    w_str(&w, "]");
    return w.data;
}

static uint64_t bytes_of(const compile_result *r, const plan_op *op)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < op->n_args; i++)
        sum += r->plan.problem->values.data[op->args[i]].bytes;
    return sum;
}

static void show_table(arena *a, const compile_result *r)
{
    int64_t macs = 0;
    printf("%4s %5s %5s %12s %12s  %-28s %s\n", "op", "layer", "parts", "MACs", "bytes", "result", "operators");
    for (uint32_t i = 0; i < r->plan.problem->ops.len; i++) {
        const plan_op *op = &r->plan.problem->ops.data[i];
        const char *result = op->n_args > op->n_inputs ? shape_text(a, op->func->params[op->n_inputs]) : "";
        printf("%4u %5u %5u %12lld %12llu  %-28s %s\n", i, op->layer, op->parts, (long long)r->unit.ops[i].macs,
               (unsigned long long)bytes_of(r, op), result, r->unit.ops[i].kind);
        macs += r->unit.ops[i].macs;
    }
    printf("\n%u operators in %u layers, %lld MACs, target %s\n", r->plan.problem->ops.len, r->plan.n_layers,
           (long long)macs, r->unit.target->name);
    printf("workspace %llu bytes (lower bound %llu; order %s, placement %s), constants %llu bytes\n",
           (unsigned long long)r->plan.workspace_bytes, (unsigned long long)r->plan.lower_bound_bytes, r->plan.order,
           r->plan.heuristic, (unsigned long long)r->plan.constant_bytes);
}

static void show_json(const compile_result *r)
{
    for (uint32_t i = 0; i < r->artifact.files.len; i++)
        if (strcmp(r->artifact.files.data[i].path, "report.json") == 0)
            fwrite(r->artifact.files.data[i].data, 1, r->artifact.files.data[i].len, stdout);
}

/* A package: what its report says. */
static int inspect_package(cli *x, const char *dir)
{
    json_error_t why;
    json_t *report = json_load_file(path_join(&x->c->mem, dir, "report.json"), 0, &why);
    if (!report) {
        diag_error(&x->c->diags, DIAG_IO, src_loc_none(), "'%s' is no package: report.json: %s", dir, why.text);
        return 1;
    }
    if (cli_has(x, OPT_HTML)) {
        json_decref(report);
        cli_usage_error(x, "name the model instead of the package", "pictures are made from a model");
        return 2;
    }
    if (cli_has(x, OPT_JSON)) {
        json_dumpf(report, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
        putchar('\n');
    } else {
        size_t i;
        json_t *op;
        json_array_foreach(json_object_get(report, "operators"), i, op)
            printf("%4zu layer %3lld tasks %3lld  %s\n", i, (long long)json_integer_value(json_object_get(op, "layer")),
                   (long long)json_integer_value(json_object_get(op, "tasks")),
                   json_string_value(json_object_get(op, "kind")));
        printf("\nworkspace %lld bytes (lower bound %lld), constants %lld bytes\n",
               (long long)json_integer_value(json_object_get(report, "workspace_bytes")),
               (long long)json_integer_value(json_object_get(report, "workspace_lower_bound_bytes")),
               (long long)json_integer_value(json_object_get(report, "constant_bytes")));
    }
    json_decref(report);
    return 0;
}

int cmd_inspect(cli *x)
{
    const char *model = cli_model(x), *html = cli_get(x, OPT_HTML, NULL);
    compile_options o;
    compile_result r;
    if (!model || !cli_compile_options(x, false, &o))
        return 2;
    if (file_is_dir(model))
        return inspect_package(x, model);
    if (!pipeline_compile(x->c, model, &o, &r))
        return diags_exit_status(&x->c->diags);
    if (cli_has(x, OPT_JSON))
        show_json(&r);
    else if (!html)
        show_table(&x->c->mem, &r);
    if (html) {
        writer w;
        writer_init(&w, &x->c->mem);
        html_write(&w, &r);
        if (!file_write(&x->c->diags, html, w.data, w.len))
            return diags_exit_status(&x->c->diags);
    }
    return 0;
}
