/* SPDX-License-Identifier: Apache-2.0 */
/* What a model needs before anything else makes sense: extents that are left open, operators and operator sets that are
 * not there, files of its weights. Each is said once for the whole model, with the way out, in place of the messages
 * that follow from it. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

#define MOST_HINTS 20u /* missing operators beyond these get no way out of their own */

/* Appends "a, b, c, ..." one at a time, each text once. */
typedef struct list {
    writer w;
    onnx_map seen;
    uint32_t len, most;
} list;

static list list_new(onnx_importer *im, uint32_t most)
{
    list l = {.most = most};
    writer_init(&l.w, &im->c->mem);
    return l;
}

static void list_add(onnx_importer *im, list *l, const char *separator, const char *text)
{
    text = intern(im->c->names, text);
    if (onnx_map_get(&l->seen, text))
        return;
    onnx_map_set(&im->c->mem, &l->seen, text, text);
    if (l->len++ < l->most)
        w_fmt(&l->w, "%s%s", l->len > 1 ? separator : "", text);
    else if (l->len == l->most + 1)
        w_fmt(&l->w, "%s...", separator);
}

/* --- open dimensions --- */

static bool has_part(const char *name, const char *part)
{
    size_t n = strlen(part);
    for (; *name; name++) {
        size_t i = 0;
        while (i < n && (name[i] | 32) == part[i])
            i++;
        if (i == n)
            return true;
    }
    return false;
}

/* A value that people mostly mean by the name; else the letter for one. */
static const char *usual_extent(const char *name, uint32_t axis)
{
    static const struct {
        const char *part, *extent;
    } usual[] = {{"batch", "1"}, {"seq", "128"}, {"len", "128"}, {"height", "224"}, {"width", "224"}};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (has_part(name, usual[i].part))
            return usual[i].extent;
    return axis == 0 ? "1" : "N";
}

bool onnx_is_symbolic(const graph_func *f)
{
    for (uint32_t i = 0; i < f->params.len; i++) {
        const shape *s = &f->params.data[i]->type.shape;
        for (int32_t k = 0; k < s->rank; k++)
            if (dim_bound(s->dims[k]) < 0)
                return true;
        if (s->rank < 0)
            return true;
    }
    return false;
}

static void report_symbols(onnx_importer *im, const graph_func *f)
{
    list symbols = list_new(im, 100), inputs = list_new(im, 8), options = list_new(im, 100);
    for (uint32_t i = 0; i < f->params.len; i++) {
        const graph_value *v = f->params.data[i];
        for (int32_t k = 0; k < v->type.shape.rank; k++) {
            const char *symbol = dim_symbol_name(v->type.shape.dims[k]);
            if (!symbol || dim_bound(v->type.shape.dims[k]) >= 0 || onnx_map_get(&im->follows, symbol))
                continue;
            list_add(im, &inputs, ", ", v->name);
            list_add(im, &symbols, ", ", symbol);
            list_add(im, &options, " ",
                     arena_printf(&im->c->mem, "--dim %s=%s", symbol, usual_extent(symbol, (uint32_t)k)));
        }
    }
    diag_error(&im->c->diags, DIAG_TYPE, onnx_loc(im), "open dimensions: %s (input%s %s): give %s", symbols.w.data,
               inputs.len > 1 ? "s" : "", inputs.w.data, options.w.data);
    diag_hint(&im->c->diags, "--dim 'NAME<=N' leaves one open: each run says how large it is, up to N");
}

/* --- operators --- */

static const char *way_of(onnx_importer *im, const onnx_missing *m)
{
    int64_t since = onnx_ops_since(m->domain, m->op);
    if (since)
        return arena_printf(&im->c->mem, "new in operator set %lld, so convert the model (onnx.version_converter)",
                            (long long)since);
    nearest near = nearest_to(m->op, strlen(m->op));
    onnx_ops_offer(m->domain, &near);
    if (near.best && 4 * near.distance <= strlen(m->op)) /* names of operators are short: STFT is no Sqrt */
        return arena_printf(&im->c->mem, "perhaps %s is meant", near.best);
    if (strcmp(m->domain, "com.microsoft") == 0)
        return "optimize the model without onnxruntime's own operators, or add them with --load-ops "
               "(docs/tutorials/add-an-op.md)";
    if (*m->domain && strcmp(m->domain, "ai.onnx.ml") != 0)
        return "add operators of other domains with --load-ops (docs/tutorials/add-an-op.md), or put functions that "
               "define them into the model";
    return NULL;
}

