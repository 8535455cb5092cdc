/* SPDX-License-Identifier: Apache-2.0 */
/* What TFLITE_METADATA says of a model: who made it, how inputs are normalized, what classes are called. The names of
 * classes are lines of a file in the archive behind the model. Nothing of it changes what a model computes, so what
 * cannot be read is left out with a warning.
 * The schema: tensorflow_lite_support/metadata/metadata_schema.fbs */
#include "frontend/tflite/tflite_import.h"

#include <string.h>

enum { AXIS_LABELS = 2, VALUE_LABELS = 3 }; /* AssociatedFileType */
#define MOST_LABELS 65536u
#define MOST_LABELS_OF_ALL (8u * MOST_LABELS) /* many outputs may name one file */
#define MOST_SHOWN 10u

static void leave_out(const tflite_importer *im, const char *what, const char *why)
{
    (void)diag_warning(&im->c->diags, DIAG_FORMAT, tflite_loc(im), "metadata: %s left out: %s", what, why);
}

static const tfl_graph_about *about_graph(const tflite_importer *im, const tfl_model_about *m)
{
    for (uint32_t i = 0; i < im->model->subgraphs.len && i < m->subgraph_metadata.len; i++)
        if (im->model->subgraphs.data[i] == im->graph)
            return m->subgraph_metadata.data[i];
    return NULL;
}

/* The name of end i of a graph, as messages have it. */
static const char *end_name(const tflite_importer *im, flat_numbers ends, uint32_t i)
{
    const int32_t k = i < ends.len ? flat_i32(ends, i) : -1;
    return k >= 0 && (uint32_t)k < im->n_tensors ? im->tensors[k].name : NULL;
}

/* "127.5", or "0.485, 0.456, 0.406" of channels. */
static const char *list_numbers(const tflite_importer *im, flat_numbers v)
{
    writer w;
    writer_init(&w, &im->c->mem);
    for (uint32_t i = 0; i < v.len && i < MOST_SHOWN; i++)
        w_fmt(&w, "%s%.7g", i ? ", " : "", (double)flat_f32(v, i));
    w_str(&w, v.len > MOST_SHOWN ? ", ..." : "");
    return w.data;
}

static void tell_normalization(tflite_importer *im, const char *input, const tfl_tensor_about *t)
{
    for (uint32_t i = 0; i < t->process_units.len; i++) {
        const tfl_process_unit *u = t->process_units.data[i];
        const tfl_normalization *n = u->options;
        if (u->options_type == 1 && n && n->mean.len > 0 && n->std.len > 0)
            tflite_add_fact(im, arena_printf(&im->c->mem, "normalization %s", input),
                            arena_printf(&im->c->mem, "(x - mean) / std; mean %s; std %s", list_numbers(im, n->mean),
                                         list_numbers(im, n->std)));
    }
}

/* The first file of labels; others are the same in other languages. */
static const tfl_associated_file *label_file(const tfl_tensor_about *t)
{
    for (uint32_t i = 0; i < t->associated_files.len; i++) {
        const tfl_associated_file *f = t->associated_files.data[i];
        if ((f->type == AXIS_LABELS || f->type == VALUE_LABELS) && f->name.len > 0)
            return f;
    }
    return NULL;
}

/* The lines of a text; empty ones at its end are none. */
static uint32_t read_lines(compiler *c, span text, const char **out)
{
    uint32_t n = 0;
    size_t from = 0;
    while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
        text.len--;
    for (size_t i = 0; i <= text.len && text.len > 0 && n < MOST_LABELS; i++) {
        if (i < text.len && text.data[i] != '\n')
            continue;
        const size_t end = i > from && text.data[i - 1] == '\r' ? i - 1 : i;
        if (out)
            out[n] = arena_printf(&c->mem, "%.*s", (int)(end - from < 1000 ? end - from : 1000),
                                  (const char *)text.data + from);
        n++;
        from = i + 1;
    }
    return n;
}

