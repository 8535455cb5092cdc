/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising: the float model runs on samples, compiled as for users; ranges become scales; the quantised model is
 * written, runs on the same samples, and what it loses is told for each value and, with labels, in right answers. */
#include "api/quantize_verb.h"

#include "api/samples.h"
#include "base/json_out.h"
#include "base/nearest.h"
#include "driver/format.h"

#include <math.h>
#include <string.h>

typedef VEC(quantize_other) others;

/* What is wrong with the model, with its own name: copies that are compiled have others. */
static bool check_model(quantize_run *r, const char *path)
{
    graph_module *m;
    return pipeline_load(r->c, path, &r->options, &m);
}

static bool open_runner(quantize_run *r, const char *name, span bytes, run_model *out)
{
    compiler *c = r->c;
    compile_result result;
    const char *dir = path_join(&c->mem, r->scratch, name), *model = path_join(&c->mem, dir, "model.onnx"),
               *package = path_join(&c->mem, dir, "package");
    return file_make_dirs(&c->diags, dir) && compiler_write_file(c, model, bytes.data, bytes.len) &&
           pipeline_compile(c, model, &r->options, &result) && artifact_write(c, &result.artifact, package, false) &&
           run_open_package(c, package, NULL, out) && run_size_inputs(c, out) &&
           run_build(c, dir, r->workers, out);
}

/* Adds to the list what the model that shows the values says to be of another type than f32. */
static bool find_others(quantize_run *r, span bytes, others *list)
{
    graph_module *m;
    const char *name = arena_printf(&r->c->mem, "types_%u.onnx", list->len);
    const char *path = path_join(&r->c->mem, r->scratch, name);
    if (!compiler_write_file(r->c, path, bytes.data, bytes.len) || !pipeline_load(r->c, path, &r->options, &m))
        return false;
    const graph_func *f = graph_module_find(m, "main");
    for (uint32_t i = 0; i < r->q.values.len; i++) {
        const type *t = &f->results.data[r->q.values.data[i].result]->type;
        if (t->kind != TYPE_TENSOR || t->dt != DT_F32)
            vec_push(&r->c->mem, list, ((quantize_other){r->q.values.data[i].name, t->dt}));
    }
    return true;
}

/* Opens the model, again without what has other types: only the graph that is made of it knows them. Each time there
 * are fewer values. */
static bool open_quantizer(quantize_run *r, span bytes, const char *path, quantize_options *o, span *out_plain)
{
    others list = {0};
    uint32_t before;
    do {
        before = list.len;
        o->others = list.data;
        o->n_others = list.len;
        if (!quantize_open(r->c, bytes, path, o, &r->q) || !quantize_calibration(&r->q, out_plain) ||
            !find_others(r, *out_plain, &list))
            return false;
    } while (list.len > before);
    return true;
}

/* --- calibration --- */

static bool calibrate(quantize_run *r, samples *from)
{
    bool more = true;
    if (!compiler_progress(r->c, "calibrating", 0, 0))
        return false;
    while (more) {
        if (!samples_next(from, &r->plain, &more) ||
            (more && (!samples_check_finite(from, &r->plain) || !run_call(r->c, &r->plain))))
            return false;
        for (uint32_t i = 0; more && i < r->q.values.len; i++) {
            const run_tensor *t = &r->plain.outputs[r->q.values.data[i].result];
            quantize_observe(&r->q, i, (const float *)(const void *)t->data, t->count);
        }
    }
    r->seen = from->counted;
    samples_warn_of_equal(from, "the ranges of values are too small");
    return true;
}

/* --- evaluation --- */