/* "A, B: what to do; C: ...": operators with one way out stand together. */
static const char *hints(onnx_importer *im)
{
    list all = list_new(im, MOST_HINTS + 1);
    uint32_t count = im->missing.len < MOST_HINTS ? im->missing.len : MOST_HINTS;
    for (uint32_t i = 0; i < count; i++) {
        const char *way = im->missing.data[i]->version ? way_of(im, im->missing.data[i]) : NULL;
        list ops = list_new(im, MOST_HINTS);
        for (uint32_t k = 0; way && k < count; k++) {
            const char *other = way_of(im, im->missing.data[k]);
            if (other && strcmp(way, other) == 0)
                list_add(im, &ops, ", ", im->missing.data[k]->op);
        }
        if (way)
            list_add(im, &all, "; ", arena_printf(&im->c->mem, "%s: %s", ops.w.data, way));
    }
    list_add(im, &all, "; ", "docs/reference/onnx-front-end.md lists what is supported");
    return all.w.data;
}

static void report_missing(onnx_importer *im)
{
    list ops = list_new(im, UINT32_MAX);
    for (uint32_t i = 0; i < im->missing.len; i++) {
        const onnx_missing *m = im->missing.data[i];
        if (m->version == 0)
            continue;
        list_add(im, &ops, "; ",
                 arena_printf(&im->c->mem, "%s%s%s%s (operator set %lld; %s%u node%s: %s%s)", m->domain,
                              *m->domain ? "." : "", m->op, m->types, (long long)m->version, m->note, m->count,
                              m->count > 1 ? "s" : "", m->nodes,
                              m->count > 4 ? ", ..." : ""));
    }
    if (ops.len == 0)
        return;
    diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im), "operators that are not supported yet: %s", ops.w.data);
    diag_hint(&im->c->diags, "%s", hints(im));
}

/* Version 0 in the list of what is missing: the set is not imported. */
static void report_sets(onnx_importer *im)
{
    onnx_map told = {0};
    for (uint32_t i = 0; i < im->missing.len; i++) {
        const char *domain = im->missing.data[i]->domain;
        if (im->missing.data[i]->version || onnx_map_get(&told, domain))
            continue;
        list ops = list_new(im, 8);
        onnx_map_set(&im->c->mem, &told, domain, "");
        for (uint32_t k = i; k < im->missing.len; k++)
            if (im->missing.data[k]->domain == domain)
                list_add(im, &ops, ", ", im->missing.data[k]->op);
        const char *name = *domain ? domain : "ai.onnx";
        diag_error(&im->c->diags, DIAG_FORMAT, onnx_loc(im), "the model imports no operator set '%s', but uses %s",
                   name, ops.w.data);
        diag_hint(&im->c->diags, "add it: model.opset_import.append(onnx.helper.make_opsetid('%s', VERSION))", domain);
    }
}

/* --- files of the weights --- */

static void report_lost(onnx_importer *im)
{
    list files = list_new(im, 4);
    const char *dir = path_dir(&im->c->mem, im->path);
    for (uint32_t i = 0; i < im->lost.len; i++)
        list_add(im, &files, ", ", im->lost.data[i]);
    if (files.len == 0)
        return;
    diag_error(&im->c->diags, DIAG_IO, onnx_loc(im), "%u file%s with the model's weights %s not in '%s': %s", files.len,
               files.len > 1 ? "s" : "", files.len > 1 ? "are" : "is", dir, files.w.data);
    diag_hint(&im->c->diags, "the model knows %s by name: copy %s beside '%s', and do not rename %s",
              files.len > 1 ? "these files" : "this file", files.len > 1 ? "them" : "it", im->path,
              files.len > 1 ? "them" : "it");
}

bool onnx_report_lost(onnx_importer *im, diags_mark before)
{
    if (im->lost.len == 0)
        return true;
    diags_reset(&im->c->diags, before);
    report_lost(im);
    return false;
}

bool onnx_report_needs(onnx_importer *im, const graph_func *f, diags_mark before)
{
    if (!im->symbolic && im->missing.len == 0 && im->lost.len == 0)
        return true;
    diags_reset(&im->c->diags, before); /* the rest follows from these, or shows when they are settled */
    if (im->symbolic)
        report_symbols(im, f);
    report_sets(im);
    report_missing(im);
    report_lost(im);
    return false;
}