/* The labels of an output; 0: it has none that can be read. */
static uint32_t read_labels(tflite_importer *im, uint32_t i, bool is_silent, const char ***out)
{
    const bool there = im->about && i < im->about->output_tensor_metadata.len;
    const tfl_associated_file *f = there ? label_file(im->about->output_tensor_metadata.data[i]) : NULL;
    const char *why = NULL;
    span text = {0};
    if (!f || im->labels_read > MOST_LABELS_OF_ALL)
        return 0;
    if (!tflite_find_file(im->bytes, f->name, &text, &why)) {
        if (!is_silent)
            leave_out(im, arena_printf(&im->c->mem, "labels '%s'", tflite_text(im, f->name)), why);
        return 0;
    }
    const uint32_t n = read_lines(im->c, text, NULL);
    im->labels_read += n;
    *out = arena_array(&im->c->mem, const char *, n + 1);
    return read_lines(im->c, text, *out);
}

static void tell_labels(tflite_importer *im, uint32_t i, const char *output)
{
    const char **labels = NULL;
    const uint32_t n = read_labels(im, i, true, &labels);
    writer w;
    writer_init(&w, &im->c->mem);
    for (uint32_t k = 0; k < n && k < MOST_SHOWN; k++)
        w_fmt(&w, "%s%.40s", k ? ", " : "", labels[k]);
    if (n > 0)
        tflite_add_fact(im, arena_printf(&im->c->mem, "labels %s", output),
                        arena_printf(&im->c->mem, "%s%s (%u)", w.data, n > MOST_SHOWN ? ", ..." : "", n));
}

static span find_metadata(const tflite_importer *im)
{
    static const char key[] = "TFLITE_METADATA";
    for (uint32_t i = 0; i < im->model->metadata.len; i++) {
        const tfl_metadata *m = im->model->metadata.data[i];
        if (m->name.len == sizeof key - 1 && memcmp(m->name.data, key, m->name.len) == 0 &&
            (uint64_t)m->buffer < im->model->buffers.len)
            return im->model->buffers.data[m->buffer]->data;
    }
    return (span){0};
}

void tflite_read_metadata(tflite_importer *im)
{
    const span bytes = find_metadata(im);
    const char *why = NULL;
    if (bytes.len == 0 || (im->o && im->o->inputs_only))
        return;
    const tfl_model_about *m = flat_read_about(im->c, bytes, &why);
    if (!m) {
        leave_out(im, "TFLITE_METADATA", why);
        return;
    }
    const struct {
        const char *name;
        span text;
    } facts[] = {{"model", m->name}, {"about", m->description}, {"version", m->version},
                 {"author", m->author}, {"license", m->license}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        tflite_add_fact(im, facts[i].name, tflite_text(im, facts[i].text));
    im->about = about_graph(im, m);
    for (uint32_t i = 0; im->about && i < im->about->input_tensor_metadata.len && i < im->graph->inputs.len; i++) {
        const char *name = end_name(im, im->graph->inputs, i);
        if (name)
            tell_normalization(im, name, im->about->input_tensor_metadata.data[i]);
    }
    for (uint32_t i = 0; im->about && i < im->about->output_tensor_metadata.len && i < im->graph->outputs.len; i++) {
        const char *name = end_name(im, im->graph->outputs, i);
        if (name)
            tell_labels(im, i, name);
    }
}

void tflite_note_labels(tflite_importer *im, uint32_t i, const tflite_tensor *t, const char *name)
{
    const char **labels = NULL;
    int64_t columns = 0;
    const uint32_t n = read_labels(im, i, false, &labels);
    if (n == 0)
        return;
    const tfl_associated_file *f = label_file(im->about->output_tensor_metadata.data[i]);
    const struct shape *s = &t->type.shape;
    const bool known = t->type.kind == TYPE_TENSOR && s->rank > 0 && dim_is_const(s->dims[s->rank - 1], &columns);
    if (f->type == AXIS_LABELS && (!known || columns != (int64_t)n)) {
        leave_out(im, arena_printf(&im->c->mem, "labels '%s'", tflite_text(im, f->name)),
                  arena_printf(&im->c->mem, "there are %u, and '%s' has %lld columns", n, name, (long long)columns));
        return;
    }
    attr a = attr_strings(im->c, "labels", n, labels);
    a.name = name;
    vec_push(&im->c->mem, &im->module->labels, a);
}
