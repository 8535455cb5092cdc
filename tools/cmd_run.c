/* SPDX-License-Identifier: Apache-2.0 */
/* lathe run: the outputs of a model, shown or stored. */
#include "shown.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_out.h"
#include "codegen/c/package.h"

enum { MOST_SHOWN = 8 };

/* One string of a tensor of them. */
static const char *string_at(ask *x, const run_tensor *t, int64_t i)
{
    const int64_t width = t->dims[t->rank - 1];
    const char *at = (const char *)t->data + i * width;
    return arena_strndup(&x->c->mem, at, strnlen(at, (size_t)width));
}

static int64_t count_strings(const run_tensor *t)
{
    const int64_t width = t->dims[t->rank - 1];
    return width ? t->count / width : 0;
}

static void show_strings(ask *x, const run_tensor *t)
{
    writer *w = &x->out;
    const int64_t count = count_strings(t);
    w_fmt(w, "%s: string%s", cli_shown(x, t->name), tensor_file_dims(&x->c->mem, t->rank - 1, t->dims));
    w_str(w, count > 0 ? ":" : "");
    for (int64_t i = 0; i < count && i < MOST_SHOWN; i++)
        w_fmt(w, " \"%s\"", cli_shown(x, string_at(x, t, i)));
    w_fmt(w, "%s\n", count > MOST_SHOWN ? " ..." : "");
}

/* What the model calls the numbers, or the columns, of an output. NULL: it does not, or a package runs, which does not
 * hand out its names. */
static const attr *labels_of(const session *s, const run_tensor *t)
{
    const graph_module *g = s->result.graph;
    for (uint32_t i = 0; g && i < g->labels.len; i++)
        if (strcmp(g->labels.data[i].name, t->name) == 0)
            return &g->labels.data[i];
    return NULL;
}

static const char *label_at(ask *x, const attr *labels, int64_t i)
{
    if (i < 0 || i >= labels->n)
        return "no label";
    return labels->kind == ATTR_STRINGS ? cli_shown(x, labels->u.strings[i])
                                        : arena_printf(&x->c->mem, "%lld", (long long)labels->u.ints[i]);
}

/* Behind the numbers: the labels that they are, or those of the columns. */
static void show_labels(ask *x, const run_tensor *t, const attr *labels)
{
    const bool columns = dtype_is_float(t->dt);
    const int64_t count = columns ? labels->n : t->count;
    w_str(&x->out, columns ? " (columns:" : " (");
    for (int64_t i = 0; i < count && i < MOST_SHOWN; i++)
        w_fmt(&x->out, "%s%s", i ? ", " : columns ? " " : "",
              label_at(x, labels, columns ? i : dtype_load_i64(t->dt, t->data + (size_t)i * dtype_bytes(t->dt))));
    w_str(&x->out, count > MOST_SHOWN ? ", ...)" : ")");
}

