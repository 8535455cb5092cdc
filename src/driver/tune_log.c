/* SPDX-License-Identifier: Apache-2.0 */
/* The tuner's records, written and read. */
#include "driver/tune_log.h"

#include <jansson.h>
#include <string.h>

#include "base/json_out.h"
#include "type/target.h"

void tune_log_line(writer *w, const tune_record *r)
{
    json_out j = json_out_begin(w, JSON_OUT_LINE);
    json_out_object(&j, NULL);
    json_out_text(&j, "kernel", r->kernel);
    json_out_text(&j, "target", r->target);
    json_out_text(&j, "compiler", r->built_by);
    json_out_uint(&j, "threads", r->threads);
    json_out_uint(&j, "measured", r->measured);
    json_out_real(&j, "seconds", r->seconds);
    json_out_real(&j, "rule_seconds", r->rule_seconds);
    json_out_text(&j, "computation", r->computation);
    json_out_text(&j, "schedule", r->schedule);
    json_out_end(&j);
    w_str(w, "\n");
}

void tune_log_form(writer *w, const tune_form *r)
{
    json_out j = json_out_begin(w, JSON_OUT_LINE);
    json_out_object(&j, NULL);
    json_out_text(&j, "model", r->model);
    json_out_text(&j, "target", r->target);
    json_out_text(&j, "compiler", r->built_by);
    json_out_uint(&j, "threads", r->threads);
    json_out_real(&j, "seconds", r->seconds);
    json_out_real(&j, "rule_seconds", r->rule_seconds);
    json_out_text(&j, "node", r->node);
    json_out_text(&j, "form", r->form);
    json_out_end(&j);
    w_str(w, "\n");
}

bool tune_log_is(span text)
{
    return text.len > 0 && text.data[0] == '{';
}

/* A text of the record, on the lines behind those of the file that stand before it. */
static te_record_text at_line(compiler *c, const char *file, uint32_t line, const char *text)
{
    size_t n = strlen(text);
    char *out = arena_alloc(&c->mem, line + n, 1);
    memset(out, '\n', line - 1u);
    memcpy(out + line - 1u, text, n + 1u);
    return (te_record_text){file, out, line - 1u + n};
}

static bool broken(compiler *c, const char *file, uint32_t line, const char *why)
{
    const src_loc at = {.file = file, .line = line, .col = 1, .node_index = -1};
    diag_error(&c->diags, DIAG_FORMAT, at, "this is not a record of lathe tune: %s", why);
    diag_hint(&c->diags, "'lathe tune' writes one record on each line, from the first line on");
    return false;
}

/* A tuner that was stopped as it wrote. */
static bool cut_off(compiler *c, const char *file, uint32_t line)
{
    const src_loc at = {.file = file, .line = line, .col = 1, .node_index = -1};
    diag_error(&c->diags, DIAG_FORMAT, at, "this is not a record of lathe tune: the file ends within it");
    diag_hint(&c->diags, "'lathe tune -o %s' drops it, and continues after the others", file);
    return false;
}

static bool read_schedule(compiler *c, const char *file, uint32_t line, const json_t *o, const char *runs,
                          te_records *out)
{
    const char *computation = json_string_value(json_object_get(o, "computation"));
    const char *schedule = json_string_value(json_object_get(o, "schedule"));
    const json_t *seconds = json_object_get(o, "seconds");
    if (!computation || !schedule || !json_is_number(seconds) || json_number_value(seconds) <= 0)
        return broken(c, file, line, "a field is missing");
    return te_records_add(c, out, at_line(c, file, line, computation), at_line(c, file, line, schedule), runs,
                          json_number_value(seconds));
}

static bool read_form(compiler *c, const char *file, uint32_t line, const json_t *o, const char *runs, te_records *out)
{
    const char *form = json_string_value(json_object_get(o, "form"));
    const json_int_t threads = json_integer_value(json_object_get(o, "threads"));
    if (!form || threads < 1 || threads > UINT32_MAX)
        return broken(c, file, line, "a field is missing");
    graph_choice r = {.target = runs, .threads = (uint32_t)threads, .form = arena_strdup(&c->mem, form)};
    r.node = arena_strdup(&c->mem, json_string_value(json_object_get(o, "node")));
    vec_push(&c->mem, &out->forms.list, r);
    return true;
}

static bool read_record(compiler *c, const char *file, uint32_t line, const json_t *o, te_records *out)
{
    const char *runs = json_string_value(json_object_get(o, "target"));
    if (!runs)
        return broken(c, file, line, "a field is missing");
    if (!target_lookup(c, runs))
        return broken(c, file, line, arena_printf(&c->mem, "'%.100s' is not a target", runs));
    runs = arena_strdup(&c->mem, runs);
    return json_string_value(json_object_get(o, "node")) ? read_form(c, file, line, o, runs, out)
                                                         : read_schedule(c, file, line, o, runs, out);
}

bool tune_log_read(compiler *c, const char *file, span text, te_records *out)
{
    uint32_t line = 1;
    for (size_t at = 0; at < text.len; line++) {
        const char *begin = (const char *)text.data + at, *end = memchr(begin, '\n', text.len - at);
        const size_t n = end ? (size_t)(end - begin) : text.len - at;
        at += n + 1;
        if (n == 0)
            continue;
        json_error_t why;
        json_t *o = json_loadb(begin, n, 0, &why);
        bool ok = o     ? read_record(c, file, line, o, out)
                  : end ? broken(c, file, line, why.text)
                        : cut_off(c, file, line);
        json_decref(o);
        if (!ok)
            return false;
    }
    return true;
}

uint32_t tune_log_count(span text)
{
    uint32_t lines = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.data[i] == '\n' || i + 1 == text.len;
    return lines;
}

size_t tune_log_whole(span text)
{
    size_t begin = text.len;
    while (begin > 0 && text.data[begin - 1] != '\n')
        begin--;
    json_error_t why;
    json_t *last = begin < text.len ? json_loadb((const char *)text.data + begin, text.len - begin, 0, &why) : NULL;
    const bool whole = begin == text.len || last;
    json_decref(last);
    return whole ? text.len : begin;
}