static bool same_extents(const run_tensor *a, const run_tensor *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

/* The greatest of `classes` numbers. */
static int64_t answer(const run_tensor *t, int64_t row, int64_t classes)
{
    const float *x = (const float *)(const void *)t->data + row * classes;
    int64_t best = 0;
    for (int64_t i = 1; i < classes; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

static bool count_answers(quantize_run *r)
{
    const run_tensor *a = &r->plain.outputs[0], *b = &r->quantized.outputs[0];
    int64_t rows = a->rank ? a->dims[0] : 1, classes = rows > 0 ? a->count / rows : 0;
    if (a->dt != DT_F32 || classes < 2) {
        r->samples += rows;
        return !r->has_labels || diag_error(&r->c->diags, DIAG_USAGE, src_loc_none(),
                                            "--labels: output '%s' has no classes to choose from", a->name);
    }
    r->has_answers = true;
    for (int64_t i = 0; i < rows; i++, r->samples++) {
        int64_t x = answer(a, i, classes), y = same_extents(a, b) ? answer(b, i, classes) : -1;
        r->same += x == y;
        if (!r->has_labels)
            continue;
        if (r->samples >= r->labels.count) {
            diag_error(&r->c->diags, DIAG_DATA, src_loc_none(), "--labels has %lld entries, fewer than samples",
                       (long long)r->labels.count);
            diag_hint(&r->c->diags, "give one label for each sample of --data, in the same order");
            return false;
        }
        int64_t want = dtype_load_i64(r->labels.dt, r->labels.data + (size_t)r->samples * dtype_bytes(r->labels.dt));
        r->classes = classes;
        r->strangers += want < 0 || want >= classes;
        r->right += x == want;
        r->right_quantized += y == want;
    }
    return true;
}

static void add_losses(quantize_run *r)
{
    for (uint32_t i = 0; i < r->q.values.len; i++) {
        const uint32_t at = r->q.values.data[i].result;
        const run_tensor *a = &r->plain.outputs[at], *b = &r->quantized.outputs[at];
        const float *x = (const float *)(const void *)a->data, *y = (const float *)(const void *)b->data;
        r->losses[i].others += !same_extents(a, b);
        for (int64_t k = 0; k < a->count && same_extents(a, b); k++) {
            r->losses[i].error += ((double)x[k] - (double)y[k]) * ((double)x[k] - (double)y[k]);
            r->losses[i].power += (double)x[k] * (double)x[k];
        }
    }
}

/* Such labels count as wrong answers, and may be those of a model whose classes begin elsewhere. */
static void warn_of_strangers(quantize_run *r)
{
    if (r->strangers == 0)
        return;
    (void)diag_warning(&r->c->diags, DIAG_DATA, src_loc_none(),
                       "--labels: %lld of %lld are outside of the model's classes, 0 to %lld",
                       (long long)r->strangers, (long long)r->samples, (long long)r->classes - 1);
    diag_hint(&r->c->diags, "classes are counted from 0, in the order of the output");
}

static bool evaluate(quantize_run *r, samples *from)
{
    bool more = true;
    if (!compiler_progress(r->c, "comparing", 0, 0))
        return false;
    r->losses = arena_array(&r->c->mem, quantize_loss, r->q.values.len + 1u);
    memset(r->losses, 0, (r->q.values.len + 1u) * sizeof *r->losses);
    for (;;) {
        if (!samples_next(from, &r->plain, &more))
            return false;
        if (!more)
            break;
        for (uint32_t i = 0; i < r->plain.n_inputs; i++)
            memcpy(r->quantized.inputs[i].data, r->plain.inputs[i].data, r->plain.inputs[i].bytes);
        if (!run_call(r->c, &r->plain) || !run_call(r->c, &r->quantized) || !count_answers(r))
            return false;
        add_losses(r);
        r->calls++;
    }
    warn_of_strangers(r);
    return !r->has_labels || r->samples == r->labels.count ||
           diag_error(&r->c->diags, DIAG_DATA, src_loc_none(), "--labels has %lld entries for %lld samples",
                      (long long)r->labels.count, (long long)r->samples);
}

/* --- the report --- */

double quantize_verb_loss(const quantize_run *r, uint32_t i)
{
    return r->losses[i].power > 0 ? sqrt(r->losses[i].error / r->losses[i].power) : 0;
}

double quantize_verb_saturated(const quantize_run *r, uint32_t i)
{
    const quantize_value *v = &r->q.values.data[i], *group = &r->q.values.data[v->group];
    double half = (double)v->scale / 2;
    return histogram_outside(&group->seen, v->lo - half, v->hi + half);
}

void quantize_verb_write_json(const quantize_run *r, writer *w)
{
    json_out j = json_out_begin(w, JSON_OUT_LINES);
    json_out_object(&j, NULL);
    json_out_uint(&j, "nodes", r->q.n_nodes);
    json_out_uint(&j, "quantized", r->q.n_quantized);
    json_out_uint(&j, "batch_norms_folded", r->q.n_folded);
    json_out_int(&j, "calibrated_on", r->seen);
    json_out_int(&j, "samples", r->samples);
    if (r->has_answers)
        json_out_int(&j, "same_answer", r->same);
    if (r->has_labels) {
        json_out_int(&j, "right_float", r->right);
        json_out_int(&j, "right_quantized", r->right_quantized);
    }
    json_out_array(&j, "layers");
    for (uint32_t i = 0; i < r->q.n_layers; i++) {
        json_out_object(&j, NULL);
        json_out_text(&j, "name", r->q.layers[i].name);
        json_out_int(&j, "channels", r->q.layers[i].channels);
        json_out_real(&j, "weight_error", r->q.layers[i].weight_error);
        json_out_end(&j);
    }
    json_out_end(&j);
    json_out_array(&j, "values");
    for (uint32_t i = 0; i < r->q.values.len; i++) {
        const quantize_value *v = &r->q.values.data[i];
        json_out_object(&j, NULL);
        json_out_text(&j, "name", v->name);
        json_out_text(&j, "operator", v->op);
        json_out_real(&j, "scale", (double)v->scale);
        json_out_int(&j, "zero_point", v->zero);
        json_out_real(&j, "saturated", quantize_verb_saturated(r, i));
        json_out_real(&j, "error", quantize_verb_loss(r, i));
        if (r->losses[i].others > 0)
            json_out_int(&j, "other_extents", r->losses[i].others);
        json_out_end(&j);
    }
    json_out_end(&j);
    json_out_end(&j);
    w_str(w, "\n");
}

/* --- the verb --- */

static bool read_labels(quantize_run *r)
{
    const char *path = ask_get(r->x, OPT_LABELS, NULL);
    run_tensor *t = &r->labels;
    r->has_labels = path != NULL;
    if (!path)
        return true;
    *t = (run_tensor){.name = "labels"};
    if (!tensor_file_peek(r->c, path, t->name, &t->dt, &t->rank, t->dims) || !dtype_is_int(t->dt)) {
        if (r->c->diags.errors > 0)
            return false;
        diag_error(&r->c->diags, DIAG_DATA, src_loc_none(), "'%s': labels are integers in a .npy file", path);
        diag_hint(&r->c->diags, "the number of the right class for each sample: np.save('labels.npy', "
                                "y.astype('int64'))");
        return false;
    }
    run_set_dims(t, t->dims);
    t->most_bytes = t->bytes;
    t->data = arena_try_alloc(&r->c->mem, t->bytes + 1, 64);
    return t->data ? tensor_file_read(r->c, path, t)
                   : diag_error(&r->c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for '%s'", path);
}

/* Those that the target of --for says; the processor's are all false. */
static bool read_numbers(const ask *x, compiler *c, target_numbers *out)
{
    const char *name = ask_get(x, OPT_FOR, "cpu");
    const target_numbers *n = target_numbers_of(c, name);
    *out = n ? *n : (target_numbers){0};
    if (n || strcmp(name, "cpu") == 0)
        return true;
    const char *known = arena_printf(&c->mem, "cpu, %s", target_numbers_names(c));
    return ask_usage_error(x, arena_printf(&c->mem, "%sit takes %s; other targets come with --load-codegen",
                                           nearest_in(name, known, &c->mem), known),
                           target_lookup(c, name) ? "--for: the target '%.100s' does not say which numbers it takes"
                                                  : "--for: '%.100s' is unknown", name);
}

static bool read_options(quantize_run *r, quantize_options *o)
{
    ask *x = r->x;
    const int method = ask_choice(x, OPT_METHOD, NULL, "minmax");
    *o = (quantize_options){.method = (histogram_method)method};
    o->ends = ask_has(x, OPT_QUANTIZED_IO);
    o->skips = x->values[OPT_SKIP].data;
    o->n_skips = x->values[OPT_SKIP].len;
    if (method < 0 || !read_numbers(x, r->c, &o->numbers) || !ask_real(x, OPT_PERCENTILE, 99.99, &o->percentile) ||
        !ask_workers(x, &r->workers) || !ask_compile_options(x, true, &r->options))
        return false;
    r->options.quantised_ends = r->options.integers = false; /* the models that run here have floats at their ends */
    if (!(o->percentile > 50 && o->percentile <= 100))
        return ask_usage_error(x, "for example --percentile 99.9", "--percentile must be above 50 and at most 100");
    if (ask_has(x, OPT_PERCENTILE) && o->method != HISTOGRAM_PERCENTILE)
        return ask_usage_error(x, "add --method percentile, or leave it out",
                               "--percentile is for --method percentile");
    if (!ask_get(x, OPT_OUT, NULL))
        return ask_usage_error(x, "as in -o q.onnx", "quantize needs -o OUT");
    if (!ask_has(x, OPT_DATA) && !ask_has(x, OPT_CALIBRATE))
        return ask_usage_error(x, "for example --data samples.npy", "quantize needs data: --calibrate or --data");
    if (ask_has(x, OPT_LABELS) && !ask_has(x, OPT_DATA))
        return ask_usage_error(x, "give the samples that the labels belong to", "--labels needs --data");
    return ask_is_file(x, OPT_OUT);
}

/* Those that give the ranges, and those on which both models are compared: the same if only one is named. */
static bool open_samples(const quantize_run *r, samples *calibration, samples *evaluation)
{
    const char *data = ask_get(r->x, OPT_DATA, NULL), *from = ask_get(r->x, OPT_CALIBRATE, data);
    return samples_open(r->c, from, calibration) && samples_open(r->c, data ? data : from, evaluation);
}

static bool quantize(quantize_run *r, const char *path, const char *out)
{
    compiler *c = r->c;
    quantize_options o;
    samples calibration, evaluation;
    file_format format;
    span bytes, plain, quantized, shown;
    if (!format_read(c, "quantize", path, &bytes, &format) || !read_options(r, &o) || !read_labels(r))
        return false;
    if (!open_samples(r, &calibration, &evaluation) || !compiler_may_write(c, out) ||
        !samples_fix_shapes(&calibration, path, &r->options) || !check_model(r, path))
        return false;
    if (!open_quantizer(r, bytes, path, &o, &plain) || !open_runner(r, "float", plain, &r->plain) ||
        !calibrate(r, &calibration))
        return false;
    return quantize_write(&r->q, &quantized, &shown) && open_runner(r, "quantized", shown, &r->quantized) &&
           evaluate(r, &evaluation) && compiler_write_file(c, out, quantized.data, quantized.len);
}

bool quantize_verb(ask *x, quantize_run **out)
{
    quantize_run *r = arena_new(&x->c->mem, quantize_run);
    *out = r;
    *r = (quantize_run){.x = x, .c = x->c};
    const char *path = ask_model(x);
    if (!path)
        return false;
    r->scratch = process_temp_dir(x->c);
    bool ok = r->scratch && quantize(r, path, ask_get(x, OPT_OUT, NULL));
    run_unload(&r->plain);
    run_unload(&r->quantized);
    if (r->scratch)
        compiler_remove_temp_dir(x->c, r->scratch);
    return ok;
}