static void show(const session *s, const run_tensor *t)
{
    ask *x = s->x;
    const attr *labels = labels_of(s, t);
    if (t->is_text) {
        show_strings(x, t);
        return;
    }
    writer *w = &x->out;
    size_t size = dtype_bytes(t->dt);
    double low = INFINITY, high = -INFINITY;
    int64_t nans = 0;
    for (int64_t i = 0; i < t->count; i++) {
        double v = dtype_load_f64(t->dt, t->data + (size_t)i * size);
        nans += isnan(v);
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    w_fmt(w, "%s: %s[", cli_shown(x, t->name), dtype_name(t->dt));
    for (uint32_t i = 0; i < t->rank; i++)
        w_fmt(w, "%s%lld", i ? ", " : "", (long long)t->dims[i]);
    w_fmt(w, "]");
    if (nans > 0)
        w_fmt(w, ", %lld of %lld nan", (long long)nans, (long long)t->count);
    if (t->count > nans)
        w_fmt(w, ", %.6g to %.6g", low, high);
    w_str(w, t->count > 0 ? ":" : "");
    for (int64_t i = 0; i < t->count && i < MOST_SHOWN; i++)
        w_fmt(w, " %.6g", dtype_load_f64(t->dt, t->data + (size_t)i * size));
    w_str(w, t->count > MOST_SHOWN ? " ..." : "");
    if (labels && t->count > 0)
        show_labels(x, t, labels);
    w_str(w, "\n");
}

static void write_strings(ask *x, json_out *j, const run_tensor *t)
{
    json_out_array(j, "values");
    for (int64_t i = 0; i < count_strings(t); i++)
        json_out_text(j, NULL, string_at(x, t, i));
    json_out_end(j);
}

/* Elements of sequences are outputs by themselves; a list without any is named. */
static void show_all(const session *s)
{
    const run_model *m = &s->model;
    for (uint32_t i = 0; i < m->n_outputs; i++)
        show(s, &m->outputs[i]);
    for (uint32_t i = 0; i < m->n_lists && m->seen; i++)
        if (!m->lists[i].is_input && m->seen[i].count == 0)
            w_fmt(&s->x->out, "%s: %s\n", cli_shown(s->x, m->lists[i].name),
                  run_list_text(&s->x->c->mem, &m->lists[i], m->seen[i].present, 0));
}

static void write_values(json_out *j, const run_tensor *t)
{
    size_t size = dtype_bytes(t->dt);
    json_out_array(j, "values");
    for (int64_t i = 0; i < t->count; i++) {
        const uint8_t *at = t->data + (size_t)i * size;
        if (dtype_is_float(t->dt))
            json_out_real(j, NULL, dtype_load_f64(t->dt, at));
        else
            json_out_int(j, NULL, dtype_load_i64(t->dt, at));
    }
    json_out_end(j);
}

static bool show_json(const session *s)
{
    const run_model *m = &s->model;
    json_out j = json_out_begin(&s->x->out, JSON_OUT_DENSE);
    json_out_object(&j, NULL);
    json_out_array(&j, "outputs");
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        const run_tensor *t = &m->outputs[i];
        json_out_object(&j, NULL);
        json_out_text(&j, "name", t->name);
        json_out_text(&j, "dtype", t->is_text ? "string" : dtype_name(t->dt));
        json_out_array(&j, "shape");
        for (uint32_t k = 0; k < t->rank - t->is_text; k++)
            json_out_int(&j, NULL, t->dims[k]);
        json_out_end(&j);
        if (t->is_text)
            write_strings(s->x, &j, t);
        else
            write_values(&j, t);
        if (labels_of(s, t))
            report_labels(&j, "labels", labels_of(s, t));
        json_out_end(&j);
    }
    json_out_end(&j);
    const bool ok = session_write_measured(&j, s);
    json_out_end(&j);
    w_str(&s->x->out, "\n");
    return ok;
}

/* The file name of output i without its suffix: names that would fall together get _1, _2, ... */
static const char *stem(ask *x, const char **used, uint32_t i, const char *wanted)
{
    const char *base = tensor_file_name(&x->c->mem, wanted), *name = base;
    for (uint32_t k = 1, j = 0; j < i; j++)
        if (strcmp(used[j], name) == 0) {
            name = arena_printf(&x->c->mem, "%s_%u", base, k++);
            j = UINT32_MAX; /* from the start again */
        }
    return used[i] = name;
}

/* The folder comes when all names are there: where memory is lacking for these, nothing was begun. One that was made
 * here and got nothing goes again. */
static bool store(ask *x, const run_model *m, const char *dir)
{
    const char **used = arena_array(&x->c->mem, const char *, m->n_outputs + 1u);
    const char **files = arena_array(&x->c->mem, const char *, m->n_outputs + 1u);
    const bool there = file_is_dir(dir);
    for (uint32_t i = 0; i < m->n_outputs; i++)
        files[i] = arena_printf(&x->c->mem, "%s/%s.npy", dir, stem(x, used, i, m->outputs[i].name));
    bool ok = file_make_dirs(&x->c->diags, dir);
    for (uint32_t i = 0; i < m->n_outputs && ok; i++)
        ok = tensor_file_write_npy(x->c, files[i], &m->outputs[i]);
    if (!ok && !there)
        (void)rmdir(dir);
    return ok;
}

bool cmd_run(ask *x)
{
    session s;
    const char *dir = ask_get(x, OPT_OUTPUT_DIR, NULL);
    bool ok = session_open(x, &s) && session_call_all(&s);
    if (ok && dir)
        ok = store(x, &s.model, dir);
    if (ok && ask_has(x, OPT_JSON))
        ok = show_json(&s);
    else if (ok)
        show_all(&s);
    ok = ok && shown_vta(&s) && (ask_has(x, OPT_JSON) || shown_board(&s)) && shown_compare(&s);
    session_close(&s);
    return ok;
}
