/* SPDX-License-Identifier: Apache-2.0 */
/* What a compile would make of a model. */
#include "api/objects.h"
#include "driver/open_model.h"

#include <string.h>

typedef struct inspect_args {
    const lathe_model *model;
    const lathe_settings *settings;
} inspect_args;

static bool inspect(lathe_context *x, home *h, void *args)
{
    const inspect_args *a = args;
    compile_options o;
    compile_result r;
    ask q;
    model_give(&h->c, a->model);
    open_model open;
    if (!settings_ask(&h->c, a->settings, VERB_INSPECT, &q) || !ask_load_ops(&q, &h->c) ||
        !ask_compile_options(&q, false, &o) || !open_model_read(&h->c, a->model->path, &o, &open))
        return false;
    if (open.main) {
        writer w;
        writer_init(&w, &x->mem);
        open_model_json(&w, &open);
        x->json = w.data;
        return true;
    }
    if (!pipeline_compile(&h->c, a->model->path, &o, &r))
        return false;
    for (uint32_t i = 0; i < r.artifact.files.len; i++) {
        const artifact_file *f = &r.artifact.files.data[i];
        if (strcmp(f->path, "report.json") == 0)
            x->json = arena_strndup(&x->mem, f->data, f->len);
    }
    return x->json != NULL;
}

int32_t lathe_inspect(lathe_context *x, const lathe_model *model, const lathe_settings *settings, const char **out_json)
{
    inspect_args a = {model, settings};
    const int32_t outcome = model ? border_call_briefly(x, inspect, &a) : border_refuse_missing(x, "model");
    *out_json = outcome == LATHE_DONE ? x->json : NULL;
    return outcome;
}
