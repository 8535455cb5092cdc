/* SPDX-License-Identifier: Apache-2.0 */
/* The page as one file: src/driver/page/page.html with the style, the scripts and the documents in their places. */
#include "driver/html.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/embedded.h"
#include "driver/result.h"

#define PLACE "<!-- lathe: "   /* "<!-- lathe: NAME -->" in page.html */
#define DOCUMENT_BEGIN "<script type=\"application/json\" id=\"document\">"
#define DOCUMENT_END "</script>"

/* JSON has '<' in texts only, where \u003c is the same; so no text can end the element that holds the document. */
static void put_document(writer *w, const char *json)
{
    for (const char *s = json; *s;) {
        const size_t n = strcspn(s, "<");
        w_fmt(w, "%.*s", (int)n, s);
        s += n;
        if (*s == '<') {
            w_str(w, "\\u003c");
            s++;
        }
    }
}

static void put_escaped(writer *w, const char *s)
{
    for (; *s; s++)
        if (*s == '<' || *s == '&')
            w_fmt(w, "&#%d;", *s);
        else
            w_fmt(w, "%c", *s);
}

static void put_script(writer *w, const char *name)
{
    const struct embedded_file *f = embedded_find(name);
    if (!f)
        return;
    w_str(w, "<script>\n");
    w_fmt(w, "%.*s", (int)f->size, (const char *)f->data);
    w_str(w, "</script>\n");
}

static const char *title_of(const html_page *p)
{
    const char *slash = strrchr(p->file, '/');
    return slash ? slash + 1 : p->file;
}

static void put_place(compiler *c, writer *w, const html_page *p, const char *name, size_t len)
{
    const char *what = arena_strndup(&c->mem, name, len);
    if (strcmp(what, "title") == 0) {
        put_escaped(w, title_of(p));
    } else if (strcmp(what, "style") == 0) {
        w_str(w, "<style>\n");
        w_str(w, (const char *)embedded_find("src/driver/page/page.css")->data);
        w_str(w, "</style>\n");
    } else if (strcmp(what, "document") == 0) {
        writer json;
        writer_init(&json, &c->mem);
        html_write_document(c, &json, p);
        w_str(w, DOCUMENT_BEGIN "\n");
        put_document(w, json.data);
        w_str(w, DOCUMENT_END "\n");
    } else if (strcmp(what, "other") == 0 && p->other) {
        w_str(w, "<script type=\"application/json\" id=\"other\">\n");
        put_document(w, p->other);
        w_str(w, DOCUMENT_END "\n");
    } else if (strcmp(what, "loss") == 0 && p->loss) {
        w_str(w, "<script type=\"application/json\" id=\"loss\">\n");
        put_document(w, p->loss);
        w_str(w, DOCUMENT_END "\n");
    } else if (strcmp(what, "scripts") == 0) {
        if (embedded_find("dagre.js")) /* of a package of the system: cmake/embed.cmake */
            w_str(w, "<!-- dagre, Copyright (c) 2012-2014 Chris Pettitt, with parts of lodash and graphlib: "
                     "MIT license -->\n");
        put_script(w, "dagre.js");
        put_script(w, "src/driver/page/layout.js");
        put_script(w, "src/driver/page/graph.js");
        put_script(w, "src/driver/page/charts.js");
        put_script(w, "src/driver/page/page.js");
    }
}

void html_write(compiler *c, writer *w, const html_page *p)
{
    const char *s = (const char *)embedded_find("src/driver/page/page.html")->data, *at;
    w->step = 0;
    while ((at = strstr(s, PLACE)) != NULL) {
        const char *name = at + strlen(PLACE), *end = strstr(name, " -->\n");
        w_fmt(w, "%.*s", (int)(at - s), s);
        put_place(c, w, p, name, (size_t)(end - name));
        s = end + strlen(" -->\n");
    }
    w_str(w, s);
}

static bool is_json(const char *path)
{
    const size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".json") == 0;
}

bool html_write_file(compiler *c, const char *path, const html_page *p)
{
    writer w;
    writer_init(&w, &c->mem);
    if (is_json(path))
        html_write_document(c, &w, p);
    else
        html_write(c, &w, p);
    return compiler_write_file(c, path, w.data, w.len);
}

/* --- reading back --- */

static bool is_document(const json_t *o)
{
    const char *kind = json_string_value(json_object_get(o, "kind"));
    return kind && strcmp(kind, "page") == 0 && json_integer_value(json_object_get(o, "format")) == 1 &&
           json_is_array(json_object_get(o, "kernels"));
}

bool html_read_document(compiler *c, const char *path, const char **out)
{
    span s;
    json_error_t why;
    *out = NULL;
    if (!compiler_read_file(c, path, &s))
        return false;
    const char *text = arena_strndup(&c->mem, s.data ? (const char *)s.data : "", s.len);
    const char *begin = strstr(text, DOCUMENT_BEGIN), *end = begin ? strstr(begin, DOCUMENT_END) : NULL;
    if (end) {
        begin += strlen(DOCUMENT_BEGIN);
        text = arena_strndup(&c->mem, begin, (size_t)(end - begin));
    }
    json_t *o = json_loads(text, 0, &why);
    const bool ok = is_document(o);
    json_decref(o);
    *out = ok ? text : NULL;
    if (ok)
        return true;
    diag_error(&c->diags, DIAG_FORMAT, src_loc_none(), "'%s' is not a report page of lathe", path);
    diag_hint(&c->diags, "'lathe inspect MODEL --html page.html' writes one, and page.json instead writes its data");
    return false;
}

bool html_read_loss(compiler *c, const char *path, const char **out)
{
    span s;
    json_error_t why;
    *out = NULL;
    if (!compiler_read_file(c, path, &s))
        return false;
    json_t *o = json_loadb(s.data ? (const char *)s.data : "", s.len, 0, &why);
    const json_t *loss = result_of(o);
    const bool ok = json_is_array(json_object_get(loss, "values")) && json_is_array(json_object_get(loss, "layers"));
    char *text = ok ? json_dumps(loss, JSON_COMPACT) : NULL;
    *out = text ? arena_strdup(&c->mem, text) : NULL;
    free(text);
    json_decref(o);
    if (*out)
        return true;
    if (ok)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for '%s'", path);
    diag_error(&c->diags, DIAG_FORMAT, src_loc_none(), "'%s' is not a result of lathe quantize", path);
    diag_hint(&c->diags, "lathe quantize MODEL --data FILE -o OUT --json > FILE writes it");
    return false;
}
