/* SPDX-License-Identifier: Apache-2.0 */
/* How the files of the importer report errors of a node: that it failed, which is reported once, and that its operator
 * is missing, which onnx_report.c reports for the whole model. */
#include "frontend/onnx/onnx_import.h"

#include <stdarg.h>
#include <stdio.h>

static void fail(onnx_node *n, diag_code code, const char *fmt, va_list ap)
{
    char text[512];
    const onnx_frame *frame = n->env->frame;
    if (n->failed)
        return;
    n->failed = true;
    vsnprintf(text, sizeof text, fmt, ap);
    if (frame)
        diag_error(&n->c->diags, code, n->loc, "%s (in function %s)", text, onnx_name(n->im, frame->fn->name));
    else
        diag_error(&n->c->diags, code, n->loc, "%s", text);
}

bool onnx_fail(onnx_node *n, diag_code code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail(n, code, fmt, ap);
    va_end(ap);
    return false;
}

graph_value *onnx_nothing(onnx_node *n)
{
    n->failed = true; /* told by whoever found out */
    return &n->im->poison;
}

graph_value *onnx_refuse(onnx_node *n, diag_code code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail(n, code, fmt, ap);
    va_end(ap);
    return onnx_nothing(n);
}

void onnx_note_missing(onnx_node *n, const char *domain, const char *op, const char *note, const char *types)
{
    onnx_importer *im = n->im;
    const char *node = *n->loc.node ? n->loc.node : arena_printf(&im->c->mem, "#%d", n->loc.node_index);
    const char *key = arena_printf(&im->c->mem, "%s\n%s\n%lld\n%s", domain, op, (long long)n->version, note);
    key = intern(im->c->names, key);
    onnx_missing *m = (onnx_missing *)(uintptr_t)onnx_map_get(&im->missing_by_name, key);
    if (!m) {
        m = arena_new(&im->c->mem, onnx_missing);
        *m = (onnx_missing){domain, op, n->version, 0, node, note, types};
        onnx_map_set(&im->c->mem, &im->missing_by_name, key, m);
        vec_push(&im->c->mem, &im->missing, m);
    } else if (m->count < 4) {
        m->nodes = arena_printf(&im->c->mem, "%s, %s", m->nodes, node);
    }
    m->count++;
}
