/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs whose result is JSON: verify, quantize and tune. They work on files, so a model of bytes becomes one for a
 * while. */
#include "api/objects.h"

#include "api/quantize_verb.h"
#include "api/tune.h"
#include "api/verify.h"

#include <string.h>

typedef struct verb_args {
    const lathe_model *model;
    const lathe_settings *settings;
    ask_verb verb;
    const char *path; /* of what is written; NULL: nothing is */
} verb_args;

static bool verify_json_of(lathe_context *x, ask *q)
{
    const bool ok = verify(q, &verify_json);
    if (q->out.len > 0) /* what was found is told even where it is wrong */
        x->json = arena_strdup(&x->mem, q->out.data);
    return ok;
}

static bool quantize_json_of(lathe_context *x, ask *q)
{
    quantize_run *r;
    writer w;
    if (!quantize_verb(q, &r))
        return false;
    writer_init(&w, &x->mem);
    quantize_verb_write_json(r, &w);
    x->json = w.data;
    return true;
}

static bool tune_json_of(lathe_context *x, ask *q)
{
    tuning t;
    writer w;
    if (!tune_verb(q, &t))
        return false;
    writer_init(&w, &x->mem);
    tune_verb_write_json(&t, &w);
    x->json = w.data;
    return true;
}

static bool work(lathe_context *x, home *h, void *args)
{
    const verb_args *a = args;
    compiler *c = &h->c;
    const char *scratch = NULL, *file = a->model->path;
    ask q;
    if (!settings_ask(c, a->settings, a->verb, &q) || !ask_load_ops(&q, c))
        return false;
    if (!a->model->is_file) {
        scratch = process_temp_dir(c);
        file = scratch ? path_join(&c->mem, scratch, "model.onnx") : NULL;
    }
    bool ok = file && (!scratch || compiler_write_file(c, file, a->model->bytes.data, a->model->bytes.len));
    if (ok) {
        vec_push(&c->mem, &q.args, file);
        if (a->path)
            ask_add(&q, OPT_OUT, a->path);
        ok = a->verb == VERB_VERIFY     ? verify_json_of(x, &q)
             : a->verb == VERB_QUANTIZE ? quantize_json_of(x, &q)
                                        : tune_json_of(x, &q);
    }
    if (scratch)
        compiler_remove_temp_dir(c, scratch);
    return ok;
}

static int32_t run_verb(lathe_context *x, verb_args *a, const char **out_json)
{
    const int32_t outcome = a->model ? border_call_briefly(x, work, a) : border_refuse_missing(x, "model");
    *out_json = outcome != LATHE_BAD_USAGE ? x->json : NULL;
    return outcome;
}

int32_t lathe_verify(lathe_context *x, const lathe_model *model, const lathe_settings *settings, const char **out_json)
{
    return run_verb(x, &(verb_args){model, settings, VERB_VERIFY, NULL}, out_json);
}

int32_t lathe_quantize(lathe_context *x, const lathe_model *model, const char *path, const lathe_settings *settings,
                       const char **out_json)
{
    return run_verb(x, &(verb_args){model, settings, VERB_QUANTIZE, path}, out_json);
}

int32_t lathe_tune(lathe_context *x, const lathe_model *model, const char *path, const lathe_settings *settings,
                   const char **out_json)
{
    return run_verb(x, &(verb_args){model, settings, VERB_TUNE, path}, out_json);
}
