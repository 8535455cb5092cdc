/* SPDX-License-Identifier: Apache-2.0 */
/* What a model says of itself: its signatures, of which one may be chosen, its description, the names of its metadata.
 * A signature names a graph of the model, and gives names of its own to the inputs and outputs. */
#include "frontend/tflite/tflite_import.h"

#include "base/nearest.h"

#include <inttypes.h>
#include <string.h>

const char *tflite_text(const tflite_importer *im, span s)
{
    return arena_printf(&im->c->mem, "%.*s", (int)(s.len < 200 ? s.len : 200), s.data ? (const char *)s.data : "");
}

void tflite_add_fact(tflite_importer *im, const char *name, const char *text)
{
    if (*text)
        vec_push(&im->c->mem, &im->module->facts, ((model_fact){name, text}));
}

static const char *list_keys(const tflite_importer *im)
{
    const char *all = "";
    for (uint32_t i = 0; i < im->model->signature_defs.len && i < 20; i++)
        all = arena_printf(&im->c->mem, "%s%s%s", all, i ? ", " : "",
                           tflite_text(im, im->model->signature_defs.data[i]->signature_key));
    return all;
}

/* The key as bytes: names may hold any. */
static const tfl_signature *find_signature(const tflite_importer *im, const char *key)
{
    const size_t n = strlen(key);
    for (uint32_t i = 0; i < im->model->signature_defs.len; i++) {
        const span s = im->model->signature_defs.data[i]->signature_key;
        if (s.len == n && memcmp(s.data, key, n) == 0)
            return im->model->signature_defs.data[i];
    }
    return NULL;
}

bool tflite_choose_graph(tflite_importer *im)
{
    const char *key = im->o ? im->o->signature : NULL;
    if (!key)
        return true;
    im->signature = find_signature(im, key);
    if (!im->signature) {
        diag_error(&im->c->diags, DIAG_USAGE, tflite_loc(im), "--signature: the model has no signature '%s'", key);
        const char *keys = list_keys(im);
        if (*keys)
            diag_hint(&im->c->diags, "%sits signatures are: %s", nearest_in(key, keys, &im->c->mem), keys);
        else
            diag_hint(&im->c->diags, "it has none: leave --signature out");
        return false;
    }
    const int64_t at = im->signature->subgraph_index;
    if ((uint64_t)at >= im->model->subgraphs.len)
        return diag_error(&im->c->diags, DIAG_FORMAT, tflite_loc(im),
                          "the graph %" PRId64 " of signature '%s' is not in the model", at, key);
    im->graph = im->model->subgraphs.data[at];
    return true;
}

static bool name_tensor(tflite_importer *im, const tfl_tensor_map *m)
{
    if ((uint64_t)m->tensor_index >= im->n_tensors)
        return diag_error(&im->c->diags, DIAG_FORMAT, tflite_loc(im),
                          "a signature names tensor %" PRId64 ", which is not there", m->tensor_index);
    if (m->name.len > 0)
        im->tensors[m->tensor_index].name = intern_n(im->c->names, (const char *)m->name.data, m->name.len);
    return true;
}

bool tflite_name_ends(tflite_importer *im)
{
    const tfl_signature *s = im->signature;
    bool ok = true;
    for (uint32_t i = 0; s && i < s->inputs.len; i++)
        ok = name_tensor(im, s->inputs.data[i]) && ok;
    for (uint32_t i = 0; s && i < s->outputs.len; i++)
        ok = name_tensor(im, s->outputs.data[i]) && ok;
    return ok;
}

/* "image, scale -> label" */
static const char *ends_of(const tflite_importer *im, const tfl_signature *s)
{
    writer w;
    writer_init(&w, &im->c->mem);
    for (uint32_t i = 0; i < s->inputs.len && w.len < 300; i++)
        w_fmt(&w, "%s%s", i ? ", " : "", tflite_text(im, s->inputs.data[i]->name));
    w_str(&w, " -> ");
    for (uint32_t i = 0; i < s->outputs.len && w.len < 300; i++)
        w_fmt(&w, "%s%s", i ? ", " : "", tflite_text(im, s->outputs.data[i]->name));
    return w.data;
}

void tflite_tell_about(tflite_importer *im)
{
    const tfl_model *m = im->model;
    tflite_add_fact(im, "description", tflite_text(im, m->description));
    for (uint32_t i = 0; i < m->signature_defs.len && i < 50; i++)
        tflite_add_fact(im, arena_printf(&im->c->mem, "signature %s",
                                         tflite_text(im, m->signature_defs.data[i]->signature_key)),
                        ends_of(im, m->signature_defs.data[i]));
    for (uint32_t i = 0; i < m->metadata.len && i < 50; i++) {
        const tfl_metadata *k = m->metadata.data[i];
        const bool there = (uint64_t)k->buffer < m->buffers.len;
        const size_t bytes = there ? m->buffers.data[k->buffer]->data.len : 0;
        const char *name = tflite_text(im, k->name);
        const bool is_text = strcmp(name, "min_runtime_version") == 0;
        tflite_add_fact(im, arena_printf(&im->c->mem, "metadata %s", name),
                 is_text && there ? tflite_text(im, m->buffers.data[k->buffer]->data)
                                  : arena_printf(&im->c->mem, "%zu bytes", bytes));
    }
}
